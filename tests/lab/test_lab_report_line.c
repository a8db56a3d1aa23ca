/* Wall-clock on a chosen line: what a run measured, put into the model, gives what the model's own
 * tests know. */
#include "tests/lab/lab_fixture.h"

#include "lab/report/line.h"
#include "lab/simulate/simulate.h"
#include "tests/lab/report_fixture.h"

#include <math.h>
#include <string.h>

/* A million parameters, one byte each, four workers, H = 30, 50 ms a step. */
static struct run_record record_of(const char *method) {
	struct run_record r = {.workers = 4, .n_params = 1000000, .steps_per_round = 30};
	snprintf(r.method, sizeof r.method, "%s", method);
	return r;
}

static struct record_totals totals_of(double bytes_per_exchange, double exchanges) {
	return (struct record_totals){
		.rounds = 10, .steps = 300, .compute_s = 300 * 0.05, .formula_bytes = bytes_per_exchange * 1.5 * exchanges};
}

/* A round is H steps, seven latencies, sync, and the payload on the line. */
static void test_diloco(void **state) {
	(void)state;
	const struct run_record r = record_of("diloco");
	const struct record_totals t = totals_of(1e6, 10);
	const struct report_facts none = {0};
	struct report_timing got = report_line_apply(&report_fixture_line, &r, &t, &none);
	double round_s = 30 * 0.05 + 7 * 0.02 + 0.05 + 8e6 * 1.5 * simulate_overhead(4) / 1e8;
	assert_true(fabs(got.step_wall_s - round_s / 30) < 1e-9);
	assert_true(fabs(got.utilisation - 30 * 0.05 / round_s) < 1e-9);
}

static void test_a_given_step_time_wins(void **state) {
	(void)state;
	const struct run_record r = record_of("diloco");
	const struct record_totals t = totals_of(1e6, 10);
	const struct report_facts none = {0};
	struct report_line line = report_fixture_line;
	line.rate_bits_per_s = INFINITY;
	line.latency_s = line.sync_s = 0;
	line.step_s = 0.125;
	struct report_timing got = report_line_apply(&line, &r, &t, &none);
	assert_true(fabs(got.step_wall_s - 0.125) < 1e-12 && got.utilisation == 1);
}

/* The same bits as the model is given by hand, through facts of a run.conf. */
static void assert_like(const char *method, const char *facts, int n_facts, double bytes, double exchanges,
						const struct simulate_run *want) {
	char text[64];
	const struct run_record r = record_of(method);
	const struct record_totals t = totals_of(bytes, exchanges);
	memcpy(text, facts, sizeof text);
	const struct report_facts f = {.text = text, .n = n_facts};
	struct report_line line = report_fixture_line;
	struct simulate_result result;
	line.rate_bits_per_s = want->rate_bits_per_s;
	assert_int_equal(simulate_check(want, NULL), RV_OK);
	simulate(want, &result);
	struct report_timing got = report_line_apply(&line, &r, &t, &f);
	assert_true(fabs(got.utilisation - result.utilisation) < 1e-9);
	assert_true(result.utilisation < 1);
}

static struct simulate_run on_the_line(enum simulate_method m, double bits) {
	return (struct simulate_run){.method = m,
								 .layers = 12,
								 .n_params = 1e6,
								 .step_s = 0.05,
								 .workers = 4,
								 .steps_per_round = 30,
								 .bits_per_value = bits,
								 .rate_bits_per_s = 1e7,
								 .latency_s = 0.02,
								 .overhead = simulate_overhead(4),
								 .sync_s = 0.05};
}

static void test_other_methods(void **state) {
	(void)state;
	static const char nothing[64] = "", streaming[64] = "n-layer\0006\0fragments\0003\0overlap-steps\0005";
	struct simulate_run ddp = on_the_line(SIMULATE_DDP, 32);
	ddp.layerwise = true;
	assert_like("ddp", nothing, 0, 4e6, 300, &ddp);
	struct simulate_run late = on_the_line(SIMULATE_STREAMING, 32);
	late.fragments = 1;
	late.overlap_steps = 30;
	assert_like("eager", nothing, 0, 4e6, 10, &late);
	static const char by_setting[64] = "updates\000eager";
	assert_like("diloco", by_setting, 1, 4e6, 10, &late);
	/* Ten rounds exchange all parameters ten thirds of a time. */
	struct simulate_run fragments = on_the_line(SIMULATE_STREAMING, 8);
	fragments.layers = 6;
	fragments.fragments = 3;
	fragments.overlap_steps = 5;
	assert_like("diloco", streaming, 3, 1e6, 10.0 / 3, &fragments);
}

static void test_nothing_is_known(void **state) {
	(void)state;
	const struct report_facts none = {0};
	const struct record_totals not_yet = {0}, t = totals_of(1e6, 10);
	struct run_record r = record_of("diloco");
	assert_true(isnan(report_line_apply(&report_fixture_line, &r, &not_yet, &none).step_wall_s));
	r.n_params = 0;
	assert_true(isnan(report_line_apply(&report_fixture_line, &r, &t, &none).step_wall_s));
	r = record_of("diloco");
	r.workers = 1;
	assert_true(report_line_apply(&report_fixture_line, &r, &t, &none).utilisation == 1);
	r.workers = UINT32_MAX;
	assert_true(isnan(report_line_apply(&report_fixture_line, &r, &t, &none).utilisation));
	r = record_of("diloco");
	r.steps_per_round = UINT64_MAX;
	assert_true(isnan(report_line_apply(&report_fixture_line, &r, &t, &none).utilisation));
}

static void test_texts(void **state) {
	(void)state;
	char text[REPORT_LINE_TEXT_BYTES];
	struct report_line l = {.rate_bits_per_s = 1.5e9, .latency_s = 0.0125};
	report_line_text(&l, text);
	assert_string_equal(text, "1.5 Gbit/s, 12.5 ms one way");
	l.rate_bits_per_s = INFINITY;
	report_line_text(&l, text);
	assert_string_equal(text, "no limit, 12.5 ms one way");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_diloco),        cmocka_unit_test(test_a_given_step_time_wins),
		cmocka_unit_test(test_other_methods), cmocka_unit_test(test_nothing_is_known),
		cmocka_unit_test(test_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
