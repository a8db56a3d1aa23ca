/* parquet_footer.h: the footer of a Parquet file (github.com/apache/parquet-format,
 * parquet.thrift): where the pages of one column of strings are, in each row group.
 *
 * A column is named by its path, "text" or "meta.text". Columns of other types, and those within a
 * list or a map, are refused by name. */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_PARQUET_FOOTER_H
#define RV_TRAIN_TEXT_DOCUMENTS_PARQUET_FOOTER_H

#include "base/err.h"
#include "train/text/tokenizer/mapped_file.h"

enum {
	PARQUET_MAX_COLUMNS = 4096, /* of a schema, groups included */
	PARQUET_MAX_GROUPS = 1 << 20,
	PARQUET_MAX_FOOTER_BYTES = 1 << 27,
	PARQUET_MAX_LEVEL = 7 /* optional groups around a column */
};

/* Compression of a column's pages, as parquet.thrift numbers it. */
enum parquet_codec {
	PARQUET_PLAIN,
	PARQUET_SNAPPY,
	PARQUET_GZIP,
	PARQUET_LZO,
	PARQUET_BROTLI,
	PARQUET_LZ4_HADOOP,
	PARQUET_ZSTD,
	PARQUET_LZ4
};

/* The column in one row group. */
struct parquet_chunk {
	uint64_t at, bytes; /* of its pages in the file, the dictionary's first */
	uint64_t n_values;  /* nulls included */
	uint8_t codec;      /* enum parquet_codec */
};

struct parquet_footer {
	struct parquet_chunk *chunks; /* (n_groups) */
	size_t n_groups;
	uint64_t n_rows;
	uint8_t most_defined; /* definition level of a value that is not null; 0: there are no levels */
};

/* Reads the footer for the column `column`. RV_E_INVALID names what is malformed; RV_E_NOTFOUND:
 * there is no such column, the text lists those that could be it; RV_E_UNSUPPORTED: it is no column
 * of strings, is within a list, is encrypted, or is compressed by a method that is not read;
 * RV_E_IO, RV_E_NOMEM. */
enum rv_err parquet_footer_read(struct parquet_footer *f, const struct mapped_file *file, const char *column,
								struct rv_errtext *et);
void parquet_footer_release(struct parquet_footer *f);

#endif
