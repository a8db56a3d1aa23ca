/* sqlite.c: see sqlite.h. */
#include "coordinator/store/sqlite.h"

#include "base/assert.h"
#include "base/file.h"
#include "coordinator/store/schema.h"
#include "coordinator/store/sqlite_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INVITE_COLUMNS                                                                                                 \
	"SELECT id, made_us, ends_us, revoked_us, uses, (SELECT count(*) FROM came WHERE invite = id), approve FROM "      \
	"invites"

static const char *const sql[N_STATEMENTS] = {
	[PUT_RECORD] = "INSERT INTO records (id, type, round, body, hash) VALUES (?, ?, ?, ?, ?)",
	[PUT_MEMBER] = "INSERT OR REPLACE INTO members (member, key, name, addr, banned, record) VALUES (?, ?, ?, ?, ?, ?)",
	[PUT_COMMIT] =
		("INSERT INTO commits (round, attempt, participants, tokens, loss, tokens_per_s, tx_bytes, compute_us,"
		 " reduce_us, wall_us, duration_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
	[PUT_INVITE] = ("INSERT INTO invites (hash, made_us, uses, ends_us, approve, revoked_us)"
					" VALUES (?, ?, ?, ?, ?, ?)"),
	[SPEND_USE] = "INSERT OR IGNORE INTO came (member, invite) SELECT ?, id FROM invites WHERE hash = ?",
	[FIND_INVITE] = (INVITE_COLUMNS " WHERE hash = ?"),
	[GET_INVITE] = (INVITE_COLUMNS " WHERE id = ?"),
	[LAST_INVITES] = (INVITE_COLUMNS " ORDER BY id DESC LIMIT ?"),
	[CAME_BY] = "SELECT member FROM came WHERE invite = ? ORDER BY member LIMIT ?",
	[REVOKE_INVITE] = "UPDATE invites SET revoked_us = iif(revoked_us = 0, ?, revoked_us) WHERE id = ?",
	[DROP_ASKERS_OF_SPENT] = ("DELETE FROM askers WHERE invite = (SELECT id FROM invites WHERE hash = ?"
							  " AND uses <= (SELECT count(*) FROM came WHERE invite = id))"),
	[DROP_ASKERS_OF] = "DELETE FROM askers WHERE invite = ?",
	[PUT_ASKER] = "INSERT OR REPLACE INTO askers (key, name, invite, asked_us, state) VALUES (?, ?, ?, ?, ?)",
	[DROP_ASKER] = "DELETE FROM askers WHERE key = ?",
	[ALL_ASKERS] = "SELECT key, name, invite, asked_us, state FROM askers ORDER BY asked_us, key LIMIT ?",
	[PUT_RUN] = "INSERT OR REPLACE INTO run (key, value) VALUES (?, ?)",
	[GET_RUN] = "SELECT value FROM run WHERE key = ?",
	[ALL_RECORDS] = "SELECT id, body, hash FROM records ORDER BY id",
	[FIND_KEY] = "SELECT id, body, hash FROM records WHERE id = (SELECT record FROM members WHERE key = ?)",
	[FIND_MEMBER] = "SELECT id, body, hash FROM records WHERE id = (SELECT record FROM members WHERE member = ?)",
	[LAST_COMMITS] = ("SELECT * FROM (SELECT round, attempt, participants, tokens, loss, tokens_per_s, tx_bytes,"
					  " compute_us, reduce_us, wall_us, duration_us FROM commits ORDER BY round DESC LIMIT ?)"
					  " ORDER BY round"),
	[SUM_TOKENS] = "SELECT total(tokens) FROM commits",
	[DROP_COMMITS] = "DELETE FROM commits WHERE round >= ?",
	[BEGIN] = "BEGIN IMMEDIATE",
	[COMMIT] = "COMMIT",
};

enum { STORE_FRESH_BYTES = 512 };

/* ---- faults ---- */

enum rv_err sqlite_store_fail(const struct sqlite_store *s, struct rv_errtext *et, const char *doing) {
	int code = sqlite3_errcode(s->db) & 0xff;
	const char *what = sqlite3_errmsg(s->db);
	switch (code) {
	case SQLITE_FULL:
		return rv_fail(et, RV_E_FULL, "%s: %s: no space left on the disk: free some, then try again", s->path, doing);
	case SQLITE_BUSY:
		return rv_fail(et, RV_E_BUSY, "%s: in use by another process: only one may serve or change a run", s->path);
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		return rv_fail(et, RV_E_CORRUPT, "%s: %s: %s: restore the file from a copy", s->path, doing, what);
	case SQLITE_NOMEM:
		return rv_fail(et, RV_E_NOMEM, "%s: %s: no memory", s->path, doing);
	default:
		return rv_fail(et, RV_E_IO, "%s: %s: %s", s->path, doing, what);
	}
}

static enum rv_err run_sql(const struct sqlite_store *s, const char *text, const char *doing, struct rv_errtext *et) {
	return sqlite3_exec(s->db, text, NULL, NULL, NULL) == SQLITE_OK ? RV_OK : sqlite_store_fail(s, et, doing);
}

enum rv_err sqlite_store_step(struct sqlite_store *s, enum statement which, const char *doing, struct rv_errtext *et) {
	int rc = sqlite3_step(s->prepared[which]);
	enum rv_err e = rc == SQLITE_DONE ? RV_OK : sqlite_store_fail(s, et, doing);
	(void)sqlite3_reset(s->prepared[which]);
	return e;
}

struct sqlite_store *sqlite_store_of(struct store *store) {
	return (struct sqlite_store *)store;
}

void sqlite_store_roll_back(const struct sqlite_store *s) {
	if (s->db != NULL && !sqlite3_get_autocommit(s->db))
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- opening ---- */

static enum rv_err open_db(struct sqlite_store *s, const char *path, int flags, struct rv_errtext *et) {
	if (strlen(path) >= sizeof s->path)
		return rv_fail(et, RV_E_RANGE, "%s: path is longer than %zu bytes", path, sizeof s->path - 1);
	(void)snprintf(s->path, sizeof s->path, "%s", path);
	if (sqlite3_open_v2(path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
		return s->db ? sqlite_store_fail(s, et, "opening") : rv_fail(et, RV_E_NOMEM, "%s: no memory to open it", path);
	/* EXCLUSIVE before WAL: the WAL index then lives in our memory, and there is no -shm file. */
	return run_sql(s,
				   "PRAGMA locking_mode=EXCLUSIVE; PRAGMA mmap_size=0; PRAGMA journal_mode=WAL;"
				   "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; BEGIN EXCLUSIVE; COMMIT",
				   "opening", et);
}

/* Runs a statement that gives a row; *st holds it until it is finalized, also after a fault. */
static enum rv_err query(const struct sqlite_store *s, const char *text, const char *doing, sqlite3_stmt **st,
						 struct rv_errtext *et) {
	*st = NULL;
	bool row = sqlite3_prepare_v2(s->db, text, -1, st, NULL) == SQLITE_OK && sqlite3_step(*st) == SQLITE_ROW;
	return row ? RV_OK : sqlite_store_fail(s, et, doing);
}

static enum rv_err read_pragma(const struct sqlite_store *s, const char *text, int *out, struct rv_errtext *et) {
	sqlite3_stmt *st;
	enum rv_err e = query(s, text, text, &st, et);
	*out = e == RV_OK ? sqlite3_column_int(st, 0) : 0;
	(void)sqlite3_finalize(st);
	return e;
}

static enum rv_err check_version(const struct sqlite_store *s, struct rv_errtext *et) {
	int application = 0, version = 0;
	RV_TRY(read_pragma(s, "PRAGMA application_id", &application, et));
	RV_TRY(read_pragma(s, "PRAGMA user_version", &version, et));
	if (application != STORE_APPLICATION_ID)
		return rv_fail(et, RV_E_CORRUPT, "%s: not a store of rivulet-coordinator", s->path);
	if (version != STORE_SCHEMA_VERSION)
		return rv_fail(
			et, RV_E_UNSUPPORTED,
			"%s: its schema has version %d, this program knows version %d: use the release that made it, or a "
			"later one",
			s->path, version, (int)STORE_SCHEMA_VERSION);
	return RV_OK;
}

static enum rv_err prepare_all(struct sqlite_store *s, struct rv_errtext *et) {
	for (int i = 0; i < N_STATEMENTS; i++)
		if (sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->prepared[i], NULL) != SQLITE_OK)
			return sqlite_store_fail(s, et, "preparing a statement");
	return RV_OK;
}

static void release(struct sqlite_store *s) {
	for (int i = 0; i < N_STATEMENTS; i++)
		(void)sqlite3_finalize(s->prepared[i]);
	(void)sqlite3_close(s->db);
	free(s);
}

/* ---- what the run is ---- */

static enum rv_err put_run(struct sqlite_store *s, const char *key, const void *value, size_t n,
						   struct rv_errtext *et) {
	sqlite3_stmt *st = s->prepared[PUT_RUN];
	(void)sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	(void)sqlite3_bind_blob(st, 2, value, (int)n, SQLITE_STATIC);
	return sqlite_store_step(s, PUT_RUN, "writing a setting", et);
}

/* Copies the value of `key` to `out`. *n: its bytes, 0 if there is no such key. RV_E_CORRUPT: more
 * than `cap`. */
static enum rv_err get_run(struct sqlite_store *s, const char *key, void *out, size_t cap, size_t *n,
						   struct rv_errtext *et) {
	sqlite3_stmt *st = s->prepared[GET_RUN];
	enum rv_err e = RV_OK;
	*n = 0;
	(void)sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	int rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*n = (size_t)sqlite3_column_bytes(st, 0);
		if (*n > cap)
			e = rv_fail(et, RV_E_CORRUPT, "%s: '%s' has %zu bytes, at most %zu", s->path, key, *n, cap);
		else if (*n > 0) /* of an empty value SQLite has no address */
			memcpy(out, sqlite3_column_blob(st, 0), *n);
	} else if (rc != SQLITE_DONE) {
		e = sqlite_store_fail(s, et, "reading a setting");
	}
	(void)sqlite3_reset(st);
	return e;
}

static enum rv_err fill_new(struct sqlite_store *s, const uint8_t run_id[NET_RUN_ID_BYTES], const char *config,
							struct rv_errtext *et) {
	char pragmas[128];
	(void)snprintf(pragmas, sizeof pragmas, "PRAGMA application_id=%d; PRAGMA user_version=%d;",
				   (int)STORE_APPLICATION_ID, (int)STORE_SCHEMA_VERSION);
	RV_TRY(run_sql(s, "BEGIN IMMEDIATE", "making the tables", et));
	RV_TRY(run_sql(s, pragmas, "making the tables", et));
	RV_TRY(run_sql(s, STORE_SCHEMA, "making the tables", et));
	RV_TRY(prepare_all(s, et));
	RV_TRY(put_run(s, "run_id", run_id, NET_RUN_ID_BYTES, et));
	RV_TRY(put_run(s, "config", config, strlen(config), et));
	return run_sql(s, "COMMIT", "making the tables", et);
}

/* Removes what a creation leaves that fails, or was killed. */
static void remove_unfinished(const char *fresh) {
	static const char *const ends[] = {"", "-wal", "-journal"};
	char name[STORE_FRESH_BYTES + 16];
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		(void)snprintf(name, sizeof name, "%s%s", fresh, ends[i]);
		(void)unlink(name);
	}
}

/* Makes a store that is whole, all of it in the one file. */
static enum rv_err make_fresh(const char *fresh, const uint8_t run_id[NET_RUN_ID_BYTES], const char *config,
							  struct rv_errtext *et) {
	char wal[STORE_FRESH_BYTES + 16];
	struct sqlite_store *s = calloc(1, sizeof *s);
	if (s == NULL)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory to make it", fresh);
	enum rv_err e = open_db(s, fresh, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, et);
	if (e == RV_OK)
		e = fill_new(s, run_id, config, et);
	if (e != RV_OK)
		sqlite_store_roll_back(s);
	release(s);
	(void)snprintf(wal, sizeof wal, "%s-wal", fresh);
	if (e == RV_OK && access(wal, F_OK) == 0)
		e = rv_fail(et, RV_E_FULL, "%s: its last part could not be written: is the disk full?", fresh);
	return e;
}

enum rv_err sqlite_store_create(const char *path, const uint8_t run_id[NET_RUN_ID_BYTES], const char *config,
								struct rv_errtext *et) {
	struct stat st;
	char fresh[STORE_FRESH_BYTES];
	if (stat(path, &st) == 0)
		return rv_fail(et, RV_E_BUSY, "%s: there is a run already: choose another directory", path);
	if ((size_t)snprintf(fresh, sizeof fresh, "%s.new", path) >= sizeof fresh)
		return rv_fail(et, RV_E_RANGE, "%s: the path is too long", path);
	RV_ASSERT(strlen(config) < NET_MAX_CONFIG_BYTES);
	remove_unfinished(fresh);
	enum rv_err e = make_fresh(fresh, run_id, config, et);
	if (e == RV_OK && rename(fresh, path) != 0)
		e = rv_fail_errno(et, errno, "%s: cannot be renamed to %s", fresh, path);
	if (e != RV_OK) {
		remove_unfinished(fresh);
		return e;
	}
	e = rv_file_sync_parent(path, et);
	if (e != RV_OK)
		(void)unlink(path);
	return e;
}

static enum rv_err run(struct store *store, uint8_t run_id[NET_RUN_ID_BYTES], char config[NET_MAX_CONFIG_BYTES],
					   struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	size_t n = 0;
	RV_TRY(get_run(s, "run_id", run_id, NET_RUN_ID_BYTES, &n, et));
	if (n != NET_RUN_ID_BYTES)
		return rv_fail(et, RV_E_CORRUPT, "%s: the run has no number", s->path);
	RV_TRY(get_run(s, "config", config, NET_MAX_CONFIG_BYTES - 1, &n, et));
	config[n] = '\0';
	return RV_OK;
}

static enum rv_err set(struct store *store, const char *name, const char *value, struct rv_errtext *et) {
	return put_run(sqlite_store_of(store), name, value, strlen(value), et);
}

static enum rv_err get(struct store *store, const char *name, char *out, size_t cap, struct rv_errtext *et) {
	size_t n = 0;
	RV_TRY(get_run(sqlite_store_of(store), name, out, cap - 1, &n, et));
	out[n] = '\0';
	return RV_OK;
}

/* ---- copies ---- */

static enum rv_err check_pages(struct sqlite_store *s, struct rv_errtext *et) {
	sqlite3_stmt *st;
	enum rv_err e = query(s, "PRAGMA integrity_check(1)", "checking the file", &st, et);
	const char *answer = e == RV_OK ? (const char *)sqlite3_column_text(st, 0) : NULL;
	if (e == RV_OK && (answer == NULL || strcmp(answer, "ok") != 0))
		e = rv_fail(et, RV_E_CORRUPT, "%s is damaged (%s): it was not copied; restore an earlier backup", s->path,
					answer != NULL ? answer : "no answer");
	(void)sqlite3_finalize(st);
	return e;
}

static enum rv_err check_empty(const char *path, struct rv_errtext *et) {
	struct stat st;
	const int fd = open(path, O_WRONLY | O_CLOEXEC); /* a sandbox may refuse it */
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot be written", path);
	const int failed = fstat(fd, &st), why = errno;
	(void)close(fd);
	if (failed)
		return rv_fail_errno(et, why, "%s: cannot be written", path);
	return S_ISREG(st.st_mode) && st.st_size == 0
			   ? RV_OK
			   : rv_fail(et, RV_E_INVALID, "%s: not an empty file: a copy replaces nothing", path);
}

/* Copies the store, after a check of its pages: VACUUM makes pages anew from whatever it finds. */
static enum rv_err copy(struct store *store, const char *path, struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	sqlite3_stmt *st = NULL;
	RV_TRY(check_pages(s, et));
	RV_TRY(check_empty(path, et)); /* last: a backup that was killed may be gone by then, and its file too */
	bool done = sqlite3_prepare_v2(s->db, "VACUUM INTO ?", -1, &st, NULL) == SQLITE_OK &&
				sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(st) == SQLITE_DONE;
	enum rv_err e = done ? RV_OK : sqlite_store_fail(s, et, "copying it");
	(void)sqlite3_finalize(st);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", path);
}

/* ---- the table ---- */

static void close_store(struct store *store) {
	release(sqlite_store_of(store));
}

static const struct store_ops sqlite_ops = {.close = close_store,
											.append = sqlite_append,
											.append_many = sqlite_append_many,
											.each = sqlite_each,
											.away = sqlite_away,
											.commits = sqlite_commits,
											.total_tokens = sqlite_total_tokens,
											.invite_add = sqlite_invite_add,
											.invite_find = sqlite_invite_find,
											.invite_get = sqlite_invite_get,
											.invites = sqlite_invites,
											.invite_members = sqlite_invite_members,
											.invite_revoke = sqlite_invite_revoke,
											.asker_put = sqlite_asker_put,
											.asker_drop = sqlite_asker_drop,
											.askers = sqlite_askers,
											.run = run,
											.set = set,
											.get = get,
											.copy = copy};

enum rv_err sqlite_store_open(const char *path, struct store **out, struct rv_errtext *et) {
	*out = NULL;
	struct stat st;
	if (stat(path, &st) != 0)
		return rv_fail(et, RV_E_NOTFOUND, "%s: not there: `rivulet-coordinator new-run` makes a run", path);
	struct sqlite_store *s = calloc(1, sizeof *s);
	if (s == NULL)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory to open it", path);
	enum rv_err e = open_db(s, path, SQLITE_OPEN_READWRITE, et);
	if (e == RV_OK)
		e = check_version(s, et);
	if (e == RV_OK)
		e = prepare_all(s, et);
	if (e != RV_OK) {
		release(s);
		return e;
	}
	s->store.ops = &sqlite_ops;
	*out = &s->store;
	return RV_OK;
}
