/* chain.h: the hash chain that names the shared state of a run, round by round, without touching a
 * tensor.
 *
 * run_hash = H("rivulet run" | run id | configuration text); state_hash(0) = H("rivulet chain" |
 * run_hash); state_hash(r+1) = H("rivulet step" | state_hash(r) | digest(r)); digest(r) =
 * H("rivulet round" | r | root over the round's reduced chunks, merkle.h). Workers compute it when
 * they apply a round, the coordinator when it commits one; a joiner checks every step of it. */
#ifndef RV_BASE_CHAIN_H
#define RV_BASE_CHAIN_H

#include "base/hash.h"

enum { RV_RUN_ID_BYTES = 16 };

/* Returns run_hash. `config`: the run's canonical text, NUL-terminated. A run without a coordinator
 * has an id of zeros. */
struct rv_hash rv_run_hash(const uint8_t run_id[RV_RUN_ID_BYTES], const char *config);
/* Return state_hash(0), and state_hash(r + 1) from that of r and digest(r). */
struct rv_hash rv_chain_start(const struct rv_hash *run_hash);
struct rv_hash rv_chain_next(const struct rv_hash *state_hash, const struct rv_hash *digest);
/* Returns digest(r), from the root over its reduced chunks. */
struct rv_hash rv_round_digest(uint64_t round, const struct rv_hash *root);

#endif
