/* weights_directory.c: a directory that transformers loads. */
#include "worker/train/hf_tokenizer.h"
#include "worker/train/weights.h"
#include "worker/train/weights_save.h"
#include "worker/train/weights_set.h"

#include "base/file.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum rv_err write_config(const char *dir, const struct weights_source *w, struct rv_errtext *et) {
	const struct model_ops *family;
	char path[PATH_MAX];
	RV_TRY(model_family_find(w->cfg->model, &family, et));
	if (!family->config_to_hf)
		return rv_fail(et, RV_E_UNSUPPORTED, "model family %s has no Hugging Face form", family->name);
	json_t *root = family->config_to_hf(w->cfg);
	const char *dtype = w->dtype == DTYPE_BF16 ? "bfloat16" : "float32";
	bool whole = root && json_object_set_new(root, "torch_dtype", json_string(dtype)) == 0;
	char *text = whole ? json_dumps(root, JSON_INDENT(2)) : NULL;
	json_decref(root);
	if (!text)
		return rv_fail(et, RV_E_NOMEM, "no memory for %s/%s", dir, WEIGHTS_CONFIG_FILE);
	enum rv_err e = weights_path(dir, WEIGHTS_CONFIG_FILE, path, et);
	if (e == RV_OK)
		e = rv_file_write_atomic(path, text, strlen(text), 0644, et);
	free(text);
	return e;
}

/* The weights are what took long: nothing about a tokenizer is a reason not to have them. */
static void write_tokenizer(const char *dir, const struct weights_source *w) {
	struct rv_errtext text = {""};
	enum rv_err e = hf_tokenizer_write(dir, w->tokenizer_file, w->cfg, &text);
	if (e != RV_OK)
		(void)rv_fail_context(&text, e, "%s: the weights are whole, but their tokenizer is not beside them", dir);
	if (w->warning)
		*w->warning = text;
}

enum rv_err weights_save_directory(const char *dir, const struct weights_source *w, struct rv_errtext *et) {
	RV_TRY(rv_dir_make(dir, 0755, et));
	RV_TRY(weights_save_files(dir, w, et));
	RV_TRY(write_config(dir, w, et));
	write_tokenizer(dir, w);
	return RV_OK;
}
