/* gpt2.c: the GPT-2 family (Radford et al. 2019): learned positions, LayerNorm before each half of
 * a block, GELU (tanh), biases everywhere, and a classifier tied to the token embedding.
 *
 *   y_l = x_l + proj(attention(qkv(ln_1(x_l))));   x_{l+1} = y_l + proj(gelu(fc(ln_2(y_l))))
 *
 * Names are those of Hugging Face's checkpoints; its Conv1D matrices are the transposes of ours. */
#include "train/model/decoder.h"
#include "train/model/hf_fields.h"
#include "train/model/hf_keys.h"

#include <stdio.h>
#include <string.h>

/* Tensors of a block, in the order of the flat parameters. */
enum block_tensor { LN1_W, LN1_B, QKV_W, QKV_B, ATT_W, ATT_B, LN2_W, LN2_B, FC_W, FC_B, PROJ_W, PROJ_B, BLOCK_TENSORS };
enum { WTE, WPE, FIRST_BLOCK };
enum { LNF_W, LNF_B }; /* behind the blocks */

static struct model_tensor conv1d(int rows, int cols, float std) {
	struct model_tensor t = decoder_matrix(rows, cols, std);
	t.hf_transposed = true;
	return t;
}

static void layout_block(const struct model_shape *s, struct model_layout *out, int l) {
	const int c = s->n_embd, f = s->n_inner;
	const float std = decoder_std(s), residual_std = decoder_residual_std(s);
	decoder_add(out, decoder_vector(c, MODEL_INIT_ONE), "h.%d.ln_1.weight", l);
	decoder_add(out, decoder_vector(c, MODEL_INIT_ZERO), "h.%d.ln_1.bias", l);
	decoder_add(out, conv1d(3 * c, c, std), "h.%d.attn.c_attn.weight", l);
	decoder_add(out, decoder_vector(3 * c, MODEL_INIT_ZERO), "h.%d.attn.c_attn.bias", l);
	decoder_add(out, conv1d(c, c, residual_std), "h.%d.attn.c_proj.weight", l);
	decoder_add(out, decoder_vector(c, MODEL_INIT_ZERO), "h.%d.attn.c_proj.bias", l);
	decoder_add(out, decoder_vector(c, MODEL_INIT_ONE), "h.%d.ln_2.weight", l);
	decoder_add(out, decoder_vector(c, MODEL_INIT_ZERO), "h.%d.ln_2.bias", l);
	decoder_add(out, conv1d(f, c, std), "h.%d.mlp.c_fc.weight", l);
	decoder_add(out, decoder_vector(f, MODEL_INIT_ZERO), "h.%d.mlp.c_fc.bias", l);
	decoder_add(out, conv1d(c, f, residual_std), "h.%d.mlp.c_proj.weight", l);
	decoder_add(out, decoder_vector(c, MODEL_INIT_ZERO), "h.%d.mlp.c_proj.bias", l);
}

static void gpt2_layout(const struct model_shape *s, struct model_layout *out) {
	decoder_add_vocab(out, s, "wte.weight");
	decoder_add(out, decoder_matrix(s->context, s->n_embd, decoder_std(s)), "wpe.weight");
	decoder_add_blocks(out, s, layout_block);
	decoder_add(out, decoder_vector(s->n_embd, MODEL_INIT_ONE), "ln_f.weight");
	decoder_add(out, decoder_vector(s->n_embd, MODEL_INIT_ZERO), "ln_f.bias");
}

static void gelu_activate(struct model *m, act_t *hidden, const act_t *pre, int n) {
	m->be->ops->gelu_forward(m->be, hidden, pre, (size_t)n * (size_t)m->shape.n_inner);
}

static void gelu_widen(struct model *m, act_t *hidden, act_t *pre, const act_t *x, const float *w, const float *bias,
					   int n) {
	struct linear_shape s = {n, m->shape.n_embd, m->shape.n_inner};
	const enum recompute r = m->options.recompute;
	if (r != RECOMPUTE_GELU && r != RECOMPUTE_NORMS) {
		m->be->ops->linear_forward(m->be, hidden, pre, x, w, bias, s, LINEAR_GELU);
		return;
	}
	m->be->ops->linear_forward(m->be, pre, NULL, x, w, bias, s, LINEAR_NONE);
	gelu_activate(m, hidden, pre, n);
}

static void gelu_widen_backward(struct model *m, act_t *dpre, act_t *dhidden, const act_t *dy, const float *narrow,
								const act_t *pre, int n) {
	(void)dhidden; /* only its product with the GELU's slope is stored */
	struct linear_shape s = {n, m->shape.n_inner, m->shape.n_embd};
	m->be->ops->linear_backward_input(m->be, dpre, dy, narrow, pre, s, LINEAR_GELU);
}

static const struct decoder_mlp gelu = {
	.fan = 1, .widen = gelu_widen, .activate = gelu_activate, .widen_backward = gelu_widen_backward};

