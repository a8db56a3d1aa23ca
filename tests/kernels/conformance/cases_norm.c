/* cases_norm.c: LayerNorm and RMSNorm, with and without a residual, forward and backward. */
#include "tests/kernels/conformance/cases.h"

struct norm_size {
	int n, c;
};

/* Rows of single elements and of vectors; shorter than a warp; of several warps; longer than one
 * run per thread. */
static const struct norm_size sizes[] = {
	{1, 1},    {3, 7},    {17, 33},   {7, 64},    {33, 127},   {65, 96},    {3, 1023}, {9, 2112},
	{3, 4095}, {2, 8192}, {127, 256}, {1023, 17}, {4096, 768}, {2048, 1600}}; /* the last two: GPT-2 124M and 1558M */
enum { LARGE = 2 };

struct norm_arrays {
	int a, b, sum, w, bias, out, mean, rstd, dout, dx, dw, dbias;
};

static struct norm_arrays make(struct duo *d, struct norm_size k) {
	size_t n = (size_t)k.n, c = (size_t)k.c, nc = n * c;
	return (struct norm_arrays){
		.a = duo_random(d, "a", DUO_ACT, nc, 1),
		.b = duo_random(d, "b", DUO_ACT, nc, 1),
		.sum = duo_random(d, "sum", DUO_ACT, nc, 1),
		.w = duo_random(d, "w", DUO_F32, c, 1),
		.bias = duo_random(d, "bias", DUO_F32, c, 1),
		.out = duo_random(d, "out", DUO_ACT, nc, 1),
		.mean = duo_random(d, "mean", DUO_F32, n, 1),
		.rstd = duo_random(d, "rstd", DUO_F32, n, 1),
		.dout = duo_random(d, "dout", DUO_ACT, nc, 1),
		.dx = duo_random(d, "dx", DUO_ACT, nc, 1),
		.dw = duo_random(d, "dw", DUO_F32, c, 1),
		.dbias = duo_random(d, "dbias", DUO_F32, c, 1),
	};
}

static void forward(struct duo_side s, struct norm_arrays x, struct norm_size k, bool layer, bool residual) {
	const struct backend_ops *ops = s.be->ops;
	act_t *sum = duo_act(s, x.sum), *out = duo_act(s, x.out), *a = duo_act(s, x.a), *b = duo_act(s, x.b);
	float *mean = duo_f32(s, x.mean), *rstd = duo_f32(s, x.rstd), *w = duo_f32(s, x.w), *bias = duo_f32(s, x.bias);
	if (layer && residual)
		ops->residual_layernorm_forward(s.be, sum, out, mean, rstd, a, b, w, bias, k.n, k.c);
	else if (layer)
		ops->layernorm_forward(s.be, out, mean, rstd, a, w, bias, k.n, k.c);
	else if (residual)
		ops->residual_rmsnorm_forward(s.be, sum, out, rstd, a, b, w, 1e-5f, k.n, k.c);
	else
		ops->rmsnorm_forward(s.be, out, rstd, a, w, 1e-5f, k.n, k.c);
}

static void backward(struct duo_side s, struct norm_arrays x, struct norm_size k, bool layer) {
	act_t *dx = duo_act(s, x.dx), *dout = duo_act(s, x.dout), *a = duo_act(s, x.a);
	float *dw = duo_f32(s, x.dw), *w = duo_f32(s, x.w), *rstd = duo_f32(s, x.rstd);
	if (layer)
		s.be->ops->layernorm_backward(s.be, dx, dw, duo_f32(s, x.dbias), dout, a, w, duo_f32(s, x.mean), rstd, k.n,
									  k.c);
	else
		s.be->ops->rmsnorm_backward(s.be, dx, dw, dout, a, w, rstd, k.n, k.c);
}

/* A bf16 sum is the rounded one, and the norm is of that: one channel, or nearly equal ones, can
 * lose all digits. */
static void check_forward(struct duo *d, struct norm_arrays x, bool layer, bool residual) {
	double statistics = residual ? duo_tolerance(d, TOL_REDUCTION, 1e-2) : TOL_REDUCTION;
	if (residual)
		duo_check(d, x.sum, TOL_EXACT);
	if (layer)
		duo_check(d, x.mean, statistics);
	duo_check(d, x.rstd, statistics);
	duo_check(d, x.out, statistics);
}

static void norm(struct duo *d, int size, bool layer) {
	struct norm_size k = sizes[size];
	duo_shape(d, "n %d c %d", k.n, k.c);
	for (int residual = 0; residual < 2; residual++) {
		struct norm_arrays x = make(d, k);
		ON_BOTH(d, s, residual ? "residual + forward" : "forward")
		forward(s, x, k, layer, residual);
		if (!(residual && k.c < 8 && duo_is_bf16(d)))
			check_forward(d, x, layer, residual);
		duo_clear(d);
	}
	struct norm_arrays x = make(d, k);
	ON_BOTH(d, s, "forward")
	forward(s, x, k, layer, false);
	duo_follow(d, x.mean);
	duo_follow(d, x.rstd);
	ON_BOTH(d, s, "backward")
	backward(s, x, k, layer);
	duo_check(d, x.dx, TOL_REDUCTION);
	duo_check(d, x.dw, TOL_REDUCTION);
	if (layer)
		duo_check(d, x.dbias, TOL_REDUCTION);
}

static void layernorm(struct duo *d, int size) {
	norm(d, size, true);
}

static void rmsnorm(struct duo *d, int size) {
	norm(d, size, false);
}

const struct conformance_case cases_norm[] = {{"layernorm", COUNT(sizes) - LARGE, layernorm, 6, LARGE},
											  {"rmsnorm", COUNT(sizes) - LARGE, rmsnorm, 6, LARGE},
											  {0}};
