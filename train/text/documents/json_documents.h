/* json_documents.h: reads one string field of each line of JSON Lines (jsonlines.org). */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_JSON_DOCUMENTS_H
#define RV_TRAIN_TEXT_DOCUMENTS_JSON_DOCUMENTS_H

#include "train/text/documents/byte_stream.h"

struct json_documents; /* opaque; one thread */

/* Reads lines of `bytes`, which must outlive `*out`, as `path` and `field` do. RV_E_NOMEM. */
enum rv_err json_documents_open(struct byte_stream *bytes, const char *path, const char *field,
								struct json_documents **out, struct rv_errtext *et);
void json_documents_close(struct json_documents *d); /* NULL is fine */
/* Gives the field of the next line that is not blank; *at is NULL after the last. Valid until the
 * next call. RV_E_INVALID names the line: no JSON, no object, no such field, or no string there;
 * RV_E_UNSUPPORTED: a line of more than DOCUMENTS_LINE_BYTES; RV_E_NOMEM, and what byte_stream_read
 * returns. */
enum rv_err json_documents_next(struct json_documents *d, const uint8_t **at, size_t *n, struct rv_errtext *et);

#endif
