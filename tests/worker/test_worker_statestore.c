/* test_worker_statestore.c: state files: recovery from snapshot and log, damage named and survived,
 * retention. */
#include "state_fixture.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int setup(void **state) {
	*state = state_fixture_new();
	return 0;
}

static int teardown(void **state) {
	state_fixture_free(*state);
	return 0;
}

static bool exists(struct state_fixture *f, enum statestore_file kind, uint64_t round) {
	char path[STATESTORE_PATH_BYTES];
	struct stat st;
	statestore_path(&f->store, kind, round, path);
	return stat(path, &st) == 0;
}

static void damage(struct state_fixture *f, enum statestore_file kind, uint64_t round, long at) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(&f->store, kind, round, path);
	FILE *file = fopen(path, "r+b");
	assert_non_null(file);
	fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
	int c = fgetc(file);
	fseek(file, -1, SEEK_CUR);
	fputc(c ^ 0x40, file);
	fclose(file);
}

/* Recovers into a fresh state and checks that it is the history's at `round`. */
static struct recovered recover_to(struct state_fixture *f, uint64_t round) {
	struct global_state g;
	struct recovered found;
	assert_int_equal(state_fixture_theta0(f, &g), RV_OK);
	assert_ok(statestore_recover(&f->store, &g, &found, &et));
	assert_int_equal(g.round, round);
	struct rv_hash full = global_full_hash(&g);
	assert_memory_equal(full.b, f->full[round].b, RV_HASH_BYTES);
	global_release(&g);
	return found;
}

static void release(struct recovered *found) {
	blob_unref(found->reduced);
	replica_file_free(found->replica_file);
}

static void nothing_there_is_theta0(void **state) {
	struct state_fixture *f = *state;
	struct recovered found = recover_to(f, 0);
	assert_false(found.has_log);
	assert_false(found.has_replica);
	release(&found);
}

static void logs_are_replayed_but_the_newest_vote_is_not(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 5, 1);
	struct recovered found = recover_to(f, 4);
	assert_true(found.has_log);
	assert_int_equal(found.log.round, 4);
	assert_int_equal(found.log.attempt, 1);
	assert_non_null(found.reduced);
	release(&found);
}

static void a_fetched_entry_counts_as_committed(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 5, 0);
	struct recovered found = recover_to(f, 5);
	assert_false(found.has_log);
	release(&found);
}

static void a_later_replica_proves_the_last_round(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 5, 1);
	state_fixture_save_replica(f, 5);
	struct recovered found = recover_to(f, 5);
	assert_true(found.has_replica);
	assert_int_equal(found.replica.round, 5);
	assert_int_equal(found.replica.steps_done, 3);
	release(&found);
}

static void a_snapshot_saves_the_replay(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 7, 1);
	for (uint64_t r = 0; r < 4; r++)
		state_fixture_remove(f, STATE_FILE_LOG, r);
	assert_true(exists(f, STATE_FILE_SNAPSHOT, 6));
	struct recovered found = recover_to(f, 6);
	release(&found);
}

/* What recovery says of the state it has passed is what any worker would say of it. */
static void assert_full_hash(struct state_fixture *f, const struct recovered *found, uint64_t round) {
	assert_int_equal(found->full_round, round);
	assert_memory_equal(found->full_hash.b, f->full[round].b, RV_HASH_BYTES);
}

static void the_full_hash_of_the_snapshot_is_told(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 7, 1);
	struct recovered found = recover_to(f, 6);
	assert_full_hash(f, &found, 6);
	release(&found);
	state_fixture_remove(f, STATE_FILE_SNAPSHOT, 6);
	found = recover_to(f, 6); /* the replay passes it */
	assert_full_hash(f, &found, 6);
	release(&found);
	assert_true(exists(f, STATE_FILE_SNAPSHOT, 6)); /* again: joiners will ask for it */
}

static void no_full_hash_before_the_first_snapshot(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, STATE_FIXTURE_SNAPSHOT_EVERY, 1);
	struct recovered found = recover_to(f, STATE_FIXTURE_SNAPSHOT_EVERY - 1);
	assert_int_equal(found.full_round, 0);
	release(&found);
}

