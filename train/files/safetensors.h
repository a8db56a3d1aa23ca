/* safetensors.h: the file format in which the ecosystem exchanges weights: 8 bytes of little-endian header length, a
 * JSON header that names each tensor's dtype, shape and byte range, then the data.
 * (huggingface.co/docs/safetensors, format section.)
 *
 * The reader trusts nothing: the header is bounded before it is read, every range must lie in the file, match its shape
 * and dtype, and all together cover the data without overlap or hole. Texts name the file and the tensor.
 */
#ifndef RV_TRAIN_FILES_SAFETENSORS_H
#define RV_TRAIN_FILES_SAFETENSORS_H

#include "base/err.h"
#include "train/files/weights_stream.h"

#include <stddef.h>
#include <stdint.h>

enum {
	SAFETENSORS_HEADER_MAX = 16 << 20, /* bytes */
	SAFETENSORS_TENSORS_MAX = 65536,
	SAFETENSORS_DIMS_MAX = 8,
	SAFETENSORS_LENGTH_BYTES = 8
};
#define SAFETENSORS_METADATA_KEY "__metadata__"

struct safetensors_tensor {
	const char *name;
	const char *dtype; /* "F32", "BF16", ... */
	int n_dims;
	uint64_t dims[SAFETENSORS_DIMS_MAX];
	uint64_t begin, end; /* bytes, from the start of the data */
};

struct safetensors_meta {
	const char *key, *value;
};

struct json_t;      /* jansson */
struct safetensors; /* an open file, read-only */

/* RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM; RV_E_CORRUPT says what is wrong with the file. */
enum rv_err safetensors_open(const char *path, struct safetensors **out, struct rv_errtext *et);
void safetensors_close(struct safetensors *s); /* NULL is fine */
int safetensors_count(const struct safetensors *s);
const struct safetensors_tensor *safetensors_at(const struct safetensors *s, int i); /* ascending by `begin` */
const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name); /* or NULL */
/* A string of "__metadata__", or NULL. Borrowed, as the tensors' names are. */
const char *safetensors_metadata(const struct safetensors *s, const char *key);
/* All of "__metadata__", or NULL. Borrowed. */
const struct json_t *safetensors_all_metadata(const struct safetensors *s);
uint64_t safetensors_elems(const struct safetensors_tensor *t);
/* Reads numbers [first, first + n) of a tensor of dtype F32, BF16 or F16 (which must exist: asserted) into out, in
 * memory that does not grow with n. RV_E_UNSUPPORTED for another dtype; RV_E_CORRUPT when a value is not finite. */
enum rv_err safetensors_read_f32(const struct safetensors *s, const struct safetensors_tensor *t, uint64_t first,
								 size_t n, float *out, struct rv_errtext *et);

/* Writes tensors of one format in the order given, atomically (base/file.h). `begin` and `end` are computed here,
 * `dtype` is ignored. A tensor's rows are its first dimension. What weights_stream_write refuses. */
struct safetensors_source {
	struct safetensors_tensor *tensors;
	int n_tensors;
	enum weights_format format;
	const struct safetensors_meta *meta;
	int n_meta;
	struct weights_rows rows;
};
enum rv_err safetensors_write(const char *path, const struct safetensors_source *source, struct rv_errtext *et);

#endif
