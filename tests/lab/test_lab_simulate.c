/* The utilisation model: the published tables, its limits, and its inverse. */
#include "lab/simulate/tables.h"
#include "tests/common/check.h"

#include <math.h>
#include <string.h>

/* 24 layers, 1B parameters, 0.1 s a step, 16 bits. */
static struct simulate_run published_run(enum simulate_method m) {
	return (struct simulate_run){.method = m,
								 .layers = 24,
								 .n_params = 1e9,
								 .step_s = 0.1,
								 .steps_per_round = 100,
								 .fragments = 8,
								 .bits_per_value = 16,
								 .rate_bits_per_s = 10e9,
								 .overhead = 1,
								 .layerwise = true};
}

/* A run as Rivulet does it. */
static struct simulate_run real_run(enum simulate_method m) {
	struct simulate_run r = published_run(m);
	r.workers = 4;
	r.bits_per_value = 8;
	r.rate_bits_per_s = 100e6;
	r.latency_s = 0.02;
	r.overhead = 1.06;
	r.sync_s = 0.05;
	r.layerwise = m == SIMULATE_DDP;
	return r;
}

static double utilisation(const struct simulate_run *r) {
	struct simulate_result out;
	assert_int_equal(simulate_check(r, NULL), RV_OK);
	simulate(r, &out);
	return out.utilisation;
}

static void assert_near(double a, double b, double relative) {
	if (!(fabs(a - b) <= relative * fabs(b)))
		fail_msg("%.17g is not %.17g", a, b);
}

static void check_table(const struct published_table *t, int cells, int exact, int within_one) {
	struct table_count count = {0};
	for (int row = 0; row < t->n_rows; row++)
		for (int model = 0; model < t->n_models; model++) {
			struct table_cell out[TABLE_UTILISATIONS];
			table_compare(t, row, model, out, &count);
		}
	assert_int_equal(count.cells, cells);
	assert_int_equal(count.exact, exact);
	assert_int_equal(count.within_one, within_one);
}

static void test_published_tables(void **state) {
	(void)state;
	check_table(&published_tables[TABLE_STREAMING_DILOCO], 75, 65, 75);
	check_table(&published_tables[TABLE_SCALING_LAWS], 25, 6, 24);
}

/* The published figures are points of the grid: a row whose every cell were ours would be off by
 * nothing. */
static void test_grid(void **state) {
	(void)state;
	assert_near(table_grid(0), 0.1, 1e-12);
	assert_near(table_grid(TABLE_GRID_POINTS - 1), 1000, 1e-12);
	struct table_cell out[TABLE_UTILISATIONS];
	struct table_count count = {0};
	table_compare(&published_tables[TABLE_STREAMING_DILOCO], 0, 0, out, &count);
	assert_int_equal(count.exact, TABLE_UTILISATIONS);
	assert_near(out[4].ours, 569, 1e-3);
}

/* Means may have other bits than contributions; the slower direction of the line counts. */
static void test_directions(void **state) {
	(void)state;
	struct simulate_result one, other;
	struct simulate_run r = real_run(SIMULATE_DILOCO);
	r.bits_per_value = 8;
	simulate(&r, &one);
	r.bits_per_value = 2;
	r.mean_bits_per_value = 14;
	r.down_bits_per_s = 5 * r.rate_bits_per_s;
	simulate(&r, &other);
	assert_near(other.utilisation, one.utilisation, 1e-12);
	assert_near(other.sent_per_step, one.sent_per_step, 1e-12);
	r.down_bits_per_s = r.rate_bits_per_s;
	r.rate_bits_per_s = INFINITY;
	simulate(&r, &other);
	assert_near(other.utilisation, one.utilisation, 1e-12);
	r.down_bits_per_s = 0.5;
	assert_int_equal(simulate_check(&r, NULL), RV_E_RANGE);
	r.down_bits_per_s = 0;
	r.mean_bits_per_value = 65;
	assert_int_equal(simulate_check(&r, NULL), RV_E_RANGE);
}

/* Gathered contributions go up once and come down from all others: time grows with N, where an
 * all-reduce of sparse means stays below 2. */
