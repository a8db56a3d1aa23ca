/* model_shape.c: what all families have in common (base/model_shape.h). */
#include "base/model_shape.h"

#include "base/run_config.h"

enum { MAX_LAYERS = 4096, MAX_CHANNELS = 1 << 16, MAX_INNER = 1 << 18, MAX_VOCAB = 1 << 24, MAX_CONTEXT = 1 << 20 };

#define MODEL_FAMILY(name, facts) &model_rules_##name,
static const struct model_rules *const families[] = {
#include "base/model_families.def"
};
#undef MODEL_FAMILY

struct model_shape model_shape_of(const struct run_config *c) {
	return (struct model_shape){
		.n_layer = (int)c->n_layer,
		.n_head = (int)c->n_head,
		.n_embd = (int)c->n_embd,
		.vocab = (int)c->vocab,
		.context = (int)c->context,
		.n_kv_head = (int)c->n_kv_head,
		.n_inner = (int)c->n_inner,
		.tied = c->tied,
		.norm_eps = (float)c->norm_eps,
		.rope = {.theta = c->rope_theta,
				 .scaling = (enum rope_scaling)c->rope_scaling,
				 .factor = c->rope_factor,
				 .low_freq = c->rope_low_freq,
				 .high_freq = c->rope_high_freq,
				 .original_context = (int)c->rope_original_context},
	};
}

static bool within(int value, int max) {
	return value >= 1 && value <= max;
}

enum rv_err model_shape_check(const struct model_shape *s, struct rv_errtext *et) {
	if (!within(s->n_layer, MAX_LAYERS) || !within(s->n_embd, MAX_CHANNELS) || !within(s->n_head, s->n_embd) ||
		!within(s->vocab, MAX_VOCAB) || !within(s->context, MAX_CONTEXT) || s->n_kv_head < 0 ||
		s->n_kv_head > s->n_head || s->n_inner < 0 || s->n_inner > MAX_INNER)
		return rv_fail(
			et, RV_E_RANGE,
			"model of %d layers, %d heads (%d of keys), %d channels (%d inner), %d tokens, context %d: out of "
			"bounds",
			s->n_layer, s->n_head, s->n_kv_head, s->n_embd, s->n_inner, s->vocab, s->context);
	if (s->n_embd % s->n_head != 0)
		return rv_fail(et, RV_E_RANGE, "model: %d channels are not a multiple of %d heads", s->n_embd, s->n_head);
	return RV_OK;
}

enum rv_err model_extent_of(const struct run_config *c, struct model_extent *extent, struct rv_errtext *et) {
	struct model_shape s = model_shape_of(c);
	const struct model_rules *rules = families[c->model];
	RV_TRY(model_shape_check(&s, et));
	RV_TRY(rules->resolve(&s, et));
	if (extent)
		*extent = rules->extent(&s);
	return RV_OK;
}

static size_t round_up(size_t n, size_t multiple) {
	return (n + multiple - 1) / multiple * multiple;
}

int model_padded_vocab(const struct model_shape *s) {
	return (s->vocab + MODEL_VOCAB_MULTIPLE - 1) / MODEL_VOCAB_MULTIPLE * MODEL_VOCAB_MULTIPLE;
}

size_t model_tensor_elems(int rows, int cols) {
	return round_up((size_t)rows * (size_t)cols, MODEL_ALIGN_ELEMS);
}
