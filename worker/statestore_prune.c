/* statestore_prune.c: which state files go. */
#include "worker/statestore_internal.h"

#include "base/file.h"

#include <dirent.h>
#include <stdlib.h>

/* Files of `l` with a round in [from, to). */
static void remove_rounds(const struct statestore *s, const struct checkpoint_list *l, enum statestore_file kind,
						  uint64_t from, uint64_t to) {
	for (int i = 0; i < l->n; i++)
		if (l->at[i].round >= from && l->at[i].round < to)
			statestore_remove(s, kind, l->at[i].round);
}

bool statestore_find_part(const struct statestore *s, uint64_t *round) {
	DIR *d = opendir(s->dir);
	bool found = false;
	if (!d)
		return false;
	for (struct dirent *e; (e = readdir(d));) {
		enum statestore_file kind;
		uint64_t part;
		if (!statestore_parse_name(e->d_name, &kind, &part) || kind != STATE_FILE_PART || (found && part < *round))
			continue;
		*round = part;
		found = true;
	}
	closedir(d);
	return found;
}

/* By name: there may be more files than an index knows. What was fetched of a state that is behind us goes too. */
static void remove_old(const struct statestore *s, const struct checkpoint_keep *keep,
					   const struct checkpoint_named *named) {
	DIR *d = opendir(s->dir);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		enum statestore_file kind;
		uint64_t round;
		if (!statestore_parse_name(e->d_name, &kind, &round))
			continue;
		bool old = (kind == STATE_FILE_BASE && !checkpoint_keeps_base(keep, named, round)) ||
				   (kind == STATE_FILE_LOG && round < keep->logs_from) ||
				   (kind == STATE_FILE_PART && round < keep->bases_from);
		if (old)
			statestore_remove(s, kind, round);
	}
	closedir(d);
}

void statestore_prune(const struct statestore *s, const struct checkpoint_named *named) {
	struct checkpoint_index *x = statestore_new_index(s, NULL);
	if (x && statestore_scan(s, x, NULL) == RV_OK) {
		struct checkpoint_keep keep = checkpoint_retention(x, &s->policy, named);
		remove_old(s, &keep, named);
	}
	free(x);
}

/* What was removed must not come back when the power goes while the base that takes its place is being written: an entry
 * that was never committed would then seem to be proved by that base. */
static void sync_directory(const struct statestore *s) {
	char path[STATESTORE_PATH_BYTES];
	struct rv_errtext et = {0};
	statestore_path(s, STATE_FILE_REPLICA, 0, path);
	enum rv_err e = rv_file_sync_parent(path, &et);
	if (e != RV_OK && s->notice)
		s->notice(s->notice_ctx, e, et.text);
}

void statestore_rewind(const struct statestore *s, uint64_t round) {
	struct checkpoint_index *x = statestore_new_index(s, NULL);
	if (x && statestore_scan(s, x, NULL) == RV_OK) {
		remove_rounds(s, &x->bases, STATE_FILE_BASE, round + 1, UINT64_MAX);
		remove_rounds(s, &x->logs, STATE_FILE_LOG, round, UINT64_MAX);
	}
	free(x);
	sync_directory(s);
}

static bool is_committed(const struct statestore_committed *c, const struct checkpoint_file *log) {
	return log->has_hash && log->round >= c->first && log->round - c->first < (uint64_t)c->n &&
		   rv_hash_equal(&log->hash, &c->digests[log->round - c->first]);
}

void statestore_forget_from(const struct statestore *s, uint64_t round, const struct statestore_committed *committed) {
	struct checkpoint_index *x = statestore_new_index(s, NULL);
	if (x && statestore_scan(s, x, NULL) == RV_OK) {
		remove_rounds(s, &x->bases, STATE_FILE_BASE, round + 1, UINT64_MAX);
		for (int i = 0; i < x->logs.n; i++) {
			const struct checkpoint_file *log = &x->logs.at[i];
			bool doubtful = log->round >= round || !checkpoint_proved(x, log->round);
			if (doubtful && !is_committed(committed, log))
				statestore_remove(s, STATE_FILE_LOG, log->round);
		}
		statestore_remove(s, STATE_FILE_REPLICA, 0);
		sync_directory(s);
	}
	free(x);
}
