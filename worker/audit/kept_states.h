/* kept_states.h: this worker's own inner state at the end of each of its last rounds, on disk, so
 * that auditors can be given pieces of it with their proofs; and the weights with which the round
 * began, from which this worker repeats the steps of others
 * (docs/decisions/0106-training-is-repeated-from-a-committed-inner-state.md).
 *
 *     inner-S.rvi    header (192) | inner state (train/inner_state.h) | theta (n floats) | a leaf for
 *                    each piece of both
 *
 * S is the round modulo the number of rounds that are kept: a later round replaces the file. The
 * root of a round is that over the leaves of the inner state. */
#ifndef RV_WORKER_AUDIT_KEPT_STATES_H
#define RV_WORKER_AUDIT_KEPT_STATES_H

#include "train/replica.h"
#include "worker/state/statestore.h"

struct kept_states;

/* Makes it for the last `rounds` in the store's directory. Borrows `store`: its directory and
 * configuration. RV_E_NOMEM. */
enum rv_err kept_states_new(const struct statestore *store, uint32_t rounds, struct kept_states **out,
							struct rv_errtext *et);
void kept_states_free(struct kept_states *k); /* NULL is fine */

/* Returns the bytes of a file of n parameters. */
uint64_t kept_states_bytes(size_t n);
/* Returns the bytes of the files that are in a directory. */
uint64_t kept_states_there(const char *dir, uint32_t rounds);
/* Writes the inner state of `r`, as it is after the steps of `round`, and theta (n), as they began;
 * durable when it returns RV_OK, with its root. Any thread, beside the functions below; it blocks.
 * RV_E_UNSUPPORTED: moments of 8 bits; RV_E_FULL, RV_E_IO, RV_E_NOMEM. */
enum rv_err kept_states_write(const struct kept_states *k, uint64_t round, const struct replica *r, const float *theta,
							  struct rv_hash *root, struct rv_errtext *et);
/* Removes what is kept in the directory of `store`: the run was taken back, or is over. RV_E_IO. */
enum rv_err kept_states_drop(const struct statestore *store, uint32_t rounds, struct rv_errtext *et);

/* Closes the files that are open for reading: they may have been replaced. */
void kept_states_forget(struct kept_states *k);
/* Returns a piece of the inner state and its proof, of *bytes, which are valid until the next call;
 * NULL: they are not here, or cannot be read. Checks that the piece is what was written. The same
 * piece again, as for its next slice, is not read again, nor that of another auditor in turn. */
const uint8_t *kept_states_piece(struct kept_states *k, uint64_t round, uint32_t index, size_t *bytes);
/* Returns true if a file of that round is here. */
bool kept_states_has(const struct kept_states *k, uint64_t round);
/* Reads the weights (n) with which `round` began, and checks them. Any thread, beside the functions
 * above; it blocks. RV_E_NOTFOUND, RV_E_CORRUPT, RV_E_IO, RV_E_NOMEM. */
enum rv_err kept_states_theta(const struct kept_states *k, uint64_t round, float *theta, struct rv_errtext *et);

#endif
