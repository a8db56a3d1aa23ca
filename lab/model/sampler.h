/* sampler.h: from logits to the next token. */
#ifndef RV_LAB_SAMPLER_H
#define RV_LAB_SAMPLER_H

#include "base/err.h"
#include "base/rng.h"

struct sampler_params {
	double temperature; /* 0: always the most likely token */
	int top_k;          /* only the k most likely; 0: all */
	double top_p; /* only the most likely whose probabilities reach this sum (nucleus, arXiv 1904.09751); 1: all */
};

struct sampler; /* working memory for one vocabulary size */

/* Makes a sampler; the caller frees it. Copies `params`. RV_E_NOMEM. */
enum rv_err sampler_new(const struct sampler_params *params, int vocab, struct sampler **out, struct rv_errtext *et);
void sampler_free(struct sampler *s);

/* Returns the next token for logits (vocab), finite. Equal logits rank by token number, so a seed
 * gives the same text wherever the logits are equal. */
int sampler_next(struct sampler *s, const float *logits, struct rv_rng *rng);

#endif
