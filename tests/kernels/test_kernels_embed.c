/* test_kernels_embed.c: embeddings of `cpu` against `ref`. */
#include "tests/kernels/fixture.h"

#include <stdlib.h>

struct embed_case {
	int b, t, c, v;
	bool positions;
};

static const struct embed_case cases[] = {{1, 1, 1, 1, true},   {3, 7, 17, 5, true},   {2, 33, 127, 300, true},
										  {1, 3, 64, 2, false}, {4, 65, 96, 10, true}, {5, 129, 70, 256, false}};

static void embed_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	const struct embed_case *k = ctx;
	size_t n = (size_t)k->b * k->t, rows = n * k->c, nv = (size_t)k->v * k->c, nt = (size_t)k->t * k->c;
	float *wte = random_floats(nv, 1, 1), *wpe = random_floats(nt, 2, 1), *dout = random_floats(rows, 3, 1);
	int32_t *tokens = random_tokens(n, 4, k->v);
	float *out[2], *dwte[2], *dwpe[2];
	struct backend *be[2] = {ref, cpu};
	for (int i = 0; i < 2; i++) {
		out[i] = zero_floats(rows);
		dwte[i] = random_floats(nv, 5, 1); /* gradients accumulate */
		dwpe[i] = random_floats(nt, 6, 1);
		be[i]->ops->embed_forward(be[i], as_act(out[i]), tokens, wte, k->positions ? wpe : NULL, k->b, k->t, k->c);
		be[i]->ops->embed_backward(be[i], dwte[i], k->positions ? dwpe[i] : NULL, tokens, as_act(dout), k->b, k->t,
								   k->c);
	}
	check_close("out", out[1], out[0], rows, TOL_EXACT);
	check_close("dwte", dwte[1], dwte[0], nv, TOL_EXACT);
	check_close("dwpe", dwpe[1], dwpe[0], nt, TOL_EXACT);
	float *all[] = {wte, wpe, dout, out[0], out[1], dwte[0], dwte[1], dwpe[0], dwpe[1]};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
	free(tokens);
}

static void embed_equals_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for_each_variant(embed_body, &cases[i]);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(embed_equals_ref)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
