/* The clocks: one never goes back, the other says today. */
#include "base/clock.h"
#include "tests/common/check.h"

static void monotonic_never_goes_back(void **state) {
	(void)state;
	int64_t last = rv_clock_monotonic_us();
	for (int i = 0; i < 10000; i++) {
		int64_t now = rv_clock_monotonic_us();
		assert_true(now >= last);
		last = now;
	}
}

static void wall_is_after_this_was_written(void **state) {
	(void)state;
	assert_true(rv_clock_wall_us() > 1700000000ll * RV_US_PER_S);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(monotonic_never_goes_back),
		cmocka_unit_test(wall_is_after_this_was_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
