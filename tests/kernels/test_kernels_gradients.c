/* test_kernels_gradients.c: every backward operation of `ref` against central differences of its
 * forward: with L = sum(weights * output), dL/dx by (L(x + h) - L(x - h)) / 2h. */
#include "tests/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Runs the forward operation on the current inputs and returns L. */
typedef double loss_fn(struct backend *ref, const void *ctx);

static double weighted_sum(const float *out, const float *weights, size_t n) {
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (double)out[i] * (double)weights[i];
	return sum;
}

static void check_gradient(const char *what, struct backend *ref, loss_fn *loss, const void *ctx, float *x, size_t n,
						   const float *gradient) {
	const float h = 1e-2f;
	float *difference = zero_floats(n);
	for (size_t i = 0; i < n; i++) {
		float at = x[i];
		x[i] = at + h;
		double above = loss(ref, ctx), high = (double)x[i];
		x[i] = at - h;
		double below = loss(ref, ctx), low = (double)x[i];
		x[i] = at;
		difference[i] = (float)((above - below) / (high - low));
	}
	check_close(what, difference, gradient, n, TOL_DIFFERENCE);
	free(difference);
}

struct norm {
	float *x, *w, *bias, *dout, *out, *mean, *rstd;
	int n, c;
};

static double norm_loss(struct backend *ref, const void *ctx) {
	const struct norm *k = ctx;
	ref->ops->layernorm_forward(ref, as_act(k->out), k->mean, k->rstd, as_act(k->x), k->w, k->bias, k->n, k->c);
	return weighted_sum(k->out, k->dout, (size_t)k->n * k->c);
}

static void layernorm_gradients(void **state) {
	(void)state;
	enum { N = 3, C = 7 };
	struct backend *ref = open_ref();
	struct norm k = {random_floats(N * C, 1, 1),
					 random_floats(C, 2, 1),
					 random_floats(C, 3, 1),
					 random_floats(N * C, 4, 1),
					 zero_floats(N * C),
					 zero_floats(N),
					 zero_floats(N),
					 N,
					 C};
	float *dx = zero_floats(N * C), *dw = zero_floats(C), *db = zero_floats(C);
	norm_loss(ref, &k);
	ref->ops->layernorm_backward(ref, as_act(dx), dw, db, as_act(k.dout), as_act(k.x), k.w, k.mean, k.rstd, N, C);
	check_gradient("dx", ref, norm_loss, &k, k.x, N * C, dx);
	check_gradient("dw", ref, norm_loss, &k, k.w, C, dw);
	check_gradient("dbias", ref, norm_loss, &k, k.bias, C, db);
	float *all[] = {k.x, k.w, k.bias, k.dout, k.out, k.mean, k.rstd, dx, dw, db};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
	backend_close(ref);
}

struct rmsnorm {
	float *x, *w, *dout, *out, *rstd;
	int n, c;
};

static double rmsnorm_loss(struct backend *ref, const void *ctx) {
	const struct rmsnorm *k = ctx;
	ref->ops->rmsnorm_forward(ref, as_act(k->out), k->rstd, as_act(k->x), k->w, 1e-5f, k->n, k->c);
	return weighted_sum(k->out, k->dout, (size_t)k->n * k->c);
}

static void rmsnorm_gradients(void **state) {
	(void)state;
	enum { N = 3, C = 7 };
	struct backend *ref = open_ref();
	struct rmsnorm k = {.x = random_floats(N * C, 1, 1),
						.w = random_floats(C, 2, 1),
						.dout = random_floats(N * C, 3, 1),
						.out = zero_floats(N * C),
						.rstd = zero_floats(N),
						.n = N,
						.c = C};
	float *dx = zero_floats(N * C), *dw = zero_floats(C);
	rmsnorm_loss(ref, &k);
	ref->ops->rmsnorm_backward(ref, as_act(dx), dw, as_act(k.dout), as_act(k.x), k.w, k.rstd, N, C);
	check_gradient("dx", ref, rmsnorm_loss, &k, k.x, N * C, dx);
	check_gradient("dw", ref, rmsnorm_loss, &k, k.w, C, dw);
	float *all[] = {k.x, k.w, k.dout, k.out, k.rstd, dx, dw};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
	backend_close(ref);
}

enum { ROPE_B = 2, ROPE_T = 3, ROPE_HD = 6, ROPE_WIDTH = (2 + 2 * 1) * ROPE_HD, ROPE_FIRST = 2 };
static const struct attention_shape rope_shape = {ROPE_B, ROPE_T, 2, 1, ROPE_HD};

struct rope {
	float *qkv, *dout, *out, *table;
};

static double rope_loss(struct backend *ref, const void *ctx) {
	const struct rope *k = ctx;
	memcpy(k->out, k->qkv, ROPE_B * ROPE_T * ROPE_WIDTH * sizeof *k->out);
	ref->ops->rope(ref, as_act(k->out), k->table, rope_shape, ROPE_FIRST, false);
	return weighted_sum(k->out, k->dout, ROPE_B * ROPE_T * ROPE_WIDTH);
}

