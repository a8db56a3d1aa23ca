/* donor_store.h: the donor (worker/transfer/donor.h) over the state store: pieces go through a few buffers that all peers
 * share; without memory for one the answer is NONE. What is served need not be what was committed (a vote that lost):
 * the joiner finds that out. */
#ifndef RV_WORKER_TRANSFER_DONOR_STORE_H
#define RV_WORKER_TRANSFER_DONOR_STORE_H

#include "worker/state/statestore.h"
#include "worker/transfer/donor.h"

enum {
	DONOR_FILES = 16, /* kept open */
	DONOR_PIECES = 8  /* kept in memory */
};

/* cfg->source is filled in here. `store` is borrowed. RV_E_NOMEM. */
enum rv_err donor_new(const struct donor_config *cfg, const struct statestore *store, struct donor **out,
					  struct rv_errtext *et);
void donor_free(struct donor *d); /* NULL is fine */
/* This file was written anew: what is open of it is another one. */
void donor_forget(struct donor *d, enum state_kind kind, uint64_t round);
void donor_forget_all(struct donor *d);

#endif
