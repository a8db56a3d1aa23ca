/* config.json of both families, and the tokenizer's files. */
#include "tests/train/train_fixture.h"

#include "train/files/hf_config.h"
#include "train/files/hf_tokenizer.h"
#include "train/text/tokenizer/tokenizer.h"

#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rv_errtext et;

static enum rv_err parse(const char *text, struct run_config *c) {
	run_config_defaults(c);
	return hf_config_parse("config.json", text, strlen(text), c, &et);
}

static void refused(const char *text, enum rv_err kind, const char *why) {
	struct run_config c, before;
	run_config_defaults(&before);
	enum rv_err e = parse(text, &c);
	assert_fault(e, kind, &et, why);
	assert_memory_equal(et.text, "config.json", strlen("config.json"));
	assert_int_equal(c.n_layer, before.n_layer);
}

#define GPT2(layers)                                                                                                   \
	"{\"model_type\":\"gpt2\",\"n_layer\":" layers ",\"n_head\":12,\"n_embd\":768,\"n_positions\":1024,"               \
	"\"vocab_size\":50257,\"layer_norm_epsilon\":1e-5,\"activation_function\":\"gelu_new\"}"

static void test_gpt2(void **state) {
	(void)state;
	struct run_config c;
	if (parse(GPT2("12"), &c) != RV_OK)
		fail_msg("%s", et.text);
	assert_int_equal(c.model, MODEL_gpt2);
	assert_int_equal(c.n_embd, 768);
	assert_int_equal(c.vocab, 50257);
	assert_int_equal(c.context, 1024);
}

static void test_llama(void **state) {
	(void)state;
	struct run_config c;
	const char *text = "{\"model_type\":\"llama\",\"num_hidden_layers\":16,\"num_attention_heads\":32,"
					   "\"num_key_value_heads\":8,\"hidden_size\":2048,\"intermediate_size\":8192,"
					   "\"max_position_embeddings\":4096,\"vocab_size\":128256,\"rms_norm_eps\":1e-5,"
					   "\"rope_theta\":500000.0,\"tie_word_embeddings\":true,\"hidden_act\":\"silu\"}";
	if (parse(text, &c) != RV_OK)
		fail_msg("%s", et.text);
	assert_int_equal(c.model, MODEL_llama);
	assert_int_equal(c.n_kv_head, 8);
	assert_int_equal(c.n_inner, 8192);
	assert_true(c.tied);
	assert_true(c.rope_theta == 500000.0);
}

static void test_refusals(void **state) {
	(void)state;
	refused("", RV_E_CORRUPT, "line");
	refused("[]", RV_E_CORRUPT, "model_type");
	refused("{\"model_type\":7}", RV_E_CORRUPT, "model_type");
	refused("{\"model_type\":\"gpt2\",\"model_type\":\"gpt2\"}", RV_E_CORRUPT, "duplicate");
	refused("{\"model_type\":\"mamba\"}", RV_E_UNSUPPORTED, "mamba");
	refused(GPT2("\"twelve\""), RV_E_CORRUPT, "n_layer");
	refused(GPT2("100000"), RV_E_RANGE, "n-layer");
	refused(GPT2("-1"), RV_E_CORRUPT, "n_layer");
	refused("{\"model_type\":\"llama\",\"num_hidden_layers\":16,\"num_attention_heads\":32,"
			"\"num_key_value_heads\":0,\"hidden_size\":2048,\"intermediate_size\":8192,"
			"\"max_position_embeddings\":4096,\"vocab_size\":128256,\"rms_norm_eps\":1e-5}",
			RV_E_CORRUPT, "num_key_value_heads");
}

/* ---- the same loss as transformers, or refused by name ---- */

#define SMALL_LLAMA                                                                                                    \
	"\"model_type\":\"llama\",\"num_hidden_layers\":2,\"num_attention_heads\":4,\"hidden_size\":48,"                   \
	"\"intermediate_size\":80,\"max_position_embeddings\":128,\"vocab_size\":256"
#define STRETCH                                                                                                        \
	"\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"                              \
	"\"original_max_position_embeddings\":64"

static struct run_config llama_with(const char *more) {
	struct run_config c;
	char text[1024];
	snprintf(text, sizeof text, "{" SMALL_LLAMA ",%s}", more);
	if (parse(text, &c) != RV_OK)
		fail_msg("%s: %s", more, et.text);
	return c;
}

