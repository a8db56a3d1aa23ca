/* gpt2.c: the GPT-2 family (Radford et al. 2019): learned positions, pre-LayerNorm blocks, GELU (tanh), biases
 * everywhere, and a classifier tied to the token embedding.
 *
 *   x_0 = wte[token] + wpe[position]
 *   y_l = x_l + proj(attention(qkv(ln_1(x_l))));   x_{l+1} = y_l + proj(gelu(fc(ln_2(y_l))))
 *   logits = ln_f(x_L) wte^T
 *
 * Both residual additions are fused with the norm behind them, so x_{l+1} and y_l are written by the norm that reads
 * them. Names are those of Hugging Face's checkpoints; its Conv1D matrices are the transposes of ours. */
#include "worker/train/model.h"

#include "base/assert.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Tensors of a block, in the order of the flat parameters. */
enum block_tensor { LN1_W, LN1_B, QKV_W, QKV_B, ATT_W, ATT_B, LN2_W, LN2_B, FC_W, FC_B, PROJ_W, PROJ_B, BLOCK_TENSORS };
enum { WTE, WPE, FIRST_BLOCK };

/* Activations of all layers: layer l's part starts l * (size of one layer) into each array. */
struct gpt2_plan {
	act_t *x;                     /* (L+1, N, C) residual stream entering each block, and leaving the last */
	act_t *y;                     /* (L, N, C) residual stream between attention and MLP */
	act_t *ln1, *ln2;             /* (L, N, C) */
	act_t *qkv;                   /* (L, N, 3C) */
	act_t *att;                   /* (L, N, C) */
	act_t *fc, *gelu;             /* (L, N, 4C) before and after the GELU */
	act_t *lnf;                   /* (N, C) */
	act_t *branch;                /* (N, C) output of a projection, before it joins the residual stream */
	float *ln1_stats, *ln2_stats; /* (L, 2, N) mean, then 1/std */
	float *lnf_stats;             /* (2, N) */
	float *lse;                   /* (L, B, heads, T) */
	act_t *dx;                    /* (N, C) gradient of the residual stream */
	act_t *dbranch;               /* (N, C) */
	act_t *dwide;                 /* (N, 4C) gradient of fc, then of qkv */
};

__attribute__((format(printf, 3, 4))) static void add(struct model_layout *l, struct model_tensor t, const char *fmt,
													  ...) {
	va_list args;
	va_start(args, fmt);
	vsnprintf(t.name, sizeof t.name, fmt, args);
	va_end(args);
	model_add_tensor(l, &t, t.rows);
}

static struct model_tensor matrix(int rows, int cols, float std) {
	return (struct model_tensor){.rows = rows, .cols = cols, .init = MODEL_INIT_NORMAL, .std = std, .decay = true};
}

static struct model_tensor conv1d(int rows, int cols, float std) {
	struct model_tensor t = matrix(rows, cols, std);
	t.hf_transposed = true;
	return t;
}

static struct model_tensor vector(int rows, enum model_init init) {
	return (struct model_tensor){.rows = rows, .cols = 1, .init = init, .decay = false};
}

/* GPT-2's 0.02 at its 768 channels; narrower models start proportionally to 1/sqrt(channels), as its fan-in would have
 * it. With 0.02 a model of 128 channels spends its first hundreds of steps learning pairs of bytes only. */
static float initial_std(const struct model_shape *s) {
	return 0.02f * sqrtf(768.0f / (float)s->n_embd);
}

static void layout_block(const struct model_shape *s, struct model_layout *out, int l) {
	int c = s->n_embd;
	/* Projections into the residual stream start smaller, so that its variance does not grow with depth. */
	const float std = initial_std(s), residual_std = std / sqrtf(2.0f * (float)s->n_layer);
	add(out, vector(c, MODEL_INIT_ONE), "h.%d.ln_1.weight", l);
	add(out, vector(c, MODEL_INIT_ZERO), "h.%d.ln_1.bias", l);
	add(out, conv1d(3 * c, c, std), "h.%d.attn.c_attn.weight", l);
	add(out, vector(3 * c, MODEL_INIT_ZERO), "h.%d.attn.c_attn.bias", l);
	add(out, conv1d(c, c, residual_std), "h.%d.attn.c_proj.weight", l);
	add(out, vector(c, MODEL_INIT_ZERO), "h.%d.attn.c_proj.bias", l);
	add(out, vector(c, MODEL_INIT_ONE), "h.%d.ln_2.weight", l);
	add(out, vector(c, MODEL_INIT_ZERO), "h.%d.ln_2.bias", l);
	add(out, conv1d(4 * c, c, std), "h.%d.mlp.c_fc.weight", l);
	add(out, vector(4 * c, MODEL_INIT_ZERO), "h.%d.mlp.c_fc.bias", l);
	add(out, conv1d(c, 4 * c, residual_std), "h.%d.mlp.c_proj.weight", l);
	add(out, vector(c, MODEL_INIT_ZERO), "h.%d.mlp.c_proj.bias", l);
}

