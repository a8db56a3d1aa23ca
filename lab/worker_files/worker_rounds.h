/* worker_rounds.h: the shared weights of every round that a worker's directory can prove: a snapshot and the log entries
 * after it, replayed. Read-only and without a lock: the worker may run meanwhile, and prune files as it does.
 *
 * What proves what is checkpoint_index.h's to say.
 */
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

/* A directory with run.conf and run.link is a worker's. */
bool worker_rounds_is_worker(const char *dir);
/* Which member it is: false when that cannot be read (member.conf is its owner's alone). */
struct worker_member {
	int64_t number;
	char name[64];
};
bool worker_rounds_member(const char *dir, struct worker_member *out);
/* RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM, RV_E_CORRUPT name the file. On a fault *w is released. */
enum rv_err worker_rounds_open(const char *dir, struct worker_rounds *w, struct rv_errtext *et);
void worker_rounds_release(struct worker_rounds *w);
/* Every file that turns out to be of no use is told to store.notice, which is nobody at first; here: as the event
 * `damaged`, to `events` (borrowed). */
void worker_rounds_tell(struct worker_rounds *w, struct rv_events *events);
/* Lists the files again: those that the worker has removed since are no damage. RV_E_IO, RV_E_NOMEM. */
enum rv_err worker_rounds_look_again(struct worker_rounds *w, struct rv_errtext *et);

/* "0-7, 12-16", or "none"; cut at `cap`. */
void worker_rounds_print(const struct worker_rounds *w, char *out, size_t cap);

/* *g becomes the state at `round` (negative: the newest there is), each file checked by its hashes. A file that is
 * damaged is told, and the snapshot before it taken, as a worker does that starts. RV_E_NOTFOUND lists the rounds there
 * are; RV_E_CORRUPT also names the damaged files that stand in the way; RV_E_IO and RV_E_NOMEM name the file that
 * cannot be read now, which is not passed over. On RV_OK the caller releases *g. */
enum rv_err worker_rounds_replay(struct worker_rounds *w, int64_t round, struct global_state *g, struct rv_errtext *et);

/* Where states begin, ascending: theta0 or the oldest snapshot, then each whole snapshot after `round`. false: there is
 * none. */
bool worker_rounds_first_start(const struct worker_rounds *w, struct checkpoint_start *out);
bool worker_rounds_next_start(const struct worker_rounds *w, uint64_t round, struct checkpoint_start *out);
/* Step by step, for who looks at each: the state at a start, and the next round's. The texts name the file. On RV_OK of
 * the first the caller releases *g; the second leaves *g as it is when it fails. RV_E_NOTFOUND: the file went away. */
enum rv_err worker_rounds_begin(const struct worker_rounds *w, const struct checkpoint_start *from,
								struct global_state *g, struct rv_errtext *et);
enum rv_err worker_rounds_apply(const struct worker_rounds *w, struct global_state *g, struct rv_errtext *et);

#endif
