/* state_pieces.h: the shared state of a round, and the reduced bytes of a round, as numbered pieces
 * that can each be checked alone, so that a joiner fetches them from several peers at once. Pure:
 * no I/O, no allocation.
 *
 * A *manifest* is the list of hashes that the committed hash is made of: of a snapshot, the piece
 * hashes of global_full_hash_of(); of a log entry, the leaves of global_digest_of(). It is
 * checked against the hash in the signed document; then every piece is checked against the
 * manifest. So a bad donor is known by its first bad piece, and the pieces of others stay valid.
 *
 *     snapshot piece   GLOBAL_PIECE_ELEMS floats of theta or of an outer state: at most 256 KiB
 *     log piece    whole chunks of what the round exchanged, encoded: as many as fit 256 KiB (at
 *                  least one)
 *
 * Every count and size follows from the run's configuration and the round, which determines the
 * fragment that a log entry holds (outer/fragments.h): a donor cannot choose any. The sizes of a
 * snapshot do not depend on its round. */
#ifndef RV_WORKER_STATE_STATE_PIECES_H
#define RV_WORKER_STATE_STATE_PIECES_H

#include "outer/global.h"

enum state_kind { STATE_KIND_SNAPSHOT = 1, STATE_KIND_LOG };

enum { STATE_PIECE_MAX_BYTES = 1 << 19 }; /* one chunk may be larger than 256 KiB: NET_MAX_CHUNK_BYTES */

/* Names what is fetched: the state of `round` (SNAPSHOT), or its reduced bytes (LOG). */
struct state_id {
	enum state_kind kind;
	uint64_t round;
	struct rv_hash expect; /* SNAPSHOT: full hash; LOG: digest */
	struct rv_hash chain;  /* SNAPSHOT: state_hash(round), from the same document */
};

bool state_id_equal(const struct state_id *a, const struct state_id *b);
/* Returns true if one of ids[0..n) is `id`. */
bool state_id_is_in(const struct state_id *ids, int n, const struct state_id *id);

size_t state_payload_bytes(const struct global_config *c, enum state_kind kind, uint64_t round);
uint32_t state_pieces(const struct global_config *c, enum state_kind kind, uint64_t round);
/* Returns the offset of piece i in the payload; *bytes: its length. */
size_t state_piece_at(const struct global_config *c, enum state_kind kind, uint64_t round, uint32_t i, size_t *bytes);

/* Returns the log piece that holds a chunk of `round`; *at: where in it the chunk begins. */
uint32_t state_piece_of_chunk(const struct global_config *c, uint64_t round, uint32_t chunk, size_t *at);

/* Returns the number of hashes in the manifest, RV_HASH_BYTES each, in order. */
uint32_t state_manifest_hashes(const struct global_config *c, enum state_kind kind, uint64_t round);
void state_manifest_of(const struct global_config *c, enum state_kind kind, uint64_t round, const void *payload,
					   struct rv_hash *out);
/* Checks that id->expect is made of these hashes, else RV_E_CORRUPT. */
enum rv_err state_manifest_check(const struct global_config *c, const struct state_id *id,
								 const struct rv_hash *manifest, struct rv_errtext *et);
/* Checks piece i of what `id` names (kind, round); `bytes` as from state_piece_at(). RV_E_CORRUPT
 * names the piece. */
enum rv_err state_piece_check(const struct global_config *c, const struct state_id *id, const struct rv_hash *manifest,
							  uint32_t i, const void *piece, size_t bytes, struct rv_errtext *et);

/* Return the maxima over any snapshot and any log entry. */
uint32_t state_max_pieces(const struct global_config *c);
uint32_t state_max_manifest_hashes(const struct global_config *c);
size_t state_max_piece_bytes(const struct global_config *c);
/* Returns how many log entries are as many bytes as a snapshot, at least 1. */
uint32_t state_logs_per_snapshot(const struct global_config *c);

#endif