static void llama_refused(const char *more, enum rv_err kind, const char *why) {
	char text[1024];
	snprintf(text, sizeof text, "{" SMALL_LLAMA ",%s}", more);
	refused(text, kind, why);
}

static void test_theta_is_found_where_transformers_finds_it(void **state) {
	(void)state;
	static const struct {
		const char *more;
		double theta;
		enum rope_scaling scaling;
	} cases[] = {
		{"\"hidden_act\":\"silu\"", 10000, ROPE_PLAIN},
		{"\"rope_theta\":500,\"rope_parameters\":{}", 500, ROPE_PLAIN},
		{"\"rope_theta\":500,\"rope_parameters\":null", 500, ROPE_PLAIN},
		{"\"rope_theta\":500,\"rope_parameters\":{\"rope_type\":\"default\"}", 500, ROPE_PLAIN},
		{"\"rope_theta\":500,\"rope_parameters\":{\"rope_theta\":900}", 900, ROPE_PLAIN},
		{"\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,\"rope_theta\":900}", 900, ROPE_LINEAR},
		{"\"rope_parameters\":{\"rope_theta\":900},\"rope_scaling\":{" STRETCH "}", 10000, ROPE_LLAMA3},
		{"\"rope_parameters\":{\"rope_theta\":900},\"rope_scaling\":{}", 900, ROPE_PLAIN},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct run_config c = llama_with(cases[i].more);
		if (c.rope_theta != cases[i].theta || c.rope_scaling != (int)cases[i].scaling)
			fail_msg("%s: theta %g, scaling %d", cases[i].more, c.rope_theta, c.rope_scaling);
	}
}

/* Rivulet's own key: the context of training, where the model can read more. */
static void test_the_context_of_training_stands_apart(void **state) {
	(void)state;
	assert_int_equal(llama_with("\"rivulet_context\":32").context, 32);
	assert_int_equal(llama_with("\"rope_theta\":500").context, 128);
}

static void test_rotations_that_differ_are_refused(void **state) {
	(void)state;
	llama_refused("\"rope_scaling\":{" STRETCH "},\"original_max_position_embeddings\":128", RV_E_UNSUPPORTED,
				  "\"original_max_position_embeddings\": it occurs twice");
	assert_int_equal(
		llama_with("\"rope_scaling\":{" STRETCH "},\"original_max_position_embeddings\":64").rope_original_context, 64);
	llama_refused("\"partial_rotary_factor\":0.5", RV_E_UNSUPPORTED, "\"partial_rotary_factor\" is 0.5");
	llama_refused("\"rope_parameters\":{\"partial_rotary_factor\":0.5}", RV_E_UNSUPPORTED, "partial_rotary_factor");
	llama_refused("\"rope_parameters\":{\"mscale\":2}", RV_E_UNSUPPORTED, "\"mscale\": a key that is not known");
	llama_refused("\"rope_theta\":null", RV_E_CORRUPT, "rope_theta");
	llama_refused("\"rope_parameters\":{\"rope_theta\":null}", RV_E_CORRUPT, "rope_theta");
	llama_refused("\"rope_interleaved\":true", RV_E_UNSUPPORTED, "rope_interleaved");
}

static void test_unknown_keys_are_refused_by_name(void **state) {
	(void)state;
	llama_refused("\"quantization_config\":{\"bits\":4}", RV_E_UNSUPPORTED, "\"quantization_config\": the weights are");
	llama_refused("\"residual_multiplier\":0.5", RV_E_UNSUPPORTED, "\"residual_multiplier\": a key that is not known");
	llama_refused("\"sliding_window\":4096", RV_E_UNSUPPORTED, "sliding_window");
	llama_refused("\"auto_map\":{}", RV_E_UNSUPPORTED, "code of its own");
	llama_refused("\"is_causal\":false", RV_E_UNSUPPORTED, "is_causal");
	llama_refused("\"pruned_heads\":{\"0\":[1]}", RV_E_UNSUPPORTED, "pruned_heads");
	refused("{\"model_type\":\"gpt2\",\"intermediate_size\":96}", RV_E_UNSUPPORTED, "intermediate_size");
	refused("{\"model_type\":\"gpt2\",\"layer_norm_epsilon\":1e-6}", RV_E_UNSUPPORTED, "layer_norm_epsilon");
	(void)llama_with("\"quantization_config\":null,\"sliding_window\":null,\"residual_multiplier\":null");
	(void)llama_with("\"bos_token_id\":1,\"eos_token_id\":[2,3],\"torch_dtype\":\"bfloat16\",\"use_cache\":true,"
					 "\"pretraining_tp\":1,\"attention_dropout\":0.0,\"transformers.js_config\":{\"dtype\":\"q4\"},"
					 "\"pruned_heads\":{},\"is_decoder\":true,\"temperature\":0.7,\"unsloth_version\":\"1\"");
}

