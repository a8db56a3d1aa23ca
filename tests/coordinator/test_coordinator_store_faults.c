/* The store on a disk that fails: a shim between SQLite and the file system refuses the k-th write
 * or fsync, for every k that matters. What was acknowledged stays; what was refused is absent or
 * whole; a full disk may be tried again. The shim has no shared-memory methods, so it also shows
 * that the store needs none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/event.h"
#include "coordinator/commands/opened_run.h"
#include "coordinator/store/run_keys.h"
#include "coordinator/store/sqlite.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

enum { FAULTS_MAX = 200, APPENDS = 6 };

/* ---- the shim ---- */

/* The plan of one trial. SQLite's interface has no place for it, so it is the one global of this
 * test. */
static struct {
	int calls_left; /* writes and fsyncs that still succeed; negative: all */
	int code;       /* what the others return */
	bool write, sync;
} plan = {.calls_left = -1};

struct shim_file {
	sqlite3_file base;
	sqlite3_file *real; /* right behind this struct */
};

static sqlite3_file *real_of(sqlite3_file *f) {
	return ((struct shim_file *)f)->real;
}

static bool refuses(bool counts) {
	if (!counts || plan.calls_left < 0)
		return false;
	if (plan.calls_left == 0)
		return true;
	plan.calls_left--;
	return false;
}

static int shim_close(sqlite3_file *f) {
	return real_of(f)->pMethods->xClose(real_of(f));
}
static int shim_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at) {
	return real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}
static int shim_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at) {
	return refuses(plan.write) ? plan.code : real_of(f)->pMethods->xWrite(real_of(f), p, n, at);
}
static int shim_truncate(sqlite3_file *f, sqlite3_int64 n) {
	return real_of(f)->pMethods->xTruncate(real_of(f), n);
}
static int shim_sync(sqlite3_file *f, int flags) {
	return refuses(plan.sync) ? plan.code : real_of(f)->pMethods->xSync(real_of(f), flags);
}
static int shim_size(sqlite3_file *f, sqlite3_int64 *n) {
	return real_of(f)->pMethods->xFileSize(real_of(f), n);
}
static int shim_lock(sqlite3_file *f, int level) {
	return real_of(f)->pMethods->xLock(real_of(f), level);
}
static int shim_unlock(sqlite3_file *f, int level) {
	return real_of(f)->pMethods->xUnlock(real_of(f), level);
}
static int shim_reserved(sqlite3_file *f, int *out) {
	return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}
static int shim_control(sqlite3_file *f, int op, void *arg) {
	return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}
static int shim_sector(sqlite3_file *f) {
	return real_of(f)->pMethods->xSectorSize(real_of(f));
}
static int shim_device(sqlite3_file *f) {
	return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static const sqlite3_io_methods shim_methods = {.iVersion = 1,
												.xClose = shim_close,
												.xRead = shim_read,
												.xWrite = shim_write,
												.xTruncate = shim_truncate,
												.xSync = shim_sync,
												.xFileSize = shim_size,
												.xLock = shim_lock,
												.xUnlock = shim_unlock,
												.xCheckReservedLock = shim_reserved,
												.xFileControl = shim_control,
												.xSectorSize = shim_sector,
												.xDeviceCharacteristics = shim_device};

static int shim_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *f, int flags, int *out_flags) {
	sqlite3_vfs *real_vfs = vfs->pAppData;
	struct shim_file *s = (struct shim_file *)f;
	s->real = (sqlite3_file *)(s + 1);
	int rc = real_vfs->xOpen(real_vfs, name, s->real, flags, out_flags);
	s->base.pMethods = rc == SQLITE_OK ? &shim_methods : NULL;
	return rc;
}

static void use_shim(sqlite3_vfs *shim) {
	sqlite3_vfs *real = sqlite3_vfs_find(NULL);
	*shim = *real;
	shim->pNext = NULL;
	shim->zName = "shim";
	shim->pAppData = real;
	shim->szOsFile = (int)sizeof(struct shim_file) + real->szOsFile;
	shim->xOpen = shim_open;
	assert_int_equal(sqlite3_vfs_register(shim, 1), SQLITE_OK);
}

