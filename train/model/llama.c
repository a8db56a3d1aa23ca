/* llama.c: the Llama family (arXiv 2302.13971): RMSNorm before each half of a block, rotary
 * positions (arXiv 2104.09864), SwiGLU (arXiv 2002.05202), grouped-query attention (arXiv
 * 2305.13245), no biases; the classifier is a matrix, or the token embedding.
 *
 *   y_l = x_l + o(attention(rope(q, k), v))
 *   x_{l+1} = y_l + down(silu(gate(z)) * up(z)), z = norm_2(y_l)
 *
 * q, k, v are contiguous, and so are gate and up: products read each group as one matrix. Names are
 * those of Hugging Face's checkpoints, whose q and k fit the rotate-half form, like ours. */
#include "train/model/decoder.h"
#include "train/model/hf_fields.h"
#include "train/model/hf_keys.h"

#include <stdio.h>
#include <string.h>

/* Tensors of a block, in the order of the flat parameters. */
enum block_tensor { NORM_1, Q, K, V, O, NORM_2, GATE, UP, DOWN, BLOCK_TENSORS };
enum { EMBEDDING, FIRST_BLOCK };
enum { NORM_LAST, CLASSIFIER }; /* behind the blocks */

static int kv_channels(const struct model_shape *s) {
	return s->n_embd / s->n_head * s->n_kv_head;
}

static void layout_block(const struct model_shape *s, struct model_layout *out, int l) {
	const int c = s->n_embd, f = s->n_inner, kv = kv_channels(s);
	const float std = decoder_std(s), residual_std = decoder_residual_std(s);
	decoder_add(out, decoder_vector(c, MODEL_INIT_ONE), "model.layers.%d.input_layernorm.weight", l);
	decoder_add(out, decoder_matrix(c, c, std), "model.layers.%d.self_attn.q_proj.weight", l);
	decoder_add(out, decoder_matrix(kv, c, std), "model.layers.%d.self_attn.k_proj.weight", l);
	decoder_add(out, decoder_matrix(kv, c, std), "model.layers.%d.self_attn.v_proj.weight", l);
	decoder_add(out, decoder_matrix(c, c, residual_std), "model.layers.%d.self_attn.o_proj.weight", l);
	decoder_add(out, decoder_vector(c, MODEL_INIT_ONE), "model.layers.%d.post_attention_layernorm.weight", l);
	decoder_add(out, decoder_matrix(f, c, std), "model.layers.%d.mlp.gate_proj.weight", l);
	decoder_add(out, decoder_matrix(f, c, std), "model.layers.%d.mlp.up_proj.weight", l);
	decoder_add(out, decoder_matrix(c, f, residual_std), "model.layers.%d.mlp.down_proj.weight", l);
}

static void llama_layout(const struct model_shape *s, struct model_layout *out) {
	decoder_add_vocab(out, s, "model.embed_tokens.weight");
	decoder_add_blocks(out, s, layout_block);
	decoder_add(out, decoder_vector(s->n_embd, MODEL_INIT_ONE), "model.norm.weight");
	if (!s->tied)
		decoder_add_vocab(out, s, "lm_head.weight");
}

static void swiglu_activate(struct model *m, act_t *hidden, const act_t *pre, int n) {
	m->be->ops->swiglu_forward(m->be, hidden, pre, n, m->shape.n_inner);
}

static void swiglu_widen(struct model *m, act_t *hidden, act_t *pre, const act_t *x, const float *w, const float *bias,
						 int n) {
	const struct backend_ops *op = m->be->ops;
	int f = m->shape.n_inner;
	op->linear_forward(m->be, pre, NULL, x, w, bias, (struct linear_shape){n, m->shape.n_embd, 2 * f}, LINEAR_NONE);
	swiglu_activate(m, hidden, pre, n);
}

static void swiglu_widen_backward(struct model *m, act_t *dpre, act_t *dhidden, const act_t *dy, const float *narrow,
								  const act_t *pre, int n) {
	const struct backend_ops *op = m->be->ops;
	int f = m->shape.n_inner;
	op->linear_backward_input(m->be, dhidden, dy, narrow, NULL, (struct linear_shape){n, f, m->shape.n_embd},
							  LINEAR_NONE);
	op->swiglu_backward(m->be, dpre, dhidden, pre, n, f);
}

static const struct decoder_mlp swiglu = {
	.fan = 2, .widen = swiglu_widen, .activate = swiglu_activate, .widen_backward = swiglu_widen_backward};

