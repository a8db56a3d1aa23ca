/* blob.h: bytes that several parts of the worker hold at once: the reduced bytes of a round, a
 * fetched file. Immutable once shared; freed with the last reference. References may be dropped on
 * any thread. */
#ifndef RV_WORKER_STATE_BLOB_H
#define RV_WORKER_STATE_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob {
	size_t bytes;
	uint8_t *data; /* 64-byte aligned */
};

/* Returns one reference, contents unspecified; NULL if there is not enough memory. */
struct blob *blob_new(size_t bytes);
struct blob *blob_ref(struct blob *b);
/* Returns true if there is another reference. Once false, it stays false for the holder of the only
 * reference. */
bool blob_is_shared(const struct blob *b);
void blob_unref(struct blob *b); /* NULL is fine */

#endif