static void put_file(struct state_fixture *f, const char *name) {
	char path[STATESTORE_PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s", f->store.dir, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
}

static bool file_exists(struct state_fixture *f, const char *name) {
	char path[STATESTORE_PATH_BYTES];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", f->store.dir, name);
	return stat(path, &st) == 0;
}

static void leftovers_of_a_killed_process_are_removed_and_nothing_else(void **state) {
	struct state_fixture *f = *state;
	static const char *const ours[] = {"snapshot-4.rvs.tmp-a1B2c3",     "log-12.rvl.tmp-zzzzzz",
									   "replica.rvp.tmp-000000",        "model.safetensors.tmp-Qwerty",
									   "member.conf.tmp-abcdef",        "inner-3.rvi.tmp-a1B2c3",
									   "contribution-10.rvc.tmp-a1B2c3"};
	static const char *const others[] = {"notes.tmp-abcdef",
										 "snapshot-4.rvs.tmp-a1B2c",
										 "snapshot-4.rvs.tmp-a1B2c3d",
										 "snapshot-4.rvs.tmp-a1B2c.",
										 "snapshot-x.rvs.tmp-a1B2c3",
										 "snapshot-4.rvs.bak-a1B2c3",
										 ".tmp-abcdef",
										 "xreplica.rvp.tmp-000000",
										 "inner-.rvi.tmp-a1B2c3",
										 "inner-3.rvc.tmp-a1B2c3",
										 "replica.rvp.tmp-",
										 "log-1.rvl.old.tmp-aaaaaa"};
	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		put_file(f, ours[i]);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		put_file(f, others[i]);
	state_fixture_play(f, 3, 1);
	struct recovered found = recover_to(f, 2);
	release(&found);
	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		if (file_exists(f, ours[i]))
			fail_msg("%s is still there", ours[i]);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (!file_exists(f, others[i]))
			fail_msg("%s is gone", others[i]);
}

static void a_damaged_snapshot_is_named_and_the_one_before_used(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 7, 1);
	damage(f, STATE_FILE_SNAPSHOT, 6, -5);
	struct recovered found = recover_to(f, 6);
	assert_non_null(strstr(f->notice, "snapshot-6.rvs"));
	assert_non_null(strstr(f->notice, "damaged"));
	release(&found);
}

static void remove_snapshots(struct state_fixture *f, uint64_t from, uint64_t to) {
	for (uint64_t r = from; r <= to; r += STATE_FIXTURE_SNAPSHOT_EVERY)
		state_fixture_remove(f, STATE_FILE_SNAPSHOT, r);
}

/* A state that is not theta0 of the run: what the fixture's files must not be replayed onto. */
static struct recovered recover_onto_a_seed(struct state_fixture *f) {
	struct global_state g;
	struct recovered found;
	float drawn[STATE_FIXTURE_N] = {1};
	assert_int_equal(global_init(&g, &f->store.cfg, drawn, NULL), RV_OK);
	struct rv_hash before = global_full_hash(&g);
	f->store.theta0 = THETA0_IS_LACKED;
	assert_int_equal(statestore_recover(&f->store, &g, &found, NULL), RV_OK);
	struct rv_hash after = global_full_hash(&g);
	assert_true(found.lacks_state == rv_hash_equal(&before, &after));
	if (!found.lacks_state)
		assert_true(rv_hash_equal(&after, &f->full[g.round]));
	global_release(&g);
	return found;
}

static void nothing_is_replayed_onto_weights_that_are_not_the_runs(void **state) {
	struct state_fixture *f = *state;
	f->store.theta0 = THETA0_GIVEN;
	struct recovered written = recover_to(f, 0);
	release(&written);
	state_fixture_play(f, 5, 0);
	remove_snapshots(f, 2, 4);
	state_fixture_save_replica(f, 5);
	struct recovered found = recover_onto_a_seed(f);
	assert_false(found.lacks_state);
	assert_true(found.has_replica);
	release(&found);
	remove_snapshots(f, 2, 4);
	damage(f, STATE_FILE_SNAPSHOT, 0, -5);
	found = recover_onto_a_seed(f);
	assert_true(found.lacks_state);
	assert_false(found.has_log || found.has_replica || found.full_round > 0);
	assert_non_null(strstr(f->notice, "snapshot-0.rvs"));
	release(&found);
}

