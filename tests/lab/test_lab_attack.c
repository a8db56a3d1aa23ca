/* Workers of the lab that attack, and what each aggregation rule makes of it. */
#include "lab/methods/attack.h"
#include "tests/common/check.h"
#include "tests/lab/lab_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct lab_fixture f;

/* Returns how far the weights are from the honest run's, in honest movements. */
static double harm(int rule, const char *attack, int workers) {
	double off = 0, moved = 0;
	struct lab_round round;
	lab_fixture_init(&f);
	f.cfg.run.merge = rule;
	f.cfg.run.min_workers = 4;
	f.cfg.run.rounds = 2;
	struct lab_run *r = lab_fixture_start(&f);
	const size_t n = r->global.cfg.n;
	float *start = malloc(n * sizeof *start);
	float *honest = malloc(n * sizeof *honest);
	assert_true(start && honest);
	memcpy(start, r->global.theta, n * sizeof *start);
	assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	memcpy(honest, r->global.theta, n * sizeof *honest);
	lab_run_free(r);
	assert_int_equal(attack_parse(attack, &f.cfg.attack, NULL), RV_OK);
	f.cfg.attack.workers = workers;
	r = lab_fixture_start(&f);
	assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	for (size_t i = 0; i < n; i++) {
		off += pow((double)r->global.theta[i] - (double)honest[i], 2);
		moved += pow((double)honest[i] - (double)start[i], 2);
	}
	lab_run_free(r);
	free(start);
	free(honest);
	lab_fixture_release(&f);
	return sqrt(off / moved);
}

static void test_only_the_mean_follows_one_attacker(void **state) {
	(void)state;
	assert_true(harm(MERGE_mean, "scale=-100", 1) > 10);
	assert_true(harm(MERGE_clipped, "scale=-100", 1) < 1);
	assert_true(harm(MERGE_trimmed, "scale=-100", 1) < 1);
	assert_true(harm(MERGE_centered, "scale=-100", 1) < 1);
	assert_true(harm(MERGE_mean, "noise=100", 1) > 10);
	assert_true(harm(MERGE_centered, "noise=100", 1) < 1);
	assert_true(harm(MERGE_mean, "scale=1", 4) < 1e-2);
}

/* The opposite of a contribution moves the weights as its absence would, however large it is. */
static void test_an_opponent_moves_nothing_by_agreement(void **state) {
	(void)state;
	const double once = harm(MERGE_agreed, "scale=-1", 1), often = harm(MERGE_agreed, "scale=-100", 1);
	assert_true(once > 0 && fabs(once - often) < 1e-2);
	assert_true(once < harm(MERGE_clipped, "scale=-1", 1) / 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_the_mean_follows_one_attacker),
		cmocka_unit_test(test_an_opponent_moves_nothing_by_agreement),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
