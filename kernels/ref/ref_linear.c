/* ref_linear.c: linear layers, with the GELU that may follow one. */
#include "kernels/host_memory.h"
#include "kernels/ref/ref.h"

#include <math.h>

static const double sqrt_2_over_pi = 0.79788456080286535588, cubic = 0.044715;

/* Return 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016, section 2), and
 * its derivative. */
static double ref_gelu(double x) {
	return 0.5 * x * (1 + tanh(sqrt_2_over_pi * (x + cubic * x * x * x)));
}
static double ref_gelu_grad(double x) {
	double t = tanh(sqrt_2_over_pi * (x + cubic * x * x * x));
	double du = sqrt_2_over_pi * (1 + 3 * cubic * x * x);
	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
}

void ref_linear_forward(struct backend *be, act_t *y, act_t *pre, const act_t *x, const float *w, const float *bias,
						struct linear_shape s, enum linear_epilogue ep) {
	(void)be;
	for (int n = 0; n < s.n; n++)
		for (int o = 0; o < s.o; o++) {
			const float *xr = act_f32c(x) + (size_t)n * s.c, *wr = w + (size_t)o * s.c;
			double sum = bias ? (double)bias[o] : 0;
			for (int i = 0; i < s.c; i++)
				sum += (double)xr[i] * (double)wr[i];
			size_t at = (size_t)n * s.o + o;
			if (ep == LINEAR_GELU)
				act_f32(pre)[at] = (float)sum;
			act_f32(y)[at] = (float)(ep == LINEAR_GELU ? ref_gelu(sum) : sum);
		}
}

void ref_gelu_forward(struct backend *be, act_t *out, const act_t *pre, size_t n) {
	(void)be;
	for (size_t i = 0; i < n; i++)
		act_f32(out)[i] = (float)ref_gelu((double)act_f32c(pre)[i]);
}

void ref_linear_backward_input(struct backend *be, act_t *dx, const act_t *dy, const float *w, const act_t *pre,
							   struct linear_shape s, enum linear_epilogue ep) {
	double *row = ref_scratch(be, (size_t)s.c);
	for (int n = 0; n < s.n; n++) {
		for (int i = 0; i < s.c; i++)
			row[i] = 0;
		for (int o = 0; o < s.o; o++) {
			double d = (double)act_f32c(dy)[(size_t)n * s.o + o];
			for (int i = 0; i < s.c; i++)
				row[i] += d * (double)w[(size_t)o * s.c + i];
		}
		for (int i = 0; i < s.c; i++) {
			size_t at = (size_t)n * s.c + i;
			double slope = ep == LINEAR_GELU ? ref_gelu_grad((double)act_f32c(pre)[at]) : 1;
			act_f32(dx)[at] = (float)(row[i] * slope);
		}
	}
}

void ref_linear_backward_weight(struct backend *be, float *dw, float *dbias, const act_t *dy, const act_t *x,
								struct linear_shape s, enum gradient_mode mode) {
	double *row = ref_scratch(be, (size_t)s.c);
	for (int o = 0; o < s.o; o++) {
		double bias_sum = 0;
		for (int i = 0; i < s.c; i++)
			row[i] = 0;
		for (int n = 0; n < s.n; n++) {
			double d = (double)act_f32c(dy)[(size_t)n * s.o + o];
			bias_sum += d;
			for (int i = 0; i < s.c; i++)
				row[i] += d * (double)act_f32c(x)[(size_t)n * s.c + i];
		}
		for (int i = 0; i < s.c; i++) {
			float *at = dw + (size_t)o * s.c + i;
			*at = (float)((mode == GRADIENT_WRITE ? 0 : (double)*at) + row[i]);
		}
		if (dbias)
			dbias[o] = (float)((double)dbias[o] + bias_sum);
	}
}
