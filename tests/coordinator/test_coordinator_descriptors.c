/* The limit of open files: raised as far as it goes, and what does not fit is said. */
#include <string.h>
#include <sys/resource.h>

#include "coordinator/commands/descriptors.h"
#include "tests/common/check.h"

static struct rlimit at_first;

static void set_limit(rlim_t soft, rlim_t hard) {
	const struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static rlim_t soft(void) {
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	return limit.rlim_cur;
}

/* The hard limit only goes down: each test asks for less than the one before. */
static void test_as_many_as_there_is_room_for(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	int got = 0;
	if (at_first.rlim_max < 4000)
		skip();
	set_limit(256, 4000);
	assert_int_equal(descriptors_reserve(0, true, &got, &et), RV_OK);
	assert_int_equal(got, 4000 - DESCRIPTORS_OF_RELAY - DESCRIPTORS_OTHER);
	assert_int_equal(soft(), 4000);
	set_limit(256, 4000);
	assert_int_equal(descriptors_reserve(1000, false, &got, &et), RV_OK);
	assert_int_equal(got, 1000);
	assert_int_equal(soft(), 1000 + DESCRIPTORS_OTHER);
	assert_int_equal(descriptors_reserve(16, false, &got, &et), RV_OK); /* more than that is there already */
	assert_int_equal(soft(), 1000 + DESCRIPTORS_OTHER);
}

static void test_what_does_not_fit(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	int got = 0;
	if (at_first.rlim_max < 2500)
		skip();
	set_limit(256, 2500);
	assert_int_equal(descriptors_reserve(2000, true, &got, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "2000 connections need 4112 open files"));
	assert_non_null(strstr(et.text, "limit is 2500"));
	assert_int_equal(descriptors_check(1, &et), RV_E_RANGE);
	set_limit(256, 2100); /* a relay, and hardly anybody else */
	assert_int_equal(descriptors_reserve(0, true, &got, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "ulimit -Hn 2120"));
	assert_int_equal(descriptors_reserve(0, false, &got, &et), RV_OK);
}

int main(void) {
	(void)getrlimit(RLIMIT_NOFILE, &at_first);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_many_as_there_is_room_for),
		cmocka_unit_test(test_what_does_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
