/* sim_oracle_mean.c: the mean over a roster, computed as its definition reads: row by row the
 * contributions, limited, times their weights, in roster order; the rows' sums in row order;
 * divided by all weights; encoded once. Plain loops over one value after the other: nothing of
 * outer/merge.h. */
#include "sim.h"

#include "base/assert.h"
#include "outer/codec_kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMITED_FROM = 3 }; /* contributions: of fewer the wrong one is not known */

/* Sum of squares of an encoded chunk: as the codec has it, else by 16 lanes in turn, which are
 * folded. */
static double squares(const struct sim *s, const uint8_t *encoded, const float *x, size_t n) {
	double lanes[CODEC_DOT_LANES] = {0};
	if (s->opt.codec->sum_squares != NULL)
		return s->opt.codec->sum_squares(s->opt.codec, encoded, n);
	for (size_t i = 0; i < n; i++)
		lanes[i % CODEC_DOT_LANES] += (double)x[i] * (double)x[i];
	for (int half = CODEC_DOT_LANES / 2; half > 0; half /= 2)
		for (int l = 0; l < half; l++)
			lanes[l] += lanes[l + half];
	return lanes[0];
}

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
	size_t offset, values; /* bytes into a contribution; of the chunk */
};

static void decode(const struct sim *s, const struct row_of_chunk *row, int i, float *x) {
	RV_ASSERT(s->opt.codec->decode(s->opt.codec, row->from[i]->bytes + row->offset, row->values, x, NULL) == RV_OK);
}

/* By what each contribution is multiplied. */
static void find_factors(struct sim *s, const struct row_of_chunk *row, float *x, float *factors) {
	double norms[NET_MAX_ROW];
	for (int i = 0; i < row->n; i++)
		factors[i] = (float)row->of[i].weight;
	if (s->opt.clip == 0 || row->n < LIMITED_FROM)
		return;
	for (int i = 0; i < row->n; i++) {
		decode(s, row, i, x);
		norms[i] = sqrt(squares(s, row->from[i]->bytes + row->offset, x, row->values));
	}
	const double limit = s->opt.clip * lower_median(norms, row->n);
	for (int i = 0; i < row->n; i++)
		if (norms[i] > limit) {
			factors[i] = (float)(limit / norms[i] * (double)row->of[i].weight);
			s->stats.clipped++;
		}
}

static void add_row(struct sim *s, const struct row_of_chunk *row, float *x, float *sum, float *total) {
	float factors[NET_MAX_ROW];
	RV_ASSERT(row->n <= NET_MAX_ROW);
	find_factors(s, row, x, factors);
	memset(sum, 0, row->values * sizeof *sum);
	for (int i = 0; i < row->n; i++) {
		decode(s, row, i, x);
		for (size_t v = 0; v < row->values; v++)
			sum[v] += factors[i] * x[v];
	}
	for (size_t v = 0; v < row->values; v++)
		total[v] += sum[v];
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
						  size_t offset, size_t n, float *room, float *total) {
	uint32_t weights = 0;
	memset(total, 0, n * sizeof *total);
	for (int i = 0; i < r->n_rows; i++) {
		const struct sim_row *row = &r->rows[i];
		const struct row_of_chunk part = {
			.from = from + row->first, .of = r->of + row->first, .n = row->n, .offset = offset, .values = n};
		if (row->weight == 0)
			continue;
		add_row(s, &part, room, room + n, total);
		weights += row->weight;
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
		mean_of_chunk(s, r, from, offset, n, room + n, room);
		encode(s, room, n, means_oracle_of(s, r, c, &residual), out + offset);
	}
	free(room);
	return true;
}
