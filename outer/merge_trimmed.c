/* merge_trimmed.c: the mean of each value without its extremes: see merge.h. */
#include "base/assert.h"
#include "outer/elementwise.h"
#include "outer/merge.h"

#include <string.h>

enum { LANES = 64 }; /* values merged at a time */

/* Decoded contributions, one after the other, n values each. */
struct decoded {
	const float *values;
	const uint32_t *weights;
	int n_in, trimmed;
	size_t n;
};

/* Sets rank (lanes), for each value of contribution i from `at` on, to how many other contributions
 * have a smaller one, or an equal one and an earlier place. */
RV_ELEMENTWISE_BODY rank_lanes(const struct decoded *d, int i, size_t at, size_t lanes, int32_t *rank) {
	const float *x = d->values + (size_t)i * d->n + at;
	memset(rank, 0, LANES * sizeof *rank);
	for (int j = 0; j < d->n_in; j++) {
		const float *y = d->values + (size_t)j * d->n + at;
		if (j < i)
			for (size_t l = 0; l < lanes; l++)
				rank[l] += y[l] <= x[l];
		else
			for (size_t l = 0; l < lanes; l++)
				rank[l] += y[l] < x[l];
	}
}

/* Computes mean (n). A contribution's value counts if at least as many as are trimmed have a lower
 * rank, and as many a higher one. */
RV_ELEMENTWISE_BODY merge_all_body(const struct decoded *d, float *restrict mean) {
	for (size_t at = 0; at < d->n; at += LANES) {
		const size_t lanes = d->n - at < LANES ? d->n - at : LANES;
		float sum[LANES] = {0}, weight[LANES] = {0};
		for (int i = 0; i < d->n_in; i++) {
			const float *x = d->values + (size_t)i * d->n + at;
			const float w = (float)d->weights[i];
			int32_t rank[LANES];
			rank_lanes(d, i, at, lanes, rank);
			for (size_t l = 0; l < lanes; l++) {
				const bool counts = rank[l] >= d->trimmed && rank[l] < d->n_in - d->trimmed;
				sum[l] = sum[l] + (counts ? w * x[l] : 0);
				weight[l] = weight[l] + (counts ? w : 0);
			}
		}
		for (size_t l = 0; l < lanes; l++)
			mean[at + l] = sum[l] / weight[l];
	}
}

RV_ELEMENTWISE(merge_all, (const struct decoded *d, float *mean), (d, mean))

static size_t trimmed_vectors(int n_in) {
	return (size_t)n_in;
}

static enum rv_err trimmed_merge(const struct merge_inputs *c, const struct merge_params *p, float *work, float *mean,
								 uint32_t *clipped, struct rv_errtext *et) {
	const struct decoded d = {work, c->weights, c->n_in, merge_trimmed_count(p->trim_share, c->n_in), c->n};
	RV_ASSERT(2 * d.trimmed < c->n_in); /* a value is left to divide by */
	(void)clipped;
	for (int i = 0; i < c->n_in; i++) {
		enum rv_err e = c->codecs[i]->decode(c->codecs[i], c->in[i], c->n, work + (size_t)i * c->n, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "contribution %d of %d", i, c->n_in);
	}
	merge_all(&d, mean);
	return RV_OK;
}

const struct merge_ops merge_trimmed = {.name = "trimmed", .vectors = trimmed_vectors, .merge = trimmed_merge};
