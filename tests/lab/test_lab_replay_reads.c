/* test_lab_replay_reads.c: what committed contributions have read, counted from members' traces:
 * every position of a pass once, and what is read twice is found. */
#include "lab/worker_files/replay_reads.h"
#include "tests/train/train_fixture.h"

#include <string.h>

enum { LENGTH = 100 };

static struct rv_errtext why;
static struct replay_stream stream;
static struct replay_reads reads;

static int release(void **state) {
	(void)state;
	replay_stream_release(&stream);
	replay_reads_release(&reads);
	memset(&why, 0, sizeof why);
	return 0;
}

/* The stream has positions [begin, begin + count) from `number` on. */
static void put(uint64_t number, uint64_t begin, uint64_t count) {
	struct reading r = {.first = number};
	assert_true(reading_add(&r, begin, count));
	assert_ok(replay_stream_put(&stream, &r, &et));
}

static void commit(uint64_t first, uint64_t count) {
	assert_ok(replay_reads_add(&reads, &stream, first, count, &et));
}

static struct replay_counted counted(void) {
	struct replay_counted c;
	assert_ok(replay_reads_count(&reads, LENGTH, &c, &et));
	return c;
}

static void whole_passes_are_counted(void **state) {
	(void)state;
	assert_int_equal(counted().sequences, 0);
	put(0, 150, 70);
	put(70, 0, 150);
	commit(70, 150); /* in any order */
	assert_true(counted().sequences == 150 && counted().until == 150 && counted().passes == 1);
	commit(0, 70);
	assert_true(counted().sequences == 220 && counted().until == 220 && counted().passes == 2);
}

static void a_hole_ends_the_count_of_passes(void **state) {
	(void)state;
	put(0, 0, 99);
	put(99, 100, 300);
	commit(0, 399);
	assert_true(counted().sequences == 399 && counted().until == 99 && counted().passes == 0);
}

/* Numbers of a contribution lie in several pieces, at both ends in part of one. */
static void parts_of_pieces_are_committed(void **state) {
	(void)state;
	struct reading r = {.first = 1000};
	assert_true(reading_add(&r, 40, 10) && reading_add(&r, 20, 5) && reading_add(&r, 0, 10));
	assert_ok(replay_stream_put(&stream, &r, &et));
	commit(1008, 10); /* 48 49, 20 to 24, 0 1 2 */
	assert_true(counted().sequences == 10 && counted().until == 3);
	const struct reading_piece want[] = {{0, 3}, {20, 5}, {48, 2}};
	assert_int_equal(reads.n, 3);
	assert_memory_equal(reads.pieces, want, sizeof want);
}

/* A process that starts again from a copy reads other sequences under the same numbers. */
static void what_is_read_again_is_forgotten(void **state) {
	(void)state;
	put(0, 0, 30);
	put(30, 30, 30);
	put(20, 500, 10); /* all from number 20 on is another's by now */
	commit(0, 30);
	assert_true(counted().sequences == 30 && counted().until == 20);
	assert_fault(replay_reads_add(&reads, &stream, 20, 20, &why), RV_E_PROTOCOL, &why,
				 "20 sequences of a contribution, and its trace tells of 10");
}

static void two_contributions_with_one_position_are_named(void **state) {
	(void)state;
	struct replay_counted c;
	put(0, 0, 50);
	commit(0, 50);
	put(50, 149, 51);
	commit(50, 51);
	put(101, 199, 1);
	commit(101, 1);
	assert_fault(replay_reads_count(&reads, LENGTH, &c, &why), RV_E_PROTOCOL, &why,
				 "sequence 99 of pass 1 is in two committed contributions");
}

/* The same sequence of another pass is another position. */
static void another_pass_may_read_it_again(void **state) {
	(void)state;
	put(0, 5, 1);
	put(1, LENGTH + 5, 1);
	commit(0, 2);
	assert_int_equal(counted().sequences, 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(whole_passes_are_counted, release),
		cmocka_unit_test_teardown(a_hole_ends_the_count_of_passes, release),
		cmocka_unit_test_teardown(parts_of_pieces_are_committed, release),
		cmocka_unit_test_teardown(what_is_read_again_is_forgotten, release),
		cmocka_unit_test_teardown(two_contributions_with_one_position_are_named, release),
		cmocka_unit_test_teardown(another_pass_may_read_it_again, release),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
