/* backup.c: see backup.h. */
#include "coordinator/backup/backup.h"

#include "base/clock.h"
#include "base/file.h"
#include "coordinator/backup/backup_encryption.h"
#include "coordinator/backup/backup_file.h"
#include "coordinator/service/service.h"
#include "coordinator/store/sqlite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { SECRET_MODE = 0600, DIR_MODE = 0700, PATH_BYTES = 560 /* a temporary name of base/file.h, and more */ };
static const uint64_t SEQ_JUMP = UINT64_C(1) << 32;

/* ---- what a store holds ---- */

struct reading {
	struct service *service;
	struct backup_info *info;
};

static enum rv_err read_record(void *ctx, const struct core_record *rec, struct rv_errtext *et) {
	struct reading *r = ctx;
	r->info->last_id = rec->id;
	r->info->facts += rec->type != CORE_SEQ;
	if (rec->type == CORE_ROLLBACK) {
		r->info->term = rec->term;
		r->info->round = rec->round;
	}
	r->info->doc_seq = rec->doc_seq > r->info->doc_seq ? rec->doc_seq : r->info->doc_seq;
	if (rec->type == CORE_COMMIT)
		r->info->round = rec->round + 1;
	return service_replay(r->service, rec, et);
}

/* Fills *out from the store: replays every record, as a coordinator that starts. */
static enum rv_err inspect(struct store *s, struct backup_info *out, struct rv_errtext *et) {
	char config[NET_MAX_CONFIG_BYTES];
	struct service_config cfg = {.config = config, .store = s};
	struct reading r = {.info = out};
	*out = (struct backup_info){.facts = 0};
	RV_TRY(s->ops->run(s, cfg.run_id, config, et));
	memcpy(out->run_id, cfg.run_id, sizeof out->run_id);
	RV_TRY(service_new(&cfg, 0, &r.service, et));
	enum rv_err e = s->ops->each(s, read_record, &r, et);
	service_free(r.service);
	return e;
}

static enum rv_err inspect_file(const char *path, struct backup_info *out, struct rv_errtext *et) {
	struct store *s = NULL;
	enum rv_err e = sqlite_store_open(path, &s, et);
	if (e == RV_OK)
		e = inspect(s, out, et);
	store_close(s);
	return e;
}

/* ---- files ---- */

/* The file of a store, and what SQLite keeps beside it. */
static const char *const store_ends[] = {"", "-wal", "-journal", "-shm"};
enum { STORE_ENDS = sizeof store_ends / sizeof store_ends[0] };

static void remove_store(const char *path) {
	char name[PATH_BYTES + 16];
	for (int i = 0; i < STORE_ENDS; i++) {
		(void)snprintf(name, sizeof name, "%s%s", path, store_ends[i]);
		(void)unlink(name);
	}
}

static bool is_store_end(const char *end) {
	for (int i = 0; i < STORE_ENDS; i++)
		if (strcmp(end, store_ends[i]) == 0)
			return true;
	return false;
}

/* Checks that all of a closed store is in the one file. */
static enum rv_err check_whole(const char *path, struct rv_errtext *et) {
	char wal[PATH_BYTES + 16];
	(void)snprintf(wal, sizeof wal, "%s-wal", path);
	return access(wal, F_OK) != 0
			   ? RV_OK
			   : rv_fail(et, RV_E_FULL, "%s: its last changes could not be moved into it: is the disk full?", path);
}

/* ---- making ---- */

/* Removes what killed backups left beside `path`: "NAME.tmp-XXXXXX" (base/file.h) and what SQLite
 * keeps beside it; one may be left without the other. */
static void remove_left(const struct rv_file_writer *w) {
	static const char mark[] = ".tmp-";
	enum { MARK = sizeof mark - 1, RANDOM = 6 };
	const char *path = w->path, *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	char dir[PATH_BYTES], left[PATH_BYTES + NAME_MAX];
	size_t n = strlen(name);
	(void)snprintf(dir, sizeof dir, "%.*s.", (int)(name - path), path);
	DIR *d = opendir(dir);
	for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		bool ours = strncmp(e->d_name, name, n) == 0 && strncmp(e->d_name + n, mark, MARK) == 0;
		if (!ours || strlen(e->d_name + n) < MARK + RANDOM || !is_store_end(e->d_name + n + MARK + RANDOM))
			continue;
		(void)snprintf(left, sizeof left, "%.*s%s", (int)(name - path), path, e->d_name);
		if (strcmp(left, w->tmp) != 0)
			(void)unlink(left);
	}
	if (d != NULL)
		(void)closedir(d);
}

static enum rv_err fill(const struct run_dir *d, struct rv_file_writer *w, const struct backup_source *from,
						struct backup_info *out, struct rv_errtext *et) {
	struct run_keys keys = {.cert = {.serial = 0}};
	RV_TRY(from->copy(from->ctx, w->tmp, et));
	enum rv_err e = inspect_file(w->tmp, out, et);
	if (e == RV_E_CORRUPT) /* as what it is a copy of */
		return rv_fail_context(et, e, "%s is damaged, and no backup was made: restore an earlier one; found in a copy",
							   d->store);
	RV_TRY(e);
	RV_TRY(check_whole(w->tmp, et));
	RV_TRY(run_keys_load(d->key, &keys, et));
	e = backup_file_seal(w, &keys, et);
	run_keys_release(&keys);
	return e;
}