/* ---- trials ---- */

static const uint8_t run_id[NET_RUN_ID_BYTES] = "0123456789abcdef";

struct place {
	char dir[64], path[96];
};

static void make_place(struct place *p) {
	scratch_make(p->dir, sizeof p->dir);
	(void)snprintf(p->path, sizeof p->path, "%s/store.db", p->dir);
	assert_ok(sqlite_store_create(p->path, run_id, "rounds = 3\n", &et));
}

static void remove_place(const struct place *p) {
	scratch_remove_only(p->dir,
						(const char *const[]){"store.db", "store.db-wal", "store.db-journal", "store.db-shm", NULL});
}

static enum rv_err append(struct store *s, uint64_t id) {
	struct core_record rec = {.id = id, .type = CORE_COMMIT, .round = id};
	struct commit_stats stats = {.round = id};
	struct rv_errtext et = {0};
	enum rv_err e = s->ops->append(s, &rec, &stats, &et);
	assert_int_equal(e == RV_OK, et.text[0] == '\0');
	return e;
}

static enum rv_err count(void *ctx, const struct core_record *rec, struct rv_errtext *et) {
	(void)et;
	uint64_t *n = ctx;
	assert_int_equal(rec->id, *n + 1);
	*n = rec->id;
	return RV_OK;
}

/* The records in the file, in order and without a gap. */
static uint64_t records_in(const struct place *p) {
	struct store *s = NULL;
	uint64_t n = 0;
	struct rv_errtext et = {0};
	if (sqlite_store_open(p->path, &s, &et) != RV_OK || s->ops->each(s, count, &n, &et) != RV_OK)
		fail_msg("after the fault: %s", et.text);
	store_close(s);
	return n;
}

/* The disk is full from its k-th write on, then has room again. */
static void test_full_disk_may_be_tried_again(void **state) {
	(void)state;
	bool reached = false;
	for (int k = 0; k < FAULTS_MAX && !reached; k++) {
		struct place p;
		struct store *s = NULL;
		struct rv_errtext et = {0};
		uint64_t id = 1;
		make_place(&p);
		assert_int_equal(sqlite_store_open(p.path, &s, &et), RV_OK);
		plan.calls_left = k;
		plan.code = SQLITE_FULL;
		plan.write = true;
		plan.sync = false;
		while (id <= APPENDS && append(s, id) == RV_OK)
			id++;
		reached = id > APPENDS;
		if (!reached)
			assert_int_equal(append(s, id), RV_E_FULL);
		plan.calls_left = -1;
		for (uint64_t until = id + 3; id < until; id++)
			assert_int_equal(append(s, id), RV_OK);
		store_close(s);
		assert_int_equal(records_in(&p), id - 1);
		remove_place(&p);
	}
	assert_true(reached);
}

/* A write or an fsync fails for good; the process stops there, as after a crash. */
static void fail_and_stop(int code, bool write, bool sync, enum rv_err want) {
	bool reached = false;
	for (int k = 0; k < FAULTS_MAX && !reached; k++) {
		struct place p;
		struct store *s = NULL;
		struct rv_errtext et = {0};
		uint64_t acknowledged = 0;
		enum rv_err e = RV_OK;
		make_place(&p);
		assert_int_equal(sqlite_store_open(p.path, &s, &et), RV_OK);
		plan.calls_left = k;
		plan.code = code;
		plan.write = write;
		plan.sync = sync;
		while (acknowledged < APPENDS && (e = append(s, acknowledged + 1)) == RV_OK)
			acknowledged++;
		reached = e == RV_OK;
		if (!reached)
			assert_int_equal(e, want);
		store_close(s);
		plan.calls_left = -1;
		uint64_t n = records_in(&p);
		assert_in_range(n, acknowledged, acknowledged + 1);
		remove_place(&p);
	}
	assert_true(reached);
}

static void test_failing_writes(void **state) {
	(void)state;
	fail_and_stop(SQLITE_IOERR_WRITE, true, false, RV_E_IO);
}

static void test_failing_fsyncs(void **state) {
	(void)state;
	fail_and_stop(SQLITE_IOERR_FSYNC, false, true, RV_E_IO);
}

