/* test_lab_pace.c: workers of different speeds: how many steps each takes, when a round closes and
 * without whom, and that training follows it. */
#include "lab/methods/averaging.h"
#include "tests/lab/lab_fixture.h"

#include <math.h>
#include <string.h>

static struct lab_fixture f;
static struct pace_round pace;
static uint64_t kept[LAB_MAX_WORKERS];

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	f.cfg.run.codec = CODEC_fp32;
	memset(kept, 0, sizeof kept);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

static void speeds(const char *text, bool dylu) {
	assert_int_equal(pace_parse_speeds(text, f.cfg.speeds, NULL), RV_OK);
	f.cfg.dylu = dylu;
	f.cfg.step_ms = 100;
}

static void test_speeds_are_read(void **state) {
	(void)state;
	double v[LAB_MAX_WORKERS];
	struct rv_errtext et = {0};
	assert_int_equal(pace_parse_speeds("", v, NULL), RV_OK);
	assert_true(v[0] == 1 && v[LAB_MAX_WORKERS - 1] == 1);
	assert_int_equal(pace_parse_speeds("1:2,0.5", v, NULL), RV_OK);
	assert_true(v[0] == 1 && v[1] == 2 && v[2] == 0.5 && v[3] == 1 && v[5] == 0.5);
	assert_fault(pace_parse_speeds("1:x", v, &et), RV_E_INVALID, &et, "value 2 is not a number");
	assert_fault(pace_parse_speeds("1:", v, &et), RV_E_INVALID, &et, "value 2 is missing");
	assert_fault(pace_parse_speeds("1:0", v, &et), RV_E_RANGE, &et, "value 2 is 0");
	assert_fault(pace_parse_speeds("nan", v, &et), RV_E_RANGE, &et, "must be in [0.001, 1000]");
}

static void test_all_are_waited_for(void **state) {
	(void)state;
	f.cfg.run.steps_per_round = 30;
	f.cfg.run.min_workers = 4;
	speeds("1:1:0.5:0.25", false);
	pace_of_round(&f.cfg, kept, &pace);
	assert_int_equal(pace.n_in_time, 4);
	assert_int_equal(pace.steps[3], 30);
	assert_true(pace.duration_ms == 30 * 100 / 0.25);
	speeds("", false);
	pace_of_round(&f.cfg, kept, &pace);
	assert_int_equal(pace.n_in_time, 4);
	assert_true(pace.duration_ms == 30 * 100);
}

/* With H in proportion to speed nobody waits for long: at most for one of its own steps. */
static void test_dylu(void **state) {
	(void)state;
	f.cfg.run.steps_per_round = 30;
	speeds("2:1:0.5:0.03", true);
	pace_of_round(&f.cfg, kept, &pace);
	assert_int_equal(pace.steps[0], 30);
	assert_int_equal(pace.steps[1], 15);
	assert_int_equal(pace.steps[2], 7); /* 7.5 */
	assert_int_equal(pace.steps[3], 1); /* 0.45 */
	assert_int_equal(pace.n_in_time, 4);
	speeds("1:0.7:0.1:0.9", true); /* whole but for a rounding */
	pace_of_round(&f.cfg, kept, &pace);
	assert_int_equal(pace.steps[1], 21);
	assert_int_equal(pace.steps[2], 3);
	assert_int_equal(pace.steps[3], 27);
	assert_true(fabs(pace.duration_ms - 3000) < 1e-6);
}

/* A round's time instead: what fits into it, and no more than H. */
static void test_steps_by_time(void **state) {
	(void)state;
	f.cfg.run.steps_per_round = 30;
	f.cfg.run.round_ms = 2000;
	speeds("2:1:0.5:0.01", false);
	pace_of_round(&f.cfg, kept, &pace);
	assert_int_equal(pace.steps[0], 30);
	assert_int_equal(pace.steps[1], 20);
	assert_int_equal(pace.steps[2], 10);
	assert_int_equal(pace.steps[3], 1);
}