static void test_what_is_gathered_grows(void **state) {
	(void)state;
	for (int n = 2; n <= 64; n *= 2) {
		struct simulate_run r = real_run(SIMULATE_GATHER), all = real_run(SIMULATE_DILOCO);
		struct simulate_result gathered, reduced;
		r.workers = all.workers = n;
		r.latency_s = all.latency_s = r.sync_s = all.sync_s = 0;
		r.overhead = all.overhead = 1;
		simulate(&r, &gathered);
		simulate(&all, &reduced);
		const double once = r.bits_per_value * r.n_params / r.rate_bits_per_s / r.steps_per_round;
		assert_near(gathered.step_wall_s - r.step_s, n * once, 1e-9);
		assert_near(reduced.step_wall_s - r.step_s, 2.0 * (n - 1) / n * once, 1e-9);
		assert_near(gathered.sent_per_step, r.bits_per_value * r.n_params * SIMULATE_SENT_PER_PAYLOAD / 8 / 100, 1e-9);
	}
}

static void test_unlimited_line(void **state) {
	(void)state;
	for (enum simulate_method m = 0; m < SIMULATE_METHODS; m++) {
		struct simulate_run r = published_run(m);
		r.rate_bits_per_s = INFINITY;
		assert_near(utilisation(&r), 1, 1e-9);
		r = real_run(m);
		r.workers = 1; /* nobody to send to: the line does not matter */
		r.rate_bits_per_s = 1e3;
		assert_near(utilisation(&r), 1, 1e-9);
	}
}

static void test_more_line_is_never_slower(void **state) {
	(void)state;
	for (enum simulate_method m = 0; m < SIMULATE_METHODS; m++)
		for (int overlap = 0; overlap < (m == SIMULATE_STREAMING ? 4 : 1); overlap++) {
			double last = 0;
			struct simulate_run r = real_run(m);
			r.overlap_steps = overlap;
			for (r.rate_bits_per_s = 1e5; r.rate_bits_per_s < 1e13; r.rate_bits_per_s *= 1.3) {
				double u = utilisation(&r);
				assert_true(u >= last * (1 - 1e-9) && u <= 1);
				last = u;
			}
			assert_true(last > 0.5);
		}
}

/* H t / (H t + 7 latencies + sync + bits / rate), and every term by itself. */
static void test_diloco_formula(void **state) {
	(void)state;
	struct simulate_run r = real_run(SIMULATE_DILOCO);
	double bits = 2.0 * 3 / 4 * 1e9 * 8 * 1.06, compute_s = 100 * 0.1;
	double exchange_s = bits / 100e6 + 7 * 0.02 + 0.05;
	assert_near(utilisation(&r), compute_s / (compute_s + exchange_s), 1e-9);
	struct simulate_result out;
	simulate(&r, &out);
	assert_near(out.step_wall_s * 100, compute_s + exchange_s, 1e-9);
	assert_near(out.sent_per_step * 100, 1.5e9 * SIMULATE_SENT_PER_PAYLOAD, 1e-9);
	r.latency_s = 1;
	assert_near(utilisation(&r), compute_s / (compute_s + bits / 100e6 + 7 + 0.05), 1e-9);
}

/* What the line takes longer for is time: bytes are the payload's and their headers', whatever the
 * line. */
static void test_unused_line_is_no_bytes(void **state) {
	(void)state;
	for (enum simulate_method m = 0; m < SIMULATE_METHODS; m++)
		for (int workers = 0; workers <= 4; workers++) {
			struct simulate_run r = real_run(m);
			struct simulate_result narrow, wide;
			r.workers = workers;
			simulate(&r, &narrow);
			r.overhead = 1.5;
			simulate(&r, &wide);
			assert_true(narrow.sent_per_step == wide.sent_per_step);
			assert_true((narrow.sent_per_step > 0) == (workers != 1));
			assert_true(workers == 1 || wide.utilisation < narrow.utilisation);
		}
	struct simulate_run papers = published_run(SIMULATE_DDP);
	struct simulate_result out;
	simulate(&papers, &out);
	assert_near(out.sent_per_step, 2e9, 1e-12); /* 16 bits of every value, once */
}

static void test_h_1_is_data_parallel(void **state) {
	(void)state;
	for (double gbit = 0.1; gbit < 1000; gbit *= 3) {
		struct simulate_run ddp = published_run(SIMULATE_DDP), diloco = published_run(SIMULATE_DILOCO);
		diloco.steps_per_round = 1;
		ddp.rate_bits_per_s = diloco.rate_bits_per_s = gbit * 1e9;
		assert_near(utilisation(&diloco), utilisation(&ddp), 1e-12);
	}
}

static void test_one_fragment_is_diloco(void **state) {
	(void)state;
	struct simulate_run diloco = real_run(SIMULATE_DILOCO), streaming = real_run(SIMULATE_STREAMING);
	streaming.fragments = 1;
	assert_near(utilisation(&streaming), utilisation(&diloco), 1e-12);
	streaming.overlap_steps = 1;
	assert_true(utilisation(&streaming) > utilisation(&diloco));
}

