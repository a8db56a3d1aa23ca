/* cases_head.c: the fused classifier, and logits. */
#include "tests/kernels/conformance/cases.h"

#include <math.h>
#include <stdlib.h>

static const struct {
	int n, c, v, vp;
} sizes[] = {{1, 1, 1, 1},
			 {1, 3, 2, 64},
			 {7, 17, 33, 40},
			 {3, 64, 127, 128},
			 {17, 8, 300, 384},
			 {33, 16, 1023, 1024},
			 {127, 8, 33, 33},
			 {5, 8, 5000, 5008},
			 /* GPT-2 124M: one chunk of logits, and two */
			 {64, 768, 50257, 50304},
			 {3000, 768, 50257, 50304}};
enum { LARGE = 2, LARGE_LOGITS = 1 };

/* Keeps logits of many channels near 1, as those of a model are: of large ones bf16 loses the
 * probabilities. */
static float wte_amplitude(int c) {
	return c < 256 ? 1 : 0.05f;
}

static void classifier(struct duo *d, int size) {
	int n = sizes[size].n, c = sizes[size].c, v = sizes[size].v, vp = sizes[size].vp;
	size_t nc = (size_t)n * c, vc = (size_t)vp * c;
	duo_shape(d, "n %d c %d v %d", n, c, v);
	int32_t *targets = random_tokens((size_t)n, d->seed++, v);
	for (int i = 1; i < n; i += 3)
		targets[i] = -1;
	for (int gradient = 0; gradient < 3; gradient++) {
		int x = duo_random(d, "x", DUO_ACT, nc, 2), wte = duo_random(d, "wte", DUO_WEIGHT, vc, wte_amplitude(c));
		int dx = gradient ? duo_random(d, "dx", DUO_ACT, nc, 1) : -1;
		int dwte = gradient ? duo_random(d, "dwte", DUO_F32, vc, 0.01f) : -1;
		float *losses[2] = {zero_floats((size_t)n), zero_floats((size_t)n)};
		const enum gradient_mode mode = gradient == 2 ? GRADIENT_WRITE : GRADIENT_ADD;
		ON_BOTH(d, s, gradient == 2 ? "both ways, dwte written" : gradient ? "both ways" : "forward")
		s.be->ops->classifier(s.be, losses[s.be == d->be], duo_act(s, dx), duo_f32(s, dwte), duo_act(s, x),
							  duo_f32(s, wte), targets, n, c, v, vp, 0.25f, mode);
		duo_check_host(d, "losses", losses[1], losses[0], (size_t)n, duo_tolerance(d, TOL_PRODUCT, 2e-2));
		for (int i = 1; i < n; i += 3)
			duo_expect(d, losses[1][i] == 0, "the loss of a token without a target is 0");
		if (gradient) {
			double bf16 = size < COUNT(sizes) - LARGE ? 4e-2 : 8e-2; /* of 38 million numbers, some are 6 sigma off */
			duo_check(d, dx, duo_tolerance(d, TOL_PRODUCT, bf16));
			duo_check(d, dwte, duo_tolerance(d, TOL_PRODUCT, bf16));
		}
		free(losses[0]);
		free(losses[1]);
		duo_clear(d);
	}
	free(targets);
}

static void logits(struct duo *d, int size) {
	int n = sizes[size].n, c = sizes[size].c, v = sizes[size].v;
	duo_shape(d, "n %d c %d v %d", n, c, v);
	int x = duo_random(d, "x", DUO_ACT, (size_t)n * c, 2),
		wte = duo_random(d, "wte", DUO_WEIGHT, (size_t)v * c, wte_amplitude(c));
	float *out[2] = {zero_floats((size_t)n * v), zero_floats((size_t)n * v)};
	ON_BOTH(d, s, "logits")
	s.be->ops->logits(s.be, out[s.be == d->be], duo_act(s, x), duo_f32(s, wte), n, c, v);
	duo_check_host(d, "logits", out[1], out[0], (size_t)n * v, TOL_PRODUCT);
	free(out[0]);
	free(out[1]);
}

/* A NaN shows in the loss of its token, and in no other's. */
static void nan_token(struct duo *d, int size) {
	enum { N = 4, C = 8 };
	const int v = 50 + 1000 * size;
	const int32_t targets[N] = {0, 1, 2, -1};
	duo_shape(d, "n %d c %d v %d", N, C, v);
	float *values = random_floats(N * C, 1, 1), losses[N];
	values[C] = values[3 * C] = NAN;
	int x = duo_given(d, "x", DUO_ACT, values, N * C), wte = duo_random(d, "wte", DUO_WEIGHT, (size_t)v * C, 1);
	struct duo_side s = {.duo = d, .be = d->be};
	s.be->ops->classifier(s.be, losses, NULL, NULL, duo_act(s, x), duo_f32(s, wte), targets, N, C, v, v, 1,
						  GRADIENT_ADD);
	duo_expect(d, isfinite(losses[0]) && isnan(losses[1]) && isfinite(losses[2]) && losses[3] == 0,
			   "a NaN shows in the loss of its token alone");
	free(values);
}

const struct conformance_case cases_head[] = {{"classifier", COUNT(sizes) - LARGE, classifier, 5, LARGE},
											  {"logits", COUNT(sizes) - LARGE, logits, 5, LARGE_LOGITS},
											  {"nan_token", 2, nan_token, 1, 0},
											  {0}};