static const struct decoder_spec spec = {
	.norm = DECODER_RMSNORM,
	.rotary = true,
	.mlp = &swiglu,
	.embedding = EMBEDDING,
	.positions = DECODER_NONE,
	.first_block = FIRST_BLOCK,
	.block_tensors = BLOCK_TENSORS,
	.norm_1 = {NORM_1, DECODER_NONE},
	.qkv = {Q, DECODER_NONE},
	.out = {O, DECODER_NONE},
	.norm_2 = {NORM_2, DECODER_NONE},
	.wide = {GATE, DECODER_NONE},
	.narrow = {DOWN, DECODER_NONE},
	.norm_last = {NORM_LAST, DECODER_NONE},
	.classifier = CLASSIFIER,
};

static int llama_widest_linear(const struct model_shape *s) {
	return decoder_widest_linear(s, &spec);
}

static bool llama_reads_fp32(const struct model_layout *l, int tensor) {
	return decoder_reads_fp32(l, tensor, &spec);
}

static void llama_plan(struct model *m, struct model_arena *arena, int batch) {
	decoder_plan(m, arena, batch, &spec);
}

/* The rotation's fields outside its object. */
struct rope_beside {
	double theta;
	int64_t original_context; /* 0: absent */
};

static struct rope_beside rope_beside_from_hf(struct hf_fields *f) {
	hf_refuse_null(f, "rope_theta");
	return (struct rope_beside){.theta = hf_real(f, "rope_theta", 10000),
								.original_context = hf_int(f, "original_max_position_embeddings", 0)};
}

static void stretch_from_hf(struct hf_fields *r, const struct rope_beside *beside, struct run_config *c) {
	c->rope_low_freq = hf_need_real(r, "low_freq_factor");
	c->rope_high_freq = hf_need_real(r, "high_freq_factor");
	c->rope_original_context = hf_need_int(r, "original_max_position_embeddings");
	if (beside->original_context > 0 && beside->original_context != c->rope_original_context)
		hf_refuse(r, "original_max_position_embeddings",
				  "it occurs twice, with two values, and versions of transformers disagree on which counts; leave "
				  "the one beside the rotation out");
}

/* Marks fields of other kinds of rotation as read: transformers ignores them. */
static void ignore_other_kinds(struct hf_fields *r) {
	static const char *const keys[] = {"factor", "low_freq_factor", "high_freq_factor",
									   "original_max_position_embeddings"};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		(void)hf_has(r, keys[i]);
}

static void rope_parameters_from_hf(struct hf_fields *r, const struct rope_beside *beside, struct run_config *c) {
	hf_refuse_null(r, "rope_type");
	hf_refuse_null(r, "rope_theta");
	const char *older = hf_string(r, "type", "default"), *type = hf_string(r, "rope_type", older);
	hf_expect_string(r, hf_has(r, "rope_type") ? "rope_type" : "type", "default", "default|linear|llama3");
	hf_expect_real(r, "partial_rotary_factor", 1, 1);
	c->rope_theta = hf_real(r, "rope_theta", beside->theta);
	c->rope_scaling = strcmp(type, "llama3") == 0   ? ROPE_LLAMA3
					  : strcmp(type, "linear") == 0 ? ROPE_LINEAR
													: ROPE_PLAIN;
	if (c->rope_scaling != ROPE_PLAIN)
		c->rope_factor = hf_need_real(r, "factor");
	if (c->rope_scaling == ROPE_LLAMA3)
		stretch_from_hf(r, beside, c);
	ignore_other_kinds(r);
	hf_refuse_unread(r);
}

/* Applies the rule of transformers (modeling_rope_utils.py): "rope_scaling", the older name, takes
 * precedence unless empty. */
static void rope_from_hf(struct hf_fields *f, struct run_config *c) {
	const struct rope_beside beside = rope_beside_from_hf(f);
	struct hf_fields older = hf_enter(f, "rope_scaling");
	const bool is_older = json_object_size(older.json) > 0;
	hf_leave(f, &older);
	(void)hf_has(f, "rope_parameters");
	struct hf_fields r = hf_enter(f, is_older ? "rope_scaling" : "rope_parameters");
	rope_parameters_from_hf(&r, &beside, c);
	hf_leave(f, &r);
}

