/* weights_save.c: writes the parameter block to one safetensors file, or several with an index. */
#include "train/files/weights_save.h"

#include "base/hex.h"
#include "train/files/safetensors.h"
#include "train/files/weights_names.h"
#include "train/files/weights_set.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUMBER_BYTES = 24 };

/* A source, and the data shared by all its files. */
struct save {
	const struct weights_source *w;
	const struct model_ops *family;
	char *config_text;
	char (*names)[WEIGHTS_NAME_BYTES];  /* (n_tensors) */
	struct safetensors_tensor *tensors; /* (n_tensors) */
	int first;                          /* first tensor of the present file */
};

static void fill_rows(const void *ctx, int i, size_t first, size_t n, float *out) {
	const struct save *s = ctx;
	const struct model_tensor *t = &s->w->layout->tensors[s->first + i];
	const float *values = s->w->params + t->offset;
	size_t rows = (size_t)t->rows, cols = (size_t)t->cols;
	if (t->hf_transposed)
		weights_transpose(out, rows, values + first, cols, rows, n);
	else
		memcpy(out, values + first * cols, n * cols * sizeof *out);
}

static void describe_tensors(struct save *s) {
	for (int i = 0; i < s->w->layout->n_tensors; i++) {
		const struct model_tensor *t = &s->w->layout->tensors[i];
		weights_name_in_file(s->family, t, s->names[i]);
		s->tensors[i] = weights_shape_in_file(t, s->names[i]);
	}
}

static void save_release(struct save *s) {
	free(s->config_text);
	free(s->names);
	free(s->tensors);
}

static enum rv_err save_init(struct save *s, const struct weights_source *w, struct rv_errtext *et) {
	size_t n = (size_t)w->layout->n_tensors, config_bytes = rv_options_print(run_config_options, w->cfg, NULL, 0) + 1;
	*s = (struct save){.w = w, .family = model_family(w->cfg)};
	s->config_text = malloc(config_bytes);
	s->names = calloc(n, sizeof *s->names);
	s->tensors = calloc(n, sizeof *s->tensors);
	if (!s->config_text || !s->names || !s->tensors) {
		save_release(s);
		return rv_fail(et, RV_E_NOMEM, "no memory to describe %zu tensors", n);
	}
	rv_options_print(run_config_options, w->cfg, s->config_text, config_bytes);
	describe_tensors(s);
	return RV_OK;
}

/* Writes tensors [first, end) as one file. */
static enum rv_err write_file(struct save *s, const char *path, int first, int end, struct rv_errtext *et) {
	const struct weights_origin *o = &s->w->origin;
	char round[NUMBER_BYTES], step[NUMBER_BYTES], tokens[NUMBER_BYTES], state[2 * RV_HASH_BYTES + 1];
	snprintf(round, sizeof round, "%" PRIu64, o->round);
	snprintf(step, sizeof step, "%" PRIu64, o->step);
	snprintf(tokens, sizeof tokens, "%" PRIu64, o->tokens);
	rv_hex_encode(o->state.b, sizeof o->state.b, state);
	const struct safetensors_meta meta[] = {{"format", "pt"},           {WEIGHTS_CONFIG_KEY, s->config_text},
											{"rivulet.round", round},   {"rivulet.step", step},
											{"rivulet.tokens", tokens}, {"rivulet.state", state}};
	s->first = first;
	const struct safetensors_source source = {.tensors = s->tensors + first,
											  .n_tensors = end - first,
											  .format = weights_format_of(s->w->dtype),
											  .meta = meta,
											  .n_meta = sizeof meta / sizeof meta[0],
											  .rows = {fill_rows, s}};
	return safetensors_write(path, &source, et);
}

enum weights_format weights_format_of(enum dtype d) {
	return d == DTYPE_BF16 ? WEIGHTS_BF16 : WEIGHTS_F32;
}

static uint64_t tensor_bytes(const struct weights_source *w, int i) {
	return w->layout->tensors[i].elems * weights_format_bytes(weights_format_of(w->dtype));
}

/* Returns the tensor after the last of a file that begins with `first`: at least one fits. */
static int file_end(const struct weights_source *w, int first) {
	uint64_t bytes = tensor_bytes(w, first);
	int end = first + 1;
	while (end < w->layout->n_tensors && bytes + tensor_bytes(w, end) <= w->max_file_bytes)
		bytes += tensor_bytes(w, end++);
	return end;
}

static int count_files(const struct weights_source *w) {
	int n = 0;
	for (int at = 0; at < w->layout->n_tensors; n++)
		at = w->max_file_bytes > 0 ? file_end(w, at) : w->layout->n_tensors;
	return n;
}

static enum rv_err write_files(struct save *s, const char *dir, int n_files, struct rv_errtext *et) {
	json_t *map = json_object();
	uint64_t total_bytes = 0;
	enum rv_err e = map ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for the index of %s", dir);
	for (int at = 0, file = 1; e == RV_OK && at < s->w->layout->n_tensors; file++) {
		char name[64], path[PATH_MAX];
		int end = file_end(s->w, at);
		snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", file, n_files);
		e = weights_path(dir, name, path, et);
		if (e == RV_OK)
			e = write_file(s, path, at, end, et);
		for (; e == RV_OK && at < end; at++) {
			total_bytes += tensor_bytes(s->w, at);
			if (json_object_set_new(map, s->names[at], json_string(name)) != 0)
				e = rv_fail(et, RV_E_NOMEM, "no memory for the index of %s", dir);
		}
	}
	if (e == RV_OK)
		e = weights_write_json(
			dir, WEIGHTS_INDEX_FILE,
			json_pack("{s{sI} sO}", "metadata", "total_size", (json_int_t)total_bytes, "weight_map", map), et);
	json_decref(map);
	return e;
}

/* Removes a file of an earlier export in the other layout, which readers would otherwise use. */
static void remove_other(const char *dir, const char *name) {
	char path[PATH_MAX];
	if (weights_path(dir, name, path, NULL) == RV_OK)
		(void)unlink(path);
}

enum rv_err weights_save_files(const char *dir, const struct weights_source *w, struct rv_errtext *et) {
	struct save s;
	char path[PATH_MAX];
	int n_files = count_files(w);
	RV_TRY(weights_path(dir, WEIGHTS_FILE, path, et));
	RV_TRY(save_init(&s, w, et));
	enum rv_err e =
		n_files == 1 ? write_file(&s, path, 0, w->layout->n_tensors, et) : write_files(&s, dir, n_files, et);
	save_release(&s);
	if (e == RV_OK)
		remove_other(dir, n_files == 1 ? WEIGHTS_INDEX_FILE : WEIGHTS_FILE);
	return e;
}
