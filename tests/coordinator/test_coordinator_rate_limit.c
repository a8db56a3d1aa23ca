/* The token buckets: a burst, then a pace; addresses do not disturb each other; the table never
 * overflows. */
#include <stdio.h>

#include "coordinator/web/rate_limit.h"
#include "tests/common/check.h"

#define S 1000000ll

static void test_burst_then_pace(void **state) {
	(void)state;
	static struct rate_limit r;
	rate_limit_init(&r, 3, 0.5);
	for (int i = 0; i < 3; i++) {
		assert_true(rate_limit_allows(&r, "a", 100));
		rate_limit_count(&r, "a", 100);
	}
	assert_false(rate_limit_allows(&r, "a", 100));
	assert_true(rate_limit_allows(&r, "b", 100));
	assert_false(rate_limit_allows(&r, "a", 100 + S));
	assert_true(rate_limit_allows(&r, "a", 100 + 2 * S));
	rate_limit_count(&r, "a", 100 + 2 * S);
	assert_false(rate_limit_allows(&r, "a", 100 + 2 * S));
	assert_true(rate_limit_allows(&r, "a", 1000 * S));
}

static void test_the_quietest_makes_room(void **state) {
	(void)state;
	static struct rate_limit r;
	char host[32];
	rate_limit_init(&r, 1, 1e-9);
	for (int i = 0; i < RATE_LIMIT_SLOTS + 5; i++) {
		(void)snprintf(host, sizeof host, "h%d", i);
		rate_limit_count(&r, host, i);
	}
	assert_true(rate_limit_allows(&r, "h0", 1000));
	assert_true(rate_limit_allows(&r, "h4", 1000));
	assert_false(rate_limit_allows(&r, "h5", 1000));
	assert_false(rate_limit_allows(&r, host, 1000));
}

static void test_a_64_of_ipv6_is_one(void **state) {
	(void)state;
	static struct rate_limit r;
	rate_limit_init(&r, 2, 1);
	rate_limit_count(&r, "2a12:0:0:1::5", S);
	assert_true(rate_limit_allows(&r, "2a12:0:0:1:7::1", S));
	rate_limit_count(&r, "2a12:0:0:1:7::1", S);
	assert_false(rate_limit_allows(&r, "2a12:0:0:1::9", S));
	assert_true(rate_limit_allows(&r, "2a12:0:0:2::5", S));
	rate_limit_count(&r, "11.0.0.1", S);
	rate_limit_count(&r, "11.0.0.1", S);
	assert_false(rate_limit_allows(&r, "11.0.0.1", S));
	assert_true(rate_limit_allows(&r, "11.0.0.2", S));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst_then_pace),
		cmocka_unit_test(test_the_quietest_makes_room),
		cmocka_unit_test(test_a_64_of_ipv6_is_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
