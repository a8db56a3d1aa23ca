/* The status as text and as lines for programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/commands/status_news.h"
#include "coordinator/commands/status_view.h"
#include "tests/common/check.h"

enum { WIDE = 200 };

static json_t *status_at(int round, const char *phase) {
	json_t *history = json_array();
	for (int i = 0; i < round; i++)
		(void)json_array_append_new(history, json_pack("{s:i,s:i,s:f,s:i}", "round", i, "participants", 4, "loss",
													   3.0 - 0.25 * i, "tx_bytes", 1000));
	return json_pack("{s:s,s:i,s:i,s:i,s:f,s:f,s:i,s:n,s:o,s:[{s:i,s:s,s:b,s:s,s:i,s:f,s:f,s:i,s:i,s:i,s:f}]}", "phase",
					 phase, "round", round, "rounds_total", 8, "attempt", 2, "loss", 2.5, "tokens_per_s", 12345.0,
					 "alive", 4, "eta_s", "history", history, "members", "member", 0, "name", "tiny", "alive", 0,
					 "phase", "averaging", "round", round, "loss", 2.5, "tokens_per_s", 3000.0, "tx_bytes", 5000000,
					 "compute_us", 61000000, "reduce_us", 2000000, "silent_s", 12.34);
}

static char *news_of(struct status_news *told, json_t *s, bool online) {
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	assert_non_null(s);
	status_news_print(told, s, online, f);
	json_decref(s);
	(void)fclose(f);
	return text;
}

static char *news(struct status_news *told, int round, const char *phase) {
	return news_of(told, status_at(round, phase), true);
}

static void expect_text(char *got, const char *want) {
	assert_string_equal(got, want);
	free(got);
}

static void expect_news(struct status_news *told, int round, const char *phase, const char *want) {
	expect_text(news(told, round, phase), want);
}

static void test_news_are_told_once(void **state) {
	(void)state;
	struct status_news told = {0};
	expect_news(&told, 0, "waiting", "{\"event\":\"waiting\",\"round\":0,\"rounds_total\":8,\"alive\":4}\n");
	expect_news(&told, 0, "waiting", "");
	expect_news(&told, 0, "training", "");
	expect_news(&told, 1, "training",
				"{\"event\":\"round\",\"round\":1,\"rounds_total\":8,\"participants\":4,\"loss\":3.0,\"tx_bytes\":1000,"
				"\"alive\":4,\"eta_s\":null}\n");
	expect_news(&told, 1, "averaging", "");
	char *two = news(&told, 3, "done");
	assert_non_null(strstr(two, "\"round\":2,"));
	assert_non_null(strstr(two, "\"round\":3,"));
	assert_non_null(strstr(two, "{\"event\":\"done\",\"round\":3,"));
	free(two);
}

static json_t *status_with(int round, const char *phase, const char *key, json_t *value) {
	json_t *s = status_at(round, phase);
	(void)json_object_set_new(s, key, value);
	return s;
}

static void test_a_full_disk_is_told(void **state) {
	(void)state;
	struct status_news told = {.begun = true};
	char *text = news_of(&told, status_with(0, "training", "store_full", json_true()), true);
	expect_text(text, "{\"event\":\"store_full\",\"round\":0,\"rounds_total\":8,\"online\":true}\n");
	expect_text(news_of(&told, status_with(0, "training", "store_full", json_true()), true), "");
	text = news_of(&told, status_with(0, "training", "store_full", json_false()), true);
	expect_text(text, "{\"event\":\"store_ok\",\"round\":0,\"rounds_total\":8,\"online\":true}\n");
}

static void test_a_coordinator_that_does_not_run_is_told(void **state) {
	(void)state;
	struct status_news told = {.begun = true};
	expect_text(news_of(&told, status_at(0, "waiting"), false),
				"{\"event\":\"offline\",\"round\":0,\"rounds_total\":8,\"online\":false}\n");
	expect_text(news_of(&told, status_at(0, "waiting"), false), "");
	expect_text(news_of(&told, status_at(0, "training"), true),
				"{\"event\":\"online\",\"round\":0,\"rounds_total\":8,\"online\":true}\n");
}

static json_t *status_waiting(double waiting_s) {
	json_t *s = status_with(0, "waiting", "waiting_s", json_real(waiting_s));
	(void)json_object_set_new(s, "missing", json_pack("[i]", 0));
	return s;
}

static void test_who_is_missing_is_told_after_a_while(void **state) {
	(void)state;
	struct status_news told = {.begun = true};
	expect_text(news_of(&told, status_waiting(19), true),
				"{\"event\":\"waiting\",\"round\":0,\"rounds_total\":8,\"alive\":4}\n");
	expect_text(news_of(&told, status_waiting(21.5), true),
				"{\"event\":\"missing\",\"round\":0,\"rounds_total\":8,\"alive\":4,\"waiting_s\":21.5,"
				"\"missing\":[\"tiny\"]}\n");
	expect_text(news_of(&told, status_waiting(22), true), "");
	expect_text(news(&told, 0, "training"), "");
	free(news_of(&told, status_waiting(0), true));
	char *again = news_of(&told, status_waiting(30), true);
	assert_non_null(strstr(again, "\"missing\""));
	free(again);
}

static char *table_of(json_t *s, bool online, int lines) {
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	assert_int_equal(status_view_print(s, online, false, WIDE, f), lines);
	(void)fclose(f);
	json_decref(s);
	return text;
}

static void test_the_table_says_who_is_missing(void **state) {
	(void)state;
	char *text = table_of(status_waiting(95), true, 4);
	assert_non_null(strstr(text, "waiting for workers since 1:35"));
	assert_non_null(strstr(text, "missing: tiny\n"));
	free(text);
	json_t *full = status_waiting(95);
	(void)json_object_set_new(full, "store_full", json_true());
	text = table_of(full, true, 4);
	assert_non_null(strstr(text, "  DISK FULL\n  no round is committed: this coordinator's disk is full"));
	assert_null(strstr(text, "waiting for workers"));
	free(text);
	json_t *s = status_at(4, "training");
	(void)json_object_set_new(json_array_get(json_object_get(s, "members"), 0), "phase", json_string("leaving"));
	text = table_of(s, true, 3);
	assert_non_null(strstr(text, "12.3 s ago\n"));
	free(text);
}

/* A stopped coordinator has no report, and one that was just started none yet: no zeros. */
static void test_without_a_report_there_are_no_figures(void **state) {
	(void)state;
	for (int online = 0; online < 2; online++) {
		json_t *s = status_at(4, "training"), *m = json_array_get(json_object_get(s, "members"), 0);
		static const char *const zero[] = {"round", "tokens_per_s", "tx_bytes", "compute_us", "reduce_us"};
		for (size_t i = 0; i < sizeof zero / sizeof zero[0]; i++)
			(void)json_object_set_new(m, zero[i], json_integer(0));
		(void)json_object_set_new(m, "phase", json_null());
		(void)json_object_set_new(m, "silent_s", json_null());
		(void)json_object_set_new(m, "loss", json_null());
		char *text = table_of(s, online, 3), *row = strrchr(text, '\n');
		for (*row = '\0'; row > text && row[-1] != '\n';)
			row--;
		assert_non_null(strstr(row, "tiny"));
		assert_int_equal(strstr(row, "joined") != NULL, online);
		for (char *at = row + strcspn(row, "t"); *at; at++)
			if (*at >= '0' && *at <= '9')
				fail_msg("a figure in: %s", row);
		free(text);
	}
}

