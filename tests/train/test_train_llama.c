/* test_train_llama.c: what is Llama's own: the rotation's table, the shapes that cannot be packed,
 * and the configuration files of both families that Hugging Face's library has. */
#include "tests/train/train_fixture.h"

#include "train/files/weights_names.h"
#include "train/model/model.h"
#include "train/model/rope_table.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct model_shape small = {
	.n_layer = 1, .n_head = 4, .n_embd = 16, .vocab = 64, .context = 8, .norm_eps = 1e-5f, .rope = {.theta = 10000}};

/* ---- rotation */

/* Angle of a pair at a position, from its cosine and sine at position 1. */
static void assert_turns(const struct model_rope *r, int head_dim, const double *per_position) {
	float row[2 * 8];
	for (int p = 0; p < 5; p++) {
		rope_table_row(r, head_dim, p, row);
		for (int i = 0; i < head_dim / 2; i++) {
			assert_true(fabs(row[2 * i] - cos(p * per_position[i])) < 1e-7);
			assert_true(fabs(row[2 * i + 1] - sin(p * per_position[i])) < 1e-7);
		}
	}
}

static void test_rotation_by_hand(void **state) {
	(void)state;
	const struct model_rope plain = {.theta = 10000}, linear = {10000, ROPE_LINEAR, 4, 0, 0, 0};
	assert_turns(&plain, 8, (const double[]){1, 0.1, 0.01, 0.001});
	assert_turns(&linear, 8, (const double[]){0.25, 0.025, 0.0025, 0.00025});
	/* Llama 3.1's file, for a head of 8: wave lengths of 6.3, 167, 4443 and 118 thousand tokens, of
	 * which the third lies between 8192/4 and 8192/1 and mixes: s = (8192 / 4443 - 1) / 3. */
	const struct model_rope llama3 = {500000, ROPE_LLAMA3, 8, 1, 4, 8192};
	const double f2 = pow(500000, -0.5), s = (8192 * f2 / (2 * M_PI) - 1) / 3;
	assert_turns(&llama3, 8,
				 (const double[]){1, pow(500000, -0.25), (1 - s) * f2 / 8 + s * f2, pow(500000, -0.75) / 8});
}

/* Positions near the end of a long context keep seven digits: the angle is computed in double. */
static void test_far_positions_are_exact(void **state) {
	(void)state;
	const struct model_rope r = {.theta = 10000};
	float row[4];
	rope_table_row(&r, 4, 1 << 20, row);
	assert_true(fabs(row[0] - cos(1048576.0)) < 1e-7);
	assert_true(fabs(row[3] - sin(10485.76)) < 1e-7);
}

/* ---- shapes */

static struct model_shape resolved(struct model_shape s) {
	struct model_layout l;
	struct model_shape out;
	assert_ok(model_layout_init(&l, &model_llama, &s, &out, &et));
	model_layout_release(&l);
	return out;
}

static void refuse(struct model_shape s, const char *needle) {
	struct rv_errtext et = {0};
	struct model_layout l;
	assert_fault(model_layout_init(&l, &model_llama, &s, NULL, &et), RV_E_RANGE, &et, needle);
	assert_null(l.tensors);
}

static void test_usual_sizes(void **state) {
	(void)state;
	struct model_shape s = small;
	assert_int_equal(resolved(s).n_kv_head, 4);
	assert_int_equal(resolved(s).n_inner, 256);
	s.n_embd = 4096; /* 7B: 11008 */
	assert_int_equal(resolved(s).n_inner, 11008);
	s.n_embd = 2048; /* 1B: 5632 */
	assert_int_equal(resolved(s).n_inner, 5632);
	s.n_inner = 48;
	s.n_kv_head = 2;
	assert_int_equal(resolved(s).n_inner, 48);
	assert_int_equal(resolved(s).n_kv_head, 2);
}

static void test_q_k_v_and_gate_up_are_packed(void **state) {
	(void)state;
	struct model_layout l;
	struct model_shape s = small;
	s.n_kv_head = 1;
	s.n_inner = 40;
	assert_ok(model_layout_init(&l, &model_llama, &s, NULL, &et));
	static const char *const pairs[][2] = {
		{"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight"},
		{"model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight"},
		{"model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"}};
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		const struct model_tensor *a = model_find_tensor(&l, pairs[i][0]), *b = model_find_tensor(&l, pairs[i][1]);
		assert_int_equal(a->offset + a->elems, b->offset);
	}
	assert_int_equal(model_find_tensor(&l, pairs[1][0])->rows, 4);
	assert_non_null(model_find_tensor(&l, "lm_head.weight"));
	model_layout_release(&l);
}

