/* specials.h: special (added) tokens and their positions in a text. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_SPECIALS_H
#define RV_TRAIN_TEXT_TOKENIZER_SPECIALS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPECIALS_MAX = 1 << 16, SPECIAL_MAX_BYTES = 1024 };

struct special {
	char *text;
	uint32_t n, id;
	bool plain;      /* added, but not special: recognised in any text */
	bool normalized; /* recognised in the text after NFC */
};

/* The tokens that a search recognises. */
struct special_filter {
	bool with_special; /* special and plain tokens, not the plain ones alone */
	bool normalized;   /* those recognised after NFC; false: those recognised before */
};

/* Zero-initialised by the caller; sorted by text after specials_sort(). */
struct special_set {
	struct special *at;
	size_t n, cap;
	size_t n_of[2][2];    /* counts by plain and normalized */
	bool first_byte[256]; /* whether a token begins with this byte */
};

/* Adds a copy of text[0, n) with the other fields of `kind`. Returns RV_E_RANGE if there are too
 * many or its length is not 1 to SPECIAL_MAX_BYTES, or RV_E_NOMEM. */
enum rv_err specials_add(struct special_set *s, const char *text, size_t n, const struct special *kind,
						 struct rv_errtext *et);
/* Sorts the set, before any search. Returns RV_E_INVALID, naming a token that occurs twice. */
enum rv_err specials_sort(struct special_set *s, struct rv_errtext *et);
void specials_release(struct special_set *s);

/* Returns the token text[0, n), or NULL. */
const struct special *specials_find(const struct special_set *s, const char *text, size_t n);
/* Finds the leftmost token in text[0, n), at *at, the longest there. Returns NULL if none. */
const struct special *specials_next(const struct special_set *s, const uint8_t *text, size_t n,
									struct special_filter filter, size_t *at);

#endif