static enum rv_err make_locked(const struct run_dir *d, const char *path, const struct backup_source *from,
							   struct backup_info *out, struct rv_errtext *et) {
	struct rv_file_writer w;
	RV_TRY(rv_file_writer_begin(&w, path, SECRET_MODE, et));
	remove_left(&w);
	enum rv_err e = fill(d, &w, from, out, et);
	if (e == RV_OK)
		return rv_file_writer_commit(&w, et);
	remove_store(w.tmp);
	rv_file_writer_abandon(&w);
	return e;
}

/* Makes the backup under a lock on the key: backups of a run are made one after another. */
enum rv_err backup_make(const struct run_dir *d, const char *path, const struct backup_source *from,
						struct backup_info *out, struct rv_errtext *et) {
	int lock = open(d->key, O_RDONLY | O_CLOEXEC);
	if (lock < 0)
		return rv_fail_errno(et, errno, "%s: cannot be opened", d->key);
	(void)flock(lock, LOCK_EX); /* where there are no such locks, two at once are their maker's fault */
	enum rv_err e = make_locked(d, path, from, out, et);
	(void)close(lock);
	return e;
}

/* A name in the run's directory for a backup that is on its way from or to an encrypted one. */
static void plain_name(const struct run_dir *d, char out[PATH_BYTES]) {
	(void)snprintf(out, PATH_BYTES, "%s/backup.plain", d->dir);
}

enum rv_err backup_make_encrypted(const struct run_dir *d, const char *path, const char *passphrase,
								  const struct backup_source *from, struct backup_info *out, struct rv_errtext *et) {
	char plain[PATH_BYTES];
	plain_name(d, plain);
	RV_TRY(backup_make(d, plain, from, out, et));
	enum rv_err e = backup_encrypt(plain, path, passphrase, et);
	(void)unlink(plain);
	return e;
}

/* ---- restoring ---- */

/* Appends a record that lets documents go on above whatever was announced after the backup was
 * made, or after it was restored before: no run announces 2^20 documents a second. */
static enum rv_err jump(struct store *s, const struct backup_info *info, struct rv_errtext *et) {
	uint64_t by_clock = (uint64_t)(rv_clock_wall_us() / RV_US_PER_S) << 20, by_count = info->doc_seq + SEQ_JUMP;
	struct core_record rec = {.id = info->last_id + 1,
							  .type = CORE_SEQ,
							  .doc_seq = by_clock > by_count ? by_clock : by_count,
							  .round = info->round};
	return s->ops->append(s, &rec, NULL, et);
}

static enum rv_err prepare(const char *fresh, struct backup_info *info, struct rv_errtext *et) {
	struct store *s = NULL;
	enum rv_err e = sqlite_store_open(fresh, &s, et);
	if (e == RV_OK)
		e = inspect(s, info, et);
	if (e == RV_OK)
		e = jump(s, info, et);
	store_close(s);
	return e == RV_OK ? check_whole(fresh, et) : e;
}

static enum rv_err compare(const struct run_dir *d, const struct backup_info *is, const struct backup_info *was,
						   bool force, struct rv_errtext *et) {
	if (memcmp(is->run_id, was->run_id, sizeof is->run_id) != 0)
		return rv_fail(et, RV_E_INVALID, "%s holds another run than the backup: name another --dir", d->dir);
	if (force)
		return RV_OK;
	if (is->term > was->term) /* which may have had more records all the same */
		return rv_fail(et, RV_E_INVALID,
					   "%s is in term %" PRIu64 " (the run was rolled back), the backup is of term %" PRIu64
					   ". Workers of the later term cannot go on with it. --force restores it anyway",
					   d->dir, is->term, was->term);
	if (is->facts <= was->facts)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID,
				   "%s is newer than the backup (round %" PRIu64 ", record %" PRIu64 "; the backup: round %" PRIu64
				   ", record %" PRIu64
				   "). Workers that are ahead of it cannot go on with it. --force restores it anyway",
				   d->dir, is->round, is->facts, was->round, was->facts);
}

/* Compares what the backup would replace, if anything, with the backup. */
static enum rv_err check_existing(const struct run_dir *d, const struct backup_info *was, bool force,
								  struct rv_errtext *et) {
	struct backup_info is;
	struct rv_errtext why = {0};
	if (access(d->store, F_OK) != 0)
		return RV_OK;
	if (inspect_file(d->store, &is, &why) == RV_OK)
		return compare(d, &is, was, force, et);
	return force ? RV_OK
				 : rv_fail(et, RV_E_INVALID,
						   "what is there cannot be compared with the backup (%.300s); --force replaces it", why.text);
}

