/* loaded_model.c: see loaded_model.h. */
#include "lab/model/loaded_model.h"

#include "base/assert.h"
#include "kernels/device.h"
#include "lab/model/weights_tokenizer.h"
#include "train/files/weights.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_TOKENS = 4096 };

/* Opens the params of the model's files, in backend memory, and the model. A config.json alone is
 * not trusted with memory before its weights were checked. */
static enum rv_err take_params(struct loaded_model *m, const struct model_options *options, const float *host,
							   size_t n_params, struct rv_errtext *et) {
	const struct model_shape shape = model_shape_of(&m->cfg);
	size_t bytes = n_params * sizeof *host;
	void *params = NULL;
	RV_TRY(model_new(model_family(&m->cfg), &shape, options, m->be, &m->model, et));
	RV_ASSERT(m->model->layout.n_params == n_params);
	RV_TRY(m->be->ops->alloc(m->be, bytes, &params, et));
	m->be->ops->upload(m->be, params, host, bytes);
	m->params = params;
	return RV_OK;
}

/* Parameters that the caller has; `host` NULL: those of the files. */
struct given_params {
	const float *host;
	size_t n;
};

static enum rv_err load_model(struct loaded_model *m, const char *where, const struct model_options *options,
							  const struct given_params *given, struct rv_errtext *et) {
	struct model_layout layout;
	float *host;
	if (given->host)
		return take_params(m, options, given->host, given->n, et);
	RV_TRY(weights_load(where, &m->cfg, &layout, &host, et));
	enum rv_err e = take_params(m, options, host, layout.n_params, et);
	free(host);
	model_layout_release(&layout);
	return e;
}

/* Reads the configuration: a run's includes the held-out text, a config.json does not. */
static enum rv_err load_config(struct loaded_model *m, const char *where, struct rv_errtext *et) {
	struct weights_origin origin;
	run_config_defaults(&m->cfg);
	RV_TRY(weights_load_config(where, &m->cfg, et));
	RV_TRY(weights_load_origin(where, &origin, et));
	m->of_a_run = origin.step > 0 || !rv_hash_is_zero(&origin.state);
	return RV_OK;
}

static enum rv_err open_parts(struct loaded_model *m, const struct loaded_model_options *o,
							  const struct given_params *given, struct rv_errtext *et) {
	char tokenizer[PATH_MAX];
	if (o->dtype != RUN_DTYPE_AUTO)
		m->cfg.dtype = o->dtype;
	struct device_choice device;
	RV_TRY(weights_tokenizer_open(o->where, o->tokenizer, &m->cfg, tokenizer, &m->tokenizer, et));
	RV_TRY(device_choose(o->device ? o->device : "cpu", &device, et));
	snprintf(m->why_not_gpu, sizeof m->why_not_gpu, "%s", device.why_not_gpu);
	device.n = 1;
	const struct backend_options backend = {
		.threads = o->threads, .compute = run_config_compute(&m->cfg, &device, "auto"), .isa = "auto"};
	RV_TRY(device_open(&device, 0, &backend, &m->be, et));
	int64_t usual_batch = m->cfg.context < USUAL_TOKENS ? USUAL_TOKENS / m->cfg.context : 1;
	const struct model_options options = {.max_batch = o->max_batch > 0 ? o->max_batch : (int)usual_batch,
										  .forward_only = true};
	return load_model(m, o->where, &options, given, et);
}

/* `cfg` NULL: that of the files. */
static enum rv_err open_model(const struct loaded_model_options *o, const struct run_config *cfg,
							  const struct given_params *given, struct loaded_model **out, struct rv_errtext *et) {
	*out = NULL;
	struct loaded_model *m = calloc(1, sizeof *m);
	if (!m)
		return rv_fail(et, RV_E_NOMEM, "no memory for a model");
	enum rv_err e = RV_OK;
	if (cfg) {
		m->cfg = *cfg;
		m->of_a_run = true;
	} else {
		e = load_config(m, o->where, et);
	}
	if (e == RV_OK)
		e = open_parts(m, o, given, et);
	if (e != RV_OK) {
		loaded_model_close(m);
		return e;
	}
	*out = m;
	return RV_OK;
}

enum rv_err loaded_model_open(const struct loaded_model_options *o, struct loaded_model **out, struct rv_errtext *et) {
	return open_model(o, NULL, &(struct given_params){.host = NULL}, out, et);
}

enum rv_err loaded_model_of(const struct loaded_model_options *o, const struct run_config *cfg, const float *params,
							size_t n_params, struct loaded_model **out, struct rv_errtext *et) {
	return open_model(o, cfg, &(struct given_params){.host = params, .n = n_params}, out, et);
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
