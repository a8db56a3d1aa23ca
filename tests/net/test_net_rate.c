/* The token bucket in virtual time: never more than the cap over 10 s, and all of it when there is
 * always something. */
#include "base/rng.h"
#include "net/mesh/rate.h"
#include "tests/common/check.h"

#include <stdlib.h>

enum { STEP_US = 1000, RUN_STEPS = 40000, WINDOW_STEPS = 10000 };
static const int64_t rates[] = {12500, 125000, 2500000, 125000000, RATE_MAX_BYTES_PER_S};
enum { N_RATES = sizeof rates / sizeof *rates };

static double on_line(uint64_t bytes) {
	return (double)bytes * 1500 / 1448;
}

/* What passed in each step. `greed`: how likely there is something to send in a step. */
static void drive(struct rate *r, struct rv_rng *rng, double greed, uint64_t *passed) {
	int64_t now_us = 77;
	for (int i = 0; i < RUN_STEPS; i++, now_us += STEP_US) {
		size_t allowed = rate_allowed(r, now_us);
		passed[i] = allowed > 0 && rv_rng_double(rng) < greed ? allowed : 0;
		rate_charge(r, (size_t)passed[i]);
	}
}

static double most_in_a_window(const uint64_t *passed, double *least) {
	uint64_t sum = 0, most = 0, low = UINT64_MAX;
	for (int i = 0; i < RUN_STEPS; i++) {
		sum += passed[i];
		if (i >= WINDOW_STEPS)
			sum -= passed[i - WINDOW_STEPS];
		most = sum > most ? sum : most;
		low = i >= WINDOW_STEPS && sum < low ? sum : low;
	}
	*least = on_line(low);
	return on_line(most);
}

static void any_ten_seconds_keep_the_cap(void **state) {
	(void)state;
	uint64_t *passed = calloc(RUN_STEPS, sizeof *passed);
	assert_non_null(passed);
	struct rv_rng rng = rv_rng_of(4, 1);
	for (int i = 0; i < N_RATES; i++) {
		for (double greed = 1; greed > 0.001; greed /= 10) {
			struct rate r = rate_of(rates[i], 0);
			double least;
			drive(&r, &rng, greed, passed);
			assert_true(most_in_a_window(passed, &least) <= 1.05 * 10 * (double)rates[i]);
		}
	}
	free(passed);
}

static void what_is_allowed_is_used(void **state) {
	(void)state;
	uint64_t *passed = calloc(RUN_STEPS, sizeof *passed);
	assert_non_null(passed);
	struct rv_rng rng = rv_rng_of(4, 2);
	for (int i = 0; i < N_RATES; i++) {
		struct rate r = rate_of(rates[i], 0);
		double least;
		drive(&r, &rng, 1, passed);
		most_in_a_window(passed, &least);
		assert_true(least >= 0.95 * 10 * (double)rates[i]);
	}
	free(passed);
}

/* An hour of nothing saves up no more than the depth. */
static void rest_is_not_saved_up(void **state) {
	(void)state;
	for (int i = 0; i < N_RATES; i++) {
		struct rate r = rate_of(rates[i], 0);
		size_t full = rate_allowed(&r, 0);
		assert_int_equal(rate_allowed(&r, INT64_C(3600) * 1000000), full);
	}
}

/* Control goes at once; what comes after waits for as long as it took. */
static void a_debt_is_paid(void **state) {
	(void)state;
	struct rate r = rate_of(125000, 0);
	rate_charge(&r, rate_allowed(&r, 0));
	rate_charge(&r, 1448 * 125); /* 187,500 bytes on the line */
	assert_int_equal(rate_allowed(&r, 1400000), 0);
	int64_t ready_us = rate_ready_us(&r);
	assert_true(ready_us > 1490000 && ready_us < 1600000);
	assert_int_equal(rate_allowed(&r, ready_us - 1), 0);
	assert_true(rate_allowed(&r, ready_us) > 0);
	assert_int_equal(rate_ready_us(&r), INT64_MIN);
}

static void no_cap_no_limit(void **state) {
	(void)state;
	struct rate r = {0};
	rate_charge(&r, SIZE_MAX / 2);
	assert_true(rate_allowed(&r, 5) == SIZE_MAX);
	assert_int_equal(rate_ready_us(&r), INT64_MIN);
	assert_false(rate_is_capped(&r));
}

/* The owner's clock may be read twice in one step, or stand still. */
static void time_does_not_run_back(void **state) {
	(void)state;
	struct rate r = rate_of(125000, 0);
	rate_charge(&r, rate_allowed(&r, 1000000));
	assert_int_equal(rate_allowed(&r, 500000), 0);
	assert_int_equal(rate_allowed(&r, 1000000), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_ten_seconds_keep_the_cap),
		cmocka_unit_test(what_is_allowed_is_used),
		cmocka_unit_test(rest_is_not_saved_up),
		cmocka_unit_test(a_debt_is_paid),
		cmocka_unit_test(no_cap_no_limit),
		cmocka_unit_test(time_does_not_run_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
