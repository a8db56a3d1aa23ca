/* worker_rounds.h: the shared weights of every round that a worker's directory proves: a snapshot
 * and the log entries after it, replayed. Read-only and without a lock: the worker may run
 * meanwhile, and prune files as it does.
 *
 * The rules of proof are those of checkpoint_index.h. */
#ifndef RV_LAB_WORKER_ROUNDS_H
#define RV_LAB_WORKER_ROUNDS_H

#include "base/event.h"
#include "base/run_config.h"
#include "outer/global.h"
#include "train/model/model.h"
#include "worker/state/statestore.h"

#include <stdbool.h>

struct worker_rounds {
	struct run_config run;
	struct model_layout layout;
	struct statestore store; /* of the directory, configured */
	struct checkpoint_index *index;
};

/* Returns true if `dir` is a worker's: it has run.conf and run.link. */
bool worker_rounds_is_worker(const char *dir);
/* Opens a directory. RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM, RV_E_CORRUPT name the file. On a fault *w
 * is released. */
enum rv_err worker_rounds_open(const char *dir, struct worker_rounds *w, struct rv_errtext *et);
void worker_rounds_release(struct worker_rounds *w);
/* Reports every unusable file as the event `damaged` to `events` (borrowed), through store.notice,
 * which is unset at first. */
void worker_rounds_tell(struct worker_rounds *w, struct rv_events *events);
/* Lists the files again: those that the worker has removed since are no damage. RV_E_IO,
 * RV_E_NOMEM. */
enum rv_err worker_rounds_look_again(struct worker_rounds *w, struct rv_errtext *et);

/* Writes "0-7, 12-16", or "none"; cut at `cap`. */
void worker_rounds_print(const struct worker_rounds *w, char *out, size_t cap);

/* Replays the state at `round` (negative: the newest) into *g, each file checked by its hashes. A
 * damaged file is reported, and the previous snapshot used, as by a worker that starts.
 * RV_E_NOTFOUND lists the available rounds; RV_E_CORRUPT also names the damaged files that prevent
 * it; RV_E_IO and RV_E_NOMEM name the file that cannot be read now, which is not skipped. On RV_OK
 * the caller releases *g. */
enum rv_err worker_rounds_replay(struct worker_rounds *w, int64_t round, struct global_state *g, struct rv_errtext *et);

/* Return the places where states begin, ascending: theta0 or the oldest snapshot, then each whole
 * snapshot after `round`. false: there is none. */
bool worker_rounds_first_start(const struct worker_rounds *w, struct checkpoint_start *out);
bool worker_rounds_next_start(const struct worker_rounds *w, uint64_t round, struct checkpoint_start *out);
/* Replay step by step: the state at a start, and the next round's. The texts name the file. On
 * RV_OK of the first the caller releases *g; the second leaves *g unchanged when it fails.
 * RV_E_NOTFOUND: the file was removed. */
enum rv_err worker_rounds_begin(const struct worker_rounds *w, const struct checkpoint_start *from,
								struct global_state *g, struct rv_errtext *et);
enum rv_err worker_rounds_apply(const struct worker_rounds *w, struct global_state *g, struct rv_errtext *et);

#endif
