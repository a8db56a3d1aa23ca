/* test_kernels_attention.c: attention of `cpu` against `ref`. */
#include "tests/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>

/* b, t, heads, kv_heads, head_dim: times around the query blocks (32, 16, 8) and the key block
 * (128), head dimensions that are no multiple of a vector or more than a slice (64, 128), and
 * grouped heads. */
static const struct attention_shape shapes[] = {
	{1, 1, 1, 1, 1},    {1, 3, 2, 2, 8},    {2, 17, 3, 3, 16},  {1, 33, 2, 1, 33},  {2, 65, 4, 2, 64},
	{1, 127, 2, 2, 7},  {1, 129, 1, 1, 40}, {1, 200, 6, 2, 24}, {3, 31, 4, 1, 100}, {1, 300, 1, 1, 16},
	{1, 127, 8, 2, 32}, {1, 47, 2, 1, 128}, {2, 19, 3, 1, 163}, {1, 1023, 2, 1, 3}};

static size_t qkv_count(struct attention_shape s) {
	return (size_t)s.b * s.t * (size_t)(s.heads + 2 * s.kv_heads) * s.head_dim;
}

static size_t out_count(struct attention_shape s) {
	return (size_t)s.b * s.t * s.heads * s.head_dim;
}

static size_t lse_count(struct attention_shape s) {
	return (size_t)s.b * s.heads * s.t;
}

struct attention_arrays {
	float *out, *lse, *dqkv;
};

/* Backward takes ref's own out and lse in both, so that its errors are its own. */
static struct attention_arrays run(struct backend *be, struct attention_shape s, float *qkv, float *dout,
								   const struct attention_arrays *forward) {
	struct attention_arrays r = {zero_floats(out_count(s)), zero_floats(lse_count(s)), zero_floats(qkv_count(s))};
	be->ops->attention_forward(be, as_act(r.out), r.lse, as_act(qkv), s);
	const struct attention_arrays *f = forward ? forward : &r;
	be->ops->attention_backward(be, as_act(r.dqkv), as_act(dout), as_act(qkv), as_act(f->out), f->lse, s);
	return r;
}

static void release(struct attention_arrays *r) {
	free(r->out);
	free(r->lse);
	free(r->dqkv);
}

static void attention_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	struct attention_shape s = *(const struct attention_shape *)ctx;
	float *qkv = random_floats(qkv_count(s), 1, 2), *dout = random_floats(out_count(s), 2, 1);
	struct attention_arrays want = run(ref, s, qkv, dout, NULL), got = run(cpu, s, qkv, dout, &want);
	check_close("out", got.out, want.out, out_count(s), TOL_ATTENTION);
	check_close("lse", got.lse, want.lse, lse_count(s), TOL_REDUCTION);
	check_close("dqkv", got.dqkv, want.dqkv, qkv_count(s), TOL_ATTENTION);
	release(&want);
	release(&got);
	free(qkv);
	free(dout);
}

static void check_arrays_rms(const struct attention_arrays *got, const struct attention_arrays *want,
							 struct attention_shape s, double lse_tolerance, double tolerance) {
	check_rms("lse", got->lse, want->lse, lse_count(s), lse_tolerance);
	check_rms("out", got->out, want->out, out_count(s), tolerance);
	check_rms("dqkv", got->dqkv, want->dqkv, qkv_count(s), tolerance);
}

/* Against ref, and against the instruction set that every machine has. */
static void bf16_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	struct attention_shape s = *(const struct attention_shape *)ctx;
	struct backend *portable = open_variant(&(struct variant){"portable", 1, OWN, DTYPE_BF16});
	float *qkv = random_floats(qkv_count(s), 1, 2), *dout = random_floats(out_count(s), 2, 1);
	struct attention_arrays want = run(ref, s, qkv, dout, NULL), got = run(cpu, s, qkv, dout, &want);
	struct attention_arrays same = run(portable, s, qkv, dout, &want);
	check_arrays_rms(&got, &want, s, TOL_BF16_PRODUCT, TOL_BF16_ATTENTION);
	check_arrays_rms(&got, &same, s, TOL_BF16_SAME, TOL_BF16_SAME);
	release(&want);
	release(&got);
	release(&same);
	free(qkv);
	free(dout);
	backend_close(portable);
}

static void attention_equals_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for_each_variant(attention_body, &shapes[i]);
}

static void bf16_is_near_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for_each_bf16_variant(bf16_body, &shapes[i]);
}

static void large_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ctx;
	struct attention_shape s = {1, 40, 2, 2, 16};
	float *qkv = random_floats(qkv_count(s), 1, 60), *dout = random_floats(out_count(s), 2, 1);
	struct attention_arrays want = run(ref, s, qkv, dout, NULL), got = run(cpu, s, qkv, dout, &want);
	/* Scores of some thousands: their fp32 rounding alone moves probabilities by 1e-4. */
	check_close("out", got.out, want.out, out_count(s), 1e-2);
	check_close("lse", got.lse, want.lse, lse_count(s), TOL_REDUCTION);
	release(&want);
	release(&got);
	free(qkv);
	free(dout);
}

static void large_scores_do_not_overflow(void **state) {
	(void)state;
	for_each_variant(large_body, NULL);
}

/* Causality to the bit: what comes later has no influence on what came before. */
static void causal_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	struct attention_shape s = {1, 75, 2, 2, 24};
	enum { KNOWN = 41 };
	size_t width = 3 * 2 * 24, known = (size_t)KNOWN * 2 * 24;
	float *qkv = random_floats(qkv_count(s), 1, 1), *other = copy_floats(qkv, qkv_count(s));
	for (size_t i = KNOWN * width; i < qkv_count(s); i++)
		other[i] = 1e6f;
	float *out[2] = {zero_floats(out_count(s)), zero_floats(out_count(s))}, *lse = zero_floats(lse_count(s));
	cpu->ops->attention_forward(cpu, as_act(out[0]), lse, as_act(qkv), s);
	cpu->ops->attention_forward(cpu, as_act(out[1]), lse, as_act(other), s);
	check_same("out before the change", out[1], out[0], known);
	float *all[] = {qkv, other, out[0], out[1], lse};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void later_tokens_have_no_influence(void **state) {
	(void)state;
	for_each_variant(causal_body, NULL);
	for_each_bf16_variant(causal_body, NULL);
}

static void nan_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	struct attention_shape s = {1, 50, 2, 2, 16};
	float *qkv = random_floats(qkv_count(s), 1, 1), *out = zero_floats(out_count(s)), *lse = zero_floats(lse_count(s));
	size_t width = 96;
	qkv[45 * width + 3] = NAN; /* query of head 0, token 45 */
	cpu->ops->attention_forward(cpu, as_act(out), lse, as_act(qkv), s);
	for (int t = 0; t < s.t; t++)
		for (int i = 0; i < 32; i++)
			assert_int_equal(isnan(out[t * 32 + i]) != 0, t == 45 && i < 16);
	assert_true(isnan(lse[45]));
	free(qkv);
	free(out);
	free(lse);
}

static void nan_of_a_query_stays_with_it(void **state) {
	(void)state;
	for_each_variant(nan_body, NULL);
	for_each_bf16_variant(nan_body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(attention_equals_ref), cmocka_unit_test(bf16_is_near_ref),
									   cmocka_unit_test(large_scores_do_not_overflow),
									   cmocka_unit_test(later_tokens_have_no_influence),
									   cmocka_unit_test(nan_of_a_query_stays_with_it)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