static void test_a_quorum_closes_the_round(void **state) {
	(void)state;
	f.cfg.run.steps_per_round = 30;
	f.cfg.run.min_workers = 2;
	f.cfg.run.grace_ms = 0;
	speeds("1:0.5:1:0.25", false);
	pace_of_round(&f.cfg, kept, &pace);
	assert_int_equal(pace.n_in_time, 2);
	assert_true(pace.in_time[0] && !pace.in_time[1] && pace.in_time[2] && !pace.in_time[3]);
	assert_int_equal(pace.steps[1], 15);
	assert_int_equal(pace.steps[3], 7);
	assert_true(pace.duration_ms == 3000);
	f.cfg.run.grace_ms = 3000; /* just enough for the second */
	pace_of_round(&f.cfg, kept, &pace);
	assert_int_equal(pace.n_in_time, 3);
	assert_int_equal(pace.steps[1], 30);
	assert_int_equal(pace.steps[3], 15);
	kept[3] = 25; /* and the last goes on from what it has: 5 more, 2 s */
	pace_of_round(&f.cfg, kept, &pace);
	assert_int_equal(pace.n_in_time, 4);
	assert_int_equal(pace.steps[3], 5);
	assert_true(pace.duration_ms == 6000);
}

/* ---- training ---- */

/* Speeds change when a round ends, not what it computes, as long as all are waited for. */
static void test_waiting_changes_no_bit(void **state) {
	(void)state;
	struct rv_hash alike = lab_fixture_result(&f), slow;
	speeds("1:0.5:0.1:2", false);
	slow = lab_fixture_result(&f);
	assert_hashes_equal(alike, slow);
	speeds("0.3:0.3:0.3:0.3", true);
	slow = lab_fixture_result(&f);
	assert_hashes_equal(alike, slow);
}

/* H_i steps each, from the round's place in the schedule; by tokens, they count in proportion to
 * them. */
static void test_local_steps_and_their_weights(void **state) {
	(void)state;
	struct lab_round round;
	f.cfg.run.steps_per_round = 6;
	f.cfg.run.weight_by_tokens = true;
	f.cfg.workers = 2;
	f.cfg.run.outer = OUTER_average;
	speeds("1:0.5", true);
	struct lab_run *r = lab_fixture_start(&f);
	size_t n = replica_n_params(r->replicas[0]);
	for (uint64_t at = 0; at < 2; at++) {
		struct pace_round now;
		pace_of_round(&r->cfg, (uint64_t[LAB_MAX_WORKERS]){0}, &now);
		assert_int_equal(averaging_train_paced(r, &now, NULL), RV_OK);
		assert_int_equal(replica_global_step(r->replicas[0]), 6 * at + 6);
		assert_int_equal(replica_global_step(r->replicas[1]), 6 * at + 3);
		double a = (double)replica_theta(r->replicas[0])[n / 2], b = (double)replica_theta(r->replicas[1])[n / 2];
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK); /* nothing is left to train */
		assert_true(fabs((double)r->global.theta[n / 2] - (2 * a + b) / 3) < 1e-6);
		assert_int_equal(round.tokens, (6 + 3) * f.cfg.run.batch * f.cfg.run.context);
		assert_int_equal(round.modelled_us, 600000);
		assert_int_equal(round.participants, 2);
	}
	lab_run_free(r);
}

/* A slow worker is late twice, keeps its steps, and takes part with all of them in the third
 * round. */
