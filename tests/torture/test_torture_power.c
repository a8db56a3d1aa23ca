/* test_torture_power.c: the power goes before every single change that real code makes to its disk
 * (power.h): state files of a worker, a state that is fetched and installed, a rollback, inner
 * states for auditors, a membership; the store of the coordinator and its restore. Afterwards
 * whatever was acknowledged is there, what is there is whole, and what was begun can be done
 * again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/chain.h"
#include "coordinator/backup/backup.h"
#include "coordinator/store/run_dir.h"
#include "coordinator/store/run_keys.h"
#include "coordinator/store/sqlite.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/torture/kept_scene.h"
#include "tests/torture/power.h"
#include "tests/torture/state_scene.h"
#include "tests/torture/torture.h"
#include "worker/join/membership.h"
#include "worker/state/state_assembly.h"

enum { SEEDS = 3, CUTS_MAX = 2000, PATH_BYTES = 512 };
/* A process for each cut is expensive under a sanitizer: some of the cuts there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 5 };
#else
enum { STRIDE = 1 };
#endif

static const uint8_t run_id[NET_RUN_ID_BYTES] = "0123456789abcdef";
static const char config[] = "n-embd = 32\nn-head = 2\nrounds = 9\nmin-workers = 1\n";

struct scenario {
	const char *name, *dir;
	void (*begin)(void *ctx); /* the disk before the trial */
	void (*run)(void *ctx, void *acknowledged);
	void (*check)(void *ctx, const void *acknowledged);
	void *ctx;
	size_t acknowledged_bytes;
	long at_least; /* so many changes it makes: else what makes them is not seen */
};

/* Before the first change, the second, ... of the scenario, until it makes no more. */
static void cut_everywhere(const struct scenario *s) {
	void *acknowledged = power_shared(s->acknowledged_bytes);
	long cuts = 0;
	bool cut = true;
	for (long at = 1; cut && at < CUTS_MAX; at += STRIDE)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			memset(acknowledged, 0, s->acknowledged_bytes);
			s->begin(s->ctx);
			cut = power_cut_in(&(struct power_trial){s->dir, at, seed, s->run, s->ctx, acknowledged});
			s->check(s->ctx, acknowledged);
			cuts += cut;
		}
	assert_false(cut);
	assert_true(cuts * STRIDE >= SEEDS * s->at_least);
	print_message("%s: the power went %ld times, at %ld changes of the disk\n", s->name, cuts, cuts / SEEDS * STRIDE);
}

static void ok(enum rv_err e, const struct rv_errtext *et) {
	if (e != RV_OK)
		fail_msg("%s: %s", rv_err_name(e), et->text);
}

/* ---- a worker's state ---- */

static void begin_state(void *ctx) {
	struct state_scene *s = ctx;
	scratch_empty(s->f->store.dir);
	state_scene_begin_again(s);
}

static void write_state(void *ctx, void *acknowledged) {
	state_scene_write(ctx, acknowledged);
}

static void check_state(void *ctx, const void *acknowledged) {
	(void)state_scene_recover(ctx, acknowledged);
}

static void state_files(void **state) {
	(void)state;
	struct state_scene *s = state_scene_new();
	cut_everywhere(&(struct scenario){"state files", s->f->store.dir, begin_state, write_state, check_state, s,
									  sizeof(struct scene_promises), 60});
	state_scene_free(s);
}

/* ---- a vote that a killed process left ---- */

static void new_vote_path(const struct state_scene *s, char path[PATH_BYTES]) {
	(void)snprintf(path, PATH_BYTES, "%s/new-vote", s->f->store.dir);
}

static void write_vote(const struct state_scene *s, uint32_t attempt) {
	struct state_log_info info = {.round = 0, .attempt = attempt};
	struct rv_errtext et = {0};
	ok(statestore_write_log(&s->f->store, &info, s->payload[0], &et), &et);
}

/* The vote of attempt 1 is where it should be, that of attempt 2 beside it. */
static void begin_vote(void *ctx) {
	const struct state_scene *s = ctx;
	char path[STATESTORE_PATH_BYTES], beside[PATH_BYTES];
	begin_state(ctx);
	statestore_path(&s->f->store, STATE_FILE_LOG, 0, path);
	new_vote_path(s, beside);
	write_vote(s, 2);
	assert_int_equal(rename(path, beside), 0);
	write_vote(s, 1);
}

/* The attempt of the vote that a process which starts here would repeat. */
static uint32_t find_vote(struct state_scene *s) {
	struct recovered found;
	struct rv_errtext et = {0};
	state_scene_begin_again(s);
	ok(statestore_recover(&s->f->store, &s->g, &found, &et), &et);
	assert_true(found.has_log);
	uint32_t attempt = found.log.attempt;
	blob_unref(found.reduced);
	return attempt;
}

