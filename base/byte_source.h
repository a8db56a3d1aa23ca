/* byte_source.h: a source of bytes that a reader takes in pieces, from memory or from a file, so
 * that it never needs all of them in memory. */
#ifndef RV_BASE_BYTE_SOURCE_H
#define RV_BASE_BYTE_SOURCE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct byte_source {
	void *ctx;
	/* Copies n bytes at offset `at` to `out`; the caller knows how many there are. RV_E_IO,
	 * RV_E_CORRUPT. */
	enum rv_err (*read)(void *ctx, uint64_t at, void *out, size_t n, struct rv_errtext *et);
};

static inline enum rv_err byte_source_read_memory(void *ctx, uint64_t at, void *out, size_t n, struct rv_errtext *et) {
	(void)et;
	memcpy(out, (const uint8_t *)ctx + at, n);
	return RV_OK;
}

/* Returns a source of bytes in memory, borrowed. */
static inline struct byte_source byte_source_of(const void *bytes) {
	return (struct byte_source){(void *)(uintptr_t)bytes, byte_source_read_memory};
}

#endif
