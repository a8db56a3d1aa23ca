/* What people see of a run and of its members: status, metrics, the dashboard. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/web/dashboard.h"
#include "tests/common/check.h"
#include "tests/coordinator/service_bench.h"

static void test_status(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(bench_join(b, 2, &reply), RV_OK);
	bench_commit_round(b);
	json_t *s = service_status(b->service, b->now_us, false);
	assert_int_equal(json_integer_value(json_object_get(s, "round")), 1);
	assert_string_equal(json_string_value(json_object_get(s, "phase")), "training");
	assert_true(json_real_value(json_object_get(s, "loss")) == 3.5);
	assert_int_equal(json_integer_value(json_object_get(s, "total_tokens")), 200);
	json_t *member = json_array_get(json_object_get(s, "members"), 0);
	assert_string_equal(json_string_value(json_object_get(member, "name")), "it's \"me\"");
	assert_null(json_object_get(member, "addr"));
	assert_null(json_object_get(member, "key"));
	assert_int_equal(json_array_size(json_object_get(s, "history")), 1);
	assert_true(json_array_size(json_object_get(s, "events")) > 3);
	json_decref(s);
	s = service_status(b->service, b->now_us, true);
	member = json_array_get(json_object_get(s, "members"), 0);
	assert_string_equal(json_string_value(json_object_get(member, "addr")), "10.1.1.1:70");
	json_decref(s);
	assert_int_equal(b->store.stats[b->store.n_commits - 1].participants, 2);
	assert_int_equal(b->store.stats[b->store.n_commits - 1].tokens, 200);
	assert_true(b->store.stats[b->store.n_commits - 1].tx_bytes > 0);
}

/* One of three claims all that a report can hold: it is shown within bounds, the round's figures
 * are those of the others, and the totals are what the configuration allows. */