static void test_a_line_that_was_not_measured_is_no_zero(void **state) {
	(void)state;
	json_t *s = status_at(4, "training"), *m = json_array_get(json_object_get(s, "members"), 0);
	(void)json_object_set_new(m, "down_bytes_per_s", json_real(1.25e6));
	char *text = table_of(s, true, 3);
	assert_null(strstr(text, " 0b/s"));
	assert_non_null(strstr(text, "10.0 Mb/s"));
	free(text);
}

/* Reports are not stored: a coordinator that does not run knows of none. */
static void test_a_stopped_coordinator_does_not_know_when(void **state) {
	(void)state;
	for (int online = 0; online < 2; online++) {
		json_t *s = status_at(4, "training");
		(void)json_object_set_new(json_array_get(json_object_get(s, "members"), 0), "silent_s", json_null());
		char *text = table_of(s, online, 3);
		assert_non_null(strstr(text, online ? "not yet" : "not known"));
		assert_null(strstr(text, "never"));
		free(text);
	}
}

static void test_the_way_back_of_workers_that_are_ahead(void **state) {
	(void)state;
	json_t *s = status_at(4, "training");
	(void)json_object_set_new(
		s, "not_held", json_pack("{s:i,s:b,s:b,s:s}", "round", 4, "lost", 1, "ahead", 1, "command", "come back"));
	char *text = table_of(s, true, 5);
	assert_non_null(strstr(text, "ahead of this coordinator"));
	assert_non_null(strstr(text, "serve the newest store\n"));
	assert_non_null(strstr(text, ": come back\n"));
	free(text);
	s = status_at(4, "training");
	(void)json_object_set_new(s, "not_held",
							  json_pack("{s:i,s:b,s:b,s:s}", "round", 4, "lost", 1, "ahead", 1, "command", ""));
	text = table_of(s, true, 5);
	assert_non_null(
		strstr(text, "no present member has proven the state of round 4: a rollback to it would leave nothing"));
	free(text);
}

