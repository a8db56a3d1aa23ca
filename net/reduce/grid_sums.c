/* grid_sums.c: what a final owner can show of the sums that it was given (sums.c). */
#include "net/reduce/grid_state.h"

#include "base/assert.h"

bool grid_sums(const struct grid *g, int column, struct grid_sums *out) {
	RV_ASSERT(column >= 0 && column < NET_MAX_ROW);
	if (column >= g->n_columns || !g->columns[column].core || g->cfg.seals.verify == NULL)
		return false;
	const struct grid_column *k = &g->columns[column];
	*out = (struct grid_sums){.first = k->first, .count = k->count, .n_rows = k->n};
	for (int i = 0; i < k->n; i++) {
		out->seals[i] = reduce_sums_of(k->core, i);
		if (out->seals[i] == NULL)
			return false;
	}
	return true;
}

bool grid_is_final(const struct grid *g, int column, uint32_t chunk) {
	const struct grid_column *k = &g->columns[column];
	RV_ASSERT(k->core && chunk - k->first < k->count);
	return reduce_is_own(k->core, chunk - k->first);
}

struct rv_hash grid_sum_leaf(const struct grid *g, int column, int row, uint32_t chunk) {
	const struct grid_column *k = &g->columns[column];
	return *reduce_sum_leaf(k->core, row, chunk - k->first);
}

const uint8_t *grid_sum_data(const struct grid *g, int column, int row, uint32_t chunk, size_t *bytes) {
	const struct grid_column *k = &g->columns[column];
	return reduce_contribution(k->core, row, chunk - k->first, bytes);
}
