/* ref_classifier.c: the output head: logits against the token embedding, softmax, cross-entropy,
 * one token at a time. */
#include "kernels/host_memory.h"
#include "kernels/ref/ref.h"

#include <math.h>

static void logits_row(double *logits, const float *x, const float *wte, int c, int v) {
	for (int j = 0; j < v; j++) {
		double sum = 0;
		for (int i = 0; i < c; i++)
			sum += (double)x[i] * (double)wte[(size_t)j * c + i];
		logits[j] = sum;
	}
}

/* Replaces logits by probabilities; returns -log of the target's. */
static double softmax_loss(double *logits, int target, int v) {
	double largest = logits[0], sum = 0, at_target = logits[target];
	for (int j = 1; j < v; j++)
		largest = logits[j] > largest ? logits[j] : largest;
	for (int j = 0; j < v; j++)
		sum += logits[j] = exp(logits[j] - largest);
	for (int j = 0; j < v; j++)
		logits[j] /= sum;
	return largest + log(sum) - at_target;
}

void ref_classifier(struct backend *be, float *losses, act_t *dx, float *dwte, const act_t *x, const float *wte,
					const int32_t *targets, int n, int c, int v, int vp, float grad_scale, enum gradient_mode mode) {
	for (size_t i = 0; dx && mode == GRADIENT_WRITE && i < (size_t)vp * (size_t)c; i++)
		dwte[i] = 0;
	double *p = ref_scratch(be, (size_t)v + (size_t)c), *dx_row = p + v;
	for (int row = 0; row < n; row++) {
		const float *xr = act_f32c(x) + (size_t)row * c;
		bool ignored = targets[row] < 0;
		losses[row] = 0;
		for (int i = 0; i < c; i++)
			dx_row[i] = 0;
		if (!ignored) {
			logits_row(p, xr, wte, c, v);
			losses[row] = (float)softmax_loss(p, targets[row], v);
		}
		if (!dx)
			continue;
		for (int j = 0; j < v && !ignored; j++) {
			double dlogit = (double)grad_scale * (p[j] - (j == targets[row] ? 1 : 0));
			for (int i = 0; i < c; i++) {
				dx_row[i] += dlogit * (double)wte[(size_t)j * c + i];
				dwte[(size_t)j * c + i] = (float)((double)dwte[(size_t)j * c + i] + dlogit * (double)xr[i]);
			}
		}
		for (int i = 0; i < c; i++)
			act_f32(dx)[(size_t)row * c + i] = (float)dx_row[i];
	}
}

void ref_logits(struct backend *be, float *host_out, const act_t *x, const float *wte, int n, int c, int v) {
	double *row = ref_scratch(be, (size_t)v);
	for (int i = 0; i < n; i++) {
		logits_row(row, act_f32c(x) + (size_t)i * c, wte, c, v);
		for (int j = 0; j < v; j++)
			host_out[(size_t)i * v + j] = (float)row[j];
	}
}
