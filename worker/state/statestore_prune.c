/* statestore_prune.c: which state files go. */
#include "worker/state/statestore_internal.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether this file goes. */
typedef bool goes(const void *ctx, enum statestore_file kind, uint64_t round);

static enum rv_err move_file(const char *from_dir, const char *to_dir, const char *name, struct rv_errtext *et) {
	enum { PATH_BYTES = STATESTORE_PATH_BYTES + 64 }; /* a name that was parsed is short */
	char from[PATH_BYTES], to[PATH_BYTES];
	(void)snprintf(from, sizeof from, "%s/%.60s", from_dir, name);
	(void)snprintf(to, sizeof to, "%s/%.60s", to_dir, name);
	if (rename(from, to) == 0 || errno == ENOENT)
		return RV_OK;
	return rv_fail_errno(et, errno, "%s: cannot be set aside as %s", from, to);
}

/* Removes files, or moves them to the directory `into`, by name: there may be more than an index
 * lists. A file that fails does not keep the others; the first fault is returned. */
static enum rv_err take_those(const struct statestore *s, goes *which, const void *ctx, const char *into,
							  struct rv_errtext *et) {
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
		struct rv_errtext *text = first == RV_OK ? et : NULL;
		enum rv_err failed = into ? move_file(s->dir, into, e->d_name, text) : statestore_remove(s, kind, round, text);
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

/* ---- retention ---- */

struct retention {
	struct checkpoint_keep keep;
	const struct checkpoint_named *named;
};

static bool is_old(const void *ctx, enum statestore_file kind, uint64_t round) {
	const struct retention *r = ctx;
	return checkpoint_goes_by_age(&r->keep, r->named, kind, round);
}

enum rv_err statestore_prune(const struct statestore *s, const struct checkpoint_named *named, struct rv_errtext *et) {
	struct checkpoint_index *x = statestore_new_index(s, et);
	if (!x)
		return RV_E_NOMEM;
	enum rv_err e = statestore_scan(s, x, et);
	if (e == RV_OK) {
		const struct retention r = {checkpoint_retention(x, &s->policy, named), named};
		e = take_those(s, is_old, &r, NULL, et);
	}
	free(x);
	return e;
}

/* ---- another history ---- */

enum rv_err statestore_sync(const struct statestore *s, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, STATE_FILE_REPLICA, 0, path);
	return rv_file_sync_parent(path, et);
}

static bool is_after(const void *ctx, enum statestore_file kind, uint64_t round) {
	return checkpoint_goes_by_rollback(kind, round, *(const uint64_t *)ctx);
}

enum rv_err statestore_take_from(const struct statestore *s, uint64_t round, const char *into, struct rv_errtext *et) {
	return take_those(s, is_after, &round, into, et);
}

struct wrong_history {
	uint64_t from;
	const struct checkpoint_index *index;
	const struct checkpoint_committed *committed;
};

static bool is_of_it(const void *ctx, enum statestore_file kind, uint64_t round) {
	const struct wrong_history *w = ctx;
	return checkpoint_goes_by_history(w->index, w->committed, w->from, kind, round);
}

enum rv_err statestore_forget_from(const struct statestore *s, uint64_t round,
								   const struct checkpoint_committed *committed, struct rv_errtext *et) {
	struct checkpoint_index *x = statestore_new_index(s, et);
	if (!x)
		return RV_E_NOMEM;
	const struct wrong_history w = {round, x, committed};
	enum rv_err e = statestore_scan(s, x, et);
	if (e == RV_OK)
		e = take_those(s, is_of_it, &w, NULL, et);
	if (e == RV_OK)
		e = statestore_sync(s, et);
	free(x);
	return e;
}