static void gpt2_layout(const struct model_shape *s, struct model_layout *out) {
	int c = s->n_embd;
	struct model_tensor wte = matrix(s->vocab, c, initial_std(s));
	snprintf(wte.name, sizeof wte.name, "wte.weight");
	model_add_tensor(out, &wte, model_padded_vocab(s));
	add(out, matrix(s->context, c, initial_std(s)), "wpe.weight");
	for (int l = 0; l < s->n_layer; l++)
		layout_block(s, out, l);
	add(out, vector(c, MODEL_INIT_ONE), "ln_f.weight");
	add(out, vector(c, MODEL_INIT_ZERO), "ln_f.bias");
}

static size_t tensor_offset(const struct model *m, int index) {
	return m->layout.tensors[index].offset;
}

static size_t block_offset(const struct model *m, int layer, enum block_tensor which) {
	return tensor_offset(m, FIRST_BLOCK + layer * BLOCK_TENSORS + (int)which);
}

static size_t final_norm_offset(const struct model *m, bool bias) {
	return tensor_offset(m, FIRST_BLOCK + m->shape.n_layer * BLOCK_TENSORS + (bias ? 1 : 0));
}

static void gpt2_plan(struct model *m, struct model_arena *arena, int batch) {
	struct gpt2_plan *p = m->plan;
	const struct model_shape *s = &m->shape;
	size_t layers = (size_t)s->n_layer, n = (size_t)batch * (size_t)s->context;
	size_t row = n * (size_t)s->n_embd * dtype_bytes(m->be->act), stat = n * sizeof(float);
	p->x = model_arena_take(arena, (layers + 1) * row);
	p->y = model_arena_take(arena, layers * row);
	p->ln1 = model_arena_take(arena, layers * row);
	p->ln2 = model_arena_take(arena, layers * row);
	p->qkv = model_arena_take(arena, layers * 3 * row);
	p->att = model_arena_take(arena, layers * row);
	p->fc = model_arena_take(arena, layers * 4 * row);
	p->gelu = model_arena_take(arena, layers * 4 * row);
	p->lnf = model_arena_take(arena, row);
	p->branch = model_arena_take(arena, row);
	p->ln1_stats = model_arena_take(arena, layers * 2 * stat);
	p->ln2_stats = model_arena_take(arena, layers * 2 * stat);
	p->lnf_stats = model_arena_take(arena, 2 * stat);
	p->lse = model_arena_take(arena, layers * (size_t)s->n_head * stat);
	p->dx = model_arena_take(arena, row);
	p->dbranch = model_arena_take(arena, row);
	p->dwide = model_arena_take(arena, 4 * row);
}

/* What one block reads and writes: pointers into the plan for a layer, and its sizes. */
struct block {
	act_t *x, *y, *ln1, *ln2, *qkv, *att, *fc, *gelu, *x_next;
	float *ln1_mean, *ln1_rstd, *ln2_mean, *ln2_rstd, *lse;
};

/* Arrays are dense in the rows of the current batch, n = b * t. */
static struct block block_at(const struct model *m, int layer) {
	const struct gpt2_plan *p = m->plan;
	const struct backend *be = m->be;
	size_t l = (size_t)layer, n = (size_t)m->b * (size_t)m->t, row = n * (size_t)m->shape.n_embd;
	return (struct block){
		.x = backend_act_at(be, p->x, l * row),
		.x_next = backend_act_at(be, p->x, (l + 1) * row),
		.y = backend_act_at(be, p->y, l * row),
		.ln1 = backend_act_at(be, p->ln1, l * row),
		.ln2 = backend_act_at(be, p->ln2, l * row),
		.qkv = backend_act_at(be, p->qkv, l * 3 * row),
		.att = backend_act_at(be, p->att, l * row),
		.fc = backend_act_at(be, p->fc, l * 4 * row),
		.gelu = backend_act_at(be, p->gelu, l * 4 * row),
		.ln1_mean = p->ln1_stats + l * 2 * n,
		.ln1_rstd = p->ln1_stats + (l * 2 + 1) * n,
		.ln2_mean = p->ln2_stats + l * 2 * n,
		.ln2_rstd = p->ln2_stats + (l * 2 + 1) * n,
		.lse = p->lse + l * n * (size_t)m->shape.n_head,
	};
}

