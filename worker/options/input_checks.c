/* input_checks.c: opens each file as training would, and closes it again. */
#include "worker/options/input_checks.h"

#include "train/files/weights.h"
#include "train/text/data.h"
#include "train/text/run_tokenizer.h"
#include "train/text/token_source.h"
#include "train/text/tokenizer/tokenizer.h"

#include <string.h>

static enum rv_err recognise(const char *path, bool *is_text, bool *is_packed, struct rv_errtext *et) {
	struct token_source source;
	RV_TRY(token_source_open(&source, path, 0, et));
	*is_text = token_source_is_text(&source);
	*is_packed = source.is_packed;
	token_source_release(&source);
	return RV_OK;
}

enum rv_err input_check_data(const char *path, struct rv_errtext *et) {
	const struct dataset_config least = {
		.path = path, .n_shards = 1, .holdout_every = 2, .context = 1, .refusal = DATA_OF_ANY_RUN};
	struct dataset *data;
	bool is_text, is_packed;
	RV_TRY(recognise(path, &is_text, &is_packed, et));
	if (is_packed)
		return RV_OK; /* it is unpacked once the run is known */
	RV_TRY(dataset_open(&least, &data, et));
	dataset_close(data);
	return RV_OK;
}

enum rv_err input_check_run_data(const struct run_config *run, const char *path, const char *tokenizer,
								 struct rv_errtext *et) {
	struct tokenizer *t = NULL;
	struct dataset *data = NULL;
	bool is_text, is_packed;
	const struct dataset_config cfg = dataset_config_of(run, path);
	if (!path[0])
		return run->data_hash[0] ? RV_OK
								 : rv_fail(et, RV_E_INVALID,
										   "which text to train on? This run does not hand it out: --data FILE, DIR or "
										   "https://URL#sha256=HEX");
	RV_TRY(recognise(path, &is_text, &is_packed, et));
	enum rv_err e = run_tokenizer_open(run, tokenizer, &t, et);
	if (e == RV_OK && !(t && is_text) && !is_packed)
		e = dataset_open(&cfg, &data, et);
	dataset_close(data);
	tokenizer_free(t);
	return e;
}

enum rv_err input_check_tokenizer(const char *file, struct rv_errtext *et) {
	struct tokenizer *t;
	if (!file[0] || strcmp(file, "bytes") == 0)
		return RV_OK;
	enum rv_err e = tokenizer_open(file, "auto", &t, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "--tokenizer");
	tokenizer_free(t);
	return RV_OK;
}

enum rv_err input_check_weights(const char *where, struct rv_errtext *et) {
	struct run_config model;
	if (!where[0])
		return RV_OK;
	run_config_defaults(&model);
	enum rv_err e = weights_load_config(where, &model, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--init");
}
