/* A machine that sleeps, a program that is stopped, under both clocks
 * (worker/session/sleep_watch.c). */
#include "base/clock.h"
#include "base/os_clock.h"
#include "tests/common/check.h"
#include "worker/session/sleep_watch.h"

#define S INT64_C(1000000)

static void an_hour_asleep_is_noticed_once(void **state) {
	(void)state;
	struct sleep_watch w = {0};
	assert_true(sleep_watch_take(&w, 5000 * S, 777 * S) == 0); /* it slept before the program started */
	assert_true(sleep_watch_take(&w, 5001 * S, 777 * S) == 0);
	assert_true(sleep_watch_take(&w, 5001 * S + 1000, 4377 * S) == 3600 * S + 1000); /* the clock stood still */
	assert_true(sleep_watch_take(&w, 5002 * S, 4377 * S) == 0);
}

static void a_stopped_program_notices_as_well(void **state) {
	(void)state;
	struct sleep_watch w = {0};
	(void)sleep_watch_take(&w, 1 * S, 0);
	assert_true(sleep_watch_take(&w, 3601 * S, 0) == 3600 * S); /* the clock went on */
	assert_true(sleep_watch_take(&w, 3602 * S, 0) == 0);
}

static void short_waits_are_nothing(void **state) {
	(void)state;
	struct sleep_watch w = {0};
	int64_t suspended_us = 0;
	for (int64_t now_us = 0; now_us < 1000 * S; now_us += 5 * S) {
		assert_true(sleep_watch_take(&w, now_us, suspended_us) == 0);
		suspended_us += S / 1000 - (now_us % 2) * S / 500; /* the two clocks are not read at one moment */
	}
}

static void the_clocks_of_this_machine(void **state) {
	(void)state;
	struct sleep_watch w = {0};
	assert_true(os_clock_suspended_us() >= 0);
	for (int i = 0; i < 1000; i++)
		assert_true(sleep_watch_take(&w, rv_clock_monotonic_us(), os_clock_suspended_us()) == 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_hour_asleep_is_noticed_once),
		cmocka_unit_test(a_stopped_program_notices_as_well),
		cmocka_unit_test(short_waits_are_nothing),
		cmocka_unit_test(the_clocks_of_this_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
