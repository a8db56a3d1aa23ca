/* merge.h: how the contributions to a chunk become one mean: the rule of aggregation of a run.
 *
 * The owner of a chunk decodes the contributions in roster order, sums f_i * w_i * x_i in fp32 from zero, divides by the
 * sum of the weights w_i, and encodes the result once. f_i is 1 for every contribution whose norm is within the limit:
 * the mean is then the plain weighted mean, bit for bit.
 *
 * The limit keeps one member from deciding for all. It is `clip` times the median of the norms |x_i| of this very
 * chunk; a contribution above it is scaled down to it: f_i = limit / |x_i|. No member claims anything for that: the
 * owner sees all contributions. Of n norms the median is the one at place (n - 1) / 2, ascending: with an even number
 * the lower one of the two in the middle, so that half of the roster together cannot raise it. Norms of 0 count: where
 * most members have nothing to say, one cannot say much. With fewer than MERGE_CLIP_MIN contributions nothing is
 * limited: of two norms neither is known to be the wrong one, and the smaller one would let an idle member hold the
 * other back.
 *
 * Weights do not take part: a contribution is limited first and weighed then. Its sender does not learn of it: what it
 * keeps for error feedback is what its encoding left, not what clipping took. (Norm clipping by the median: a
 * single step of centered clipping from zero, Karimireddy et al., ICML 2021, arXiv 2012.10333, with the radius of each
 * chunk taken from the data.)
 *
 * All owners, the lab, `rivulet replay` and the simulator call merge_chunk(): the same bits on every processor. Norms
 * are sums in double in a fixed order (codec_kernels.h; each square of an fp32 is exact there), their roots correctly
 * rounded, and f_i * w_i is one product in double, rounded to fp32. */
#ifndef RV_OUTER_MERGE_H
#define RV_OUTER_MERGE_H

#include "outer/codec.h"

enum { MERGE_MAX_INPUTS = 64, MERGE_CLIP_MIN = 3 };

struct merge_rule {
	const struct codec *contributions, *mean;
	double clip; /* multiples of the median norm; 0: nothing is limited */
};

/* Statistics over the chunks that were merged since it was zeroed; by place in `in`. They decide nothing. */
struct merge_measured {
	float *values;                  /* memory for one chunk, the caller's */
	double norm2[MERGE_MAX_INPUTS]; /* sum of squares of the contribution, as it came */
	double dot[MERGE_MAX_INPUTS];   /* its dot product with the mean, before that is encoded */
	uint32_t clipped[MERGE_MAX_INPUTS];
	double mean2; /* sum of squares of the mean */
};

/* Merges n_in contributions to a chunk of n values into `out`. 1 <= n_in <= MERGE_MAX_INPUTS; weights are positive
 * integers whose sum is below 2^24, asserted. `scratch` holds n floats. `measured`: added to; NULL: nothing is
 * measured. This is the only place where outer gradients are averaged. Any order of arrival gives the same bytes,
 * because the order is the caller's roster order. RV_E_CORRUPT names the contribution by its place in `in`; RV_E_RANGE
 * when the sum overflows; `measured` is then unspecified. */
enum rv_err merge_chunk(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights, int n_in,
						size_t n, float *scratch, uint8_t *out, struct merge_measured *measured, struct rv_errtext *et);

#endif
