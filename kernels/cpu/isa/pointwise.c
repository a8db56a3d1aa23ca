/* pointwise.c: elementwise operations and the column sums of bias gradients.
 *
 * The idea: one pass per operation over data that the matrix product before it has just left in
 * cache. GELU is x * sigmoid(2u) with u the cubic of Hendrycks & Gimpel, so one exponential and one
 * division; its derivative reuses the same sigmoid. Bytes moved per element: bias + GELU 12 (read
 * pre, write pre and y), GELU gradient 12, column sums 4. */
#include "kernels/cpu/isa/isa.h"

static const float two_sqrt_2_over_pi = 1.5957691216057308f, cubic = 0.044715f;

/* Returns e^(-2u) for u = sqrt(2/pi) (x + cubic x^3). */
RV_ALWAYS_INLINE vf gelu_exp(vf x) {
	return vexp(x * vfma(x * x, vset1(-two_sqrt_2_over_pi * cubic), vset1(-two_sqrt_2_over_pi)));
}

RV_ALWAYS_INLINE vf gelu(vf x) {
	return x / (vset1(1) + gelu_exp(x));
}

/* Returns, with s = sigmoid(2u), s + x s (1 - s) d(2u)/dx, where 1 - s = e^(-2u) s does not
 * cancel. */
RV_ALWAYS_INLINE vf gelu_slope(vf x) {
	vf e = gelu_exp(x), s = vset1(1) / (vset1(1) + e);
	vf du = vfma(x * x, vset1(3 * two_sqrt_2_over_pi * cubic), vset1(two_sqrt_2_over_pi));
	return vfma(x * s * (e * s), du, s);
}

void ISA(add_bias_rows)(float *y, ptrdiff_t ld, const float *bias, int n, int c) {
	for (int row = 0; row < n; row++, y += ld)
		for (int i = 0; i < c; i += VL)
			vstore_n(y + i, vload_n(y + i, c - i) + vload_n(bias + i, c - i), c - i);
}

void ISA(bias_gelu_rows)(float *y, float *pre, ptrdiff_t ld, const float *bias, int n, int c) {
	for (int row = 0; row < n; row++, y += ld, pre += ld)
		for (int i = 0; i < c; i += VL) {
			vf x = vload_n(pre + i, c - i);
			if (bias) {
				x += vload_n(bias + i, c - i);
				vstore_n(pre + i, x, c - i);
			}
			vstore_n(y + i, gelu(x), c - i);
		}
}

void ISA(gelu_grad_rows)(float *dx, const float *pre, ptrdiff_t ld, int n, int c) {
	for (int row = 0; row < n; row++, dx += ld, pre += ld)
		for (int i = 0; i < c; i += VL)
			vstore_n(dx + i, vload_n(dx + i, c - i) * gelu_slope(vload_n(pre + i, c - i)), c - i);
}

void ISA(add_vectors)(float *out, const float *a, const float *b, size_t n) {
	for (size_t i = 0; i < n; i += VL) {
		ptrdiff_t k = (ptrdiff_t)(n - i);
		vf x = vload_n(a + i, k);
		vstore_n(out + i, b ? x + vload_n(b + i, k) : x, k);
	}
}

void ISA(add_scaled)(float *y, float keep, float scale, const float *a, const float *b, size_t n) {
	const vf of_y = vset1(keep), of_x = vset1(scale);
	for (size_t i = 0; i < n; i += VL) {
		ptrdiff_t k = (ptrdiff_t)(n - i);
		vf x = vload_n(a + i, k);
		if (b)
			x -= vload_n(b + i, k);
		vstore_n(y + i, keep == 0 ? of_x * x : vfma(of_x, x, of_y * vload_n(y + i, k)), k);
	}
}

enum { SUM_VECTORS = 4, STREAM_AHEAD = 2048 /* floats asked for, two pages, which the processor does not do */ };

struct column_sums {
	vf v[SUM_VECTORS];
};

/* Sums up to SUM_VECTORS * VL columns: `block` rows at most one after the other, blocks as a
 * balanced tree. */
static struct column_sums sum_columns(const float *src, ptrdiff_t ld, int rows, int cols, int block) {
	struct column_sums s = {0};
	if (rows <= block) {
		for (int i = 0; i < rows; i++)
			for (int j = 0; j < SUM_VECTORS && j * VL < cols; j++)
				s.v[j] += vload_n(src + i * ld + j * VL, cols - j * VL);
		return s;
	}
	int blocks = (rows + block - 1) / block, first = blocks / 2 * block;
	s = sum_columns(src, ld, first, cols, block);
	struct column_sums t = sum_columns(src + first * ld, ld, rows - first, cols, block);
	for (int j = 0; j < SUM_VECTORS; j++)
		s.v[j] += t.v[j];
	return s;
}

static void add_sums(float *dst, const float *src, ptrdiff_t ld, int rows, int cols, int block) {
	for (int j = 0; j < cols; j += SUM_VECTORS * VL) {
		struct column_sums s = sum_columns(src + j, ld, rows, cols - j, block);
		for (int i = 0; i < SUM_VECTORS; i++) {
			int at = j + i * VL;
			if (at < cols)
				vstore_n(dst + at, vload_n(dst + at, cols - at) + s.v[i], cols - at);
		}
	}
}

void ISA(add_column_sums)(float *dst, const float *src, ptrdiff_t ld, int rows, int cols) {
	add_sums(dst, src, ld, rows, cols, COLUMN_SUM_ROWS);
}

void ISA(add_block_sums)(float *dst, const float *sums, int blocks, int cols) {
	add_sums(dst, sums, cols, blocks, cols, 1);
}

void ISA(stream_column_sums)(float *sums, const float *src, ptrdiff_t ld, int rows, int cols) {
	const ptrdiff_t ahead = (STREAM_AHEAD + ld - 1) / ld * ld;
	memset(sums, 0, (size_t)cols * sizeof *sums);
	for (int i = 0; i < rows; i++, src += ld)
		for (int j = 0; j < cols; j += VL) {
			__builtin_prefetch(src + ahead + j, 0, 2);
			vstore_n(sums + j, vload_n(sums + j, cols - j) + vload_n(src + j, cols - j), cols - j);
		}
}
