/* documents.h: a file of text as documents, read from its start in bounded memory.
 *
 * | file | documents |
 * |---|---|
 * | text (.txt and others) | one |
 * | JSON Lines (.jsonl, .ndjson) | the string `field` of each line's object |
 * | Parquet (.parquet) | each value of the column `field` that is not null |
 *
 * Text and JSON Lines may be compressed by gzip (.gz) or zstd (.zst). Files are told apart by their
 * first bytes, then by their names. Others are refused by name, with what to do (text_check.h):
 * nothing that is not understood is trained on. */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_DOCUMENTS_H
#define RV_TRAIN_TEXT_DOCUMENTS_DOCUMENTS_H

#include "base/err.h"
#include "train/text/tokenizer/mapped_file.h"

#include <stdbool.h>

/* The option `field` of programs, whose value documents_open() takes. */
#define DOCUMENTS_FIELD_DEFAULT "text"
#define DOCUMENTS_FIELD_HELP                                                                                           \
	"The field or column with the text, in JSON Lines and Parquet; \"meta.text\" for one within an object."
enum { DOCUMENTS_FIELD_BYTES = 128 };

enum { DOCUMENTS_LINE_BYTES = 1 << 27 /* of a line of JSON, at most */ };

enum documents_kind { DOCUMENTS_TEXT, DOCUMENTS_LINES, DOCUMENTS_PARQUET };

/* Part of a document. */
struct document_part {
	const uint8_t *at; /* valid until the next call */
	size_t n;
	bool begins; /* it is the first of its document */
};

struct documents; /* opaque; one thread */

/* Opens `file`, which must outlive `*out`. `field`: of a line or row, "text" for most files of the
 * hub; "meta.text" for one within an object. RV_E_UNSUPPORTED, RV_E_NOTFOUND (no such column),
 * RV_E_INVALID, RV_E_IO, RV_E_NOMEM name the file. */
enum rv_err documents_open(const struct mapped_file *file, const char *field, struct documents **out,
						   struct rv_errtext *et);
void documents_close(struct documents *d); /* NULL is fine */
/* Gives the next part; at the end of the file part->at is NULL. RV_E_INVALID (not UTF-8 JSON, a
 * line without the field, malformed Parquet: file and line or byte), RV_E_CORRUPT (cannot be
 * unpacked), RV_E_UNSUPPORTED, RV_E_NOMEM, RV_E_IO. */
enum rv_err documents_next(struct documents *d, struct document_part *part, struct rv_errtext *et);
/* Returns the bytes of the file, packed as they are, that have been read. */
uint64_t documents_bytes_done(const struct documents *d);

/* Sets *plain: the file is text that is not packed. Errors as documents_recognise(). */
enum rv_err documents_are_plain(const struct mapped_file *file, bool *plain, struct rv_errtext *et);
/* Finds out what a file holds. RV_E_UNSUPPORTED as documents_open; RV_E_IO. */
enum rv_err documents_recognise(const struct mapped_file *file, enum documents_kind *out, struct rv_errtext *et);

#endif
