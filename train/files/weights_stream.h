/* weights_stream.h: writes a tensor's rows to a file piece by piece, never all at once. */
#ifndef RV_TRAIN_FILES_WEIGHTS_STREAM_H
#define RV_TRAIN_FILES_WEIGHTS_STREAM_H

#include "base/file.h"
#include "train/files/weights_format.h"

enum { WEIGHTS_PIECE_ELEMS = 1 << 18 }; /* numbers in a piece; a piece has at least one row */

/* Source of rows: fill(ctx, i, first, n, out) writes rows [first, first + n) of tensor i. */
struct weights_rows {
	void (*fill)(const void *ctx, int tensor, size_t first, size_t n, float *out);
	const void *ctx;
};

/* Appends tensor `i`, called `name`, of n_rows x row_elems numbers. Returns RV_E_RANGE, naming a
 * value that is not finite in the format, RV_E_NOMEM, RV_E_IO or RV_E_FULL. */
enum rv_err weights_stream_write(struct rv_file_writer *w, const struct weights_rows *rows, int i, const char *name,
								 size_t n_rows, size_t row_elems, enum weights_format format, struct rv_errtext *et);

/* Transposes: to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < cols, in
 * cache-sized blocks. */
void weights_transpose(float *to, size_t to_stride, const float *from, size_t from_stride, size_t rows, size_t cols);

#endif
