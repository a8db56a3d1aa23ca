/* Exports: every round that a worker's files can prove, bit for bit; what cannot be proved is not
 * there; and weights from files, with the tokenizer that belongs to them. */
#include "tests/lab/worker_dir.h"
#include "tests/train/train_fixture.h"

#include "lab/commands/commands.h"
#include "lab/worker_files/export_source.h"
#include "lab/worker_files/worker_rounds.h"
#include "train/files/hf_tokenizer.h"

#include "base/hex.h"
#include "train/files/weights_save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct worker_dir w;
static struct rv_errtext et;

static int setup(void **state) {
	(void)state;
	worker_dir_init(&w, "");
	return 0;
}

static int teardown(void **state) {
	(void)state;
	worker_dir_release(&w);
	return 0;
}

static void rounds_are(const char *want) {
	struct worker_rounds r;
	char got[256];
	assert_int_equal(worker_rounds_open(w.dir, &r, &et), RV_OK);
	worker_rounds_print(&r, got, sizeof got);
	assert_string_equal(got, want);
	worker_rounds_release(&r);
}

static enum rv_err replay(int64_t round, struct global_state *g) {
	struct worker_rounds r;
	assert_int_equal(worker_rounds_open(w.dir, &r, &et), RV_OK);
	worker_rounds_tell(&r, w.events);
	enum rv_err e = worker_rounds_replay(&r, round, g, &et);
	worker_rounds_release(&r);
	return e;
}

static void replays(int64_t round, uint64_t is) {
	struct global_state g;
	if (replay(round, &g) != RV_OK)
		fail_msg("round %d: %s", (int)round, et.text);
	assert_int_equal(g.round, is);
	struct rv_hash full = global_full_hash(&g);
	assert_memory_equal(full.b, w.full[is].b, RV_HASH_BYTES);
	global_release(&g);
}

static void refused(int64_t round, enum rv_err kind, const char *why) {
	struct global_state g;
	assert_fault(replay(round, &g), kind, &et, why);
}

static void test_every_round_bit_for_bit(void **state) {
	(void)state;
	worker_dir_play(&w, 11, 1);
	worker_dir_save_replica(&w, 11);
	rounds_are("0-11");
	for (uint64_t r = 0; r <= 11; r++)
		replays((int64_t)r, r);
	replays(-1, 11);
	refused(12, RV_E_NOTFOUND, "round 12 cannot be made from its files; rounds there are: 0-11");
}

/* The log's last entry may be of a round that was never committed. */
static void test_only_what_is_proved(void **state) {
	(void)state;
	worker_dir_play(&w, 6, 1);
	rounds_are("0-5");
	replays(-1, 5);
	worker_dir_save_replica(&w, 6); /* the worker trains on from it */
	rounds_are("0-6");
	worker_dir_save_replica(&w, 5);
	rounds_are("0-5");
	worker_dir_play(&w, 7, 0); /* the next came on the word of a signed document */
	rounds_are("0-7");
	replays(-1, 7);
}

static void test_pruned_files(void **state) {
	(void)state;
	worker_dir_play(&w, 12, 0);
	for (uint64_t r = 0; r < 4; r++)
		worker_dir_remove(&w, STATE_FILE_LOG, r);
	rounds_are("0, 4-12");
	worker_dir_remove(&w, STATE_FILE_SNAPSHOT, 4);
	worker_dir_remove(&w, STATE_FILE_LOG, 9);
	rounds_are("0, 8-9");
	replays(9, 9);
	replays(-1, 9);
	refused(5, RV_E_NOTFOUND, "rounds there are: 0, 8-9");
}

static void test_damage_is_named_and_the_snapshot_before_used(void **state) {
	(void)state;
	worker_dir_play(&w, 12, 0);
	replays(9, 9);
	assert_string_equal(worker_dir_told(&w), "");
	worker_dir_damage(&w, "snapshot-8.rvs", 5000); /* in a piece */
	replays(9, 9);
	assert_non_null(strstr(worker_dir_told(&w), "\"damaged\""));
	assert_non_null(strstr(worker_dir_told(&w), "snapshot-8.rvs: piece 0 of 2 does not match its hash"));
	replays(8, 8);
	replays(-1, 12);
	worker_dir_damage(&w, "snapshot-4.rvs", 20); /* in its header: the listing finds it */
	replays(9, 9);
	assert_non_null(strstr(worker_dir_told(&w), "snapshot-4.rvs: its header is damaged"));
	replays(-1, 12);
}