static void test_impossible_shapes_are_refused(void **state) {
	(void)state;
	struct model_shape s = small;
	s.n_embd = 20; /* 400 values are 25 x 16, but k has 100 */
	s.n_head = 2;
	s.n_kv_head = 1;
	refuse(s, "k_proj of 10 x 20 values: not a multiple of 16; choose another n-embd");
	s = small;
	s.n_kv_head = 3;
	refuse(s, "not a multiple of n-kv-head = 3");
	s = small;
	s.n_head = 16;
	refuse(s, "1 channels per head: must be even");
	s = small;
	s.norm_eps = 0;
	refuse(s, "norm-eps");
	s = small;
	s.rope.scaling = ROPE_LLAMA3;
	s.rope.factor = 8;
	s.rope.low_freq = s.rope.high_freq = 4;
	s.rope.original_context = 8192;
	refuse(s, "rope-low-freq = 4");
	s.rope.scaling = ROPE_LINEAR;
	s.rope.factor = 0.5;
	refuse(s, "rope-factor = 0.5");
}

/* ---- config.json */

static enum rv_err parse(const struct model_ops *family, const char *text, struct run_config *c,
						 struct rv_errtext *et) {
	json_error_t why;
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	if (!json)
		fail_msg("%s: %s", why.text, text);
	run_config_defaults(c);
	enum rv_err e = family->config_from_hf(json, c, et);
	json_decref(json);
	return e;
}

static struct run_config accept(const struct model_ops *family, const char *text) {
	struct rv_errtext et = {0};
	struct run_config c;
	if (parse(family, text, &c, &et) != RV_OK)
		fail_msg("%s: %s", text, et.text);
	return c;
}

static void reject(const struct model_ops *family, const char *text, enum rv_err want, const char *needle) {
	struct rv_errtext et = {0};
	struct run_config c;
	assert_fault(parse(family, text, &c, &et), want, &et, needle);
}

/* The file of Llama 3.2 1B, less what says how to sample. */
static const char llama_1b[] =
	"{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":"
	"128000,"
	"\"eos_token_id\":128001,\"head_dim\":64,\"hidden_act\":\"silu\",\"hidden_size\":2048,\"initializer_range\":0.02,"
	"\"intermediate_size\":8192,\"max_position_embeddings\":131072,\"mlp_bias\":false,\"model_type\":\"llama\","
	"\"num_attention_heads\":32,\"num_hidden_layers\":16,\"num_key_value_heads\":8,\"pretraining_tp\":1,"
	"\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":32.0,\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
	"\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,"
	"\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\",\"use_cache\":true,\"vocab_size\":128256}";

static void test_llama_config_is_read(void **state) {
	(void)state;
	struct run_config c = accept(&model_llama, llama_1b);
	assert_int_equal(c.model, MODEL_llama);
	assert_int_equal(c.n_layer, 16);
	assert_int_equal(c.n_head, 32);
	assert_int_equal(c.n_kv_head, 8);
	assert_int_equal(c.n_embd, 2048);
	assert_int_equal(c.n_inner, 8192);
	assert_int_equal(c.vocab, 128256);
	assert_int_equal(c.context, 16383); /* as long as a run may have */
	assert_true(c.tied && c.norm_eps == 1e-5 && c.rope_theta == 500000);
	assert_int_equal(c.rope_scaling, ROPE_LLAMA3);
	assert_true(c.rope_factor == 32 && c.rope_low_freq == 1 && c.rope_high_freq == 4 &&
				c.rope_original_context == 8192);
	c = accept(&model_llama, "{\"model_type\":\"llama\",\"num_key_value_heads\":null,\"rope_scaling\":null}");
	assert_true(c.n_embd == 4096 && c.n_inner == 11008 && c.n_layer == 32 && c.n_kv_head == 32 && !c.tied);
	assert_true(c.norm_eps == 1e-6 && c.vocab == 32000 && c.context == 2048);
	assert_int_equal(c.rope_scaling, ROPE_PLAIN);
	c = accept(&model_llama, "{\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":2,\"rope_theta\":1e6}}");
	assert_true(c.rope_theta == 1e6 && c.rope_factor == 2);
	assert_int_equal(c.rope_scaling, ROPE_LINEAR);
	c = accept(&model_llama, "{\"rope_scaling\":{\"type\":\"linear\",\"factor\":4.0}}");
	assert_true(c.rope_factor == 4);
}

