/* state_pieces.c: where the pieces lie, and what they must hash to. */
#include "worker/state/state_pieces.h"

#include "base/assert.h"
#include "base/merkle.h"

#include <inttypes.h>

enum { LOG_PIECE_BYTES = 1 << 18 };

bool state_id_equal(const struct state_id *a, const struct state_id *b) {
	return a->kind == b->kind && a->round == b->round && rv_hash_equal(&a->expect, &b->expect) &&
		   rv_hash_equal(&a->chain, &b->chain);
}

bool state_id_is_in(const struct state_id *ids, int n, const struct state_id *id) {
	for (int i = 0; i < n; i++)
		if (state_id_equal(&ids[i], id))
			return true;
	return false;
}

/* ---- shapes ---- */

static size_t vector_bytes(const struct global_config *c) {
	return c->n * sizeof(float);
}

static uint32_t chunks_per_piece(const struct global_config *c) {
	size_t chunk_bytes = c->codec->encoded_bytes(c->codec, chunking_len(&c->chunks, 0));
	return chunk_bytes < LOG_PIECE_BYTES ? (uint32_t)(LOG_PIECE_BYTES / chunk_bytes) : 1;
}

size_t state_payload_bytes(const struct global_config *c, enum state_kind kind, uint64_t round) {
	const struct chunking exchanged = global_round_chunks(c, round);
	if (kind == STATE_KIND_LOG)
		return chunking_total_bytes(&exchanged, c->codec);
	return vector_bytes(c) * (size_t)(1 + global_states(c));
}

uint32_t state_pieces(const struct global_config *c, enum state_kind kind, uint64_t round) {
	if (kind == STATE_KIND_SNAPSHOT)
		return global_pieces(c);
	uint32_t per_piece = chunks_per_piece(c);
	return (global_round_chunks(c, round).n_chunks + per_piece - 1) / per_piece;
}

/* The chunks [*first, returned) of log piece i. */
static uint32_t chunks_of(const struct global_config *c, const struct chunking *exchanged, uint32_t i,
						  uint32_t *first) {
	uint32_t per_piece = chunks_per_piece(c);
	*first = i * per_piece;
	return exchanged->n_chunks - *first < per_piece ? exchanged->n_chunks : *first + per_piece;
}

/* Where a chunk lies in the encoded vector; behind the last one: its end. */
static size_t chunk_at(const struct global_config *c, const struct chunking *exchanged, uint32_t chunk) {
	return chunk == exchanged->n_chunks ? chunking_total_bytes(exchanged, c->codec)
										: chunking_offset_bytes(exchanged, c->codec, chunk);
}

static size_t snapshot_piece_at(const struct global_config *c, uint32_t i, size_t *bytes) {
	uint32_t per_vector = global_pieces_per_vector(c);
	size_t elems_before = (size_t)(i % per_vector) * GLOBAL_PIECE_ELEMS, left = c->n - elems_before;
	*bytes = (left < GLOBAL_PIECE_ELEMS ? left : GLOBAL_PIECE_ELEMS) * sizeof(float);
	return (i / per_vector) * vector_bytes(c) + elems_before * sizeof(float);
}

size_t state_piece_at(const struct global_config *c, enum state_kind kind, uint64_t round, uint32_t i, size_t *bytes) {
	RV_ASSERT(i < state_pieces(c, kind, round));
	if (kind == STATE_KIND_SNAPSHOT)
		return snapshot_piece_at(c, i, bytes);
	const struct chunking exchanged = global_round_chunks(c, round);
	uint32_t first, end = chunks_of(c, &exchanged, i, &first);
	size_t at = chunk_at(c, &exchanged, first);
	*bytes = chunk_at(c, &exchanged, end) - at;
	return at;
}

uint32_t state_piece_of_chunk(const struct global_config *c, uint64_t round, uint32_t chunk, size_t *at) {
	const struct chunking exchanged = global_round_chunks(c, round);
	const uint32_t piece = chunk / chunks_per_piece(c);
	uint32_t first;
	RV_ASSERT(chunk < exchanged.n_chunks);
	(void)chunks_of(c, &exchanged, piece, &first);
	*at = chunk_at(c, &exchanged, chunk) - chunk_at(c, &exchanged, first);
	return piece;
}

/* ---- hashes ---- */

uint32_t state_manifest_hashes(const struct global_config *c, enum state_kind kind, uint64_t round) {
	return kind == STATE_KIND_SNAPSHOT ? global_pieces(c) : global_round_chunks(c, round).n_chunks;
}

/* `from` is where chunk `first` begins. */
static struct rv_hash chunk_hash(const struct global_config *c, const struct chunking *exchanged, const uint8_t *from,
								 uint32_t first, uint32_t chunk) {
	size_t at = chunk_at(c, exchanged, chunk), end = chunk_at(c, exchanged, chunk + 1);
	return merkle_leaf(chunk, from + (at - chunk_at(c, exchanged, first)), end - at);
}

