/* gguf_writer.h: the layout of a GGUF file: header, key-value pairs, table of tensors, tensors.
 * Inner part of gguf.h.
 *
 * All before the tensors is collected in memory; gguf_writer_write reports RV_E_NOMEM. */
#ifndef RV_TRAIN_FILES_GGUF_WRITER_H
#define RV_TRAIN_FILES_GGUF_WRITER_H

#include "base/err.h"
#include "train/files/weights_stream.h"
#include "train/text/tokenizer/buffers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_ALIGNMENT = 32, GGUF_NAME_BYTES = 64 };

enum gguf_type { GGUF_U32 = 4, GGUF_I32 = 5, GGUF_F32 = 6, GGUF_BOOL = 7, GGUF_STRING = 8, GGUF_ARRAY = 9 };

struct gguf_tensor {
	char name[GGUF_NAME_BYTES];
	size_t rows, cols; /* cols 0: a vector of `rows` */
	enum weights_format format;
};

struct gguf_writer {
	struct byte_list pairs;
	uint64_t n_pairs;
	bool failed;
};

void gguf_writer_release(struct gguf_writer *g);

void gguf_put_u32(struct gguf_writer *g, const char *key, uint32_t value);
void gguf_put_f32(struct gguf_writer *g, const char *key, float value);
void gguf_put_bool(struct gguf_writer *g, const char *key, bool value);
void gguf_put_string(struct gguf_writer *g, const char *key, const char *value);
/* Starts an array, whose n elements follow by gguf_add_*. */
void gguf_put_array(struct gguf_writer *g, const char *key, enum gguf_type type, uint64_t n);
void gguf_add_i32(struct gguf_writer *g, int32_t value);
void gguf_add_string(struct gguf_writer *g, const char *text, size_t n);

/* Writes the file, atomically. `rows` (weights_stream.h) delivers a vector as one row. Returns
 * RV_E_NOMEM, also of earlier gguf_put_* and gguf_add_*, RV_E_RANGE (weights_stream_write),
 * RV_E_FULL or RV_E_IO. */
enum rv_err gguf_writer_write(struct gguf_writer *g, const char *path, const struct gguf_tensor *tensors, int n_tensors,
							  const struct weights_rows *rows, struct rv_errtext *et);

#endif
