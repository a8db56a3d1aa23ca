/* test_lab_checkpoint_files.c: `rivulet checkpoint` on a worker's directory: what it lists, finds,
 * takes and removes. */
#include "lab/commands/commands.h"
#include "lab/worker_files/checkpoint.h"
#include "lab/worker_files/worker_rounds.h"
#include "tests/lab/worker_dir.h"
#include "tests/train/train_fixture.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/hex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct worker_dir w;
static struct rv_errtext et;
static json_t *facts;

static int setup(void **state) {
	(void)state;
	worker_dir_init(&w, "");
	facts = NULL;
	return 0;
}

static int teardown(void **state) {
	(void)state;
	json_decref(facts);
	worker_dir_release(&w);
	return 0;
}

static const char *text_of(const char *key) {
	return json_string_value(json_object_get(facts, key));
}

static size_t count_of(const char *key) {
	return json_array_size(json_object_get(facts, key));
}

/* What the list says of a file; NULL: nothing. */
static const char *state_of(const char *file) {
	size_t i;
	json_t *row;
	json_array_foreach(json_object_get(facts, "files"), i, row) {
		if (strcmp(json_string_value(json_object_get(row, "file")), file) == 0)
			return json_string_value(json_object_get(row, "state"));
	}
	return NULL;
}

static bool exists(const char *name) {
	char path[400];
	snprintf(path, sizeof path, "%s/%s", w.dir, name);
	return access(path, F_OK) == 0;
}

static void test_list(void **state) {
	(void)state;
	worker_dir_play(&w, 10, 1);
	worker_dir_damage(&w, "log-2.rvl", 20);
	assert_int_equal(checkpoint_list(w.dir, &facts, &et), RV_OK);
	assert_string_equal(text_of("rounds"), "0-2, 4-9");
	assert_string_equal(text_of("recovery"), "round 9, from snapshot-8.rvs and 1 log entries");
	assert_int_equal(count_of("files"), 12);
	assert_string_equal(state_of("snapshot-8.rvs"), "header ok, recovery starts here");
	assert_string_equal(state_of("snapshot-4.rvs"), "header ok");
	assert_string_equal(state_of("log-9.rvl"), "a vote, not proven to be committed");
	assert_non_null(strstr(state_of("log-2.rvl"), "damaged: its header is damaged"));
}

static void test_verify_a_whole_directory(void **state) {
	(void)state;
	worker_dir_play(&w, 11, 1);
	assert_int_equal(checkpoint_verify(w.dir, -1, &facts, &et), RV_OK);
	assert_int_equal(count_of("damage"), 0);
	assert_int_equal(json_integer_value(json_object_get(facts, "files_read")), 13);
	assert_int_equal(json_integer_value(json_object_get(facts, "rounds_replayed")), 11);
	assert_int_equal(json_integer_value(json_object_get(facts, "snapshots_compared")), 2);
}

static void test_verify_names_damage(void **state) {
	(void)state;
	worker_dir_play(&w, 11, 1);
	worker_dir_damage(&w, "log-5.rvl", 500);
	worker_dir_damage(&w, "snapshot-8.rvs", 9000);
	assert_fault(checkpoint_verify(w.dir, -1, &facts, &et), RV_E_CORRUPT, &et, "2 faults found");
	assert_int_equal(count_of("damage"), 2);
	assert_non_null(strstr(json_string_value(json_array_get(json_object_get(facts, "damage"), 0)), "snapshot-8.rvs"));
	assert_non_null(strstr(json_string_value(json_array_get(json_object_get(facts, "damage"), 1)), "log-5.rvl"));
	json_decref(facts);
	assert_int_equal(checkpoint_verify(w.dir, 5, &facts, &et), RV_OK);
	json_decref(facts);
	assert_fault(checkpoint_verify(w.dir, 6, &facts, &et), RV_E_CORRUPT, &et, "log-5.rvl");
	json_decref(facts);
	assert_fault(checkpoint_verify(w.dir, 77, &facts, &et), RV_E_CORRUPT, &et, "round 77 cannot be made");
}