static void given_weights_are_written_again_when_no_snapshot_is_whole(void **state) {
	struct state_fixture *f = *state;
	f->store.theta0 = THETA0_GIVEN;
	struct recovered written = recover_to(f, 0);
	release(&written);
	state_fixture_play(f, 5, 0);
	remove_snapshots(f, 2, 4);
	damage(f, STATE_FILE_SNAPSHOT, 0, -5);
	struct recovered found = recover_to(f, 5);
	release(&found);
	f->notice[0] = '\0';
	found = recover_onto_a_seed(f);
	assert_false(found.lacks_state);
	assert_string_equal(f->notice, "");
	release(&found);
}

static void a_damaged_entry_ends_the_replay_and_is_named(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 6, 1);
	damage(f, STATE_FILE_LOG, 4, -1);
	struct recovered found = recover_to(f, 4);
	assert_false(found.has_log);
	assert_non_null(strstr(f->notice, "log-4.rvl"));
	release(&found);
}

static void a_damaged_replica_is_named(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 3, 1);
	state_fixture_save_replica(f, 3);
	damage(f, STATE_FILE_REPLICA, 0, 60);
	struct recovered found = recover_to(f, 2);
	assert_false(found.has_replica);
	assert_non_null(strstr(f->notice, "replica.rvp"));
	release(&found);
}

/* Its version is checked before its header's hash. */
static void a_replica_of_a_newer_version_is_kept_aside(void **state) {
	struct state_fixture *f = *state;
	char path[STATESTORE_PATH_BYTES + 16];
	state_fixture_play(f, 3, 1);
	state_fixture_save_replica(f, 3);
	damage(f, STATE_FILE_REPLICA, 0, 8); /* behind the magic: the version */
	struct recovered found = recover_to(f, 2);
	assert_false(found.has_replica);
	assert_non_null(strstr(f->notice, "use the release that wrote it"));
	statestore_path(&f->store, STATE_FILE_REPLICA, 0, path);
	assert_int_not_equal(access(path, F_OK), 0);
	strcat(path, ".damaged");
	assert_int_equal(access(path, F_OK), 0);
	release(&found);
}

static enum rv_err open_and_verify(struct state_fixture *f, enum state_kind kind, uint64_t round) {
	struct rv_errtext et = {0};
	struct state_file *file;
	enum rv_err e = statestore_open(&f->store, kind, round, &file, &et);
	if (e == RV_OK) {
		e = state_file_verify(file, &et);
		state_file_free(file);
	}
	assert_true(e == RV_OK || et.text[0]);
	return e;
}

