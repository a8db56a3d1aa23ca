/* sampler.c: temperature, top-k, top-p. */
#include "lab/sampler.h"

#include <math.h>
#include <stdlib.h>

struct candidate {
	float logit;
	int token;
	double weight; /* exp of the scaled distance from the best */
};

struct sampler {
	struct sampler_params params;
	int vocab;
	struct candidate candidates[];
};

enum rv_err sampler_new(const struct sampler_params *params, int vocab, struct sampler **out, struct rv_errtext *et) {
	struct sampler *s = malloc(sizeof *s + (size_t)vocab * sizeof s->candidates[0]);
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory to sample from %d tokens", vocab);
	s->params = *params;
	s->vocab = vocab;
	*out = s;
	return RV_OK;
}

void sampler_free(struct sampler *s) {
	free(s);
}

static int more_likely_first(const void *a, const void *b) {
	const struct candidate *x = a, *y = b;
	if (x->logit != y->logit)
		return x->logit > y->logit ? -1 : 1;
	return x->token - y->token;
}

/* How many of the sorted candidates may be drawn; *out_total: the sum of their weights. */
static int keep_likely(struct sampler *s, double *out_total) {
	const struct sampler_params *p = &s->params;
	int n = p->top_k > 0 && p->top_k < s->vocab ? p->top_k : s->vocab, kept = 0;
	double all = 0, total = 0;
	for (int i = 0; i < n; i++) {
		struct candidate *c = &s->candidates[i];
		c->weight = exp(((double)c->logit - (double)s->candidates[0].logit) / p->temperature);
		all += c->weight;
	}
	while (kept < n && (kept == 0 || total < p->top_p * all))
		total += s->candidates[kept++].weight;
	*out_total = total;
	return kept;
}

int sampler_next(struct sampler *s, const float *logits, struct rv_rng *rng) {
	for (int i = 0; i < s->vocab; i++)
		s->candidates[i] = (struct candidate){.logit = logits[i], .token = i};
	qsort(s->candidates, (size_t)s->vocab, sizeof s->candidates[0], more_likely_first);
	if (s->params.temperature <= 0)
		return s->candidates[0].token;
	double total, below = 0;
	int n = keep_likely(s, &total);
	double at = rv_rng_double(rng) * total;
	for (int i = 0; i < n - 1; i++) {
		below += s->candidates[i].weight;
		if (at < below)
			return s->candidates[i].token;
	}
	return s->candidates[n - 1].token;
}
