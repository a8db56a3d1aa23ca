/* codec_topk.c: the levels of the kept values; codec_topk_bytes.c reads and writes the bytes. */
#include "outer/codec_kernels.h"
#include "outer/codec_topk_bytes.h"

static float magnitude_of(float x) {
	return float_of_bits(float_magnitude(x));
}

static float level_of(double mean) {
	return block_scale((float)mean, 1, TOPK_LEVEL_MAX);
}

/* Divides the values at their mean magnitude, and computes the level of each part. */
static void split(struct topk_picked *p) {
	double sum[2] = {0}, count[2] = {0}, mean = 0;
	for (size_t i = 0; i < p->n; i++)
		mean += (double)magnitude_of(p->value[i]);
	mean /= (double)p->n;
	for (size_t i = 0; i < p->n; i++) {
		p->high[i] = (double)magnitude_of(p->value[i]) >= mean;
		sum[p->high[i]] += (double)magnitude_of(p->value[i]);
		count[p->high[i]]++;
	}
	p->level[1] = level_of(sum[1] / count[1]);
	p->level[0] = count[0] > 0 ? level_of(sum[0] / count[0]) : 0;
}

/* Gives all values one level if the two have become equal. */
static void settle_levels(struct topk_picked *p) {
	if (p->level[0] < p->level[1] && p->level[0] > 0)
		return;
	p->level[0] = 0;
	for (size_t i = 0; i < p->n; i++)
		p->high[i] = true;
}

static void drop_overstated(struct topk_picked *p) {
	size_t kept = 0;
	for (size_t i = 0; i < p->n; i++) {
		if (2 * magnitude_of(p->value[i]) < p->level[p->high[i]])
			continue;
		p->index[kept] = p->index[i];
		p->value[kept] = p->value[i];
		p->high[kept++] = p->high[i];
	}
	p->n = kept;
}

/* Encodes the group of n values, x, at value `at` of the chunk; its largest magnitude is given. */
static enum rv_err encode_group(const struct codec *self, const float *x, uint32_t absmax_bits, size_t n, size_t at,
								uint8_t *out, struct rv_errtext *et) {
	struct topk_picked p;
	if (absmax_bits >= FLOAT_INF_BITS)
		return block_not_finite(self, x, n, at, et);
	p.level[0] = p.level[1] = 0;
	p.n = topk_select(x, n, topk_kept(self, n), FLOAT_LEAST_NORMAL_BITS, p.index);
	for (size_t i = 0; i < p.n; i++)
		p.value[i] = x[p.index[i]];
	if (p.n > 0) {
		split(&p);
		settle_levels(&p);
		drop_overstated(&p);
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
