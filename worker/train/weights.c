/* weights.c: the flat parameter block to and from a safetensors file. */
#include "worker/train/weights.h"

#include "base/hex.h"
#include "worker/train/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 24 };

#define CONFIG_KEY "rivulet.config"

/* to (cols, rows) = transpose of from (rows, cols) */
static void transpose(float *to, const float *from, int rows, int cols) {
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < cols; c++)
			to[(size_t)c * (size_t)rows + (size_t)r] = from[(size_t)r * (size_t)cols + (size_t)c];
}

static struct safetensors_tensor file_tensor(const struct model_tensor *t) {
	struct safetensors_tensor f = {.name = t->name, .n_dims = t->cols == 1 ? 1 : 2};
	bool swap = t->hf_transposed;
	f.dims[0] = (uint64_t)(swap ? t->cols : t->rows);
	f.dims[1] = (uint64_t)(swap ? t->rows : t->cols);
	return f;
}

/* Room for the largest tensor that has to be transposed. */
static float *new_scratch(const struct model_layout *layout) {
	size_t most = 1;
	for (int i = 0; i < layout->n_tensors; i++)
		if (layout->tensors[i].hf_transposed && layout->tensors[i].elems > most)
			most = layout->tensors[i].elems;
	return malloc(most * sizeof(float));
}

struct save_context {
	const struct model_layout *layout;
	const float *params;
	float *scratch;
};

static const float *tensor_values(void *ctx, int i) {
	const struct save_context *s = ctx;
	const struct model_tensor *t = &s->layout->tensors[i];
	if (!t->hf_transposed)
		return s->params + t->offset;
	transpose(s->scratch, s->params + t->offset, t->rows, t->cols);
	return s->scratch;
}

static enum rv_err write_file(const char *path, const char *config_text, const struct save_context *s,
							  struct safetensors_tensor *tensors, const struct weights_origin *o,
							  struct rv_errtext *et) {
	char round[NUMBER_BYTES], step[NUMBER_BYTES], tokens[NUMBER_BYTES], state[2 * RV_HASH_BYTES + 1];
	snprintf(round, sizeof round, "%" PRIu64, o->round);
	snprintf(step, sizeof step, "%" PRIu64, o->step);
	snprintf(tokens, sizeof tokens, "%" PRIu64, o->tokens);
	rv_hex_encode(o->state.b, sizeof o->state.b, state);
	const struct safetensors_meta meta[] = {{"format", "pt"},           {CONFIG_KEY, config_text},
											{"rivulet.round", round},   {"rivulet.step", step},
											{"rivulet.tokens", tokens}, {"rivulet.state", state}};
	for (int i = 0; i < s->layout->n_tensors; i++)
		tensors[i] = file_tensor(&s->layout->tensors[i]);
	struct safetensors_source source = {.tensors = tensors,
										.n_tensors = s->layout->n_tensors,
										.meta = meta,
										.n_meta = sizeof meta / sizeof meta[0],
										.values = tensor_values,
										.ctx = (void *)(uintptr_t)s};
	return safetensors_write(path, &source, et);
}

enum rv_err weights_save_file(const char *path, const struct weights_source *w, struct rv_errtext *et) {
	const struct model_layout *layout = w->layout;
	size_t config_bytes = rv_options_print(run_config_options, w->cfg, NULL, 0) + 1;
	char *config_text = malloc(config_bytes);
	struct safetensors_tensor *tensors = calloc((size_t)layout->n_tensors, sizeof *tensors);
	struct save_context s = {layout, w->params, new_scratch(layout)};
	enum rv_err e;
	if (config_text && tensors && s.scratch) {
		rv_options_print(run_config_options, w->cfg, config_text, config_bytes);
		e = write_file(path, config_text, &s, tensors, &w->origin, et);
	} else {
		e = rv_fail(et, RV_E_NOMEM, "no memory to write %s", path);
	}
	free(s.scratch);
	free(tensors);
	free(config_text);
	return e;
}

enum rv_err weights_load_config(const char *path, struct run_config *cfg, struct rv_errtext *et) {
	struct safetensors *s;
	RV_TRY(safetensors_open(path, &s, et));
	const char *text = safetensors_metadata(s, CONFIG_KEY);
	enum rv_err e =
		text ? run_config_parse(cfg, path, text, et)
			 : rv_fail(et, RV_E_CORRUPT, "%s has no '%s' in its metadata: not written by Rivulet", path, CONFIG_KEY);
	safetensors_close(s);
	return e;
}

static enum rv_err load_tensor(const char *path, const struct safetensors *s, const struct model_tensor *t,
							   float *params, float *scratch, struct rv_errtext *et) {
	const struct safetensors_tensor *f = safetensors_find(s, t->name), want = file_tensor(t);
	if (!f)
		return rv_fail(et, RV_E_CORRUPT, "%s has no tensor '%s'", path, t->name);
	if (f->n_dims != want.n_dims || f->dims[0] != want.dims[0] || (f->n_dims == 2 && f->dims[1] != want.dims[1]))
		return rv_fail(et, RV_E_CORRUPT, "%s: tensor '%s' is not of shape %" PRIu64 " x %" PRIu64, path, t->name,
					   want.dims[0], want.n_dims == 2 ? want.dims[1] : 1);
	if (!t->hf_transposed)
		return safetensors_read_f32(s, f, params + t->offset, et);
	RV_TRY(safetensors_read_f32(s, f, scratch, et));
	transpose(params + t->offset, scratch, t->cols, t->rows);
	return RV_OK;
}

enum rv_err weights_load(const char *path, const struct model_ops *family, const struct model_layout *layout,
						 float *params, struct rv_errtext *et) {
	(void)family;
	struct safetensors *s;
	RV_TRY(safetensors_open(path, &s, et));
	float *scratch = new_scratch(layout);
	enum rv_err e = RV_OK;
	if (!scratch)
		e = rv_fail(et, RV_E_NOMEM, "no memory to read %s", path);
	else if (safetensors_count(s) != layout->n_tensors)
		e = rv_fail(et, RV_E_CORRUPT, "%s holds %d tensors, the model has %d", path, safetensors_count(s),
					layout->n_tensors);
	memset(params, 0, layout->n_params * sizeof *params);
	for (int i = 0; e == RV_OK && i < layout->n_tensors; i++)
		e = load_tensor(path, s, &layout->tensors[i], params, scratch, et);
	free(scratch);
	safetensors_close(s);
	return e;
}
