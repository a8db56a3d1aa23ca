/* ceilings.c: see ceilings.h. */
#include "bench/ceilings.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 3, TIMED = 10 };

static double now_s(void) {
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Arrays in memory of the device. */
struct arrays {
	void *at[3];
};

static void release(struct backend *be, struct arrays *a) {
	for (int i = 0; i < 3; i++)
		if (a->at[i])
			be->ops->free(be, a->at[i]);
}

/* Fills with random numbers: products of zeros draw less power, and so run faster. */
static enum rv_err fill(struct backend *be, void *to, size_t n, bool activations, struct rv_errtext *et) {
	size_t bytes = n * (activations ? dtype_bytes(be->act) : sizeof(float));
	bool narrow = activations && be->act == DTYPE_BF16;
	uint16_t *words = malloc(n * sizeof(float));
	if (!words)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu numbers", n);
	struct rv_rng rng = rv_rng_of(1, 1);
	float *floats = (float *)(void *)words;
	for (size_t i = 0; i < n; i++) {
		float x = (float)(2 * rv_rng_double(&rng) - 1);
		uint32_t bits;
		memcpy(&bits, &x, sizeof bits);
		if (narrow)
			words[i] = (uint16_t)(bits >> 16);
		else
			floats[i] = x;
	}
	be->ops->upload(be, to, words, bytes);
	free(words);
	return RV_OK;
}

/* Returns the seconds of the fastest call. */
static double fastest(struct backend *be, void (*call)(struct backend *be, const struct arrays *a, size_t n),
					  const struct arrays *a, size_t n) {
	double best = 0;
	for (int i = -WARM_UP; i < TIMED; i++) {
		be->ops->sync(be);
		double begin = now_s();
		call(be, a, n);
		be->ops->sync(be);
		double s = now_s() - begin;
		if (i == 0 || (i > 0 && s < best))
			best = s;
	}
	return best;
}

static void copy(struct backend *be, const struct arrays *a, size_t n) {
	be->ops->add_scaled(be, a->at[0], 0, 1, a->at[1], NULL, n);
}

static void product(struct backend *be, const struct arrays *a, size_t side) {
	int n = (int)side;
	be->ops->linear_forward(be, a->at[0], NULL, a->at[1], a->at[2], NULL, (struct linear_shape){n, n, n}, LINEAR_NONE);
}

static enum rv_err measure_copy(struct backend *be, size_t n, double *gb_per_s, struct rv_errtext *et) {
	struct arrays a = {{NULL}};
	enum rv_err e = RV_OK;
	for (int i = 0; e == RV_OK && i < 2; i++)
		e = be->ops->alloc(be, n * sizeof(float), &a.at[i], et);
	if (e == RV_OK)
		*gb_per_s = 2.0 * (double)n * sizeof(float) / fastest(be, copy, &a, n) * 1e-9;
	release(be, &a);
	return e;
}

static enum rv_err measure_product(struct backend *be, int side, double *tflop_per_s, struct rv_errtext *et) {
	struct arrays a = {{NULL}};
	size_t n = (size_t)side * (size_t)side;
	enum rv_err e = RV_OK;
	for (int i = 0; e == RV_OK && i < 3; i++)
		e = be->ops->alloc(be, n * (i < 2 ? dtype_bytes(be->act) : sizeof(float)), &a.at[i], et);
	for (int i = 1; e == RV_OK && i < 3; i++)
		e = fill(be, a.at[i], n, i == 1, et);
	if (e == RV_OK)
		*tflop_per_s = 2.0 * (double)n * side / fastest(be, product, &a, (size_t)side) * 1e-12;
	release(be, &a);
	return e;
}

enum rv_err ceilings_measure(struct backend *be, size_t copy_bytes, int side, struct ceilings *out,
							 struct rv_errtext *et) {
	*out = (struct ceilings){0, 0};
	RV_TRY(measure_copy(be, copy_bytes / sizeof(float), &out->copy_gb_per_s, et));
	return measure_product(be, side, &out->product_tflop_per_s, et);
}
