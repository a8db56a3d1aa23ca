/* The generic cell rate algorithm: a burst, then a rate; what is over it is counted or not, as the
 * caller wants. */
#include "base/gcra.h"
#include "tests/common/check.h"

#define S INT64_C(1000000)

static const struct gcra three_then_two_a_second = {.each_us = S / 2, .burst = 3};

static int take_at(int64_t *paid_us, int64_t now_us, int tries) {
	int n = 0;
	for (int i = 0; i < tries; i++)
		n += gcra_take(&three_then_two_a_second, paid_us, now_us);
	return n;
}

static void a_burst_and_then_a_rate(void **state) {
	(void)state;
	for (int64_t start_us = 0; start_us <= 1000 * S; start_us += 500 * S) {
		int64_t paid_us = 0;
		assert_int_equal(take_at(&paid_us, start_us, 10), 3);
		assert_int_equal(gcra_ready_us(&three_then_two_a_second, paid_us), start_us + S / 2);
		assert_int_equal(take_at(&paid_us, start_us + S / 2 - 1, 10), 0);
		assert_int_equal(take_at(&paid_us, start_us + S / 2, 10), 1);
		assert_int_equal(take_at(&paid_us, start_us + 100 * S, 10), 3); /* quiet time gives no more than a burst */
	}
}

/* In any window: burst + window / each. */
static void over_a_long_time_the_rate_holds(void **state) {
	(void)state;
	int64_t paid_us = 0;
	int n = 0;
	for (int64_t now_us = 0; now_us < 60 * S; now_us += 1000)
		n += take_at(&paid_us, now_us, 2);
	assert_int_equal(n, 3 + 119);
}

/* Events that happen all the same push the next one that is within the limit away. */
static void counted_events_are_paid_for_later(void **state) {
	(void)state;
	int64_t paid_us = 0;
	for (int i = 0; i < 10; i++)
		gcra_count(&three_then_two_a_second, &paid_us, S);
	assert_int_equal(gcra_ready_us(&three_then_two_a_second, paid_us), S + 8 * S / 2);
	assert_int_equal(take_at(&paid_us, S + 8 * S / 2 - 1, 5), 0);
	assert_int_equal(take_at(&paid_us, S + 8 * S / 2, 5), 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_and_then_a_rate),
		cmocka_unit_test(over_a_long_time_the_rate_holds),
		cmocka_unit_test(counted_events_are_paid_for_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
