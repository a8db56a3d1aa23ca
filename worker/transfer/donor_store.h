/* donor_store.h: the donor (worker/transfer/donor.h) over the state store. Pieces go through a few
 * buffers that all peers share; without memory for one the answer is NONE. A served file need not
 * be the committed one (a vote that lost): the joiner checks it. */
#ifndef RV_WORKER_TRANSFER_DONOR_STORE_H
#define RV_WORKER_TRANSFER_DONOR_STORE_H

#include "worker/state/statestore.h"
#include "worker/transfer/donor.h"

enum {
	DONOR_FILES = 16, /* files kept open */
	DONOR_PIECES = 8  /* pieces kept in memory */
};

/* Makes a donor; sets its source itself (cfg->source is ignored). `store` is borrowed; *out is the
 * caller's. RV_E_NOMEM. */
enum rv_err donor_new(const struct donor_config *cfg, const struct statestore *store, struct donor **out,
					  struct rv_errtext *et);
void donor_free(struct donor *d); /* NULL is fine */
/* Closes a file that was replaced on disk, and forgets its pieces in memory. */
void donor_forget(struct donor *d, enum state_kind kind, uint64_t round);
/* Does the same for all files. */
void donor_forget_all(struct donor *d);

#endif