/* A worker that runs removes files between the listing and the reading. */
static void test_verify_while_the_worker_prunes(void **state) {
	(void)state;
	struct worker_rounds r;
	worker_dir_play(&w, 7, 1);
	assert_int_equal(worker_rounds_open(w.dir, &r, &et), RV_OK);
	worker_dir_play(&w, 11, 1);
	worker_dir_remove(&w, STATE_FILE_SNAPSHOT, 4);
	for (uint64_t i = 0; i < 8; i++)
		worker_dir_remove(&w, STATE_FILE_LOG, i);
	if (checkpoint_verify_listed(&r, -1, &facts, &et) != RV_OK)
		fail_msg("%s", et.text);
	worker_rounds_release(&r);
	assert_int_equal(count_of("damage"), 0);
	assert_string_equal(text_of("rounds"), "0, 8-10");
	assert_int_equal(json_integer_value(json_object_get(facts, "rounds_replayed")), 4);
}

static void test_verify_finds_another_history(void **state) {
	(void)state;
	worker_dir_play(&w, 10, 1);
	w.g.chain.b[0] ^= 1;
	w.g.round = 8;
	assert_int_equal(statestore_write_snapshot(&w.store, &w.g, NULL, NULL), RV_OK);
	assert_fault(checkpoint_verify(w.dir, -1, &facts, &et), RV_E_CORRUPT, &et, "of another history");
}

static void test_verify_of_a_round_past_a_damaged_snapshot(void **state) {
	(void)state;
	char state_of_round_9[2 * RV_HASH_BYTES + 1];
	worker_dir_play(&w, 11, 0);
	rv_hex_encode(w.full[9].b, RV_HASH_BYTES, state_of_round_9);
	worker_dir_damage(&w, "snapshot-8.rvs", 5000);
	assert_fault(checkpoint_verify(w.dir, 9, &facts, &et), RV_E_CORRUPT, &et, "snapshot-8.rvs: piece 0 of 2");
	assert_int_equal(count_of("damage"), 1);
	assert_string_equal(text_of("state"), state_of_round_9);
}

static void test_export_past_a_damaged_snapshot(void **state) {
	(void)state;
	char out[300];
	worker_dir_play(&w, 11, 0);
	snprintf(out, sizeof out, "%s/taken", w.dir);
	worker_dir_damage(&w, "snapshot-8.rvs", 5000);
	assert_int_equal(checkpoint_export(w.dir, 9, out, w.events, &facts, &et), RV_OK);
	assert_true(exists("taken/snapshot-9.rvs"));
	assert_non_null(strstr(worker_dir_told(&w), "snapshot-8.rvs: piece 0 of 2 does not match its hash"));
}

static void test_export_any_round(void **state) {
	char out[300], conf[400];
	struct state_file *f;
	struct global_state g;
	(void)state;
	worker_dir_play(&w, 9, 0);
	snprintf(out, sizeof out, "%s/taken", w.dir);
	assert_int_equal(checkpoint_export(w.dir, 6, out, w.events, &facts, &et), RV_OK);
	snprintf(conf, sizeof conf, "%s/snapshot-6.rvs", out);
	assert_string_equal(text_of("path"), conf);
	assert_int_equal(state_file_open(&w.store.cfg, STATE_KIND_SNAPSHOT, conf, &f, &et), RV_OK);
	assert_int_equal(global_init(&g, &w.store.cfg, w.g.theta, NULL), RV_OK);
	assert_int_equal(state_file_load_snapshot(f, &g, &et), RV_OK);
	struct rv_hash full = global_full_hash(&g);
	assert_memory_equal(full.b, w.full[6].b, RV_HASH_BYTES);
	global_release(&g);
	state_file_free(f);
	json_decref(facts);
	assert_fault(checkpoint_export(w.dir, 10, out, w.events, &facts, &et), RV_E_NOTFOUND, &et, "rounds there are: 0-9");
}

static void test_export_never_into_a_worker(void **state) {
	(void)state;
	worker_dir_play(&w, 9, 0);
	assert_fault(checkpoint_export(w.dir, 6, w.dir, w.events, &facts, &et), RV_E_INVALID, &et,
				 "is a worker's directory");
	assert_false(exists("snapshot-6.rvs"));
	assert_null(facts);
}

