/* byte_stream.h: the bytes of a file from its start, unpacked on the way if it is compressed by
 * gzip (RFC 1952, several members too) or zstd (RFC 8878, several frames too). */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_BYTE_STREAM_H
#define RV_TRAIN_TEXT_DOCUMENTS_BYTE_STREAM_H

#include "base/err.h"
#include "train/text/tokenizer/mapped_file.h"

#include <stdbool.h>

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };
/* Returns how the file is packed, by its first bytes. RV_E_IO. */
enum rv_err packing_of(const struct mapped_file *file, enum packing *out, struct rv_errtext *et);

struct byte_stream; /* opaque; one thread */

/* Opens `file`, which must outlive `*out`. RV_E_NOMEM. */
enum rv_err byte_stream_open(const struct mapped_file *file, enum packing packing, struct byte_stream **out,
							 struct rv_errtext *et);
void byte_stream_close(struct byte_stream *s); /* NULL is fine */
/* Reads the next bytes, `cap` of them (not 0) or fewer; *n is 0 only at the end. RV_E_CORRUPT
 * (damaged, or cut off), RV_E_IO name the file. */
enum rv_err byte_stream_read(struct byte_stream *s, uint8_t *out, size_t cap, size_t *n, struct rv_errtext *et);
/* Returns the bytes of the file, packed as they are, that have been read. */
uint64_t byte_stream_bytes_done(const struct byte_stream *s);

#endif
