/* blob.c: reference-counted bytes. */
#include "worker/state/blob.h"

#include "base/assert.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { BLOB_ALIGN = 64 };

struct counted_blob {
	struct blob blob;
	atomic_int refs;
};

struct blob *blob_new(size_t bytes) {
	size_t header = (sizeof(struct counted_blob) + BLOB_ALIGN - 1) / BLOB_ALIGN * BLOB_ALIGN;
	size_t total = (header + bytes + BLOB_ALIGN - 1) / BLOB_ALIGN * BLOB_ALIGN;
	if (total < bytes)
		return NULL;
	struct counted_blob *b = aligned_alloc(BLOB_ALIGN, total);
	if (!b)
		return NULL;
	b->blob = (struct blob){.bytes = bytes, .data = (uint8_t *)b + header};
	atomic_init(&b->refs, 1);
	return &b->blob;
}

struct blob *blob_ref(struct blob *b) {
	atomic_fetch_add(&((struct counted_blob *)b)->refs, 1);
	return b;
}

bool blob_is_shared(const struct blob *b) {
	return atomic_load(&((const struct counted_blob *)b)->refs) > 1;
}

void blob_unref(struct blob *b) {
	if (!b)
		return;
	struct counted_blob *counted = (struct counted_blob *)b;
	int before = atomic_fetch_sub(&counted->refs, 1);
	RV_ASSERT(before > 0);
	if (before == 1)
		free(counted);
}
