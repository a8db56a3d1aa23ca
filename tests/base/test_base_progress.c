/* The progress line as text: percent, rate, ETA, awkward totals, narrow terminals. */
#include "base/progress.h"
#include "tests/common/check.h"

#include <string.h>

enum { S = 1000000 };

static void render(const struct rv_progress_state *s, uint64_t total, const char *note, const char *want) {
	char out[200];
	size_t n = rv_progress_render(s, total, "step", note, out, sizeof out);
	assert_string_equal(out, want);
	assert_int_equal(n, strlen(out));
}

static void a_steady_rate_gives_the_eta(void **state) {
	(void)state;
	struct rv_progress_state s = {0};
	rv_progress_observe(&s, 5 * S, "train", 0);
	render(&s, 100, NULL, "train [....................] 0% 0/100 step  ETA unknown");
	for (int t = 1; t <= 40; t++)
		rv_progress_observe(&s, (5 + t) * S, "train", (uint64_t)t);
	render(&s, 100, "loss 2.1", "train [########............] 40% 40/100 step  1 step/s  ETA 1:00  loss 2.1");
	render(&s, 40 + 7325, "", "train [....................] 0% 40/7365 step  1 step/s  ETA 2:02:05");
}

static void a_high_rate_has_a_prefix(void **state) {
	(void)state;
	struct rv_progress_state s = {0};
	rv_progress_observe(&s, 0, "get", 0);
	rv_progress_observe(&s, S, "get", 12345);
	render(&s, 0, NULL, "get 12345 step  12.3 k step/s");
	rv_progress_observe(&s, 2 * S, "slow", 0);
	rv_progress_observe(&s, 3 * S, "slow", 999);
	render(&s, 0, NULL, "slow 999 step  999 step/s");
}

static void the_rate_follows_a_change_within_seconds(void **state) {
	(void)state;
	struct rv_progress_state s = {0};
	uint64_t done = 0;
	int64_t now = 0;
	for (; now < 100 * S; now += S)
		rv_progress_observe(&s, now, "x", done += 10);
	assert_true(s.rate_per_s > 9.99 && s.rate_per_s < 10.01);
	for (; now < 140 * S; now += S)
		rv_progress_observe(&s, now, "x", done += 2);
	assert_true(s.rate_per_s > 1.9 && s.rate_per_s < 2.5);
}

static void awkward_totals(void **state) {
	(void)state;
	struct rv_progress_state s = {0};
	rv_progress_observe(&s, 0, "get", 7);
	render(&s, 0, NULL, "get 7 step");
	render(&s, 7, NULL, "get [####################] 100% 7/7 step");
	render(&s, 3, NULL, "get [####################] 100% 7/3 step");
	rv_progress_observe(&s, 0, "get", 9); /* no time has passed: no rate yet */
	render(&s, 0, NULL, "get 7 step");
	rv_progress_observe(&s, S, "get", UINT64_MAX);
	char out[200];
	(void)rv_progress_render(&s, UINT64_MAX, "step", NULL, out, sizeof out);
	assert_non_null(strstr(out, "100%"));
}

static void a_new_label_or_less_done_starts_afresh(void **state) {
	(void)state;
	struct rv_progress_state s = {0};
	rv_progress_observe(&s, 0, "a", 0);
	rv_progress_observe(&s, S, "a", 100);
	assert_true(s.rate_per_s > 0);
	rv_progress_observe(&s, 2 * S, "a", 50);
	assert_true(s.rate_per_s == 0 && s.last_done == 50);
	rv_progress_observe(&s, 3 * S, "a", 60);
	rv_progress_observe(&s, 4 * S, "b", 70);
	assert_true(s.rate_per_s == 0);
	assert_string_equal(s.label, "b");
}

/* What a worker shows; `columns`: of the terminal, whose last one stays empty. */
static void render_worker(size_t columns, const char *want) {
	struct rv_progress_state s = {0};
	char out[200];
	rv_progress_observe(&s, 0, "training", 1000);
	rv_progress_observe(&s, 4 * S, "training", 1234);
	size_t n = rv_progress_render(&s, 3000, "step", "round 12/40  loss 2.345  waiting for the others  sent 103.2 MB",
								  out, columns);
	assert_string_equal(out, want);
	assert_int_equal(n, strlen(out));
	assert_true(n < columns);
}

static void a_narrow_terminal_gets_what_matters_most(void **state) {
	(void)state;
	render_worker(200,
				  "training [########............] 41% 1234/3000 step  58.5 step/s  ETA 0:30  round 12/40  loss 2.345"
				  "  waiting for the others  sent 103.2 MB");
	render_worker(120,
				  "training [########............] 41% 1234/3000 step  58.5 step/s  ETA 0:30  round 12/40  loss 2.345"
				  "  sent 103.2 MB");
	render_worker(100,
				  "training [########............] 41% 1234/3000 step  58.5 step/s  ETA 0:30  round 12/40  loss 2.345");
	render_worker(80, "training 41% 1234/3000 step  58.5 step/s  ETA 0:30  round 12/40  loss 2.345");
	render_worker(60, "training 41%  ETA 0:30  round 12/40  loss 2.345");
	render_worker(40, "training 41%  ETA 0:30  round 12/40");
	render_worker(20, "training 41%");
}

/* Nothing is cut but a label that is wider than the terminal. */
static void every_width_holds(void **state) {
	(void)state;
	struct rv_progress_state s = {0};
	rv_progress_observe(&s, 0, "training the model", 0);
	rv_progress_observe(&s, S, "training the model", 10);
	for (size_t cap = 1; cap < 120; cap++) {
		char out[121];
		memset(out, '?', sizeof out);
		size_t n = rv_progress_render(&s, 100, "step", "a note", out, cap);
		assert_int_equal(strlen(out), n);
		assert_true(n < cap);
		assert_int_equal(out[cap], '?');
		assert_memory_equal(out, "training the model",
							n < strlen("training the model") ? n : strlen("training the model"));
		assert_true(strlen("training the model") < cap || n == cap - 1);
		assert_true(!strstr(out, " note") == !strstr(out, "  a note"));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_steady_rate_gives_the_eta),
		cmocka_unit_test(a_high_rate_has_a_prefix),
		cmocka_unit_test(the_rate_follows_a_change_within_seconds),
		cmocka_unit_test(awkward_totals),
		cmocka_unit_test(a_new_label_or_less_done_starts_afresh),
		cmocka_unit_test(a_narrow_terminal_gets_what_matters_most),
		cmocka_unit_test(every_width_holds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
