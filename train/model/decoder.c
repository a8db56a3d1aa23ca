/* decoder.c: both residual additions are fused with the following norm, which writes the x_{l+1} or
 * y_l that it reads. */
#include "train/model/decoder.h"

#include "base/assert.h"
#include "train/model/rope_table.h"

/* One layer's activations: pointers into the plan, and its first tensor. */
struct layer {
	int first; /* tensor */
	act_t *x, *x_next, *y, *norm_1, *norm_2, *qkv, *att, *pre, *hidden;
	float *stats_1, *stats_2, *lse;
};

static const struct decoder_plan *plan_of(const struct model *m) {
	return m->plan;
}

static int rows_of(const struct model *m) {
	return m->b * m->t;
}

static int head_dim(const struct model_shape *s) {
	return s->n_embd / s->n_head;
}

static int qkv_channels(const struct model_shape *s) {
	return (s->n_head + 2 * s->n_kv_head) * head_dim(s);
}

static int behind_blocks(const struct model *m) {
	const struct decoder_spec *spec = plan_of(m)->spec;
	return spec->first_block + m->shape.n_layer * spec->block_tensors;
}

static int classifier_of(const struct model *m) {
	const struct decoder_spec *spec = plan_of(m)->spec;
	return m->shape.tied ? spec->embedding : behind_blocks(m) + spec->classifier;
}

static bool holds_gradients(const struct model *m) {
	return m->holder && m->holder->gradients;
}

static float *grads_at(const struct model *m, float *grads, size_t offset) {
	return holds_gradients(m) ? m->holder->gradients(m->holder->ctx, offset) : grads + offset;
}

/* Return the place of tensor first + index in a block of parameters or gradients; NULL: none. */
static const float *weights_in(const struct model *m, const float *params, int first, int index) {
	if (index == DECODER_NONE)
		return NULL;
	const size_t offset = m->layout.tensors[first + index].offset;
	return m->holder && m->holder->weights ? m->holder->weights(m->holder->ctx, offset) : params + offset;
}

static float *grads_in(const struct model *m, float *grads, int first, int index) {
	return index == DECODER_NONE ? NULL : grads_at(m, grads, m->layout.tensors[first + index].offset);
}

static void enter(const struct model *m, int section, bool backward) {
	if (m->before_section && !backward)
		m->before_section(m->before_section_ctx, section);
	if (m->holder)
		m->holder->enter(m->holder->ctx, section, backward);
}

int decoder_widest_linear(const struct model_shape *s, const struct decoder_spec *spec) {
	int wide = spec->mlp->fan * s->n_inner, qkv = qkv_channels(s);
	return wide > qkv ? wide : qkv;
}

bool decoder_reads_fp32(const struct model_layout *l, int tensor, const struct decoder_spec *spec) {
	return tensor == spec->embedding || tensor == spec->positions || l->tensors[tensor].cols == 1;
}

static void plan_rotation(struct model *m, struct decoder_plan *p, struct model_arena *arena) {
	size_t row = (size_t)head_dim(&m->shape) * sizeof(float);
	p->rope = model_arena_take(arena, (size_t)m->shape.context * row);
	for (int i = 0; arena->base && i < m->shape.context; i++) {
		float values[ROPE_MAX_HEAD_DIM];
		rope_table_row(&m->shape.rope, head_dim(&m->shape), i, values);
		m->be->ops->upload(m->be, (char *)p->rope + (size_t)i * row, values, row);
	}
}

