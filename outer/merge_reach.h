/* merge_reach.h: whether a mean can be that of contributions of which some are not known: an
 * auditor's question, from which an owner hides its own (worker/audit/auditor.h).
 *
 * The limit of norms is `clip` times a median (merge.h), and the missing ones can only move that
 * median between two of the known norms: m missing ones, between place (n - 1) / 2 - m and place
 * (n - 1) / 2 of them. So the limit, and what a known contribution adds, lie between two values
 * each, and every missing one adds a vector no longer than the larger limit times its weight.
 * Under "clipped" the mean lies within a radius about the sum of the known contributions; under
 * "agreed", which may leave some out, within the larger limit about 0. The loss of
 * encoding the mean (codec.loses), and of rounding sums, is added to the radius.
 *
 * So a mean within reach is one that contributions of the missing members could have brought
 * about, or nearly: an owner that lies no further could have done the same by what it sent. */
#ifndef RV_OUTER_MERGE_REACH_H
#define RV_OUTER_MERGE_REACH_H

#include "outer/merge.h"

/* The contributions to a chunk, as far as they are known. */
struct merge_known {
	const uint8_t *const *in; /* encoded, by the codecs of the rule */
	const uint32_t *weights;
	int n_in;
	int n_missing;
	uint32_t missing_weight; /* of all these */
};

/* Returns the floats of scratch that merge_reaches needs. */
size_t merge_reach_scratch(size_t n);
/* Sets *reaches to false if no contributions of the missing members give `mean`, encoded, of n
 * values; to true if some might, or nothing is known. RV_E_CORRUPT: one of `in`, or the mean,
 * cannot be decoded. */
enum rv_err merge_reaches(const struct merge_rule *rule, const struct merge_known *k, const uint8_t *mean, size_t n,
						  float *scratch, bool *reaches, struct rv_errtext *et);

#endif
