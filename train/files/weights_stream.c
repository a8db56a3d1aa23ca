/* weights_stream.c: requests, rounds and writes rows in pieces of about a MiB. */
#include "train/files/weights_stream.h"

#include "base/assert.h"

#include <stdlib.h>

enum { TRANSPOSE_BLOCK = 32 };

/* The buffers of one piece. */
struct piece {
	float *values;
	void *encoded;
};

static enum rv_err write_piece(struct rv_file_writer *w, const struct piece *p, const char *name, size_t first_elem,
							   size_t n, enum weights_format format, struct rv_errtext *et) {
	size_t done = weights_encode(format, p->values, n, p->encoded);
	if (done < n)
		return rv_fail(et, RV_E_RANGE, "%s: tensor '%.60s': value %zu is %g: %s cannot hold it", w->path, name,
					   first_elem + done, (double)p->values[done], weights_format_name(format));
	return rv_file_writer_write(w, p->encoded, n * weights_format_bytes(format), et);
}

enum rv_err weights_stream_write(struct rv_file_writer *w, const struct weights_rows *rows, int i, const char *name,
								 size_t n_rows, size_t row_elems, enum weights_format format, struct rv_errtext *et) {
	RV_ASSERT(n_rows > 0 && row_elems > 0);
	size_t piece_rows = row_elems < WEIGHTS_PIECE_ELEMS ? WEIGHTS_PIECE_ELEMS / row_elems : 1;
	if (piece_rows > n_rows)
		piece_rows = n_rows;
	struct piece p = {malloc(piece_rows * row_elems * sizeof(float)), malloc(piece_rows * row_elems * sizeof(float))};
	enum rv_err e = p.values && p.encoded ? RV_OK : rv_fail(et, RV_E_NOMEM, "%s: no memory to write it", w->path);
	for (size_t at = 0; e == RV_OK && at < n_rows; at += piece_rows) {
		size_t n = n_rows - at < piece_rows ? n_rows - at : piece_rows;
		rows->fill(rows->ctx, i, at, n, p.values);
		e = write_piece(w, &p, name, at * row_elems, n * row_elems, format, et);
	}
	free(p.values);
	free(p.encoded);
	return e;
}

void weights_transpose(float *to, size_t to_stride, const float *from, size_t from_stride, size_t rows, size_t cols) {
	for (size_t r0 = 0; r0 < rows; r0 += TRANSPOSE_BLOCK) {
		size_t r_end = rows - r0 < TRANSPOSE_BLOCK ? rows : r0 + TRANSPOSE_BLOCK;
		for (size_t c0 = 0; c0 < cols; c0 += TRANSPOSE_BLOCK) {
			size_t c_end = cols - c0 < TRANSPOSE_BLOCK ? cols : c0 + TRANSPOSE_BLOCK;
			for (size_t r = r0; r < r_end; r++)
				for (size_t c = c0; c < c_end; c++)
					to[c * to_stride + r] = from[r * from_stride + c];
		}
	}
}
