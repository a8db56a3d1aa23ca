/* unpack.c: see unpack.h. */
#include "train/text/documents/unpack.h"

#include "base/assert.h"
#include "train/text/documents/parquet_footer.h"

#include <lz4.h>
#include <snappy-c.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

static bool unpack_plain(const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out) {
	if (n_in != n_out)
		return false;
	memcpy(out, in, n_out);
	return true;
}

static bool unpack_snappy(const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out) {
	size_t n;
	if (snappy_uncompressed_length((const char *)in, n_in, &n) != SNAPPY_OK || n != n_out)
		return false;
	return snappy_uncompress((const char *)in, n_in, (char *)out, &n) == SNAPPY_OK && n == n_out;
}

/* Adds 32 to the window's bits: gzip or zlib, by the header (zlib.h, inflateInit2). */
static bool unpack_gzip(const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out) {
	z_stream z = {.next_in = (Bytef *)(uintptr_t)in, /* zlib does not write there */
				  .avail_in = (uInt)n_in,
				  .next_out = out,
				  .avail_out = (uInt)n_out};
	if (inflateInit2(&z, MAX_WBITS + 32) != Z_OK)
		return false;
	int status = inflate(&z, Z_FINISH);
	bool ok = status == Z_STREAM_END && z.total_out == n_out;
	(void)inflateEnd(&z);
	return ok;
}

bool unpack(uint8_t codec, const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out) {
	RV_ASSERT(n_in <= INT32_MAX && n_out <= INT32_MAX);
	if (n_out == 0)
		return true;
	switch (codec) {
	case PARQUET_PLAIN:
		return unpack_plain(in, n_in, out, n_out);
	case PARQUET_SNAPPY:
		return unpack_snappy(in, n_in, out, n_out);
	case PARQUET_GZIP:
		return unpack_gzip(in, n_in, out, n_out);
	case PARQUET_ZSTD:
		return ZSTD_decompress(out, n_out, in, n_in) == n_out;
	case PARQUET_LZ4:
		return LZ4_decompress_safe((const char *)in, (char *)out, (int)n_in, (int)n_out) == (int)n_out;
	default:
		RV_UNREACHABLE("codec of a Parquet column");
	}
}
