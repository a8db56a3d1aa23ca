/* specials.h: special (added) tokens and where they stand in a text. */
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
	bool plain;      /* added, but not special: it is found in any text */
	bool normalized; /* it is looked for after the text was normalized */
};

/* Which are looked for. */
struct special_filter {
	bool with_special; /* not the plain ones alone */
	bool normalized;   /* those that are looked for in normalized text, or the others */
};

/* Zero-initialise. Sorted by text once specials_sort() was called. */
struct special_set {
	struct special *at;
	size_t n, cap;
	size_t n_of[2][2];    /* by plain and normalized */
	bool first_byte[256]; /* some token begins with it */
};

/* Adds text[0, n), with the other fields of `kind`. RV_E_RANGE: too many, empty or too long; RV_E_NOMEM. */
enum rv_err specials_add(struct special_set *s, const char *text, size_t n, const struct special *kind,
						 struct rv_errtext *et);
/* RV_E_INVALID names one that is there twice. To be called before the functions below. */
enum rv_err specials_sort(struct special_set *s, struct rv_errtext *et);
void specials_release(struct special_set *s);

const struct special *specials_find(const struct special_set *s, const char *text, size_t n);
/* The leftmost token in text[0, n), the longest where several begin; *at is where. NULL: there is none. */
const struct special *specials_next(const struct special_set *s, const uint8_t *text, size_t n,
									struct special_filter filter, size_t *at);

#endif
