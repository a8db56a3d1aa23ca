/* fetch_store.h: the fetcher (worker/transfer/fetcher.h) over the state store: files come together on the storage thread
 * (worker/state/state_assembly.h). A snapshot survives a restart there, and what is in it is not fetched again.
 * Functions of the fetcher may be called by one thread, which also reaps the storage thread's jobs: the owner's
 * callbacks run inside jobs_reap(), too. fetched.snapshot is a struct state_file. */
#ifndef RV_WORKER_TRANSFER_FETCH_STORE_H
#define RV_WORKER_TRANSFER_FETCH_STORE_H

#include "base/jobs.h"
#include "worker/state/statestore.h"
#include "worker/transfer/fetcher.h"

/* cfg->global and cfg->ops are filled in here. `store` and `storage` are borrowed. RV_E_NOMEM. */
enum rv_err fetcher_new(const struct fetcher_config *cfg, const struct statestore *store, struct jobs *storage,
						struct fetcher **out, struct rv_errtext *et);
/* After the storage thread has ended. NULL is fine. */
void fetcher_free(struct fetcher *f);

#endif
