/* tokenizer_internal.h: what a kind of tokenizer is made of. Inner part of tokenizer.h. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TOKENIZER_INTERNAL_H
#define RV_TRAIN_TEXT_TOKENIZER_TOKENIZER_INTERNAL_H

#include "train/text/tokenizer/bpe.h"
#include "train/text/tokenizer/nfc.h"
#include "train/text/tokenizer/pretokenizer.h"
#include "train/text/tokenizer/specials.h"
#include "train/text/tokenizer/tokenizer.h"

#include <stdbool.h>

struct encoder;

/* A new kind is one file with one of these, and a line in tokenizer.c. */
struct tokenizer_kind {
	const char *name;
	/* Does a file of these bytes look like one? */
	bool (*recognise)(const uint8_t *data, size_t n);
	/* Fills the tokenizer, which is zero but for `kind`; what it holds after a fault is released. */
	enum rv_err (*load)(struct tokenizer *t, const uint8_t *data, size_t n, const char *pattern, struct rv_errtext *et);
	/* Appends the tokens of text without special tokens. */
	enum rv_err (*encode)(struct encoder *e, const uint8_t *text, size_t n, struct token_list *out,
						  struct rv_errtext *et);
};

extern const struct tokenizer_kind tokenizer_kind_bytes, tokenizer_kind_huggingface, tokenizer_kind_tiktoken;

struct tokenizer {
	const struct tokenizer_kind *kind;
	struct rv_hash hash, identity;
	struct bpe bpe; /* its vocabulary holds the special tokens too, for decoding */
	struct pretokenizer pretokenizer;
	struct special_set specials;
	bool nfc; /* text is normalized first */
};

struct encoder {
	const struct tokenizer *t;
	struct pretokenizer_scratch *matcher;
	struct bpe_scratch merging;
	struct piece_cache *cache;
	struct token_list *out;  /* of the call under way */
	struct byte_list normal; /* text after normalizing */
};

/* text[0, n) normalized, in e->normal; what is no UTF-8 stays as it is. RV_E_NOMEM. */
enum rv_err encoder_normalize(struct encoder *e, const uint8_t *text, size_t n, struct rv_errtext *et);

/* The `encode` of both BPE kinds. */
enum rv_err encoder_encode_bpe(struct encoder *e, const uint8_t *text, size_t n, struct token_list *out,
							   struct rv_errtext *et);

#endif
