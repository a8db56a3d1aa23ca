/* buffers.c: growth by half as much again. */
#include "train/text/tokenizer/buffers.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 256 };

void *list_grow(void *items, size_t *cap, size_t n, size_t more, size_t unit, struct rv_errtext *et) {
	if (items && more <= *cap - n)
		return items;
	size_t limit = PTRDIFF_MAX / unit / 2;
	size_t wanted = more > limit - n ? SIZE_MAX : n + more;
	size_t grown = *cap + *cap / 2 + FIRST_CAP;
	if (wanted < grown)
		wanted = grown;
	void *p = wanted > limit ? NULL : realloc(items, wanted * unit);
	if (!p)
		(void)rv_fail(et, RV_E_NOMEM, "no memory for %zu more items of %zu bytes after %zu", more, unit, n);
	else
		*cap = wanted;
	return p;
}

enum rv_err token_list_reserve(struct token_list *l, size_t more, struct rv_errtext *et) {
	uint32_t *ids = list_grow(l->ids, &l->cap, l->n, more, sizeof *ids, et);
	l->ids = ids ? ids : l->ids;
	return ids ? RV_OK : RV_E_NOMEM;
}

enum rv_err token_list_append(struct token_list *l, const uint32_t *ids, size_t n, struct rv_errtext *et) {
	RV_TRY(token_list_reserve(l, n, et));
	if (n > 0)
		memcpy(l->ids + l->n, ids, n * sizeof *ids);
	l->n += n;
	return RV_OK;
}

void token_list_release(struct token_list *l) {
	free(l->ids);
	*l = (struct token_list){0};
}

enum rv_err byte_list_reserve(struct byte_list *l, size_t more, struct rv_errtext *et) {
	uint8_t *bytes = list_grow(l->bytes, &l->cap, l->n, more, sizeof *bytes, et);
	l->bytes = bytes ? bytes : l->bytes;
	return bytes ? RV_OK : RV_E_NOMEM;
}

enum rv_err byte_list_append(struct byte_list *l, const void *bytes, size_t n, struct rv_errtext *et) {
	RV_TRY(byte_list_reserve(l, n, et));
	if (n > 0)
		memcpy(l->bytes + l->n, bytes, n);
	l->n += n;
	return RV_OK;
}

void byte_list_release(struct byte_list *l) {
	free(l->bytes);
	*l = (struct byte_list){0};
}
