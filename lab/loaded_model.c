/* loaded_model.c: see loaded_model.h. */
#include "lab/loaded_model.h"

#include "worker/train/weights.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USUAL_TOKENS = 4096, BYTE_VALUES = 256 };

static enum rv_err load_params(struct loaded_model *m, const char *where, struct rv_errtext *et) {
	const struct model_layout *layout = &m->model->layout;
	size_t bytes = layout->n_params * sizeof(float);
	float *host = malloc(bytes);
	if (!host)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu parameters", layout->n_params);
	void *params = NULL;
	enum rv_err e = weights_load(where, m->model->ops, layout, host, et);
	if (e == RV_OK)
		e = m->be->ops->alloc(m->be, bytes, &params, et);
	if (e == RV_OK)
		m->be->ops->upload(m->be, params, host, bytes);
	m->params = params;
	free(host);
	return e;
}

/* tokenizer.json in the directory of the weights. */
static bool tokenizer_beside(const char *where, char path[static PATH_MAX]) {
	struct stat st;
	if (stat(where, &st) == 0 && S_ISDIR(st.st_mode)) {
		snprintf(path, PATH_MAX, "%s/tokenizer.json", where);
	} else {
		const char *slash = strrchr(where, '/');
		snprintf(path, PATH_MAX, "%.*stokenizer.json", slash ? (int)(slash - where) + 1 : 0, where);
	}
	return access(path, F_OK) == 0;
}

static enum rv_err open_tokenizer(struct loaded_model *m, const struct loaded_model_options *o, struct rv_errtext *et) {
	char beside[PATH_MAX];
	const char *from = o->tokenizer;
	if (!from[0])
		from = m->cfg.vocab != BYTE_VALUES && tokenizer_beside(o->where, beside) ? beside : "bytes";
	if (!o->tokenizer[0] && strcmp(from, "bytes") == 0 && m->cfg.vocab != BYTE_VALUES)
		return rv_fail(et, RV_E_INVALID,
					   "%s: its %" PRId64
					   " tokens are not bytes and there is no tokenizer.json beside it: --tokenizer FILE",
					   o->where, m->cfg.vocab);
	RV_TRY(tokenizer_open(from, "auto", &m->tokenizer, et));
	uint32_t n = tokenizer_vocab(m->tokenizer);
	if (n > (uint32_t)m->cfg.vocab)
		return rv_fail(et, RV_E_INVALID, "tokenizer %s has %u tokens, the model of %s only %" PRId64, from, n, o->where,
					   m->cfg.vocab);
	return RV_OK;
}

/* A config.json says nothing of what was held out; the configuration of a run says all. */
static enum rv_err load_config(struct loaded_model *m, const char *where, struct rv_errtext *et) {
	struct weights_origin origin;
	run_config_defaults(&m->cfg);
	RV_TRY(weights_load_config(where, &m->cfg, et));
	RV_TRY(weights_load_origin(where, &origin, et));
	m->of_a_run = origin.step > 0 || !rv_hash_is_zero(&origin.state);
	return RV_OK;
}

static enum rv_err open_parts(struct loaded_model *m, const struct loaded_model_options *o, struct rv_errtext *et) {
	RV_TRY(load_config(m, o->where, et));
	if (strcmp(o->dtype, "auto") != 0)
		snprintf(m->cfg.dtype, sizeof m->cfg.dtype, "%s", o->dtype);
	const struct backend_options device = {
		.threads = o->threads, .compute = run_config_compute(&m->cfg), .isa = "auto"};
	RV_TRY(open_tokenizer(m, o, et));
	RV_TRY(backend_open("cpu", &device, &m->be, et));
	const struct model_shape shape = model_shape_of(&m->cfg);
	int64_t usual_batch = m->cfg.context < USUAL_TOKENS ? USUAL_TOKENS / m->cfg.context : 1;
	const struct model_options options = {.max_batch = o->max_batch > 0 ? o->max_batch : (int)usual_batch,
										  .forward_only = true};
	RV_TRY(model_new(m->cfg.model, &shape, &options, m->be, &m->model, et));
	return load_params(m, o->where, et);
}

enum rv_err loaded_model_open(const struct loaded_model_options *o, struct loaded_model **out, struct rv_errtext *et) {
	*out = NULL;
	struct loaded_model *m = calloc(1, sizeof *m);
	if (!m)
		return rv_fail(et, RV_E_NOMEM, "no memory for a model");
	enum rv_err e = open_parts(m, o, et);
	if (e != RV_OK) {
		loaded_model_close(m);
		return e;
	}
	*out = m;
	return RV_OK;
}

void loaded_model_close(struct loaded_model *m) {
	if (!m)
		return;
	if (m->params)
		m->be->ops->free(m->be, m->params);
	model_free(m->model);
	backend_close(m->be);
	tokenizer_free(m->tokenizer);
	free(m);
}