static void test_damage_in_the_log(void **state) {
	(void)state;
	worker_dir_play(&w, 12, 0);
	worker_dir_damage(&w, "log-5.rvl", 500);
	replays(5, 5);
	assert_string_equal(worker_dir_told(&w), "");
	refused(6, RV_E_CORRUPT, "round 6 cannot be made from its files: log-5.rvl: ");
	refused(6, RV_E_CORRUPT, "rounds there are: 0-5, 8-12");
	assert_non_null(strstr(worker_dir_told(&w), "log-5.rvl"));
	worker_dir_damage(&w, "log-10.rvl", 20);
	replays(-1, 10); /* as far as they go */
	assert_non_null(strstr(worker_dir_told(&w), "log-10.rvl"));
}

static void test_all_that_was_tried_is_said(void **state) {
	(void)state;
	worker_dir_release(&w);
	worker_dir_init(&w, "init-hash = 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n");
	worker_dir_play(&w, 10, 0);
	worker_dir_damage(&w, "snapshot-4.rvs", 20);
	worker_dir_damage(&w, "snapshot-8.rvs", 5000);
	refused(9, RV_E_CORRUPT, "round 9 cannot be made from its files: snapshot-8.rvs: piece 0 of 2");
	refused(9, RV_E_CORRUPT, "; snapshot-4.rvs: its header is damaged");
	refused(-1, RV_E_CORRUPT, "no round can be made from its files: snapshot-8.rvs: piece 0 of 2");
	refused(-1, RV_E_CORRUPT, "rounds there are: none");
}

/* A file that cannot be opened at the moment (ELOOP here) is not damaged: nothing is told, and it
 * is taken later. */