static void assert_every_byte_matters(struct state_fixture *f, enum state_kind kind, uint64_t round, size_t step) {
	char path[STATESTORE_PATH_BYTES];
	enum statestore_file file = kind == STATE_KIND_SNAPSHOT ? STATE_FILE_SNAPSHOT : STATE_FILE_LOG;
	struct stat st;
	statestore_path(&f->store, file, round, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(open_and_verify(f, kind, round), RV_OK);
	for (long i = 0; i < st.st_size; i += i < STATE_HEADER_BYTES ? 1 : (long)step) {
		damage(f, file, round, i);
		assert_int_not_equal(open_and_verify(f, kind, round), RV_OK);
		damage(f, file, round, i);
	}
	for (long n = st.st_size - 1; n > 0; n -= st.st_size / 7) {
		assert_int_equal(truncate(path, n), 0);
		assert_int_equal(open_and_verify(f, kind, round), RV_E_CORRUPT);
	}
}

/* A sparse or foreign file: its header says how much of it is to be read. */
static void more_than_a_replica_is_not_read(void **state) {
	struct state_fixture *f = *state;
	char path[STATESTORE_PATH_BYTES];
	state_fixture_play(f, 3, 1);
	state_fixture_save_replica(f, 3);
	statestore_path(&f->store, STATE_FILE_REPLICA, 0, path);
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	struct recovered found = recover_to(f, 3);
	assert_false(found.has_replica);
	assert_non_null(strstr(f->notice, "something follows"));
	assert_false(exists(f, STATE_FILE_REPLICA, 0));
	release(&found);
}

/* The disk takes no byte more. */
static enum rv_err write_replica_to_a_full_disk(struct state_fixture *f, uint64_t round) {
	static const uint8_t bytes[100];
	struct state_replica_info info = {.round = round, .chain = f->g.chain, .payload_bytes = sizeof bytes};
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
	struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	struct state_whole whole = {bytes, sizeof bytes};
	const struct state_pieces_of payload = state_pieces_of_whole(&whole);
	enum rv_err e = statestore_write_replica(&f->store, &info, &payload, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	(void)signal(SIGXFSZ, before);
	return e;
}

/* After a rollback to round 4 the replica of round 7 would seem to prove whatever is voted for in
 * rounds 4 to 6. */
static void a_replica_of_a_round_taken_back_does_not_stay(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 4, 1);
	state_fixture_save_replica(f, 3);
	assert_int_not_equal(write_replica_to_a_full_disk(f, 4), RV_OK);
	assert_true(exists(f, STATE_FILE_REPLICA, 0)); /* an older one is better than none */
	state_fixture_save_replica(f, 7);
	assert_int_not_equal(write_replica_to_a_full_disk(f, 4), RV_OK);
	assert_false(exists(f, STATE_FILE_REPLICA, 0));
}

/* Every byte of every header, index and manifest, and every cut of the file. */
static void no_damage_passes(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 5, 1);
	assert_every_byte_matters(f, STATE_KIND_LOG, 1, 7);
	assert_every_byte_matters(f, STATE_KIND_SNAPSHOT, 4, 23);
}

/* It is what was voted for, and no encoding: the worker starts all the same, and asks its peers. */
static void an_entry_that_cannot_be_decoded_stops_no_start(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 5, 1);
	size_t bytes = state_payload_bytes(&f->store.cfg, STATE_KIND_LOG, 4);
	uint8_t *reduced = malloc(bytes);
	memset(reduced, 0xff, bytes); /* scales that are not numbers */
	struct state_log_info info = {.round = 4, .attempt = 0};
	assert_int_equal(statestore_write_log(&f->store, &info, reduced, NULL), RV_OK);
	struct recovered found = recover_to(f, 4);
	assert_non_null(strstr(f->notice, "log-4.rvl cannot be used"));
	assert_false(exists(f, STATE_FILE_LOG, 4));
	release(&found);
	free(reduced);
}

static void prune(struct state_fixture *f, uint64_t vouched_round) {
	const struct checkpoint_named named = {.vouched_round = vouched_round, .logs_from = vouched_round};
	assert_int_equal(statestore_prune(&f->store, &named, NULL), RV_OK);
}

static void pruning_keeps_what_joiners_and_we_need(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 9, 1); /* snapshots 2, 4, 6, 8 */
	prune(f, 6);
	assert_false(exists(f, STATE_FILE_SNAPSHOT, 2));
	assert_true(exists(f, STATE_FILE_SNAPSHOT, 4));
	assert_true(exists(f, STATE_FILE_SNAPSHOT, 6));
	assert_true(exists(f, STATE_FILE_SNAPSHOT, 8));
	assert_false(exists(f, STATE_FILE_LOG, 3));
	assert_true(exists(f, STATE_FILE_LOG, 4));
	struct recovered found = recover_to(f, 8);
	release(&found);
}

static enum rv_err forget_all_from(struct state_fixture *f, uint64_t round, struct rv_errtext *et) {
	return statestore_forget_from(&f->store, round, &(struct checkpoint_committed){.n = 0}, et);
}

/* More files than an index has places for, as somebody who kept them all may have: the oldest go
 * all the same. */
