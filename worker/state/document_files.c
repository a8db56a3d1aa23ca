/* document_files.c: see document_files.h. */
#include "worker/state/document_files.h"

#include <string.h>

_Static_assert((int)CHECKPOINT_NAMED_BASES == (int)NET_MAX_KEPT_BASES, "there is room for what a document names");

struct checkpoint_named document_named_files(const struct document *d) {
	struct checkpoint_named named = {
		.vouched_round = d->base_round, .logs_from = d->base_round - d->n_kept_rounds, .n_bases = d->n_kept_bases};
	for (int i = 0; i < d->n_kept_bases; i++)
		named.bases[i] = d->kept_bases[i].round;
	return named;
}

int document_committed(const struct document *d, struct rv_hash out[NET_MAX_LOG_DIGESTS]) {
	memcpy(out, d->older, d->n_older * sizeof d->older[0]);
	memcpy(out + d->n_older, d->log, d->n_log * sizeof d->log[0]);
	return d->n_older + d->n_log;
}