static void test_a_liar_does_not_move_the_figures(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	for (uint8_t who = 1; who <= 3; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	b->liar = 3;
	for (int round = 0; round < 3; round++) {
		for (int phase = WORKER_TRAINING; phase <= WORKER_VOTED; phase++)
			for (uint8_t who = 1; who <= 3 && phase != WORKER_REDUCING; who++)
				assert_int_equal(bench_report(b, who, (enum worker_phase)phase, ":70"), RV_OK);
		const struct commit_stats *c = &b->store.stats[b->store.n_commits - 1];
		assert_int_equal(c->round, round);
		assert_true(c->loss == 4);                      /* of 3, 4 and the lie */
		assert_int_equal(c->tokens, 200 + 8 * 64 * 30); /* batch x context x steps-per-round */
		assert_true(c->tx_bytes < 1000000 && c->compute_us == 0);
		assert_true(c->tokens_per_s <= 1e9 + 20);
	}
	assert_true(bench_was_told(b, "member 2 reports more tokens than its steps can be"));
	json_t *s = service_status(b->service, b->now_us, true), *liar = json_array_get(json_object_get(s, "members"), 2);
	assert_int_equal(json_integer_value(json_object_get(s, "total_tokens")), 3 * (200 + 8 * 64 * 30));
	assert_true(json_real_value(json_object_get(liar, "loss")) <= 1e6);
	assert_true(json_integer_value(json_object_get(liar, "tx_bytes")) > 0);
	json_decref(s);
	char *metrics = service_metrics(b->service, b->now_us);
	assert_non_null(strstr(metrics, "rivulet_loss 4\n"));
	free(metrics);
}

/* ---- the held-out loss ---- */

static uint64_t claimed_round;
static float claimed_loss;
static uint8_t claimant;

static void claim(struct report *rep, uint8_t who) {
	if (who != claimant)
		return;
	rep->heldout_round = claimed_round;
	rep->heldout_loss = claimed_loss;
}

/* {who} claims a loss after so many rounds. */
static void claims(struct service_bench *b, uint8_t who, uint64_t round, float loss) {
	claimant = who;
	claimed_round = round;
	claimed_loss = loss;
	b->alter = claim;
	assert_int_equal(bench_report(b, who, WORKER_TRAINING, ":70"), RV_OK);
}

static void assert_heldout(struct service_bench *b, const char *points) {
	static char text[LOSS_CURVE_TEXT_BYTES];
	service_heldout_text(b->service, text);
	assert_string_equal(text + strcspn(text, "\n") + 1, points);
}

/* The first participant of a round says what the loss is after it; nobody else does, and not of
 * another round. */
static void test_the_heldout_loss_is_the_first_participants(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(bench_join(b, 2, &reply), RV_OK);
	claims(b, 1, 1, 4.5f); /* no round is committed */
	assert_heldout(b, "");
	bench_commit_round(b);
	claims(b, 1, 1, 4.5f);
	assert_heldout(b, "1 4.5\n");
	claims(b, 1, 1, 4);
	claims(b, 1, 2, 4);
	claims(b, 2, 1, 3);
	assert_heldout(b, "1 4.5\n");
	b->alter = NULL;
	bench_commit_round(b);
	claims(b, 2, 2, 3);
	claims(b, 1, UINT64_MAX, 3);
	assert_heldout(b, "1 4.5\n");
	claims(b, 1, 2, 3.3e38f);
	assert_heldout(b, "1 4.5\n2 1e+06\n");
	json_t *s = service_status(b->service, b->now_us, false), *last = json_object_get(s, "heldout");
	assert_int_equal(json_integer_value(json_object_get(last, "round")), 2);
	assert_int_equal(json_integer_value(json_object_get(last, "claimed_by")), 0); /* the first to join */
	json_decref(s);
	bench_restart(b);
	assert_heldout(b, "1 4.5\n2 1e+06\n");
	s = service_status(b->service, b->now_us, false);
	assert_true(json_is_null(json_object_get(json_object_get(s, "heldout"), "claimed_by")));
	json_decref(s);
	char why[SERVICE_ROLLBACK_BYTES];
	struct rv_errtext et = {0};
	assert_int_equal(service_rollback(b->service, b->now_us, 1, true, why, &et), RV_OK);
	assert_heldout(b, "1 4.5\n");
}

static bool holds(const char *text, const char *part) {
	return strstr(text, part) != NULL;
}

static char *status_text(const struct service_bench *b, bool details) {
	json_t *s = service_status(b->service, b->now_us, details);
	char *text = json_dumps(s, JSON_COMPACT);
	json_decref(s);
	assert_non_null(text);
	return text;
}

/* Where members are is the operator's knowledge: not in the table, not in the news, not in the
 * metrics. */
static void test_no_address_is_for_everybody(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(bench_join(b, 2, &reply), RV_OK);
	bench_commit_round(b);
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, "[2001:db8::7]:7071"), RV_OK);
	assert_int_equal(bench_report(b, 2, WORKER_TRAINING, "203.0.113.99:7072"), RV_OK);
	assert_int_equal(service_ban(b->service, b->now_us, 1, true, NULL), RV_OK);
	char *everybody = status_text(b, false), *operators = status_text(b, true);
	char *metrics = service_metrics(b->service, b->now_us);
	static const char *const secrets[] = {"10.1.1.1", ":7071", ":7072", "2001:db8", "203.0.113.99"};
	enum { SHOWN = 3 }; /* what a member only claims is shown to nobody */
	for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
		assert_true(i >= SHOWN || holds(operators, secrets[i]));
		assert_false(holds(everybody, secrets[i]) || holds(metrics, secrets[i]));
	}
	free(everybody);
	free(operators);
	free(metrics);
}

/* Members say no name unless their people want to. */
static void test_who_has_no_name_has_a_number(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	b->nameless = true;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	json_t *s = service_status(b->service, b->now_us, false);
	const json_t *member = json_array_get(json_object_get(s, "members"), 0);
	assert_string_equal(json_string_value(json_object_get(member, "name")), "worker 0");
	json_decref(s);
}

