/* cases_embed.c: token and position embeddings. */
#include "tests/kernels/conformance/cases.h"

#include <stdlib.h>

static const struct {
	int b, t, c, v;
} sizes[] = {{1, 1, 1, 1},    {1, 3, 7, 2},         {2, 17, 33, 5},    {3, 7, 64, 1000},     {1, 33, 24, 3},
			 {2, 127, 16, 9}, {1, 1023, 8, 200000}, {4, 16, 512, 127}, {4, 1024, 768, 50257}};
enum { LARGE = 1 };

static void embed(struct duo *d, int size) {
	int b = sizes[size].b, t = sizes[size].t, c = sizes[size].c, v = sizes[size].v;
	size_t n = (size_t)b * t, vc = (size_t)v * c, nc = n * c, tc = (size_t)t * c;
	duo_shape(d, "b %d t %d c %d v %d", b, t, c, v);
	int32_t *tokens = random_tokens(n, d->seed++, v);
	for (int positions = 0; positions < 2; positions++) {
		int wte = duo_random(d, "wte", DUO_F32, vc, 1), wpe = positions ? duo_random(d, "wpe", DUO_F32, tc, 1) : -1;
		int dwte = duo_random(d, "dwte", DUO_F32, vc, 1), dwpe = positions ? duo_random(d, "dwpe", DUO_F32, tc, 1) : -1;
		int out = duo_random(d, "out", DUO_ACT, nc, 1), dout = duo_random(d, "dout", DUO_ACT, nc, 1);
		ON_BOTH(d, s, "forward")
		s.be->ops->embed_forward(s.be, duo_act(s, out), tokens, duo_f32(s, wte), duo_f32(s, wpe), b, t, c);
		ON_BOTH(d, s, "backward")
		s.be->ops->embed_backward(s.be, duo_f32(s, dwte), duo_f32(s, dwpe), tokens, duo_act(s, dout), b, t, c);
		duo_check(d, out, TOL_EXACT);
		duo_check(d, dwte, TOL_REDUCTION);
		if (positions)
			duo_check(d, dwpe, TOL_REDUCTION);
		duo_clear(d);
	}
	free(tokens);
}

const struct conformance_case cases_embed[] = {{"embed", COUNT(sizes) - LARGE, embed, 6, LARGE}, {0}};
