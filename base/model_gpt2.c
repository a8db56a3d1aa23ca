/* model_gpt2.c: shapes of the GPT-2 family (train/model/gpt2.c). */
#include "base/model_shape.h"

static enum rv_err resolve(struct model_shape *s, struct rv_errtext *et) {
	if (s->n_kv_head != 0 && s->n_kv_head != s->n_head)
		return rv_fail(et, RV_E_RANGE, "gpt2 with n-kv-head = %d: every head has its own keys and values; use 0",
					   s->n_kv_head);
	if (s->n_inner != 0 && s->n_inner != 4 * s->n_embd)
		return rv_fail(et, RV_E_RANGE, "gpt2 with n-inner = %d: must be 4 n-embd = %d; use 0", s->n_inner,
					   4 * s->n_embd);
	if (!s->tied)
		return rv_fail(et, RV_E_RANGE, "gpt2 with tied = false: its classifier is the token embedding; use true");
	if (s->norm_eps != MODEL_GPT2_NORM_EPS)
		return rv_fail(et, RV_E_RANGE, "gpt2 with norm-eps = %g: must be %g", (double)s->norm_eps,
					   (double)MODEL_GPT2_NORM_EPS);
	s->n_kv_head = s->n_head;
	s->n_inner = 4 * s->n_embd;
	return RV_OK;
}

/* Returns the values of two norms, attention in and out, the MLP in and out; each with a bias. */
static size_t layer_elems(const struct model_shape *s) {
	const int c = s->n_embd, f = s->n_inner;
	return 6 * model_tensor_elems(c, 1) + model_tensor_elems(3 * c, c) + model_tensor_elems(3 * c, 1) +
		   model_tensor_elems(c, c) + 2 * model_tensor_elems(f, c) + model_tensor_elems(f, 1);
}

static struct model_extent extent(const struct model_shape *s) {
	struct model_extent e = {.layer_elems = layer_elems(s)};
	e.layers_begin = model_tensor_elems(model_padded_vocab(s), s->n_embd) + model_tensor_elems(s->context, s->n_embd);
	e.n_params = e.layers_begin + (size_t)s->n_layer * e.layer_elems + 2 * model_tensor_elems(s->n_embd, 1);
	return e;
}

const struct model_rules model_rules_gpt2 = {.resolve = resolve, .extent = extent};
