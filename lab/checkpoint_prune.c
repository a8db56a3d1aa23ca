/* checkpoint_prune.c: removes state files that nothing needs. */
#include "lab/checkpoint.h"

#include "base/file.h"
#include "lab/worker_rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void add_removed(const struct worker_rounds *w, const struct checkpoint_list *l, enum statestore_file kind,
						uint64_t from, json_t *removed, uint64_t *bytes) {
	for (int i = 0; i < l->n && l->at[i].round < from; i++) {
		char path[STATESTORE_PATH_BYTES];
		struct stat st;
		statestore_path(&w->store, kind, l->at[i].round, path);
		*bytes += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
		json_array_append_new(removed, json_string(strrchr(path, '/') + 1));
	}
}

/* All that stays rests on this base. */
static enum rv_err check_base(const struct worker_rounds *w, uint64_t round, struct rv_errtext *et) {
	struct state_file *f;
	enum rv_err e = statestore_open(&w->store, STATE_KIND_BASE, round, &f, et);
	if (e == RV_OK) {
		e = state_file_verify(f, et);
		state_file_free(f);
	}
	return e == RV_OK ? RV_OK
					  : rv_fail_context(et, e, "nothing was removed: base-%" PRIu64 ".rvs would be needed", round);
}

static enum rv_err prune(struct worker_rounds *w, const struct checkpoint_policy *policy, bool dry_run, json_t **facts,
						 struct rv_errtext *et) {
	struct checkpoint_start newest;
	if (!checkpoint_start_before(w->index, UINT64_MAX, &newest) || !newest.base)
		return rv_fail(et, RV_E_NOTFOUND, "%s: holds no whole base, so nothing may go", w->store.dir);
	const struct checkpoint_named named = {.vouched_round = newest.round, .logs_from = newest.round};
	struct checkpoint_keep keep = checkpoint_retention(w->index, policy, &named);
	json_t *removed = json_array();
	uint64_t bytes = 0;
	add_removed(w, &w->index->bases, STATE_FILE_BASE, keep.bases_from, removed, &bytes);
	add_removed(w, &w->index->logs, STATE_FILE_LOG, keep.logs_from, removed, &bytes);
	*facts = json_pack("{ss ss sb sI so}", "kind", dry_run ? "would remove" : "removed", "path", w->store.dir,
					   "dry_run", (int)dry_run, "bytes", (json_int_t)bytes, "files", removed);
	if (json_array_size(removed) == 0) {
		json_object_set_new(*facts, "safe", json_string("there is nothing to remove"));
		return RV_OK;
	}
	RV_TRY(check_base(w, newest.round, et));
	json_object_set_new(*facts, "safe",
						json_sprintf("base-%" PRIu64 ".rvs was read and is whole; with the log from round %" PRIu64
									 " on, every later state is made from it and what stays before it",
									 newest.round, newest.round));
	if (!dry_run) {
		w->store.policy = *policy;
		return statestore_prune(&w->store, &named, et);
	}
	return RV_OK;
}

enum rv_err checkpoint_prune(const char *dir, const struct checkpoint_policy *policy, bool dry_run, json_t **facts,
							 struct rv_errtext *et) {
	struct worker_rounds w;
	int lock;
	*facts = NULL;
	RV_TRY(rv_dir_lock(dir, &lock, et));
	enum rv_err e = worker_rounds_open(dir, &w, et);
	if (e == RV_OK) {
		e = prune(&w, policy, dry_run, facts, et);
		worker_rounds_release(&w);
	}
	rv_dir_unlock(lock);
	return e;
}
