/* state_pieces.h: the shared state of a round, and the reduced bytes of a round, as numbered pieces that can each be
 * checked alone: what a joiner fetches from several peers at once. Pure: no I/O, no allocation.
 *
 * A *manifest* is the list of hashes that the committed hash is made of: of a snapshot, the piece hashes of
 * global_full_hash_of(); of a log entry, the chunk hashes of global_digest_of(). It is checked against the hash in the
 * signed document; then every piece is checked against the manifest, whoever sent it. So a bad donor is known by its
 * first bad piece, and what others gave stays good.
 *
 *     snapshot piece   GLOBAL_PIECE_ELEMS floats of theta or of an outer state: at most 256 KiB
 *     log piece    whole chunks of what the round exchanged, encoded: as many as fit 256 KiB (at least one)
 *
 * Every count and size follows from the run's configuration and the round, which says what fragment a log entry holds
 * (outer/fragments.h): a donor cannot choose any. All snapshots are alike: of them the round does not matter.
 */
#ifndef RV_WORKER_STATE_STATE_PIECES_H
#define RV_WORKER_STATE_STATE_PIECES_H

#include "outer/global.h"

enum state_kind { STATE_KIND_SNAPSHOT = 1, STATE_KIND_LOG };

enum { STATE_PIECE_MAX_BYTES = 1 << 19 }; /* one chunk may be larger than 256 KiB: NET_MAX_CHUNK_BYTES */

/* What is fetched: the state of `round` (SNAPSHOT), or the reduced bytes of it (LOG). */
struct state_id {
	enum state_kind kind;
	uint64_t round;
	struct rv_hash expect; /* SNAPSHOT: full hash; LOG: digest */
	struct rv_hash chain;  /* SNAPSHOT: state_hash(round), from the same document */
};

size_t state_payload_bytes(const struct global_config *c, enum state_kind kind, uint64_t round);
uint32_t state_pieces(const struct global_config *c, enum state_kind kind, uint64_t round);
/* Where piece i lies in the payload, and its bytes there. */
size_t state_piece_at(const struct global_config *c, enum state_kind kind, uint64_t round, uint32_t i, size_t *bytes);

/* Hashes in the manifest; its bytes are RV_HASH_BYTES each, in order. */
uint32_t state_manifest_hashes(const struct global_config *c, enum state_kind kind, uint64_t round);
void state_manifest_of(const struct global_config *c, enum state_kind kind, uint64_t round, const void *payload,
					   struct rv_hash *out);
/* RV_E_CORRUPT: these are not the hashes that id->expect is made of. */
enum rv_err state_manifest_check(const struct global_config *c, const struct state_id *id,
								 const struct rv_hash *manifest, struct rv_errtext *et);
/* Piece i of what `id` names (kind, round). RV_E_CORRUPT names the piece. `bytes` is what state_piece_at() says. */
enum rv_err state_piece_check(const struct global_config *c, const struct state_id *id, const struct rv_hash *manifest,
							  uint32_t i, const void *piece, size_t bytes, struct rv_errtext *et);

/* What memory for any snapshot and any log entry must hold. */
uint32_t state_max_pieces(const struct global_config *c);
uint32_t state_max_manifest_hashes(const struct global_config *c);
size_t state_max_piece_bytes(const struct global_config *c);
/* As many log entries, at least one, are as many bytes as a snapshot. */
uint32_t state_logs_per_snapshot(const struct global_config *c);

#endif