static void rope_gradients(void **state) {
	(void)state;
	enum { N = ROPE_B * ROPE_T * ROPE_WIDTH, ANGLES = (ROPE_FIRST + ROPE_T) * ROPE_HD / 2 };
	struct backend *ref = open_ref();
	struct rope k = {random_floats(N, 1, 1), random_floats(N, 2, 1), zero_floats(N), zero_floats(2 * ANGLES)};
	for (int i = 0; i < ANGLES; i++) {
		k.table[2 * i] = (float)cos(0.7 * i);
		k.table[2 * i + 1] = (float)sin(0.7 * i);
	}
	float *dqkv = copy_floats(k.dout, N);
	ref->ops->rope(ref, as_act(dqkv), k.table, rope_shape, ROPE_FIRST, true);
	check_gradient("dqkv", ref, rope_loss, &k, k.qkv, N, dqkv);
	float *all[] = {k.qkv, k.dout, k.out, k.table, dqkv};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
	backend_close(ref);
}

struct swiglu {
	float *gate_up, *dout, *out;
	int n, f;
};

static double swiglu_loss(struct backend *ref, const void *ctx) {
	const struct swiglu *k = ctx;
	ref->ops->swiglu_forward(ref, as_act(k->out), as_act(k->gate_up), k->n, k->f);
	return weighted_sum(k->out, k->dout, (size_t)k->n * k->f);
}

static void swiglu_gradients(void **state) {
	(void)state;
	enum { N = 4, F = 5 };
	struct backend *ref = open_ref();
	struct swiglu k = {random_floats(2 * N * F, 1, 3), random_floats(N * F, 2, 1), zero_floats(N * F), N, F};
	float *dgate_up = zero_floats(2 * N * F);
	ref->ops->swiglu_backward(ref, as_act(dgate_up), as_act(k.dout), as_act(k.gate_up), N, F);
	check_gradient("dgate_up", ref, swiglu_loss, &k, k.gate_up, 2 * N * F, dgate_up);
	free(k.gate_up);
	free(k.dout);
	free(k.out);
	free(dgate_up);
	backend_close(ref);
}

/* Two layers: a GELU after the first, so that the epilogues of both directions are used as a model
 * uses them. */
struct mlp {
	float *x, *w1, *b1, *w2, *b2, *dout, *pre, *mid, *out;
	struct linear_shape s1, s2;
};

static double mlp_loss(struct backend *ref, const void *ctx) {
	const struct mlp *k = ctx;
	ref->ops->linear_forward(ref, as_act(k->mid), as_act(k->pre), as_act(k->x), k->w1, k->b1, k->s1, LINEAR_GELU);
	ref->ops->linear_forward(ref, as_act(k->out), NULL, as_act(k->mid), k->w2, k->b2, k->s2, LINEAR_NONE);
	return weighted_sum(k->out, k->dout, (size_t)k->s2.n * k->s2.o);
}

static void linear_gradients(void **state) {
	(void)state;
	enum { N = 4, C = 5, H = 6, O = 3 };
	struct backend *ref = open_ref();
	struct mlp k = {.x = random_floats(N * C, 1, 1),
					.w1 = random_floats(H * C, 2, 1),
					.b1 = random_floats(H, 3, 1),
					.w2 = random_floats(O * H, 4, 1),
					.b2 = random_floats(O, 5, 1),
					.dout = random_floats(N * O, 6, 1),
					.pre = zero_floats(N * H),
					.mid = zero_floats(N * H),
					.out = zero_floats(N * O),
					.s1 = {N, C, H},
					.s2 = {N, H, O}};
	float *dmid = zero_floats(N * H), *dx = zero_floats(N * C), *dw1 = zero_floats(H * C), *db1 = zero_floats(H);
	float *dw2 = zero_floats(O * H), *db2 = zero_floats(O);
	mlp_loss(ref, &k);
	ref->ops->linear_backward_weight(ref, dw2, db2, as_act(k.dout), as_act(k.mid), k.s2, GRADIENT_ADD);
	ref->ops->linear_backward_input(ref, as_act(dmid), as_act(k.dout), k.w2, as_act(k.pre), k.s2, LINEAR_GELU);
	ref->ops->linear_backward_weight(ref, dw1, db1, as_act(dmid), as_act(k.x), k.s1, GRADIENT_WRITE);
	ref->ops->linear_backward_input(ref, as_act(dx), as_act(dmid), k.w1, NULL, k.s1, LINEAR_NONE);
	check_gradient("dx", ref, mlp_loss, &k, k.x, N * C, dx);
	check_gradient("dw1", ref, mlp_loss, &k, k.w1, H * C, dw1);
	check_gradient("db1", ref, mlp_loss, &k, k.b1, H, db1);
	check_gradient("dw2", ref, mlp_loss, &k, k.w2, O * H, dw2);
	check_gradient("db2", ref, mlp_loss, &k, k.b2, O, db2);
	float *all[] = {k.x, k.w1, k.b1, k.w2, k.b2, k.dout, k.pre, k.mid, k.out, dmid, dx, dw1, db1, dw2, db2};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
	backend_close(ref);
}