void decoder_plan(struct model *m, struct model_arena *arena, int batch, const struct decoder_spec *spec) {
	struct decoder_plan *p = m->plan;
	const struct model_shape *s = &m->shape;
	const bool backward = !m->options.forward_only;
	p->spec = spec;
	p->kept = backward && m->options.recompute != RECOMPUTE_BLOCK ? s->n_layer : 1;
	p->streams = backward ? s->n_layer + 1 : 1;
	p->kept_hidden = m->options.recompute >= RECOMPUTE_GELU ? 1 : p->kept;
	p->kept_norms = m->options.recompute >= RECOMPUTE_NORMS ? 1 : p->kept;
	size_t kept = (size_t)p->kept, norms = (size_t)p->kept_norms, n = (size_t)batch * (size_t)s->context;
	size_t channel = n * dtype_bytes(m->be->act), row = (size_t)s->n_embd * channel, stat = n * sizeof(float);
	size_t hidden = (size_t)s->n_inner * channel;
	p->x = model_arena_take(arena, (size_t)p->streams * row);
	p->y = model_arena_take(arena, kept * row);
	p->norm_1 = model_arena_take(arena, norms * row);
	p->norm_2 = model_arena_take(arena, norms * row);
	p->qkv = model_arena_take(arena, kept * (size_t)qkv_channels(s) * channel);
	p->att = model_arena_take(arena, kept * row);
	p->pre = model_arena_take(arena, kept * (size_t)spec->mlp->fan * hidden);
	p->hidden = model_arena_take(arena, (size_t)p->kept_hidden * hidden);
	p->stats_1 = model_arena_take(arena, kept * 2 * stat);
	p->stats_2 = model_arena_take(arena, kept * 2 * stat);
	p->lse = model_arena_take(arena, kept * (size_t)s->n_head * stat);
	p->last = model_arena_take(arena, row);
	p->stats_last = model_arena_take(arena, 2 * stat);
	p->branch = model_arena_take(arena, row);
	if (backward) {
		p->dx = model_arena_take(arena, row);
		p->dbranch = model_arena_take(arena, row);
		p->dwide = model_arena_take(arena, (size_t)decoder_widest_linear(s, spec) * channel);
		p->dhidden = spec->mlp->fan > 1 ? model_arena_take(arena, hidden) : NULL;
	}
	if (spec->rotary)
		plan_rotation(m, p, arena);
}

static struct layer layer_at(const struct model *m, int index) {
	const struct decoder_plan *p = plan_of(m);
	const struct model_shape *s = &m->shape;
	const struct backend *be = m->be;
	size_t n = (size_t)rows_of(m), row = n * (size_t)s->n_embd, hidden = n * (size_t)s->n_inner;
	size_t l = p->kept > 1 ? (size_t)index : 0, norm = p->kept_norms > 1 ? (size_t)index : 0,
		   stream = p->streams > 1 ? (size_t)index : 0;
	return (struct layer){
		.first = p->spec->first_block + index * p->spec->block_tensors,
		.x = backend_act_at(be, p->x, stream * row),
		.x_next = backend_act_at(be, p->x, (p->streams > 1 ? stream + 1 : 0) * row),
		.y = backend_act_at(be, p->y, l * row),
		.norm_1 = backend_act_at(be, p->norm_1, norm * row),
		.norm_2 = backend_act_at(be, p->norm_2, norm * row),
		.qkv = backend_act_at(be, p->qkv, l * n * (size_t)qkv_channels(s)),
		.att = backend_act_at(be, p->att, l * row),
		.pre = backend_act_at(be, p->pre, l * (size_t)p->spec->mlp->fan * hidden),
		.hidden = backend_act_at(be, p->hidden, p->kept_hidden > 1 ? l * hidden : 0),
		.stats_1 = p->stats_1 + l * 2 * n,
		.stats_2 = p->stats_2 + l * 2 * n,
		.lse = p->lse + l * n * (size_t)s->n_head,
	};
}

static struct attention_shape attention_of(const struct model *m) {
	const struct model_shape *s = &m->shape;
	return (struct attention_shape){m->b, m->t, s->n_head, s->n_kv_head, head_dim(s)};
}

static void norm_forward(struct model *m, const float *params, int first, struct decoder_part part, act_t *out,
						 float *stats, const act_t *x) {
	const struct backend_ops *op = m->be->ops;
	int n = rows_of(m), c = m->shape.n_embd;
	const float *w = weights_in(m, params, first, part.weight), *bias = weights_in(m, params, first, part.bias);
	if (plan_of(m)->spec->norm == DECODER_RMSNORM)
		op->rmsnorm_forward(m->be, out, stats, x, w, m->shape.norm_eps, n, c);
	else
		op->layernorm_forward(m->be, out, stats, stats + n, x, w, bias, n, c);
}

/* Computes sum = a + branch, out = norm(sum). */
static void join_forward(struct model *m, const float *params, int first, struct decoder_part part, act_t *sum,
						 act_t *out, float *stats, const act_t *a) {
	const struct backend_ops *op = m->be->ops;
	const act_t *branch = plan_of(m)->branch;
	int n = rows_of(m), c = m->shape.n_embd;
	const float *w = weights_in(m, params, first, part.weight), *bias = weights_in(m, params, first, part.bias);
	if (plan_of(m)->spec->norm == DECODER_RMSNORM)
		op->residual_rmsnorm_forward(m->be, sum, out, stats, a, branch, w, m->shape.norm_eps, n, c);
	else
		op->residual_layernorm_forward(m->be, sum, out, stats, stats + n, a, branch, w, bias, n, c);
}

