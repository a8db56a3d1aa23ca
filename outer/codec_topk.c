/* codec_topk.c: the levels of the values that are kept; the bytes are codec_topk_bytes.c's. */
#include "outer/codec_kernels.h"
#include "outer/codec_topk_bytes.h"

static float magnitude_of(float x) {
	return float_of_bits(float_magnitude(x));
}

/* The means of the two parts, and which is whose. */
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
	p->level[1] = block_scale(&topk_levels, (float)(sum[1] / count[1]));
	p->level[0] = count[0] > 0 ? block_scale(&topk_levels, (float)(sum[0] / count[0])) : 0;
}

/* The ends, and a draw for every value between them. */
static void draw(struct topk_picked *p, const struct codec_noise *noise, size_t offset) {
	float least = magnitude_of(p->value[0]), most = least;
	for (size_t i = 1; i < p->n; i++) {
		const float m = magnitude_of(p->value[i]);
		least = m < least ? m : least;
		most = m > most ? m : most;
	}
	for (size_t i = 0; i < p->n; i++) {
		const float m = magnitude_of(p->value[i]);
		float uniform;
		codec_noise_fill(noise, offset + p->index[i], &uniform, 1);
		p->high[i] = m == most || (m != least && uniform * (most - least) < m - least);
	}
	p->level[1] = block_scale(&topk_levels, most);
	p->level[0] = block_scale(&topk_levels, least);
}

/* One level for all where the two have become equal. */
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

static void encode_group(const struct topk_format *f, const float *x, size_t n, const struct codec_noise *noise,
						 size_t offset, uint8_t *out) {
	struct topk_picked p;
	p.n = topk_select(x, n, topk_kept(f, n), f->values == TOPK_LEVELS ? FLOAT_LEAST_NORMAL_BITS : 1, p.index);
	for (size_t i = 0; i < p.n; i++)
		p.value[i] = x[p.index[i]];
	p.level[0] = p.level[1] = 0;
	if (f->values == TOPK_LEVELS && p.n > 0) {
		if (noise)
			draw(&p, noise, offset);
		else
			split(&p);
		settle_levels(&p);
		if (!noise)
			drop_overstated(&p);
	}
	topk_write_group(f, &p, n, out);
}

static enum rv_err check_finite(const struct topk_format *f, uint32_t absmax_bits, const float *x, size_t n,
								size_t offset, struct rv_errtext *et) {
	const struct block_scales named = {.codec = f->codec};
	return absmax_bits < FLOAT_INF_BITS ? RV_OK : block_not_finite(&named, x, n, offset, et);
}

enum rv_err topk_encode_random(const struct topk_format *f, const float *x, size_t n, const struct codec_noise *noise,
							   uint8_t *out, struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t at = 0; at < n; at += TOPK_GROUP) {
		const size_t len = topk_group_len(n, at);
		RV_TRY(check_finite(f, k->absmax_bits(x + at, len), x + at, len, at, et));
		encode_group(f, x + at, len, noise, at, out + topk_group_at(f, at));
	}
	return RV_OK;
}

enum rv_err topk_encode(const struct topk_format *f, const float *x, size_t n, uint8_t *out, struct rv_errtext *et) {
	return topk_encode_random(f, x, n, NULL, out, et);
}

enum rv_err topk_encode_delta(const struct topk_format *f, const float *a, const float *b, size_t n, uint8_t *out,
							  struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float delta[TOPK_GROUP];
	for (size_t at = 0; at < n; at += TOPK_GROUP) {
		const size_t len = topk_group_len(n, at);
		RV_TRY(check_finite(f, k->delta_absmax_bits(a + at, b + at, delta, len), delta, len, at, et));
		encode_group(f, delta, len, NULL, at, out + topk_group_at(f, at));
	}
	return RV_OK;
}

enum rv_err topk_decode(const struct topk_format *f, const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {
	memset(x, 0, n * sizeof *x);
	for (size_t at = 0; at < n; at += TOPK_GROUP) {
		struct topk_picked p;
		RV_TRY(topk_read_group(f, in + topk_group_at(f, at), topk_group_len(n, at), at, &p, et));
		for (size_t i = 0; i < p.n; i++)
			x[at + p.index[i]] = p.value[i];
	}
	return RV_OK;
}

enum rv_err topk_decode_add(const struct topk_format *f, const uint8_t *in, size_t n, float weight, float *acc,
							struct rv_errtext *et) {
	for (size_t at = 0; at < n; at += TOPK_GROUP) {
		struct topk_picked p;
		RV_TRY(topk_read_group(f, in + topk_group_at(f, at), topk_group_len(n, at), at, &p, et));
		for (size_t i = 0; i < p.n; i++)
			acc[at + p.index[i]] = acc[at + p.index[i]] + weight * p.value[i];
	}
	return RV_OK;
}
