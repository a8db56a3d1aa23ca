/* parquet.h: reads one column of strings of a Parquet file, row by row, in the memory of two pages:
 * plain, dictionary, delta-length and delta encodings (parquet-format, Encodings.md); pages of both
 * versions; null values are passed over. */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_PARQUET_H
#define RV_TRAIN_TEXT_DOCUMENTS_PARQUET_H

#include "base/err.h"
#include "train/text/tokenizer/mapped_file.h"

#include <stdbool.h>

struct parquet; /* opaque; one thread */

/* Opens `column` of the file, which must outlive `*out`. Returns the errors of
 * parquet_footer_read. */
enum rv_err parquet_open(const struct mapped_file *file, const char *column, struct parquet **out,
						 struct rv_errtext *et);
void parquet_close(struct parquet *p); /* NULL is fine */
/* Gives the next value that is not null: *at (n bytes) is valid until the next call. Sets *at to
 * NULL after the last. RV_E_INVALID, RV_E_UNSUPPORTED, RV_E_NOMEM, RV_E_IO name the file. */
enum rv_err parquet_next(struct parquet *p, const uint8_t **at, size_t *n, struct rv_errtext *et);
/* Returns the bytes of the file whose pages are read, for progress. */
uint64_t parquet_bytes_done(const struct parquet *p);

#endif
