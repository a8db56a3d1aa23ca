/* pretokenizer.h: cuts text into pieces, which are encoded one by one, by regular expressions
 * (PCRE2 with JIT, UTF, UCP).
 *
 * Each step cuts every piece of the previous step: each match is a piece, and so is the text
 * between two matches, so that no text is lost. Patterns come from files, so the matching steps are
 * limited in proportion to the text.
 *
 * Classes of characters (\s, \p{L}, \p{N} and all other general categories) are those of Unicode
 * 16, as in tokenizers and tiktoken, with any PCRE2 (stand_ins.h). */
#ifndef RV_TRAIN_TEXT_TOKENIZER_PRETOKENIZER_H
#define RV_TRAIN_TEXT_TOKENIZER_PRETOKENIZER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRETOKENIZER_MAX_STEPS = 8, PRETOKENIZER_MAX_PATTERN_BYTES = 64 << 10 };

/* Read-only after the last step is added: any number of threads may share it. Zero-initialise. */
struct pretokenizer {
	struct pcre2_real_code_8 *steps[PRETOKENIZER_MAX_STEPS]; /* pcre2_code */
	int n_steps;                                             /* 0: the text is one piece */
};

/* Adds a step. If `literal`, the pattern is the text itself. Returns RV_E_INVALID (where, and why)
 * if it is not a regular expression, RV_E_UNSUPPORTED if it names a character that is not settled,
 * RV_E_RANGE if it is too long or a ninth step, RV_E_NOMEM. */
enum rv_err pretokenizer_add(struct pretokenizer *p, const char *pattern, size_t n, bool literal,
							 struct rv_errtext *et);
void pretokenizer_release(struct pretokenizer *p);

/* Allocates working memory for one thread. Returns RV_E_NOMEM. */
struct pretokenizer_scratch;
enum rv_err pretokenizer_scratch_new(struct pretokenizer_scratch **out, struct rv_errtext *et);
void pretokenizer_scratch_free(struct pretokenizer_scratch *s); /* NULL is fine */

/* Receives one piece, never empty. */
typedef enum rv_err piece_fn(void *ctx, const uint8_t *piece, size_t n, struct rv_errtext *et);

/* Calls `piece` for every piece of text[0, n), well-formed UTF-8, in order; stops at its first
 * fault and returns it. Returns RV_E_RANGE if a match takes too many steps (excessive
 * backtracking), or RV_E_NOMEM. */
enum rv_err pretokenizer_run(const struct pretokenizer *p, struct pretokenizer_scratch *s, const uint8_t *text,
							 size_t n, piece_fn *piece, void *ctx, struct rv_errtext *et);

#endif
