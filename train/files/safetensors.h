/* safetensors.h: the common file format of weights: 8 bytes of little-endian header length, a JSON
 * header with each tensor's dtype, shape and byte range, then the data.
 * (huggingface.co/docs/safetensors, format section.)
 *
 * Files are untrusted: the reader bounds the header before it reads it, and every range must lie in
 * the file and match its shape and dtype, and together they cover the data without overlap or hole.
 * Texts name file and tensor. */
#ifndef RV_TRAIN_FILES_SAFETENSORS_H
#define RV_TRAIN_FILES_SAFETENSORS_H

#include "base/err.h"
#include "train/files/weights_stream.h"

#include <stdbool.h>
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
	uint64_t begin, end; /* bytes from the start of the data */
};

struct safetensors_meta {
	const char *key, *value;
};

struct json_t;      /* jansson */
struct safetensors; /* an open file, read-only */

/* Opens a file. Returns RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM, or RV_E_CORRUPT, naming the defect. */
enum rv_err safetensors_open(const char *path, struct safetensors **out, struct rv_errtext *et);
void safetensors_close(struct safetensors *s); /* NULL is fine */
int safetensors_count(const struct safetensors *s);
const struct safetensors_tensor *safetensors_at(const struct safetensors *s, int i); /* ascending by `begin` */
bool safetensors_has(const struct safetensors *s, const char *name);
/* Returns a string of "__metadata__" (borrowed, like the tensors' names), or NULL. */
const char *safetensors_metadata(const struct safetensors *s, const char *key);
/* Returns all of "__metadata__" (borrowed), or NULL. */
const struct json_t *safetensors_all_metadata(const struct safetensors *s);
uint64_t safetensors_elems(const struct safetensors_tensor *t);
/* Reads numbers [first, first + n), asserted to exist, of a tensor of dtype F32, BF16 or F16 into
 * `out`, in constant memory. Returns RV_E_UNSUPPORTED for another dtype, RV_E_CORRUPT for a value
 * that is not finite, RV_E_IO. */
enum rv_err safetensors_read_f32(const struct safetensors *s, const struct safetensors_tensor *t, uint64_t first,
								 size_t n, float *out, struct rv_errtext *et);

/* Tensors of one format to be written in this order, atomically (base/file.h). Writing sets `begin`
 * and `end` and ignores `dtype`. The rows of a tensor are its first dimension. */
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
