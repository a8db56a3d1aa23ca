/* ref_adamw.c: the inner optimizer and the gradient norm. */
#include "kernels/ref/ref.h"

#include <math.h>

double ref_sum_squares(struct backend *be, const float *x, size_t n) {
	(void)be;
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

/* AdamW's constants in double. */
struct constants {
	double b1, b2, lr, eps, decay, scale, m_correction, v_correction;
};

static struct constants constants_of(const struct adamw_params *a) {
	const double b1 = (double)a->beta1, b2 = (double)a->beta2;
	return (struct constants){b1,
							  b2,
							  (double)a->lr,
							  (double)a->eps,
							  (double)a->weight_decay,
							  (double)a->grad_scale,
							  1 / (1 - pow(b1, (double)a->step)),
							  1 / (1 - pow(b2, (double)a->step))};
}

static void update(const struct constants *k, float *p, float g, float *m, float *v, bool decays) {
	const double grad = k->scale * (double)g, decay = decays ? k->decay : 0;
	const double m_new = k->b1 * (double)*m + (1 - k->b1) * grad;
	const double v_new = k->b2 * (double)*v + (1 - k->b2) * grad * grad;
	const double step = m_new * k->m_correction / (sqrt(v_new * k->v_correction) + k->eps);
	*p = (float)((double)*p - k->lr * (step + decay * (double)*p));
	*m = (float)m_new;
	*v = (float)v_new;
}

void ref_adamw(struct backend *be, float *p, const float *g, float *m, float *v, const struct decay_span *spans,
			   int n_spans, const struct adamw_params *a) {
	(void)be;
	const struct constants k = constants_of(a);
	for (int s = 0; s < n_spans; s++)
		for (size_t i = spans[s].begin; i < spans[s].end; i++)
			update(&k, &p[i], g[i], &m[i], &v[i], spans[s].decay);
}

void ref_adamw8(struct backend *be, float *p, const float *g, void *m, void *v, const struct decay_span *spans,
				int n_spans, const struct adamw_params *a, struct moments_place place) {
	(void)be;
	const struct constants k = constants_of(a);
	const size_t n = spans[n_spans - 1].end;
	int s = 0;
	for (size_t block = 0; block < moments_blocks(n); block++) {
		const size_t stored = place.at / MOMENTS_BLOCK + block;
		float m_now[MOMENTS_BLOCK], v_now[MOMENTS_BLOCK];
		const uint32_t seed = moments_seed((uint64_t)a->step, place.first / MOMENTS_BLOCK + block);
		const size_t length = moments_decode_block(MOMENT_FIRST, m, place.n, stored, m_now);
		(void)moments_decode_block(MOMENT_SECOND, v, place.n, stored, v_now);
		for (size_t i = 0; i < length; i++) {
			const size_t at = block * MOMENTS_BLOCK + i;
			while (at >= spans[s].end)
				s++;
			update(&k, &p[at], g[at], &m_now[i], &v_now[i], spans[s].decay);
		}
		moments_encode_block(MOMENT_FIRST, m, place.n, stored, m_now, seed);
		moments_encode_block(MOMENT_SECOND, v, place.n, stored, v_now, seed);
	}
}
