/* loaded_model.c: see loaded_model.h. */
#include "lab/loaded_model.h"

#include "worker/train/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

void loaded_model_path(const char *where, char path[static PATH_MAX]) {
	struct stat st;
	bool directory = stat(where, &st) == 0 && S_ISDIR(st.st_mode);
	snprintf(path, PATH_MAX, "%s%s", where, directory ? "/" WEIGHTS_FILE : "");
}

static enum rv_err load_params(struct loaded_model *m, const char *path, struct rv_errtext *et) {
	const struct model_layout *layout = &m->model->layout;
	size_t bytes = layout->n_params * sizeof(float);
	float *host = malloc(bytes);
	if (!host)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu parameters", layout->n_params);
	void *params = NULL;
	enum rv_err e = weights_load(path, m->model->ops, layout, host, et);
	if (e == RV_OK)
		e = m->be->ops->alloc(m->be, bytes, &params, et);
	if (e == RV_OK)
		m->be->ops->upload(m->be, params, host, bytes);
	m->params = params;
	free(host);
	return e;
}

static enum rv_err open_parts(struct loaded_model *m, const char *path, const struct backend_options *options,
							  struct rv_errtext *et) {
	const struct run_config *c = &m->cfg;
	RV_TRY(weights_load_config(path, &m->cfg, et));
	RV_TRY(backend_open("cpu", options, &m->be, et));
	const struct model_shape shape = model_shape_of(c);
	const struct model_options one_sequence = {.max_batch = 1, .forward_only = true};
	RV_TRY(model_new(c->model, &shape, &one_sequence, m->be, &m->model, et));
	return load_params(m, path, et);
}

enum rv_err loaded_model_open(const char *where, const struct backend_options *options, struct loaded_model **out,
							  struct rv_errtext *et) {
	*out = NULL;
	struct loaded_model *m = calloc(1, sizeof *m);
	if (!m)
		return rv_fail(et, RV_E_NOMEM, "no memory for a model");
	char path[PATH_MAX];
	loaded_model_path(where, path);
	enum rv_err e = open_parts(m, path, options, et);
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
	free(m);
}