/* The former process is killed behind the rename, before it has synced the directory; its successor
 * tells what it finds, and goes on. (Simulator seed 22000241: the round was committed by that vote,
 * and a power cut brought the former attempt's back.) */
static void start_behind_a_rename(void *ctx, void *acknowledged) {
	struct state_scene *s = ctx;
	char from[PATH_BYTES], to[STATESTORE_PATH_BYTES];
	struct rv_errtext et = {0};
	new_vote_path(s, from);
	statestore_path(&s->f->store, STATE_FILE_LOG, 0, to);
	assert_int_equal(rename(from, to), 0);
	*(uint32_t *)acknowledged = find_vote(s);
	ok(statestore_probe(&s->f->store, &et), &et);
}

static void check_vote(void *ctx, const void *acknowledged) {
	uint32_t told = *(const uint32_t *)acknowledged, found = find_vote(ctx);
	if (told != 0)
		assert_int_equal(found, told);
}

static void a_vote_of_a_killed_process(void **state) {
	(void)state;
	struct state_scene *s = state_scene_new();
	cut_everywhere(&(struct scenario){"a vote", s->f->store.dir, begin_vote, start_behind_a_rename, check_vote, s,
									  sizeof(uint32_t), 4});
	state_scene_free(s);
}

/* ---- a rollback ---- */

enum { BACK_TO = 3 };

static void begin_rollback(void *ctx) {
	struct scene_promises all = {0};
	begin_state(ctx);
	state_scene_write(ctx, &all);
	assert_int_equal(all.round, SCENE_ROUNDS);
}

static void roll_back(void *ctx, void *acknowledged) {
	struct state_scene *s = ctx;
	struct statestore_given_up given_up;
	struct rv_errtext et = {0};
	ok(statestore_rewind(&s->f->store, BACK_TO, 0, &given_up, &et), &et);
	*(bool *)acknowledged = true;
}

/* Until it is acknowledged the old term is stored, and it is done again. */
static void check_rollback(void *ctx, const void *acknowledged) {
	static const struct scene_promises at_least = {BACK_TO, SCENE_ROUNDS};
	struct statestore_given_up given_up;
	struct state_scene *s = ctx;
	struct rv_errtext et = {0};
	uint64_t round = state_scene_recover(s, &at_least);
	if (*(const bool *)acknowledged)
		assert_int_equal(round, BACK_TO);
	ok(statestore_rewind(&s->f->store, BACK_TO, 0, &given_up, &et), &et);
	assert_int_equal(given_up.what, GIVEN_UP_KEPT); /* whatever the disk made of it */
	assert_int_equal(state_scene_recover(s, &at_least), BACK_TO);
}

static void rollback(void **state) {
	(void)state;
	struct state_scene *s = state_scene_new();
	cut_everywhere(
		&(struct scenario){"rollback", s->f->store.dir, begin_rollback, roll_back, check_rollback, s, sizeof(bool), 3});
	state_scene_free(s);
}

/* ---- a state from peers ---- */

enum { FETCHED = 4 };

struct joiner {
	struct state_scene *s;
	struct state_fixture *donor;
};

static void fetch_snapshot(const struct joiner *j) {
	const struct statestore *from = &j->donor->store, *to = &j->s->f->store;
	static uint8_t piece[STATE_PIECE_MAX_BYTES];
	struct state_assembly *a;
	struct state_file *donated, *made;
	struct blob *log;
	struct rv_errtext et = {0}, warning;
	ok(statestore_open(from, STATE_KIND_SNAPSHOT, FETCHED, &donated, &et), &et);
	ok(state_assembly_new(to, state_file_id(donated), &a, &et), &et);
	if (state_assembly_manifest(a) == NULL)
		ok(state_assembly_set_manifest(a, state_file_manifest(donated), &et), &et);
	for (uint32_t i = 0; i < state_pieces(&to->cfg, STATE_KIND_SNAPSHOT, FETCHED); i++) {
		const struct state_stored stored = state_file_stored(donated, i);
		ok(state_file_read_stored(donated, i, piece, &et), &et);
		ok(state_assembly_put(a, i, &stored, piece, &et), &et);
	}
	ok(state_assembly_finish(a, &made, &log, &warning, &et), &et);
	assert_string_equal(warning.text, "");
	state_file_free(made);
	state_file_free(donated);
	state_assembly_free(a);
}

