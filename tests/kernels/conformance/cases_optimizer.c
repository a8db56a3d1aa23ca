/* cases_optimizer.c: AdamW, the sum of squares, and what other optimizers are made of. */
#include "tests/kernels/conformance/cases.h"

#include <math.h>
#include <stdlib.h>

static const size_t sizes[] = {1, 3, 7, 17, 33, 39, 127, 1023, 1024, 65536, 200001, 38597376};
enum { LARGE = 1 }; /* the last: the embedding of GPT-2 124M */

static void adamw(struct duo *d, int size) {
	size_t n = sizes[size], cut = n / 3, cut2 = n - n / 4;
	duo_shape(d, "n %zu", n);
	const struct decay_span spans[] = {{0, cut, true}, {cut, cut2, false}, {cut2, n, true}};
	int p = duo_random(d, "p", DUO_F32, n, 1), g = duo_random(d, "g", DUO_F32, n, 1);
	int m = duo_random(d, "m", DUO_F32, n, 0), v = duo_random(d, "v", DUO_F32, n, 0);
	for (int64_t step = 1; step <= 3; step++) {
		const struct adamw_params a = {0.01f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.5f, step};
		ON_BOTH(d, s, "adamw")
		s.be->ops->adamw(s.be, duo_f32(s, p), duo_f32(s, g), duo_f32(s, m), duo_f32(s, v), spans, COUNT(spans), &a);
	}
	duo_check(d, p, TOL_ELEMENTWISE * 2);
	duo_check(d, m, TOL_ELEMENTWISE);
	duo_check(d, v, TOL_ELEMENTWISE);
}

/* Moments in 8 bits: p after three steps, and what the codes say. A moment that the two sides round
 * to neighbouring codes differs by one, and moves p the next time by a tenth of a step at most; few
 * do. */
static void adamw8(struct duo *d, int size) {
	enum { FIRST = 5 * MOMENTS_BLOCK };
	const float lr = 0.01f;
	const size_t n = sizes[size], cut = n / 3, cut2 = n - n / 4,
				 floats = moments_bytes(MOMENTS_INT8, n) / sizeof(float);
	duo_shape(d, "n %zu", n);
	const struct decay_span spans[] = {{0, cut, true}, {cut, cut2, false}, {cut2, n, true}};
	int p = duo_random(d, "p", DUO_F32, n, 1), g = duo_random(d, "g", DUO_F32, n, 1);
	float *zeros = zero_floats(floats);
	int m = duo_given(d, "m", DUO_F32, zeros, floats), v = duo_given(d, "v", DUO_F32, zeros, floats);
	free(zeros);
	for (int64_t step = 1; step <= 3; step++) {
		const struct adamw_params a = {lr, 0.9f, 0.95f, 1e-8f, 0.1f, 0.5f, step};
		ON_BOTH(d, s, "adamw8")
		s.be->ops->adamw8(s.be, duo_f32(s, p), duo_f32(s, g), duo_f32(s, m), duo_f32(s, v), spans, COUNT(spans), &a,
						  (struct moments_place){n, 0, FIRST});
		if (step == 1)
			duo_check(d, p, TOL_ELEMENTWISE * 2);
	}
	duo_check(d, p, lr * 0.3);
}

/* After a step, products see the new weights: with bf16 activations, those of the copy that the
 * step keeps. */
static void adamw_weights(struct duo *d, int size) {
	struct linear_shape k = {31, 5, (int)(sizes[size] / 5 + 1)};
	size_t n = (size_t)k.o * k.c;
	duo_shape(d, "n %d c %d o %d", k.n, k.c, k.o);
	const struct decay_span spans[] = {{0, n, true}};
	const struct adamw_params a = {0.5f, 0.9f, 0.95f, 1e-8f, 0.1f, 1, 1};
	int x = duo_random(d, "x", DUO_ACT, (size_t)k.n * k.c, 1), y = duo_random(d, "y", DUO_ACT, (size_t)k.n * k.o, 1);
	int p = duo_random(d, "p", DUO_F32, n, 1), g = duo_random(d, "g", DUO_F32, n, 1);
	int m = duo_random(d, "m", DUO_F32, n, 0), v = duo_random(d, "v", DUO_F32, n, 0);
	for (int step = 0; step < 2; step++) {
		ON_BOTH(d, s, step ? "adamw + forward" : "forward") {
			if (step)
				s.be->ops->adamw(s.be, duo_f32(s, p), duo_f32(s, g), duo_f32(s, m), duo_f32(s, v), spans, 1, &a);
			s.be->ops->linear_forward(s.be, duo_act(s, y), NULL, duo_act(s, x), duo_f32(s, p), NULL, k, LINEAR_NONE);
		}
		duo_check(d, y, duo_tolerance(d, TOL_PRODUCT, 2e-2));
	}
}

