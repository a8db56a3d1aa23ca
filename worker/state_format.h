/* state_format.h: the bytes of the files base-R.rvs, log-R.rvl and replica.rvp: headers and their checks. No I/O.
 *
 *     base     header (128) | theta (n floats) | outer states (n floats each)
 *     log      header (160) | reduced encoded chunks of round R
 *     replica  header (192) | replica_save() bytes
 *
 * Little-endian. Joiners fetch base and log files from peers as they are, so decoding trusts nothing: every size
 * follows from the run's configuration and must match before a byte of payload is looked at.
 */
#ifndef RV_WORKER_STATE_FORMAT_H
#define RV_WORKER_STATE_FORMAT_H

#include "outer/global.h"

enum { STATE_BASE_HEADER_BYTES = 128, STATE_LOG_HEADER_BYTES = 160, STATE_REPLICA_HEADER_BYTES = 192 };

struct state_base_info {
	uint64_t round;
	struct rv_hash chain, full_hash; /* as the header claims */
};

struct state_log_info {
	uint64_t round;
	uint32_t attempt; /* of the all-reduce whose result it is; 0: fetched from a peer */
	struct rv_hash digest;
};

struct state_replica_info {
	uint64_t round; /* the one it is training */
	struct rv_hash chain;
	uint64_t steps_done, tokens; /* of its contribution to `round` */
	/* Sums since the start of the run, for metrics. */
	uint64_t run_tokens, bytes_sent, formula_bytes;
	uint64_t payload_bytes; /* replica_save() bytes that follow */
};

/* Whole file sizes. */
size_t state_base_bytes(const struct global_config *c);
size_t state_log_bytes(const struct global_config *c);

void state_base_header(const struct global_state *g, const struct rv_hash *full_hash,
					   uint8_t out[STATE_BASE_HEADER_BYTES]);
/* The header alone, for who wants to know what a file is. */
enum rv_err state_base_header_load(const struct global_config *c, const uint8_t header[STATE_BASE_HEADER_BYTES],
								   struct state_base_info *info, struct rv_errtext *et);
/* Checks all of `file` against the configuration and its own full hash (about 1 GB/s). With `into`: copies theta,
 * states, round and chain there (same configuration); *full_hash may be NULL. RV_E_CORRUPT, RV_E_UNSUPPORTED. */
enum rv_err state_base_load(const struct global_config *c, const uint8_t *file, size_t n, struct global_state *into,
							struct rv_hash *full_hash, struct rv_errtext *et);

void state_log_header(const struct global_config *c, const struct state_log_info *info,
					  uint8_t out[STATE_LOG_HEADER_BYTES]);
/* *payload borrows from `file`; its digest has been computed and compared with the header's. */
enum rv_err state_log_load(const struct global_config *c, const uint8_t *file, size_t n, struct state_log_info *info,
						   const uint8_t **payload, struct rv_errtext *et);

void state_replica_header(const struct global_config *c, const struct state_replica_info *info,
						  uint8_t out[STATE_REPLICA_HEADER_BYTES]);
/* The header alone. */
enum rv_err state_replica_header_load(const struct global_config *c, const uint8_t header[STATE_REPLICA_HEADER_BYTES],
									  struct state_replica_info *info, struct rv_errtext *et);
/* *payload (info->payload_bytes) borrows; replica_load() checks it. */
enum rv_err state_replica_load(const struct global_config *c, const uint8_t *file, size_t n,
							   struct state_replica_info *info, const uint8_t **payload, struct rv_errtext *et);

#endif
