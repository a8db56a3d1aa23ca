/* muon.h: one step of Muon on one matrix (K. Jordan et al., "Muon: an optimizer for hidden layers
 * in neural networks", 2024; arXiv 2502.16982 for the scale and the decay), made of a backend's
 * sums and products.
 *
 *     m <- beta m + g'                     momentum
 *     u  = g' + beta m                     Nesterov's
 *     X  = u / (|u|_F + 1e-7)
 *     five times:  A = X X^T;  X <- a X + (b A + c A A) X      (a, b, c) = (3.4445, -4.7750,
 *                  2.0315)
 *     p <- (1 - lr wd) p - lr 0.2 sqrt(max(rows, cols)) X
 *
 * The iteration (Newton-Schulz) takes every singular value of u that is not tiny against the
 * largest into about [0.68, 1.13] and leaves the singular vectors alone. A is of the shorter side:
 * with rows > cols it is X^T X, from the right. The scale gives an update the root mean square that
 * AdamW's usually has, so that one lr and one wd serve both. */
#ifndef RV_TRAIN_MUON_H
#define RV_TRAIN_MUON_H

#include "kernels/backend.h"

struct muon_params {
	float lr, momentum, weight_decay, grad_scale; /* weight_decay 0: none */
};

/* A matrix (rows, cols), row-major, in backend memory like all vectors here. */
struct muon_matrix {
	float *p, *m;
	const float *g;
	int rows, cols;
};

size_t muon_scratch_floats(int rows, int cols);
void muon_step(struct backend *be, const struct muon_matrix *x, float *scratch, const struct muon_params *a);
/* Applies the iteration alone to x (rows, cols). scratch: muon_scratch_floats. */
void muon_orthogonalize(struct backend *be, float *x, int rows, int cols, float *scratch);

#endif
