/* state_pieces.c: where the pieces lie, and what they must hash to. */
#include "worker/state_pieces.h"

#include "base/assert.h"

#include <inttypes.h>

enum { LOG_PIECE_BYTES = 1 << 18 };

/* ---- shapes ---------------------------------------------------------------------------------------------------------
 */

static size_t vector_bytes(const struct global_config *c) {
	return c->n * sizeof(float);
}

static uint32_t chunks_per_piece(const struct global_config *c) {
	size_t chunk_bytes = c->codec->encoded_bytes(chunking_len(&c->chunks, 0));
	return chunk_bytes < LOG_PIECE_BYTES ? (uint32_t)(LOG_PIECE_BYTES / chunk_bytes) : 1;
}

size_t state_payload_bytes(const struct global_config *c, enum state_kind kind) {
	if (kind == STATE_KIND_LOG)
		return chunking_total_bytes(&c->chunks, c->codec);
	return vector_bytes(c) * (size_t)(1 + c->optimizer->n_states);
}

uint32_t state_pieces(const struct global_config *c, enum state_kind kind) {
	if (kind == STATE_KIND_BASE)
		return global_pieces(c);
	uint32_t per_piece = chunks_per_piece(c);
	return (c->chunks.n_chunks + per_piece - 1) / per_piece;
}

/* The chunks [*first, returned) of log piece i. */
static uint32_t chunks_of(const struct global_config *c, uint32_t i, uint32_t *first) {
	uint32_t per_piece = chunks_per_piece(c);
	*first = i * per_piece;
	return c->chunks.n_chunks - *first < per_piece ? c->chunks.n_chunks : *first + per_piece;
}

static size_t chunk_at(const struct global_config *c, uint32_t chunk) {
	return chunk == c->chunks.n_chunks ? state_payload_bytes(c, STATE_KIND_LOG)
									   : chunking_offset_bytes(&c->chunks, c->codec, chunk);
}

static size_t base_piece_at(const struct global_config *c, uint32_t i, size_t *bytes) {
	uint32_t per_vector = global_pieces_per_vector(c);
	size_t elems_before = (size_t)(i % per_vector) * GLOBAL_PIECE_ELEMS, left = c->n - elems_before;
	*bytes = (left < GLOBAL_PIECE_ELEMS ? left : GLOBAL_PIECE_ELEMS) * sizeof(float);
	return (i / per_vector) * vector_bytes(c) + elems_before * sizeof(float);
}

size_t state_piece_at(const struct global_config *c, enum state_kind kind, uint32_t i, size_t *bytes) {
	RV_ASSERT(i < state_pieces(c, kind));
	if (kind == STATE_KIND_BASE)
		return base_piece_at(c, i, bytes);
	uint32_t first, end = chunks_of(c, i, &first);
	size_t at = chunk_at(c, first);
	*bytes = chunk_at(c, end) - at;
	return at;
}

/* ---- hashes ---------------------------------------------------------------------------------------------------------
 */

uint32_t state_manifest_hashes(const struct global_config *c, enum state_kind kind) {
	return kind == STATE_KIND_BASE ? global_pieces(c) : c->chunks.n_chunks;
}

static struct rv_hash chunk_hash(const struct global_config *c, const uint8_t *payload, uint32_t chunk) {
	return rv_hash_of(payload + chunk_at(c, chunk), chunk_at(c, chunk + 1) - chunk_at(c, chunk));
}

void state_manifest_of(const struct global_config *c, enum state_kind kind, const void *payload, struct rv_hash *out) {
	const uint8_t *bytes = payload;
	for (uint32_t i = 0; i < state_manifest_hashes(c, kind); i++) {
		size_t n, at = kind == STATE_KIND_BASE ? base_piece_at(c, i, &n) : 0;
		out[i] = kind == STATE_KIND_BASE ? rv_hash_of(bytes + at, n) : chunk_hash(c, bytes, i);
	}
}

enum rv_err state_manifest_check(const struct global_config *c, const struct state_id *id,
								 const struct rv_hash *manifest, struct rv_errtext *et) {
	struct rv_hash made = id->kind == STATE_KIND_BASE ? global_full_hash_of(c, id->round, &id->chain, manifest)
													  : global_digest_of(c, id->round, manifest);
	if (rv_hash_equal(&made, &id->expect))
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "the piece hashes of the %s of round %" PRIu64 " do not make its %s",
				   id->kind == STATE_KIND_BASE ? "state" : "log", id->round,
				   id->kind == STATE_KIND_BASE ? "full hash" : "digest");
}

static bool log_piece_matches(const struct global_config *c, const struct rv_hash *manifest, uint32_t i,
							  const uint8_t *piece) {
	uint32_t first, end = chunks_of(c, i, &first);
	for (uint32_t k = first; k < end; k++) {
		struct rv_hash hash =
			rv_hash_of(piece + chunk_at(c, k) - chunk_at(c, first), chunk_at(c, k + 1) - chunk_at(c, k));
		if (!rv_hash_equal(&hash, &manifest[k]))
			return false;
	}
	return true;
}

enum rv_err state_piece_check(const struct global_config *c, enum state_kind kind, const struct rv_hash *manifest,
							  uint32_t i, const void *piece, size_t bytes, struct rv_errtext *et) {
	size_t want;
	(void)state_piece_at(c, kind, i, &want);
	RV_ASSERT(bytes == want);
	struct rv_hash hash;
	bool ok = kind == STATE_KIND_LOG ? log_piece_matches(c, manifest, i, piece)
									 : (hash = rv_hash_of(piece, bytes), rv_hash_equal(&hash, &manifest[i]));
	return ok ? RV_OK : rv_fail(et, RV_E_CORRUPT, "piece %u of %u does not match its hash", i, state_pieces(c, kind));
}