/* Adds to dx the gradient of the norm's input; that of its output is dbranch. */
static void norm_backward(struct model *m, const float *params, float *grads, int first, struct decoder_part part,
						  const act_t *x, const float *stats) {
	const struct backend_ops *op = m->be->ops;
	const struct decoder_plan *p = plan_of(m);
	int n = rows_of(m), c = m->shape.n_embd;
	const float *w = weights_in(m, params, first, part.weight);
	float *dw = grads_in(m, grads, first, part.weight), *dbias = grads_in(m, grads, first, part.bias);
	if (p->spec->norm == DECODER_RMSNORM)
		op->rmsnorm_backward(m->be, p->dx, dw, p->dbranch, x, w, stats, n, c);
	else
		op->layernorm_backward(m->be, p->dx, dw, dbias, p->dbranch, x, w, stats, stats + n, n, c);
}

static void linear_forward(struct model *m, const float *params, int first, struct decoder_part part, act_t *y,
						   const act_t *x, int c, int o) {
	m->be->ops->linear_forward(m->be, y, NULL, x, weights_in(m, params, first, part.weight),
							   weights_in(m, params, first, part.bias), (struct linear_shape){rows_of(m), c, o},
							   LINEAR_NONE);
}

static void linear_gradient(struct model *m, float *grads, int first, struct decoder_part part, const act_t *dy,
							const act_t *x, int c, int o) {
	m->be->ops->linear_backward_weight(m->be, grads_in(m, grads, first, part.weight),
									   grads_in(m, grads, first, part.bias), dy, x,
									   (struct linear_shape){rows_of(m), c, o}, plan_of(m)->mode);
}

/* Computes dbranch = dy w. */
static void linear_input(struct model *m, const float *params, int first, struct decoder_part part, const act_t *dy,
						 int c, int o) {
	m->be->ops->linear_backward_input(m->be, plan_of(m)->dbranch, dy, weights_in(m, params, first, part.weight), NULL,
									  (struct linear_shape){rows_of(m), c, o}, LINEAR_NONE);
}

static void attention(struct model *m, const struct layer *k) {
	m->be->ops->attention_forward(m->be, k->att, k->lse, k->qkv, attention_of(m));
}

/* Attends for the newest tokens of one sequence, from position `first` on. */
static void attention_cached(struct model *m, const struct layer *k, int index, int first) {
	size_t part = (size_t)m->shape.context * (size_t)m->shape.n_kv_head * (size_t)head_dim(&m->shape);
	act_t *keys = backend_act_at(m->be, m->cache, 2 * (size_t)index * part);
	m->be->ops->attention_cached(m->be, k->att, keys, backend_act_at(m->be, keys, part), k->qkv, attention_of(m),
								 first);
}

/* Computes a block from norm_1 to the hidden channels, which narrow maps to the branch. `first` is
 * the position of the first token if the cache has the earlier ones, -1 if all tokens are here. */
static void block_inside(struct model *m, const float *params, int index, int first) {
	const struct decoder_plan *p = plan_of(m);
	const struct decoder_spec *spec = p->spec;
	struct layer k = layer_at(m, index);
	int c = m->shape.n_embd;
	linear_forward(m, params, k.first, spec->qkv, k.qkv, k.norm_1, c, qkv_channels(&m->shape));
	if (spec->rotary)
		m->be->ops->rope(m->be, k.qkv, p->rope, attention_of(m), first < 0 ? 0 : first, false);
	if (first < 0)
		attention(m, &k);
	else
		attention_cached(m, &k, index, first);
	linear_forward(m, params, k.first, spec->out, p->branch, k.att, c, c);
	join_forward(m, params, k.first, spec->norm_2, k.y, k.norm_2, k.stats_2, k.x);
	spec->mlp->widen(m, k.hidden, k.pre, k.norm_2, weights_in(m, params, k.first, spec->wide.weight),
					 weights_in(m, params, k.first, spec->wide.bias), rows_of(m));
}

/* Computes all blocks, from the residual stream entering the first to the classifier's input. */
static void blocks_forward(struct model *m, const float *params, int first) {
	const struct decoder_plan *p = plan_of(m);
	const struct decoder_spec *spec = p->spec;
	struct layer k = layer_at(m, 0);
	enter(m, 1, false);
	norm_forward(m, params, k.first, spec->norm_1, k.norm_1, k.stats_1, k.x);
	for (int l = 0; l < m->shape.n_layer; l++) {
		block_inside(m, params, l, first);
		k = layer_at(m, l);
		linear_forward(m, params, k.first, spec->narrow, p->branch, k.hidden, m->shape.n_inner, m->shape.n_embd);
		enter(m, l + 2, false); /* the next norm is part of this block's end */
		if (l + 1 < m->shape.n_layer) {
			struct layer next = layer_at(m, l + 1);
			join_forward(m, params, next.first, spec->norm_1, next.x, next.norm_1, next.stats_1, k.y);
		}
	}
	join_forward(m, params, behind_blocks(m), spec->norm_last, k.x_next, p->last, p->stats_last, k.y);
}

