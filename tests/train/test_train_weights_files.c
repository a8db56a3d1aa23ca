/* Weights as others write them: prefixes, redundant and ignored tensors, several files behind an
 * index; and what must be refused, with the tensor's name. */
#include "tests/train/safetensors_edit.h"
#include "tests/train/train_fixture.h"

#include "train/files/weights.h"
#include "train/files/weights_save.h"
#include "train/files/weights_set.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "transformer."

static struct fixture_run run;
static const struct model_layout *layout;
static char file[300], out_dir[300];
static float *params;
static const float *theta;
static struct rv_errtext et;

static struct weights_source source(void) {
	return (struct weights_source){.cfg = &run.cfg, .layout = layout, .params = theta, .origin = {.round = 5}};
}

static int setup(void **state) {
	(void)state;
	fixture_run_init(&run, NULL, "ref");
	layout = &replica_model(run.replica)->layout;
	theta = replica_theta(run.replica);
	params = calloc(layout->n_params, sizeof *params);
	snprintf(file, sizeof file, "%s/" WEIGHTS_FILE, run.dir);
	snprintf(out_dir, sizeof out_dir, "%s/out", run.dir);
	struct weights_source w = source();
	assert_int_equal(weights_save_files(run.dir, &w, NULL), RV_OK);
	return params ? 0 : -1;
}

static int teardown(void **state) {
	(void)state;
	if (access(out_dir, F_OK) == 0)
		scratch_remove(out_dir);
	fixture_run_release(&run);
	free(params);
	return 0;
}

static enum rv_err load(const char *where) {
	struct model_layout loaded;
	free(params);
	RV_TRY(weights_load(where, &run.cfg, &loaded, &params, &et));
	model_layout_release(&loaded);
	return RV_OK;
}

static void assert_loads(const char *where) {
	if (load(where) != RV_OK)
		fail_msg("%s", et.text);
	assert_memory_equal(params, theta, layout->n_params * sizeof *params);
}

/* The saved file, changed by `change`, loads, or is refused with `why`. */
static void edited_file(void (*change)(struct edited *e), const char *why) {
	struct edited e;
	edit_open(&e, file);
	change(&e);
	edit_write(&e, file);
	edit_release(&e);
	if (why)
		assert_fault(load(file), RV_E_CORRUPT, &et, why);
	else
		assert_loads(file);
}

/* ---- names ---- */

static void without_prefix(struct edited *e) {
	for (int i = 0; i < e->n; i++)
		edit_rename(e, i, e->names[i] + strlen(PREFIX));
}

static void with_masks(struct edited *e) {
	edit_copy(e, 0, PREFIX "h.0.attn.bias");
	edit_copy(e, 0, "h.1.attn.masked_bias");
}

static void with_equal_classifier(struct edited *e) {
	edit_copy(e, edit_find(e, PREFIX "wte.weight"), "lm_head.weight");
}

static void with_other_classifier(struct edited *e) {
	int i = edit_copy(e, edit_find(e, PREFIX "wte.weight"), "lm_head.weight");
	e->values[i][777] += 1;
}

static void with_classifier_of_other_shape(struct edited *e) {
	edit_copy(e, edit_find(e, PREFIX "wpe.weight"), "lm_head.weight");
}

static void with_both_names(struct edited *e) {
	edit_copy(e, edit_find(e, PREFIX "ln_f.bias"), "ln_f.bias");
}

static void with_superfluous(struct edited *e) {
	edit_copy(e, 0, PREFIX "h.2.ln_1.weight");
}

static void without_one(struct edited *e) {
	edit_drop(e, edit_find(e, PREFIX "h.1.mlp.c_fc.bias"));
}

static void untransposed(struct edited *e) {
	struct safetensors_tensor *t = &e->tensors[edit_find(e, PREFIX "h.0.mlp.c_fc.weight")];
	uint64_t rows = t->dims[0];
	t->dims[0] = t->dims[1];
	t->dims[1] = rows;
}

static void test_names_as_others_write_them(void **state) {
	(void)state;
	edited_file(without_prefix, NULL);
}

static void test_ignored_tensors(void **state) {
	(void)state;
	edited_file(with_masks, NULL);
}

static void test_redundant_classifier(void **state) {
	(void)state;
	edited_file(with_equal_classifier, NULL);
}

