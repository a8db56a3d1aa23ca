/* cases_optimizer.c: AdamW, and the sum of squares. */
#include "tests/kernels/conformance/cases.h"

#include <math.h>

static const size_t sizes[] = {1, 3, 7, 17, 33, 39, 127, 1023, 1024, 65536, 200001};

static void adamw(struct duo *d, int size) {
	size_t n = sizes[size], cut = n / 3, cut2 = n - n / 4;
	const struct decay_span spans[] = {{0, cut, true}, {cut, cut2, false}, {cut2, n, true}};
	int p = duo_random(d, "p", DUO_F32, n, 1), g = duo_random(d, "g", DUO_F32, n, 1);
	int m = duo_random(d, "m", DUO_F32, n, 0), v = duo_random(d, "v", DUO_F32, n, 0);
	for (int64_t step = 1; step <= 3; step++) {
		const struct adamw_params a = {0.01f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.5f, step};
		ON_BOTH(d, s)
		s.be->ops->adamw(s.be, duo_f32(s, p), duo_f32(s, g), duo_f32(s, m), duo_f32(s, v), spans, COUNT(spans), &a);
	}
	duo_check(d, p, TOL_ELEMENTWISE * 2);
	duo_check(d, m, TOL_ELEMENTWISE);
	duo_check(d, v, TOL_ELEMENTWISE);
}

/* After a step, products see the new weights: with bf16 activations, those of the copy that the step keeps. */
static void adamw_weights(struct duo *d, int size) {
	struct linear_shape k = {31, 5, (int)(sizes[size] / 5 + 1)};
	size_t n = (size_t)k.o * k.c;
	const struct decay_span spans[] = {{0, n, true}};
	const struct adamw_params a = {0.5f, 0.9f, 0.95f, 1e-8f, 0.1f, 1, 1};
	int x = duo_random(d, "x", DUO_ACT, (size_t)k.n * k.c, 1), y = duo_random(d, "y", DUO_ACT, (size_t)k.n * k.o, 1);
	int p = duo_random(d, "p", DUO_F32, n, 1), g = duo_random(d, "g", DUO_F32, n, 1);
	int m = duo_random(d, "m", DUO_F32, n, 0), v = duo_random(d, "v", DUO_F32, n, 0);
	for (int step = 0; step < 2; step++) {
		ON_BOTH(d, s) {
			if (step)
				s.be->ops->adamw(s.be, duo_f32(s, p), duo_f32(s, g), duo_f32(s, m), duo_f32(s, v), spans, 1, &a);
			s.be->ops->linear_forward(s.be, duo_act(s, y), NULL, duo_act(s, x), duo_f32(s, p), NULL, k, LINEAR_NONE);
		}
		duo_check(d, y, duo_tolerance(d, TOL_PRODUCT, 2e-2));
	}
}

static void sum_squares(struct duo *d, int size) {
	int x = duo_random(d, "x", DUO_F32, sizes[size], 100);
	double sums[2];
	ON_BOTH(d, s)
	sums[s.be == d->be] = s.be->ops->sum_squares(s.be, duo_f32(s, x), sizes[size]);
	assert_true(fabs(sums[1] - sums[0]) <= 1e-12 * sums[0]);
	duo_digest(d, &sums[1], sizeof sums[1]);
	d->checked++;
}

const struct conformance_case cases_optimizer[] = {{"adamw", COUNT(sizes), adamw, 9},
												   {"adamw_weights", COUNT(sizes), adamw_weights, 9},
												   {"sum_squares", COUNT(sizes), sum_squares, 9},
												   {0}};
