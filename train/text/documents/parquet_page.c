/* parquet_page.c: see parquet_page.h. Numbers of fields are those of parquet.thrift. */
#include "train/text/documents/parquet_page.h"

#include "train/text/documents/thrift.h"
#include "train/text/documents/unpack.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX_BYTES = 1 << 20 /* statistics may repeat a long text */, HEADER_USUAL_BYTES = 4096 };

/* What a page header says. */
struct header {
	int64_t type, packed_bytes, unpacked_bytes;
	int64_t n_values, encoding, definition_bytes, repetition_bytes;
	bool is_plain; /* of DATA_2: its values are not compressed */
	size_t bytes;  /* of the header */
};

void page_buffer_release(struct page_buffer *b) {
	free(b->at);
	*b = (struct page_buffer){0};
}

static enum rv_err reserve(struct page_buffer *b, size_t n, struct rv_errtext *et) {
	if (n <= b->cap)
		return RV_OK;
	uint8_t *at = realloc(b->at, n);
	if (at == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for a Parquet page of %zu bytes", n);
	*b = (struct page_buffer){.at = at, .cap = n};
	return RV_OK;
}

static enum rv_err invalid(const struct mapped_file *file, const char *what, uint64_t at, struct rv_errtext *et) {
	return rv_fail(et, RV_E_INVALID, "%.200s: the Parquet page at byte %llu %s", file->path, (unsigned long long)at,
				   what);
}

/* ---- the header ---- */

/* The three kinds of pages with values number these fields differently. */
struct numbering {
	int16_t n_values, encoding, definition_bytes, repetition_bytes, is_compressed;
};

static void read_kind(struct rv_reader *r, const struct thrift_field *of, const struct numbering *id,
					  struct header *h) {
	struct thrift_field f = {0};
	if (!thrift_is_struct(r, of))
		return;
	while (thrift_next(r, &f)) {
		if (f.id == id->n_values)
			h->n_values = thrift_integer(r, &f);
		else if (f.id == id->encoding)
			h->encoding = thrift_integer(r, &f);
		else if (f.id == id->definition_bytes)
			h->definition_bytes = thrift_integer(r, &f);
		else if (f.id == id->repetition_bytes)
			h->repetition_bytes = thrift_integer(r, &f);
		else if (f.id == id->is_compressed)
			h->is_plain = !thrift_boolean(r, &f);
		else
			thrift_skip(r, &f);
	}
}

static void read_fields(struct rv_reader *r, struct header *h) {
	static const struct numbering data = {1, 2, -1, -1, -1}, data2 = {1, 4, 5, 6, 7};
	struct thrift_field f = {0};
	while (thrift_next(r, &f)) {
		if (f.id == 1)
			h->type = thrift_integer(r, &f);
		else if (f.id == 2)
			h->unpacked_bytes = thrift_integer(r, &f);
		else if (f.id == 3)
			h->packed_bytes = thrift_integer(r, &f);
		else if (f.id == 5 || f.id == 7)
			read_kind(r, &f, &data, h);
		else if (f.id == 8)
			read_kind(r, &f, &data2, h);
		else
			thrift_skip(r, &f);
	}
}

/* Reads the header; its length is not known beforehand, so a long one is read a second time. */
static enum rv_err read_header(const struct mapped_file *file, uint64_t at, uint64_t end, struct page_buffer *buffer,
							   struct header *h, struct rv_errtext *et) {
	uint64_t left = end - at;
	for (size_t n = HEADER_USUAL_BYTES; n <= HEADER_MAX_BYTES; n *= HEADER_MAX_BYTES / HEADER_USUAL_BYTES) {
		size_t there = left < n ? (size_t)left : n;
		RV_TRY(reserve(buffer, there, et));
		RV_TRY(mapped_file_read(file, at, there, buffer->at, et));
		struct rv_reader r = rv_reader_of(buffer->at, there);
		*h = (struct header){0};
		read_fields(&r, h);
		if (rv_reader_ok(&r)) {
			h->bytes = (size_t)(r.at - buffer->at);
			return RV_OK;
		}
	}
	return invalid(file, "has a malformed header", at, et);
}

static enum rv_err check_header(const struct mapped_file *file, uint64_t at, uint64_t end, const struct header *h,
								struct rv_errtext *et) {
	if (h->packed_bytes < 0 || h->packed_bytes > INT32_MAX || (uint64_t)h->packed_bytes > end - at - h->bytes)
		return invalid(file, "is longer than its column", at, et);
	if (h->unpacked_bytes < 0 || h->unpacked_bytes > PARQUET_MAX_PAGE_BYTES)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "%.200s: the Parquet page at byte %llu has %lld bytes; at most %d are read: write the file with "
					   "smaller pages or row groups",
					   file->path, (unsigned long long)at, (long long)h->unpacked_bytes, PARQUET_MAX_PAGE_BYTES);
	bool is_of_levels = h->definition_bytes >= 0 && h->repetition_bytes == 0 &&
						h->definition_bytes <= h->packed_bytes && h->definition_bytes <= h->unpacked_bytes;
	return h->n_values >= 0 && h->n_values <= UINT32_MAX && is_of_levels
			   ? RV_OK
			   : invalid(file, "counts levels or values that it cannot have", at, et);
}

/* ---- the page ---- */

/* The levels of DATA_2 come first and are never compressed. */
static enum rv_err unpack_page(const struct mapped_file *file, uint8_t codec, uint64_t at, const struct header *h,
							   struct page_buffer *buffer, struct rv_errtext *et) {
	size_t packed = (size_t)h->packed_bytes, unpacked = (size_t)h->unpacked_bytes, apart = (size_t)h->definition_bytes;
	bool is_plain = h->type == PARQUET_PAGE_DATA_2 && h->is_plain;
	RV_TRY(reserve(buffer, packed + unpacked + 1, et));
	uint8_t *in = buffer->at + unpacked;
	RV_TRY(mapped_file_read(file, at + h->bytes, packed, in, et));
	memcpy(buffer->at, in, apart);
	if (!unpack(is_plain ? PARQUET_PLAIN : codec, in + apart, packed - apart, buffer->at + apart, unpacked - apart))
		return invalid(file, "cannot be unpacked: it is damaged", at, et);
	return RV_OK;
}

enum rv_err parquet_page_read(const struct mapped_file *file, uint8_t codec, uint64_t *at, uint64_t end,
							  struct page_buffer *buffer, struct parquet_page *out, struct rv_errtext *et) {
	struct header h;
	RV_TRY(read_header(file, *at, end, buffer, &h, et));
	RV_TRY(check_header(file, *at, end, &h, et));
	*out = (struct parquet_page){.type = h.type, .encoding = h.encoding, .n_values = (uint32_t)h.n_values};
	if (h.type != PARQUET_PAGE_INDEX)
		RV_TRY(unpack_page(file, codec, *at, &h, buffer, et));
	*at += h.bytes + (uint64_t)h.packed_bytes;
	size_t apart = (size_t)h.definition_bytes;
	out->has_levels_apart = h.type == PARQUET_PAGE_DATA_2;
	out->levels = rv_reader_of(buffer->at, apart);
	out->values = rv_reader_of(buffer->at + apart, (size_t)h.unpacked_bytes - apart);
	return RV_OK;
}
