/* How often a member's reports are taken. */

#include "coordinator/service/report_pace.h"
#include "tests/common/check.h"

enum { SECOND_US = 1000000 };

static void test_a_burst_and_then_a_rate(void **state) {
	(void)state;
	struct report_pace p = {{0}};
	int64_t now_us = 1000 * (int64_t)SECOND_US;
	for (int i = 0; i < REPORT_PACE_BURST; i++)
		assert_true(report_pace_take(&p, 3, now_us) == now_us);
	for (int i = 1; i <= 10; i++)
		assert_true(report_pace_take(&p, 3, now_us) == now_us + (int64_t)i * SECOND_US / REPORT_PACE_PER_S);
	assert_true(report_pace_take(&p, 4, now_us) == now_us); /* another member's are its own */
}

/* At the rate itself nothing ever waits; the burst comes back while a member is quiet. */
static void test_the_rate_itself_never_waits(void **state) {
	(void)state;
	struct report_pace p = {{0}};
	int64_t now_us = 1000 * (int64_t)SECOND_US;
	for (int i = 0; i < 10 * REPORT_PACE_BURST; i++, now_us += SECOND_US / REPORT_PACE_PER_S)
		assert_true(report_pace_take(&p, 0, now_us) == now_us);
	now_us += 3600 * (int64_t)SECOND_US;
	for (int i = 0; i < REPORT_PACE_BURST; i++)
		assert_true(report_pace_take(&p, 0, now_us) == now_us);
	assert_true(report_pace_take(&p, 0, now_us) > now_us);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_burst_and_then_a_rate),
		cmocka_unit_test(test_the_rate_itself_never_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
