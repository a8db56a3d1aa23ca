/* checkpoint.h: what `rivulet checkpoint` does with a worker's directory. Each function makes facts for
 * inspect_print(); *facts is a new object whenever there is something to show, also with a fault. */
#ifndef RV_LAB_CHECKPOINT_H
#define RV_LAB_CHECKPOINT_H

#include "base/event.h"
#include "worker/state/checkpoint_index.h"

#include <jansson.h>
#include <stdbool.h>

/* Every file, by its header, index and manifest; what recovery would start from. The worker may be running.
 * RV_E_NOTFOUND, RV_E_IO; damaged files are facts, not faults. */
enum rv_err checkpoint_list(const char *dir, json_t **facts, struct rv_errtext *et);

/* Reads all of every file, and replays every state that can be made, comparing chains and full hashes with the snapshots on
 * the way. `round` >= 0: only what makes that round. RV_E_CORRUPT: the text names what is damaged. */
enum rv_err checkpoint_verify(const char *dir, int64_t round, json_t **facts, struct rv_errtext *et);
/* The same of a directory that was opened: what its worker has removed since is no damage. *w is listed again when
 * files have gone. */
struct worker_rounds;
enum rv_err checkpoint_verify_listed(struct worker_rounds *w, int64_t round, json_t **facts, struct rv_errtext *et);

/* The state of a round (negative: the newest), theta and outer state bit for bit, as OUT/snapshot-R.rvs. `events` is told
 * of damaged files, and the snapshot before them used. RV_E_NOTFOUND: the files do not make it; RV_E_CORRUPT: damage
 * stands in the way, and is named; RV_E_INVALID: OUT is a worker's directory; RV_E_FULL, RV_E_IO. */
enum rv_err checkpoint_export(const char *dir, int64_t round, const char *out, struct rv_events *events, json_t **facts,
							  struct rv_errtext *et);

/* Removes what `policy` lets go, after the snapshot that then makes all later states has been read and found whole.
 * RV_E_BUSY: a worker runs there. */
enum rv_err checkpoint_prune(const char *dir, const struct checkpoint_policy *policy, bool dry_run, json_t **facts,
							 struct rv_errtext *et);

#endif
