/* model_llama.c: shapes of the Llama family (train/model/llama.c). */
#include "base/model_shape.h"

enum { INNER_MULTIPLE = 256 };

static int kv_channels(const struct model_shape *s) {
	return s->n_embd / s->n_head * s->n_kv_head;
}

int model_llama_inner(int n_embd) {
	return (8 * n_embd / 3 + INNER_MULTIPLE - 1) / INNER_MULTIPLE * INNER_MULTIPLE;
}

/* Refuses a tensor that does not end at a multiple of MODEL_ALIGN_ELEMS: tensors begin at such
 * multiples, and a group must have no gaps. */
static enum rv_err check_packed(const char *what, int rows, int cols, struct rv_errtext *et) {
	if ((size_t)rows * (size_t)cols % MODEL_ALIGN_ELEMS == 0)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "llama: %s of %d x %d values: not a multiple of %d; choose another n-embd", what,
				   rows, cols, MODEL_ALIGN_ELEMS);
}

/* Refuses values without finite angles, and impossible sizes of heads. */
static enum rv_err check_rope(const struct model_rope *r, int head_dim, struct rv_errtext *et) {
	if (head_dim % 2 != 0 || head_dim > ROPE_MAX_HEAD_DIM)
		return rv_fail(et, RV_E_RANGE,
					   "a rotary embedding over %d channels per head: must be even, and at most %d; change n-head",
					   head_dim, ROPE_MAX_HEAD_DIM);
	if (!(r->theta >= 1))
		return rv_fail(et, RV_E_RANGE, "rope-theta = %g: must be at least 1", r->theta);
	if (r->scaling != ROPE_PLAIN && !(r->factor >= 1))
		return rv_fail(et, RV_E_RANGE, "rope-factor = %g: must be at least 1", r->factor);
	if (r->scaling == ROPE_LLAMA3 && !(r->high_freq > r->low_freq && r->low_freq > 0 && r->original_context > 0))
		return rv_fail(et, RV_E_RANGE,
					   "rope-low-freq = %g, rope-high-freq = %g, rope-original-context = %d: must be positive, the "
					   "second larger than the first",
					   r->low_freq, r->high_freq, r->original_context);
	return RV_OK;
}

static enum rv_err resolve(struct model_shape *s, struct rv_errtext *et) {
	if (s->n_kv_head == 0)
		s->n_kv_head = s->n_head;
	if (s->n_inner == 0)
		s->n_inner = model_llama_inner(s->n_embd);
	if (s->n_kv_head < 0 || s->n_head % s->n_kv_head != 0)
		return rv_fail(et, RV_E_RANGE, "llama with n-head = %d: not a multiple of n-kv-head = %d", s->n_head,
					   s->n_kv_head);
	if (!(s->norm_eps > 0))
		return rv_fail(et, RV_E_RANGE, "llama with norm-eps = %g: must be positive", (double)s->norm_eps);
	RV_TRY(check_rope(&s->rope, s->n_embd / s->n_head, et));
	RV_TRY(check_packed("q_proj", s->n_embd, s->n_embd, et));
	RV_TRY(check_packed("k_proj", kv_channels(s), s->n_embd, et));
	return check_packed("gate_proj", s->n_inner, s->n_embd, et);
}

/* Returns the values of two norms; queries and output, keys and values; gate, up and down. */
static size_t layer_elems(const struct model_shape *s) {
	const int c = s->n_embd;
	return 2 * model_tensor_elems(c, 1) + 2 * model_tensor_elems(c, c) + 2 * model_tensor_elems(kv_channels(s), c) +
		   3 * model_tensor_elems(s->n_inner, c);
}

static struct model_extent extent(const struct model_shape *s) {
	size_t vocab = model_tensor_elems(model_padded_vocab(s), s->n_embd);
	struct model_extent e = {.layers_begin = vocab, .layer_elems = layer_elems(s)};
	e.n_params = vocab + (size_t)s->n_layer * e.layer_elems + model_tensor_elems(s->n_embd, 1) + (s->tied ? 0 : vocab);
	return e;
}

const struct model_rules model_rules_llama = {.resolve = resolve, .extent = extent};
