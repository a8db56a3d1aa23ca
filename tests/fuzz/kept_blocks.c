/* kept_blocks.c: malloc, calloc, realloc and free, by --wrap. */
#include "tests/fuzz/kept_blocks.h"

#include "base/assert.h"

#include <sanitizer/asan_interface.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { KEPT_BYTES_MIN = 1 << 18, KEPT_MAX = 8 };
/* As AddressSanitizer fills the beginning of what malloc returns. */
enum { FILL = 0xbe, FILL_BYTES = 4096 };

struct kept {
	void *at;
	size_t n;
	bool in_use;
};

static struct kept blocks[KEPT_MAX];
static int n_blocks;

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static struct kept *find(const void *p) {
	for (int i = 0; i < n_blocks; i++)
		if (blocks[i].at == p)
			return &blocks[i];
	return NULL;
}

/* A free one of that size, or a new one; NULL: there is no room for more, or no memory. */
static struct kept *take(size_t n) {
	for (int i = 0; i < n_blocks; i++)
		if (blocks[i].n == n && !blocks[i].in_use)
			return &blocks[i];
	void *at = n_blocks < KEPT_MAX ? __real_malloc(n) : NULL;
	if (at == NULL)
		return NULL;
	blocks[n_blocks] = (struct kept){.at = at, .n = n};
	return &blocks[n_blocks++];
}

static void *use(struct kept *k, int fill, size_t fill_bytes) {
	k->in_use = true;
	ASAN_UNPOISON_MEMORY_REGION(k->at, k->n);
	memset(k->at, fill, fill_bytes);
	return k->at;
}

void *__wrap_malloc(size_t n) {
	struct kept *k = n >= KEPT_BYTES_MIN ? take(n) : NULL;
	return k != NULL ? use(k, FILL, FILL_BYTES) : __real_malloc(n);
}

void *__wrap_calloc(size_t count, size_t n) {
	struct kept *k = count == 1 && n >= KEPT_BYTES_MIN ? take(n) : NULL;
	return k != NULL ? use(k, 0, n) : __real_calloc(count, n);
}

void *__wrap_realloc(void *p, size_t n) {
	RV_ASSERT(p == NULL || find(p) == NULL);
	return __real_realloc(p, n);
}

void __wrap_free(void *p) {
	struct kept *k = p != NULL ? find(p) : NULL;
	if (k == NULL) {
		__real_free(p);
		return;
	}
	RV_ASSERT(k->in_use);
	k->in_use = false;
	ASAN_POISON_MEMORY_REGION(k->at, k->n);
}

int kept_blocks_in_use(void) {
	int n = 0;
	for (int i = 0; i < n_blocks; i++)
		n += blocks[i].in_use;
	return n;
}
