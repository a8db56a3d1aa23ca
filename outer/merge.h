/* merge.h: how the contributions to a chunk become one: the aggregation rule of a run. One file per
 * rule (outer/merge_NAME.c), behind this table, found by the place of its line in
 * base/merge_rules.def.
 *
 * The owner of a chunk decodes the contributions in roster order, merges them, and encodes the
 * result once. All owners, the lab, `rivulet replay` and the simulator call merge_chunk(): the same
 * bits on every processor. Any order of arrival gives the same bytes, because the order is the
 * roster's.
 *
 * With error feedback of means the owner adds what encoding its former means lost to the merged
 * mean, and keeps what this encoding loses (outer/feedback.h, by the rule of
 * outer/mean_residual.h).
 *
 * A large roster is merged in two levels (base/rows.h). merge_partial() merges a row by the rule
 * and gives its *partial sum*, the row's merged value times the sum of its weights, in fp32.
 * merge_join() adds the partial sums in row order, divides by the sum of all weights and encodes
 * once. So each value is still quantized twice, as a contribution and in the mean, and every
 * participant counts by its weight. A rule limits or leaves out contributions row by row.
 *
 * "mean"  the weighted mean: sum w_i * x_i in fp32 from zero in roster order, divided by the sum
 *         of the weights w_i. One member decides for all if it wants to.
 *
 * "clipped"  the default: sum f_i * w_i * x_i, divided by the sum of the weights. f_i is 1 for
 *         every contribution whose norm is within the limit: the result is then that of "mean",
 *         bit for bit.
 *         The limit keeps one member from deciding for all. It is `clip` times the
 *         median of the norms |x_i| of this very chunk; a contribution above it is scaled down to
 *         it: f_i = limit / |x_i|. It rests on no member's claim: the owner sees all
 *         contributions. The median of n norms is the one at place (n - 1) / 2, ascending: with an
 *         even number the lower one of the two in the middle, so that half of the roster together
 *         cannot raise it. Norms of 0 count: if most members contribute nothing, one cannot
 *         contribute much. With fewer than MERGE_CLIP_MIN contributions nothing is limited:
 *         neither of two norms is known to be the wrong one, and the smaller one would let an idle
 *         member hold the other back. Weights do not take part: a contribution is limited first
 *         and weighted then. Its sender does not learn of it: for error feedback it keeps what its
 *         encoding left, not what clipping took. (Norm clipping by the median: a single step of
 *         centered clipping from zero, Karimireddy et al., ICML 2021, arXiv 2012.10333, with the
 *         radius of each chunk taken from the data.) Norms are sums in double in a fixed order
 *         (codec_kernels.h; each square of an fp32 is exact there), their roots correctly rounded,
 *         and f_i * w_i is one product in double, rounded to fp32.
 *
 * "trimmed"  for each value by itself: the weighted mean without the
 *         merge_trimmed_count(trim_share, n) largest of the n contributions and as many smallest:
 *         the sum w_i * x_i of the others in fp32 from zero in roster order, over the sum of their
 *         weights. Equal values are ordered by their place in the roster. (The coordinate-wise
 *         trimmed mean: Yin et al., ICML 2018, arXiv 1803.01498, definition 2; there without
 *         weights.) If at most that many members lie, each value lies between two of the honest
 *         ones. Norms limit nothing. All contributions to a chunk are decoded at a time: n chunks
 *         of memory for its owner.
 *
 * "centered"  CenteredClip (arXiv 2012.10333, equation 3): MERGE_CENTER_STEPS steps from the last
 *         mean of these values (rule->center; zero before the first), each
 *             v <- v + sum f_i * w_i * (x_i - v) / sum w_i,    f_i = min(1, limit / |x_i - v|)
 *         where the limit is `clip` times the median, as above, of the distances |x_i - v| of this
 *         chunk from the v of this very step. So what a member can move shrinks from step to step
 *         to the spread of the others about their middle, where "clipped" lets it move a share of
 *         their norm. If no contribution is limited in a step, v becomes the weighted mean,
 *         exactly. With fewer than MERGE_CLIP_MIN contributions: "mean". x_i - v is in fp32, its
 *         norm as above; v + (sum (f_i * w_i) * x_i - (sum f_i * w_i) * v) / sum w_i is computed
 *         in fp32 from left to right, the sum of factors in double and rounded to fp32 once. A
 *         limited contribution is counted once, for the last step.
 *
 * "agreed"  "clipped" without the contributions that point against the others. The agreement of a
 *         contribution is the mean of its cosines with the others to this very chunk, of which none
 *         counts for more than the upper quartile (at place 3 m / 4 of m, ascending) of the cosines
 *         of all pairs. Those whose agreement is below -MERGE_AGREE_DEVIATIONS / sqrt(n * (n_in -
 *         1)) are left out, lowest first (of equal ones the earlier in the roster), fewer than half
 *         of the n_in. The result is the sum f_i * w_i * x_i of the others over the sum of their
 *         weights, with the f_i of "clipped" over all. If nobody is left out it is that of
 *         "clipped", bit for bit. So one that sends the opposite of its outer gradient weighs
 *         nothing, where "clipped" lets it cancel as much as an honest one adds. The bound is two
 *         standard deviations of what vectors that have nothing to do with each other come to, so
 *         what is orthogonal to the others, as noise, stays. The quartile keeps two that send the
 *         same vector from vouching for each other: fewer than half of a roster are fewer than a
 *         quarter of its pairs. A cosine is the dot product of codec_kernels.h over the product of
 *         the roots of the sums of squares, 0 where one is zero. With fewer than MERGE_CLIP_MIN
 *         contributions: "mean". All contributions to a chunk are decoded at a time. One that is
 *         left out counts as limited. */
