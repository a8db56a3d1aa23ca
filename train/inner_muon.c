/* inner_muon.c: Muon for the layers' matrices (muon.h), AdamW between them. */
#include "train/inner.h"
#include "train/muon.h"

static bool is_hidden_matrix(const struct model_layout *l, const struct model_tensor *t) {
	size_t begin = l->layers.begin, end = begin + (size_t)l->layers.n * l->layers.layer_elems;
	return t->rows > 1 && t->cols > 1 && t->offset >= begin && t->offset < end;
}

/* Returns the first hidden matrix from tensor i on, or n_tensors. */
static int next_matrix(const struct model_layout *l, int i) {
	while (i < l->n_tensors && !is_hidden_matrix(l, &l->tensors[i]))
		i++;
	return i;
}

static size_t scratch_floats(const struct model_layout *l) {
	size_t most = 0;
	for (int i = next_matrix(l, 0); i < l->n_tensors; i = next_matrix(l, i + 1)) {
		size_t floats = muon_scratch_floats(l->tensors[i].rows, l->tensors[i].cols);
		most = floats > most ? floats : most;
	}
	return most;
}

static size_t operand_floats(const struct model_layout *l) {
	size_t most = 0;
	for (int i = next_matrix(l, 0); i < l->n_tensors; i = next_matrix(l, i + 1))
		most = l->tensors[i].elems > most ? l->tensors[i].elems : most;
	return most;
}

static void adamw_range(const struct inner_slice *s, size_t begin, size_t end, bool decay,
						const struct adamw_params *a) {
	const struct decay_span span = {0, end - begin, decay};
	float *m = s->m, *v = s->v;
	if (begin < end)
		s->be->ops->adamw(s->be, s->theta + begin, s->grad + begin, m + begin, v + begin, &span, 1, a);
}

static void muon_tensor(const struct inner_slice *s, const struct model_tensor *t, const struct inner_params *p) {
	const struct muon_params a = {.lr = p->adamw.lr,
								  .momentum = p->muon_momentum,
								  .weight_decay = t->decay ? p->adamw.weight_decay : 0,
								  .grad_scale = p->adamw.grad_scale};
	const struct muon_matrix x = {s->theta + t->offset, (float *)s->m + t->offset, s->grad + t->offset, t->rows,
								  t->cols};
	muon_step(s->be, &x, s->scratch, &a);
}

/* Steps span by span; each matrix lies in one span. */
static void step(const struct inner_slice *s, const struct inner_params *p) {
	const struct model_layout *l = s->layout;
	int k = next_matrix(l, 0);
	for (int i = 0; i < s->n_spans; i++) {
		const struct decay_span *span = &s->spans[i];
		size_t at = span->begin;
		for (; k < l->n_tensors && l->tensors[k].offset < span->end; k = next_matrix(l, k + 1)) {
			adamw_range(s, at, l->tensors[k].offset, span->decay, &p->adamw);
			muon_tensor(s, &l->tensors[k], p);
			at = l->tensors[k].offset + l->tensors[k].elems;
		}
		adamw_range(s, at, span->end, span->decay, &p->adamw);
	}
}

const struct inner_optimizer inner_muon = {.name = "muon",
										   .whole_matrices = true,
										   .scratch_floats = scratch_floats,
										   .operand_floats = operand_floats,
										   .step = step};