static void test_refusals_name_the_tensor(void **state) {
	(void)state;
	static const struct {
		void (*change)(struct edited *e);
		const char *why;
	} cases[] = {
		{with_other_classifier, "'lm_head.weight' differs from 'wte.weight'"},
		{with_classifier_of_other_shape, "'lm_head.weight' is not of shape 256 x 16 but of 16 x 16"},
		{with_both_names, "'ln_f.bias' occurs twice"},
		{with_superfluous, "'transformer.h.2.ln_1.weight' is superfluous"},
		{without_one, "has no tensor 'h.1.mlp.c_fc.bias'"},
		{untransposed, "'transformer.h.0.mlp.c_fc.weight' is not of shape 16 x 64 but of 64 x 16"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct weights_source w = source();
		assert_int_equal(weights_save_files(run.dir, &w, NULL), RV_OK);
		edited_file(cases[i].change, cases[i].why);
	}
}

/* ---- directories ---- */

static bool there(const char *name) {
	char path[400];
	snprintf(path, sizeof path, "%s/%s", out_dir, name);
	return access(path, F_OK) == 0;
}

static void save_directory(enum dtype dtype, uint64_t max_file_bytes) {
	struct weights_source w = source();
	w.dtype = dtype;
	w.max_file_bytes = max_file_bytes;
	if (weights_save_directory(out_dir, &w, &et) != RV_OK)
		fail_msg("%s", et.text);
}

static void test_directory_comes_back(void **state) {
	(void)state;
	struct run_config c;
	struct weights_origin origin;
	save_directory(DTYPE_F32, 0);
	assert_loads(out_dir);
	run_config_defaults(&c);
	assert_int_equal(weights_load_config(out_dir, &c, &et), RV_OK);
	assert_int_equal(c.n_layer, run.cfg.n_layer);
	assert_int_equal(c.steps_per_round, run.cfg.steps_per_round); /* config.json does not have it */
	assert_int_equal(weights_load_origin(out_dir, &origin, &et), RV_OK);
	assert_int_equal(origin.round, 5);
	assert_true(there("tokenizer.json") && there("tokenizer_config.json") && there("generation_config.json"));
}

/* config.json alone, as others leave it: the model's fields are set, the others stay. */
static void test_config_alone(void **state) {
	(void)state;
	char path[400];
	struct run_config c;
	save_directory(DTYPE_F32, 0);
	snprintf(path, sizeof path, "%s/" WEIGHTS_FILE, out_dir);
	assert_int_equal(unlink(path), 0);
	run_config_defaults(&c);
	c.rounds = 77;
	assert_int_equal(weights_load_config(out_dir, &c, &et), RV_OK);
	assert_int_equal(c.n_embd, 16);
	assert_int_equal(c.rounds, 77);
	snprintf(path, sizeof path, "%s/" WEIGHTS_CONFIG_FILE, out_dir);
	assert_int_equal(weights_load_config(path, &c, &et), RV_OK);
	assert_fault(load(out_dir), RV_E_NOTFOUND, &et, "holds neither");
}

static json_t *json_of(const char *dir, const char *name) {
	char path[400];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
}

static void write_text(const char *dir, const char *name, const char *text) {
	char path[400];
	fixture_write(dir, name, (const uint8_t *)text, strlen(text), path, sizeof path);
}

/* A directory of the fixture's model as somebody else might have published it. */
static void publish(char origin[350]) {
	snprintf(origin, 350, "%s/origin", run.dir);
	struct weights_source w = source();
	assert_int_equal(weights_save_directory(origin, &w, &et), RV_OK);
	json_t *config = json_of(origin, WEIGHTS_CONFIG_FILE);
	json_object_set_new(config, "eos_token_id", json_pack("[iii]", 3, 4, 5));
	json_object_set_new(config, "bos_token_id", json_integer(2));
	json_object_set_new(config, "task_specific_params", json_pack("{si}", "x", 1));
	json_object_set_new(config, "dtype", json_string("float16"));
	json_object_del(config, "torch_dtype");
	char *text = json_dumps(config, 0);
	write_text(origin, WEIGHTS_CONFIG_FILE, text);
	free(text);
	json_decref(config);
	write_text(origin, "generation_config.json", "{\"eos_token_id\":[3,4,5],\"temperature\":0.6}");
	write_text(origin, "tokenizer_config.json", "{\"eos_token\":\"<|eot_id|>\",\"chat_template\":\"{{x}}\"}");
	write_text(origin, "chat_template.jinja", "{{ messages }}");
}

static void assert_same_file(const char *a, const char *b, const char *name) {
	json_t *x = json_of(a, name), *y = json_of(b, name);
	assert_non_null(x);
	assert_true(json_equal(x, y));
	json_decref(x);
	json_decref(y);
}

/* What a model said of itself, and is still true, is said of it when it was trained on. */
static void test_a_continued_model_keeps_what_it_said(void **state) {
	(void)state;
	char origin[350];
	publish(origin);
	struct weights_source w = source();
	w.origin_dir = origin;
	assert_int_equal(weights_save_directory(out_dir, &w, &et), RV_OK);
	json_t *before = json_of(origin, WEIGHTS_CONFIG_FILE), *after = json_of(out_dir, WEIGHTS_CONFIG_FILE);
	assert_string_equal(json_string_value(json_object_get(after, "dtype")), "float32");
	json_object_set(before, "dtype", json_object_get(after, "dtype"));
	assert_true(json_equal(before, after));
	assert_same_file(origin, out_dir, "generation_config.json");
	assert_same_file(origin, out_dir, "tokenizer_config.json");
	assert_true(there("chat_template.jinja"));
	json_decref(before);
	json_decref(after);
	w.origin_dir = out_dir; /* written over itself */
	assert_int_equal(weights_save_directory(out_dir, &w, &et), RV_OK);
	assert_same_file(origin, out_dir, "generation_config.json");
	scratch_remove(origin);
}

/* Of another model nothing is said. */
static void test_the_origin_of_another_model_is_ignored(void **state) {
	(void)state;
	char origin[350];
	publish(origin);
	json_t *config = json_of(origin, WEIGHTS_CONFIG_FILE);
	json_object_set_new(config, "n_layer", json_integer(1));
	char *text = json_dumps(config, 0);
	write_text(origin, WEIGHTS_CONFIG_FILE, text);
	free(text);
	json_decref(config);
	struct weights_source w = source();
	w.origin_dir = origin;
	assert_int_equal(weights_save_directory(out_dir, &w, &et), RV_OK);
	config = json_of(out_dir, WEIGHTS_CONFIG_FILE);
	assert_null(json_object_get(config, "task_specific_params"));
	assert_int_equal(json_integer_value(json_object_get(config, "n_layer")), run.cfg.n_layer);
	assert_false(there("chat_template.jinja"));
	json_decref(config);
	scratch_remove(origin);
}

static void put_file(const char *name) {
	char path[400];
	fixture_write(out_dir, name, (const uint8_t *)"x", 1, path, sizeof path);
}

/* What others leave instead of weights that we read: named, with what to do. */
static void test_what_is_there_instead_is_named(void **state) {
	(void)state;
	char path[400];
	save_directory(DTYPE_F32, 0);
	snprintf(path, sizeof path, "%s/" WEIGHTS_FILE, out_dir);
	assert_int_equal(unlink(path), 0);
	put_file("pytorch_model.bin");
	assert_fault(load(out_dir), RV_E_NOTFOUND, &et, "from_pretrained(DIR).save_pretrained(NEW)");
	put_file("model-00002-of-00003.safetensors");
	assert_fault(load(out_dir), RV_E_NOTFOUND, &et,
				 "holds model-00002-of-00003.safetensors, but no " WEIGHTS_INDEX_FILE);
}

/* Hours of training are not lost to a tokenizer that was moved meanwhile. */
static void test_weights_outlive_the_tokenizer(void **state) {
	(void)state;
	struct rv_errtext warning = {"x"};
	struct weights_source w = source();
	w.warning = &warning;
	w.tokenizer_file = "/nonexistent/tokenizer.json";
	if (weights_save_directory(out_dir, &w, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_loads(out_dir);
	assert_true(there(WEIGHTS_CONFIG_FILE) && !there("tokenizer.json"));
	assert_non_null(strstr(warning.text, "the weights are whole"));
	assert_non_null(strstr(warning.text, "/nonexistent/tokenizer.json"));
	w.tokenizer_file = NULL;
	assert_int_equal(weights_save_directory(out_dir, &w, &et), RV_OK);
	assert_true(there("tokenizer.json"));
	assert_string_equal(warning.text, "");
}

/* A model of 2^36 parameters, says its config.json: the one tensor that there is decides before
 * memory does. */
static void test_claims_cost_no_memory(void **state) {
	(void)state;
	char path[400];
	struct run_config c;
	struct model_layout l;
	float *block;
	save_directory(DTYPE_F32, 0);
	const char config[] = "{\"model_type\":\"gpt2\",\"n_layer\":128,\"n_head\":64,\"n_embd\":8192,"
						  "\"vocab_size\":1000000,\"n_positions\":1024}";
	fixture_write(out_dir, WEIGHTS_CONFIG_FILE, (const uint8_t *)config, strlen(config), path, sizeof path);
	run_config_defaults(&c);
	if (weights_load_config(out_dir, &c, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_fault(weights_load(out_dir, &c, &l, &block, &et), RV_E_CORRUPT, &et, "is not of shape 1000000 x 8192");
	assert_null(block);
	if (weights_load(file, &run.cfg, &l, &block, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_memory_equal(block, theta, layout->n_params * sizeof *block);
	free(block);
	model_layout_release(&l);
}

static void test_long_paths(void **state) {
	(void)state;
	char *path = malloc(PATH_MAX), whole[PATH_MAX];
	memset(path, 'a', PATH_MAX - 1);
	path[PATH_MAX - 1] = '\0';
	path[0] = '/';
	assert_fault(weights_path(path, WEIGHTS_FILE, whole, &et), RV_E_RANGE, &et, "longer than");
	struct weights_source w = source();
	assert_int_not_equal(weights_save_directory(path, &w, &et), RV_OK);
	free(path);
}

static void test_bf16_is_the_nearest(void **state) {
	(void)state;
	save_directory(DTYPE_BF16, 0);
	assert_int_equal(load(out_dir), RV_OK);
	for (size_t i = 0; i < layout->n_params; i++)
		assert_true(fabsf(params[i] - theta[i]) <= 0x1p-8f * fabsf(theta[i]));
}

static void test_several_files(void **state) {
	(void)state;
	save_directory(DTYPE_F32, 0);
	save_directory(DTYPE_F32, 20000);
	assert_false(there(WEIGHTS_FILE)); /* or it would be read instead */
	assert_true(there(WEIGHTS_INDEX_FILE) && there("model-00001-of-00003.safetensors"));
	assert_loads(out_dir);
	save_directory(DTYPE_F32, 0);
	assert_false(there(WEIGHTS_INDEX_FILE));
	assert_loads(out_dir);
}

/* ---- the index ---- */

static void index_refused(const char *text, const char *why) {
	char path[400];
	fixture_write(out_dir, WEIGHTS_INDEX_FILE, (const uint8_t *)text, strlen(text), path, sizeof path);
	assert_fault(load(out_dir), RV_E_CORRUPT, &et, why);
	assert_fault(load(path), RV_E_CORRUPT, &et, why);
}

#define FIRST "model-00001-of-00003.safetensors"

static void test_index_is_not_trusted(void **state) {
	(void)state;
	save_directory(DTYPE_F32, 20000);
	index_refused("[]", "no \"weight_map\"");
	index_refused("{", "index.json");
	index_refused("{\"weight_map\":{}}", "no \"weight_map\"");
	index_refused("{\"weight_map\":{\"a\":1}}", "tensor 'a': its file is not a string");
	index_refused("{\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}", "duplicate");
	index_refused("{\"weight_map\":{\"a\":\"../x.safetensors\"}}",
				  "tensor 'a': file \"../x.safetensors\": must be a name");
	index_refused("{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "must be a name");
	index_refused("{\"weight_map\":{\"a\":\"..\"}}", "must be a name");
	index_refused("{\"weight_map\":{\"a\":\"\"}}", "must be a name");
	index_refused("{\"weight_map\":{\"a\":\"" FIRST "\"}}", "'transformer.wte.weight': the index says it is nowhere");
	index_refused("{\"weight_map\":{\"b\":\"" FIRST "\",\"transformer.wte.weight\":\"other\"}}", "in other");
}

static void test_index_must_be_whole(void **state) {
	(void)state;
	char path[400];
	struct edited e;
	save_directory(DTYPE_F32, 20000);
	snprintf(path, sizeof path, "%s/" FIRST, out_dir);
	edit_open(&e, path);
	edit_drop(&e, edit_find(&e, PREFIX "wpe.weight"));
	edit_write(&e, path);
	edit_release(&e);
	assert_fault(load(out_dir), RV_E_CORRUPT, &et, "'transformer.wpe.weight' is missing: the index names it");
}

static void test_hash_is_of_every_number(void **state) {
	(void)state;
	struct rv_hash a = weights_hash(theta, layout->n_params), b = weights_hash(theta, layout->n_params - 1);
	assert_false(rv_hash_equal(&a, &b));
	memcpy(params, theta, layout->n_params * sizeof *params);
	b = weights_hash(params, layout->n_params);
	assert_true(rv_hash_equal(&a, &b));
	params[layout->n_params - 1] += 1;
	b = weights_hash(params, layout->n_params);
	assert_false(rv_hash_equal(&a, &b));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_names_as_others_write_them),
		TEST(test_ignored_tensors),
		TEST(test_redundant_classifier),
		TEST(test_refusals_name_the_tensor),
		TEST(test_directory_comes_back),
		TEST(test_config_alone),
		TEST(test_bf16_is_the_nearest),
		TEST(test_several_files),
		TEST(test_index_is_not_trusted),
		TEST(test_index_must_be_whole),
		TEST(test_hash_is_of_every_number),
		TEST(test_weights_outlive_the_tokenizer),
		TEST(test_what_is_there_instead_is_named),
		TEST(test_a_continued_model_keeps_what_it_said),
		TEST(test_the_origin_of_another_model_is_ignored),
		TEST(test_claims_cost_no_memory),
		TEST(test_long_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
