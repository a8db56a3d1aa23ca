/* checkpoint_export.c: writes a state, replayed from a worker's files, to another directory. */
#include "lab/worker_files/checkpoint.h"

#include "base/file.h"
#include "lab/worker_files/facts.h"
#include "lab/worker_files/worker_rounds.h"

#include <stdio.h>

static enum rv_err write_state(const struct worker_rounds *w, const struct global_state *g, const char *out,
							   json_t **facts, struct rv_errtext *et) {
	struct statestore there = {.cfg = w->store.cfg};
	char path[STATESTORE_PATH_BYTES];
	struct rv_hash full;
	if (snprintf(there.dir, sizeof there.dir, "%s", out) >= (int)sizeof there.dir)
		return rv_fail(et, RV_E_RANGE, "%.100s...: path is longer than %zu bytes", out, sizeof there.dir - 1);
	RV_TRY(rv_dir_make(out, 0755, et));
	RV_TRY(statestore_write_snapshot(&there, g, &full, et));
	statestore_path(&there, STATE_FILE_SNAPSHOT, g->round, path);
	*facts = json_pack("{ss ss sI sI}", "kind", "exported state", "path", path, "round", (json_int_t)g->round,
					   "parameters", (json_int_t)g->cfg.n);
	facts_put_hash(*facts, "chain", &g->chain);
	facts_put_hash(*facts, "state", &full);
	return RV_OK;
}

enum rv_err checkpoint_export(const char *dir, int64_t round, const char *out, struct rv_events *events, json_t **facts,
							  struct rv_errtext *et) {
	struct worker_rounds w;
	struct global_state g;
	*facts = NULL;
	if (worker_rounds_is_worker(out))
		return rv_fail(et, RV_E_INVALID,
					   "%s is a worker's directory, whose own files would be overwritten: choose another", out);
	RV_TRY(worker_rounds_open(dir, &w, et));
	worker_rounds_tell(&w, events);
	enum rv_err e = worker_rounds_replay(&w, round, &g, et);
	if (e == RV_OK) {
		e = write_state(&w, &g, out, facts, et);
		global_release(&g);
	}
	worker_rounds_release(&w);
	return e;
}