/* Embeds tokens; learned positions begin at row `first` of their table. */
static void embed(struct model *m, const float *params, const int32_t *tokens, int first) {
	const struct decoder_spec *spec = plan_of(m)->spec;
	enter(m, 0, false);
	const float *positions = weights_in(m, params, 0, spec->positions);
	if (positions)
		positions += (size_t)first * (size_t)m->shape.n_embd;
	m->be->ops->embed_forward(m->be, plan_of(m)->x, tokens, weights_in(m, params, 0, spec->embedding), positions, m->b,
							  m->t, m->shape.n_embd);
}

void decoder_forward(struct model *m, const float *params, const int32_t *tokens, int b, int t) {
	RV_ASSERT(b == m->b && t == m->t);
	embed(m, params, tokens, 0);
	blocks_forward(m, params, -1);
}

void decoder_decode(struct model *m, const float *params, const int32_t *tokens, int first, int n, float *host_out) {
	m->b = 1;
	m->t = n;
	embed(m, params, tokens, first);
	blocks_forward(m, params, first);
	decoder_logits(m, params, n - 1, 1, host_out);
}

void decoder_logits(struct model *m, const float *params, int first, int n_rows, float *host_out) {
	int c = m->shape.n_embd;
	RV_ASSERT(first >= 0 && n_rows >= 1 && n_rows <= rows_of(m) - first);
	act_t *rows = backend_act_at(m->be, plan_of(m)->last, (size_t)first * (size_t)c);
	m->be->ops->logits(m->be, host_out, rows, weights_in(m, params, 0, classifier_of(m)), n_rows, c, m->shape.vocab);
}

/* Computes losses, and unless dx and dw are NULL their gradients. */
static void classify(struct model *m, const float *params, const int32_t *targets, act_t *dx, float *dw,
					 float grad_scale, float *losses) {
	const struct model_shape *s = &m->shape;
	m->be->ops->classifier(m->be, losses, dx, dw, plan_of(m)->last, weights_in(m, params, 0, classifier_of(m)), targets,
						   rows_of(m), s->n_embd, s->vocab, model_padded_vocab(s), grad_scale, plan_of(m)->mode);
}

void decoder_loss(struct model *m, const float *params, const int32_t *targets, float *losses) {
	classify(m, params, targets, NULL, NULL, 0, losses);
}

/* Recomputes what of a block's activations was not kept: later blocks have overwritten it. */
static void recompute(struct model *m, const float *params, int index) {
	const struct decoder_plan *p = plan_of(m);
	struct layer k = layer_at(m, index);
	if (p->kept_norms == 1)
		norm_forward(m, params, k.first, p->spec->norm_1, k.norm_1, k.stats_1, k.x);
	if (p->kept == 1) {
		block_inside(m, params, index, -1);
		return;
	}
	if (p->kept_norms == 1)
		norm_forward(m, params, k.first, p->spec->norm_2, k.norm_2, k.stats_2, k.y);
	if (p->kept_hidden == 1)
		p->spec->mlp->activate(m, k.hidden, k.pre, rows_of(m));
}

static void mlp_backward(struct model *m, const float *params, float *grads, const struct layer *k) {
	const struct decoder_plan *p = plan_of(m);
	const struct decoder_spec *spec = p->spec;
	int c = m->shape.n_embd, hidden = m->shape.n_inner, wide = spec->mlp->fan * hidden;
	linear_gradient(m, grads, k->first, spec->narrow, p->dx, k->hidden, hidden, c);
	spec->mlp->widen_backward(m, p->dwide, p->dhidden, p->dx, weights_in(m, params, k->first, spec->narrow.weight),
							  k->pre, rows_of(m));
	linear_gradient(m, grads, k->first, spec->wide, p->dwide, k->norm_2, c, wide);
	linear_input(m, params, k->first, spec->wide, p->dwide, c, wide);
	norm_backward(m, params, grads, k->first, spec->norm_2, k->y, k->stats_2);
}

