/* test_kernels_linear.c: linear layers of `cpu` against `ref`. */
#include "tests/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>

/* Around every border of the products: tiles of 14, 6 and 4 rows, panels of 32, 16 and 8 columns,
 * blocks of 140 rows, 512 and 1024 of k, 64 and 256 columns; slices of 64 columns where rows are
 * few, of one pass and of several. */
static const struct linear_shape shapes[] = {{1, 1, 1},      {3, 7, 17},      {17, 33, 3},    {33, 127, 129},
											 {127, 16, 64},  {150, 513, 70},  {5, 1030, 9},   {300, 31, 15},
											 {1100, 20, 34}, {15, 1100, 530}, {3, 2100, 17},  {2, 8, 3100},
											 {64, 128, 512}, {7, 1023, 17},   {1023, 33, 127}};

struct linear_arrays {
	float *y, *pre, *dx, *dw, *written, *db;
};

static struct linear_arrays run(struct backend *be, struct linear_shape s, float *x, const float *w, const float *bias,
								float *dy, float *below, enum linear_epilogue ep) {
	size_t no = (size_t)s.n * s.o, nc = (size_t)s.n * s.c, oc = (size_t)s.o * s.c;
	struct linear_arrays r = {zero_floats(no),         zero_floats(no),         zero_floats(nc),
							  random_floats(oc, 7, 1), random_floats(oc, 9, 1), random_floats((size_t)s.o, 8, 1)};
	bool gelu = ep == LINEAR_GELU;
	be->ops->linear_forward(be, as_act(r.y), gelu ? as_act(r.pre) : NULL, as_act(x), w, bias, s, ep);
	be->ops->linear_backward_input(be, as_act(r.dx), as_act(dy), w, gelu ? as_act(below) : NULL, s, ep);
	be->ops->linear_backward_weight(be, r.dw, bias ? r.db : NULL, as_act(dy), as_act(x), s, GRADIENT_ADD);
	be->ops->linear_backward_weight(be, r.written, NULL, as_act(dy), as_act(x), s, GRADIENT_WRITE);
	return r;
}

static void release(struct linear_arrays *r) {
	float *all[] = {r->y, r->pre, r->dx, r->dw, r->written, r->db};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

/* `exact`: inputs are rounded first, so that bf16 products are exact too; only then the epilogues'
 * own inputs remain. */
static void compare(struct backend *ref, struct backend *cpu, struct linear_shape s, bool exact) {
	size_t no = (size_t)s.n * s.o, nc = (size_t)s.n * s.c, oc = (size_t)s.o * s.c;
	float *x = random_floats(nc, 1, 1), *w = random_floats(oc, 2, 1), *bias = random_floats((size_t)s.o, 3, 1);
	float *dy = random_floats(no, 4, 1), *below = random_floats(nc, 5, 4);
	if (exact) {
		round_to_bf16(x, nc);
		round_to_bf16(w, oc);
		round_to_bf16(dy, no);
	}
	for (int variant = 0; variant < 4; variant++) {
		enum linear_epilogue ep = variant & 1 ? LINEAR_GELU : LINEAR_NONE;
		const float *b = variant & 2 ? bias : NULL;
		struct linear_arrays want = run(ref, s, x, w, b, dy, below, ep), got = run(cpu, s, x, w, b, dy, below, ep);
		check_close("y", got.y, want.y, no, TOL_PRODUCT);
		check_close("pre", got.pre, want.pre, no, TOL_PRODUCT);
		check_close("dx", got.dx, want.dx, nc, TOL_PRODUCT);
		check_close("dw", got.dw, want.dw, oc, TOL_PRODUCT);
		check_close("dw, written", got.written, want.written, oc, TOL_PRODUCT);
		check_close("dbias", got.db, want.db, (size_t)s.o, TOL_REDUCTION);
		release(&want);
		release(&got);
	}
	float *all[] = {x, w, bias, dy, below};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void linear_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	compare(ref, cpu, *(const struct linear_shape *)ctx, false);
}

static void bf16_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	compare(ref, cpu, *(const struct linear_shape *)ctx, true);
}

static void linear_equals_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for_each_variant(linear_body, &shapes[i]);
}

static void bf16_equals_ref_on_rounded_inputs(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for_each_bf16_variant(bf16_body, &shapes[i]);
}

