/* cases_linear.c: linear layers with every epilogue. */
#include "tests/kernels/conformance/cases.h"

static const struct linear_shape sizes[] = {{1, 1, 1},
											{3, 7, 17},
											{17, 33, 3},
											{33, 64, 129},
											{127, 17, 33},
											{64, 96, 32},
											{1023, 7, 16},
											{7, 1023, 17},
											/* the four layers of a block of GPT-2 124M, and a wide
											 * one of 1558M */
											{4096, 768, 2304},
											{4096, 768, 768},
											{4096, 768, 3072},
											{4096, 3072, 768},
											{2048, 1600, 6400}};
enum { LARGE = 5 };

static void linear(struct duo *d, int size) {
	struct linear_shape k = sizes[size];
	size_t no = (size_t)k.n * k.o, nc = (size_t)k.n * k.c, oc = (size_t)k.o * k.c;
	duo_shape(d, "n %d c %d o %d", k.n, k.c, k.o);
	for (int variant = size < COUNT(sizes) - LARGE ? 0 : 2; variant < 4; variant++) {
		enum linear_epilogue ep = variant & 1 ? LINEAR_GELU : LINEAR_NONE;
		int x = duo_random(d, "x", DUO_ACT, nc, 1), w = duo_random(d, "w", DUO_WEIGHT, oc, 1);
		int bias = variant & 2 ? duo_random(d, "bias", DUO_WEIGHT, (size_t)k.o, 1) : -1;
		int dbias = variant & 2 ? duo_random(d, "dbias", DUO_F32, (size_t)k.o, 1) : -1;
		int dy = duo_random(d, "dy", DUO_ACT, no, 1), y = duo_random(d, "y", DUO_ACT, no, 1);
		int pre = ep == LINEAR_GELU ? duo_random(d, "pre", DUO_ACT, no, 1) : -1;
		int below = ep == LINEAR_GELU ? duo_random(d, "below", DUO_ACT, nc, 4) : -1;
		int dx = duo_random(d, "dx", DUO_ACT, nc, 1), dw = duo_random(d, "dw", DUO_F32, oc, 1);
		int written = duo_random(d, "dw, written", DUO_F32, oc, 1);
		ON_BOTH(d, s, ep == LINEAR_GELU ? "forward + GELU" : "forward")
		s.be->ops->linear_forward(s.be, duo_act(s, y), duo_act(s, pre), duo_act(s, x), duo_f32(s, w), duo_f32(s, bias),
								  k, ep);
		ON_BOTH(d, s, ep == LINEAR_GELU ? "dX + GELU'" : "dX")
		s.be->ops->linear_backward_input(s.be, duo_act(s, dx), duo_act(s, dy), duo_f32(s, w), duo_act(s, below), k, ep);
		ON_BOTH(d, s, bias >= 0 ? "dW + dbias" : "dW")
		s.be->ops->linear_backward_weight(s.be, duo_f32(s, dw), duo_f32(s, dbias), duo_act(s, dy), duo_act(s, x), k,
										  GRADIENT_ADD);
		ON_BOTH(d, s, "dW, written")
		s.be->ops->linear_backward_weight(s.be, duo_f32(s, written), NULL, duo_act(s, dy), duo_act(s, x), k,
										  GRADIENT_WRITE);
		duo_check(d, y, TOL_PRODUCT);
		duo_check(d, dx, TOL_PRODUCT);
		duo_check(d, dw, TOL_PRODUCT);
		duo_check(d, written, TOL_PRODUCT);
		if (pre >= 0)
			duo_check(d, pre, TOL_PRODUCT);
		if (dbias >= 0)
			duo_check(d, dbias, TOL_REDUCTION);
		duo_clear(d);
	}
}

static const size_t gelu_sizes[] = {1, 3, 7, 17, 33, 127, 1023, 1024, 65536};

static void gelu(struct duo *d, int size) {
	const size_t n = gelu_sizes[size];
	duo_shape(d, "n %zu", n);
	int pre = duo_random(d, "pre", DUO_ACT, n, 1), y = duo_random(d, "y", DUO_ACT, n, 1);
	ON_BOTH(d, s, "GELU")
	s.be->ops->gelu_forward(s.be, duo_act(s, y), duo_act(s, pre), n);
	duo_check(d, y, TOL_ELEMENTWISE * 5);
}

const struct conformance_case cases_linear[] = {
	{"linear", COUNT(sizes) - LARGE, linear, 6, LARGE}, {"gelu", COUNT(gelu_sizes), gelu, 7, 0}, {0}};