#ifndef RV_OUTER_MERGE_H
#define RV_OUTER_MERGE_H

#include "base/registries.h"
#include "base/rows.h"
#include "outer/codec.h"
#include "outer/feedback.h"

enum { MERGE_MAX_INPUTS = 64, MERGE_CLIP_MIN = 3, MERGE_CENTER_STEPS = 3, MERGE_AGREE_DEVIATIONS = 2 };

/* A run's settings of its rule. */
struct merge_params {
	double clip;       /* multiple of the median, at least 1 */
	double trim_share; /* share of the contributions left out on each side */
};

/* The contributions to one chunk. */
struct merge_inputs {
	const struct codec *const *codecs; /* of each */
	const uint8_t *const *in;
	const uint32_t *weights;
	int n_in;
	size_t n; /* values of the chunk */
	/* Sums of squares of each, if the rule wants them or they are measured; else NULL. Arbitrary
	 * for a contribution that cannot be decoded. */
	const double *norm2;
	const float *center; /* (n): the last mean, if the rule starts from it; NULL: zero */
};

/* Statistics over the chunks merged since it was zeroed. They decide nothing. */
struct merge_measured {
	float *values;         /* memory for one chunk, the caller's */
	const uint8_t *places; /* by which the following count the inputs of the next chunk; NULL: by place in `in` */
	double norm2[MERGE_MAX_INPUTS]; /* sums of squares of the contributions, as received */
	double dot[MERGE_MAX_INPUTS];   /* their dot products with the mean, before that is encoded */
	uint32_t clipped[MERGE_MAX_INPUTS];
	double mean2;                      /* sum of squares of the mean */
	double mean2_of[MERGE_MAX_INPUTS]; /* the same, of the chunks that this one contributed to */
};

/* How far contributions that are not known can take the mean (outer/merge_reach.h). */
enum merge_reach {
	MERGE_REACHES_ALL,   /* anywhere */
	MERGE_REACHES_SHARE, /* by their part of the weights, and no more than the limit of norms */
	MERGE_REACHES_LIMIT  /* to the limit of norms: some contributions are left out */
};

