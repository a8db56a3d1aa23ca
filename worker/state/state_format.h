/* state_format.h: the bytes of the files snapshot-R.rvs, log-R.rvl, replica.rvp, means-S.rvm,
 * contribution-S.rvc and inner-S.rvi. No I/O.
 *
 *     snapshot     header (192) | manifest: a hash per piece | theta (n floats) | outer states (n
 *                  floats each)
 *     log      header (192) | index: 4 bytes per piece | manifest: a hash per chunk | pieces as
 *              they are stored
 *     replica  header (192) | replica_save() bytes
 *     means    header (192) | mean_residual_save() bytes
 *     contribution  header (192) | a leaf (base/merkle.h) for each chunk | the encoded contribution
 *     inner    header (192) | inner state (train/inner_state.h) | theta (n floats) | a leaf for each
 *              piece of both
 *
 * Little-endian. Pieces and manifests are those of state_pieces.h, stored pieces those of
 * state_packing.h. Every header ends with a hash of itself. The rest is covered too: the snapshot's
 * manifest makes the full hash, the log's makes the digest, the header holds the index's hash, and
 * the manifest those of the pieces. Decoding trusts nothing: every size and count follows from the
 * run's configuration and must match. */
#ifndef RV_WORKER_STATE_STATE_FORMAT_H
#define RV_WORKER_STATE_STATE_FORMAT_H

#include "outer/contribution.h"
#include "worker/state/state_packing.h"
#include "worker/state/state_pieces.h"

enum { STATE_VERSION = 1 /* of all six */, STATE_HEADER_BYTES = 192, STATE_INDEX_ENTRY_BYTES = 4 };

struct state_snapshot_info {
	uint64_t round;
	struct rv_hash chain, full_hash;
};

struct state_log_info {
	uint64_t round;
	uint32_t attempt; /* of the all-reduce whose result it is; 0: fetched, proved by a signed document */
	struct rv_hash digest;
	struct contribution_form form; /* attempt > 0: how this worker's contribution to it was sent */
};

struct state_replica_info {
	uint64_t round; /* the one it is training */
	struct rv_hash chain;
	uint64_t steps_done, tokens; /* of its contribution to `round` */
	uint64_t first, sequences;   /* the same: participant_progress (train/participant/progress.h) */
	/* Sums since the start of the run, for metrics. */
	uint64_t run_tokens, bytes_sent, formula_bytes;
	uint64_t payload_bytes; /* replica_save() bytes that follow */
};

/* Returns the bytes before the payload or the pieces: header, index, manifest. */
size_t state_prefix_bytes(const struct global_config *c, enum state_kind kind, uint64_t round);
size_t state_index_bytes(const struct global_config *c, enum state_kind kind, uint64_t round); /* 0 for a snapshot */
/* Returns the bytes of a snapshot, or of the largest possible log of that round: all pieces raw. */
size_t state_file_max_bytes(const struct global_config *c, enum state_kind kind, uint64_t round);

void state_snapshot_header(const struct global_config *c, const struct state_snapshot_info *info,
						   uint8_t out[STATE_HEADER_BYTES]);
/* Reads and checks a header, as do the other *_header_load. RV_E_CORRUPT, RV_E_UNSUPPORTED (of
 * another version). */
enum rv_err state_snapshot_header_load(const struct global_config *c, const uint8_t header[STATE_HEADER_BYTES],
									   struct state_snapshot_info *info, struct rv_errtext *et);

/* Writes a log's header. `index`: state_index_bytes() of the round, as in the file. */
void state_log_header(const struct global_config *c, const struct state_log_info *info, const uint8_t *index,
					  uint8_t out[STATE_HEADER_BYTES]);
enum rv_err state_log_header_load(const struct global_config *c, const uint8_t header[STATE_HEADER_BYTES],
								  struct state_log_info *info, struct rv_hash *index_hash, struct rv_errtext *et);
void state_index_write(const struct state_stored *pieces, uint32_t n, uint8_t *out);
/* Reads the index of the log of `round` into `pieces` (state_pieces() of them) and checks each.
 * *stored_bytes: their sum. RV_E_CORRUPT. */
enum rv_err state_index_load(const struct global_config *c, uint64_t round, const struct rv_hash *index_hash,
							 const uint8_t *index, struct state_stored *pieces, uint64_t *stored_bytes,
							 struct rv_errtext *et);

void state_replica_header(const struct global_config *c, const struct state_replica_info *info,
						  uint8_t out[STATE_HEADER_BYTES]);
/* Reads the header alone. RV_E_CORRUPT, RV_E_UNSUPPORTED. */
enum rv_err state_replica_header_load(const struct global_config *c, const uint8_t header[STATE_HEADER_BYTES],
									  struct state_replica_info *info, struct rv_errtext *et);
/* Writes the header of a file of what encoding the means of `round` left, whose payload (n bytes)
 * it hashes. */
void state_means_header(const struct global_config *c, uint64_t round, const uint8_t *payload, size_t n,
						uint8_t out[STATE_HEADER_BYTES]);
/* Reads and checks such a file; *payload (*payload_bytes) borrows from it, and mean_residual_load()
 * checks it. RV_E_CORRUPT, RV_E_UNSUPPORTED. */
enum rv_err state_means_load(const struct global_config *c, const uint8_t *file, size_t n, uint64_t *round,
							 const uint8_t **payload, size_t *payload_bytes, struct rv_errtext *et);

/* Writes the header of a contribution to `round`, encoded by global_sent_as(codec), by its n
 * leaves, which it hashes. */
void state_contribution_header(const struct global_config *c, uint64_t round, uint8_t codec,
							   const struct rv_hash *leaves, uint32_t n, uint8_t out[STATE_HEADER_BYTES]);
enum rv_err state_contribution_header_load(const struct global_config *c, const uint8_t header[STATE_HEADER_BYTES],
										   uint64_t *round, uint8_t *codec, struct rv_hash *leaves_hash,
										   struct rv_errtext *et);

/* Writes the header of the inner state after the steps of `round`, by its n leaves, which it
 * hashes. */
void state_inner_header(const struct global_config *c, uint64_t round, const struct rv_hash *leaves, uint32_t n,
						uint8_t out[STATE_HEADER_BYTES]);
/* `n`: leaves that it must have. */
enum rv_err state_inner_header_load(const struct global_config *c, const uint8_t header[STATE_HEADER_BYTES], uint32_t n,
									uint64_t *round, struct rv_hash *leaves_hash, struct rv_errtext *et);

#endif
