/* muon.c: the Newton-Schulz iteration and the step. */
#include "train/muon.h"

#include <math.h>

enum { ITERATIONS = 5 };
#define NORM_EPS 1e-7
static const float coefficient_a = 3.4445f, coefficient_b = -4.7750f, coefficient_c = 2.0315f;
static const float update_rms = 0.2f;

static size_t shorter(int rows, int cols) {
	return (size_t)(rows < cols ? rows : cols);
}

/* Returns room for u and X's product, then A and A A. */
size_t muon_scratch_floats(int rows, int cols) {
	return 2 * (size_t)rows * (size_t)cols + 2 * shorter(rows, cols) * shorter(rows, cols);
}

/* Computes x <- a x + (b A + c A A) x; `next` has room for x, `gram` for A and A A. */
static void iterate(struct backend *be, float *x, int rows, int cols, float *next, float *gram) {
	const struct backend_ops *ops = be->ops;
	bool tall = rows > cols;
	int side = (int)shorter(rows, cols);
	size_t n = (size_t)rows * (size_t)cols, of_gram = (size_t)side * (size_t)side;
	float *squared = gram + of_gram;
	ops->product(be, gram, x, x, (struct product_shape){side, side, tall ? rows : cols, tall, !tall});
	ops->product(be, squared, gram, gram, (struct product_shape){side, side, side, false, false});
	ops->add_scaled(be, gram, coefficient_b, coefficient_c, squared, NULL, of_gram);
	if (tall)
		ops->product(be, next, x, gram, (struct product_shape){rows, cols, cols, false, false});
	else
		ops->product(be, next, gram, x, (struct product_shape){rows, cols, rows, false, false});
	ops->add_scaled(be, x, coefficient_a, 1, next, NULL, n);
}

void muon_orthogonalize(struct backend *be, float *x, int rows, int cols, float *scratch) {
	size_t n = (size_t)rows * (size_t)cols;
	double norm = sqrt(be->ops->sum_squares(be, x, n));
	be->ops->add_scaled(be, x, 0, (float)(1 / (norm + NORM_EPS)), x, NULL, n);
	for (int i = 0; i < ITERATIONS; i++)
		iterate(be, x, rows, cols, scratch, scratch + n);
}

void muon_step(struct backend *be, const struct muon_matrix *x, float *scratch, const struct muon_params *a) {
	const struct backend_ops *ops = be->ops;
	size_t n = (size_t)x->rows * (size_t)x->cols;
	float *u = scratch, scale = update_rms * sqrtf((float)(x->rows > x->cols ? x->rows : x->cols));
	ops->add_scaled(be, x->m, a->momentum, a->grad_scale, x->g, NULL, n);
	ops->add_scaled(be, u, 0, a->momentum, x->m, NULL, n);
	ops->add_scaled(be, u, 1, a->grad_scale, x->g, NULL, n);
	muon_orthogonalize(be, u, x->rows, x->cols, scratch + n);
	ops->add_scaled(be, x->p, 1 - a->lr * a->weight_decay, -a->lr * scale, u, NULL, n);
}
