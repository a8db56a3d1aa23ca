/* pretokenizer.h: cuts text into the pieces that are encoded one by one, by regular expressions (PCRE2, JIT, UTF, UCP).
 *
 * Each step cuts every piece of the step before it: a match is a piece, and what lies between two matches is a piece
 * too, so nothing is ever lost. Patterns come from files: the steps of one match are limited in proportion to the text.
 *
 * Classes of characters (\s, \p{L}, \p{N} and all other general categories) are those of Unicode 16, as in tokenizers
 * and tiktoken, whatever PCRE2 knows: see stand_ins.h.
 */
#ifndef RV_TRAIN_TEXT_TOKENIZER_PRETOKENIZER_H
#define RV_TRAIN_TEXT_TOKENIZER_PRETOKENIZER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRETOKENIZER_MAX_STEPS = 8, PRETOKENIZER_MAX_PATTERN_BYTES = 64 << 10 };

/* Read-only after the last step is added: any number of threads. Zero-initialise. */
struct pretokenizer {
	struct pattern *steps[PRETOKENIZER_MAX_STEPS];
	int n_steps; /* 0: the text is one piece */
};

/* Adds a step. `literal`: the pattern is the text itself. RV_E_INVALID: not a regular expression (where, and why);
 * RV_E_UNSUPPORTED: it names a character whose class is not settled; RV_E_RANGE: too long, or too many steps; RV_E_NOMEM. */
enum rv_err pretokenizer_add(struct pretokenizer *p, const char *pattern, size_t n, bool literal,
							 struct rv_errtext *et);
void pretokenizer_release(struct pretokenizer *p);

/* Working memory of one thread. RV_E_NOMEM. */
struct pretokenizer_scratch;
enum rv_err pretokenizer_scratch_new(struct pretokenizer_scratch **out, struct rv_errtext *et);
void pretokenizer_scratch_free(struct pretokenizer_scratch *s); /* NULL is fine */

/* Calls `piece` for every piece, in order; they are never empty. Stops at the first fault and returns it. */
typedef enum rv_err piece_fn(void *ctx, const uint8_t *piece, size_t n, struct rv_errtext *et);

/* `text` must be well-formed UTF-8. RV_E_RANGE: a match would take too many steps (a pattern that backtracks without
 * end); RV_E_NOMEM. */
enum rv_err pretokenizer_run(const struct pretokenizer *p, struct pretokenizer_scratch *s, const uint8_t *text,
							 size_t n, piece_fn *piece, void *ctx, struct rv_errtext *et);

#endif