static void pruning_sees_every_file(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 9, 1);
	for (uint64_t i = 0; i < CHECKPOINT_MAX_FILES; i++) {
		char path[STATESTORE_PATH_BYTES];
		statestore_path(&f->store, STATE_FILE_LOG, 100 + i, path);
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		assert_int_equal(fclose(file), 0);
	}
	prune(f, 6);
	assert_false(exists(f, STATE_FILE_LOG, 0));
	assert_false(exists(f, STATE_FILE_LOG, 3));
	assert_true(exists(f, STATE_FILE_LOG, 4));
	assert_true(exists(f, STATE_FILE_LOG, 100));
}

static void a_wrong_history_is_forgotten(void **state) {
	struct state_fixture *f = *state;
	state_fixture_play(f, 9, 1);
	state_fixture_save_replica(f, 9);
	assert_int_equal(forget_all_from(f, 4, NULL), RV_OK);
	assert_true(exists(f, STATE_FILE_SNAPSHOT, 4));
	assert_true(exists(f, STATE_FILE_LOG, 3));
	assert_false(exists(f, STATE_FILE_LOG, 4));
	assert_false(exists(f, STATE_FILE_SNAPSHOT, 6));
	assert_false(exists(f, STATE_FILE_REPLICA, 0));
	struct recovered found = recover_to(f, 4);
	release(&found);
}

static enum rv_err rewind_to(struct state_fixture *f, uint64_t round, uint64_t term, struct rv_errtext *et) {
	struct statestore_given_up g;
	return statestore_rewind(&f->store, round, term, &g, et);
}

