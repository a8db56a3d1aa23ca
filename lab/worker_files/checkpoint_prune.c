/* checkpoint_prune.c: removes state files that nothing needs. */
#include "lab/worker_files/checkpoint.h"

#include "base/file.h"
#include "lab/worker_files/worker_rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The files to be removed. */
struct removal {
	struct worker_rounds *w;
	bool dry_run;
	json_t *files; /* names */
	uint64_t bytes;
};

static void add_files(struct removal *r, enum statestore_file kind, uint64_t from) {
	const struct checkpoint_list *l = kind == STATE_FILE_SNAPSHOT ? &r->w->index->snapshots : &r->w->index->logs;
	for (int i = 0; i < l->n && l->at[i].round < from; i++) {
		char path[STATESTORE_PATH_BYTES];
		struct stat st;
		statestore_path(&r->w->store, kind, l->at[i].round, path);
		r->bytes += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
		json_array_append_new(r->files, json_string(strrchr(path, '/') + 1));
	}
}

/* Drops from the list the files that could not be removed. */
static void drop_those_left(struct removal *r) {
	for (size_t i = json_array_size(r->files); i-- > 0;) {
		char path[2 * STATESTORE_PATH_BYTES];
		struct stat st;
		snprintf(path, sizeof path, "%s/%s", r->w->store.dir, json_string_value(json_array_get(r->files, i)));
		if (stat(path, &st) != 0)
			continue;
		r->bytes -= (uint64_t)st.st_size;
		json_array_remove(r->files, i);
	}
}

/* Checks the snapshot on which all remaining files depend. */
static enum rv_err check_snapshot(const struct worker_rounds *w, uint64_t round, struct rv_errtext *et) {
	struct state_file *f;
	enum rv_err e = statestore_open(&w->store, STATE_KIND_SNAPSHOT, round, &f, et);
	if (e == RV_OK) {
		e = state_file_verify(f, et);
		state_file_free(f);
	}
	return e == RV_OK ? RV_OK
					  : rv_fail_context(et, e, "nothing was removed: snapshot-%" PRIu64 ".rvs would be needed", round);
}

static json_t *facts_of(const struct removal *r, json_t *safe) {
	return json_pack("{ss ss sb sI sO so}", "kind", r->dry_run ? "would remove" : "removed", "path", r->w->store.dir,
					 "dry_run", (int)r->dry_run, "bytes", (json_int_t)r->bytes, "files", r->files, "safe", safe);
}

static enum rv_err remove_files(struct removal *r, const struct checkpoint_named *named, json_t **facts,
								struct rv_errtext *et) {
	if (json_array_size(r->files) == 0) {
		*facts = facts_of(r, json_string("nothing to remove"));
		return RV_OK;
	}
	RV_TRY(check_snapshot(r->w, named->vouched_round, et));
	enum rv_err e = RV_OK;
	if (!r->dry_run) {
		e = statestore_prune(&r->w->store, named, et);
		drop_those_left(r);
	}
	*facts = facts_of(r, json_sprintf("snapshot-%" PRIu64 ".rvs was read and is whole; with the log from round %" PRIu64
									  " on it makes every later state",
									  named->vouched_round, named->vouched_round));
	return e;
}

static enum rv_err prune(struct worker_rounds *w, bool dry_run, json_t **facts, struct rv_errtext *et) {
	struct checkpoint_start newest;
	if (!checkpoint_start_before(w->index, UINT64_MAX, &newest) || !newest.snapshot)
		return rv_fail(et, RV_E_NOTFOUND, "%s: holds no whole snapshot, so nothing is removed", w->store.dir);
	const struct checkpoint_named named = {.vouched_round = newest.round, .logs_from = newest.round};
	struct checkpoint_keep keep = checkpoint_retention(w->index, &w->store.policy, &named);
	struct removal r = {.w = w, .dry_run = dry_run, .files = json_array()};
	add_files(&r, STATE_FILE_SNAPSHOT, keep.snapshots_from);
	add_files(&r, STATE_FILE_LOG, keep.logs_from);
	enum rv_err e = remove_files(&r, &named, facts, et);
	json_decref(r.files);
	return e;
}

enum rv_err checkpoint_prune(const char *dir, const struct checkpoint_policy *policy, bool dry_run, json_t **facts,
							 struct rv_errtext *et) {
	struct worker_rounds w;
	int lock;
	*facts = NULL;
	RV_TRY(rv_dir_lock(dir, &lock, et));
	enum rv_err e = worker_rounds_open(dir, &w, et);
	if (e == RV_OK) {
		w.store.policy = *policy;
		e = prune(&w, dry_run, facts, et);
		worker_rounds_release(&w);
	}
	rv_dir_unlock(lock);
	return e;
}
