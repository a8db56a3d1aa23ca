/* weights_set.h: the safetensors files of one model's weights: a single one, or several behind an
 * index (model.safetensors.index.json: {"weight_map": {tensor: file}}).
 *
 * The index is untrusted: at most WEIGHTS_SET_MAX_INDEX_BYTES, WEIGHTS_SET_MAX_FILES files and
 * SAFETENSORS_TENSORS_MAX tensors; file names without a directory; every tensor in exactly the file
 * that the index names. One file is open at a time. */
#ifndef RV_TRAIN_FILES_WEIGHTS_SET_H
#define RV_TRAIN_FILES_WEIGHTS_SET_H

#include "base/err.h"
#include "train/files/safetensors.h"

#include <limits.h>

enum { WEIGHTS_SET_MAX_INDEX_BYTES = 16 << 20, WEIGHTS_SET_MAX_FILES = 4096 };

struct json_t; /* jansson */

struct weights_set {
	char dir[PATH_MAX];
	struct json_t *index; /* owns the names; NULL: a single file without an index */
	const char **files;   /* (n_files) within dir */
	int *n_tensors;       /* tensors of each file by the index */
	int n_files;
};

/* Opens `where` (borrowed): a directory with model.safetensors (which takes precedence, as in
 * transformers) or an index; an index; or a safetensors file. Returns RV_E_NOTFOUND, RV_E_IO,
 * RV_E_NOMEM, or RV_E_CORRUPT, naming the defect of the index; *s is then released. */
enum rv_err weights_set_open(const char *where, struct weights_set *s, struct rv_errtext *et);
void weights_set_release(struct weights_set *s);

/* Writes dir/name. Returns RV_E_RANGE if it exceeds PATH_MAX. */
enum rv_err weights_path(const char *dir, const char *name, char out[static PATH_MAX], struct rv_errtext *et);
/* Write dir/name, atomically. `root`, which is released, is NULL if building it failed
 * (RV_E_NOMEM). Return what rv_file_write_atomic returns. */
enum rv_err weights_write_text(const char *dir, const char *name, const void *text, size_t n, struct rv_errtext *et);
enum rv_err weights_write_json(const char *dir, const char *name, struct json_t *root, struct rv_errtext *et);
void weights_set_path(const struct weights_set *s, int i, char out[static PATH_MAX]);
/* Opens file i, which the caller closes. Returns what safetensors_open returns, and RV_E_CORRUPT,
 * naming a tensor that is missing or that the index places elsewhere. */
enum rv_err weights_set_open_file(const struct weights_set *s, int i, struct safetensors **out, struct rv_errtext *et);

#endif
