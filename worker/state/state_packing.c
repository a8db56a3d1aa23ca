/* state_packing.c: see state_packing.h. */
#include "worker/state/state_packing.h"

#include "base/assert.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Reduced int8 gradients gain from entropy coding only; higher levels search for repetitions that
 * are not there. */
enum { LEVEL = 1 };

struct state_packer {
	ZSTD_CCtx *pack;
	ZSTD_DCtx *unpack;
};

enum rv_err state_stored_check(uint32_t encoding, uint32_t bytes, size_t piece_bytes, struct rv_errtext *et) {
	if (encoding != STATE_RAW && encoding != STATE_ZSTD)
		return rv_fail(et, RV_E_CORRUPT, "a piece is stored in encoding %u, which there is not", encoding);
	bool fits = encoding == STATE_RAW ? bytes == piece_bytes : bytes > 0 && bytes < piece_bytes;
	if (fits)
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "a piece of %zu bytes cannot be stored in %u (%s)", piece_bytes, bytes,
				   encoding == STATE_RAW ? "raw" : "zstd");
}

struct state_packer *state_packer_new(void) {
	struct state_packer *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->pack = ZSTD_createCCtx();
	p->unpack = ZSTD_createDCtx();
	if (!p->pack || !p->unpack) {
		state_packer_free(p);
		return NULL;
	}
	return p;
}

void state_packer_free(struct state_packer *p) {
	if (!p)
		return;
	ZSTD_freeCCtx(p->pack);
	ZSTD_freeDCtx(p->unpack);
	free(p);
}

struct state_stored state_pack(struct state_packer *p, const void *piece, size_t bytes, void *out) {
	RV_ASSERT(bytes > 0 && bytes <= UINT32_MAX);
	size_t n = ZSTD_compressCCtx(p->pack, out, bytes - 1, piece, bytes, LEVEL);
	if (ZSTD_isError(n)) /* it does not fit: there is nothing to gain */
		return (struct state_stored){STATE_RAW, (uint32_t)bytes};
	return (struct state_stored){STATE_ZSTD, (uint32_t)n};
}

/* Exactly one frame, whose header states that it holds `bytes`. */
static enum rv_err check_frame(const void *stored, size_t n, size_t bytes, struct rv_errtext *et) {
	unsigned long long claimed = ZSTD_getFrameContentSize(stored, n);
	if (claimed == ZSTD_CONTENTSIZE_ERROR || claimed == ZSTD_CONTENTSIZE_UNKNOWN)
		return rv_fail(et, RV_E_CORRUPT, "a compressed piece is no zstd frame that states its size");
	if (claimed != bytes)
		return rv_fail(et, RV_E_CORRUPT, "a compressed piece claims %llu bytes, must be %zu", claimed, bytes);
	size_t frame = ZSTD_findFrameCompressedSize(stored, n);
	if (ZSTD_isError(frame) || frame != n)
		return rv_fail(et, RV_E_CORRUPT, "a compressed piece of %zu bytes is not one whole zstd frame", n);
	return RV_OK;
}

enum rv_err state_unpack(struct state_packer *p, const struct state_stored *what, const void *stored, void *piece,
						 size_t bytes, struct rv_errtext *et) {
	RV_TRY(state_stored_check(what->encoding, what->bytes, bytes, et));
	if (what->encoding == STATE_RAW) {
		memcpy(piece, stored, bytes);
		return RV_OK;
	}
	RV_TRY(check_frame(stored, what->bytes, bytes, et));
	size_t n = ZSTD_decompressDCtx(p->unpack, piece, bytes, stored, what->bytes);
	if (ZSTD_isError(n))
		return rv_fail(et, ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation ? RV_E_NOMEM : RV_E_CORRUPT,
					   "a compressed piece cannot be decompressed: %s", ZSTD_getErrorName(n));
	return n == bytes ? RV_OK : rv_fail(et, RV_E_CORRUPT, "a compressed piece holds %zu bytes, must be %zu", n, bytes);
}