/* As the storage thread does when the trainer has the state. */
static void install(void *ctx, void *acknowledged) {
	const struct joiner *j = ctx;
	const struct statestore *store = &j->s->f->store;
	const struct checkpoint_committed none = {FETCHED, 0, NULL};
	struct scene_promises *promises = acknowledged;
	struct rv_errtext et = {0};
	fetch_snapshot(j);
	ok(statestore_forget_from(store, FETCHED, &none, &et), &et);
	ok(statestore_adopt(store, FETCHED, &et), &et);
	promises->round = FETCHED;
}

static void begin_joining(void *ctx) {
	begin_state(((const struct joiner *)ctx)->s);
}

/* What was fetched before may be of use; in the end it is there. */
static void check_joining(void *ctx, const void *acknowledged) {
	const struct joiner *j = ctx;
	struct scene_promises again;
	(void)state_scene_recover(j->s, acknowledged);
	install(ctx, &again);
	assert_int_equal(state_scene_recover(j->s, &(struct scene_promises){FETCHED, 0}), FETCHED);
}

static void joining(void **state) {
	(void)state;
	struct joiner j = {.s = state_scene_new(), .donor = state_fixture_new()};
	state_fixture_play(j.donor, SCENE_ROUNDS, 1);
	cut_everywhere(&(struct scenario){"a snapshot from peers", j.s->f->store.dir, begin_joining, install, check_joining,
									  &j, sizeof(struct scene_promises), 5});
	state_fixture_free(j.donor);
	state_scene_free(j.s);
}

/* ---- inner states that are kept for auditors ---- */

static void begin_kept(void *ctx) {
	scratch_empty(((const struct kept_scene *)ctx)->store.dir);
}

static void keep(void *ctx, void *acknowledged) {
	kept_scene_write(ctx, acknowledged, true);
}

static void check_kept(void *ctx, const void *acknowledged) {
	kept_scene_check(ctx, acknowledged);
}

static void inner_states(void **state) {
	(void)state;
	struct kept_scene *s = kept_scene_new();
	cut_everywhere(&(struct scenario){"inner states", s->store.dir, begin_kept, keep, check_kept, s,
									  sizeof(struct kept_promises), 20});
	kept_scene_free(s);
}

/* ---- a membership ---- */

struct home {
	char dir[64], link[INVITE_MAX_BYTES];
	struct identity run;
};

static void begin_membership(void *ctx) {
	scratch_empty(((const struct home *)ctx)->dir);
}

static struct join_reply a_reply(const struct home *h, const struct identity *worker) {
	struct join_reply r = {.member = 3};
	memcpy(r.run_id, run_id, sizeof r.run_id);
	(void)snprintf(r.config, sizeof r.config, "%s", config);
	r.run_hash = rv_run_hash(run_id, config);
	ticket_sign(&h->run, run_id, r.member, worker->key, r.ticket);
	return r;
}

struct joined {
	bool has_key, is_member;
	uint8_t key[NET_KEY_BYTES];
	uint64_t term;
};

static void join(void *ctx, void *acknowledged) {
	const struct home *h = ctx;
	struct joined *a = acknowledged;
	struct membership m;
	struct rv_errtext et = {0};
	ok(membership_load(h->dir, h->link, &m, &et), &et);
	memcpy(a->key, m.identity.key, sizeof a->key);
	a->has_key = true;
	struct join_reply r = a_reply(h, &m.identity);
	ok(membership_join(h->dir, &m, &r, &et), &et);
	a->is_member = true;
	m.term = 1; /* the run is rolled back */
	ok(membership_store(h->dir, &m, &et), &et);
	a->term = 1;
	membership_release(&m);
}

static void check_membership(void *ctx, const void *acknowledged) {
	const struct home *h = ctx;
	const struct joined *a = acknowledged;
	struct membership m;
	struct rv_errtext et = {0};
	ok(membership_load(h->dir, a->is_member ? NULL : h->link, &m, &et), &et);
	if (a->has_key)
		assert_memory_equal(m.identity.key, a->key, sizeof a->key);
	if (a->is_member)
		assert_true(m.joined && m.member == 3);
	if (m.joined)
		assert_in_range(m.term, a->term, 1);
	struct join_reply r = a_reply(h, &m.identity);
	if (!m.joined)
		ok(membership_join(h->dir, &m, &r, &et), &et);
	assert_string_equal(m.config_text, config);
	membership_release(&m);
}