static void test_a_complete_run_that_a_late_worker_joins(void **state) {
	(void)state;
	json_t *s = status_at(8, "done");
	(void)json_object_set_new(
		s, "not_held",
		json_pack("{s:i,s:b,s:b,s:b,s:s}", "round", 8, "lost", 0, "ahead", 0, "complete", 1, "command", ""));
	char *text = table_of(s, true, 4);
	assert_non_null(strstr(text, "the run is complete; the present workers have an older state"));
	assert_null(strstr(text, "give up"));
	free(text);
}

static json_t *status_disk_full(void) {
	json_t *s = status_at(4, "training");
	(void)json_object_set_new(json_array_get(json_object_get(s, "members"), 0), "storage",
							  json_pack("{s:s,s:b}", "fails", "checkpoints", "full", 1));
	return s;
}

static void test_a_disk_that_takes_nothing(void **state) {
	(void)state;
	char *text = table_of(status_disk_full(), true, 3);
	assert_non_null(strstr(text, "12.3 s ago, taken for dead, DISK FULL: cannot store checkpoints\n"));
	free(text);
	struct status_news told = {.begun = true, .round = 4};
	expect_text(news_of(&told, status_disk_full(), true),
				"{\"event\":\"member_storage\",\"round\":4,\"rounds_total\":8,\"member\":0,\"name\":\"tiny\","
				"\"fails\":\"checkpoints\",\"full\":true}\n");
	expect_text(news_of(&told, status_disk_full(), true), "");
	expect_text(news(&told, 4, "training"),
				"{\"event\":\"member_storage_back\",\"round\":4,\"rounds_total\":8,\"member\":0,\"name\":\"tiny\"}\n");
}

static void test_a_member_unlike_the_others(void **state) {
	(void)state;
	json_t *s = status_at(4, "training"), *m = json_array_get(json_object_get(s, "members"), 0);
	(void)json_object_set_new(m, "contribution", json_pack("{s:f,s:f}", "norm", 10.0, "cosine", -0.25));
	(void)json_object_set_new(m, "outlier", json_pack("[s,s]", "loss", "cosine"));
	char *text = table_of(s, true, 3);
	assert_non_null(strstr(text, "norm cosine "));
	assert_non_null(strstr(text, " 10.00  -0.25 "));
	assert_non_null(strstr(text, "taken for dead, UNLIKE THE OTHERS: loss, cosine\n"));
	free(text);
}

static void test_of_the_past_only_the_last_round(void **state) {
	(void)state;
	struct status_news told = {0};
	char *text = news(&told, 5, "training");
	assert_non_null(strstr(text, "\"round\":5,"));
	assert_null(strstr(text, "\"round\":4,"));
	free(text);
}

static void test_table(void **state) {
	(void)state;
	char *text = table_of(status_at(4, "averaging"), true, 3);
	assert_non_null(
		strstr(text, "[############............] 4 of 8 rounds committed, averaging (attempt 2)  loss 2.5000"));
	assert_non_null(strstr(text, "12.3 k tokens/s"));
	assert_non_null(strstr(text, "5.00 MB"));
	assert_non_null(strstr(text, "1:01"));
	assert_non_null(strstr(text, "12.3 s ago, taken for dead"));
	free(text);
}

