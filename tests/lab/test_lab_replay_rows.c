/* test_lab_replay_rows.c: a run of four workers in two rows of two: the lab computes other bits
 * than with one row, and a replay of the workers' traces, of which each names its own row, the
 * same. */
#include "base/json_lines.h"
#include "lab/worker_files/replay.h"

#include "tests/common/check.h"
#include "tests/lab/lab_fixture.h"

#include <stdio.h>

enum { WORKERS = 4, ROUNDS = 4, STEPS = 3 };

/* What is wrong with row 1 in the last round: other weights of rows, or no vote. */
enum fault { NO_FAULT, OTHER_WEIGHTS, NO_VOTE };

static struct lab_fixture f;
static struct rv_hash chains[ROUNDS], end;

static void record_run(void) {
	struct lab_run *r = lab_fixture_start(&f);
	for (int i = 0; i < ROUNDS; i++) {
		struct lab_round round;
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		chains[i] = r->global.chain;
	}
	end = global_full_hash(&r->global);
	lab_run_free(r);
}

/* The participants of a row, as its members record them. */
static struct trace_roster roster_of(uint64_t round, int row, enum fault fault) {
	struct trace_roster r = {.round = round, .attempt = 1, .row = row, .n_rows = 2, .row_weights = {2, 2}, .n = 2};
	for (int i = 0; i < 2; i++) {
		r.members[i].member = (uint32_t)(2 * row + i);
		r.members[i].weight = 1;
		r.members[i].boot = 100 + r.members[i].member;
	}
	if (fault == OTHER_WEIGHTS && row == 1 && round == ROUNDS - 1)
		r.row_weights[0] = 1;
	return r;
}

static void make_trace(uint32_t member, enum fault fault, struct trace_record *out) {
	const struct trace_started start = {.member = member, .boot = 100 + member, .threads = 1, .dtype = "fp32"};
	struct rv_json_lines *t;
	char path[300];
	snprintf(path, sizeof path, "%s/trace-%u", f.dir, member);
	(void)remove(path);
	assert_int_equal(rv_json_lines_open(path, true, &t, NULL), RV_OK);
	assert_int_equal(rv_json_lines_write(t, trace_start(&start), NULL), RV_OK);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		const struct trace_roster vote = roster_of(round, (int)member / 2, fault);
		const struct trace_applied apply = {.round = round, .participated = true, .chain = chains[round], .attempt = 1};
		assert_int_equal(rv_json_lines_write(t, trace_train(round, 0, STEPS, NULL), NULL), RV_OK);
		assert_int_equal(rv_json_lines_write(t, trace_encode(round, 100 + member, true, true), NULL), RV_OK);
		if (fault != NO_VOTE || member / 2 == 0 || round < ROUNDS - 1)
			assert_int_equal(rv_json_lines_write(t, trace_vote(&vote), NULL), RV_OK);
		assert_int_equal(rv_json_lines_write(t, trace_apply(&apply), NULL), RV_OK);
	}
	rv_json_lines_close(t);
	assert_ok(trace_read(path, out, &et));
}

static enum rv_err replay_all(enum fault fault, struct rv_hash *result, struct rv_errtext *et) {
	struct trace_record traces[WORKERS];
	struct replay *p = NULL;
	for (int i = 0; i < WORKERS; i++)
		make_trace((uint32_t)i, fault, &traces[i]);
	struct lab_run *run = lab_fixture_start(&f);
	enum rv_err e = replay_new(run, traces, WORKERS, &p, et);
	for (int i = 0; e == RV_OK && i < ROUNDS; i++)
		e = replay_round(p, et);
	*result = global_full_hash(&run->global);
	replay_free(p);
	lab_run_free(run);
	for (int i = 0; i < WORKERS; i++)
		trace_record_release(&traces[i]);
	return e;
}

static void test_the_layout_decides_the_bits(void **state) {
	(void)state;
	f.cfg.run.row_size = 64;
	const struct rv_hash one = lab_fixture_result(&f);
	f.cfg.run.row_size = 4;
	const struct rv_hash enough = lab_fixture_result(&f);
	f.cfg.run.row_size = 2;
	const struct rv_hash two = lab_fixture_result(&f), again = lab_fixture_result(&f);
	assert_hashes_equal(one, enough);
	assert_hashes_equal(two, again);
	assert_hashes_not_equal(one, two);
}

static void test_a_replay_joins_the_rows(void **state) {
	(void)state;
	struct rv_hash replayed;
	struct rv_errtext et = {0};
	record_run();
	assert_int_equal(replay_all(NO_FAULT, &replayed, &et), RV_OK);
	assert_hashes_equal(replayed, end);
}

static void test_a_row_that_is_missing_is_named(void **state) {
	(void)state;
	struct rv_hash replayed;
	struct rv_errtext et = {0};
	record_run();
	for (enum fault fault = OTHER_WEIGHTS; fault <= NO_VOTE; fault++)
		assert_fault(replay_all(fault, &replayed, &et), RV_E_NOTFOUND, &et,
					 "round 4: no trace that is here says who took part in row 1 of 2");
}

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	f.cfg.run.row_size = 2;
	f.cfg.run.codec = CODEC_fp32; /* int8 hides differences of the last bits */
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_layout_decides_the_bits),
		cmocka_unit_test(test_a_replay_joins_the_rows),
		cmocka_unit_test(test_a_row_that_is_missing_is_named),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