static void test_prune(void **state) {
	const struct checkpoint_policy one = {.keep_snapshots = 1};
	(void)state;
	worker_dir_play(&w, 10, 1);
	assert_int_equal(checkpoint_prune(w.dir, &one, true, &facts, &et), RV_OK);
	assert_int_equal(count_of("files"), 9); /* snapshot 4, log 0-7 */
	assert_true(exists("snapshot-4.rvs") && exists("log-0.rvl"));
	json_decref(facts);
	assert_int_equal(checkpoint_prune(w.dir, &one, false, &facts, &et), RV_OK);
	assert_non_null(strstr(text_of("safe"), "snapshot-8.rvs was read and is whole"));
	assert_false(exists("snapshot-4.rvs") || exists("log-7.rvl"));
	assert_true(exists("snapshot-8.rvs") && exists("log-8.rvl"));
	json_decref(facts);
	assert_int_equal(checkpoint_prune(w.dir, &one, false, &facts, &et), RV_OK);
	assert_string_equal(text_of("safe"), "nothing to remove");
}

static void test_prune_removes_nothing_that_is_needed(void **state) {
	const struct checkpoint_policy one = {.keep_snapshots = 1};
	int lock;
	(void)state;
	assert_fault(checkpoint_prune(w.dir, &one, false, &facts, &et), RV_E_NOTFOUND, &et, "no whole snapshot");
	worker_dir_play(&w, 10, 1);
	worker_dir_damage(&w, "snapshot-8.rvs", 9000);
	assert_fault(checkpoint_prune(w.dir, &one, false, &facts, &et), RV_E_CORRUPT, &et, "nothing was removed");
	assert_true(exists("snapshot-4.rvs") && exists("log-0.rvl"));
	assert_null(facts); /* nor is anything else said */
	assert_int_equal(rv_dir_lock(w.dir, &lock, &et), RV_OK);
	assert_fault(checkpoint_prune(w.dir, &one, false, &facts, &et), RV_E_BUSY, &et, "in use by process");
	rv_dir_unlock(lock);
}

static void test_prune_says_what_is_left(void **state) {
	const struct checkpoint_policy one = {.keep_snapshots = 1};
	char path[400];
	size_t i;
	json_t *name;
	(void)state;
	worker_dir_play(&w, 10, 1);
	worker_dir_remove(&w, STATE_FILE_LOG, 3);
	snprintf(path, sizeof path, "%s/log-3.rvl", w.dir);
	assert_int_equal(mkdir(path, 0755), 0); /* cannot be unlinked */
	assert_fault(checkpoint_prune(w.dir, &one, false, &facts, &et), RV_E_IO, &et, "log-3.rvl: cannot be removed");
	assert_int_equal(count_of("files"), 8);
	json_array_foreach(json_object_get(facts, "files"), i, name) assert_false(exists(json_string_value(name)));
	assert_int_equal(rmdir(path), 0);
}

/* ---- the command ---- */

static enum rv_err check_of(const char *verb, const char *option, const char *value) {
	const struct rv_args args = {.at = {verb, w.dir}, .n = 2};
	_Alignas(8) char options[64];
	RV_ASSERT(checkpoint_command.opts_bytes <= sizeof options);
	rv_options_defaults(checkpoint_command.options, options);
	assert_int_equal(rv_options_set(checkpoint_command.options, options, option, value, &et), RV_OK);
	return checkpoint_command.check(options, &args, &et);
}

static void test_options_of_another_verb(void **state) {
	(void)state;
	assert_fault(check_of("prune", "round", "3"), RV_E_INVALID, &et, "--round: for verify and export only");
	assert_fault(check_of("list", "round", "0"), RV_E_INVALID, &et, "--round: for verify and export only");
	assert_fault(check_of("verify", "dry-run", "true"), RV_E_INVALID, &et, "--dry-run: for prune only");
	assert_fault(check_of("verify", "keep-snapshots", "1"), RV_E_INVALID, &et, "--keep-log: for prune only");
	assert_fault(check_of("list", "keep-log", "1"), RV_E_INVALID, &et, "--keep-log: for prune only");
	assert_int_equal(check_of("verify", "round", "3"), RV_OK);
	assert_int_equal(check_of("prune", "keep-log", "3"), RV_OK);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_list),
		T(test_verify_a_whole_directory),
		T(test_verify_names_damage),
		T(test_verify_while_the_worker_prunes),
		T(test_verify_finds_another_history),
		T(test_verify_of_a_round_past_a_damaged_snapshot),
		T(test_export_past_a_damaged_snapshot),
		T(test_export_any_round),
		T(test_export_never_into_a_worker),
		T(test_prune),
		T(test_prune_removes_nothing_that_is_needed),
		T(test_prune_says_what_is_left),
		T(test_options_of_another_verb),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