struct attention {
	float *qkv, *dout, *out, *lse;
	struct attention_shape s;
};

static double attention_loss(struct backend *ref, const void *ctx) {
	const struct attention *k = ctx;
	ref->ops->attention_forward(ref, as_act(k->out), k->lse, as_act(k->qkv), k->s);
	return weighted_sum(k->out, k->dout, (size_t)k->s.b * k->s.t * k->s.heads * k->s.head_dim);
}

static void attention_gradients(void **state) {
	(void)state;
	const struct attention_shape shapes[] = {{2, 5, 2, 2, 3}, {1, 6, 4, 2, 4}, {1, 4, 3, 1, 2}};
	struct backend *ref = open_ref();
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		struct attention_shape s = shapes[i];
		size_t n = (size_t)s.b * s.t, n_out = n * s.heads * s.head_dim;
		size_t n_qkv = n * (size_t)(s.heads + 2 * s.kv_heads) * s.head_dim;
		struct attention k = {random_floats(n_qkv, 1, 1), random_floats(n_out, 2, 1), zero_floats(n_out),
							  zero_floats(n * s.heads), s};
		float *dqkv = zero_floats(n_qkv);
		attention_loss(ref, &k);
		ref->ops->attention_backward(ref, as_act(dqkv), as_act(k.dout), as_act(k.qkv), as_act(k.out), k.lse, s);
		check_gradient("dqkv", ref, attention_loss, &k, k.qkv, n_qkv, dqkv);
		free(k.qkv);
		free(k.dout);
		free(k.out);
		free(k.lse);
		free(dqkv);
	}
	backend_close(ref);
}

enum { HEAD_N = 5, HEAD_C = 4, HEAD_V = 7, HEAD_VP = 8 };

struct head {
	float *x, *wte;
	const int32_t *targets;
};

static double head_loss(struct backend *ref, const void *ctx) {
	const struct head *k = ctx;
	float losses[HEAD_N];
	double sum = 0;
	ref->ops->classifier(ref, losses, NULL, NULL, as_act(k->x), k->wte, k->targets, HEAD_N, HEAD_C, HEAD_V, HEAD_VP, 1,
						 GRADIENT_ADD);
	for (int i = 0; i < HEAD_N; i++)
		sum += (double)losses[i];
	return sum * 0.5;
}

static void classifier_gradients(void **state) {
	(void)state;
	struct backend *ref = open_ref();
	const int32_t targets[HEAD_N] = {0, 6, -1, 3, 3};
	struct head k = {random_floats(HEAD_N * HEAD_C, 1, 1), random_floats(HEAD_VP * HEAD_C, 2, 1), targets};
	float *dx = zero_floats(HEAD_N * HEAD_C), *dwte = zero_floats(HEAD_VP * HEAD_C), losses[HEAD_N];
	ref->ops->classifier(ref, losses, as_act(dx), dwte, as_act(k.x), k.wte, targets, HEAD_N, HEAD_C, HEAD_V, HEAD_VP,
						 0.5f, GRADIENT_ADD);
	check_gradient("dx", ref, head_loss, &k, k.x, HEAD_N * HEAD_C, dx);
	check_gradient("dwte", ref, head_loss, &k, k.wte, HEAD_VP * HEAD_C, dwte);
	free(k.x);
	free(k.wte);
	free(dx);
	free(dwte);
	backend_close(ref);
}

struct embedding {
	float *wte, *wpe, *dout, *out;
	const int32_t *tokens;
};

static double embedding_loss(struct backend *ref, const void *ctx) {
	const struct embedding *k = ctx;
	ref->ops->embed_forward(ref, as_act(k->out), k->tokens, k->wte, k->wpe, 2, 3, 4);
	return weighted_sum(k->out, k->dout, 24);
}

static void embedding_gradients(void **state) {
	(void)state;
	struct backend *ref = open_ref();
	const int32_t tokens[6] = {1, 1, 4, 0, 1, 2};
	struct embedding k = {random_floats(20, 1, 1), random_floats(12, 2, 1), random_floats(24, 3, 1), zero_floats(24),
						  tokens};
	float *dwte = zero_floats(20), *dwpe = zero_floats(12);
	ref->ops->embed_backward(ref, dwte, dwpe, tokens, as_act(k.dout), 2, 3, 4);
	check_gradient("dwte", ref, embedding_loss, &k, k.wte, 20, dwte);
	check_gradient("dwpe", ref, embedding_loss, &k, k.wpe, 12, dwpe);
	float *all[] = {k.wte, k.wpe, k.dout, k.out, dwte, dwpe};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
	backend_close(ref);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(layernorm_gradients),  cmocka_unit_test(rmsnorm_gradients),
									   cmocka_unit_test(rope_gradients),       cmocka_unit_test(swiglu_gradients),
									   cmocka_unit_test(linear_gradients),     cmocka_unit_test(attention_gradients),
									   cmocka_unit_test(classifier_gradients), cmocka_unit_test(embedding_gradients)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