/* The disk of a copy is full at its k-th write: the fault says so, and the store goes on. */
static void test_a_copy_to_a_full_disk(void **state) {
	(void)state;
	struct place p, copy;
	struct store *s = NULL;
	bool reached = false;
	make_place(&p);
	make_place(&copy);
	struct rv_errtext et = {0};
	assert_int_equal(sqlite_store_open(p.path, &s, &et), RV_OK);
	for (int k = 0; k < FAULTS_MAX && !reached; k++) {
		assert_int_equal(truncate(copy.path, 0), 0);
		plan.calls_left = k;
		plan.code = SQLITE_FULL;
		plan.write = true;
		plan.sync = false;
		enum rv_err e = s->ops->copy(s, copy.path, &et);
		plan.calls_left = -1;
		reached = e == RV_OK;
		assert_true(reached || e == RV_E_FULL);
		assert_true(reached || strstr(et.text, "no space left on the disk") != NULL);
		assert_int_equal(append(s, (uint64_t)k + 1), RV_OK);
	}
	store_close(s);
	assert_true(reached);
	remove_place(&copy);
	remove_place(&p);
}

static void remove_run(const struct place *p) {
	static const char *const names[] = {"run.key", "rounds.jsonl", "lock"};
	char path[128];
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", p->dir, names[i]);
		(void)unlink(path);
	}
	remove_place(p);
}

static bool says(FILE *f, const char *words) {
	char line[1024];
	rewind(f);
	while (fgets(line, sizeof line, f) != NULL)
		if (strstr(line, words) != NULL)
			return true;
	return false;
}

/* A coordinator that is started on a full disk serves, and writes what it could not write when it
 * is started again. */
static void test_a_run_opens_on_a_full_disk(void **state) {
	(void)state;
	static const struct address at = {.host = "example.org", .port = 7433};
	struct place p;
	struct run_dir d;
	struct identity root = {.key = {0}};
	struct run_keys keys;
	static struct opened_run r;
	struct rv_errtext et = {0};
	struct rv_events *events = NULL;
	FILE *said = tmpfile();
	assert_non_null(said);
	make_place(&p);
	assert_int_equal(run_dir_of(p.dir, &d, &et), RV_OK);
	assert_int_equal(identity_make(&root, &et), RV_OK);
	assert_int_equal(run_keys_make(&root, run_id, 1, &keys, &et), RV_OK);
	assert_int_equal(run_keys_store(d.key, &keys, &et), RV_OK);
	assert_int_equal(
		rv_events_new(&(struct rv_events_config){.out = said, .json = true, .level = RV_INFO}, &events, &et), RV_OK);

	plan.calls_left = 0;
	plan.code = SQLITE_FULL;
	plan.write = true;
	plan.sync = false;
	assert_int_equal(opened_run_open(&d, 0, &at, NULL, NULL, &r, &et), RV_E_FULL); /* not to be served */
	if (opened_run_open(&d, 0, &at, NULL, events, &r, &et) != RV_OK)
		fail_msg("on a full disk: %s", et.text);
	assert_int_equal(service_fault(r.service, &et), RV_OK);
	assert_true(says(said, "advertise_not_kept"));
	opened_run_close(&r);

	plan.calls_left = -1;
	assert_int_equal(opened_run_open(&d, 0, &at, NULL, events, &r, &et), RV_OK);
	opened_run_close(&r);
	plan.calls_left = 0; /* told the same again there is nothing to write */
	assert_int_equal(opened_run_open(&d, 0, &at, NULL, NULL, &r, &et), RV_OK);
	opened_run_close(&r);
	plan.calls_left = -1;
	rv_events_free(events);
	(void)fclose(said);
	remove_run(&p);
}

int main(void) {
	static sqlite3_vfs shim;
	assert_int_equal(sqlite3_initialize(), SQLITE_OK);
	use_shim(&shim);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_disk_may_be_tried_again),
		cmocka_unit_test(test_a_run_opens_on_a_full_disk),
		cmocka_unit_test(test_failing_writes),
		cmocka_unit_test(test_failing_fsyncs),
		cmocka_unit_test(test_a_copy_to_a_full_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
