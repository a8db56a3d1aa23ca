/* ref_layernorm.c: layer normalisation (Ba, Kiros & Hinton 2016, equation 3). */
#include "kernels/host_memory.h"
#include "kernels/ref/ref.h"

#include <math.h>

static const double eps = 1e-5;

static void norm_row(float *y, float *mean, float *rstd, const float *x, const float *w, const float *bias, int c) {
	double sum = 0, squares = 0;
	for (int i = 0; i < c; i++)
		sum += (double)x[i];
	double m = sum / c;
	for (int i = 0; i < c; i++)
		squares += ((double)x[i] - m) * ((double)x[i] - m);
	double r = 1 / sqrt(squares / c + eps);
	for (int i = 0; i < c; i++)
		y[i] = (float)(((double)x[i] - m) * r * (double)w[i] + (double)bias[i]);
	*mean = (float)m;
	*rstd = (float)r;
}

void ref_layernorm_forward(struct backend *be, act_t *out, float *mean, float *rstd, const act_t *x, const float *w,
						   const float *bias, int n, int c) {
	(void)be;
	for (int i = 0; i < n; i++) {
		size_t at = (size_t)i * c;
		norm_row(act_f32(out) + at, mean + i, rstd + i, act_f32c(x) + at, w, bias, c);
	}
}

void ref_residual_layernorm_forward(struct backend *be, act_t *sum, act_t *out, float *mean, float *rstd,
									const act_t *a, const act_t *b, const float *w, const float *bias, int n, int c) {
	float *s = act_f32(sum);
	for (size_t i = 0; i < (size_t)n * c; i++)
		s[i] = act_f32c(a)[i] + act_f32c(b)[i];
	ref_layernorm_forward(be, out, mean, rstd, sum, w, bias, n, c);
}

/* Computes, with xhat = (x - mean) rstd and g = dout w:  dx = rstd (g - mean(g) - xhat mean(g
 * xhat)). */
void ref_layernorm_backward(struct backend *be, act_t *dx, float *dw, float *dbias, const act_t *dout, const act_t *x,
							const float *w, const float *mean, const float *rstd, int n, int c) {
	double *dw_sum = ref_scratch(be, 2 * (size_t)c), *db_sum = dw_sum + c;
	for (int i = 0; i < 2 * c; i++)
		dw_sum[i] = 0;
	for (int row = 0; row < n; row++) {
		const float *xr = act_f32c(x) + (size_t)row * c, *dy = act_f32c(dout) + (size_t)row * c;
		float *dxr = act_f32(dx) + (size_t)row * c;
		double m = (double)mean[row], r = (double)rstd[row], g_sum = 0, gx_sum = 0;
		for (int i = 0; i < c; i++) {
			double xhat = ((double)xr[i] - m) * r, g = (double)dy[i] * (double)w[i];
			g_sum += g;
			gx_sum += g * xhat;
			dw_sum[i] += (double)dy[i] * xhat;
			db_sum[i] += (double)dy[i];
		}
		for (int i = 0; i < c; i++) {
			double xhat = ((double)xr[i] - m) * r, g = (double)dy[i] * (double)w[i];
			dxr[i] = (float)((double)dxr[i] + r * (g - g_sum / c - xhat * gx_sum / c));
		}
	}
	for (int i = 0; i < c; i++) {
		dw[i] = (float)((double)dw[i] + dw_sum[i]);
		dbias[i] = (float)((double)dbias[i] + db_sum[i]);
	}
}