/* Reports say 0 for a loss that is not known. */
static void test_a_loss_that_is_not_known_is_not_shown_as_one(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	json_t *s = service_status(b->service, b->now_us, false);
	assert_true(json_is_null(json_object_get(json_array_get(json_object_get(s, "members"), 0), "loss")));
	json_decref(s);
	char *metrics = service_metrics(b->service, b->now_us);
	assert_non_null(metrics);
	assert_null(strstr(metrics, "rivulet_loss"));
	assert_null(strstr(metrics, "rivulet_member_loss{"));
	assert_non_null(strstr(metrics, "rivulet_member_up{member=\"0\"}"));
	free(metrics);
}

static json_t *time_of_member_0(struct service_bench *b) {
	json_t *s = service_status(b->service, b->now_us, false);
	json_t *t = json_incref(json_object_get(json_array_get(json_object_get(s, "members"), 0), "time"));
	json_decref(s);
	return t;
}

static void expect_time(struct service_bench *b, int64_t us, uint64_t compute_us) {
	json_t *t = time_of_member_0(b);
	assert_int_equal(json_integer_value(json_object_get(t, "us")), us);
	assert_int_equal(json_integer_value(json_object_get(t, "compute_us")), (json_int_t)compute_us);
	json_decref(t);
}

/* A worker that has trained for long before this coordinator started, and one that starts again. */
static void test_time_is_counted_from_the_first_report(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	b->compute_us = UINT64_C(9000000000);
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	json_t *t = time_of_member_0(b);
	assert_true(json_is_null(t));
	json_decref(t);
	b->now_us += 1000000;
	b->compute_us += 700000;
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	expect_time(b, 1000000, 700000);
	b->compute_us = 10; /* a new process */
	b->now_us += 5000000;
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	b->now_us += 2000000;
	b->compute_us = 400010;
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	expect_time(b, 2000000, 400000);
}

static void test_status_is_whole_before_anything_happened(void **state) {
	struct service_bench *b = *state;
	json_t *s = service_status(b->service, b->now_us, true);
	assert_string_equal(json_string_value(json_object_get(s, "phase")), "waiting");
	assert_true(json_is_null(json_object_get(s, "loss")));
	assert_true(json_is_null(json_object_get(s, "eta_s")));
	json_decref(s);
}

/* A round has one number, in every event and in the table of workers; how many are committed is
 * said beside it. */
static void test_a_round_has_one_number(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	bench_commit_round(b);
	json_t *s = service_status(b->service, b->now_us, false);
	json_t *member = json_array_get(json_object_get(s, "members"), 0);
	assert_int_equal(json_integer_value(json_object_get(member, "round")), 0);
	json_t *committed = json_array_get(json_object_get(s, "history"), 0);
	assert_int_equal(json_integer_value(json_object_get(committed, "round")), 0);
	json_decref(s);
	assert_true(bench_was_told(b, "round 1, attempt 1: 2 workers average their gradients"));
	assert_true(bench_was_told(b, "round 1 of 4 committed: 2 workers, loss 3.5000, 200 tokens"));
}

/* As the terminal's status and the workers' logs count: by thousands. */
static void test_the_page_counts_bytes_by_thousands(void **state) {
	(void)state;
	assert_non_null(memmem(dashboard_html, dashboard_html_bytes, " MB\"", 4));
	assert_null(memmem(dashboard_html, dashboard_html_bytes, "MiB", 3));
}

static void test_prometheus(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	char *text = service_metrics(b->service, b->now_us);
	assert_non_null(strstr(text, "\nrivulet_rounds 4\n"));
	assert_non_null(strstr(text, "\nrivulet_member_up{member=\"0\"} 1\n"));
	assert_non_null(strstr(text, "# TYPE rivulet_member_sent_bytes_total counter\n"));
	free(text);
}

