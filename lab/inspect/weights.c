/* weights.c: safetensors files, their index, config.json, and directories of these. */
#include "lab/inspect/inspect.h"
#include "lab/worker_files/facts.h"

#include "train/files/hf_config.h"
#include "train/files/hf_tokenizer.h"
#include "train/files/weights.h"
#include "train/files/weights_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sums over the tensors of several files. */
struct totals {
	uint64_t elems, bytes;
	json_t *tensors;
};

static void add_tensors(struct totals *t, const struct safetensors *s) {
	for (int i = 0; i < safetensors_count(s); i++) {
		const struct safetensors_tensor *f = safetensors_at(s, i);
		t->elems += safetensors_elems(f);
		t->bytes += f->end - f->begin;
		json_array_append_new(t->tensors, json_pack("{ss ss so}", "name", f->name, "dtype", f->dtype, "shape",
													inspect_shape(f->dims, f->n_dims)));
	}
}

static void put_totals(json_t *facts, struct totals *t) {
	facts_put(facts, "{sI sI sI so}", "tensor_count", (json_int_t)json_array_size(t->tensors), "parameters",
			  (json_int_t)t->elems, "bytes", (json_int_t)t->bytes, "tensors", t->tensors);
}

/* Adds every file of the set, and the round of its weights in their run. */
static enum rv_err put_files(const char *where, json_t *facts, struct rv_errtext *et) {
	struct weights_set set;
	struct weights_origin origin;
	struct totals t = {.tensors = json_array()};
	enum rv_err e = weights_set_open(where, &set, et);
	for (int i = 0; e == RV_OK && i < set.n_files; i++) {
		struct safetensors *s;
		e = weights_set_open_file(&set, i, &s, et);
		if (e != RV_OK)
			break;
		add_tensors(&t, s);
		safetensors_close(s);
	}
	if (e == RV_OK)
		e = weights_load_origin(where, &origin, et);
	if (e == RV_OK) {
		json_object_set_new(facts, "files", json_integer(set.n_files));
		if (origin.round > 0 || !rv_hash_is_zero(&origin.state))
			json_object_set_new(facts, "round", json_integer((json_int_t)origin.round));
		if (!rv_hash_is_zero(&origin.state))
			facts_put_hash(facts, "state", &origin.state);
		put_totals(facts, &t);
	} else {
		json_decref(t.tensors);
	}
	weights_set_release(&set);
	return e;
}

/* Adds the init-hash of a run that starts from these weights. */
static enum rv_err put_init_hash(const char *where, const struct run_config *c, json_t *facts, struct rv_errtext *et) {
	struct model_layout layout;
	float *params;
	RV_TRY(weights_load(where, c, &layout, &params, et));
	struct rv_hash h = weights_hash(params, layout.n_params);
	facts_put_hash(facts, "init-hash", &h);
	free(params);
	model_layout_release(&layout);
	return RV_OK;
}

/* Loads and hashes the weights of a known model; reports another model, which is no fault. */
static void put_model_if_known(const char *where, json_t *facts) {
	struct rv_errtext et = {0};
	struct run_config c;
	run_config_defaults(&c);
	enum rv_err e = weights_load_config(where, &c, &et);
	if (e == RV_OK) {
		inspect_put_model(facts, &c);
		e = put_init_hash(where, &c, facts, &et);
	}
	if (e != RV_OK)
		json_object_set_new(facts, "not_usable", json_string(et.text));
}

enum rv_err inspect_safetensors(const char *path, json_t *facts, struct rv_errtext *et) {
	struct safetensors *s;
	RV_TRY(safetensors_open(path, &s, et));
	const json_t *metadata = safetensors_all_metadata(s);
	if (json_object_size(metadata) > 0)
		json_object_set_new(facts, "metadata", json_deep_copy(metadata));
	safetensors_close(s);
	RV_TRY(put_files(path, facts, et));
	put_model_if_known(path, facts);
	return RV_OK;
}

enum rv_err inspect_index(const char *path, json_t *facts, struct rv_errtext *et) {
	return put_files(path, facts, et);
}

enum rv_err inspect_config(const char *path, json_t *facts, struct rv_errtext *et) {
	struct run_config c;
	run_config_defaults(&c);
	RV_TRY(hf_config_read(path, &c, et));
	inspect_put_model(facts, &c);
	return RV_OK;
}

enum rv_err inspect_model_directory(const char *path, json_t *facts, struct rv_errtext *et) {
	char file[PATH_MAX];
	RV_TRY(put_files(path, facts, et));
	put_model_if_known(path, facts);
	RV_TRY(weights_path(path, HF_TOKENIZER_FILE, file, et));
	if (access(file, F_OK) != 0)
		return RV_OK;
	json_t *tokenizer = json_object();
	enum rv_err e = inspect_tokenizer(file, tokenizer, et);
	json_object_set_new(facts, "tokenizer", tokenizer);
	return e;
}
