/* From which address this machine reaches others. */
#include <string.h>

#include "net/local_address.h"
#include "tests/common/check.h"

static void test_itself_is_reached_from_itself(void **state) {
	(void)state;
	const struct address to = {.host = "127.0.0.1", .port = 80};
	struct address out;
	assert_true(local_address_toward(&to, &out));
	assert_string_equal(out.host, "127.0.0.1");
	assert_int_equal(out.port, 0);
}

static void test_a_name_is_looked_up_by_nobody(void **state) {
	(void)state;
	const struct address name = {.host = "localhost", .port = 80};
	struct address out;
	assert_false(local_address_toward(&name, &out));
}

/* TCP and UDP know no way to there. */
static void test_no_route_is_no_address(void **state) {
	(void)state;
	const struct address to = {.host = "255.255.255.255"};
	struct address out;
	assert_false(local_address_toward(&to, &out)); /* broadcasting is not asked for */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_itself_is_reached_from_itself),
		cmocka_unit_test(test_a_name_is_looked_up_by_nobody),
		cmocka_unit_test(test_no_route_is_no_address),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