/* Reads LlamaConfig of transformers, with its defaults. */
static enum rv_err llama_config_from_hf(const json_t *json, struct run_config *c, struct rv_errtext *et) {
	struct hf_fields f = hf_begin(json, et);
	hf_expect_architecture(&f, "LlamaForCausalLM|LlamaModel");
	hf_expect_string(&f, "hidden_act", "silu", "silu|swish");
	hf_expect_bool(&f, "attention_bias", false, false);
	hf_expect_bool(&f, "mlp_bias", false, false);
	hf_expect_bool(&f, "rope_interleaved", false, false);
	hf_expect_bool(&f, "use_sliding_window", false, false);
	hf_expect_real(&f, "partial_rotary_factor", 1, 1);
	c->model = MODEL_llama;
	c->n_layer = hf_int(&f, "num_hidden_layers", 32);
	c->n_head = hf_int(&f, "num_attention_heads", 32);
	c->n_embd = hf_int(&f, "hidden_size", 4096);
	c->n_kv_head = hf_positive_int(&f, "num_key_value_heads", c->n_head);
	c->n_inner = hf_int(&f, "intermediate_size", 11008);
	c->vocab = hf_int(&f, "vocab_size", 32000);
	const int64_t positions = hf_int(&f, "max_position_embeddings", 2048);
	c->context = hf_context(hf_positive_int(&f, HF_CONTEXT_KEY, positions));
	c->norm_eps = hf_real(&f, "rms_norm_eps", 1e-6);
	c->tied = hf_bool(&f, "tie_word_embeddings", false);
	if (c->n_head > 0)
		hf_expect_int(&f, "head_dim", c->n_embd / c->n_head, c->n_embd / c->n_head);
	rope_from_hf(&f, c);
	hf_check_rest(&f);
	return hf_end(&f);
}

static json_t *rope_to_hf(const struct run_config *c) {
	if (c->rope_scaling == ROPE_LINEAR)
		return json_pack("{ss sf}", "rope_type", "linear", "factor", c->rope_factor);
	if (c->rope_scaling == ROPE_LLAMA3)
		return json_pack("{ss sf sf sf sI}", "rope_type", "llama3", "factor", c->rope_factor, "low_freq_factor",
						 c->rope_low_freq, "high_freq_factor", c->rope_high_freq, "original_max_position_embeddings",
						 (json_int_t)c->rope_original_context);
	return json_null();
}

static json_t *llama_config_to_hf(const struct run_config *c) {
	const int64_t inner = c->n_inner ? c->n_inner : model_llama_inner((int)c->n_embd);
	return json_pack("{s[s] ss sI sI sI sI sI sI sI ss sf sf so sb sb sb sn sn}", "architectures", "LlamaForCausalLM",
					 "model_type", "llama", "vocab_size", (json_int_t)c->vocab, "hidden_size", (json_int_t)c->n_embd,
					 "intermediate_size", (json_int_t)inner, "num_hidden_layers", (json_int_t)c->n_layer,
					 "num_attention_heads", (json_int_t)c->n_head, "num_key_value_heads",
					 (json_int_t)(c->n_kv_head ? c->n_kv_head : c->n_head), "max_position_embeddings",
					 (json_int_t)c->context, "hidden_act", "silu", "rms_norm_eps", c->norm_eps, "rope_theta",
					 c->rope_theta, "rope_scaling", rope_to_hf(c), "attention_bias", 0, "mlp_bias", 0,
					 "tie_word_embeddings", (int)c->tied, "bos_token_id", "eos_token_id");
}

/* Reports the rotation's frequencies, which follow from the configuration. */
static bool llama_hf_ignored(const char *name) {
	const char *end = strstr(name, ".rotary_emb.inv_freq");
	return end && end[strlen(".rotary_emb.inv_freq")] == '\0';
}

const struct model_ops model_llama = {
	.name = "llama",
	.rules = &model_rules_llama,
	.hf_prefix = "",
	.hf_body = "model.",
	.config_from_hf = llama_config_from_hf,
	.config_to_hf = llama_config_to_hf,
	.hf_ignored = llama_hf_ignored,
	.plan_bytes = sizeof(struct decoder_plan),
	.layout = llama_layout,
	.reads_fp32 = llama_reads_fp32,
	.widest_linear = llama_widest_linear,
	.plan = llama_plan,
	.forward = decoder_forward,
	.loss = decoder_loss,
	.backward = decoder_backward,
	.logits = decoder_logits,
	.decode = decoder_decode,
};