static void near_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	struct linear_shape s = *(const struct linear_shape *)ctx;
	size_t no = (size_t)s.n * s.o, nc = (size_t)s.n * s.c, oc = (size_t)s.o * s.c;
	float *x = random_floats(nc, 1, 1), *w = random_floats(oc, 2, 1), *dy = random_floats(no, 4, 1);
	struct linear_arrays want = run(ref, s, x, w, NULL, dy, NULL, LINEAR_NONE);
	struct linear_arrays got = run(cpu, s, x, w, NULL, dy, NULL, LINEAR_NONE);
	check_rms("y", got.y, want.y, no, TOL_BF16_PRODUCT);
	check_rms("dx", got.dx, want.dx, nc, TOL_BF16_PRODUCT);
	check_rms("dw", got.dw, want.dw, oc, TOL_BF16_PRODUCT);
	check_rms("dw, written", got.written, want.written, oc, TOL_BF16_PRODUCT);
	release(&want);
	release(&got);
	float *all[] = {x, w, dy};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void bf16_is_near_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for_each_bf16_variant(near_body, &shapes[i]);
}

/* 1 + 2^-8 lies half way between two bf16 and goes to the even one, 1; a little more goes up to 1
 *   + 2^-7. */
static void rounding_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	struct linear_shape s = {1, 1, 3};
	float x = 1, w[3] = {1 + 0x1p-8f, 1 + 0x1p-8f + 0x1p-20f, -1 - 0x1p-8f}, y[3];
	cpu->ops->linear_forward(cpu, as_act(y), NULL, as_act(&x), w, NULL, s, LINEAR_NONE);
	assert_true(y[0] == 1 && y[1] == 1 + 0x1p-7f && y[2] == -1);
}

static void bf16_rounds_to_nearest_even(void **state) {
	(void)state;
	for_each_bf16_variant(rounding_body, NULL);
}

/* GELU alone, through a product with the 1 x 1 matrix 1: the whole range, both ends where it is 0
 * or x. */
static void gelu_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ctx;
	enum { N = 4001 };
	struct linear_shape s = {N, 1, 1};
	float one = 1, *x = zero_floats(N), *ones = zero_floats(N);
	for (int i = 0; i < N; i++) {
		x[i] = (float)(i - N / 2) * 0.01f;
		ones[i] = 1;
	}
	struct backend *be[2] = {ref, cpu};
	float *y[2], *pre[2], *dx[2];
	for (int i = 0; i < 2; i++) {
		y[i] = zero_floats(N);
		pre[i] = zero_floats(N);
		dx[i] = zero_floats(N);
		be[i]->ops->linear_forward(be[i], as_act(y[i]), as_act(pre[i]), as_act(x), &one, NULL, s, LINEAR_GELU);
		be[i]->ops->linear_backward_input(be[i], as_act(dx[i]), as_act(ones), &one, as_act(x), s, LINEAR_GELU);
	}
	check_close("gelu", y[1], y[0], N, TOL_ELEMENTWISE);
	check_close("gelu'", dx[1], dx[0], N, TOL_ELEMENTWISE);
	float *all[] = {x, ones, y[0], y[1], pre[0], pre[1], dx[0], dx[1]};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void gelu_is_accurate_over_its_range(void **state) {
	(void)state;
	for_each_variant(gelu_body, NULL);
}

static void nan_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	struct linear_shape s = {5, 9, 21};
	float *x = random_floats(45, 1, 1), *w = random_floats(189, 2, 1), *y = zero_floats(105), *pre = zero_floats(105);
	float *dx = zero_floats(45);
	x[2 * 9 + 4] = NAN;
	cpu->ops->linear_forward(cpu, as_act(y), as_act(pre), as_act(x), w, NULL, s, LINEAR_GELU);
	for (int i = 0; i < 105; i++)
		assert_int_equal(isnan(y[i]) != 0, i / 21 == 2);
	cpu->ops->linear_backward_input(cpu, as_act(dx), as_act(pre), w, as_act(x), s, LINEAR_GELU);
	for (int i = 0; i < 45; i++)
		assert_int_equal(isnan(dx[i]) != 0, i / 9 == 2);
	float *all[] = {x, w, y, pre, dx};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void nan_stays_in_its_row(void **state) {
	(void)state;
	for_each_variant(nan_body, NULL);
	for_each_bf16_variant(nan_body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(linear_equals_ref),
									   cmocka_unit_test(bf16_equals_ref_on_rounded_inputs),
									   cmocka_unit_test(bf16_is_near_ref),
									   cmocka_unit_test(bf16_rounds_to_nearest_even),
									   cmocka_unit_test(gelu_is_accurate_over_its_range),
									   cmocka_unit_test(nan_stays_in_its_row)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
