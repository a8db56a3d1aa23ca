/* weights.c: loads the flat parameter block from safetensors files. */
#include "train/files/weights.h"

#include "base/assert.h"
#include "outer/global.h"
#include "train/files/weights_names.h"
#include "train/files/weights_set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct loader {
	const struct model_ops *family;
	const struct model_layout *layout;
	float *params;  /* NULL: only headers are checked */
	bool *seen;     /* (layout->n_tensors) */
	float *piece;   /* rows to be transposed or compared */
	bool redundant; /* a file has a tied model's classifier, to be compared with the embedding */
	const struct weights_set *set;
	struct rv_errtext *et;
};

static enum rv_err check_shape(const struct loader *l, const char *path, const struct safetensors_tensor *f,
							   const struct model_tensor *t) {
	struct safetensors_tensor want = weights_shape_in_file(t, t->name);
	bool same =
		f->n_dims == want.n_dims && f->dims[0] == want.dims[0] && (f->n_dims == 1 || f->dims[1] == want.dims[1]);
	if (same)
		return RV_OK;
	char got[24 * SAFETENSORS_DIMS_MAX] = "";
	for (int i = 0; i < f->n_dims; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s%" PRIu64, i ? " x " : "", f->dims[i]);
	return rv_fail(l->et, RV_E_CORRUPT, "%s: tensor '%.60s' is not of shape %" PRIu64 " x %" PRIu64 " but of %s", path,
				   f->name, want.dims[0], want.n_dims == 2 ? want.dims[1] : 1, got);
}

/* Returns the rows in a piece of a tensor with rows of `row` numbers. */
static size_t piece_rows(size_t row) {
	return row < WEIGHTS_PIECE_ELEMS ? WEIGHTS_PIECE_ELEMS / row : 1;
}

static enum rv_err read_transposed(const struct loader *l, const struct safetensors *s,
								   const struct safetensors_tensor *f, const struct model_tensor *t) {
	size_t disk_rows = (size_t)t->cols, row = (size_t)t->rows, step = piece_rows(row);
	for (size_t at = 0; at < disk_rows; at += step) {
		size_t n = disk_rows - at < step ? disk_rows - at : step;
		RV_TRY(safetensors_read_f32(s, f, at * row, n * row, l->piece, l->et));
		weights_transpose(l->params + t->offset + at, disk_rows, l->piece, row, n, row);
	}
	return RV_OK;
}

static enum rv_err load_tensor(struct loader *l, const char *path, const struct safetensors *s,
							   const struct safetensors_tensor *f, const struct model_tensor *t) {
	bool *seen = &l->seen[t - l->layout->tensors];
	if (*seen)
		return rv_fail(l->et, RV_E_CORRUPT, "%s: tensor '%.60s' occurs twice, with and without '%s'", path, f->name,
					   l->family->hf_body ? l->family->hf_body : l->family->hf_prefix);
	*seen = true;
	RV_TRY(check_shape(l, path, f, t));
	RV_ASSERT(safetensors_elems(f) == t->elems && t->offset + t->elems <= l->layout->n_params);
	if (!l->params)
		return RV_OK;
	if (t->hf_transposed)
		return read_transposed(l, s, f, t);
	return safetensors_read_f32(s, f, 0, t->elems, l->params + t->offset, l->et);
}

static enum rv_err load_file(struct loader *l, const char *path, const struct safetensors *s) {
	for (int i = 0; i < safetensors_count(s); i++) {
		const struct safetensors_tensor *f = safetensors_at(s, i);
		const char *name = weights_name_in_model(l->family, f->name);
		const struct model_tensor *t = weights_find_tensor(l->family, l->layout, f->name);
		if (t) {
			RV_TRY(load_tensor(l, path, s, f, t));
		} else if (strcmp(name, WEIGHTS_CLASSIFIER) == 0) {
			l->redundant = true;
		} else if (!l->family->hf_ignored || !l->family->hf_ignored(name)) {
			return rv_fail(l->et, RV_E_CORRUPT,
						   "%s: tensor '%.60s' is superfluous: a %s model of this configuration has none of this name",
						   path, f->name, l->family->name);
		}
	}
	return RV_OK;
}

/* Checks that a tied model's classifier equals the token embedding, the layout's first tensor. */
static enum rv_err compare_classifier(struct loader *l, const char *path, const struct safetensors *s) {
	const struct model_tensor *embedding = &l->layout->tensors[0];
	for (int i = 0; i < safetensors_count(s); i++) {
		const struct safetensors_tensor *f = safetensors_at(s, i);
		if (strcmp(weights_name_in_model(l->family, f->name), WEIGHTS_CLASSIFIER) != 0)
			continue;
		RV_TRY(check_shape(l, path, f, embedding));
		for (size_t at = 0; at < embedding->elems; at += WEIGHTS_PIECE_ELEMS) {
			size_t n = embedding->elems - at < WEIGHTS_PIECE_ELEMS ? embedding->elems - at : WEIGHTS_PIECE_ELEMS;
			RV_TRY(safetensors_read_f32(s, f, at, n, l->piece, l->et));
			if (memcmp(l->piece, l->params + embedding->offset + at, n * sizeof *l->piece) != 0)
				return rv_fail(l->et, RV_E_CORRUPT,
							   "%s: tensor '%.60s' differs from '%s', but the model's classifier is tied to it", path,
							   f->name, embedding->name);
		}
	}
	return RV_OK;
}

static enum rv_err each_file(struct loader *l,
							 enum rv_err (*take)(struct loader *l, const char *path, const struct safetensors *s)) {
	for (int i = 0; i < l->set->n_files; i++) {
		char path[PATH_MAX];
		struct safetensors *s;
		weights_set_path(l->set, i, path);
		RV_TRY(weights_set_open_file(l->set, i, &s, l->et));
		enum rv_err e = take(l, path, s);
		safetensors_close(s);
		RV_TRY(e);
	}
	return RV_OK;
}

static enum rv_err check_all_seen(const struct loader *l, const char *where) {
	for (int i = 0; i < l->layout->n_tensors; i++)
		if (!l->seen[i])
			return rv_fail(l->et, RV_E_CORRUPT, "%s has no tensor '%s'", where, l->layout->tensors[i].name);
	return RV_OK;
}

/* Reads every file: in one pass only headers, before memory is touched for their claims, and in a
 * second one all, checked again because the file may have changed. */
static enum rv_err pass(struct loader *l, float *params, const char *where) {
	l->params = params;
	memset(l->seen, 0, (size_t)l->layout->n_tensors * sizeof *l->seen);
	RV_TRY(each_file(l, load_file));
	RV_TRY(check_all_seen(l, where));
	return params && l->redundant ? each_file(l, compare_classifier) : RV_OK;
}

/* Allocates room for a piece of any tensor. */
static float *new_piece(const struct model_layout *layout) {
	size_t most = WEIGHTS_PIECE_ELEMS;
	for (int i = 0; i < layout->n_tensors; i++)
		if ((size_t)layout->tensors[i].rows > most)
			most = (size_t)layout->tensors[i].rows;
	return malloc(most * sizeof(float));
}

static void loader_release(struct loader *l) {
	free(l->seen);
	free(l->piece);
}

/* Prepares to read `set`, and checks its headers. */
static enum rv_err loader_init(struct loader *l, const char *where, const struct weights_set *set,
							   const struct model_ops *family, const struct model_layout *layout,
							   struct rv_errtext *et) {
	*l = (struct loader){.family = family, .layout = layout, .set = set, .et = et};
	l->seen = calloc((size_t)layout->n_tensors, sizeof *l->seen);
	enum rv_err e = l->seen ? pass(l, NULL, where) : rv_fail(et, RV_E_NOMEM, "no memory to read %s", where);
	l->piece = e == RV_OK ? new_piece(layout) : NULL;
	if (e == RV_OK && !l->piece)
		e = rv_fail(et, RV_E_NOMEM, "no memory to read %s", where);
	if (e != RV_OK)
		loader_release(l);
	return e;
}

/* Loads into *params, which it allocates. */
static enum rv_err load(const char *where, const struct model_ops *family, const struct model_layout *layout,
						float **params, struct rv_errtext *et) {
	struct weights_set set;
	struct loader l;
	RV_TRY(weights_set_open(where, &set, et));
	enum rv_err e = loader_init(&l, where, &set, family, layout, et);
	if (e == RV_OK) {
		*params = calloc(layout->n_params, sizeof **params);
		e = *params ? pass(&l, *params, where)
					: rv_fail(et, RV_E_NOMEM, "no memory for the %zu parameters of %s", layout->n_params, where);
		loader_release(&l);
	}
	weights_set_release(&set);
	return e;
}

enum rv_err weights_load(const char *where, const struct run_config *c, struct model_layout *layout, float **params,
						 struct rv_errtext *et) {
	const struct model_ops *family = model_family(c);
	const struct model_shape shape = model_shape_of(c);
	*params = NULL;
	*layout = (struct model_layout){.n_tensors = 0};
	RV_TRY(model_layout_init(layout, family, &shape, NULL, et));
	enum rv_err e = load(where, family, layout, params, et);
	if (e != RV_OK) {
		free(*params);
		*params = NULL;
		model_layout_release(layout);
		*layout = (struct model_layout){.n_tensors = 0};
	}
	return e;
}

static struct rv_hasher hash_begin(size_t n) {
	struct rv_hasher h = rv_hasher_of("rivulet weights");
	rv_hash_u64(&h, n);
	return h;
}

struct rv_hash weights_hash(const float *params, size_t n) {
	struct rv_hasher h = hash_begin(n);
	for (size_t at = 0; at < n; at += GLOBAL_PIECE_ELEMS) {
		size_t left = n - at, count = left < GLOBAL_PIECE_ELEMS ? left : GLOBAL_PIECE_ELEMS;
		struct rv_hash piece = rv_hash_of(params + at, count * sizeof *params);
		rv_hash_update(&h, piece.b, sizeof piece.b);
	}
	return rv_hash_final(&h);
}

struct rv_hash weights_hash_of(size_t n, const struct rv_hash *piece_hashes) {
	struct rv_hasher h = hash_begin(n);
	rv_hash_update(&h, piece_hashes, (n + GLOBAL_PIECE_ELEMS - 1) / GLOBAL_PIECE_ELEMS * sizeof *piece_hashes);
	return rv_hash_final(&h);
}
