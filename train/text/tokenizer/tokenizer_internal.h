/* tokenizer_internal.h: the parts of a kind of tokenizer. Inner part of tokenizer.h. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TOKENIZER_INTERNAL_H
#define RV_TRAIN_TEXT_TOKENIZER_TOKENIZER_INTERNAL_H

#include "train/text/tokenizer/bpe.h"
#include "train/text/tokenizer/nfc.h"
#include "train/text/tokenizer/pretokenizer.h"
#include "train/text/tokenizer/specials.h"
#include "train/text/tokenizer/tokenizer.h"

#include <stdbool.h>

struct encoder;

/* The operations of a kind; a new kind is one file with this table and a line in tokenizer.c. */
struct tokenizer_kind {
	const char *name;
	/* Reports whether data[0, n) looks like a file of this kind. NULL: it has no file. */
	bool (*recognise)(const uint8_t *data, size_t n);
	/* Fills `t`, which is zero but for `kind` and the hashes. The caller releases it on a fault. */
	enum rv_err (*load)(struct tokenizer *t, const uint8_t *data, size_t n, const char *pattern, struct rv_errtext *et);
	/* Appends the tokens of text without special tokens to `out`. */
	enum rv_err (*encode)(struct encoder *e, const uint8_t *text, size_t n, struct token_list *out,
						  struct rv_errtext *et);
};

extern const struct tokenizer_kind tokenizer_kind_bytes, tokenizer_kind_huggingface, tokenizer_kind_tiktoken;

struct tokenizer {
	const struct tokenizer_kind *kind;
	struct rv_hash hash, identity;
	struct bpe bpe; /* its vocabulary includes special tokens, for decoding */
	struct pretokenizer pretokenizer;
	struct special_set specials;
	bool nfc; /* text is brought into NFC before it is cut */
};

struct encoder {
	const struct tokenizer *t;
	struct pretokenizer_scratch *matcher;
	struct bpe_scratch merging;
	struct piece_cache *cache;
	struct token_list *out;  /* destination of the running call */
	struct byte_list normal; /* the text in NFC */
};

/* Writes the NFC of text[0, n), with other bytes unchanged, to e->normal. Returns RV_E_NOMEM. */
enum rv_err encoder_normalize(struct encoder *e, const uint8_t *text, size_t n, struct rv_errtext *et);

/* Encodes for both BPE kinds: cuts text[0, n) into pieces and appends their tokens to `out`. */
enum rv_err encoder_encode_bpe(struct encoder *e, const uint8_t *text, size_t n, struct token_list *out,
							   struct rv_errtext *et);

#endif
