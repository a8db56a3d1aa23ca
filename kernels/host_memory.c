/* host_memory.c: plain memory for the backends that compute on the host. */
#include "kernels/host_memory.h"

#include "base/os_memory.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE_BYTES = 64, HUGE_PAGE_BYTES = 2 << 20 };

void *host_zalloc(size_t bytes) {
	size_t align = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : CACHE_LINE_BYTES;
	if (bytes > PTRDIFF_MAX - align)
		return NULL; /* more than any allocator has */
	size_t rounded = (bytes + align - 1) / align * align;
	void *p = aligned_alloc(align, rounded ? rounded : align);
	if (!p)
		return NULL;
	if (align == HUGE_PAGE_BYTES)
		os_memory_prefer_large_pages(p, rounded);
	memset(p, 0, rounded);
	return p;
}

enum rv_err host_backend_alloc(struct backend *be, size_t bytes, void **out, struct rv_errtext *et) {
	*out = host_zalloc(bytes);
	if (!*out)
		return rv_fail(et, RV_E_NOMEM, "%s backend: no memory for %zu bytes; use a smaller model or batch",
					   be->ops->name, bytes);
	return RV_OK;
}

void host_backend_free(struct backend *be, void *p) {
	(void)be;
	free(p);
}

void host_backend_copy(struct backend *be, void *dst, const void *src, size_t bytes) {
	(void)be;
	if (bytes)
		memcpy(dst, src, bytes);
}

void host_backend_zero(struct backend *be, void *p, size_t bytes) {
	(void)be;
	if (bytes)
		memset(p, 0, bytes);
}

void host_backend_sync(struct backend *be) {
	(void)be;
}
