/* A run that waits, ends, or stands still: who is missing, and the step that helps. */
#include <stdlib.h>
#include <string.h>

#include "tests/common/check.h"
#include "tests/coordinator/service_bench.h"

/* Too few workers for 20 s: who is missing is told, once, and shown. */
static void test_a_long_wait_names_who_is_missing(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(bench_join(b, 2, &reply), RV_OK);
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	for (int i = 0; i < 4; i++) {
		service_tick(b->service, b->now_us += 4900000);
		assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	}
	assert_false(bench_was_told(b, "missing"));
	service_tick(b->service, b->now_us += 500000);
	assert_true(bench_was_told(b, "1 of 2 workers are present; missing: member 1 'it's \"me\"' (never reported)"));
	json_t *s = service_status(b->service, b->now_us, false), *missing = json_object_get(s, "missing");
	assert_true(json_real_value(json_object_get(s, "waiting_s")) >= 20);
	assert_int_equal(json_array_size(missing), 1);
	assert_int_equal(json_integer_value(json_array_get(missing, 0)), 1);
	json_decref(s);
	assert_int_equal(bench_report(b, 2, WORKER_TRAINING, ":70"), RV_OK);
	s = service_status(b->service, b->now_us, false);
	assert_true(json_is_null(json_object_get(s, "waiting_s")));
	assert_int_equal(json_array_size(json_object_get(s, "missing")), 0);
	json_decref(s);
	assert_int_equal(bench_report(b, 2, WORKER_LEAVING, ":70"), RV_OK);
	assert_true(bench_was_told(b, "member 1 was stopped and has left"));
}

/* A worker whose run is complete has not been stopped. */
static void test_a_worker_that_has_finished_is_not_stopped(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	for (int i = 0; i < 4; i++)
		bench_commit_round(b);
	assert_int_equal(bench_report(b, 2, WORKER_LEAVING, ":70"), RV_OK);
	assert_true(bench_was_told(b, "member 1 has finished and left"));
	assert_false(bench_was_told(b, "was stopped"));
}

/* One of two dies in the all-reduce: the attempt is held for it, and people hear why nothing
 * moves. */
static void test_an_all_reduce_that_waits_is_told(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_report(b, who, WORKER_READY, ":70"), RV_OK);
	for (int i = 0; i < 8; i++) {
		service_tick(b->service, b->now_us += 4900000);
		assert_int_equal(bench_report(b, 1, WORKER_REDUCING, ":70"), RV_OK);
	}
	json_t *s = service_status(b->service, b->now_us, false);
	assert_string_equal(json_string_value(json_object_get(s, "phase")), "averaging");
	assert_true(json_real_value(json_object_get(s, "waiting_s")) >= 20);
	json_decref(s);
	assert_true(bench_was_told(b, "1 of 2 workers are present; missing: member 1"));
	assert_int_equal(bench_report(b, 2, WORKER_REDUCING, ":70"), RV_OK);
	s = service_status(b->service, b->now_us, false);
	assert_true(json_is_null(json_object_get(s, "waiting_s")));
	json_decref(s);
}

static void test_the_run_ends(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(bench_join(b, 2, &reply), RV_OK);
	for (int round = 0; round < 4; round++)
		bench_commit_round(b);
	json_t *s = service_status(b->service, b->now_us, false);
	assert_string_equal(json_string_value(json_object_get(s, "phase")), "done");
	assert_true(json_real_value(json_object_get(s, "eta_s")) == 0);
	json_decref(s);
}

/* For longer than it takes to be sure. */
static void report_for_long(struct service_bench *b, uint8_t first, uint8_t last) {
	for (int i = 0; i < 12; i++) {
		service_tick(b->service, b->now_us += 2000000);
		for (uint8_t who = first; who <= last; who++)
			assert_int_equal(bench_report(b, who, WORKER_SYNCING, ":70"), RV_OK);
	}
}

static json_t *not_held(const struct service_bench *b) {
	json_t *s = service_status(b->service, b->now_us, false), *o = json_incref(json_object_get(s, "not_held"));
	json_decref(s);
	return o;
}

/* Those who have the last state have exited: that is how a run ends, and no reason to take rounds
 * back. */
static void test_who_is_late_for_the_end(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	static struct document d;
	for (uint8_t who = 1; who <= 3; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	bench_document(b, &d);
	struct report old = {.round = d.round, .chain = d.chain};
	for (int round = 0; round < 4; round++)
		bench_commit_round(b);
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_report(b, who, WORKER_LEAVING, ":70"), RV_OK);
	b->state = &old;
	report_for_long(b, 3, 3);
	assert_true(bench_was_told(
		b, "the run is complete, and nothing is lost: members that are present (2) have an older state"));
	assert_true(bench_was_told(b, "start one that has them (member 0, 1)"));
	assert_false(bench_was_told(b, "rollback"));
	assert_false(bench_was_told(b, "the run waits at round"));
	json_t *o = not_held(b);
	assert_true(json_is_true(json_object_get(o, "complete")));
	assert_string_equal(json_string_value(json_object_get(o, "command")), "");
	json_decref(o);
}

/* The store is an old copy, and nobody has shown that its disk reaches so far back. */
static void test_no_round_is_advised_that_nobody_has_proven(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	struct rv_errtext et = {0};
	char text[SERVICE_ROLLBACK_BYTES];
	struct report later = {.round = 4, .chain.b = {7}};
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	bench_commit_round(b);
	b->state = &later;
	report_for_long(b, 1, 2);
	assert_true(bench_was_told(b, "serve the newest store"));
	assert_true(bench_was_told(b, "a rollback to round 1 would leave nothing to continue from"));
	assert_true(bench_was_told(b, "rivulet export"));
	assert_false(bench_was_told(b, "--to-round"));
	json_t *o = not_held(b);
	assert_true(json_is_true(json_object_get(o, "ahead")));
	assert_string_equal(json_string_value(json_object_get(o, "command")), "");
	json_decref(o);
	assert_int_equal(service_rollback(b->service, b->now_us, 1, false, text, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "no state is left to go on from"));
	assert_int_equal(service_rollback(b->service, b->now_us, 1, true, text, &et), RV_OK);
	assert_non_null(strstr(text, "no present member has proven the state of round 1"));
	assert_non_null(strstr(text, "rounds aside"));
}

/* A member that comes and goes with every report is not what the log is for. */
static void test_one_member_does_not_fill_the_log(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(bench_report(b, 1, i % 2 ? WORKER_TRAINING : WORKER_LEAVING, ":70"), RV_OK);
	assert_true(bench_was_told(b, "member 0 causes many events"));
	assert_true(bench_was_told(b, "1 invite link made")); /* still among the last hundred */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_long_wait_names_who_is_missing, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_worker_that_has_finished_is_not_stopped, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_an_all_reduce_that_waits_is_told, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_the_run_ends, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_who_is_late_for_the_end, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_no_round_is_advised_that_nobody_has_proven, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_one_member_does_not_fill_the_log, bench_set_up, bench_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
