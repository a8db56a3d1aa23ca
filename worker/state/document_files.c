/* document_files.c: see document_files.h. */
#include "worker/state/document_files.h"

#include "base/assert.h"

#include <string.h>

_Static_assert((int)CHECKPOINT_NAMED_SNAPSHOTS == (int)NET_MAX_KEPT_SNAPSHOTS,
			   "there is room for what a document names");

struct checkpoint_named document_named_files(const struct document *d) {
	struct checkpoint_named named = {.vouched_round = d->snapshot_round,
									 .logs_from = d->snapshot_round - d->n_kept_rounds,
									 .n_snapshots = d->n_kept_snapshots};
	RV_ASSERT(named.logs_from <= named.vouched_round);
	for (int i = 0; i < d->n_kept_snapshots; i++)
		named.snapshots[i] = d->kept_snapshots[i].round;
	return named;
}

int document_committed(const struct document *d, struct rv_hash out[NET_MAX_LOG_DIGESTS]) {
	RV_ASSERT(d->n_older + d->n_log <= NET_MAX_LOG_DIGESTS && d->snapshot_round + d->n_log == d->round);
	memcpy(out, d->older, d->n_older * sizeof d->older[0]);
	memcpy(out + d->n_older, d->log, d->n_log * sizeof d->log[0]);
	return d->n_older + d->n_log;
}