struct merge_ops {
	const char *name;
	enum merge_reach reach;
	/* Returns true if the rule needs the norms of n_in contributions. NULL: never. */
	bool (*wants_norms)(const struct merge_params *p, int n_in);
	/* The rule starts from the last mean: the shared state keeps it (outer/global.h). */
	bool centers;
	/* Returns how many vectors of a chunk's size it works in, for n_in contributions. NULL:
	 * none. */
	size_t (*vectors)(int n_in);
	/* Merges the contributions into mean (n); `work`: `vectors` of n. Counts in clipped[] those
	 * that it scaled down. RV_E_CORRUPT names the place of a contribution that cannot be
	 * decoded. */
	enum rv_err (*merge)(const struct merge_inputs *c, const struct merge_params *p, float *work, float *mean,
						 uint32_t *clipped, struct rv_errtext *et);
	/* Does the same, for the mean times the sum of the weights. NULL: that product is taken. */
	enum rv_err (*sum)(const struct merge_inputs *c, const struct merge_params *p, float *work, float *sum,
					   uint32_t *clipped, struct rv_errtext *et);
};

#define MERGE_RULE(name, facts, least) extern const struct merge_ops merge_##name;
#include "base/merge_rules.def"
#undef MERGE_RULE
extern const struct merge_ops *const merge_registry[]; /* by enum merge_choice; NULL-terminated */

struct merge_rule {
	const struct merge_ops *ops;
	const struct codec *contributions, *mean;
	struct merge_params params;
	/* Codecs of the inputs of the next call, one each, where some are sent by coarser ones; NULL:
	 * all by `contributions`. */
	const struct codec *const *codecs;
	/* The last committed mean of the values of the next call (n; of a row too: the mean of all), if
	 * ops->centers; NULL: zero. */
	const float *center;
};

/* Returns how many floats of scratch memory merge_chunk needs for n_in contributions to a chunk of
 * n values. */
size_t merge_scratch(const struct merge_rule *rule, size_t n, int n_in);

/* Merges n_in contributions to a chunk of n values into `out`. 1 <= n_in <= MERGE_MAX_INPUTS;
 * weights are positive integers whose sum is below 2^24, asserted. `scratch` holds merge_scratch()
 * floats. `feedback` is added to the mean and filled; NULL: what encoding loses is lost. Adds to
 * `measured`; NULL: nothing is measured. Outer gradients become one only here. RV_E_CORRUPT names
 * the contribution by its place in `in`; RV_E_RANGE: the result overflows; `measured` and
 * feedback->left are then unspecified. */
enum rv_err merge_chunk(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights, int n_in,
						size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
						struct merge_measured *measured, struct rv_errtext *et);

/* Returns the bytes of a partial sum of n values: fp32, as codec_fp32 encodes. */
size_t merge_partial_bytes(size_t n);
/* Merges a row's n_in contributions into their partial sum, `out`. Arguments and faults as
 * merge_chunk; `measured` is relative to the mean of the row. RV_E_RANGE: the sum overflows. */
enum rv_err merge_partial(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights, int n_in,
						  size_t n, float *scratch, uint8_t *out, struct merge_measured *measured,
						  struct rv_errtext *et);
/* Joins the partial sums of n_rows rows (1 to ROWS_MAX) into the encoded mean `out`; row_weights:
 * the sums of the rows' weights, positive, together below 2^24. `scratch`: n floats. `feedback`: as
 * in merge_chunk, of the final owner. RV_E_CORRUPT names the row whose sum holds a NaN or an
 * infinity; RV_E_RANGE: the mean overflows. */
enum rv_err merge_join(const struct merge_rule *rule, const uint8_t *const *partials, const uint32_t *row_weights,
					   int n_rows, size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
					   struct rv_errtext *et);

/* How many participants each row has, in roster order; with one row, merge_chunk merges them. */
struct merge_layout {
	int n_rows;
	int length[ROWS_MAX];
};
/* Returns the layout that rows_choose makes for n participants. */
struct merge_layout merge_layout_of(int n, int row_size);
/* Merges the contributions of a whole roster, as its owners do together: row by row, then the rows.
 * `scratch` holds merge_roster_scratch() floats. Faults as merge_chunk and merge_join. */
enum rv_err merge_roster(const struct merge_rule *rule, const struct merge_layout *layout, const uint8_t *const *in,
						 const uint32_t *weights, size_t n, float *scratch, const struct feedback *feedback,
						 uint8_t *out, struct rv_errtext *et);
size_t merge_roster_scratch(const struct merge_rule *rule, const struct merge_layout *layout, size_t n);

#endif
