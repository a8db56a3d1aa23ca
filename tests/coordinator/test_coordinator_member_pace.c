/* How often a member may ask for something, however many others do. */

#include "coordinator/service/member_pace.h"
#include "tests/common/check.h"

enum { SECOND_US = 1000000, BURST = 4 };

/* Each member has its burst, whoever asked before; and none has another one because all asked. */
static void test_everyone_here_has_a_place(void **state) {
	(void)state;
	static struct member_pace p;
	member_pace_init(&p, BURST, 1);
	const int64_t now_us = 1000 * (int64_t)SECOND_US;
	for (int i = 0; i < BURST; i++)
		for (uint32_t slot = 0; slot < NET_MAX_HERE; slot++)
			assert_true(member_pace_take(&p, slot, now_us));
	for (uint32_t slot = 0; slot < NET_MAX_HERE; slot++)
		assert_false(member_pace_take(&p, slot, now_us));
}

static void test_one_more_each_second(void **state) {
	(void)state;
	static struct member_pace p;
	member_pace_init(&p, BURST, 1);
	int64_t now_us = 1000 * (int64_t)SECOND_US;
	for (int i = 0; i < BURST; i++)
		assert_true(member_pace_take(&p, 7, now_us));
	for (int i = 0; i < 10; i++) { /* what is refused does not count */
		assert_false(member_pace_take(&p, 7, now_us + SECOND_US - 1));
		now_us += SECOND_US;
		assert_true(member_pace_take(&p, 7, now_us));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everyone_here_has_a_place),
		cmocka_unit_test(test_one_more_each_second),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
