/* backup and restore, with the real program: a run goes on from its backup, with its key and its
 * members; an older state replaces a newer one only when forced; kill -9 leaves a whole backup or
 * none. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/coordinator/coordinator_process.h"
#include "tests/coordinator/run_chunks.h"

enum { TOKENS_PAGE_AT = 4 * 4096 }; /* the fourth table (coordinator/store/schema.h) */
static char out[4096];

struct scene {
	struct coordinator c;
	char place[64], file[96], dir[96]; /* a directory with the backup, and what it is restored to */
	struct client k;
};

#define RUN(...) coordinator_command(out, sizeof out, (const char *const[]){__VA_ARGS__, NULL})

static void expect(const char *words) {
	if (strstr(out, words) == NULL)
		fail_msg("'%s' is not in: %s", words, out);
}

static int set_up(void **state) {
	struct scene *s = calloc(1, sizeof *s);
	struct invite in;
	coordinator_make(&s->c, "rounds = 10\nmin-workers = 1\nsilence-ms = 3600000\n");
	scratch_make(s->place, sizeof s->place);
	(void)snprintf(s->file, sizeof s->file, "%s/run.backup", s->place);
	(void)snprintf(s->dir, sizeof s->dir, "%s/coordinator", s->place);
	client_init(&s->k, &s->c, 0, NULL);
	coordinator_invite(&s->c, &in);
	assert_int_equal(client_join(&s->k, &s->c, &in, NULL), 200);
	*state = s;
	return 0;
}

static int tear_down(void **state) {
	struct scene *s = *state;
	client_release(&s->k);
	coordinator_remove(&s->c); /* and asserts that nothing else was left there */
	scratch_remove(s->place);
	free(s);
	return 0;
}

/* One round by the one worker; returns the number of the document that announces its commit. */
static uint64_t commit_round(struct scene *s, uint64_t round) {
	static struct document d;
	static uint64_t seq;
	memset(&d, 0, sizeof d);
	for (int phase = WORKER_TRAINING; phase <= WORKER_VOTED; phase++) {
		struct report rep = {.boot = 1,
							 .phase = WORKER_SYNCING,
							 .n_chunks = run_chunks("", 0),
							 .n_candidates = 1,
							 .candidates[0].addr = ":7000"};
		if (d.seq == 0) {
			rep.seq = ++seq;
			assert_int_equal(client_report(&s->k, &rep), 204);
			assert_int_equal(client_ask(&s->k, "/v1/document", NULL, 0)->status, 200);
			assert_int_equal(client_document(&s->k, 0, &d), 200);
			assert_int_equal(d.round, round);
		}
		if (phase == WORKER_REDUCING)
			continue;
		rep = (struct report){.boot = 1,
							  .seq = ++seq,
							  .phase = (uint8_t)phase,
							  .round = round,
							  .attempt = phase == WORKER_VOTED ? d.attempt : 0,
							  .n_chunks = run_chunks("", 0),
							  .chain = d.chain,
							  .commitment.n = phase >= WORKER_READY,
							  .n_candidates = 1,
							  .candidates[0].addr = ":7000"};
		assert_int_equal(client_report(&s->k, &rep), 204);
		assert_int_equal(client_document(&s->k, d.seq - 1, &d), 200);
		for (int i = 0; i < 3 && phase != WORKER_TRAINING && (phase == WORKER_READY) != (d.phase == RUN_REDUCE); i++)
			assert_int_equal(client_document(&s->k, d.seq, &d), 200);
	}
	assert_int_equal(d.round, round + 1);
	return d.seq;
}