static void attention_backward(struct model *m, const float *params, float *grads, const struct layer *k) {
	const struct decoder_plan *p = plan_of(m);
	const struct decoder_spec *spec = p->spec;
	int c = m->shape.n_embd, qkv = qkv_channels(&m->shape);
	linear_gradient(m, grads, k->first, spec->out, p->dx, k->att, c, c);
	linear_input(m, params, k->first, spec->out, p->dx, c, c);
	m->be->ops->attention_backward(m->be, p->dwide, p->dbranch, k->qkv, k->att, k->lse, attention_of(m));
	if (spec->rotary)
		m->be->ops->rope(m->be, p->dwide, p->rope, attention_of(m), 0, true);
	linear_gradient(m, grads, k->first, spec->qkv, p->dwide, k->norm_1, c, qkv);
	linear_input(m, params, k->first, spec->qkv, p->dwide, c, qkv);
	norm_backward(m, params, grads, k->first, spec->norm_1, k->x, k->stats_1);
}

/* Reports that the gradients of tensors [first, end) are final. */
static void gradients_final(const struct model *m, int first, int end) {
	const struct model_layout *l = &m->layout;
	if (m->on_gradients && first < end)
		m->on_gradients(m->on_gradients_ctx, l->tensors[first].offset,
						end < l->n_tensors ? l->tensors[end].offset : l->n_params);
}

/* Returns true if tensor i's gradient is written by its first product: a linear's matrix, of which
 * `i` may be any part, or the classifier's. */
static bool is_written(const struct model *m, int i) {
	const struct decoder_spec *spec = plan_of(m)->spec;
	if (i == classifier_of(m))
		return true;
	return i >= spec->first_block && i < behind_blocks(m) && m->layout.tensors[i].cols > 1;
}

/* Zeroes the gradients of tensors [first, end) that a backward pass adds to: norms, biases,
 * embeddings. */
static void zero_sums(struct model *m, float *grads, int first, int end) {
	const struct model_layout *l = &m->layout;
	for (int to; first < end; first = to + 1) {
		for (to = first; to < end && !is_written(m, to);)
			to++;
		const size_t begin = l->tensors[first].offset, at = to < l->n_tensors ? l->tensors[to].offset : l->n_params;
		if (to > first)
			m->be->ops->zero(m->be, grads_at(m, grads, begin), (at - begin) * sizeof *grads);
	}
}

/* Begins the backward pass of the section of tensors [first, end). */
static void enter_backward(struct model *m, float *grads, int section, int first, int end) {
	enter(m, section, true);
	if (holds_gradients(m))
		zero_sums(m, grads, first, end);
}

void decoder_backward(struct model *m, const float *params, float *grads, const int32_t *tokens, const int32_t *targets,
					  float grad_scale, float *losses, enum gradient_mode mode) {
	const struct backend_ops *op = m->be->ops;
	struct decoder_plan *p = m->plan;
	const struct decoder_spec *spec = p->spec;
	int c = m->shape.n_embd, last = m->shape.n_layer - 1;
	RV_ASSERT(mode == GRADIENT_WRITE || !holds_gradients(m));
	p->mode = mode;
	if (mode == GRADIENT_WRITE && !holds_gradients(m))
		zero_sums(m, grads, 0, m->layout.n_tensors);
	enter_backward(m, grads, last + 2, behind_blocks(m), m->layout.n_tensors);
	if (holds_gradients(m))
		zero_sums(m, grads, 0, spec->first_block);
	classify(m, params, targets, p->dbranch, grads_in(m, grads, 0, classifier_of(m)), grad_scale, losses);
	op->zero(m->be, p->dx, (size_t)rows_of(m) * (size_t)c * dtype_bytes(m->be->act));
	norm_backward(m, params, grads, behind_blocks(m), spec->norm_last, layer_at(m, last).x_next, p->stats_last);
	gradients_final(m, behind_blocks(m), m->layout.n_tensors);
	for (int l = last; l >= 0; l--) { /* dx holds the gradient of the block's output and becomes that of its input */
		struct layer k = layer_at(m, l);
		enter_backward(m, grads, l + 1, k.first, k.first + spec->block_tensors);
		if (l != last)
			recompute(m, params, l);
		mlp_backward(m, params, grads, &k);
		attention_backward(m, params, grads, &k);
		gradients_final(m, k.first, k.first + spec->block_tensors);
	}
	op->embed_backward(m->be, grads_in(m, grads, 0, spec->embedding), grads_in(m, grads, 0, spec->positions), tokens,
					   p->dx, m->b, m->t, c);
	gradients_final(m, 0, spec->first_block);
}