/* An exchange that fits into the overlap costs nothing. */
static void test_overlap_hides_the_exchange(void **state) {
	(void)state;
	struct simulate_run r = real_run(SIMULATE_STREAMING);
	r.steps_per_round = 12;
	r.rate_bits_per_s = 6e9; /* 1.59 Gbit of a fragment: 0.27 s, 0.19 s of the rest, 5 steps: 0.5 s */
	r.overlap_steps = 5;
	assert_near(utilisation(&r), 1, 1e-9);
	r.overlap_steps = 0;
	assert_true(utilisation(&r) < 0.8);
}

static void test_solve_is_the_inverse(void **state) {
	(void)state;
	static const double wanted[] = {0.05, 0.5, 0.9, 0.95, 0.98};
	for (enum simulate_method m = 0; m < SIMULATE_METHODS; m++)
		for (int i = 0; i < 5; i++) {
			struct simulate_run r = published_run(m);
			assert_int_equal(simulate_solve_rate(&r, wanted[i], &r.rate_bits_per_s, NULL), RV_OK);
			assert_true(utilisation(&r) >= wanted[i]);
			r.rate_bits_per_s *= 1 - 1e-6;
			assert_true(utilisation(&r) < wanted[i]);
		}
}

static void test_solve_without_a_solution(void **state) {
	(void)state;
	struct simulate_run r = real_run(SIMULATE_DILOCO);
	struct rv_errtext et = {0};
	double rate;
	r.steps_per_round = 1; /* 0.1 s of compute against 0.19 s that no line buys off */
	assert_int_equal(simulate_solve_rate(&r, 0.9, &rate, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "0.344828"));
	assert_non_null(strstr(et.text, "--steps-per-round"));
}

static void refused(struct simulate_run r, const char *needle) {
	struct rv_errtext et = {0};
	assert_int_equal(simulate_check(&r, &et), RV_E_RANGE);
	if (!strstr(et.text, needle))
		fail_msg("\"%s\" does not say \"%s\"", et.text, needle);
}

static struct simulate_run run; /* of REFUSED */
#define REFUSED(change, needle) (run = real_run(SIMULATE_STREAMING), change, refused(run, needle))

static void test_impossible_runs(void **state) {
	(void)state;
	REFUSED(run.layers = 0, "layers = 0: must be in [1, 1024]");
	REFUSED(run.layers = 1025, "1024");
	REFUSED(run.n_params = 0, "params = 0");
	REFUSED(run.n_params = NAN, "params = nan");
	REFUSED(run.step_s = 0, "step-time-ms");
	REFUSED(run.workers = -1, "workers = -1");
	REFUSED(run.steps_per_round = 0, "steps-per-round = 0");
	REFUSED(run.fragments = 25, "fragments = 25: must be in [1, 24]");
	REFUSED(run.overlap_steps = 101, "overlap-steps = 101: must be in [0, 100]");
	REFUSED((run.layerwise = true, run.overlap_steps = 100), "must be in [0, 99]");
	REFUSED((run.method = SIMULATE_DILOCO, run.overlap_steps = 1), "must be in [0, 0]");
	REFUSED(run.bits_per_value = 0, "bits = 0");
	REFUSED(run.rate_bits_per_s = 0, "rate = 0");
	REFUSED(run.rate_bits_per_s = NAN, "rate = nan");
	REFUSED(run.latency_s = -1, "latency-ms = -1000");
	REFUSED(run.sync_s = INFINITY, "sync-ms = inf");
	REFUSED(run.overhead = 0.9, "overhead = 0.9");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_tables),
		cmocka_unit_test(test_grid),
		cmocka_unit_test(test_directions),
		cmocka_unit_test(test_what_is_gathered_grows),
		cmocka_unit_test(test_unlimited_line),
		cmocka_unit_test(test_more_line_is_never_slower),
		cmocka_unit_test(test_diloco_formula),
		cmocka_unit_test(test_unused_line_is_no_bytes),
		cmocka_unit_test(test_h_1_is_data_parallel),
		cmocka_unit_test(test_one_fragment_is_diloco),
		cmocka_unit_test(test_overlap_hides_the_exchange),
		cmocka_unit_test(test_solve_is_the_inverse),
		cmocka_unit_test(test_solve_without_a_solution),
		cmocka_unit_test(test_impossible_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
