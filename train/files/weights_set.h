/* weights_set.h: the safetensors files that hold one model's weights: a single one, or several behind an index
 * (model.safetensors.index.json: {"weight_map": {tensor: file}}).
 *
 * The index is not trusted: at most WEIGHTS_SET_MAX_INDEX_BYTES, WEIGHTS_SET_MAX_FILES files and
 * SAFETENSORS_TENSORS_MAX tensors; files are named without a directory; every tensor lies in exactly the file that the
 * index says. One file is open at a time.
 */
#ifndef RV_TRAIN_FILES_WEIGHTS_SET_H
#define RV_TRAIN_FILES_WEIGHTS_SET_H

#include "base/err.h"
#include "train/files/safetensors.h"

#include <limits.h>

enum { WEIGHTS_SET_MAX_INDEX_BYTES = 16 << 20, WEIGHTS_SET_MAX_FILES = 4096 };

struct json_t; /* jansson */

struct weights_set {
	char dir[PATH_MAX];
	struct json_t *index; /* NULL: a single file without one; owns the names */
	const char **files;   /* (n_files) within dir */
	int *n_tensors;       /* (n_files) that the index says each holds */
	int n_files;
};

/* `where`: a directory with model.safetensors (which wins, as it does for transformers) or an index; an index; or a
 * safetensors file; borrowed. RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM; RV_E_CORRUPT says what is wrong with the index. On a
 * fault *s is released. */
enum rv_err weights_set_open(const char *where, struct weights_set *s, struct rv_errtext *et);
/* The same from the text of an index; `path` is its name in texts, and where its files are. The
 * same faults. */
enum rv_err weights_set_of_index(const char *path, const uint8_t *text, size_t n, struct weights_set *s,
								 struct rv_errtext *et);
void weights_set_release(struct weights_set *s);

/* dir/name. RV_E_RANGE: longer than a path may be. */
enum rv_err weights_path(const char *dir, const char *name, char out[static PATH_MAX], struct rv_errtext *et);
void weights_set_path(const struct weights_set *s, int i, char out[static PATH_MAX]);
/* Opens file i, to be closed by the caller. What safetensors_open refuses; RV_E_CORRUPT names a tensor that the index
 * does not say to be there, or that is missing. */
enum rv_err weights_set_open_file(const struct weights_set *s, int i, struct safetensors **out, struct rv_errtext *et);

#endif