static const struct decoder_spec spec = {
	.norm = DECODER_LAYERNORM,
	.rotary = false,
	.mlp = &gelu,
	.embedding = WTE,
	.positions = WPE,
	.first_block = FIRST_BLOCK,
	.block_tensors = BLOCK_TENSORS,
	.norm_1 = {LN1_W, LN1_B},
	.qkv = {QKV_W, QKV_B},
	.out = {ATT_W, ATT_B},
	.norm_2 = {LN2_W, LN2_B},
	.wide = {FC_W, FC_B},
	.narrow = {PROJ_W, PROJ_B},
	.norm_last = {LNF_W, LNF_B},
	.classifier = DECODER_NONE,
};

static int gpt2_widest_linear(const struct model_shape *s) {
	return decoder_widest_linear(s, &spec);
}

static bool gpt2_reads_fp32(const struct model_layout *l, int tensor) {
	return decoder_reads_fp32(l, tensor, &spec);
}

static void gpt2_plan(struct model *m, struct model_arena *arena, int batch) {
	decoder_plan(m, arena, batch, &spec);
}

/* Reads a field by transformers' common name, which takes precedence, or by GPT-2's. */
static int64_t mapped_int(struct hf_fields *f, const char *common, const char *own, int64_t fallback) {
	return hf_int(f, common, hf_int(f, own, fallback));
}

/* Reads GPT2Config of transformers, with its defaults. */
static enum rv_err gpt2_config_from_hf(const json_t *json, struct run_config *c, struct rv_errtext *et) {
	struct hf_fields f = hf_begin(json, et);
	hf_expect_architecture(&f, "GPT2LMHeadModel|GPT2Model");
	hf_expect_string(&f, "activation_function", "gelu_new", "gelu_new|gelu_pytorch_tanh");
	hf_expect_bool(&f, "scale_attn_weights", true, true);
	hf_expect_bool(&f, "scale_attn_by_inverse_layer_idx", false, false);
	hf_expect_bool(&f, "tie_word_embeddings", true, true);
	c->model = MODEL_gpt2;
	c->rope_scaling = ROPE_PLAIN;
	c->n_layer = mapped_int(&f, "num_hidden_layers", "n_layer", 12);
	c->n_head = mapped_int(&f, "num_attention_heads", "n_head", 12);
	c->n_embd = mapped_int(&f, "hidden_size", "n_embd", 768);
	c->vocab = hf_int(&f, "vocab_size", 50257);
	c->context = mapped_int(&f, "max_position_embeddings", "n_positions", 1024);
	c->norm_eps = hf_real(&f, "layer_norm_epsilon", 1e-5);
	hf_expect_int(&f, "n_inner", 4 * c->n_embd, 4 * c->n_embd);
	c->n_kv_head = c->n_inner = 0;
	c->tied = true;
	hf_expect_real(&f, "layer_norm_epsilon", 1e-5, (double)MODEL_GPT2_NORM_EPS);
	hf_check_rest(&f);
	return hf_end(&f);
}

static json_t *gpt2_config_to_hf(const struct run_config *c) {
	return json_pack("{s[s] ss sI sI sI sI sI sn ss sf sb sb sf sf sf sn sn}", "architectures", "GPT2LMHeadModel",
					 "model_type", "gpt2", "vocab_size", (json_int_t)c->vocab, "n_positions", (json_int_t)c->context,
					 "n_embd", (json_int_t)c->n_embd, "n_layer", (json_int_t)c->n_layer, "n_head",
					 (json_int_t)c->n_head, "n_inner", "activation_function", "gelu_new", "layer_norm_epsilon",
					 c->norm_eps, "scale_attn_weights", 1, "tie_word_embeddings", 1, "resid_pdrop", 0.0, "embd_pdrop",
					 0.0, "attn_pdrop", 0.0, "bos_token_id", "eos_token_id");
}

/* Reports h.N.attn.bias, the causal mask, and h.N.attn.masked_bias, its value. */
static bool gpt2_hf_ignored(const char *name) {
	int used = 0;
	unsigned layer;
	if (sscanf(name, "h.%9u.attn.%n", &layer, &used) != 1 || used == 0)
		return false;
	return strcmp(name + used, "bias") == 0 || strcmp(name + used, "masked_bias") == 0;
}

const struct model_ops model_gpt2 = {
	.name = "gpt2",
	.rules = &model_rules_gpt2,
	.hf_prefix = "transformer.",
	.config_from_hf = gpt2_config_from_hf,
	.config_to_hf = gpt2_config_to_hf,
	.hf_ignored = gpt2_hf_ignored,
	.plan_bytes = sizeof(struct decoder_plan),
	.layout = gpt2_layout,
	.reads_fp32 = gpt2_reads_fp32,
	.widest_linear = gpt2_widest_linear,
	.plan = gpt2_plan,
	.forward = decoder_forward,
	.loss = decoder_loss,
	.backward = decoder_backward,
	.logits = decoder_logits,
	.decode = decoder_decode,
};