/* Refuses keys that are not of the run in the backup, and a run in `d` of another root key. */
static enum rv_err check_keys(const struct run_dir *d, const struct run_keys *keys, const struct backup_info *info,
							  const char *path, struct rv_errtext *et) {
	struct run_keys is = {.cert = {.serial = 0}};
	RV_TRY(run_keys_check(keys, info->run_id, path, et));
	if (access(d->key, F_OK) != 0)
		return RV_OK;
	RV_TRY(run_keys_load(d->key, &is, et));
	bool same = memcmp(is.root, keys->root, NET_KEY_BYTES) == 0;
	run_keys_release(&is);
	return same ? RV_OK : rv_fail(et, RV_E_INVALID, "%s is the key of another run: name another --dir", d->key);
}

/* Writes the backup's run.key, unless a newer one is there: workers refuse the older one. */
static enum rv_err put_keys(const struct run_dir *d, const struct run_keys *keys, struct rv_errtext *et) {
	struct run_keys is = {.cert = {.serial = 0}};
	bool newer =
		access(d->key, F_OK) == 0 && run_keys_load(d->key, &is, NULL) == RV_OK && is.cert.serial > keys->cert.serial;
	enum rv_err e = run_keys_store(d->key, newer ? &is : keys, et); /* and syncs the directory */
	run_keys_release(&is);
	return e;
}

static enum rv_err move(const char *from, const char *to, struct rv_errtext *et) {
	if (rename(from, to) == 0 || errno == ENOENT)
		return RV_OK;
	return rv_fail_errno(et, errno, "%s: cannot be renamed to %s", from, to);
}

static enum rv_err swap_in(const struct run_dir *d, const char *fresh, const struct run_keys *keys,
						   struct rv_errtext *et) {
	char kept[PATH_BYTES], wal[PATH_BYTES], kept_wal[PATH_BYTES + 16];
	(void)snprintf(kept, sizeof kept, "%s.replaced", d->store);
	(void)snprintf(wal, sizeof wal, "%s-wal", d->store);
	(void)snprintf(kept_wal, sizeof kept_wal, "%s-wal", kept);
	if (access(d->store, F_OK) == 0)
		remove_store(kept);
	/* The store before its log: one without the other would be an older state. */
	RV_TRY(move(d->store, kept, et));
	RV_TRY(move(wal, kept_wal, et));
	if (rename(fresh, d->store) != 0)
		return rv_fail_errno(et, errno, "%s: cannot be renamed to %s", fresh, d->store);
	return put_keys(d, keys, et);
}

static enum rv_err restore_locked(const char *path, const struct run_dir *d, bool force, struct backup_info *out,
								  struct rv_errtext *et) {
	char fresh[PATH_BYTES];
	struct run_keys keys = {.cert = {.serial = 0}};
	(void)snprintf(fresh, sizeof fresh, "%s.restored", d->store);
	remove_store(fresh); /* of an attempt that was killed */
	enum rv_err e = backup_file_open(path, fresh, &keys, et);
	if (e == RV_OK && (e = prepare(fresh, out, et)) != RV_OK)
		(void)rv_fail_context(et, e, "%s", path);
	if (e == RV_OK)
		e = check_existing(d, out, force, et);
	if (e == RV_OK)
		e = check_keys(d, &keys, out, path, et);
	if (e == RV_OK)
		e = swap_in(d, fresh, &keys, et);
	if (e != RV_OK)
		remove_store(fresh);
	run_keys_release(&keys);
	return e;
}

/* Removes a directory that was made for nothing, unless it is no longer empty. */
static void remove_empty(const char *dir) {
	char lock[PATH_BYTES];
	(void)snprintf(lock, sizeof lock, "%s/lock", dir);
	(void)unlink(lock);
	(void)unlinkat(AT_FDCWD, dir, AT_REMOVEDIR);
}

/* Restores an encrypted backup from a plain copy of it in the run's directory. */
static enum rv_err restore_encrypted(const char *path, const char *passphrase, const struct run_dir *d, bool force,
									 struct backup_info *out, struct rv_errtext *et) {
	char plain[PATH_BYTES];
	if (passphrase == NULL)
		return rv_fail(et, RV_E_AUTH, "%s is encrypted: name the file with its passphrase, --passphrase-file", path);
	plain_name(d, plain);
	enum rv_err e = backup_decrypt(path, plain, passphrase, et);
	if (e == RV_OK)
		e = restore_locked(plain, d, force, out, et);
	(void)unlink(plain);
	return e;
}

enum rv_err backup_restore(const char *path, const char *passphrase, const struct run_dir *d, bool force,
						   struct backup_info *out, struct rv_errtext *et) {
	int lock = -1;
	bool made = access(d->dir, F_OK) != 0;
	RV_TRY(rv_dir_make(d->dir, DIR_MODE, et));
	enum rv_err e = rv_dir_lock(d->dir, &lock, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "stop the coordinator first");
	e = backup_is_encrypted(path) ? restore_encrypted(path, passphrase, d, force, out, et)
								  : restore_locked(path, d, force, out, et);
	if (e != RV_OK && made)
		remove_empty(d->dir);
	rv_dir_unlock(lock);
	return e;
}
