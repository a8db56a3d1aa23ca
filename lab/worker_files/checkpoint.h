/* checkpoint.h: the verbs of `rivulet checkpoint` on a worker's directory. Each function makes
 * facts for inspect_print(); *facts is a new object whenever there is something to show, also with
 * a fault; the caller decrefs it. */
#ifndef RV_LAB_CHECKPOINT_H
#define RV_LAB_CHECKPOINT_H

#include "base/event.h"
#include "worker/state/checkpoint_index.h"

#include <jansson.h>
#include <stdbool.h>

/* Lists every file, by its header, index and manifest, and where recovery would start. The worker
 * may be running. RV_E_NOTFOUND, RV_E_IO; damaged files are facts, not faults. */
enum rv_err checkpoint_list(const char *dir, json_t **facts, struct rv_errtext *et);

/* Reads all of every file, and replays every state that can be made, comparing chains and full
 * hashes with the snapshots on the way. `round` >= 0: only the files that make that round.
 * RV_E_CORRUPT: the text names the damage. */
enum rv_err checkpoint_verify(const char *dir, int64_t round, json_t **facts, struct rv_errtext *et);
/* Verifies an open directory: files that its worker has removed since are no damage. *w is listed
 * again if files are gone. */
struct worker_rounds;
enum rv_err checkpoint_verify_listed(struct worker_rounds *w, int64_t round, json_t **facts, struct rv_errtext *et);

/* Writes the state of a round (negative: the newest), theta and outer state bit for bit, as
 * OUT/snapshot-R.rvs. Reports damaged files to `events`, and uses the snapshot before them.
 * RV_E_NOTFOUND: the files do not make it; RV_E_CORRUPT: damage, which is named, prevents it;
 * RV_E_INVALID: OUT is a worker's directory; RV_E_FULL, RV_E_IO. */
enum rv_err checkpoint_export(const char *dir, int64_t round, const char *out, struct rv_events *events, json_t **facts,
							  struct rv_errtext *et);

/* Removes the files outside `policy`, after the snapshot that then makes all later states has been
 * read and is whole. RV_E_BUSY: a worker runs there. */
enum rv_err checkpoint_prune(const char *dir, const struct checkpoint_policy *policy, bool dry_run, json_t **facts,
							 struct rv_errtext *et);

#endif
