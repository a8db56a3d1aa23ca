/* hf_origin.c: reads, filters and writes a directory's files beside weights and tokens. */
#include "train/files/hf_origin.h"
#include "train/model/hf_keys.h"

#include "base/file.h"
#include "base/json_limits.h"
#include "train/files/hf_tokenizer.h"
#include "train/files/weights.h"
#include "train/files/weights_set.h"
#include "train/model/model.h"
#include "train/text/tokenizer/tokenizer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CONTAINERS = 4096, MAX_VALUES = 32768 };

static const char *const names[HF_ORIGIN_FILES] = {HF_GENERATION_FILE, HF_TOKENIZER_CONFIG_FILE,
												   "special_tokens_map.json", "chat_template.jinja",
												   "chat_template.json"};

static uint8_t *read_bytes(const char *dir, const char *name, size_t max_bytes, size_t *n) {
	char path[PATH_MAX];
	uint8_t *bytes = NULL;
	if (weights_path(dir, name, path, NULL) != RV_OK || rv_file_read(path, max_bytes, &bytes, n, NULL) != RV_OK)
		return NULL;
	return bytes;
}

static json_t *read_object(const char *dir, const char *name) {
	size_t n;
	uint8_t *bytes = read_bytes(dir, name, HF_ORIGIN_MAX_FILE_BYTES, &n);
	json_t *root = NULL;
	if (bytes && rv_json_check_limits(bytes, n, MAX_CONTAINERS, MAX_VALUES, NULL) == RV_OK)
		root = json_loadb((const char *)bytes, n, JSON_REJECT_DUPLICATES, NULL);
	free(bytes);
	return root;
}

/* Reports whether `config` describes the model of `run`, and its context. */
static bool describes(json_t *config, const struct run_config *run, int64_t *context) {
	const struct model_ops *family = model_family(run);
	struct run_config told = *run;
	char a[16384], b[16384];
	const char *type = json_string_value(json_object_get(config, "model_type"));
	if (!type || strcmp(type, family->name) != 0 || !family->config_from_hf ||
		family->config_from_hf(config, &told, NULL) != RV_OK)
		return false;
	*context = told.context;
	told.context = run->context;
	rv_options_print(run_config_options, run, a, sizeof a);
	rv_options_print(run_config_options, &told, b, sizeof b);
	return strcmp(a, b) == 0;
}

/* Reports whether the directory has a tokenizer other than `file`. */
static bool has_another_tokenizer(const char *dir, const char *file) {
	size_t n = 0, n_given = 0;
	uint8_t *own = read_bytes(dir, HF_TOKENIZER_FILE, TOKENIZER_MAX_FILE_BYTES, &n), *given = NULL;
	bool another = own && rv_file_read(file, TOKENIZER_MAX_FILE_BYTES, &given, &n_given, NULL) == RV_OK &&
				   (n != n_given || memcmp(own, given, n) != 0);
	free(own);
	free(given);
	return another;
}

void hf_origin_open(struct hf_origin *o, const char *dir, const struct run_config *run, const char *tokenizer_file) {
	int64_t context;
	*o = (struct hf_origin){.config = dir ? read_object(dir, WEIGHTS_CONFIG_FILE) : NULL};
	if (o->config && !describes(o->config, run, &context)) {
		json_decref(o->config);
		o->config = NULL;
	}
	o->same_tokens = o->config && !(tokenizer_file && has_another_tokenizer(dir, tokenizer_file));
	for (int i = 0; o->same_tokens && i < HF_ORIGIN_FILES; i++)
		o->files[i].bytes = read_bytes(dir, names[i], HF_ORIGIN_MAX_FILE_BYTES, &o->files[i].n);
}

void hf_origin_release(struct hf_origin *o) {
	json_decref(o->config);
	for (int i = 0; i < HF_ORIGIN_FILES; i++)
		free(o->files[i].bytes);
	*o = (struct hf_origin){.config = NULL};
}

uint32_t hf_origin_token(const struct hf_origin *o, const char *key, uint32_t fallback) {
	const json_t *v = o->same_tokens ? json_object_get(o->config, key) : NULL;
	if (json_is_array(v))
		v = json_array_get(v, 0);
	json_int_t vocab = json_integer_value(json_object_get(o->config, "vocab_size"));
	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= vocab)
		return fallback;
	return (uint32_t)json_integer_value(v);
}

int64_t hf_origin_positions(const struct hf_origin *o, const struct run_config *run) {
	int64_t positions = run->context;
	json_t *config = json_deep_copy(o->config);
	(void)json_object_del(config, HF_CONTEXT_KEY);
	if (config)
		(void)describes(config, run, &positions);
	json_decref(config);
	return positions;
}

/* Sets the number type under the file's own key: newer files have "dtype". */
static void set_dtype(json_t *config, const json_t *written) {
	const char *key = json_object_get(config, "dtype") ? "dtype" : "torch_dtype";
	(void)json_object_set(config, key, json_object_get(written, "torch_dtype"));
}

static void set_tokens(json_t *config, const json_t *written) {
	(void)json_object_set(config, "bos_token_id", json_object_get(written, "bos_token_id"));
	(void)json_object_set(config, "eos_token_id", json_object_get(written, "eos_token_id"));
	(void)json_object_del(config, "pad_token_id");
}

json_t *hf_origin_config(const struct hf_origin *o, const struct run_config *run, const json_t *written) {
	json_t *config = json_deep_copy(o->config);
	if (!config)
		return NULL;
	(void)json_object_set(config, "architectures", json_object_get(written, "architectures"));
	set_dtype(config, written);
	if (!o->same_tokens)
		set_tokens(config, written);
	(void)json_object_del(config, HF_CONTEXT_KEY);
	if (hf_origin_positions(o, run) != run->context)
		(void)json_object_set_new(config, HF_CONTEXT_KEY, json_integer((json_int_t)run->context));
	return config;
}

enum rv_err hf_origin_write_files(const struct hf_origin *o, const char *dir, struct rv_errtext *et) {
	char path[PATH_MAX];
	for (int i = 0; o->same_tokens && i < HF_ORIGIN_FILES; i++) {
		RV_TRY(weights_path(dir, names[i], path, et));
		if (o->files[i].bytes)
			RV_TRY(rv_file_write_atomic(path, o->files[i].bytes, o->files[i].n, 0644, et));
		else if (strcmp(names[i], HF_GENERATION_FILE) == 0)
			(void)unlink(path);
	}
	return RV_OK;
}
