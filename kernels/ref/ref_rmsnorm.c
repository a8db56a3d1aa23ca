/* ref_rmsnorm.c: root mean square normalisation (Zhang & Sennrich 2019, arXiv 1910.07467, equation
 * 4). */
#include "kernels/host_memory.h"
#include "kernels/ref/ref.h"

#include <math.h>

void ref_rmsnorm_forward(struct backend *be, act_t *out, float *rstd, const act_t *x, const float *w, float eps, int n,
						 int c) {
	(void)be;
	for (int row = 0; row < n; row++) {
		const float *xr = act_f32c(x) + (size_t)row * c;
		float *y = act_f32(out) + (size_t)row * c;
		double squares = 0;
		for (int i = 0; i < c; i++)
			squares += (double)xr[i] * (double)xr[i];
		double r = 1 / sqrt(squares / c + (double)eps);
		for (int i = 0; i < c; i++)
			y[i] = (float)((double)xr[i] * r * (double)w[i]);
		rstd[row] = (float)r;
	}
}

void ref_residual_rmsnorm_forward(struct backend *be, act_t *sum, act_t *out, float *rstd, const act_t *a,
								  const act_t *b, const float *w, float eps, int n, int c) {
	float *s = act_f32(sum);
	for (size_t i = 0; i < (size_t)n * c; i++)
		s[i] = act_f32c(a)[i] + act_f32c(b)[i];
	ref_rmsnorm_forward(be, out, rstd, sum, w, eps, n, c);
}

/* Computes, with xhat = x rstd and g = dout w:  dx = rstd (g - xhat mean(g xhat)),  dw = the sum
 * over rows of dout xhat. */
void ref_rmsnorm_backward(struct backend *be, act_t *dx, float *dw, const act_t *dout, const act_t *x, const float *w,
						  const float *rstd, int n, int c) {
	double *dw_sum = ref_scratch(be, (size_t)c);
	for (int i = 0; i < c; i++)
		dw_sum[i] = 0;
	for (int row = 0; row < n; row++) {
		const float *xr = act_f32c(x) + (size_t)row * c, *dy = act_f32c(dout) + (size_t)row * c;
		float *dxr = act_f32(dx) + (size_t)row * c;
		double r = (double)rstd[row], gx_sum = 0;
		for (int i = 0; i < c; i++) {
			double xhat = (double)xr[i] * r;
			gx_sum += (double)dy[i] * (double)w[i] * xhat;
			dw_sum[i] += (double)dy[i] * xhat;
		}
		for (int i = 0; i < c; i++) {
			double xhat = (double)xr[i] * r, g = (double)dy[i] * (double)w[i];
			dxr[i] = (float)((double)dxr[i] + r * (g - xhat * gx_sum / c));
		}
	}
	for (int i = 0; i < c; i++)
		dw[i] = (float)((double)dw[i] + dw_sum[i]);
}