static struct attention_shape attention_of(const struct model *m) {
	int heads = m->shape.n_head;
	return (struct attention_shape){m->b, m->t, heads, heads, m->shape.n_embd / heads};
}

/* From ln1 to the MLP's branch; the caller has normalised x into ln1, and adds the branch to y. */
static void block_forward(struct model *m, const float *params, int l) {
	const struct backend_ops *op = m->be->ops;
	struct gpt2_plan *p = m->plan;
	struct block k = block_at(m, l);
	int n = m->b * m->t, c = m->shape.n_embd;
#define W(which) (params + block_offset(m, l, which))
	op->linear_forward(m->be, k.qkv, NULL, k.ln1, W(QKV_W), W(QKV_B), (struct linear_shape){n, c, 3 * c}, LINEAR_NONE);
	op->attention_forward(m->be, k.att, k.lse, k.qkv, attention_of(m));
	op->linear_forward(m->be, p->branch, NULL, k.att, W(ATT_W), W(ATT_B), (struct linear_shape){n, c, c}, LINEAR_NONE);
	op->residual_layernorm_forward(m->be, k.y, k.ln2, k.ln2_mean, k.ln2_rstd, k.x, p->branch, W(LN2_W), W(LN2_B), n, c);
	op->linear_forward(m->be, k.gelu, k.fc, k.ln2, W(FC_W), W(FC_B), (struct linear_shape){n, c, 4 * c}, LINEAR_GELU);
	op->linear_forward(m->be, p->branch, NULL, k.gelu, W(PROJ_W), W(PROJ_B), (struct linear_shape){n, 4 * c, c},
					   LINEAR_NONE);
#undef W
}

static void gpt2_forward(struct model *m, const float *params, const int32_t *tokens, int b, int t) {
	const struct backend_ops *op = m->be->ops;
	struct gpt2_plan *p = m->plan;
	int n = b * t, c = m->shape.n_embd, layers = m->shape.n_layer;
	struct block k = block_at(m, 0);
	op->embed_forward(m->be, k.x, tokens, params + tensor_offset(m, WTE), params + tensor_offset(m, WPE), b, t, c);
	op->layernorm_forward(m->be, k.ln1, k.ln1_mean, k.ln1_rstd, k.x, params + block_offset(m, 0, LN1_W),
						  params + block_offset(m, 0, LN1_B), n, c);
	for (int l = 0; l < layers; l++) {
		block_forward(m, params, l);
		k = block_at(m, l);
		if (l + 1 < layers) {
			struct block next = block_at(m, l + 1);
			op->residual_layernorm_forward(m->be, next.x, next.ln1, next.ln1_mean, next.ln1_rstd, k.y, p->branch,
										   params + block_offset(m, l + 1, LN1_W),
										   params + block_offset(m, l + 1, LN1_B), n, c);
		}
	}
	op->residual_layernorm_forward(m->be, k.x_next, p->lnf, p->lnf_stats, p->lnf_stats + n, k.y, p->branch,
								   params + final_norm_offset(m, false), params + final_norm_offset(m, true), n, c);
}

/* dx, dwte: NULL for the loss alone. */
static void classify(struct model *m, const float *params, const int32_t *targets, act_t *dx, float *dwte,
					 float grad_scale, float *losses) {
	const struct gpt2_plan *p = m->plan;
	const struct model_shape *s = &m->shape;
	m->be->ops->classifier(m->be, losses, dx, dwte, p->lnf, params + tensor_offset(m, WTE), targets, m->b * m->t,
						   s->n_embd, s->vocab, model_padded_vocab(s), grad_scale);
}

static void gpt2_loss(struct model *m, const float *params, const int32_t *targets, float *losses) {
	classify(m, params, targets, NULL, NULL, 0, losses);
}