static void expect_width(int width, const char *has, const char *lacks) {
	char *text = NULL, *at;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	json_t *s = status_at(4, "averaging");
	(void)json_object_set_new(json_array_get(json_object_get(s, "members"), 0), "alive", json_true());
	int lines = status_view_print(s, true, false, width, f);
	(void)fclose(f);
	json_decref(s);
	assert_non_null(strstr(text, has));
	if (lacks != NULL)
		assert_null(strstr(text, lacks));
	at = strchr(text, '\n') + 1; /* the table, below the head */
	for (int row = 0; row < 2; row++, at += strcspn(at, "\n") + 1)
		assert_in_range(strcspn(at, "\n"), 1, width);
	int head = (int)strcspn(text, "\n");
	assert_int_equal(lines, 2 + (head + width - 1) / width);
	free(text);
}

static void test_the_table_is_as_wide_as_the_terminal(void **state) {
	(void)state;
	expect_width(160, "reduce last report", NULL);
	expect_width(132, "line down", "cosine");
	expect_width(80, "12.3 s ago", "line up");
	expect_width(80, "tokens/s  ", "sent");
	expect_width(40, "averaging", "ago");
	expect_width(8, "no.", "worker  ");
}

static void test_an_unknown_loss_is_no_zero(void **state) {
	(void)state;
	json_t *s = status_at(4, "training");
	(void)json_object_set_new(s, "loss", json_null());
	(void)json_object_set_new(json_array_get(json_object_get(s, "members"), 0), "loss", json_null());
	char *text = table_of(s, true, 3);
	assert_null(strstr(text, "loss 0"));
	assert_null(strstr(text, "0.0000"));
	free(text);
}

/* What is missing shows as nothing. */
static void test_an_empty_status(void **state) {
	(void)state;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	json_t *s = json_object();
	struct status_news told = {0};
	assert_int_equal(status_view_print(s, false, false, WIDE, f), 2);
	status_news_print(&told, s, true, f);
	(void)fclose(f);
	assert_non_null(strstr(text, "not running"));
	free(text);
	json_decref(s);
}

static char *view_of(json_t *s) {
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	assert_non_null(s);
	(void)status_view_print(s, true, false, WIDE, f);
	json_decref(s);
	(void)fclose(f);
	return text;
}

/* The view of a run with one member, whose line has these consequences. */
static char *view_of_slow(json_t *slow) {
	json_t *s = status_with(5, "averaging", "closes_in_s", json_real(27.2));
	(void)json_object_set_new(s, "deadline_ms", json_integer(32100));
	(void)json_object_set_new(s, "slow_deadline_ms", json_integer(600));
	(void)json_object_set_new(s, "slow_members", json_string("skip"));
	(void)json_object_set_new(json_array_get(json_object_get(s, "members"), 0), "slow", slow);
	return view_of(s);
}

static void test_deadlines_and_slow_members_are_shown(void **state) {
	(void)state;
	const char *const why = "needs 3.4 s for one payload at 10.0 Mbit/s, and an exchange has 0.6 s";
	char *text = view_of_slow(json_pack("{s:i,s:n,s:n,s:s}", "rests_until", 12, "codec", "part", "why", why));
	assert_non_null(strstr(text, "\n  round 6 closes in 27 s (32.1 s for the attempt)\n"));
	assert_non_null(strstr(text, "\n  an exchange should take 0.6 s: slow-members = skip\n"));
	assert_non_null(strstr(text, "rests until round 13: its line needs 3.4 s for one payload at 10.0 Mbit/s"));
	free(text);
	text = view_of_slow(json_pack("{s:n,s:s,s:n,s:s}", "rests_until", "codec", "int4", "part", "why", why));
	assert_non_null(strstr(text, "sends int4: its uplink needs 3.4 s"));
	free(text);
	text = view_of_slow(json_pack("{s:n,s:n,s:i,s:s}", "rests_until", "codec", "part", 4, "why", why));
	assert_non_null(strstr(text, "sends 1 of 4 chunks: its uplink needs 3.4 s"));
	free(text);
	text = view_of_slow(json_null());
	assert_null(strstr(text, "its line"));
	free(text);
	text = view_of(status_at(5, "training"));
	assert_null(strstr(text, "closes in"));
	assert_null(strstr(text, "should take"));
	free(text);
}

static json_t *relay_with(int links, int calls, int refused) {
	return json_pack("{s:i,s:i,s:i,s:i,s:{s:i,s:i}}", "stations", 5, "links", links, "bytes", 1500000, "calls", calls,
					 "refused", "budget", refused, "stale", 0);
}

