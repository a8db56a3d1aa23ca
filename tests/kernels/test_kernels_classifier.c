/* test_kernels_classifier.c: the fused output head of `cpu` against `ref`. */
#include "tests/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>

struct head_case {
	int n, c, v, vp;
};

static const struct head_case cases[] = {{1, 1, 1, 1},       {1, 3, 2, 64},   {7, 17, 33, 40},
										 {33, 64, 127, 128}, {130, 8, 3, 16}, {1030, 5, 300, 320}};

struct head_arrays {
	float *losses, *dx, *dwte, *logits;
};

static struct head_arrays run(struct backend *be, const struct head_case *k, float *x, const float *wte,
							  const int32_t *targets, bool grad, enum gradient_mode mode) {
	size_t n = (size_t)k->n, c = (size_t)k->c;
	struct head_arrays r = {random_floats(n, 9, 1), zero_floats(n * c), random_floats((size_t)k->vp * c, 7, 0.01f),
							zero_floats(n * k->v)};
	be->ops->classifier(be, r.losses, grad ? as_act(r.dx) : NULL, grad ? r.dwte : NULL, as_act(x), wte, targets, k->n,
						k->c, k->v, k->vp, 0.25f, mode);
	be->ops->logits(be, r.logits, as_act(x), wte, k->n, k->c, k->v);
	return r;
}

static void release(struct head_arrays *r) {
	free(r->losses);
	free(r->dx);
	free(r->dwte);
	free(r->logits);
}

static void head_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	const struct head_case *k = ctx;
	size_t n = (size_t)k->n, c = (size_t)k->c, vc = (size_t)k->vp * c;
	float *x = random_floats(n * c, 1, 2), *wte = random_floats(vc, 2, 1);
	int32_t *targets = random_tokens(n, 3, k->v);
	for (size_t i = 1; i < n; i += 3)
		targets[i] = -1;
	for (int grad = 0; grad < 3; grad++) {
		const enum gradient_mode mode = grad == 2 ? GRADIENT_WRITE : GRADIENT_ADD;
		struct head_arrays want = run(ref, k, x, wte, targets, grad > 0, mode);
		struct head_arrays got = run(cpu, k, x, wte, targets, grad > 0, mode);
		check_close("logits", got.logits, want.logits, n * k->v, TOL_PRODUCT);
		check_close("losses", got.losses, want.losses, n, TOL_PRODUCT);
		check_close("dx", got.dx, want.dx, n * c, k->v > 1000000 ? TOL_LONG_PRODUCT : TOL_PRODUCT);
		check_close("dwte", got.dwte, want.dwte, vc, TOL_PRODUCT);
		for (size_t i = 1; i < n; i += 3)
			assert_true(got.losses[i] == 0);
		/* Padded rows get no gradient. */
		float *start = grad == 2 ? zero_floats(vc) : random_floats(vc, 7, 0.01f);
		check_same("dwte of padding", got.dwte + (size_t)k->v * c, start + (size_t)k->v * c, vc - (size_t)k->v * c);
		free(start);
		release(&want);
		release(&got);
	}
	free(x);
	free(wte);
	free(targets);
}

static void classifier_equals_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for_each_variant(head_body, &cases[i]);
}

static void bf16_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	const struct head_case *k = ctx;
	size_t n = (size_t)k->n, c = (size_t)k->c, vc = (size_t)k->vp * c;
	float *x = random_floats(n * c, 1, 2), *wte = random_floats(vc, 2, 1);
	int32_t *targets = random_tokens(n, 3, k->v);
	struct head_arrays want = run(ref, k, x, wte, targets, true, GRADIENT_ADD);
	struct head_arrays got = run(cpu, k, x, wte, targets, true, GRADIENT_ADD);
	check_rms("logits", got.logits, want.logits, n * k->v, TOL_BF16_PRODUCT);
	check_rms("losses", got.losses, want.losses, n, TOL_BF16_PRODUCT);
	check_rms("dx", got.dx, want.dx, n * c, TOL_BF16_SOFTMAX);
	check_rms("dwte", got.dwte, want.dwte, vc, TOL_BF16_SOFTMAX);
	release(&want);
	release(&got);
	free(x);
	free(wte);
	free(targets);
}

static void bf16_is_near_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for_each_bf16_variant(bf16_body, &cases[i]);
}

/* A vocabulary so large that 64 MiB of logits hold fewer tokens than there are: several chunks. */
static void chunks_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ctx;
	const struct head_case k = {9, 2, 3000000, 3000000};
	head_body(ref, cpu, &k);
}

static void chunks_equal_ref(void **state) {
	(void)state;
	struct backend *ref = open_ref(), *cpu = open_variant(&(struct variant){"auto", 2, CHOSEN, DTYPE_F32});
	chunks_body(ref, cpu, NULL);
	backend_close(ref);
	backend_close(cpu);
}

static void nan_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	enum { N = 4, C = 8, V = 50 };
	float *x = random_floats(N * C, 1, 1), *wte = random_floats(V * C, 2, 1), losses[N];
	int32_t targets[N] = {0, 1, 2, -1};
	x[C] = x[3 * C] = NAN;
	cpu->ops->classifier(cpu, losses, NULL, NULL, as_act(x), wte, targets, N, C, V, V, 1, GRADIENT_ADD);
	assert_false(isnan(losses[0]));
	assert_true(isnan(losses[1]));
	assert_false(isnan(losses[2]));
	assert_true(losses[3] == 0);
	free(x);
	free(wte);
}

static void nan_shows_in_the_loss_of_its_token(void **state) {
	(void)state;
	for_each_variant(nan_body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(classifier_equals_ref), cmocka_unit_test(bf16_is_near_ref),
									   cmocka_unit_test(chunks_equal_ref),
									   cmocka_unit_test(nan_shows_in_the_loss_of_its_token)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
