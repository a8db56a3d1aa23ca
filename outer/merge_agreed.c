/* merge_agreed.c: the limited mean of the contributions that do not point against most others: see
 * merge.h. */
#include "base/order.h"
#include "outer/codec_kernels.h"
#include "outer/merge.h"
#include "outer/merge_values.h"

#include <math.h>

static bool agreed_wants_norms(const struct merge_params *p, int n_in) {
	(void)p;
	return n_in >= MERGE_CLIP_MIN;
}

/* All decoded contributions. */
static size_t agreed_vectors(int n_in) {
	return (size_t)n_in;
}

/* Returns the cosine of contributions i and k, decoded one after the other in x; 0 if one of them
 * is zero. */
static double cosine_of(const struct merge_inputs *c, const float *x, int i, int k) {
	const double dot = codec_kernels_best()->dot(x + (size_t)i * c->n, x + (size_t)k * c->n, c->n);
	const double cosine = dot / (sqrt(c->norm2[i]) * sqrt(c->norm2[k]));
	return isfinite(cosine) ? cosine : 0;
}

/* Decodes all contributions to x, and sets the cosines of all pairs. */
static enum rv_err measure_pairs(const struct merge_inputs *c, float *x, double cosine[][MERGE_MAX_INPUTS],
								 struct rv_errtext *et) {
	for (int i = 0; i < c->n_in; i++) {
		enum rv_err e = c->codecs[i]->decode(c->codecs[i], c->in[i], c->n, x + (size_t)i * c->n, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "contribution %d of %d", i, c->n_in);
		for (int k = 0; k < i; k++)
			cosine[i][k] = cosine[k][i] = cosine_of(c, x, i, k);
	}
	return RV_OK;
}

/* Returns the upper quartile of the cosines of all pairs. */
static double upper_quartile(const double cosine[][MERGE_MAX_INPUTS], int n_in) {
	double pairs[MERGE_MAX_INPUTS * (MERGE_MAX_INPUTS - 1) / 2];
	int n = 0;
	for (int i = 0; i < n_in; i++)
		for (int k = 0; k < i; k++)
			pairs[n++] = cosine[i][k];
	return rv_nth(pairs, n, 3 * n / 4);
}

/* Sets agreement (n_in) to the mean of each contribution's cosines with the others, of which none
 * counts for more than the upper quartile of all pairs. x: n_in vectors to work in. */
static enum rv_err measure_agreement(const struct merge_inputs *c, float *x, double *agreement, struct rv_errtext *et) {
	double cosine[MERGE_MAX_INPUTS][MERGE_MAX_INPUTS];
	RV_TRY(measure_pairs(c, x, cosine, et));
	const double most = upper_quartile(cosine, c->n_in);
	for (int i = 0; i < c->n_in; i++) {
		double sum = 0;
		for (int k = 0; k < c->n_in; k++)
			if (k != i)
				sum += cosine[i][k] < most ? cosine[i][k] : most;
		agreement[i] = sum / (c->n_in - 1);
	}
	return RV_OK;
}

/* Sets to 0 the factors of those whose agreement is below what chance gives, lowest first, fewer
 * than half of all. */
static void leave_out(const struct merge_inputs *c, double *agreement, float *factors, bool *left) {
	const double chance = MERGE_AGREE_DEVIATIONS / sqrt((double)c->n * (c->n_in - 1));
	for (int left_out = 0; left_out < (c->n_in - 1) / 2; left_out++) {
		int worst = 0;
		for (int i = 1; i < c->n_in; i++)
			worst = agreement[i] < agreement[worst] ? i : worst;
		if (agreement[worst] >= -chance)
			break;
		factors[worst] = 0;
		left[worst] = true;
		agreement[worst] = 1; /* not again */
	}
}

/* Sets sum (n) to the sum of those that count, times their factors, and *weight to the sum of their
 * weights. Counts those that are limited or left out in `clipped`. */
static enum rv_err sum_agreed(const struct merge_inputs *c, const struct merge_params *p, float *work, float *sum,
							  uint32_t *weight, uint32_t *clipped, struct rv_errtext *et) {
	float factors[MERGE_MAX_INPUTS];
	bool limited[MERGE_MAX_INPUTS], left[MERGE_MAX_INPUTS] = {false};
	double agreement[MERGE_MAX_INPUTS];
	(void)merge_limit(c, p->clip, c->norm2, factors, limited);
	RV_TRY(measure_agreement(c, work, agreement, et));
	leave_out(c, agreement, factors, left);
	*weight = 0;
	for (int i = 0; i < c->n_in; i++) {
		*weight += left[i] ? 0 : c->weights[i];
		clipped[i] += limited[i] || left[i];
	}
	return merge_sum(c, factors, sum, et);
}

static enum rv_err agreed_merge(const struct merge_inputs *c, const struct merge_params *p, float *work, float *mean,
								uint32_t *clipped, struct rv_errtext *et) {
	uint32_t weight;
	if (c->n_in < MERGE_CLIP_MIN)
		return merge_mean.merge(c, p, work, mean, clipped, et);
	RV_TRY(sum_agreed(c, p, work, mean, &weight, clipped, et));
	merge_divide(mean, c->n, (float)weight);
	return RV_OK;
}

/* A row counts by the weights of all its members, also of those that are left out. */
static enum rv_err agreed_sum(const struct merge_inputs *c, const struct merge_params *p, float *work, float *sum,
							  uint32_t *clipped, struct rv_errtext *et) {
	const uint32_t all = merge_weight_sum(c->weights, c->n_in);
	uint32_t weight;
	if (c->n_in < MERGE_CLIP_MIN)
		return merge_mean.sum(c, p, work, sum, clipped, et);
	RV_TRY(sum_agreed(c, p, work, sum, &weight, clipped, et));
	if (weight == all)
		return RV_OK;
	merge_divide(sum, c->n, (float)weight);
	merge_multiply(sum, c->n, (float)all);
	return RV_OK;
}

const struct merge_ops merge_agreed = {.name = "agreed",
									   .reach = MERGE_REACHES_LIMIT,
									   .wants_norms = agreed_wants_norms,
									   .vectors = agreed_vectors,
									   .merge = agreed_merge,
									   .sum = agreed_sum};
