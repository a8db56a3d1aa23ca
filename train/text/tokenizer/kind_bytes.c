/* kind_bytes.c: the bytes themselves, which runs without a tokenizer train on. */
#include "train/text/tokenizer/tokenizer_internal.h"

static enum rv_err load(struct tokenizer *t, const uint8_t *data, size_t n, const char *pattern,
						struct rv_errtext *et) {
	(void)data;
	(void)n;
	(void)pattern;
	RV_TRY(vocab_init(&t->bpe.vocab, 256, et));
	for (uint32_t id = 0; id < 256; id++) {
		uint8_t byte = (uint8_t)id;
		RV_TRY(vocab_put(&t->bpe.vocab, id, &byte, 1, true, et));
	}
	return RV_OK;
}

static enum rv_err encode(struct encoder *e, const uint8_t *text, size_t n, struct token_list *out,
						  struct rv_errtext *et) {
	(void)e;
	RV_TRY(token_list_reserve(out, n, et));
	for (size_t i = 0; i < n; i++)
		out->ids[out->n++] = text[i];
	return RV_OK;
}

const struct tokenizer_kind tokenizer_kind_bytes = {
	.name = "bytes",
	.load = load,
	.encode = encode,
};
