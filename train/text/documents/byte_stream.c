/* byte_stream.c: see byte_stream.h. */
#include "train/text/documents/byte_stream.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { IN_BYTES = 1 << 17, MAGIC_BYTES = 4, ZSTD_MAX_WINDOW_LOG = 27 /* that of zstd --long: 128 MiB */ };

struct byte_stream {
	const struct mapped_file *file;
	enum packing packing;
	size_t at;         /* of the file: the next byte for `in` */
	size_t from, n_in; /* of `in`: the next byte, and the end */
	bool within;       /* a member or frame has begun and not ended */
	z_stream gzip;
	ZSTD_DCtx *zstd;
	uint8_t in[IN_BYTES];
};

enum rv_err packing_of(const struct mapped_file *file, enum packing *out, struct rv_errtext *et) {
	uint8_t magic[MAGIC_BYTES] = {0};
	size_t n = file->bytes < sizeof magic ? file->bytes : sizeof magic;
	RV_TRY(mapped_file_read(file, 0, n, magic, et));
	*out = memcmp(magic, "\x1f\x8b\x08", 3) == 0       ? PACKING_GZIP
		   : memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0 ? PACKING_ZSTD
													   : PACKING_NONE;
	return RV_OK;
}

static bool begin(struct byte_stream *s) {
	if (s->packing == PACKING_GZIP)
		return inflateInit2(&s->gzip, MAX_WBITS + 16) == Z_OK; /* gzip alone: zlib.h, inflateInit2 */
	if (s->packing == PACKING_NONE)
		return true;
	s->zstd = ZSTD_createDCtx();
	return s->zstd != NULL && !ZSTD_isError(ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, ZSTD_MAX_WINDOW_LOG));
}

enum rv_err byte_stream_open(const struct mapped_file *file, enum packing packing, struct byte_stream **out,
							 struct rv_errtext *et) {
	struct byte_stream *s = calloc(1, sizeof *s);
	if (s == NULL)
		return rv_fail(et, RV_E_NOMEM, "%.200s: no memory to read it", file->path);
	s->file = file;
	s->packing = packing;
	if (!begin(s)) {
		byte_stream_close(s);
		return rv_fail(et, RV_E_NOMEM, "%.200s: no memory to unpack it", file->path);
	}
	*out = s;
	return RV_OK;
}

void byte_stream_close(struct byte_stream *s) {
	if (s == NULL)
		return;
	if (s->packing == PACKING_GZIP)
		(void)inflateEnd(&s->gzip);
	ZSTD_freeDCtx(s->zstd);
	free(s);
}

static enum rv_err fill(struct byte_stream *s, struct rv_errtext *et) {
	size_t left = s->file->bytes - s->at, n = left < IN_BYTES ? left : IN_BYTES;
	RV_TRY(mapped_file_read(s->file, s->at, n, s->in, et));
	s->at += n;
	s->from = 0;
	s->n_in = n;
	return RV_OK;
}

static enum rv_err damaged(const struct byte_stream *s, const char *what, struct rv_errtext *et) {
	return rv_fail(et, RV_E_CORRUPT, "%.200s: cannot be unpacked before byte %zu: %s", s->file->path, s->at, what);
}

/* Unpacks as much as `in` and `out` allow. */
static enum rv_err inflate_some(struct byte_stream *s, uint8_t *out, size_t cap, size_t *n, struct rv_errtext *et) {
	uInt room = cap < UINT32_MAX ? (uInt)cap : UINT32_MAX, there = (uInt)(s->n_in - s->from);
	s->gzip.next_in = s->in + s->from;
	s->gzip.avail_in = there;
	s->gzip.next_out = out;
	s->gzip.avail_out = room;
	s->within |= there > 0;
	int status = inflate(&s->gzip, Z_NO_FLUSH);
	s->from += there - s->gzip.avail_in;
	*n = room - s->gzip.avail_out;
	if (status == Z_STREAM_END) {
		s->within = false;
		(void)inflateReset(&s->gzip);
		return RV_OK;
	}
	return status == Z_OK || status == Z_BUF_ERROR ? RV_OK
												   : damaged(s, s->gzip.msg != NULL ? s->gzip.msg : "no gzip data", et);
}

static enum rv_err zstd_some(struct byte_stream *s, uint8_t *out, size_t cap, size_t *n, struct rv_errtext *et) {
	ZSTD_inBuffer in = {.src = s->in, .size = s->n_in, .pos = s->from};
	ZSTD_outBuffer to = {.dst = out, .size = cap};
	s->within |= in.pos < in.size;
	size_t left = ZSTD_decompressStream(s->zstd, &to, &in);
	s->from = in.pos;
	*n = to.pos;
	if (ZSTD_isError(left))
		return damaged(s, ZSTD_getErrorName(left), et);
	s->within = left != 0;
	return RV_OK;
}

static enum rv_err copy_some(struct byte_stream *s, uint8_t *out, size_t cap, size_t *n) {
	*n = s->n_in - s->from < cap ? s->n_in - s->from : cap;
	memcpy(out, s->in + s->from, *n);
	s->from += *n;
	return RV_OK;
}

static enum rv_err unpack_some(struct byte_stream *s, uint8_t *out, size_t cap, size_t *n, struct rv_errtext *et) {
	if (s->packing == PACKING_GZIP)
		return inflate_some(s, out, cap, n, et);
	return s->packing == PACKING_ZSTD ? zstd_some(s, out, cap, n, et) : copy_some(s, out, cap, n);
}

/* What is unpacked may still be held by the library when its input is used up. */
enum rv_err byte_stream_read(struct byte_stream *s, uint8_t *out, size_t cap, size_t *n, struct rv_errtext *et) {
	RV_ASSERT(cap > 0);
	for (*n = 0; *n == 0;) {
		bool is_dry = s->from == s->n_in;
		if (is_dry && s->at < s->file->bytes)
			RV_TRY(fill(s, et));
		else if (is_dry && !s->within)
			return RV_OK;
		RV_TRY(unpack_some(s, out, cap, n, et));
		if (*n == 0 && is_dry && s->from == s->n_in && s->at == s->file->bytes && s->within)
			return damaged(s, "it ends too early", et);
	}
	return RV_OK;
}

uint64_t byte_stream_bytes_done(const struct byte_stream *s) {
	return s->at - (s->n_in - s->from);
}