static void sum_squares(struct duo *d, int size) {
	int x = duo_random(d, "x", DUO_F32, sizes[size], 100);
	double sums[2] = {0, 0};
	duo_shape(d, "n %zu", sizes[size]);
	ON_BOTH(d, s, "sum of squares")
	sums[s.be == d->be] = s.be->ops->sum_squares(s.be, duo_f32(s, x), sizes[size]);
	duo_expect(d, fabs(sums[1] - sums[0]) <= 1e-12 * sums[0], "sums within 1e-12");
	duo_digest(d, &sums[1], sizeof sums[1]);
	d->checked++;
}

static void add_scaled(struct duo *d, int size) {
	size_t n = sizes[size];
	int y = duo_random(d, "y", DUO_F32, n, 1), z = duo_random(d, "z", DUO_F32, n, NAN);
	int a = duo_random(d, "a", DUO_F32, n, 3), b = duo_random(d, "b", DUO_F32, n, 3);
	duo_shape(d, "n %zu", n);
	ON_BOTH(d, s, "three sums") {
		s.be->ops->add_scaled(s.be, duo_f32(s, y), 0.75f, -0.5f, duo_f32(s, a), duo_f32(s, b), n);
		s.be->ops->add_scaled(s.be, duo_f32(s, z), 0, 2, duo_f32(s, a), NULL, n); /* what was there is not read */
		s.be->ops->add_scaled(s.be, duo_f32(s, b), 1, 0.25f, duo_f32(s, b), duo_f32(s, a), n); /* in place */
	}
	duo_check(d, y, TOL_ELEMENTWISE);
	duo_check(d, z, TOL_EXACT);
	duo_check(d, b, TOL_ELEMENTWISE);
}

static const struct product_shape products[] = {
	{1, 1, 1, false, false},        {3, 5, 7, false, true},        {17, 33, 1, true, false},
	{1, 127, 33, true, true},       {64, 64, 256, false, true},    {127, 129, 65, true, false},
	{130, 31, 257, true, true},     {256, 192, 512, false, false}, {768, 768, 3072, false, true},
	{1600, 1600, 6400, false, true}}; /* the last two: Muon on GPT-2 */
enum { LARGE_PRODUCTS = 2 };

static void product(struct duo *d, int size) {
	struct product_shape k = products[size];
	duo_shape(d, "m %d n %d k %d", k.m, k.n, k.k);
	int a = duo_random(d, "a", DUO_WEIGHT, (size_t)k.m * k.k, 1),
		b = duo_random(d, "b", DUO_WEIGHT, (size_t)k.k * k.n, 1);
	int c = duo_random(d, "c", DUO_F32, (size_t)k.m * k.n, 1);
	ON_BOTH(d, s, "product")
	s.be->ops->product(s.be, duo_f32(s, c), duo_f32(s, a), duo_f32(s, b), k);
	duo_check(d, c, TOL_PRODUCT);
}

const struct conformance_case cases_optimizer[] = {
	{"adamw", COUNT(sizes) - LARGE, adamw, 9, LARGE},
	{"adamw8", COUNT(sizes) - LARGE, adamw8, 9, LARGE},
	{"adamw_weights", COUNT(sizes) - LARGE, adamw_weights, 9, 0},
	{"sum_squares", COUNT(sizes) - LARGE, sum_squares, 9, LARGE},
	{"add_scaled", COUNT(sizes) - LARGE, add_scaled, 9, LARGE},
	{"product", COUNT(products) - LARGE_PRODUCTS, product, 6, LARGE_PRODUCTS},
	{0}};
