/* statestore_prune.c: which state files go. */
#include "worker/statestore_internal.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

/* Whether this file goes. */
typedef bool goes(const void *ctx, enum statestore_file kind, uint64_t round);

/* By name: there may be more files than an index knows. What cannot be removed does not keep the others; the first such
 * is told. */
static enum rv_err remove_those(const struct statestore *s, goes *which, const void *ctx, struct rv_errtext *et) {
	DIR *d = opendir(s->dir);
	enum rv_err first = RV_OK;
	if (!d)
		return rv_fail_errno(et, errno, "%s: cannot be listed", s->dir);
	errno = 0;
	for (struct dirent *e; (e = readdir(d)); errno = 0) {
		enum statestore_file kind;
		uint64_t round;
		if (!statestore_parse_name(e->d_name, &kind, &round) || !which(ctx, kind, round))
			continue;
		enum rv_err failed = statestore_remove(s, kind, round, first == RV_OK ? et : NULL);
		if (first == RV_OK)
			first = failed;
	}
	if (errno != 0 && first == RV_OK)
		first = rv_fail_errno(et, errno, "%s: cannot be listed", s->dir);
	closedir(d);
	return first;
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

/* ---- retention ------------------------------------------------------------------------------------------------------
 */

struct retention {
	struct checkpoint_keep keep;
	const struct checkpoint_named *named;
};

/* What was fetched of a state that is behind us goes too. */
static bool is_old(const void *ctx, enum statestore_file kind, uint64_t round) {
	const struct retention *r = ctx;
	return (kind == STATE_FILE_BASE && !checkpoint_keeps_base(&r->keep, r->named, round)) ||
		   (kind == STATE_FILE_LOG && round < r->keep.logs_from) ||
		   (kind == STATE_FILE_PART && round < r->keep.bases_from);
}

enum rv_err statestore_prune(const struct statestore *s, const struct checkpoint_named *named, struct rv_errtext *et) {
	struct checkpoint_index *x = statestore_new_index(s, et);
	if (!x)
		return RV_E_NOMEM;
	enum rv_err e = statestore_scan(s, x, et);
	if (e == RV_OK) {
		const struct retention r = {checkpoint_retention(x, &s->policy, named), named};
		e = remove_those(s, is_old, &r, et);
	}
	free(x);
	return e;
}

/* ---- another history ------------------------------------------------------------------------------------------------
 */

/* What was removed must not come back when the power goes while the base that takes its place is being written: an entry
 * that was never committed would then seem to be proved by that base. */
static enum rv_err sync_directory(const struct statestore *s, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, STATE_FILE_REPLICA, 0, path);
	return rv_file_sync_parent(path, et);
}

static bool is_given_up(const void *ctx, enum statestore_file kind, uint64_t round) {
	uint64_t to = *(const uint64_t *)ctx;
	return (kind == STATE_FILE_BASE && round > to) || (kind == STATE_FILE_LOG && round >= to);
}

enum rv_err statestore_rewind(const struct statestore *s, uint64_t round, struct rv_errtext *et) {
	RV_TRY(remove_those(s, is_given_up, &round, et));
	return sync_directory(s, et);
}

struct wrong_history {
	uint64_t from;
	const struct checkpoint_index *index;
	const struct statestore_committed *committed;
};

static bool is_committed(const struct statestore_committed *c, const struct checkpoint_file *log) {
	return log && log->has_hash && log->round >= c->first && log->round - c->first < (uint64_t)c->n &&
		   rv_hash_equal(&log->hash, &c->digests[log->round - c->first]);
}

static bool is_of_it(const void *ctx, enum statestore_file kind, uint64_t round) {
	const struct wrong_history *w = ctx;
	if (kind != STATE_FILE_LOG)
		return kind == STATE_FILE_REPLICA || (kind == STATE_FILE_BASE && round > w->from);
	bool doubtful = round >= w->from || !checkpoint_proved(w->index, round);
	return doubtful && !is_committed(w->committed, checkpoint_index_find(w->index, STATE_KIND_LOG, round));
}

enum rv_err statestore_forget_from(const struct statestore *s, uint64_t round,
								   const struct statestore_committed *committed, struct rv_errtext *et) {
	struct checkpoint_index *x = statestore_new_index(s, et);
	if (!x)
		return RV_E_NOMEM;
	const struct wrong_history w = {round, x, committed};
	enum rv_err e = statestore_scan(s, x, et);
	if (e == RV_OK)
		e = remove_those(s, is_of_it, &w, et);
	if (e == RV_OK)
		e = sync_directory(s, et);
	free(x);
	return e;
}
