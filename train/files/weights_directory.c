/* weights_directory.c: writes a directory that transformers loads. */
#include "train/files/hf_origin.h"
#include "train/files/hf_tokenizer.h"
#include "train/files/weights.h"
#include "train/files/weights_save.h"
#include "train/files/weights_set.h"

#include "base/file.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the ids of generation_config.json, null where it has none, into config.json. */
static void take_ids(const char *dir, json_t *config) {
	static const char *const keys[] = {"bos_token_id", "eos_token_id"};
	char path[PATH_MAX];
	json_t *generation = NULL;
	if (weights_path(dir, HF_GENERATION_FILE, path, NULL) == RV_OK)
		generation = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (json_object_get(generation, keys[i]))
			(void)json_object_set(config, keys[i], json_object_get(generation, keys[i]));
	json_decref(generation);
}

/* Returns Rivulet's own config.json of the model, or NULL without memory. */
static json_t *own_config(const char *dir, const struct weights_source *w, const struct model_ops *family,
						  bool tokens_known) {
	json_t *root = family->config_to_hf(w->cfg);
	const char *dtype = w->dtype == DTYPE_BF16 ? "bfloat16" : "float32";
	if (root && tokens_known)
		take_ids(dir, root);
	if (root && json_object_set_new(root, "torch_dtype", json_string(dtype)) == 0)
		return root;
	json_decref(root);
	return NULL;
}

static enum rv_err write_config(const char *dir, const struct weights_source *w, const struct hf_origin *origin,
								bool tokens_known, struct rv_errtext *et) {
	const struct model_ops *family = model_family(w->cfg);
	if (!family->config_to_hf)
		return rv_fail(et, RV_E_UNSUPPORTED, "model family %s has no Hugging Face form", family->name);
	json_t *root = own_config(dir, w, family, tokens_known);
	if (root && origin->config) {
		json_t *own = root;
		root = hf_origin_config(origin, w->cfg, own);
		json_decref(own);
	}
	return weights_write_json(dir, WEIGHTS_CONFIG_FILE, root, et);
}

/* Writes the tokenizer. A fault becomes a warning, as the weights matter more. Returns whether
 * there is a tokenizer. */
static bool write_tokenizer(const char *dir, const struct weights_source *w) {
	struct rv_errtext text = {""};
	enum rv_err e = hf_tokenizer_write(dir, w->tokenizer_file, w->cfg, &text);
	if (e != RV_OK)
		(void)rv_fail_context(&text, e, "%s: the weights are whole, but without their tokenizer", dir);
	if (w->warning)
		*w->warning = text;
	return e == RV_OK;
}

static enum rv_err write_all(const char *dir, const struct weights_source *w, const struct hf_origin *origin,
							 struct rv_errtext *et) {
	RV_TRY(weights_save_files(dir, w, et));
	bool tokens_known = write_tokenizer(dir, w);
	RV_TRY(write_config(dir, w, origin, tokens_known, et));
	return hf_origin_write_files(origin, dir, et);
}

enum rv_err weights_save_directory(const char *dir, const struct weights_source *w, struct rv_errtext *et) {
	struct hf_origin origin; /* read first, as it may be `dir` */
	RV_TRY(rv_dir_make(dir, 0755, et));
	hf_origin_open(&origin, w->origin_dir, w->cfg, w->tokenizer_file);
	enum rv_err e = write_all(dir, w, &origin, et);
	hf_origin_release(&origin);
	return e;
}
