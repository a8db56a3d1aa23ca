/* test_lab_slow_members.c: runs in which a worker with a slow uplink sends a coarser contribution,
 * or a part of it: a replay of the workers' traces, which name what each sent, computes the same
 * bits. */
#include "base/json_lines.h"
#include "lab/methods/lines.h"
#include "lab/worker_files/replay.h"

#include "tests/common/check.h"
#include "tests/lab/lab_fixture.h"

#include <stdio.h>

enum { WORKERS = 4, ROUNDS = 9, STEPS = 3, SLOW = 3 };

static struct lab_fixture f;
static struct rv_hash chains[ROUNDS], end;
static struct contribution_form forms[ROUNDS][WORKERS];

static void set_up(int policy, double feedback, const char *lines) {
	lab_fixture_init(&f);
	f.cfg.run.slow_members = policy;
	f.cfg.run.error_feedback = feedback;
	f.cfg.run.rounds = ROUNDS;
	f.cfg.run.outer_clip = 1.5;
	assert_int_equal(lines_parse(lines, f.cfg.lines, NULL), RV_OK);
}

static void record_run(void) {
	const bool all[LAB_MAX_WORKERS] = {true, true, true, true};
	struct lab_run *r = lab_fixture_start(&f);
	for (int i = 0; i < ROUNDS; i++) {
		const struct lines_round lines = lines_round_of(r, (uint64_t)i);
		struct lab_round round;
		lines_forms(&f.cfg, &lines, &r->global.cfg, all, forms[i]);
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		assert_int_equal(round.participants, WORKERS);
		chains[i] = r->global.chain;
	}
	end = global_full_hash(&r->global);
	lab_run_free(r);
}

static void make_trace(uint32_t member, bool lies, struct trace_record *out) {
	const struct trace_started start = {.member = member, .boot = 100 + member, .threads = 1, .dtype = "fp32"};
	struct rv_json_lines *t;
	char path[300];
	snprintf(path, sizeof path, "%s/trace-%u", f.dir, member);
	(void)remove(path);
	assert_int_equal(rv_json_lines_open(path, true, &t, NULL), RV_OK);
	assert_int_equal(rv_json_lines_write(t, trace_start(&start), NULL), RV_OK);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct trace_roster vote = {.round = round, .attempt = 1, .n_rows = 1, .n = WORKERS};
		const struct trace_applied apply = {.round = round, .participated = true, .chain = chains[round], .attempt = 1};
		for (uint32_t i = 0; i < WORKERS; i++) {
			vote.members[i].member = i;
			vote.members[i].weight = 1;
			vote.members[i].boot = 100 + i;
			vote.members[i].codec = lies ? 0 : forms[round][i].codec;
			vote.members[i].part = lies ? 0 : forms[round][i].part;
		}
		assert_int_equal(rv_json_lines_write(t, trace_train(round, 0, STEPS, NULL), NULL), RV_OK);
		assert_int_equal(rv_json_lines_write(t, trace_encode(round, 100 + member, true, true), NULL), RV_OK);
		assert_int_equal(rv_json_lines_write(t, trace_vote(&vote), NULL), RV_OK);
		assert_int_equal(rv_json_lines_write(t, trace_apply(&apply), NULL), RV_OK);
	}
	rv_json_lines_close(t);
	assert_ok(trace_read(path, out, &et));
}

static enum rv_err replay_all(bool lies, struct rv_hash *result, struct rv_errtext *et) {
	struct trace_record traces[WORKERS];
	struct replay *p = NULL;
	for (int i = 0; i < WORKERS; i++)
		make_trace((uint32_t)i, lies, &traces[i]);
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

/* Returns in how many rounds the slow worker sent less; the others never do. */
static int sent_less(void) {
	int rounds = 0;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < SLOW; i++)
			assert_true(forms[round][i].codec == 0 && forms[round][i].part == 0);
		rounds += forms[round][SLOW].codec != 0 || forms[round][SLOW].part != 0;
	}
	return rounds;
}

static void check(int policy, double feedback) {
	const char *const lines = "100mbit:100mbit:100mbit:100mbit/5mbit";
	struct rv_hash replayed;
	struct rv_errtext et = {0};
	set_up(SLOW_WAIT, feedback, lines);
	const struct rv_hash waits = lab_fixture_result(&f);
	lab_fixture_release(&f);
	set_up(policy, feedback, lines);
	record_run();
	assert_int_equal(sent_less(), ROUNDS);
	assert_hashes_not_equal(end, waits);
	if (replay_all(false, &replayed, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_hashes_equal(replayed, end);
	assert_int_equal(replay_all(true, &replayed, &et), RV_E_PROTOCOL); /* other bits than the workers' */
	lab_fixture_release(&f);
}

static void test_a_replay_of_coarser_contributions(void **state) {
	(void)state;
	check(SLOW_COARSER, 0);
	check(SLOW_COARSER, 0.9);
}

static void test_a_replay_of_parts(void **state) {
	(void)state;
	check(SLOW_PART, 0);
	check(SLOW_PART, 0.9);
}

/* What is sent is less, and so is the modelled time; a line that is slow in both directions wins
 * nothing, because its mean takes as long. */
static void test_what_it_wins(void **state) {
	(void)state;
	for (int policy = SLOW_WAIT; policy <= SLOW_PART; policy++) {
		int64_t us[2];
		uint64_t bytes[2];
		for (int both = 0; both < 2; both++) {
			struct lab_round round;
			set_up(policy, 0.9, both ? "100mbit:100mbit:100mbit:5mbit" : "100mbit:100mbit:100mbit:20mbit/5mbit");
			struct lab_run *r = lab_fixture_start(&f);
			for (int i = 0; i < ROUNDS; i++) /* in the last one, no line is tried out */
				assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
			us[both] = round.modelled_exchange_us;
			bytes[both] = round.bytes;
			lab_run_free(r);
			lab_fixture_release(&f);
		}
		const bool sends_less = policy == SLOW_COARSER || policy == SLOW_PART;
		assert_int_equal(us[0] * 3 < us[1], sends_less);
		assert_int_equal(bytes[0] < bytes[1], sends_less);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_replay_of_coarser_contributions),
		cmocka_unit_test(test_a_replay_of_parts),
		cmocka_unit_test(test_what_it_wins),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