static void test_gpt2_by_the_common_names(void **state) {
	(void)state;
	struct run_config c;
	const char *beside = "{\"model_type\":\"gpt2\",\"n_head\":4,\"num_attention_heads\":2,\"n_embd\":48}";
	const char *instead = "{\"model_type\":\"gpt2\",\"num_attention_heads\":2,\"hidden_size\":48,"
						  "\"num_hidden_layers\":3,\"max_position_embeddings\":64}";
	assert_int_equal(parse(beside, &c), RV_OK);
	assert_int_equal(c.n_head, 2);
	assert_int_equal(parse(instead, &c), RV_OK);
	assert_int_equal(c.n_head, 2);
	assert_int_equal(c.n_embd, 48);
	assert_int_equal(c.n_layer, 3);
	assert_int_equal(c.context, 64);
}

/* ---- tokenizers ---- */

static void test_bytes_are_their_values(void **state) {
	(void)state;
	char *text = hf_tokenizer_of_bytes();
	struct tokenizer *t;
	struct encoder *e;
	struct token_list ids = {0};
	struct byte_list back = {0};
	uint8_t bytes[1024];
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	if (hf_tokenizer_load("bytes", (uint8_t *)text, strlen(text), 256, &t, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_int_equal(tokenizer_vocab(t), 256);
	assert_int_equal(encoder_new(t, &e, &et), RV_OK);
	assert_int_equal(tokenizer_encode(e, bytes, sizeof bytes, SPECIALS_AS_TEXT, &ids, &et), RV_OK);
	assert_int_equal(ids.n, sizeof bytes);
	for (size_t i = 0; i < sizeof bytes; i++)
		assert_int_equal(ids.ids[i], bytes[i]);
	assert_int_equal(tokenizer_decode(t, ids.ids, ids.n, &back, &et), RV_OK);
	assert_memory_equal(back.bytes, bytes, sizeof bytes);
	byte_list_release(&back);
	token_list_release(&ids);
	encoder_free(e);
	tokenizer_free(t);
	free(text);
}

static json_t *read_json(const char *dir, const char *name) {
	char path[400];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
}

/* The tokenizer of bytes and one more token: <|endoftext|>. */
static void write_with_special(const char *dir, char *path, size_t cap) {
	char *text = hf_tokenizer_of_bytes();
	json_t *root = json_loads(text, 0, NULL);
	json_array_append_new(json_object_get(root, "added_tokens"),
						  json_pack("{si ss sb sb sb sb sb}", "id", 256, "content", "<|endoftext|>", "single_word", 0,
									"lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1));
	char *changed = json_dumps(root, 0);
	fixture_write(dir, "given.json", (uint8_t *)changed, strlen(changed), path, cap);
	free(changed);
	json_decref(root);
	free(text);
}

static struct run_config run_of(int64_t vocab) {
	struct run_config c;
	run_config_defaults(&c);
	c.vocab = vocab;
	c.context = 64;
	return c;
}

static void test_directory_gets_what_transformers_reads(void **state) {
	(void)state;
	char dir[256], given[400];
	struct run_config run = run_of(300);
	scratch_make(dir, sizeof dir);
	write_with_special(dir, given, sizeof given);
	assert_int_equal(hf_tokenizer_write(dir, given, &run, &et), RV_OK);
	json_t *tokenizer = read_json(dir, HF_TOKENIZER_FILE), *original = read_json(dir, "given.json");
	json_t *config = read_json(dir, HF_TOKENIZER_CONFIG_FILE), *generation = read_json(dir, HF_GENERATION_FILE);
	assert_true(json_equal(tokenizer, original));
	assert_string_equal(json_string_value(json_object_get(config, "eos_token")), "<|endoftext|>");
	assert_int_equal(json_integer_value(json_object_get(config, "model_max_length")), 64);
	assert_int_equal(json_integer_value(json_object_get(generation, "eos_token_id")), 256);
	json_decref(tokenizer);
	json_decref(original);
	json_decref(config);
	json_decref(generation);
	run.vocab = 256;
	assert_fault(hf_tokenizer_write(dir, given, &run, &et), RV_E_RANGE, &et,
				 "257 tokens, but the model's vocab is 256");
	const char ranks[] = "YQ== 0\nYg== 1\n";
	fixture_write(dir, "ranks", (const uint8_t *)ranks, strlen(ranks), given, sizeof given);
	assert_int_not_equal(hf_tokenizer_write(dir, given, &run, &et), RV_OK);
	assert_int_equal(hf_tokenizer_write(dir, NULL, &run, &et), RV_OK);
	config = read_json(dir, HF_TOKENIZER_CONFIG_FILE);
	assert_true(json_is_null(json_object_get(config, "eos_token")));
	json_decref(config);
	scratch_remove(dir);
}

/* Token shards name no tokenizer: none is made up for them. Another than the run's is not
 * copied. */
static void test_only_what_made_the_tokens(void **state) {
	(void)state;
	char dir[256], given[400];
	struct run_config run = run_of(50257);
	scratch_make(dir, sizeof dir);
	assert_fault(hf_tokenizer_write(dir, NULL, &run, &et), RV_E_NOTFOUND, &et, "50257 tokens was not given");
	write_with_special(dir, given, sizeof given);
	memset(run.tokenizer_hash, 'a', sizeof run.tokenizer_hash - 1);
	assert_fault(hf_tokenizer_write(dir, given, &run, &et), RV_E_INVALID, &et, "the run expects the file with hash");
	run.vocab = 256;
	assert_fault(hf_tokenizer_write(dir, NULL, &run, &et), RV_E_NOTFOUND, &et, "was not given");
	assert_null(read_json(dir, HF_TOKENIZER_FILE));
	scratch_remove(dir);
}

/* As many of tiktoken's ranks as GPT-2 has: the bytes, then pairs of them. */
static size_t print_ranks(char *text, size_t cap) {
	enum { RANKS = 50256 };
	size_t n = 0;
	for (int i = 0; i < RANKS; i++) {
		char base64[12];
		int pair = i - 256;
		const uint8_t bytes[2] = {(uint8_t)(i < 256 ? i : pair >> 8), (uint8_t)pair};
		sodium_bin2base64(base64, sizeof base64, bytes, i < 256 ? 1 : 2, sodium_base64_VARIANT_ORIGINAL);
		n += (size_t)snprintf(text + n, cap - n, "%s %d\n", base64, i);
	}
	return n;
}

static void test_ranks_are_copied(void **state) {
	(void)state;
	enum { TEXT_BYTES = 1 << 20 };
	char dir[256], given[400], *text = malloc(TEXT_BYTES);
	struct run_config run = run_of(50304);
	scratch_make(dir, sizeof dir);
	size_t n = print_ranks(text, TEXT_BYTES);
	fixture_write(dir, "given", (const uint8_t *)text, n, given, sizeof given);
	free(text);
	if (hf_tokenizer_write(dir, given, &run, &et) != RV_OK)
		fail_msg("%s", et.text);
	snprintf(given, sizeof given, "%s/" HF_RANKS_FILE, dir);
	struct tokenizer *t;
	assert_int_equal(tokenizer_open(given, "auto", &t, &et), RV_OK);
	assert_string_equal(tokenizer_kind(t), "tiktoken");
	tokenizer_free(t);
	assert_null(read_json(dir, HF_TOKENIZER_FILE));
	scratch_remove(dir);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpt2),
		cmocka_unit_test(test_llama),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_theta_is_found_where_transformers_finds_it),
		cmocka_unit_test(test_the_context_of_training_stands_apart),
		cmocka_unit_test(test_rotations_that_differ_are_refused),
		cmocka_unit_test(test_unknown_keys_are_refused_by_name),
		cmocka_unit_test(test_gpt2_by_the_common_names),
		cmocka_unit_test(test_bytes_are_their_values),
		cmocka_unit_test(test_directory_gets_what_transformers_reads),
		cmocka_unit_test(test_only_what_made_the_tokens),
		cmocka_unit_test(test_ranks_are_copied),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