static void bring_a_text(struct report *rep, uint8_t who) {
	rep->text_mirror_bytes = 5000;
	rep->text_coordinator_bytes = 70;
	rep->text_stall_us = 1500000;
	if (who == 2)
		rep->own_text = (struct rv_hash){{0xab, 0xcd}};
}

/* Who brought a text of its own is seen by all: in the news once, in the table, in metrics. */
static void test_a_text_of_its_own_is_seen(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	const struct text_totals sent = {.bytes = 1234, .files = 5, .damaged = 1};
	b->alter = bring_a_text;
	for (uint8_t who = 1; who <= 2; who++) {
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
		assert_int_equal(bench_report(b, who, WORKER_TRAINING, ":70"), RV_OK);
	}
	assert_true(bench_was_told(b, "member 1 it's \"me\" trains on a text of its own, not on"));
	assert_false(bench_was_told(b, "member 0 it's \"me\" trains on"));
	service_show_text(b->service, &sent);
	char *status = status_text(b, true), *metrics = service_metrics(b->service, b->now_us);
	assert_true(holds(status, "\"own\":\"abcd000000000000\""));
	free(status);
	status = status_text(b, false);
	assert_true(holds(status, "\"own\":true"));
	assert_false(holds(status, "abcd000000000000"));
	assert_true(holds(status, "{\"own\":null,\"mirror_bytes\":5000,\"member_bytes\":0,\"coordinator_bytes\":70,"
							  "\"stall_us\":1500000}"));
	assert_true(holds(status, "\"own_allowed\":true,\"served\":true,\"sent_bytes\":1234"));
	assert_true(holds(metrics, "\nrivulet_member_text_bytes_total{member=\"0\",source=\"mirror\"} 5000\n"));
	assert_true(holds(metrics, "\nrivulet_member_text_stall_seconds_total{member=\"0\"} 1.5\n"));
	assert_true(holds(metrics, "\nrivulet_member_own_text{member=\"1\"} 1\n"));
	assert_true(holds(metrics, "\nrivulet_text_damaged_shards 1\n"));
	free(status);
	free(metrics);
	service_show_text(b->service, NULL);
	b->alter = NULL;
	assert_int_equal(bench_report(b, 2, WORKER_TRAINING, ":70"), RV_OK);
	assert_true(bench_was_told(b, "member 1 it's \"me\" trains on the run's text again"));
}

static void bring_another_text(struct report *rep, uint8_t who) {
	if (who == 2)
		memcpy(rep->own_text.b, &rep->seq, sizeof rep->seq);
}

/* One that names another text in each report fills the log, and pushes all else out of the news. */
static void test_one_member_does_not_fill_the_news(void **state) {
	enum { REPORTS = 300 };
	struct service_bench *b = *state;
	struct join_reply reply;
	b->alter = bring_another_text;
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	for (int i = 0; i < REPORTS; i++)
		assert_int_equal(bench_report(b, 2, WORKER_TRAINING, ":70"), RV_OK);
	assert_true(bench_was_told(b, "member 1 causes many events"));
	assert_true(bench_was_told(b, "1 invite link made"));
	b->alter = NULL;
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_member_does_not_fill_the_news, bench_set_up_text, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_status, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_liar_does_not_move_the_figures, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_the_heldout_loss_is_the_first_participants, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_no_address_is_for_everybody, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_who_has_no_name_has_a_number, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_loss_that_is_not_known_is_not_shown_as_one, bench_set_up,
										bench_tear_down),
		cmocka_unit_test_setup_teardown(test_time_is_counted_from_the_first_report, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_status_is_whole_before_anything_happened, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_round_has_one_number, bench_set_up, bench_tear_down),
		cmocka_unit_test(test_the_page_counts_bytes_by_thousands),
		cmocka_unit_test_setup_teardown(test_a_text_of_its_own_is_seen, bench_set_up_text, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_prometheus, bench_set_up, bench_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
