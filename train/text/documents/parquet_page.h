/* parquet_page.h: the pages of a column in a Parquet file, one after another, unpacked. */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_PARQUET_PAGE_H
#define RV_TRAIN_TEXT_DOCUMENTS_PARQUET_PAGE_H

#include "train/text/documents/parquet_footer.h"

#include "base/bytes.h"

enum { PARQUET_MAX_PAGE_BYTES = 1 << 27 /* unpacked: a text of one row is shorter, too */ };

enum parquet_page_type { PARQUET_PAGE_DATA = 0, PARQUET_PAGE_INDEX, PARQUET_PAGE_DICTIONARY, PARQUET_PAGE_DATA_2 };

/* Bytes that are kept for the next use. */
struct page_buffer {
	uint8_t *at;
	size_t cap;
};
void page_buffer_release(struct page_buffer *b);

struct parquet_page {
	int64_t type;                    /* enum parquet_page_type */
	int64_t encoding;                /* of the values, as parquet.thrift numbers it */
	uint32_t n_values;               /* nulls included */
	bool has_levels_apart;           /* DATA_2: `levels` holds the definition levels alone */
	struct rv_reader levels, values; /* into the buffer; `levels` of DATA_2 only */
};

/* Reads the page at *at of the chunk, which ends at `end`, into `buffer`, and moves *at behind it.
 * RV_E_INVALID, RV_E_UNSUPPORTED (a page that is too large), RV_E_NOMEM, RV_E_IO name the file. */
enum rv_err parquet_page_read(const struct mapped_file *file, uint8_t codec, uint64_t *at, uint64_t end,
							  struct page_buffer *buffer, struct parquet_page *out, struct rv_errtext *et);

#endif
