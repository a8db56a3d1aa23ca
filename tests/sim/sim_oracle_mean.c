/* sim_oracle_mean.c: the mean over a roster, computed as its definition reads: row by row the
 * contributions to a chunk, as they are sent, limited, times their weights, in roster order; the
 * rows' sums in row order; divided by the weights of those that contributed; encoded once. Plain
 * loops over one value after the other: nothing of outer/merge.h. */
#include "sim.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMITED_FROM = 3 }; /* contributions: of fewer the wrong one is not known */

static double lower_median(const double *norms, int n) {
	double sorted[NET_MAX_ROW];
	for (int i = 0; i < n; i++) {
		int at = i;
		for (; at > 0 && sorted[at - 1] > norms[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = norms[i];
	}
	return sorted[(n - 1) / 2];
}

/* One row's contributions to one chunk. */
struct row_of_chunk {
	const struct sim_contribution *const *from;
	const struct sim_participant *of;
	int n;
	uint64_t round;
	uint32_t chunk;
	size_t values;
	int who[NET_MAX_ROW]; /* the places of those that contribute to it */
	int n_who;
};

static void find_contributors(struct row_of_chunk *row) {
	RV_ASSERT(row->n <= NET_MAX_ROW);
	for (int i = 0; i < row->n; i++)
		if (forms_has(&row->of[i].form, row->round, row->chunk))
			row->who[row->n_who++] = i;
}

static double decode(const struct sim *s, const struct row_of_chunk *row, int k, float *x) {
	const int i = row->who[k];
	return forms_sent(s, row->from[i]->bytes, &row->of[i].form, row->round, row->chunk, x);
}

/* By what each contribution is multiplied. */
static void find_factors(struct sim *s, const struct row_of_chunk *row, float *x, float *factors) {
	double norms[NET_MAX_ROW];
	for (int k = 0; k < row->n_who; k++)
		factors[k] = (float)row->of[row->who[k]].weight;
	if (s->opt.clip == 0 || row->n_who < LIMITED_FROM)
		return;
	for (int k = 0; k < row->n_who; k++)
		norms[k] = sqrt(decode(s, row, k, x));
	const double limit = s->opt.clip * lower_median(norms, row->n_who);
	for (int k = 0; k < row->n_who; k++)
		if (norms[k] > limit) {
			factors[k] = (float)(limit / norms[k] * (double)row->of[row->who[k]].weight);
			s->stats.clipped++;
		}
}

/* Returns the weight of those that contribute. */
static uint32_t add_row(struct sim *s, const struct row_of_chunk *row, float *x, float *sum, float *total) {
	float factors[NET_MAX_ROW];
	uint32_t weight = 0;
	find_factors(s, row, x, factors);
	memset(sum, 0, row->values * sizeof *sum);
	for (int k = 0; k < row->n_who; k++) {
		(void)decode(s, row, k, x);
		weight += row->of[row->who[k]].weight;
		for (size_t v = 0; v < row->values; v++)
			sum[v] += factors[k] * x[v];
	}
	for (size_t v = 0; v < row->values; v++)
		total[v] += sum[v];
	return weight;
}

static void encode(const struct sim *s, float *mean, size_t n, const struct feedback *residual, uint8_t *out) {
	for (size_t v = 0; residual != NULL && residual->kept != NULL && v < n; v++)
		mean[v] = residual->beta * residual->kept[v] + mean[v];
	RV_ASSERT(s->opt.codec->encode(s->opt.codec, mean, n, out, NULL) == RV_OK);
	if (residual == NULL)
		return;
	RV_ASSERT(s->opt.codec->decode(s->opt.codec, out, n, residual->left, NULL) == RV_OK);
	for (size_t v = 0; v < n; v++)
		residual->left[v] = mean[v] - residual->left[v];
}

static void mean_of_chunk(struct sim *s, const struct sim_roster *r, const struct sim_contribution *const *from,
						  uint32_t c, size_t n, float *room, float *total) {
	uint32_t weights = 0;
	memset(total, 0, n * sizeof *total);
	for (int i = 0; i < r->n_rows; i++) {
		const struct sim_row *row = &r->rows[i];
		struct row_of_chunk part = {.from = from + row->first,
									.of = r->of + row->first,
									.n = row->n,
									.round = r->round,
									.chunk = c,
									.values = n};
		if (row->weight == 0)
			continue;
		find_contributors(&part);
		weights += add_row(s, &part, room, room + n, total);
	}
	for (size_t v = 0; v < n; v++)
		total[v] /= (float)weights;
}

bool oracle_mean(struct sim *s, const struct sim_roster *r, const struct sim_contribution *const *from, uint8_t *out) {
	const struct chunking chunks = global_round_chunks(&s->global_config, r->round);
	float *room = sim_alloc(3 * s->opt.chunk_elems * sizeof *room);
	for (uint32_t c = 0; c < chunks.n_chunks; c++) {
		const size_t offset = chunking_offset_bytes(&chunks, s->opt.codec, c), n = chunking_len(&chunks, c);
		struct feedback residual;
		mean_of_chunk(s, r, from, c, n, room + n, room);
		encode(s, room, n, means_oracle_of(s, r, c, &residual), out + offset);
	}
	free(room);
	return true;
}
