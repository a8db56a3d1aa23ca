/* step_bounds.c: bounds from configuration and shape. */
#include "train/step_bounds.h"

#include <inttypes.h>

enum rv_err step_check_devices(const struct run_config *run, int devices, struct rv_errtext *et) {
	const uint64_t sequences = savings_step_sequences(run);
	if (devices == 1 || sequences >= (uint64_t)devices)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE,
				   "%d devices, but a step has %" PRIu64 " sequences (batch x grad-accum): use fewer devices", devices,
				   sequences);
}

/* Returns the sequences of a step on the device with the most. */
static size_t sequences_of(const struct step_source *s) {
	const size_t all = (size_t)s->shards * (size_t)(s->run->batch * s->run->grad_accum), n = (size_t)s->devices;
	return s->forward_only ? 1 : (all + n - 1) / n;
}

/* Returns the floats of vectors of weights, each rounded up as a device aligns it. */
static size_t vectors_of(const struct step_source *s) {
	enum { ALIGN_FLOATS = 16 };
	size_t floats = 0;
	for (int i = 0; s->offload && i < s->layout->n_tensors; i++) {
		const struct model_tensor *t = &s->layout->tensors[i];
		if (t->cols == 1)
			floats += (t->elems + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
	}
	return floats;
}

/* Returns the floats that are copied to the host at a time: gradients for an optimizer there, or
 * the state, where that is a device's. */
static size_t fetched_of(const struct step_source *s) {
	const size_t n = s->layout->n_params, most = s->offload ? OFFLOAD_FLOATS : STREAMED_FLOATS;
	return s->forward_only ? 0 : n < most ? n : most;
}

struct step_bounds step_bounds_of(const struct step_source *s) {
	const struct model_shape *m = s->shape;
	return (struct step_bounds){
		.b = s->forward_only ? 1 : s->micro_batch,
		.t = m->context,
		.c = m->n_embd,
		.widest = s->family->widest_linear(m),
		.heads = m->n_head,
		.kv_heads = m->n_kv_head,
		.head_dim = m->n_embd / m->n_head,
		.v = m->vocab,
		.vp = model_padded_vocab(m),
		.logits_rows = s->forward_only ? 0 : s->logits_rows,
		.losses = sequences_of(s) * (size_t)m->context,
		.n_spans = s->layout->n_tensors, /* at most */
		.vectors = vectors_of(s),
		.fetched = fetched_of(s),
		.exchange = s->devices > 1 ? EXCHANGE_BYTES : 0,
		.operand = s->forward_only ? 0 : inner_operand_floats(s->inner, s->layout),
	};
}
