/* merge_roster.c: a whole roster merged by one process, for those that check or imitate its owners:
 * see merge.h. */
#include "base/assert.h"
#include "outer/merge.h"
#include "outer/merge_values.h"

struct merge_layout merge_layout_of(int n, int row_size) {
	struct merge_layout l = {.n_rows = rows_choose(n, row_size)};
	for (int r = 0; r < l.n_rows; r++)
		l.length[r] = rows_length(n, l.n_rows, r);
	return l;
}

static int longest(const struct merge_layout *layout) {
	int most = 0;
	for (int r = 0; r < layout->n_rows; r++)
		most = layout->length[r] > most ? layout->length[r] : most;
	return most;
}

size_t merge_roster_scratch(const struct merge_rule *rule, const struct merge_layout *layout, size_t n) {
	const size_t partials = layout->n_rows > 1 ? (size_t)layout->n_rows * n : 0;
	return merge_scratch(rule, n, longest(layout)) + partials;
}

enum rv_err merge_roster(const struct merge_rule *rule, const struct merge_layout *layout, const uint8_t *const *in,
						 const uint32_t *weights, size_t n, float *scratch, const struct feedback *feedback,
						 uint8_t *out, struct rv_errtext *et) {
	if (layout->n_rows == 1)
		return merge_chunk(rule, in, weights, layout->length[0], n, scratch, feedback, out, NULL, et);
	uint8_t *partials[ROWS_MAX], *at = (uint8_t *)(scratch + merge_scratch(rule, n, longest(layout)));
	uint32_t row_weights[ROWS_MAX];
	int first = 0;
	RV_ASSERT(layout->n_rows <= ROWS_MAX);
	for (int r = 0; r < layout->n_rows; r++) {
		const int length = layout->length[r];
		partials[r] = at + (size_t)r * merge_partial_bytes(n);
		row_weights[r] = merge_weight_sum(weights + first, length);
		struct merge_rule of_row = *rule;
		of_row.codecs = rule->codecs ? rule->codecs + first : NULL;
		enum rv_err e = merge_partial(&of_row, in + first, weights + first, length, n, scratch, partials[r], NULL, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "row %d of %d", r, layout->n_rows);
		first += length;
	}
	return merge_join(rule, (const uint8_t *const *)partials, row_weights, layout->n_rows, n, scratch, feedback, out,
					  et);
}