static void membership(void **state) {
	(void)state;
	static struct home h;
	static const uint8_t seed[IDENTITY_SEED_BYTES] = {2};
	struct invite in = {.has_token = true, .coordinator = {.host = "127.0.0.1", .port = 7433}};
	scratch_make_in_memory(h.dir, sizeof h.dir);
	identity_of_seed(seed, &h.run);
	memcpy(in.run_id, run_id, sizeof in.run_id);
	memcpy(in.key, h.run.key, sizeof in.key);
	invite_format(&in, h.link);
	cut_everywhere(&(struct scenario){"membership", h.dir, begin_membership, join, check_membership, &h,
									  sizeof(struct joined), 20});
	scratch_remove(h.dir);
}

/* ---- the coordinator's store ---- */

struct place {
	struct run_dir d;
	char copy[PATH_BYTES], backup[PATH_BYTES];
	struct rv_hash token;
	struct stored *unused;
};

struct stored {
	bool created, has_token, backed_up, restored;
	uint64_t records;
};

static void open_place(struct place *p) {
	char dir[64];
	struct rv_errtext et = {0};
	scratch_make_in_memory(dir, sizeof dir);
	ok(run_dir_of(dir, &p->d, &et), &et);
	(void)snprintf(p->copy, sizeof p->copy, "%s/copy.db", dir);
	(void)snprintf(p->backup, sizeof p->backup, "%s/backup", dir);
	p->token = rv_hash_of("token", 5);
}

static void close_place(const struct place *p) {
	scratch_remove(p->d.dir);
}

enum { TOGETHER_TO = 12 };

/* Of one member, who has another name each time. */
static struct core_record record(uint64_t id) {
	struct core_record rec = {.id = id, .type = CORE_MEMBER, .member = 0};
	(void)snprintf(rec.name, sizeof rec.name, "name %d", (int)id);
	return rec;
}

/* Appends records from..to. */
static void append(struct store *s, uint64_t from, uint64_t to, struct stored *a) {
	struct rv_errtext et = {0};
	for (uint64_t id = from; id <= to; id++) {
		const struct core_record rec = record(id);
		ok(s->ops->append(s, &rec, NULL, &et), &et);
		a->records = id;
	}
}

static void give_one_of_many(const void *from, int i, struct core_record *out) {
	*out = record(*(const uint64_t *)from + (uint64_t)i);
}

/* Appends records from..to in one transaction. */
static void append_together(struct store *s, uint64_t from, uint64_t to, struct stored *a) {
	struct rv_errtext et = {0};
	ok(s->ops->append_many(s, (int)(to - from + 1), give_one_of_many, &from, &et), &et);
	a->records = to;
}

static void begin_store(void *ctx) {
	scratch_empty(((const struct place *)ctx)->d.dir);
}

/* Made, used, closed (which moves its log into it), used again. */
static void use_store(void *ctx, void *acknowledged) {
	const struct place *p = ctx;
	struct stored *a = acknowledged;
	struct store *s;
	struct rv_errtext et = {0};
	ok(sqlite_store_create(p->d.store, run_id, config, &et), &et);
	a->created = true;
	ok(sqlite_store_open(p->d.store, &s, &et), &et);
	ok(s->ops->invite_add(s, &p->token, &(struct store_invite){.made_us = 7, .uses = 1}, &et), &et);
	a->has_token = true;
	append(s, 1, 4, a);
	store_close(s);
	ok(sqlite_store_open(p->d.store, &s, &et), &et);
	append(s, 5, 8, a);
	append_together(s, 9, TOGETHER_TO, a);
	store_close(s);
}

static enum rv_err count(void *ctx, const struct core_record *rec, struct rv_errtext *et) {
	uint64_t *n = ctx;
	(void)et;
	assert_int_equal(rec->id, ++*n);
	return RV_OK;
}

static uint64_t records_in(const char *path, const struct rv_hash *token, bool *has_token) {
	struct store *s;
	struct rv_errtext et = {0};
	struct store_invite in;
	uint64_t n = 0;
	ok(sqlite_store_open(path, &s, &et), &et);
	ok(s->ops->each(s, count, &n, &et), &et);
	ok(s->ops->invite_find(s, token, &in, has_token, &et), &et);
	store_close(s);
	return n;
}

static void check_store(void *ctx, const void *acknowledged) {
	const struct place *p = ctx;
	const struct stored *a = acknowledged;
	struct rv_errtext et = {0};
	bool has_token;
	if (!a->created && access(p->d.store, F_OK) != 0) /* then it can be made now */
		ok(sqlite_store_create(p->d.store, run_id, config, &et), &et);
	uint64_t n = records_in(p->d.store, &p->token, &has_token);
	if (n < 9 || n > TOGETHER_TO) /* of those appended together there are all or none */
		assert_in_range(n, a->records, a->records + 1);
	else
		assert_true(n == TOGETHER_TO && a->records >= 8);
	assert_true(has_token || !a->has_token);
}

