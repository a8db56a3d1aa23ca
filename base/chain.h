/* chain.h: the hash chain that names the shared state of a run, round by round, without touching a tensor.
 *
 * state_hash(0) = H("rivulet chain" | run_hash);  state_hash(r+1) = H("rivulet step" | state_hash(r) | digest(r)).
 * Workers compute it when they apply a round, the coordinator when it commits one; a joiner checks every step of it.
 */
#ifndef RV_BASE_CHAIN_H
#define RV_BASE_CHAIN_H

#include "base/hash.h"

struct rv_hash rv_chain_start(const struct rv_hash *run_hash);
struct rv_hash rv_chain_next(const struct rv_hash *state_hash, const struct rv_hash *digest);

#endif
