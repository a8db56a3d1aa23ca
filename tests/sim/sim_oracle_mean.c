/* sim_oracle_mean.c: the mean over a roster, computed as its definition reads: row by row the
 * contributions to a chunk, as they are sent, limited, without those that point against the others
 * if the run leaves these out, times their weights, in roster order; the rows' sums in row order;
 * divided by the weights of those that contributed; encoded once. Plain loops over one value after
 * the other: nothing of outer/merge.h. */
#include "sim.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMITED_FROM = 3 }; /* contributions: of fewer the wrong one is not known */

static void sort(double *values, int n) {
	for (int i = 1; i < n; i++) {
		const double value = values[i];
		int at = i;
		for (; at > 0 && values[at - 1] > value; at--)
			values[at] = values[at - 1];
		values[at] = value;
	}
}

static double lower_median(const double *norms, int n) {
	double sorted[NET_MAX_ROW];
	memcpy(sorted, norms, (size_t)n * sizeof *norms);
	sort(sorted, n);
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

/* Sets cosine[i][k] of all pairs; `x` and `y` hold one contribution each. */
static void find_cosines(const struct sim *s, const struct row_of_chunk *row, float *x, float *y,
						 double cosine[][NET_MAX_ROW]) {
	for (int i = 0; i < row->n_who; i++) {
		const double xx = decode(s, row, i, x);
		for (int k = 0; k < i; k++) {
			const double yy = decode(s, row, k, y);
			double dot = 0;
			for (size_t v = 0; v < row->values; v++)
				dot += (double)x[v] * (double)y[v];
			cosine[i][k] = cosine[k][i] = xx > 0 && yy > 0 ? dot / (sqrt(xx) * sqrt(yy)) : 0;
		}
	}
}

/* How far each contribution goes with the others: the mean of its cosines, none above the upper
 * quartile of all. */
static void find_agreement(const double cosine[][NET_MAX_ROW], int n, double *agreement) {
	double pairs[NET_MAX_ROW * (NET_MAX_ROW - 1) / 2];
	int n_pairs = 0;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++)
			pairs[n_pairs++] = cosine[i][k];
	sort(pairs, n_pairs);
	for (int i = 0; i < n; i++) {
		agreement[i] = 0;
		for (int k = 0; k < n; k++)
			agreement[i] += k == i ? 0 : fmin(cosine[i][k], pairs[3 * n_pairs / 4]);
		agreement[i] /= n - 1;
	}
}

/* Sets the factors of those to 0, and `left`, that point against the others: fewer than half, by
 * more than two standard deviations of chance. */
static void leave_out(struct sim *s, const struct row_of_chunk *row, float *x, float *y, float *factors, bool *left) {
	double cosine[NET_MAX_ROW][NET_MAX_ROW], agreement[NET_MAX_ROW];
	const int n = row->n_who;
	if (!s->opt.agrees || n < LIMITED_FROM)
		return;
	find_cosines(s, row, x, y, cosine);
	find_agreement(cosine, n, agreement);
	const double least = -2 / sqrt((double)row->values * (n - 1));
	for (int n_left = 0; 2 * (n_left + 1) < n; n_left++) {
		int worst = 0;
		for (int i = 1; i < n; i++)
			worst = agreement[i] < agreement[worst] ? i : worst;
		if (agreement[worst] >= least)
			return;
		factors[worst] = 0;
		left[worst] = true;
		agreement[worst] = 1; /* not again */
		s->stats.left_out++;
	}
}

/* Adds the row's sum. If some are left out, that of the others counts for the whole row, if there
 * are more. Returns the weight by which it counts. */
static uint32_t add_row(struct sim *s, const struct row_of_chunk *row, bool only, float *x, float *sum, float *total) {
	float factors[NET_MAX_ROW];
	bool left[NET_MAX_ROW] = {false};
	uint32_t all = 0, counted = 0;
	find_factors(s, row, x, factors);
	leave_out(s, row, x, sum, factors, left);
	memset(sum, 0, row->values * sizeof *sum);
	for (int k = 0; k < row->n_who; k++) {
		(void)decode(s, row, k, x);
		all += row->of[row->who[k]].weight;
		counted += left[k] ? 0 : row->of[row->who[k]].weight;
		for (size_t v = 0; v < row->values; v++)
			sum[v] += factors[k] * x[v];
	}
	for (size_t v = 0; v < row->values; v++)
		total[v] += only || counted == all ? sum[v] : sum[v] / (float)counted * (float)all;
	return only ? counted : all;
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
		weights += add_row(s, &part, r->n_rows == 1, room, room + n, total);
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
