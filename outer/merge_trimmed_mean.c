/* merge_trimmed_mean.c: of each value the mean without the extremes: see merge.h. */
#include "outer/elementwise.h"
#include "outer/merge.h"

#include <string.h>

typedef int32_t ivec __attribute__((vector_size(VEC_LANES * 4)));

/* Decoded contributions, one after the other, n values each. */
struct decoded {
	const float *values;
	const uint32_t *weights;
	int n_in, trimmed;
	size_t n;
};

/* mean (VEC_LANES) = that of the values at `at`. A contribution's rank is how many others are smaller, or equal and before
 * it; it counts where as many as are trimmed have a lower rank, and as many a higher one. */
static inline __attribute__((always_inline)) void merge_lanes(const struct decoded *d, size_t at, float *mean) {
	vec sum = {0}, weight = {0};
	for (int i = 0; i < d->n_in; i++) {
		const vec x = VEC_AT(d->values + (size_t)i * d->n + at), w = (float)d->weights[i] + (vec){0};
		ivec rank = {0};
		for (int j = 0; j < d->n_in; j++) {
			const vec y = VEC_AT(d->values + (size_t)j * d->n + at);
			rank -= j < i ? y <= x : y < x; /* true is -1 */
		}
		const ivec counts = (rank >= d->trimmed) & (rank < d->n_in - d->trimmed);
		sum = sum + (vec)((ivec)(w * x) & counts);
		weight = weight + (vec)((ivec)w & counts);
	}
	VEC_AT(mean) = sum / weight;
}

/* mean (n): the values behind the last whole vector of lanes go through memory of that size. */
RV_ELEMENTWISE_BODY merge_all_body(const struct decoded *d, float *mean) {
	float rest[MERGE_MAX_INPUTS][VEC_LANES] = {{0}}, rest_mean[VEC_LANES];
	const struct decoded last = {rest[0], d->weights, d->n_in, d->trimmed, VEC_LANES};
	size_t at = 0;
	for (; at + VEC_LANES <= d->n; at += VEC_LANES)
		merge_lanes(d, at, mean + at);
	for (int i = 0; i < d->n_in; i++)
		memcpy(rest[i], d->values + (size_t)i * d->n + at, (d->n - at) * sizeof *mean);
	merge_lanes(&last, 0, rest_mean);
	memcpy(mean + at, rest_mean, (d->n - at) * sizeof *mean);
}

RV_ELEMENTWISE(merge_all, (const struct decoded *d, float *mean), (d, mean))

static size_t trimmed_mean_vectors(int n_in) {
	return (size_t)n_in;
}

static enum rv_err trimmed_mean_merge(const struct merge_inputs *c, const struct merge_params *p, float *work,
									  float *mean, uint32_t *clipped, struct rv_errtext *et) {
	const struct decoded d = {work, c->weights, c->n_in, merge_trimmed(p->trim_share, c->n_in), c->n};
	(void)clipped;
	for (int i = 0; i < c->n_in; i++) {
		enum rv_err e = c->codec->decode(c->in[i], c->n, work + (size_t)i * c->n, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "contribution %d of %d", i, c->n_in);
	}
	merge_all(&d, mean);
	return RV_OK;
}

const struct merge_ops merge_trimmed_mean = {
	.name = "trimmed_mean", .vectors = trimmed_mean_vectors, .merge = trimmed_mean_merge};
