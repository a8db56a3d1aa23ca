/* ref_update.c: sums of vectors and products of matrices, for optimizers that are made of them. */
#include "kernels/ref/ref.h"

void ref_add_scaled(struct backend *be, float *y, float keep, float scale, const float *a, const float *b, size_t n) {
	(void)be;
	for (size_t i = 0; i < n; i++) {
		double x = b ? (double)a[i] - (double)b[i] : (double)a[i];
		double kept = keep == 0 ? 0 : (double)keep * (double)y[i];
		y[i] = (float)(kept + (double)scale * x);
	}
}

void ref_product(struct backend *be, float *c, const float *a, const float *b, struct product_shape s) {
	(void)be;
	for (int i = 0; i < s.m; i++)
		for (int j = 0; j < s.n; j++) {
			double sum = 0;
			for (int k = 0; k < s.k; k++) {
				size_t of_a = s.a_transposed ? (size_t)k * s.m + i : (size_t)i * s.k + k;
				size_t of_b = s.b_transposed ? (size_t)j * s.k + k : (size_t)k * s.n + j;
				sum += (double)a[of_a] * (double)b[of_b];
			}
			c[(size_t)i * s.n + j] = (float)sum;
		}
}