static void test_llama_configs_that_compute_something_else_are_refused(void **state) {
	(void)state;
	static const struct {
		const char *text;
		enum rv_err err;
		const char *needle;
	} bad[] = {
		{"{\"hidden_act\":\"gelu\"}", RV_E_UNSUPPORTED, "\"hidden_act\" is \"gelu\""},
		{"{\"attention_bias\":true}", RV_E_UNSUPPORTED, "\"attention_bias\" is true"},
		{"{\"mlp_bias\":true}", RV_E_UNSUPPORTED, "\"mlp_bias\""},
		{"{\"head_dim\":64}", RV_E_UNSUPPORTED, "\"head_dim\" is 64; only 128"},
		{"{\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4}}", RV_E_UNSUPPORTED, "yarn"},
		{"{\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4}}", RV_E_UNSUPPORTED, "dynamic"},
		{"{\"rope_scaling\":{\"rope_type\":\"linear\"}}", RV_E_CORRUPT, "\"factor\" is missing"},
		{"{\"rope_scaling\":7}", RV_E_CORRUPT, "\"rope_scaling\" must be an object"},
		{"{\"architectures\":[\"LlamaForSequenceClassification\"]}", RV_E_UNSUPPORTED,
		 "LlamaForSequenceClassification"},
		{"{\"architectures\":[]}", RV_E_CORRUPT, "\"architectures\""},
		{"{\"hidden_size\":\"large\"}", RV_E_CORRUPT, "\"hidden_size\" must be a number"},
		{"{\"hidden_size\":-4096}", RV_E_CORRUPT, "\"hidden_size\""},
		{"{\"hidden_size\":99999999999999}", RV_E_CORRUPT, "\"hidden_size\""},
		{"{\"hidden_size\":1.5}", RV_E_CORRUPT, "without a fraction"},
		{"{\"rms_norm_eps\":\"x\"}", RV_E_CORRUPT, "\"rms_norm_eps\""},
		{"{\"tie_word_embeddings\":1}", RV_E_CORRUPT, "true or false"},
		{"{\"hidden_act\":1}", RV_E_CORRUPT, "\"hidden_act\" must be a text"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		reject(&model_llama, bad[i].text, bad[i].err, bad[i].needle);
	struct run_config c; /* no heads: a range that the options have, not a division by zero */
	assert_ok(parse(&model_llama, "{\"num_attention_heads\":0}", &c, &et));
	assert_int_equal(c.n_head, 0);
}

static void test_gpt2_config(void **state) {
	(void)state;
	struct run_config c = accept(&model_gpt2, "{\"model_type\":\"gpt2\",\"n_inner\":null,\"n_ctx\":1024,"
											  "\"architectures\":[\"GPT2LMHeadModel\"],\"vocab_size\":50257}");
	assert_true(c.n_layer == 12 && c.n_head == 12 && c.n_embd == 768 && c.vocab == 50257 && c.context == 1024);
	assert_true(c.tied && c.n_inner == 0 && c.n_kv_head == 0);
	reject(&model_gpt2, "{\"activation_function\":\"relu\"}", RV_E_UNSUPPORTED, "\"activation_function\" is \"relu\"");
	reject(&model_gpt2, "{\"layer_norm_epsilon\":1e-12}", RV_E_UNSUPPORTED, "\"layer_norm_epsilon\" is 1e-12");
	reject(&model_gpt2, "{\"n_inner\":100}", RV_E_UNSUPPORTED, "\"n_inner\" is 100; only 3072");
	reject(&model_gpt2, "{\"tie_word_embeddings\":false}", RV_E_UNSUPPORTED, "\"tie_word_embeddings\"");
	reject(&model_gpt2, "{\"scale_attn_weights\":false}", RV_E_UNSUPPORTED, "\"scale_attn_weights\"");
	reject(&model_gpt2, "{\"scale_attn_by_inverse_layer_idx\":true}", RV_E_UNSUPPORTED, "inverse_layer_idx");
}

/* What is written is read again as the same model. */
static void check_round_trip(const struct model_ops *family, const struct run_config *c) {
	struct run_config back;
	json_t *json = family->config_to_hf(c);
	assert_non_null(json);
	assert_string_equal(json_string_value(json_object_get(json, "model_type")), family->name);
	run_config_defaults(&back);
	assert_ok(family->config_from_hf(json, &back, &et));
	json_decref(json);
	struct model_shape a = model_shape_of(c), b = model_shape_of(&back);
	assert_ok(family->rules->resolve(&a, &et));
	assert_ok(family->rules->resolve(&b, &et));
	assert_true(a.n_layer == b.n_layer && a.n_head == b.n_head && a.n_kv_head == b.n_kv_head && a.n_embd == b.n_embd);
	assert_true(a.n_inner == b.n_inner && a.vocab == b.vocab && a.context == b.context && a.tied == b.tied);
	assert_true(a.norm_eps == b.norm_eps && a.rope.scaling == b.rope.scaling && a.rope.theta == b.rope.theta);
	if (a.rope.scaling != ROPE_PLAIN)
		assert_true(a.rope.factor == b.rope.factor);
	if (a.rope.scaling == ROPE_LLAMA3)
		assert_true(a.rope.low_freq == b.rope.low_freq && a.rope.high_freq == b.rope.high_freq &&
					a.rope.original_context == b.rope.original_context);
}

static void test_configs_survive_the_round_trip(void **state) {
	(void)state;
	for (int i = 0; model_registry[i]; i++) {
		struct run_config c;
		run_config_defaults(&c);
		(void)rv_options_set(run_config_options, &c, "model", model_registry[i]->name, NULL);
		check_round_trip(model_registry[i], &c);
	}
	struct run_config c = accept(&model_llama, llama_1b);
	check_round_trip(&model_llama, &c);
	(void)rv_options_set(run_config_options, &c, "rope-scaling", "linear", NULL);
	c.tied = false;
	c.n_kv_head = 0;
	check_round_trip(&model_llama, &c);
}

/* LlamaModel, the body alone, leaves "model." out. */
static void test_names_of_the_body_alone(void **state) {
	(void)state;
	const struct model_shape shape = {.n_layer = 2,
									  .n_head = 2,
									  .n_kv_head = 2,
									  .n_embd = 16,
									  .n_inner = 24,
									  .vocab = 32,
									  .context = 8,
									  .norm_eps = 1e-5f,
									  .rope = {.theta = 10000}};
	struct model_layout l;
	struct rv_errtext why = {0};
	if (model_layout_init(&l, &model_llama, &shape, NULL, &why) != RV_OK)
		fail_msg("%s", why.text);
	const struct model_tensor *t = weights_find_tensor(&model_llama, &l, "layers.1.self_attn.q_proj.weight");
	assert_non_null(t);
	assert_ptr_equal(t, weights_find_tensor(&model_llama, &l, "model.layers.1.self_attn.q_proj.weight"));
	assert_non_null(weights_find_tensor(&model_llama, &l, "embed_tokens.weight"));
	assert_null(weights_find_tensor(&model_llama, &l, "model.model.norm.weight"));
	assert_null(weights_find_tensor(&model_llama, &l, "layers.2.self_attn.q_proj.weight"));
	model_layout_release(&l);
}

static void test_tensors_that_are_no_parameters(void **state) {
	(void)state;
	assert_true(model_gpt2.hf_ignored("h.0.attn.bias"));
	assert_true(model_gpt2.hf_ignored("h.11.attn.masked_bias"));
	assert_false(model_gpt2.hf_ignored("h.0.attn.c_attn.bias"));
	assert_false(model_gpt2.hf_ignored("h.0.attn.bias.x"));
	assert_false(model_gpt2.hf_ignored("h.x.attn.bias"));
	assert_true(model_llama.hf_ignored("model.layers.3.self_attn.rotary_emb.inv_freq"));
	assert_false(model_llama.hf_ignored("model.layers.3.self_attn.q_proj.bias"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rotation_by_hand),
		cmocka_unit_test(test_far_positions_are_exact),
		cmocka_unit_test(test_usual_sizes),
		cmocka_unit_test(test_q_k_v_and_gate_up_are_packed),
		cmocka_unit_test(test_impossible_shapes_are_refused),
		cmocka_unit_test(test_llama_config_is_read),
		cmocka_unit_test(test_llama_configs_that_compute_something_else_are_refused),
		cmocka_unit_test(test_gpt2_config),
		cmocka_unit_test(test_configs_survive_the_round_trip),
		cmocka_unit_test(test_names_of_the_body_alone),
		cmocka_unit_test(test_tensors_that_are_no_parameters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
