/* statestore_given_up.c: what a rollback gives up is set aside, in a directory of the state: a
 * person may want it back.
 *
 * Any step of it may be the last one before a crash. As long as the new term is not stored all is
 * done again with the same arguments: the directory of the set, once made, marks it as the one
 * to go on with. */
#include "worker/state/statestore_internal.h"

#include "base/assert.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIR_MODE = 0755, LINK_MODE = 0600, SMALL_FILE_MAX_BYTES = 1 << 20 };
static const char prefix[] = "given-up-";

/* Which state files a directory has, of those that a rollback to a round gives up. */
struct found {
	bool any, has_snapshot;
	uint64_t snapshot; /* has_snapshot: the latest */
};

struct sets {
	struct found going, older; /* older: the set of an earlier rollback with the latest snapshot */
	uint64_t older_term;
	bool begun; /* the directory of what is going is there */
};

static void set_path(const struct statestore *s, uint64_t term, char out[static STATESTORE_PATH_BYTES]) {
	(void)snprintf(out, STATESTORE_PATH_BYTES, "%s/%s%" PRIu64, s->dir, prefix, term);
}

static bool is_set(const char *name, uint64_t *term) {
	enum { MAX_DIGITS = 18 };
	size_t n = sizeof prefix - 1;
	if (strncmp(name, prefix, n) != 0)
		return false;
	size_t digits = strspn(name + n, "0123456789");
	*term = strtoull(name + n, NULL, 10);
	return digits > 0 && digits <= MAX_DIGITS && name[n + digits] == '\0';
}

static void note(struct found *f, enum statestore_file kind, uint64_t round) {
	f->any = true;
	if (kind == STATE_FILE_SNAPSHOT && (!f->has_snapshot || round > f->snapshot)) {
		f->has_snapshot = true;
		f->snapshot = round;
	}
}

/* What cannot be read holds nothing. */
static void look_into(const struct statestore *s, uint64_t term, struct found *f) {
	char path[STATESTORE_PATH_BYTES];
	set_path(s, term, path);
	DIR *d = opendir(path);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		enum statestore_file kind;
		uint64_t round;
		if (statestore_parse_name(e->d_name, &kind, &round))
			note(f, kind, round);
	}
	closedir(d);
}

static void note_older(const struct statestore *s, uint64_t term, struct sets *sets) {
	struct found f = {.any = false};
	look_into(s, term, &f);
	if (f.has_snapshot && (!sets->older.has_snapshot || f.snapshot > sets->older.snapshot)) {
		sets->older = f;
		sets->older_term = term;
	}
}

static enum rv_err find_sets(const struct statestore *s, uint64_t to, uint64_t term, struct sets *out,
							 struct rv_errtext *et) {
	*out = (struct sets){.begun = false};
	DIR *d = opendir(s->dir);
	if (!d)
		return rv_fail_errno(et, errno, "%s: cannot be listed", s->dir);
	errno = 0;
	for (struct dirent *e; (e = readdir(d)); errno = 0) {
		enum statestore_file kind;
		uint64_t number;
		if (is_set(e->d_name, &number) && number == term)
			out->begun = true;
		else if (is_set(e->d_name, &number))
			note_older(s, number, out);
		else if (statestore_parse_name(e->d_name, &kind, &number) && checkpoint_goes_by_rollback(kind, number, to))
			note(&out->going, kind, number);
	}
	enum rv_err e = errno == 0 ? RV_OK : rv_fail_errno(et, errno, "%s: cannot be listed", s->dir);
	closedir(d);
	return e;
}

/* ---- one set stays ---- */

static bool is_of_a_set(const char *name) {
	enum statestore_file kind;
	uint64_t round;
	return statestore_parse_name(name, &kind, &round) || strcmp(name, "run.conf") == 0 || strcmp(name, "run.link") == 0;
}

/* What somebody else has put there stays, and the directory with it. */
static void remove_set(const struct statestore *s, uint64_t term) {
	char path[STATESTORE_PATH_BYTES];
	set_path(s, term, path);
	DIR *d = opendir(path);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));)
		if (is_of_a_set(e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	(void)unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

/* Best effort: too much is kept otherwise, and the next rollback tries again. */
static void remove_older(const struct statestore *s, uint64_t term) {
	DIR *d = opendir(s->dir);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		uint64_t number;
		if (is_set(e->d_name, &number) && number != term)
			remove_set(s, number);
	}
	closedir(d);
}

/* ---- moving ---- */

/* So that tools can read the set where it lies. Nothing is lost without it. */
static void copy_small(const struct statestore *s, const char *set, const char *name) {
	char path[STATESTORE_PATH_BYTES + 16];
	uint8_t *bytes;
	size_t n;
	(void)snprintf(path, sizeof path, "%s/%s", s->dir, name);
	if (rv_file_read(path, SMALL_FILE_MAX_BYTES, &bytes, &n, NULL) != RV_OK)
		return;
	(void)snprintf(path, sizeof path, "%s/%s", set, name);
	(void)rv_file_write_atomic(path, bytes, n, LINK_MODE, NULL);
	free(bytes);
}

static enum rv_err sync_both(const struct statestore *s, const char *set, struct rv_errtext *et) {
	char in_set[STATESTORE_PATH_BYTES + 2];
	(void)snprintf(in_set, sizeof in_set, "%s/.", set);
	RV_TRY(rv_file_sync_parent(in_set, et));
	return statestore_sync(s, et);
}

static enum rv_err set_aside(const struct statestore *s, uint64_t to, uint64_t term, struct rv_errtext *et) {
	char set[STATESTORE_PATH_BYTES];
	set_path(s, term, set);
	RV_TRY(rv_dir_make(set, DIR_MODE, et));
	copy_small(s, set, "run.conf");
	copy_small(s, set, "run.link");
	RV_TRY(sync_both(s, set, et));
	RV_TRY(statestore_take_from(s, to, set, et));
	RV_TRY(sync_both(s, set, et));
	remove_older(s, term);
	return RV_OK;
}

enum rv_err statestore_rewind(const struct statestore *s, uint64_t round, uint64_t term,
							  struct statestore_given_up *out, struct rv_errtext *et) {
	struct sets sets;
	*out = (struct statestore_given_up){.what = GIVEN_UP_NOTHING};
	RV_TRY(find_sets(s, round, term, &sets, et));
	if (!sets.going.any && !sets.begun)
		return statestore_sync(s, et);
	bool later = sets.going.has_snapshot && sets.going.snapshot > sets.older.snapshot;
	if (sets.begun || !sets.older.has_snapshot || later) {
		RV_TRY(set_aside(s, round, term, et));
		struct found set = {.any = false};
		look_into(s, term, &set);
		out->what = set.has_snapshot ? GIVEN_UP_KEPT : set.any ? GIVEN_UP_KEPT_LOG : GIVEN_UP_NOTHING;
		set_path(s, term, out->dir);
		return RV_OK;
	}
	RV_ASSERT(sets.older.has_snapshot && sets.older.snapshot >= sets.going.snapshot); /* nothing later is lost */
	out->what = GIVEN_UP_REMOVED;
	set_path(s, sets.older_term, out->dir);
	RV_TRY(statestore_take_from(s, round, NULL, et));
	return statestore_sync(s, et);
}
