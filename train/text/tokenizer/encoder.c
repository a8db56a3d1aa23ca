/* encoder.c: cuts text into runs of characters and of other bytes, and these into pieces. */
#include "base/assert.h"
#include "train/text/tokenizer/piece_cache.h"
#include "train/text/tokenizer/tokenizer_internal.h"
#include "train/text/tokenizer/utf8.h"

#include <stdlib.h>

enum rv_err encoder_new(const struct tokenizer *t, struct encoder **out, struct rv_errtext *et) {
	struct encoder *e = calloc(1, sizeof *e);
	*out = NULL;
	if (!e)
		return rv_fail(et, RV_E_NOMEM, "no memory for an encoder");
	e->t = t;
	enum rv_err rc = piece_cache_new(&e->cache, et);
	if (rc == RV_OK)
		rc = pretokenizer_scratch_new(&e->matcher, et);
	if (rc == RV_OK)
		*out = e;
	else
		encoder_free(e);
	return rc;
}

void encoder_free(struct encoder *e) {
	if (!e)
		return;
	piece_cache_free(e->cache);
	pretokenizer_scratch_free(e->matcher);
	bpe_scratch_release(&e->merging);
	byte_list_release(&e->normal);
	free(e);
}

static enum rv_err encode_piece(void *ctx, const uint8_t *piece, size_t n, struct rv_errtext *et) {
	struct encoder *e = ctx;
	RV_ASSERT(n > 0);
	if (n > PIECE_CACHE_MAX_BYTES)
		return bpe_encode(&e->t->bpe, &e->merging, piece, n, e->out, et);
	struct piece_key key = piece_key_of(piece, n);
	const struct piece_entry *known = piece_cache_find(e->cache, &key);
	if (known)
		return token_list_append(e->out, known->ids, known->n, et);
	size_t begin = e->out->n;
	RV_TRY(bpe_encode(&e->t->bpe, &e->merging, piece, n, e->out, et));
	piece_cache_put(e->cache, &key, e->out->ids + begin, e->out->n - begin);
	return RV_OK;
}

enum rv_err encoder_normalize(struct encoder *e, const uint8_t *text, size_t n, struct rv_errtext *et) {
	e->normal.n = 0;
	while (n > 0) {
		size_t valid = utf8_valid_prefix(text, n), invalid = utf8_invalid_prefix(text + valid, n - valid);
		RV_TRY(nfc_append(text, valid, &e->normal, et));
		RV_TRY(byte_list_append(&e->normal, text + valid, invalid, et));
		text += valid + invalid;
		n -= valid + invalid;
	}
	return RV_OK;
}

enum rv_err encoder_encode_bpe(struct encoder *e, const uint8_t *text, size_t n, struct token_list *out,
							   struct rv_errtext *et) {
	e->out = out;
	while (n > 0) {
		size_t valid = utf8_valid_prefix(text, n);
		RV_TRY(pretokenizer_run(&e->t->pretokenizer, e->matcher, text, valid, encode_piece, e, et));
		size_t invalid = utf8_invalid_prefix(text + valid, n - valid);
		if (invalid > 0)
			RV_TRY(encode_piece(e, text + valid, invalid, et));
		text += valid + invalid;
		n -= valid + invalid;
	}
	return RV_OK;
}