static void test_a_relay_is_shown_once_it_was_called(void **state) {
	(void)state;
	char *text = view_of(status_with(0, "training", "relay", json_null()));
	assert_null(strstr(text, "relay"));
	free(text);
	text = view_of(status_with(0, "training", "relay", relay_with(0, 0, 0)));
	assert_null(strstr(text, "relay"));
	free(text);
	text = view_of(status_with(0, "training", "relay", relay_with(2, 3, 0)));
	assert_non_null(strstr(text, "\nrelay: 5 members connected, 2 pairs at present, 1.50 MB forwarded\n"));
	free(text);
	text = view_of(status_with(0, "training", "relay", relay_with(1, 3, 4)));
	assert_non_null(
		strstr(text, "\nrelay: 5 members connected, 1 pair at present, 1.50 MB forwarded, 4 calls refused\n"));
	free(text);
}

static json_t *three_that_meet(void) {
	json_t *s = json_pack("{s:s,s:[{s:i,s:b,s:{s:s,s:s}},{s:i,s:b,s:{s:s,s:s},s:s},{s:i,s:b,s:{s:s}},{s:i,s:b}]}",
						  "phase", "training", "members", "member", 0, "alive", 1, "paths", "2", "accepted", "5",
						  "relayed", "member", 2, "alive", 1, "paths", "0", "dialed", "5", "apart", "reach", "relay",
						  "member", 5, "alive", 1, "paths", "0", "relayed", "member", 7, "alive", 0);
	assert_non_null(s);
	return s;
}

static void test_pairs_are_counted_by_how_they_meet(void **state) {
	(void)state;
	json_t *s = three_that_meet();
	char *text = view_of(s);
	assert_non_null(strstr(text, "\nlinks: 2 of 3 pairs: 1 relayed, 1 direct, 1 apart\n"));
	assert_null(strstr(text, "how the worker"));
	free(text);
}

static void test_a_matrix_of_meetings(void **state) {
	(void)state;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	json_t *s = three_that_meet();
	json_t *first = json_array_get(json_object_get(s, "members"), 0);
	(void)json_object_set_new(first, "lan", json_pack("[i]", 2));
	(void)json_object_set_new(first, "ipv6", json_pack("[i,i]", 2, 5));
	int lines = status_view_print(s, true, true, WIDE, f);
	json_decref(s);
	(void)fclose(f);
	assert_non_null(strstr(text,
						   "        0   2   5\n"
						   "    0     Ah6  R6\n"
						   "    2   D       -  reach: relay\n"
						   "    5   R   .    \n"
						   "  R through a relay, P both dial at one moment, A is dialed by it, D dials it, - apart, "
						   ". not known; h: by a private address, 6: by IPv6\n"));
	assert_int_equal(lines, 13);
	free(text);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deadlines_and_slow_members_are_shown),
		cmocka_unit_test(test_a_relay_is_shown_once_it_was_called),
		cmocka_unit_test(test_pairs_are_counted_by_how_they_meet),
		cmocka_unit_test(test_a_matrix_of_meetings),
		cmocka_unit_test(test_news_are_told_once),
		cmocka_unit_test(test_a_full_disk_is_told),
		cmocka_unit_test(test_a_coordinator_that_does_not_run_is_told),
		cmocka_unit_test(test_who_is_missing_is_told_after_a_while),
		cmocka_unit_test(test_the_table_says_who_is_missing),
		cmocka_unit_test(test_without_a_report_there_are_no_figures),
		cmocka_unit_test(test_a_line_that_was_not_measured_is_no_zero),
		cmocka_unit_test(test_a_stopped_coordinator_does_not_know_when),
		cmocka_unit_test(test_a_disk_that_takes_nothing),
		cmocka_unit_test(test_a_member_unlike_the_others),
		cmocka_unit_test(test_of_the_past_only_the_last_round),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_the_table_is_as_wide_as_the_terminal),
		cmocka_unit_test(test_an_unknown_loss_is_no_zero),
		cmocka_unit_test(test_the_way_back_of_workers_that_are_ahead),
		cmocka_unit_test(test_a_complete_run_that_a_late_worker_joins),
		cmocka_unit_test(test_an_empty_status),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
