/* test_lab_lines.c: workers on lines of different rates: who leaves out which rounds, and how long
 * an exchange takes. */
#include "lab/methods/averaging.h"
#include "lab/methods/lines.h"
#include "tests/lab/lab_fixture.h"

#include <math.h>
#include <string.h>

enum { MBIT = 125000, PAYLOAD = 4000000, EVERY = 7 };

static struct lab_config of(const char *lines, int workers) {
	struct lab_config c = {.workers = workers};
	run_config_defaults(&c.run);
	c.run.slow_members = SLOW_SKIP;
	assert_int_equal(lines_parse(lines, c.lines, NULL), RV_OK);
	return c;
}

static void test_lines_are_read(void **state) {
	(void)state;
	struct slow_line v[LAB_MAX_WORKERS];
	struct rv_errtext et = {0};
	assert_int_equal(lines_parse("", v, NULL), RV_OK);
	assert_int_equal(v[0].up, 0);
	assert_int_equal(lines_parse("100mbit:10mbit,2MB", v, NULL), RV_OK);
	assert_true(v[0].up == 100 * MBIT && v[0].down == 100 * MBIT);
	assert_int_equal(v[1].up, 10 * MBIT);
	assert_int_equal(v[2].down, 2000000);
	assert_int_equal(v[4].up, 10 * MBIT);
	assert_int_equal(lines_parse("20mbit/5mbit", v, NULL), RV_OK);
	assert_true(v[1].down == 20 * MBIT && v[1].up == 5 * MBIT);
	assert_int_equal(lines_parse("100mbit:", v, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "value 2 is missing"));
	assert_int_equal(lines_parse("100mbit:0", v, &et), RV_E_RANGE);
	assert_int_equal(lines_parse("fast", v, &et), RV_E_INVALID);
	assert_int_equal(lines_parse("20mbit/", v, &et), RV_E_INVALID);
	assert_int_equal(lines_parse("20mbit/0", v, &et), RV_E_RANGE);
}

/* As the coordinator decides (tests/coordinator/test_coordinator_core_slow.c). */
static void test_a_slow_line_leaves_out_rounds(void **state) {
	(void)state;
	struct lab_config c = of("100mbit:100mbit:100mbit:10mbit", 4);
	for (uint64_t round = 0; round < 2 * EVERY + 1; round++) {
		bool takes_part[4] = {true, true, true, true};
		lines_leave_out(&c, &(struct lines_round){round, PAYLOAD, PAYLOAD, 0}, takes_part);
		assert_true(takes_part[0] && takes_part[1] && takes_part[2]);
		assert_int_equal(takes_part[3], round % EVERY == 0);
	}
	bool takes_part[4] = {true, true, true, true};
	c.run.min_workers = 4;
	lines_leave_out(&c, &(struct lines_round){1, PAYLOAD, PAYLOAD, 0}, takes_part);
	assert_true(takes_part[3]);
	c.run.min_workers = 1;
	c.run.slow_members = SLOW_WAIT;
	lines_leave_out(&c, &(struct lines_round){1, PAYLOAD, PAYLOAD, 0}, takes_part);
	assert_true(takes_part[3]);
	c.run.slow_members = SLOW_SKIP;
	c.run.slow_deadline_ms = 3200; /* what a payload takes at 10 Mbit/s */
	lines_leave_out(&c, &(struct lines_round){1, PAYLOAD, PAYLOAD, 0}, takes_part);
	assert_true(takes_part[3]);
	c.run.slow_deadline_ms = 3199;
	lines_leave_out(&c, &(struct lines_round){1, PAYLOAD, PAYLOAD, 0}, takes_part);
	assert_false(takes_part[3]);
}

/* A million values as fp32, or by the codec of a form. */
static const struct global_config *million(void) {
	static struct global_config g;
	g = (struct global_config){.n = PAYLOAD / 4, .chunks = chunking_of(PAYLOAD / 4, 65536), .codec = &codec_fp32};
	return &g;
}

static double exchange_ms(const struct lab_config *c, const struct contribution_form *forms) {
	const struct lines_round round = {0, PAYLOAD, PAYLOAD, 0};
	bool all[LAB_MAX_WORKERS];
	for (int i = 0; i < c->workers; i++)
		all[i] = true;
	return lines_exchange_ms(c, &round, million(), all, forms);
}

static void check_ms(const char *lines, int n, double expect) {
	const struct lab_config c = of(lines, n);
	const struct contribution_form plain[LAB_MAX_WORKERS] = {{0}};
	assert_true(fabs(exchange_ms(&c, plain) - expect) < 1e-6 * (expect + 1));
}

/* 4 MB at 100 Mbit/s: 320 ms. */
static void test_an_exchange_takes_what_the_linear_program_says(void **state) {
	(void)state;
	check_ms("", 4, 0);
	check_ms("100mbit", 1, 0);
	check_ms("100mbit", 2, 320);
	check_ms("100mbit", 4, 480);                                  /* 2 (n - 1) / n payloads */
	check_ms("100mbit:100mbit:100mbit:10mbit", 4, 3200);          /* it owns nothing */
	check_ms("100mbit:100mbit:100mbit:80mbit", 4, 320 * 6 / 3.8); /* sum of its parts is 1 */
}

/* The run does what the functions say, and counts what the worker kept. */
static void test_a_run_leaves_the_slow_worker_out(void **state) {
	(void)state;
	struct lab_fixture f;
	struct lab_round done;
	lab_fixture_init(&f);
	f.cfg.run.slow_members = SLOW_SKIP;
	f.cfg.run.min_workers = 1;
	assert_int_equal(lines_parse("100mbit:1mbit", f.cfg.lines, NULL), RV_OK);
	struct lab_run *r = lab_fixture_start(&f);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(lab_run_round(r, &done, NULL), RV_OK);
		int slow = f.cfg.workers / 2;
		assert_int_equal(done.participants, round == 0 ? f.cfg.workers : f.cfg.workers - slow);
		assert_true((done.modelled_exchange_us > 5000) == (round == 0)); /* 10 kB at 1 Mbit/s */
	}
	lab_run_free(r);
	lab_fixture_release(&f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_read),
		cmocka_unit_test(test_a_slow_line_leaves_out_rounds),
		cmocka_unit_test(test_an_exchange_takes_what_the_linear_program_says),
		cmocka_unit_test(test_a_run_leaves_the_slow_worker_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
