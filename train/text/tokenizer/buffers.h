/* buffers.h: growing lists of token ids and of bytes. Zero-initialise; n = 0 reuses the memory. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_BUFFERS_H
#define RV_TRAIN_TEXT_TOKENIZER_BUFFERS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct token_list {
	uint32_t *ids;
	size_t n, cap;
};

struct byte_list {
	uint8_t *bytes;
	size_t n, cap;
};

/* Makes room for `more` items of `unit` bytes behind the n items of an array of *cap items, which
 * moves. Returns the array, or NULL with the old one unchanged (RV_E_NOMEM). */
void *list_grow(void *items, size_t *cap, size_t n, size_t more, size_t unit, struct rv_errtext *et);

/* Makes room for `more` items. On RV_E_NOMEM, here and in append, the list is unchanged. */
enum rv_err token_list_reserve(struct token_list *l, size_t more, struct rv_errtext *et);
enum rv_err token_list_append(struct token_list *l, const uint32_t *ids, size_t n, struct rv_errtext *et);
void token_list_release(struct token_list *l);

enum rv_err byte_list_reserve(struct byte_list *l, size_t more, struct rv_errtext *et);
enum rv_err byte_list_append(struct byte_list *l, const void *bytes, size_t n, struct rv_errtext *et);
void byte_list_release(struct byte_list *l);

#endif
