/* test_worker_means.c: what encoding means left, on the disk: which files count after a restart,
 * and damage named. */
#include "state_fixture.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int setup_fragments(void **state) {
	state_fixture_fragments(3);
	return setup(state);
}

static int teardown_fragments(void **state) {
	state_fixture_fragments(1);
	return teardown(state);
}

static void init(const struct state_fixture *f, struct mean_residual *m) {
	struct run_config run;
	run_config_defaults(&run);
	run.mean_feedback = 1;
	assert_ok(mean_residual_init(m, &run, &f->store.cfg, &et));
}

/* An owner of all chunks but the first of the round makes the means of an attempt, and stores what
 * that left: the number of the round, plus 100 times the attempt. */
static void make_means(struct state_fixture *f, uint64_t round, uint32_t attempt) {
	const struct global_config *g = &f->store.cfg;
	const struct chunking c = global_round_chunks(g, round);
	struct mean_residual m;
	struct feedback room;
	init(f, &m);
	mean_residual_begin(&m, g, round, attempt);
	for (uint32_t i = c.n_chunks > 1; i < c.n_chunks; i++) {
		float *left = mean_residual_of(&m, g, i, &room)->left;
		for (size_t k = 0; k < chunking_len(&c, i); k++)
			left[k] = (float)round + 100 * (float)attempt;
	}
	const size_t n = mean_residual_saved_bytes(&m, g);
	uint8_t *bytes = malloc(n);
	mean_residual_save(&m, g, bytes);
	assert_ok(statestore_write_means(&f->store, round, bytes, n, &et));
	free(bytes);
	mean_residual_release(&m);
}

/* Plays rounds up to `rounds`, with the means of this owner in each; the last one is a vote. */
static void play(struct state_fixture *f, uint64_t rounds) {
	for (uint64_t round = f->g.round; round < rounds; round++) {
		make_means(f, round, 2);
		state_fixture_play(f, round + 1, 2);
	}
}

static struct mean_residual recover(struct state_fixture *f, uint64_t round) {
	struct mean_residual m;
	f->notice[0] = '\0';
	init(f, &m);
	statestore_recover_means(&f->store, round, &m);
	return m;
}

/* It holds what the round left of its second chunk (its only one, of a fragment of one chunk), and
 * nothing of its first. */
static void assert_left(const struct state_fixture *f, const struct mean_residual *m, uint64_t round) {
	const struct global_config *g = &f->store.cfg;
	const uint32_t i = global_round_chunks(g, round).n_chunks > 1;
	const size_t at = global_round_chunk_at(g, round, i);
	assert_true(mean_residual_holds(m, g, round));
	assert_true(m->holds[at / g->chunks.chunk_elems]);
	assert_true(m->kept[at] == (float)round + 200);
	if (i > 0)
		assert_false(m->holds[global_round_chunk_at(g, round, 0) / g->chunks.chunk_elems]);
}

static void the_last_committed_round_counts(void **state) {
	struct state_fixture *f = *state;
	play(f, 5);
	struct mean_residual m = recover(f, 4); /* the entry of 4 is a vote */
	assert_left(f, &m, 3);
	assert_true(m.attempt == 2 && m.round == 4);
	mean_residual_commit(&m, &f->store.cfg, 4, 2);
	assert_left(f, &m, 4);
	mean_residual_release(&m);
}

static void a_vote_that_came_to_nothing_leaves_no_mark(void **state) {
	struct state_fixture *f = *state;
	play(f, 5);
	struct mean_residual m = recover(f, 4);
	mean_residual_begin(&m, &f->store.cfg, 4, 3);
	assert_left(f, &m, 3);
	mean_residual_release(&m);
}

static void each_fragments_last_round_counts(void **state) {
	struct state_fixture *f = *state;
	play(f, 8);
	struct mean_residual m = recover(f, 7);
	for (uint64_t round = 4; round < 7; round++)
		assert_left(f, &m, round);
	mean_residual_release(&m);
}

/* A process was killed between the file and the entry of a later attempt. */
static void of_another_attempt_than_the_entry_it_does_not_count(void **state) {
	struct state_fixture *f = *state;
	play(f, 4);
	make_means(f, 3, 3);
	struct mean_residual m = recover(f, 4);
	assert_false(mean_residual_holds(&m, &f->store.cfg, 4));
	assert_int_equal(m.attempt, 0);
	mean_residual_release(&m);
}

