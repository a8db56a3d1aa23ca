/* kept_contributions.h: this worker's own contributions to the last rounds, on disk, so that
 * auditors can be given chunks of them with their proofs.
 *
 *     contribution-S.rvc   header (192) | a leaf for each chunk | the encoded contribution
 *
 * S is the round modulo the number of rounds that are kept: a later round replaces the file. One
 * that cannot be written is no fault of the round: its audits then report it as withheld. */
#ifndef RV_WORKER_AUDIT_KEPT_CONTRIBUTIONS_H
#define RV_WORKER_AUDIT_KEPT_CONTRIBUTIONS_H

#include "worker/state/statestore.h"

struct kept_contributions;

/* Makes it for the last `rounds` in the store's directory. Borrows `store`: its directory and
 * configuration. RV_E_NOMEM. */
enum rv_err kept_contributions_new(const struct statestore *store, uint32_t rounds, struct kept_contributions **out,
								   struct rv_errtext *et);
void kept_contributions_free(struct kept_contributions *k); /* NULL is fine */
/* Returns the bytes of the files that are in a directory. */
uint64_t kept_contributions_there(const char *dir, uint32_t rounds);

/* Writes the contribution to `round` as it was sent, encoded by global_sent_as(codec); durable when
 * it returns RV_OK. Any thread, beside the functions below. RV_E_FULL, RV_E_IO, RV_E_NOMEM. */
enum rv_err kept_contributions_write(const struct kept_contributions *k, uint64_t round, uint8_t codec,
									 const uint8_t *encoded, struct rv_errtext *et);

/* Closes the file that is open for reading: it may have been replaced. */
void kept_contributions_forget(struct kept_contributions *k);
/* Returns chunk and proof, of *bytes, which are valid until the next call; NULL: they are not here,
 * or cannot be read. Checks that the chunk is what was written. The same chunk again, as for its
 * next slice, is not read again. */
const uint8_t *kept_contributions_piece(struct kept_contributions *k, uint64_t round, uint32_t chunk, size_t *bytes);
/* Reads the contribution to `round` as a whole: *encoded (the caller's to free) by
 * global_sent_as(*codec), all chunks, and checks it. Any thread, beside the functions above; it
 * blocks. RV_E_NOTFOUND: it is not here; RV_E_CORRUPT, RV_E_IO, RV_E_NOMEM. */
enum rv_err kept_contributions_whole(const struct kept_contributions *k, uint64_t round, uint8_t *codec,
									 uint8_t **encoded, struct rv_errtext *et);

#endif