static void store(void **state) {
	(void)state;
	static struct place p;
	open_place(&p);
	cut_everywhere(
		&(struct scenario){"store", p.d.dir, begin_store, use_store, check_store, &p, sizeof(struct stored), 50});
	close_place(&p);
}

/* ---- backup and restore ---- */

enum { IN_BACKUP = 3, AT_THE_END = 6 };

/* A run that went on after it was copied, and whose coordinator was killed: some of its store is in
 * the log beside it. */
static void begin_restore(void *ctx) {
	const struct place *p = ctx;
	static const uint8_t seed[IDENTITY_SEED_BYTES] = {7};
	struct identity root;
	struct run_keys keys;
	uint8_t bytes[RUN_KEYS_BYTES];
	struct stored unused;
	struct store *s;
	struct rv_errtext et = {0};
	begin_store(ctx);
	ok(sqlite_store_create(p->d.store, run_id, config, &et), &et);
	ok(sqlite_store_open(p->d.store, &s, &et), &et);
	append(s, 1, IN_BACKUP, &unused);
	FILE *f = fopen(p->copy, "wb");
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
	ok(s->ops->copy(s, p->copy, &et), &et);
	store_close(s);
	f = fopen(p->d.key, "wb");
	assert_non_null(f);
	identity_of_seed(seed, &root);
	ok(run_keys_make(&root, run_id, 1, &keys, &et), &et);
	run_keys_encode(&keys, bytes);
	assert_int_equal(fwrite(bytes, 1, sizeof bytes, f), sizeof bytes);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(p->d.key, 0600), 0);
}

/* The process is killed with the store open. */
static void go_on(void *ctx, void *acknowledged) {
	const struct place *p = ctx;
	struct store *s;
	struct rv_errtext et = {0};
	ok(sqlite_store_open(p->d.store, &s, &et), &et);
	append(s, IN_BACKUP + 1, AT_THE_END, acknowledged);
}

static void begin_restore_after_a_kill(void *ctx) {
	const struct place *p = ctx;
	begin_restore(ctx);
	assert_false(power_cut_in(&(struct power_trial){p->d.dir, CUTS_MAX, 0, go_on, ctx, p->unused}));
}

/* Of the run as it was before it went on. */
static enum rv_err copy_earlier(void *ctx, const char *path, struct rv_errtext *et) {
	const struct place *p = ctx;
	struct store *s;
	RV_TRY(sqlite_store_open(p->copy, &s, et));
	enum rv_err e = s->ops->copy(s, path, et);
	store_close(s);
	return e;
}

static void back_up_and_restore(void *ctx, void *acknowledged) {
	const struct place *p = ctx;
	const struct backup_source from = {copy_earlier, ctx};
	struct stored *a = acknowledged;
	struct backup_info info;
	struct rv_errtext et = {0};
	ok(backup_make(&p->d, p->backup, &from, &info, &et), &et);
	a->backed_up = true;
	ok(backup_restore(p->backup, NULL, &p->d, true, &info, &et), &et);
	a->restored = true;
}

/* The store is one of the two, whole; and the backup can be restored now. (The restored one has a
 * record more: CORE_SEQ.) */
static void check_restore(void *ctx, const void *acknowledged) {
	const struct place *p = ctx;
	const struct stored *a = acknowledged;
	struct backup_info info;
	struct rv_errtext et = {0};
	bool has_token;
	if (access(p->d.store, F_OK) == 0) {
		uint64_t n = records_in(p->d.store, &p->token, &has_token);
		assert_true(n == IN_BACKUP + 1 || (n == AT_THE_END && !a->restored));
	}
	assert_true(access(p->backup, F_OK) == 0 || !a->backed_up);
	if (!a->backed_up)
		return;
	ok(backup_restore(p->backup, NULL, &p->d, true, &info, &et), &et);
	assert_int_equal(records_in(p->d.store, &p->token, &has_token), IN_BACKUP + 1);
}

static void restore(void **state) {
	(void)state;
	static struct place p;
	open_place(&p);
	p.unused = power_shared(sizeof *p.unused);
	cut_everywhere(&(struct scenario){"backup and restore", p.d.dir, begin_restore_after_a_kill, back_up_and_restore,
									  check_restore, &p, sizeof(struct stored), 30});
	close_place(&p);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_files),  cmocka_unit_test(a_vote_of_a_killed_process),
		cmocka_unit_test(rollback),     cmocka_unit_test(joining),
		cmocka_unit_test(inner_states), cmocka_unit_test(membership),
		cmocka_unit_test(store),        cmocka_unit_test(restore),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
