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

void ref_adamw(struct backend *be, float *p, const float *g, float *m, float *v, const struct decay_span *spans,
			   int n_spans, const struct adamw_params *a) {
	(void)be;
	double b1 = (double)a->beta1, b2 = (double)a->beta2, lr = (double)a->lr;
	double m_correction = 1 / (1 - pow(b1, (double)a->step)), v_correction = 1 / (1 - pow(b2, (double)a->step));
	for (int s = 0; s < n_spans; s++) {
		double decay = spans[s].decay ? (double)a->weight_decay : 0;
		for (size_t i = spans[s].begin; i < spans[s].end; i++) {
			double grad = (double)a->grad_scale * (double)g[i];
			double m_new = b1 * (double)m[i] + (1 - b1) * grad;
			double v_new = b2 * (double)v[i] + (1 - b2) * grad * grad;
			double update = m_new * m_correction / (sqrt(v_new * v_correction) + (double)a->eps);
			p[i] = (float)((double)p[i] - lr * (update + decay * (double)p[i]));
			m[i] = (float)m_new;
			v[i] = (float)v_new;
		}
	}
}