void state_manifest_of(const struct global_config *c, enum state_kind kind, uint64_t round, const void *payload,
					   struct rv_hash *out) {
	const uint8_t *bytes = payload;
	const struct chunking exchanged = global_round_chunks(c, round);
	for (uint32_t i = 0; i < state_manifest_hashes(c, kind, round); i++) {
		size_t n, at = kind == STATE_KIND_SNAPSHOT ? snapshot_piece_at(c, i, &n) : 0;
		out[i] = kind == STATE_KIND_SNAPSHOT ? rv_hash_of(bytes + at, n) : chunk_hash(c, &exchanged, bytes, 0, i);
	}
}

enum rv_err state_manifest_check(const struct global_config *c, const struct state_id *id,
								 const struct rv_hash *manifest, struct rv_errtext *et) {
	struct rv_hash made = id->kind == STATE_KIND_SNAPSHOT ? global_full_hash_of(c, id->round, &id->chain, manifest)
														  : global_digest_of(c, id->round, manifest);
	if (rv_hash_equal(&made, &id->expect))
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "the piece hashes of the %s of round %" PRIu64 " do not make its %s",
				   id->kind == STATE_KIND_SNAPSHOT ? "state" : "log", id->round,
				   id->kind == STATE_KIND_SNAPSHOT ? "full hash" : "digest");
}

static bool log_piece_matches(const struct global_config *c, uint64_t round, const struct rv_hash *manifest, uint32_t i,
							  const uint8_t *piece) {
	const struct chunking exchanged = global_round_chunks(c, round);
	uint32_t first, end = chunks_of(c, &exchanged, i, &first);
	for (uint32_t k = first; k < end; k++) {
		struct rv_hash hash = chunk_hash(c, &exchanged, piece, first, k);
		if (!rv_hash_equal(&hash, &manifest[k]))
			return false;
	}
	return true;
}

enum rv_err state_piece_check(const struct global_config *c, const struct state_id *id, const struct rv_hash *manifest,
							  uint32_t i, const void *piece, size_t bytes, struct rv_errtext *et) {
	size_t want;
	(void)state_piece_at(c, id->kind, id->round, i, &want);
	RV_ASSERT(bytes == want);
	struct rv_hash hash;
	bool ok = id->kind == STATE_KIND_LOG ? log_piece_matches(c, id->round, manifest, i, piece)
										 : (hash = rv_hash_of(piece, bytes), rv_hash_equal(&hash, &manifest[i]));
	return ok ? RV_OK
			  : rv_fail(et, RV_E_CORRUPT, "piece %u of %u does not match its hash", i,
						state_pieces(c, id->kind, id->round));
}

/* ---- the largest ---- */

static uint32_t larger(uint32_t a, uint32_t b) {
	return a > b ? a : b;
}

uint32_t state_max_pieces(const struct global_config *c) {
	uint32_t most = state_pieces(c, STATE_KIND_SNAPSHOT, 0);
	for (uint32_t fragment = 0; fragment < fragments_count(&c->fragments); fragment++)
		most = larger(most, state_pieces(c, STATE_KIND_LOG, fragment));
	return most;
}

uint32_t state_max_manifest_hashes(const struct global_config *c) {
	uint32_t most = state_manifest_hashes(c, STATE_KIND_SNAPSHOT, 0);
	for (uint32_t fragment = 0; fragment < fragments_count(&c->fragments); fragment++)
		most = larger(most, state_manifest_hashes(c, STATE_KIND_LOG, fragment));
	return most;
}

uint32_t state_logs_per_snapshot(const struct global_config *c) {
	size_t snapshot = state_payload_bytes(c, STATE_KIND_SNAPSHOT, 0), all = 0; /* of one log entry each */
	uint32_t fragments = fragments_count(&c->fragments);
	for (uint32_t fragment = 0; fragment < fragments; fragment++)
		all += state_payload_bytes(c, STATE_KIND_LOG, fragment);
	size_t ratio = snapshot * fragments / all;
	return ratio < 1 ? 1 : ratio > UINT32_MAX ? UINT32_MAX : (uint32_t)ratio;
}

/* The first piece of each is as large as any. */
size_t state_max_piece_bytes(const struct global_config *c) {
	size_t most, bytes;
	(void)state_piece_at(c, STATE_KIND_SNAPSHOT, 0, 0, &most);
	for (uint32_t fragment = 0; fragment < fragments_count(&c->fragments); fragment++) {
		(void)state_piece_at(c, STATE_KIND_LOG, fragment, 0, &bytes);
		most = bytes > most ? bytes : most;
	}
	return most;
}