/* dx holds the gradient of the block's output and becomes that of its input. */
static void block_backward(struct model *m, const float *params, float *grads, int l) {
	const struct backend_ops *op = m->be->ops;
	struct gpt2_plan *p = m->plan;
	struct block k = block_at(m, l);
	int n = m->b * m->t, c = m->shape.n_embd;
	struct linear_shape qkv = {n, c, 3 * c}, att = {n, c, c}, fc = {n, c, 4 * c}, proj = {n, 4 * c, c};
#define W(which) (params + block_offset(m, l, which))
#define G(which) (grads + block_offset(m, l, which))
	op->linear_backward_weight(m->be, G(PROJ_W), G(PROJ_B), p->dx, k.gelu, proj);
	op->linear_backward_input(m->be, p->dwide, p->dx, W(PROJ_W), k.fc, proj, LINEAR_GELU);
	op->linear_backward_weight(m->be, G(FC_W), G(FC_B), p->dwide, k.ln2, fc);
	op->linear_backward_input(m->be, p->dbranch, p->dwide, W(FC_W), NULL, fc, LINEAR_NONE);
	op->layernorm_backward(m->be, p->dx, G(LN2_W), G(LN2_B), p->dbranch, k.y, W(LN2_W), k.ln2_mean, k.ln2_rstd, n, c);

	op->linear_backward_weight(m->be, G(ATT_W), G(ATT_B), p->dx, k.att, att);
	op->linear_backward_input(m->be, p->dbranch, p->dx, W(ATT_W), NULL, att, LINEAR_NONE);
	op->attention_backward(m->be, p->dwide, p->dbranch, k.qkv, k.att, k.lse, attention_of(m));
	op->linear_backward_weight(m->be, G(QKV_W), G(QKV_B), p->dwide, k.ln1, qkv);
	op->linear_backward_input(m->be, p->dbranch, p->dwide, W(QKV_W), NULL, qkv, LINEAR_NONE);
	op->layernorm_backward(m->be, p->dx, G(LN1_W), G(LN1_B), p->dbranch, k.x, W(LN1_W), k.ln1_mean, k.ln1_rstd, n, c);
#undef W
#undef G
}

static void gpt2_backward(struct model *m, const float *params, float *grads, const int32_t *tokens,
						  const int32_t *targets, float grad_scale, float *losses) {
	const struct backend_ops *op = m->be->ops;
	struct gpt2_plan *p = m->plan;
	int n = m->b * m->t, c = m->shape.n_embd, layers = m->shape.n_layer;
	float *dwte = grads + tensor_offset(m, WTE);
	classify(m, params, targets, p->dbranch, dwte, grad_scale, losses);
	op->zero(m->be, p->dx, (size_t)n * (size_t)c * dtype_bytes(m->be->act));
	op->layernorm_backward(m->be, p->dx, grads + final_norm_offset(m, false), grads + final_norm_offset(m, true),
						   p->dbranch, block_at(m, layers - 1).x_next, params + final_norm_offset(m, false),
						   p->lnf_stats, p->lnf_stats + n, n, c);
	for (int l = layers - 1; l >= 0; l--)
		block_backward(m, params, grads, l);
	op->embed_backward(m->be, dwte, grads + tensor_offset(m, WPE), tokens, p->dx, m->b, m->t, c);
}

static void gpt2_logits(struct model *m, const float *params, int first, int n_rows, float *host_out) {
	const struct gpt2_plan *p = m->plan;
	act_t *rows = backend_act_at(m->be, p->lnf, (size_t)first * (size_t)m->shape.n_embd);
	m->be->ops->logits(m->be, host_out, rows, params + tensor_offset(m, WTE), n_rows, m->shape.n_embd, m->shape.vocab);
}

static enum rv_err gpt2_resolve(struct model_shape *s, struct rv_errtext *et) {
	if (s->n_kv_head != 0 && s->n_kv_head != s->n_head)
		return rv_fail(et, RV_E_RANGE, "gpt2 with n-kv-head = %d: every head has its own keys and values; use 0",
					   s->n_kv_head);
	if (s->n_inner != 0 && s->n_inner != 4 * s->n_embd)
		return rv_fail(et, RV_E_RANGE, "gpt2 with n-inner = %d: must be 4 n-embd = %d; use 0", s->n_inner,
					   4 * s->n_embd);
	s->n_kv_head = s->n_head;
	s->n_inner = 4 * s->n_embd;
	return RV_OK;
}

const struct model_ops model_gpt2 = {
	.name = "gpt2",
	.hf_prefix = "transformer.",
	.resolve = gpt2_resolve,
	.plan_bytes = sizeof(struct gpt2_plan),
	.layout = gpt2_layout,
	.plan = gpt2_plan,
	.forward = gpt2_forward,
	.loss = gpt2_loss,
	.backward = gpt2_backward,
	.logits = gpt2_logits,
};