static void test_a_run_goes_on_from_its_backup(void **state) {
	struct scene *s = *state;
	static struct document d;
	struct stat st;
	uint64_t seq = commit_round(s, 0);
	assert_int_equal(RUN("backup", "--dir", s->c.dir, s->file), 0);
	expect("at round 1");
	assert_int_equal(stat(s->file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	process_kill(&s->c.e.coordinator);
	assert_int_equal(RUN("restore", "--dir", s->dir, s->file), 0);
	expect("at round 1");
	client_release(&s->k);
	struct coordinator again = s->c;
	(void)snprintf(again.e.dir, sizeof again.e.dir, "%s", s->place); /* where it serves the copy in s->dir */
	coordinator_start(&again);
	client_init(&s->k, &again, 0, NULL);                           /* the same key, which it asks the server for */
	assert_int_equal(client_join(&s->k, &again, NULL, NULL), 200); /* still a member */
	assert_int_equal(client_document(&s->k, seq, &d), 200);
	assert_int_equal(d.round, 1);
	assert_true(d.seq > seq + 1000000); /* above whatever was announced since */
	assert_memory_equal(d.run_id, s->c.run_id, sizeof d.run_id);
	assert_int_equal(coordinator_stop(&again), 0);
	coordinator_start(&s->c);
}

static void test_offline_too(void **state) {
	struct scene *s = *state;
	assert_int_equal(coordinator_stop(&s->c), 0);
	assert_int_equal(RUN("backup", "--dir", s->c.dir, s->file), 0);
	assert_int_equal(RUN("restore", "--dir", s->c.dir, s->file), 0); /* to where it is: nothing newer there */
	assert_int_equal(RUN("restore", "--dir", s->dir, s->file), 0);
	coordinator_start(&s->c);
}

static void test_an_older_state_is_refused(void **state) {
	struct scene *s = *state;
	assert_int_equal(RUN("backup", "--dir", s->c.dir, s->file), 0);
	commit_round(s, 0);
	assert_int_equal(RUN("restore", "--dir", s->c.dir, s->file), 1);
	expect("stop the coordinator first");
	assert_int_equal(coordinator_stop(&s->c), 0);
	assert_int_equal(RUN("restore", "--dir", s->c.dir, s->file), 1);
	expect("is newer than the backup (round 1,");
	expect("--force");
	assert_int_equal(RUN("status", "--dir", s->c.dir), 0);
	expect("\"round\":1,");
	assert_int_equal(RUN("restore", "--force", "--dir", s->c.dir, s->file), 0);
	expect("--to-round 0 --force");
	assert_int_equal(RUN("status", "--dir", s->c.dir), 0);
	expect("\"round\":0,");
	coordinator_start(&s->c);
}

/* One bit of the key, wherever it stands in the file: in a record, and in the table of members. */
static void flip_key_bits(const char *path, const uint8_t key[NET_KEY_BYTES]) {
	static uint8_t bytes[1 << 20];
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	size_t n = fread(bytes, 1, sizeof bytes, f);
	int found = 0;
	for (uint8_t *at = bytes; (at = memmem(at, n - (size_t)(at - bytes), key, NET_KEY_BYTES)) != NULL; found++)
		*at++ ^= 1;
	assert_true(found > 0);
	rewind(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Somebody has reported who is two rounds ahead of what the coordinator knows. */
static void report_ahead(struct scene *s) {
	struct report rep = {.boot = 2,
						 .seq = 1,
						 .phase = WORKER_TRAINING,
						 .round = 2,
						 .n_chunks = run_chunks("", 0),
						 .n_candidates = 1,
						 .candidates[0].addr = ":7000"};
	rep.chain = rv_hash_of("later", 5);
	client_release(&s->k);
	client_init(&s->k, &s->c, 0, NULL);
	assert_int_equal(client_report(&s->k, &rep), 204);
}

/* It has more records than what is there, and yet it is older: the run was taken back since. */
static void test_an_older_term_is_refused(void **state) {
	struct scene *s = *state;
	char more[128];
	(void)snprintf(more, sizeof more, "%s/more.backup", s->place);
	assert_int_equal(RUN("backup", "--dir", s->c.dir, s->file), 0);
	(void)commit_round(s, 0);
	(void)commit_round(s, 1);
	assert_int_equal(RUN("backup", "--dir", s->c.dir, more), 0);
	expect("at round 2");
	assert_int_equal(coordinator_stop(&s->c), 0);
	assert_int_equal(RUN("restore", "--force", "--dir", s->c.dir, s->file), 0);
	coordinator_start(&s->c);
	report_ahead(s);
	assert_int_equal(RUN("rollback", "--dir", s->c.dir, "--to-round", "0", "--force"), 0);
	expect("term 1");
	assert_int_equal(coordinator_stop(&s->c), 0);
	assert_int_equal(RUN("restore", "--dir", s->c.dir, more), 1);
	expect("is in term 1 (the run was rolled back), the backup is of term 0");
	expect("--force");
	assert_int_equal(RUN("restore", "--force", "--dir", s->c.dir, more), 0);
	expect("at round 2");
	coordinator_start(&s->c);
}

static void test_a_damaged_store_is_named(void **state) {
	struct scene *s = *state;
	char path[128], words[192];
	assert_int_equal(coordinator_stop(&s->c), 0);
	(void)snprintf(path, sizeof path, "%s/store.db", s->c.dir);
	scratch_flip(path, TOKENS_PAGE_AT + 4);
	assert_int_equal(RUN("backup", "--dir", s->c.dir, s->file), 1);
	(void)snprintf(words, sizeof words, "%s is damaged (", path);
	expect(words);
	expect("restore an earlier backup");
	assert_int_equal(access(s->file, F_OK), -1);
	scratch_flip(path, TOKENS_PAGE_AT + 4);
	coordinator_start(&s->c);
}

static void test_what_is_no_backup_is_refused(void **state) {
	struct scene *s = *state;
	char path[128];
	assert_int_equal(RUN("restore", "--dir", s->dir, "/nonexistent"), 1);
	expect("/nonexistent");
	(void)snprintf(path, sizeof path, "%s/run.conf", s->c.e.dir);
	assert_int_equal(RUN("restore", "--dir", s->dir, path), 1);
	expect("run.conf");
	assert_int_equal(RUN("backup", "--dir", s->c.dir, s->file), 0);
	flip_key_bits(s->file, s->k.id.key);
	assert_int_equal(RUN("restore", "--dir", s->dir, s->file), 1);
	expect("does not match its hash");
	expect("nothing was restored: fetch the file again from where it was made, or use another");
	(void)snprintf(path, sizeof path, "%s/store.db", s->dir);
	assert_int_equal(access(path, F_OK), -1); /* nothing was restored */
	(void)snprintf(path, sizeof path, "%s/made-for-it", s->place);
	assert_int_equal(RUN("restore", "--dir", path, s->file), 1);
	assert_int_equal(access(path, F_OK), -1);
	uint8_t flipped[NET_KEY_BYTES];
	memcpy(flipped, s->k.id.key, sizeof flipped);
	flipped[0] ^= 1;
	flip_key_bits(s->file, flipped); /* back */
	assert_int_equal(RUN("restore", "--dir", s->dir, s->file), 0);
	/* Another run's directory. */
	struct coordinator other;
	coordinator_make(&other, "rounds = 3\n");
	assert_int_equal(coordinator_stop(&other), 0);
	assert_int_equal(RUN("backup", "--dir", s->c.dir, s->file), 0);
	assert_int_equal(RUN("restore", "--force", "--dir", other.dir, s->file), 1);
	expect("another run");
	coordinator_start(&other);
	coordinator_remove(&other);
}

/* Its output goes to a file that no test reads. */
static void start_backup(const struct scene *s, struct process *p) {
	e2e_path(&s->c.e, "backup.log", p->log);
	process_start(p, (const char *const[]){COORDINATOR_PROGRAM, "backup", "--dir", s->c.dir, s->file, NULL}, NULL);
}

static void write_text(const char *path) {
	assert_ok(rv_file_write_atomic(path, "mine", 4, 0600, &et));
}

static void write_copy_on_its_way(const struct scene *s, char path[E2E_PATH + 32]) {
	(void)snprintf(path, E2E_PATH + 32, "%s/backup.copy-journal", s->c.dir);
	write_text(path);
	(void)snprintf(path, E2E_PATH + 32, "%s/backup.copy", s->c.dir);
	write_text(path);
}

/* What is beside it: a file of somebody, and what a killed backup left, there and in the run's
 * directory. Three ways: a coordinator in a sandbox, one in none, and none. */
static void test_it_clears_away_after_killed_ones_only(void **state) {
	struct scene *s = *state;
	char mine[128], left[128], left_wal[160], alone[160], between[E2E_PATH + 32];
	(void)snprintf(mine, sizeof mine, "%s.tmp-of-mine", s->file);
	(void)snprintf(left, sizeof left, "%s.tmp-aB3dE6", s->file);
	(void)snprintf(left_wal, sizeof left_wal, "%s-wal", left);
	(void)snprintf(alone, sizeof alone, "%s.tmp-fG7hI8-journal", s->file);
	write_text(mine);
	enum { IN_SANDBOX, IN_NONE, OFFLINE, WAYS };
	for (int way = IN_SANDBOX; way < WAYS; way++) {
		write_text(left);
		write_text(left_wal);
		write_text(alone);
		write_copy_on_its_way(s, between);
		assert_int_equal(RUN("backup", "--dir", s->c.dir, s->file), 0);
		assert_int_equal(access(mine, F_OK), 0);
		assert_int_equal(access(between, F_OK), -1);
		assert_int_equal(scratch_count(s->place), 2); /* with the backup */
		if (way != OFFLINE)
			assert_int_equal(coordinator_stop(&s->c), 0);
		if (way == IN_SANDBOX)
			coordinator_start(&s->c);
	}
	coordinator_start(&s->c);
}

static void put(const char *path, const void *bytes, size_t n) {
	assert_ok(rv_file_write_atomic(path, bytes, n, 0600, &et));
}

/* Whatever byte of it differs, or is missing, it is refused; no plain copy stays. */
static void test_a_passphrase_encrypts_it(void **state) {
	struct scene *s = *state;
	char word[128], other[128], store[128];
	uint8_t *bytes;
	size_t n;
	(void)snprintf(word, sizeof word, "%s/word", s->place);
	(void)snprintf(other, sizeof other, "%s/other", s->place);
	(void)snprintf(store, sizeof store, "%s/store.db", s->dir);
	put(word, "correct horse battery staple\n", 29);
	put(other, "correct horse battery stable\n", 29);
	assert_int_equal(RUN("backup", "--dir", s->c.dir, "--passphrase-file", word, s->file), 0);
	expect("Only the passphrase opens it");
	assert_ok(rv_file_read(s->file, 1 << 24, &bytes, &n, &et));
	assert_null(memmem(bytes, n, "SQLite format", 13));
	assert_null(memmem(bytes, n, "RVBKSEAL", 8));
	assert_int_equal(RUN("restore", "--dir", s->dir, s->file), 4);
	expect("--passphrase-file");
	assert_int_equal(RUN("restore", "--dir", s->dir, "--passphrase-file", other, s->file), 4);
	expect("the passphrase is another one");
	bytes[n - 1] ^= 1;
	put(s->file, bytes, n);
	assert_int_equal(RUN("restore", "--dir", s->dir, "--passphrase-file", word, s->file), 1);
	bytes[n - 1] ^= 1;
	put(s->file, bytes, n - 20);
	assert_int_equal(RUN("restore", "--dir", s->dir, "--passphrase-file", word, s->file), 1);
	assert_int_equal(access(store, F_OK), -1);
	put(s->file, bytes, n);
	free(bytes);
	assert_int_equal(RUN("restore", "--dir", s->dir, "--passphrase-file", word, s->file), 0);
	assert_int_equal(access(store, F_OK), 0);
	(void)snprintf(store, sizeof store, "%s/backup.plain", s->dir);
	assert_int_equal(access(store, F_OK), -1);
}

/* Another one of the same run holds the lock, and fails: this one is made then. */
static void test_one_waits_for_another(void **state) {
	struct scene *s = *state;
	char key[128];
	(void)snprintf(key, sizeof key, "%s/run.key", s->c.dir);
	int fd = open(key, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	struct process p;
	start_backup(s, &p);
	(void)usleep(200000);
	assert_false(process_has_ended(&p));
	assert_int_equal(scratch_count(s->place), 0);
	assert_int_equal(close(fd), 0);
	process_assert_exit(&p, 0);
	assert_int_equal(access(s->file, F_OK), 0);
}

/* The coordinator copies into an empty file that it sees, and replaces nothing. */
static void test_only_an_empty_file_is_written(void **state) {
	struct scene *s = *state;
	struct client operator;
	char path[128];
	client_init_operator(&operator, & s->c);
	(void)snprintf(path, sizeof path, "%s/run.key", s->c.dir);
	const struct answer *a = client_ask(&operator, "/v1/admin/copy", path, strlen(path));
	assert_int_equal(a->status, 400);
	assert_non_null(memmem(a->body, a->n, "not an empty file", 17));
	assert_int_equal(client_ask(&operator, "/v1/admin/copy", "relative", 8)->status, 400);
	(void)snprintf(path, sizeof path, "%s/nobody/made/it", s->place);
	assert_int_equal(client_ask(&operator, "/v1/admin/copy", path, strlen(path))->status, 404);
	client_release(&operator);
	assert_int_equal(client_ask(&s->k, "/v1/admin/copy", path, strlen(path))->status, 403); /* a member */
}

/* The program is killed after a random number of microseconds, while it makes a backup over an
 * older one. */
static void test_killed_while_it_is_made(void **state) {
	struct scene *s = *state;
	struct rv_rng rng = rv_rng_of(5, 1);
	char dir[128];
	assert_int_equal(RUN("backup", "--dir", s->c.dir, s->file), 0);
	for (int i = 0; i < 20; i++) {
		struct process p;
		start_backup(s, &p);
		(void)usleep((useconds_t)rv_rng_below(&rng, 60000));
		process_kill(&p);
		if (i % 5 != 4)
			continue;
		process_kill(&s->c.e.coordinator); /* and the coordinator too */
		(void)snprintf(dir, sizeof dir, "%s/coordinator", s->place);
		assert_int_equal(RUN("restore", "--dir", dir, s->file), 0); /* whole: every record is checked */
		coordinator_start(&s->c);
	}
	assert_int_equal(RUN("backup", "--dir", s->c.dir, s->file), 0);
	assert_int_equal(scratch_count(s->place),
					 2); /* it, and what was restored: no copy of the key that nobody knows of */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_run_goes_on_from_its_backup, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_offline_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_older_state_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_older_term_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_damaged_store_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_no_backup_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_it_clears_away_after_killed_ones_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_passphrase_encrypts_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_waits_for_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_only_an_empty_file_is_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_killed_while_it_is_made, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