/* The round's result was fetched, or its entry is gone. */
static void without_the_entry_of_a_vote_it_does_not_count(void **state) {
	struct state_fixture *f = *state;
	play(f, 3);
	make_means(f, 3, 1);
	state_fixture_play(f, 4, 0);
	struct mean_residual m = recover(f, 4);
	assert_false(mean_residual_holds(&m, &f->store.cfg, 4));
	mean_residual_release(&m);
	state_fixture_remove(f, STATE_FILE_LOG, 2);
	m = recover(f, 3);
	assert_false(mean_residual_holds(&m, &f->store.cfg, 3));
	mean_residual_release(&m);
}

/* A round was missed: what the one before it left is old. */
static void of_an_earlier_round_it_does_not_count(void **state) {
	struct state_fixture *f = *state;
	play(f, 3);
	state_fixture_play(f, 4, 2);
	struct mean_residual m = recover(f, 4);
	assert_false(mean_residual_holds(&m, &f->store.cfg, 4));
	assert_string_equal(f->notice, "");
	mean_residual_release(&m);
}

static void two_files_for_a_fragment_are_enough(void **state) {
	struct state_fixture *f = *state;
	char path[STATESTORE_PATH_BYTES];
	play(f, 9);
	statestore_path(&f->store, STATE_FILE_MEANS, 2, path);
	assert_int_not_equal(access(path, F_OK), 0);
	for (uint64_t i = 0; i < 2; i++) {
		statestore_path(&f->store, STATE_FILE_MEANS, i, path);
		assert_int_equal(access(path, F_OK), 0);
	}
}

static void change(struct state_fixture *f, uint64_t number, long at, int bits) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(&f->store, STATE_FILE_MEANS, number, path);
	FILE *file = fopen(path, "r+b");
	assert_non_null(file);
	fseek(file, at, SEEK_SET);
	const int c = fgetc(file);
	fseek(file, at, SEEK_SET);
	fputc(c ^ bits, file);
	fclose(file);
}

/* Every byte is covered; what cannot be used is named, kept aside if it is damaged, and lost. */
static void damage_is_named(void **state) {
	struct state_fixture *f = *state;
	struct stat st;
	char path[STATESTORE_PATH_BYTES];
	play(f, 4);
	statestore_path(&f->store, STATE_FILE_MEANS, 1, path);
	assert_int_equal(stat(path, &st), 0);
	for (long at = 0; at < st.st_size; at += st.st_size / 50 + 1) {
		make_means(f, 3, 2);
		change(f, 1, at, 0x20);
		struct mean_residual m = recover(f, 4);
		assert_false(mean_residual_holds(&m, &f->store.cfg, 4));
		assert_non_null(strstr(f->notice, "means-1.rvm"));
		mean_residual_release(&m);
	}
	make_means(f, 3, 2);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	struct mean_residual m = recover(f, 4);
	assert_non_null(strstr(f->notice, "cut short"));
	assert_int_not_equal(access(path, F_OK), 0);
	strcat(path, ".damaged");
	assert_int_equal(access(path, F_OK), 0);
	mean_residual_release(&m);
}

static void of_a_newer_version_it_is_named(void **state) {
	struct state_fixture *f = *state;
	play(f, 4);
	change(f, 1, 8, 0x02); /* behind the magic: the version */
	struct mean_residual m = recover(f, 4);
	assert_non_null(strstr(f->notice, "use the release that wrote it"));
	mean_residual_release(&m);
}

int main(void) {
#define TEST(name)      cmocka_unit_test_setup_teardown(name, setup, teardown)
#define FRAGMENTS(name) cmocka_unit_test_setup_teardown(name, setup_fragments, teardown_fragments)
	const struct CMUnitTest tests[] = {
		TEST(the_last_committed_round_counts),
		TEST(a_vote_that_came_to_nothing_leaves_no_mark),
		FRAGMENTS(each_fragments_last_round_counts),
		TEST(of_another_attempt_than_the_entry_it_does_not_count),
		TEST(without_the_entry_of_a_vote_it_does_not_count),
		TEST(of_an_earlier_round_it_does_not_count),
		TEST(two_files_for_a_fragment_are_enough),
		TEST(damage_is_named),
		TEST(of_a_newer_version_it_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
