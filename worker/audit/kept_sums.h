/* kept_sums.h: the sums of which this worker was the final owner in the last rounds, on disk
 * (sums_image.h), so that it can show what it was given, and auditors can make its means again.
 *
 *     sums-S.rvs   S: the round modulo the number of rounds that are kept */
#ifndef RV_WORKER_AUDIT_KEPT_SUMS_H
#define RV_WORKER_AUDIT_KEPT_SUMS_H

#include "worker/audit/sums_image.h"
#include "worker/state/statestore.h"

struct kept_sums;

/* Makes it for the last `rounds` in the store's directory, which is borrowed. RV_E_NOMEM. */
enum rv_err kept_sums_new(const struct statestore *store, uint32_t rounds, struct kept_sums **out,
						  struct rv_errtext *et);
void kept_sums_free(struct kept_sums *k); /* NULL is fine */
/* Returns the bytes of the files that are in a directory. */
uint64_t kept_sums_there(const char *dir, uint32_t rounds);

/* Writes the image of a round; durable when it returns RV_OK. Any thread, beside the functions
 * below. RV_E_FULL, RV_E_IO. */
enum rv_err kept_sums_write(const struct kept_sums *k, uint64_t round, const struct blob *image, struct rv_errtext *et);

/* Reads what this worker can show of a chunk of that attempt; returns false if it is not here, or
 * cannot be read. */
bool kept_sums_shown(const struct kept_sums *k, uint64_t round, uint32_t attempt, uint32_t chunk,
					 struct shown_sums *out);
/* Returns the sum that `index` names (frame_sum_index), of *bytes, valid until the next call; NULL:
 * it is not here, or is not what its row has signed. The same one again is not read again. */
const uint8_t *kept_sums_piece(struct kept_sums *k, uint64_t round, uint32_t index, size_t *bytes);
/* Drops what was read: the file may have been replaced. */
void kept_sums_forget(struct kept_sums *k);

#endif
