/* documents.c: see documents.h. */
#include "train/text/documents/documents.h"

#include "train/text/documents/byte_stream.h"
#include "train/text/documents/json_documents.h"
#include "train/text/documents/parquet.h"
#include "train/text/tokenizer/text_check.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TEXT_PART_BYTES = 1 << 17, SAMPLE_BYTES = 1 << 15 };

struct documents {
	enum documents_kind kind;
	struct byte_stream *bytes;    /* NULL: Parquet */
	struct json_documents *lines; /* DOCUMENTS_LINES */
	struct parquet *parquet;      /* DOCUMENTS_PARQUET */
	bool has_begun;               /* the text's first part was given */
	uint8_t part[TEXT_PART_BYTES];
};

static bool ends_with(const char *path, size_t n, const char *ending) {
	size_t k = strlen(ending);
	return n > k && strncasecmp(path + n - k, ending, k) == 0;
}

/* Returns the length of the path without the ending that compression gave it. */
static size_t unpacked_name(const char *path) {
	static const char *const endings[] = {".gz", ".zst", ".zstd"};
	size_t n = strlen(path);
	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
		if (ends_with(path, n, endings[i]))
			return n - strlen(endings[i]);
	return n;
}

static enum rv_err sample_of(const struct mapped_file *file, enum packing packing, uint8_t sample[SAMPLE_BYTES],
							 size_t *n, struct rv_errtext *et) {
	struct byte_stream *s = NULL;
	size_t got = 1;
	*n = 0;
	RV_TRY(byte_stream_open(file, packing, &s, et));
	enum rv_err e = RV_OK;
	for (; e == RV_OK && got > 0 && *n < SAMPLE_BYTES; *n += got)
		e = byte_stream_read(s, sample + *n, SAMPLE_BYTES - *n, &got, et);
	byte_stream_close(s);
	return e;
}

/* Checks what is within a packed file as text_check() does a file. */
static enum rv_err recognise(const struct mapped_file *file, enum packing packing, enum documents_kind *out,
							 struct rv_errtext *et) {
	uint8_t sample[SAMPLE_BYTES];
	char name[PATH_MAX];
	size_t n, length = unpacked_name(file->path);
	(void)snprintf(name, sizeof name, "%.*s", (int)length, file->path);
	RV_TRY(sample_of(file, packing, sample, &n, et));
	if (packing == PACKING_NONE && n >= 4 && memcmp(sample, "PAR1", 4) == 0) {
		*out = DOCUMENTS_PARQUET;
		return RV_OK;
	}
	bool is_named_lines = ends_with(name, strlen(name), ".jsonl") || ends_with(name, strlen(name), ".ndjson");
	*out = is_named_lines || text_is_json_lines(sample, n) ? DOCUMENTS_LINES : DOCUMENTS_TEXT;
	if (*out == DOCUMENTS_LINES)
		return RV_OK;
	if (packing == PACKING_NONE && length < strlen(file->path))
		return rv_fail(et, RV_E_CORRUPT,
					   "%.200s: its name says that it is compressed (%s), its first bytes do not: it is damaged, or it "
					   "is not compressed and needs another name",
					   file->path, file->path + length);
	const enum rv_err e = text_check_sample(name, sample, n, et);
	return e == RV_OK || packing == PACKING_NONE ? e : rv_fail_context(et, e, "%.200s, unpacked", file->path);
}

enum rv_err documents_recognise(const struct mapped_file *file, enum documents_kind *out, struct rv_errtext *et) {
	enum packing packing;
	RV_TRY(packing_of(file, &packing, et));
	return recognise(file, packing, out, et);
}

enum rv_err documents_are_plain(const struct mapped_file *file, bool *plain, struct rv_errtext *et) {
	enum packing packing;
	enum documents_kind kind;
	RV_TRY(packing_of(file, &packing, et));
	RV_TRY(recognise(file, packing, &kind, et));
	*plain = packing == PACKING_NONE && kind == DOCUMENTS_TEXT;
	return *plain ? text_check(file, et) : RV_OK;
}

static enum rv_err open_kind(struct documents *d, const struct mapped_file *file, const char *field,
							 struct rv_errtext *et) {
	enum packing packing;
	RV_TRY(packing_of(file, &packing, et));
	RV_TRY(recognise(file, packing, &d->kind, et));
	if (d->kind == DOCUMENTS_PARQUET)
		return parquet_open(file, field, &d->parquet, et);
	RV_TRY(byte_stream_open(file, packing, &d->bytes, et));
	return d->kind == DOCUMENTS_LINES ? json_documents_open(d->bytes, file->path, field, &d->lines, et) : RV_OK;
}

enum rv_err documents_open(const struct mapped_file *file, const char *field, struct documents **out,
						   struct rv_errtext *et) {
	struct documents *d = calloc(1, sizeof *d);
	if (d == NULL)
		return rv_fail(et, RV_E_NOMEM, "%.200s: no memory to read it", file->path);
	enum rv_err e = open_kind(d, file, field, et);
	if (e != RV_OK) {
		documents_close(d);
		return e;
	}
	*out = d;
	return RV_OK;
}

void documents_close(struct documents *d) {
	if (d == NULL)
		return;
	json_documents_close(d->lines);
	parquet_close(d->parquet);
	byte_stream_close(d->bytes);
	free(d);
}

static enum rv_err next_text(struct documents *d, struct document_part *part, struct rv_errtext *et) {
	RV_TRY(byte_stream_read(d->bytes, d->part, sizeof d->part, &part->n, et));
	part->at = part->n > 0 ? d->part : NULL;
	part->begins = !d->has_begun;
	d->has_begun = true;
	return RV_OK;
}

enum rv_err documents_next(struct documents *d, struct document_part *part, struct rv_errtext *et) {
	*part = (struct document_part){.begins = true};
	switch (d->kind) {
	case DOCUMENTS_TEXT:
		return next_text(d, part, et);
	case DOCUMENTS_LINES:
		return json_documents_next(d->lines, &part->at, &part->n, et);
	default:
		return parquet_next(d->parquet, &part->at, &part->n, et);
	}
}

uint64_t documents_bytes_done(const struct documents *d) {
	return d->kind == DOCUMENTS_PARQUET ? parquet_bytes_done(d->parquet) : byte_stream_bytes_done(d->bytes);
}