static void test_a_late_worker_keeps_and_catches_up(void **state) {
	(void)state;
	struct lab_round round;
	f.cfg.run.min_workers = 3;
	f.cfg.run.grace_ms = 0;
	speeds("1:1:1:0.34", false);
	struct lab_run *r = lab_fixture_start(&f);
	for (int at = 0; at < 3; at++) {
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		assert_int_equal(round.participants, at < 2 ? 3 : 4);
		assert_int_equal(lab_run_kept_steps(r, 3), at < 2 ? at + 1 : 0);
		assert_int_equal(r->participants[3].tokens > 0, at < 2);
		assert_int_equal(memcmp(replica_theta(r->replicas[3]), r->global.theta, r->global.cfg.n * sizeof(float)) == 0,
						 at == 2);
	}
	lab_run_free(r);
	f.cfg.run.late = RUN_LATE_DISCARD;
	r = lab_fixture_start(&f);
	for (int at = 0; at < 3; at++) {
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		assert_int_equal(round.participants, 3);
		assert_int_equal(lab_run_kept_steps(r, 3), 0);
		assert_memory_equal(replica_theta(r->replicas[3]), r->global.theta, r->global.cfg.n * sizeof(float));
	}
	lab_run_free(r);
}

/* The mean over those in time is the run in which the late one, that never is, does not exist. */
static void test_who_is_always_late_does_not_count(void **state) {
	(void)state;
	f.cfg.run.late = RUN_LATE_DISCARD;
	f.cfg.run.min_workers = 3;
	f.cfg.run.grace_ms = 0;
	speeds("1:1:1:0.01", false);
	struct rv_hash with = lab_fixture_result(&f), without;
	f.cfg.workers = 3;
	without = lab_fixture_result(&f);
	assert_hashes_equal(with, without);
}

/* A worker that misses the round of a fragment keeps all of its own, or none of it. */
static void test_missed_fragments(void **state) {
	(void)state;
	f.cfg.run.n_layer = 3;
	f.cfg.run.chunk_elems = 256;
	f.cfg.run.fragments = 3;
	f.cfg.run.rounds = 9;
	f.cfg.drop_sync = 0.5;
	for (int keep = 0; keep < 2; keep++) {
		f.cfg.run.late = keep ? RUN_LATE_KEEP : RUN_LATE_DISCARD;
		struct lab_run *r = lab_fixture_start(&f);
		bool takes_part[LAB_MAX_WORKERS];
		int missed = 0;
		for (uint64_t at = 0; at < 9; at++) {
			struct lab_round round;
			(void)averaging_participants(&f.cfg, at, takes_part);
			assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
			for (int i = 0; i < 4; i++) {
				size_t bytes = r->global.cfg.n * sizeof(float);
				bool is_theta = memcmp(replica_theta(r->replicas[i]), r->global.theta, bytes) == 0;
				assert_int_equal(is_theta, !takes_part[i] && !keep); /* a participant takes over a fragment */
				missed += !takes_part[i];
			}
		}
		assert_true(missed > 0);
		lab_run_free(r);
	}
}

static void test_late_workers_are_resumed(void **state) {
	(void)state;
	char path[300];
	struct lab_round round;
	snprintf(path, sizeof path, "%s/checkpoint", f.dir);
	f.cfg.run.min_workers = 3;
	f.cfg.run.grace_ms = 0;
	f.cfg.run.rounds = 6;
	speeds("1:1:1:0.34", false);
	struct rv_hash straight = lab_fixture_result(&f), resumed;
	struct lab_run *r = lab_fixture_start(&f);
	for (int i = 0; i < 2; i++)
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	assert_int_equal(lab_run_save(r, path, NULL), RV_OK);
	lab_run_free(r);
	r = lab_fixture_start(&f);
	assert_int_equal(lab_run_load(r, path, NULL), RV_OK);
	assert_int_equal(lab_run_kept_steps(r, 3), 2);
	lab_fixture_finish(r);
	resumed = r->cfg.method->state_hash(r);
	assert_hashes_equal(straight, resumed);
	lab_run_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_speeds_are_read),
		TEST(test_all_are_waited_for),
		TEST(test_dylu),
		TEST(test_steps_by_time),
		TEST(test_a_quorum_closes_the_round),
		TEST(test_waiting_changes_no_bit),
		TEST(test_local_steps_and_their_weights),
		TEST(test_a_late_worker_keeps_and_catches_up),
		TEST(test_who_is_always_late_does_not_count),
		TEST(test_missed_fragments),
		TEST(test_late_workers_are_resumed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