static bool set_has(const struct state_fixture *f, const char *set, const char *name) {
	char path[2 * STATESTORE_PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s/%s", f->store.dir, set, name);
	return access(path, F_OK) == 0;
}

static void put_text(const char *dir, const char *name) {
	char path[2 * STATESTORE_PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs("text\n", file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void what_a_rollback_gives_up_is_set_aside(void **state) {
	struct state_fixture *f = *state;
	struct statestore_given_up g;
	put_text(f->store.dir, "run.conf");
	put_text(f->store.dir, "run.link");
	state_fixture_play(f, 9, 1);
	state_fixture_save_replica(f, 9);
	for (int again = 0; again < 2; again++) { /* the new term could not be stored */
		assert_int_equal(statestore_rewind(&f->store, 4, 0, &g, NULL), RV_OK);
		assert_int_equal(g.what, GIVEN_UP_KEPT);
		assert_true(exists(f, STATE_FILE_SNAPSHOT, 4));
		assert_true(exists(f, STATE_FILE_LOG, 3));
		assert_false(exists(f, STATE_FILE_LOG, 4));
		assert_false(exists(f, STATE_FILE_SNAPSHOT, 6));
		assert_true(exists(f, STATE_FILE_REPLICA, 0));
		assert_true(set_has(f, "given-up-0", "log-4.rvl") && set_has(f, "given-up-0", "log-8.rvl"));
		assert_true(set_has(f, "given-up-0", "snapshot-6.rvs") && set_has(f, "given-up-0", "snapshot-8.rvs"));
		assert_false(set_has(f, "given-up-0", "snapshot-4.rvs") || set_has(f, "given-up-0", "replica.rvp"));
		assert_true(set_has(f, "given-up-0", "run.conf") && set_has(f, "given-up-0", "run.link"));
	}
	struct recovered found = recover_to(f, 4); /* not confused by it */
	release(&found);
	/* The state that was given up is whole where it lies. */
	struct state_fixture set = *f;
	snprintf(set.store.dir, sizeof set.store.dir, "%s", g.dir);
	set.g = (struct global_state){.theta = NULL};
	assert_int_equal(state_fixture_theta0(&set, &set.g), RV_OK);
	struct recovered in_set;
	assert_int_equal(statestore_recover(&set.store, &set.g, &in_set, NULL), RV_OK);
	assert_int_equal(set.g.round, 8);
	release(&in_set);
	global_release(&set.g);
}

static void play_again(struct state_fixture *f, uint64_t rounds) {
	global_release(&f->g);
	assert_int_equal(state_fixture_theta0(f, &f->g), RV_OK);
	state_fixture_play(f, rounds, 1);
}

/* Of several rollbacks: what has got farthest. */
static void the_latest_set_stays(void **state) {
	struct state_fixture *f = *state;
	struct statestore_given_up g;
	assert_int_equal(statestore_rewind(&f->store, 0, 0, &g, NULL), RV_OK);
	assert_int_equal(g.what, GIVEN_UP_NOTHING);
	assert_false(set_has(f, "given-up-0", "."));
	state_fixture_play(f, 2, 1);
	assert_int_equal(statestore_rewind(&f->store, 0, 0, &g, NULL), RV_OK);
	assert_int_equal(g.what, GIVEN_UP_KEPT_LOG);
	play_again(f, 9);
	assert_int_equal(statestore_rewind(&f->store, 1, 1, &g, NULL), RV_OK);
	assert_int_equal(g.what, GIVEN_UP_KEPT);
	assert_false(set_has(f, "given-up-0", "."));
	play_again(f, 7);
	assert_int_equal(statestore_rewind(&f->store, 1, 2, &g, NULL), RV_OK);
	assert_int_equal(g.what, GIVEN_UP_REMOVED);
	assert_non_null(strstr(g.dir, "/given-up-1"));
	assert_true(set_has(f, "given-up-1", "snapshot-8.rvs"));
	assert_false(set_has(f, "given-up-2", ".") || exists(f, STATE_FILE_SNAPSHOT, 6));
	put_text(g.dir, "notes");
	play_again(f, 11);
	assert_int_equal(statestore_rewind(&f->store, 1, 3, &g, NULL), RV_OK);
	assert_int_equal(g.what, GIVEN_UP_KEPT);
	assert_true(set_has(f, "given-up-3", "snapshot-10.rvs"));
	assert_true(set_has(f, "given-up-1", "notes")); /* not ours */
	assert_false(set_has(f, "given-up-1", "snapshot-8.rvs"));
}

/* Nothing goes then. */
static void a_set_that_cannot_be_made_is_told(void **state) {
	struct state_fixture *f = *state;
	struct rv_errtext et = {0};
	state_fixture_play(f, 9, 1);
	put_text(f->store.dir, "given-up-0");
	assert_int_not_equal(rewind_to(f, 4, 0, &et), RV_OK);
	assert_non_null(strstr(et.text, "given-up-0"));
	assert_true(exists(f, STATE_FILE_SNAPSHOT, 8));
}

/* A directory of that name is what even root cannot unlink, nor put a file in the place of. */
static void what_is_in_the_way_is_told(void **state) {
	struct state_fixture *f = *state;
	struct rv_errtext et = {0};
	char path[STATESTORE_PATH_BYTES], aside[STATESTORE_PATH_BYTES + 32];
	state_fixture_play(f, 9, 1);
	snprintf(aside, sizeof aside, "%s/given-up-0", f->store.dir);
	assert_int_equal(mkdir(aside, 0755), 0);
	strcat(aside, "/log-5.rvl");
	assert_int_equal(mkdir(aside, 0755), 0);
	assert_int_not_equal(rewind_to(f, 4, 0, &et), RV_OK);
	assert_non_null(strstr(et.text, aside));
	assert_false(exists(f, STATE_FILE_LOG, 7)); /* the others went all the same */
	assert_true(exists(f, STATE_FILE_LOG, 5));
	assert_int_equal(rmdir(aside), 0);
	state_fixture_remove(f, STATE_FILE_LOG, 5);
	statestore_path(&f->store, STATE_FILE_LOG, 5, path);
	assert_int_equal(mkdir(path, 0755), 0);
	et = (struct rv_errtext){0};
	assert_int_not_equal(forget_all_from(f, 4, &et), RV_OK);
	assert_non_null(strstr(et.text, path));
	assert_int_equal(rmdir(path), 0);
}

static void a_directory_that_cannot_be_listed_is_told(void **state) {
	struct state_fixture *f = *state;
	struct statestore nowhere = f->store;
	struct statestore_given_up g;
	const struct checkpoint_named named = {.vouched_round = 8, .logs_from = 8};
	struct rv_errtext et = {0};
	snprintf(nowhere.dir, sizeof nowhere.dir, "/proc/self/nowhere");
	assert_int_not_equal(statestore_rewind(&nowhere, 4, 0, &g, &et), RV_OK);
	assert_non_null(strstr(et.text, nowhere.dir));
	assert_int_not_equal(statestore_prune(&nowhere, &named, NULL), RV_OK);
	assert_int_not_equal(statestore_forget_from(&nowhere, 4, &(struct checkpoint_committed){.n = 0}, NULL), RV_OK);
}

/* What a document names stays, wherever the history went wrong: nobody else may have it. */
/* As large as a log entry, and nothing of it stays. */
static void the_disk_can_be_tried(void **state) {
	struct state_fixture *f = *state;
	char path[STATESTORE_PATH_BYTES + 16];
	struct rlimit limit;
	snprintf(path, sizeof path, "%s/probe", f->store.dir);
	assert_int_equal(statestore_probe(&f->store, NULL), RV_OK);
	assert_int_equal(access(path, F_OK), -1);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	struct rlimit small = {.rlim_cur = global_max_payload_bytes(&f->store.cfg) - 1, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	enum rv_err e = statestore_probe(&f->store, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(e, RV_E_FULL);
	assert_int_equal(access(path, F_OK), -1);
}

static void committed_entries_are_not_forgotten(void **state) {
	struct state_fixture *f = *state;
	struct rv_hash digests[3];
	state_fixture_play(f, 9, 1);
	for (uint64_t i = 0; i < 3; i++) {
		struct state_file *log;
		assert_int_equal(statestore_open(&f->store, STATE_KIND_LOG, 5 + i, &log, NULL), RV_OK);
		digests[i] = state_file_id(log)->expect;
		state_file_free(log);
	}
	digests[1].b[0] ^= 1; /* of round 6 another result was committed */
	assert_int_equal(statestore_forget_from(&f->store, 4, &(struct checkpoint_committed){5, 3, digests}, NULL), RV_OK);
	assert_false(exists(f, STATE_FILE_LOG, 4));
	assert_true(exists(f, STATE_FILE_LOG, 5));
	assert_false(exists(f, STATE_FILE_LOG, 6));
	assert_true(exists(f, STATE_FILE_LOG, 7));
	assert_false(exists(f, STATE_FILE_LOG, 8));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(nothing_there_is_theta0),
		T(logs_are_replayed_but_the_newest_vote_is_not),
		T(a_fetched_entry_counts_as_committed),
		T(a_later_replica_proves_the_last_round),
		T(a_snapshot_saves_the_replay),
		T(the_full_hash_of_the_snapshot_is_told),
		T(no_full_hash_before_the_first_snapshot),
		T(leftovers_of_a_killed_process_are_removed_and_nothing_else),
		T(a_damaged_snapshot_is_named_and_the_one_before_used),
		T(nothing_is_replayed_onto_weights_that_are_not_the_runs),
		T(given_weights_are_written_again_when_no_snapshot_is_whole),
		T(a_damaged_entry_ends_the_replay_and_is_named),
		T(a_damaged_replica_is_named),
		T(a_replica_of_a_newer_version_is_kept_aside),
		T(more_than_a_replica_is_not_read),
		T(a_replica_of_a_round_taken_back_does_not_stay),
		T(no_damage_passes),
		T(an_entry_that_cannot_be_decoded_stops_no_start),
		T(pruning_keeps_what_joiners_and_we_need),
		T(pruning_sees_every_file),
		T(a_wrong_history_is_forgotten),
		T(what_a_rollback_gives_up_is_set_aside),
		T(the_latest_set_stays),
		T(a_set_that_cannot_be_made_is_told),
		T(what_is_in_the_way_is_told),
		T(a_directory_that_cannot_be_listed_is_told),
		T(the_disk_can_be_tried),
		T(committed_entries_are_not_forgotten),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	state_fixture_fragments(3);
	return failed + cmocka_run_group_tests_name("fragments", tests, NULL, NULL);
}