static void test_a_passing_fault_is_no_damage(void **state) {
	(void)state;
	char snapshot[400], aside[400];
	struct worker_rounds r;
	struct global_state g;
	worker_dir_play(&w, 12, 0);
	worker_dir_remove(&w, STATE_FILE_LOG, 7); /* round 8 is in its snapshot alone */
	snprintf(snapshot, sizeof snapshot, "%s/snapshot-8.rvs", w.dir);
	snprintf(aside, sizeof aside, "%s/aside", w.dir);
	assert_int_equal(worker_rounds_open(w.dir, &r, &et), RV_OK);
	worker_rounds_tell(&r, w.events);
	assert_int_equal(rename(snapshot, aside), 0);
	assert_int_equal(symlink(snapshot, snapshot), 0);
	assert_fault(worker_rounds_replay(&r, 8, &g, &et), RV_E_IO, &et, "/snapshot-8.rvs: cannot open for reading: ");
	refused(8, RV_E_IO, "/snapshot-8.rvs: cannot open for reading: "); /* where the listing has met it too */
	assert_string_equal(worker_dir_told(&w), "");
	assert_int_equal(rename(aside, snapshot), 0);
	if (worker_rounds_replay(&r, 8, &g, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_int_equal(g.round, 8);
	global_release(&g);
	worker_rounds_release(&r);
}

/* A worker that runs prunes: what was listed may be gone, and later rounds be there. */
static void test_pruned_since_the_listing(void **state) {
	(void)state;
	struct worker_rounds r;
	struct global_state g;
	worker_dir_play(&w, 7, 0);
	assert_int_equal(worker_rounds_open(w.dir, &r, &et), RV_OK);
	worker_rounds_tell(&r, w.events);
	worker_dir_play(&w, 11, 0);
	worker_dir_remove(&w, STATE_FILE_SNAPSHOT, 4);
	for (uint64_t i = 0; i < 8; i++)
		worker_dir_remove(&w, STATE_FILE_LOG, i);
	if (worker_rounds_replay(&r, -1, &g, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_int_equal(g.round, 11);
	assert_string_equal(worker_dir_told(&w), "");
	global_release(&g);
	assert_fault(worker_rounds_replay(&r, 5, &g, &et), RV_E_NOTFOUND, &et, "rounds there are: 0, 8-11");
	worker_rounds_release(&r);
}

/* Files that are whole, but of two histories: the chain of hashes tells. */
static void test_two_histories(void **state) {
	(void)state;
	worker_dir_play(&w, 10, 0);
	struct rv_hash chain = w.g.chain;
	w.g.chain.b[0] ^= 1;
	w.g.round = 8;
	assert_int_equal(statestore_write_snapshot(&w.store, &w.g, NULL, NULL), RV_OK);
	w.g.chain = chain;
	refused(6, RV_E_NOTFOUND, "rounds there are: 0-4, 8");
}

static void test_given_initial_weights_are_not_drawn(void **state) {
	(void)state;
	worker_dir_release(&w);
	worker_dir_init(&w, "init-hash = 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n");
	rounds_are("none");
	worker_dir_play(&w, 6, 0);
	rounds_are("4-6");
	refused(2, RV_E_NOTFOUND, "rounds there are: 4-6");
}

static void test_no_worker(void **state) {
	(void)state;
	char path[400];
	struct worker_rounds r;
	assert_true(worker_rounds_is_worker(w.dir));
	snprintf(path, sizeof path, "%s/run.link", w.dir);
	assert_int_equal(unlink(path), 0);
	assert_false(worker_rounds_is_worker(w.dir));
	assert_fault(worker_rounds_open(w.dir, &r, &et), RV_E_NOTFOUND, &et, "run.link");
	assert_fault(worker_rounds_open("/nonexistent/w", &r, &et), RV_E_NOTFOUND, &et, "/nonexistent/w");
}

/* ---- sources ---- */

static void source_refused(const char *where, int64_t round, const char *tokenizer, enum rv_err kind, const char *why) {
	struct export_source s;
	assert_fault(export_source_open(where, round, tokenizer, w.events, &s, &et), kind, &et, why);
}

static void test_source_of_a_worker(void **state) {
	(void)state;
	struct export_source s;
	char file[400];
	worker_dir_play(&w, 9, 0);
	if (export_source_open(w.dir, 6, "", w.events, &s, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_int_equal(s.origin.round, 6);
	assert_int_equal(s.origin.step, 6 * 4);
	assert_memory_equal(s.origin.state.b, w.full[6].b, RV_HASH_BYTES);
	assert_string_equal(s.tokenizer, "");
	const struct weights_source out = {.cfg = &s.cfg, .layout = &s.layout, .params = s.params, .origin = s.origin};
	snprintf(file, sizeof file, "%s/" WEIGHTS_FILE, w.dir);
	assert_int_equal(weights_save_files(w.dir, &out, &et), RV_OK);
	struct export_source again;
	if (export_source_open(file, -1, "", w.events, &again, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_int_equal(again.origin.round, 6);
	assert_memory_equal(again.params, s.params, s.layout.n_params * sizeof *s.params);
	export_source_release(&again);
	export_source_release(&s);
	source_refused(file, 7, "", RV_E_NOTFOUND, "holds round 6 only");
	source_refused(w.dir, 99, "", RV_E_NOTFOUND, "rounds there are: 0-9");
}

static void test_run_without_weights_yet(void **state) {
	(void)state;
	char path[400], dir[300];
	snprintf(dir, sizeof dir, "%s/run", w.dir);
	assert_int_equal(mkdir(dir, 0755), 0);
	fixture_write(dir, "checkpoint.rvc", (const uint8_t *)"x", 1, path, sizeof path);
	source_refused(dir, -1, "", RV_E_NOTFOUND, "no weights yet");
	scratch_remove(dir);
}

static void test_tokenizer_must_be_the_runs(void **state) {
	(void)state;
	char path[400], options[128], hex[2 * RV_HASH_BYTES + 1];
	char *text = hf_tokenizer_of_bytes();
	struct rv_hash h = rv_hash_of(text, strlen(text));
	rv_hex_encode(h.b, RV_HASH_BYTES, hex);
	snprintf(options, sizeof options, "tokenizer-hash = %s\n", hex);
	worker_dir_release(&w);
	worker_dir_init(&w, options);
	source_refused(w.dir, 0, "", RV_E_INVALID, "not beside the weights: use --tokenizer FILE");
	source_refused(w.dir, 0, "bytes", RV_E_INVALID, "not beside the weights: use --tokenizer FILE");
	size_t n = strlen(text);
	char *other = malloc(n + 2);
	snprintf(other, n + 2, "%s ", text);
	fixture_write(w.dir, "tokenizer.json", (const uint8_t *)other, n + 1, path, sizeof path);
	source_refused(w.dir, 0, "", RV_E_INVALID, "use --tokenizer FILE for another: tokenizer ");
	source_refused(w.dir, 0, path, RV_E_INVALID, "the run expects the file with hash");
	fixture_write(w.dir, "tokenizer.json", (const uint8_t *)text, n, path, sizeof path);
	struct export_source s;
	if (export_source_open(w.dir, 0, "", w.events, &s, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_string_equal(s.tokenizer, path);
	export_source_release(&s);
	free(other);
	free(text);
}

static void test_vocabulary_without_a_tokenizer(void **state) {
	(void)state;
	worker_dir_release(&w);
	worker_dir_init(&w, "vocab = 300\n");
	source_refused(w.dir, 0, "", RV_E_INVALID, "a vocabulary of 300 tokens, and no tokenizer.json beside it");
}

/* ---- the command ---- */

static int command(const char *const *args) {
	const struct rv_command commands[] = {export_command, inspect_command, {.run = NULL}};
	const struct rv_program program = {.name = "rivulet", .summary = "", .commands = commands};
	int n = 0;
	while (args[n])
		n++;
	return rv_program_main(&program, n, (char **)(uintptr_t)args);
}

#define COMMAND(...) command((const char *const[]){"rivulet", __VA_ARGS__, NULL})

static void test_command(void **state) {
	(void)state;
	char out[300], gguf[300];
	struct export_source s;
	struct stat st;
	worker_dir_play(&w, 9, 0);
	snprintf(out, sizeof out, "%s/out", w.dir);
	snprintf(gguf, sizeof gguf, "%s/out/model.gguf", w.dir);
	assert_int_equal(COMMAND("export", w.dir, "--out", out, "--round", "4"), RV_EXIT_OK);
	assert_int_equal(export_source_open(out, 4, "", w.events, &s, &et), RV_OK);
	assert_memory_equal(s.origin.state.b, w.full[4].b, RV_HASH_BYTES);
	export_source_release(&s);
	assert_int_equal(COMMAND("export", out, "--out", out, "--format", "gguf", "--dtype", "fp16"), RV_EXIT_OK);
	assert_int_equal(COMMAND("inspect", out, gguf, w.dir), RV_EXIT_OK);
	snprintf(gguf, sizeof gguf, "%s/by-name.GGUF", w.dir);
	assert_int_equal(COMMAND("export", out, "--out", gguf), RV_EXIT_OK); /* its name says what it is */
	assert_true(stat(gguf, &st) == 0 && S_ISREG(st.st_mode));
	assert_int_equal(COMMAND("export", out, "--out", out, "--dtype", "fp16"), RV_EXIT_USAGE);
	assert_int_equal(COMMAND("export", out, "--out", "", "--format", "gguf"), RV_EXIT_USAGE);
	assert_int_equal(COMMAND("export", out, "--out", gguf, "--format", "gguf", "--max-file-bytes", "1MB"),
					 RV_EXIT_USAGE);
	assert_int_equal(COMMAND("export", w.dir, "--out", out, "--round", "77", "--force"), RV_EXIT_FAULT);
	worker_dir_damage(&w, "snapshot-8.rvs", 5000);
	assert_int_equal(COMMAND("export", w.dir, "--out", out, "--round", "9", "--force"), RV_EXIT_OK);
	scratch_remove(out);
}

static long bytes_of(const char *path) {
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return (long)st.st_size;
}

static int export_to(const char *out, bool force) {
	return force ? COMMAND("export", w.dir, "--out", out, "--force") : COMMAND("export", w.dir, "--out", out);
}

/* Nothing that is there is written over, but by --force. */
static void test_what_is_there_stays(void **state) {
	(void)state;
	char out[300], file[400], path[400];
	worker_dir_play(&w, 3, 0);
	snprintf(out, sizeof out, "%s/out", w.dir);
	assert_int_equal(mkdir(out, 0755), 0);
	assert_int_equal(export_to(out, false), RV_EXIT_OK); /* an empty one */
	snprintf(file, sizeof file, "%s/config.json", out);
	fixture_write(out, "config.json", (const uint8_t *)"mine", 4, path, sizeof path);
	assert_int_not_equal(export_to(out, false), RV_EXIT_OK);
	assert_int_equal(bytes_of(file), 4);
	assert_int_equal(export_to(out, true), RV_EXIT_OK);
	assert_true(bytes_of(file) > 4);
	snprintf(file, sizeof file, "%s/model.gguf", out);
	assert_int_equal(COMMAND("export", w.dir, "--out", out, "--format", "gguf"), RV_EXIT_OK); /* beside the others */
	fixture_write(out, "model.gguf", (const uint8_t *)"mine", 4, path, sizeof path);
	assert_int_not_equal(export_to(file, false), RV_EXIT_OK);
	assert_int_not_equal(COMMAND("export", w.dir, "--out", out, "--format", "gguf"), RV_EXIT_OK);
	assert_int_equal(bytes_of(file), 4);
	assert_int_equal(export_to(file, true), RV_EXIT_OK);
	assert_true(bytes_of(file) > 4);
	scratch_remove(out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_every_round_bit_for_bit),
		TEST(test_only_what_is_proved),
		TEST(test_pruned_files),
		TEST(test_damage_is_named_and_the_snapshot_before_used),
		TEST(test_damage_in_the_log),
		TEST(test_all_that_was_tried_is_said),
		TEST(test_a_passing_fault_is_no_damage),
		TEST(test_pruned_since_the_listing),
		TEST(test_two_histories),
		TEST(test_given_initial_weights_are_not_drawn),
		TEST(test_no_worker),
		TEST(test_source_of_a_worker),
		TEST(test_run_without_weights_yet),
		TEST(test_tokenizer_must_be_the_runs),
		TEST(test_vocabulary_without_a_tokenizer),
		TEST(test_command),
		TEST(test_what_is_there_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
