/* codec_topk.c: which of the largest values are sent, and their level; codec_topk_bytes.c reads and
 * writes the bytes. */
#include "outer/codec_kernels.h"
#include "outer/codec_topk_bytes.h"

enum { LEVEL_SHIFT = 16 };

/* Returns the mean rounded to the upper 16 bits of a float, ties away from zero. */
static float level_of(double mean) {
	const uint32_t bits = (float_bits((float)mean) + (1u << (LEVEL_SHIFT - 1))) >> LEVEL_SHIFT << LEVEL_SHIFT;
	return float_of_bits(bits < TOPK_LEVEL_MAX_BITS ? bits : TOPK_LEVEL_MAX_BITS);
}

/* Sorts magnitudes, the largest first (Shell's sort). */
static void sort_down(uint32_t *magnitude, size_t n) {
	for (size_t gap = n / 2; gap > 0; gap /= 2)
		for (size_t i = gap; i < n; i++) {
			const uint32_t moved = magnitude[i];
			size_t at = i;
			for (; at >= gap && magnitude[at - gap] < moved; at -= gap)
				magnitude[at] = magnitude[at - gap];
			magnitude[at] = moved;
		}
}

/* Returns the least magnitude among the j largest for which their sum squared over j is most. */
static uint32_t least_worth_sending(const struct topk_picked *p) {
	uint32_t magnitude[TOPK_GROUP], least;
	double sum = 0, most = 0;
	for (size_t i = 0; i < p->n; i++)
		magnitude[i] = float_magnitude(p->value[i]);
	sort_down(magnitude, p->n);
	least = magnitude[0];
	for (size_t i = 0; i < p->n; i++) {
		sum += (double)float_of_bits(magnitude[i]);
		const double worth = sum * sum / (double)(i + 1);
		least = worth >= most ? magnitude[i] : least;
		most = worth >= most ? worth : most;
	}
	return least;
}

/* Keeps the values of at least this magnitude. */
static void keep_from(struct topk_picked *p, uint32_t least) {
	size_t kept = 0;
	for (size_t i = 0; i < p->n; i++) {
		p->index[kept] = p->index[i];
		p->value[kept] = p->value[i];
		kept += float_magnitude(p->value[i]) >= least;
	}
	p->n = kept;
}

/* Drops what is not worth sending. If no magnitude is more than twice another one, all are: each
 * next one is at least half the mean of those before. */
static void drop_unworthy(struct topk_picked *p) {
	uint32_t least = FLOAT_INF_BITS, most = 0;
	for (size_t i = 0; i < p->n; i++) {
		const uint32_t magnitude = float_magnitude(p->value[i]);
		least = magnitude < least ? magnitude : least;
		most = magnitude > most ? magnitude : most;
	}
	if (float_of_bits(most) / 2 > float_of_bits(least))
		keep_from(p, least_worth_sending(p));
}

/* Sets the level, and drops values that it would more than double. */
static void settle_level(struct topk_picked *p) {
	double sum = 0;
	for (size_t i = 0; i < p->n; i++)
		sum += (double)float_of_bits(float_magnitude(p->value[i]));
	p->level = level_of(sum / (double)p->n);
	keep_from(p, float_bits(p->level / 2));
}

/* Encodes the group of n values, x, at value `at` of the chunk; its largest magnitude is given. */
static enum rv_err encode_group(const struct codec *self, const float *x, uint32_t absmax_bits, size_t n, size_t at,
								uint8_t *out, struct rv_errtext *et) {
	struct topk_picked p;
	if (absmax_bits >= FLOAT_INF_BITS)
		return block_not_finite(self, x, n, at, et);
	p.level = 0;
	p.n = topk_select(x, n, topk_kept(self, n), FLOAT_LEAST_NORMAL_BITS, p.index);
	for (size_t i = 0; i < p.n; i++)
		p.value[i] = x[p.index[i]];
	if (p.n > 0) {
		topk_fit(self, &p, n);
		drop_unworthy(&p);
		settle_level(&p);
	}
	topk_write_group(self, &p, n, out + topk_group_at(self, at));
	return RV_OK;
}

enum rv_err topk_encode(const struct codec *self, const float *x, size_t n, uint8_t *out, struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t at = 0; at < n; at += TOPK_GROUP) {
		const size_t len = topk_group_len(n, at);
		RV_TRY(encode_group(self, x + at, k->absmax_bits(x + at, len), len, at, out, et));
	}
	return RV_OK;
}

enum rv_err topk_encode_delta(const struct codec *self, const float *a, const float *b, size_t n, uint8_t *out,
							  struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float delta[TOPK_GROUP];
	for (size_t at = 0; at < n; at += TOPK_GROUP) {
		const size_t len = topk_group_len(n, at);
		RV_TRY(encode_group(self, delta, k->delta_absmax_bits(a + at, b + at, delta, len), len, at, out, et));
	}
	return RV_OK;
}

enum rv_err topk_decode(const struct codec *self, const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {
	struct topk_picked p;
	memset(x, 0, n * sizeof *x);
	for (size_t at = 0; at < n; at += TOPK_GROUP) {
		RV_TRY(topk_read_group(self, in, topk_group_len(n, at), at, &p, et));
		for (size_t i = 0; i < p.n; i++)
			x[at + p.index[i]] = p.value[i];
	}
	return RV_OK;
}

enum rv_err topk_decode_add(const struct codec *self, const uint8_t *in, size_t n, float weight, float *acc,
							struct rv_errtext *et) {
	struct topk_picked p;
	for (size_t at = 0; at < n; at += TOPK_GROUP) {
		RV_TRY(topk_read_group(self, in, topk_group_len(n, at), at, &p, et));
		for (size_t i = 0; i < p.n; i++)
			acc[at + p.index[i]] = acc[at + p.index[i]] + weight * p.value[i];
	}
	return RV_OK;
}
