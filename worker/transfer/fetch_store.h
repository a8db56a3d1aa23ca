/* fetch_store.h: the fetcher (worker/transfer/fetcher.h) over the state store: the storage thread
 * puts files together (worker/state/state_assembly.h). A partial snapshot survives a restart, and
 * its pieces are not fetched again. One thread calls the fetcher and reaps the storage thread's
 * jobs: the owner's callbacks run inside jobs_reap(), too. fetched.snapshot is a struct
 * state_file. */
#ifndef RV_WORKER_TRANSFER_FETCH_STORE_H
#define RV_WORKER_TRANSFER_FETCH_STORE_H

#include "base/jobs.h"
#include "worker/state/statestore.h"
#include "worker/transfer/fetcher.h"

/* Makes a fetcher; sets global and ops itself (cfg's are ignored). `store` and `storage` are
 * borrowed; *out is the caller's. RV_E_NOMEM. */
enum rv_err fetcher_new(const struct fetcher_config *cfg, const struct statestore *store, struct jobs *storage,
						struct fetcher **out, struct rv_errtext *et);
/* Frees the fetcher, after jobs_free(storage) or while it is idle. NULL is fine. */
void fetcher_free(struct fetcher *f);

#endif
