/* At which address a member is announced, whatever it states. */
#include <stdio.h>
#include <string.h>

#include "coordinator/service/member_address.h"
#include "tests/common/check.h"

static const char SITE[] = "203.0.113.7"; /* where the coordinator is advertised */

/* Seen at `host` by the coordinator's end `own`, it states `stated`, and is announced as
 * `expected`. */
static void check(const char *host, const char *own, const char *site, const char *stated, const char *expected,
				  bool replaced) {
	struct member_sight sight = {.host = ""};
	struct rv_errtext et = {0};
	char out[NET_ADDR_BYTES];
	bool was_replaced = !replaced;
	memcpy(sight.host, host, strlen(host) + 1);
	memcpy(sight.own, own, strlen(own) + 1);
	if (member_address_choose(&sight, site, stated, out, &was_replaced, &et) != RV_OK)
		fail_msg("%s: %s", stated, et.text);
	assert_string_equal(out, expected);
	assert_int_equal(was_replaced, replaced);
}

static void test_a_public_member_is_where_it_is_seen(void **state) {
	(void)state;
	check("198.51.100.9", "192.0.2.1", SITE, ":7000", "198.51.100.9:7000", false);
	check("198.51.100.9", "192.0.2.1", SITE, "198.51.100.9:7000", "198.51.100.9:7000", false);
	check("198.51.100.9", "192.0.2.1", SITE, "[::ffff:198.51.100.9]:7000", "198.51.100.9:7000", false);
	check("2001:db8::9", "2001:db8::1", SITE, "[2001:db8:0::9]:7000", "[2001:db8::9]:7000", false);
	check("198.51.100.9", "10.0.0.1", SITE, ":7000", "198.51.100.9:7000", false); /* a forwarded port here */
}

/* The victim of row 19: any host that one member names, all would dial. */
static void test_no_other_host_is_believed(void **state) {
	static const char *const lies[] = {
		"8.8.8.8:53",        "127.0.0.1:22", "169.254.169.254:80",    "192.168.0.1:80", "[2001:db8::7]:443", "[::1]:22",
		"255.255.255.255:9", "224.0.0.1:9",  "victim.example.org:80", "0.0.0.0:80",     "localhost:22"};
	(void)state;
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		char expected[NET_ADDR_BYTES];
		(void)snprintf(expected, sizeof expected, "198.51.100.9%s", strrchr(lies[i], ':'));
		check("198.51.100.9", "192.0.2.1", SITE, lies[i], expected, true);
	}
	check("198.51.100.9", "192.0.2.1", SITE, "203.0.113.7:80", "198.51.100.9:80", true); /* nor the coordinator's */
}

static void test_private_is_announced_where_the_coordinator_is(void **state) {
	(void)state;
	check("192.168.0.5", "192.168.0.1", "192.168.0.1", ":7000", "192.168.0.5:7000", false);
	check("10.1.0.5", "192.168.0.1", "", ":7000", "10.1.0.5:7000", false);
	check("fd00::5", "fd00::1", "", ":7000", "[fd00::5]:7000", false);
	check("169.254.3.4", "169.254.1.1", "", ":7000", "169.254.3.4:7000", false);
	check("192.168.0.5", "198.51.100.1", SITE, ":7000", "203.0.113.7:7000", false); /* the other side of its router */
	check("192.168.0.5", "198.51.100.1", "", ":7000", "198.51.100.1:7000", false);
	check("192.168.0.5", "192.168.0.1", SITE, "192.168.0.9:7000", "192.168.0.5:7000", true);
}

/* The operator's own machines behind the router whose ports it forwards. */
static void test_at_the_coordinators_site_its_host_may_be_stated(void **state) {
	(void)state;
	check("192.168.0.5", "192.168.0.1", SITE, "203.0.113.7:7001", "203.0.113.7:7001", false);
	check("192.168.0.5", "192.168.0.1", SITE, ":7001", "192.168.0.5:7001", false);
	check("192.168.0.5", "192.168.0.1", "192.168.0.1", "192.168.0.1:7001", "192.168.0.5:7001", true);
}

static void test_loopback_is_the_coordinators_machine(void **state) {
	(void)state;
	check("127.0.0.1", "127.0.0.1", "127.0.0.1", ":7000", "127.0.0.1:7000", false);
	check("127.0.0.1", "127.0.0.1", "", ":7000", "127.0.0.1:7000", false);
	check("127.0.0.1", "127.0.0.1", SITE, ":7000", "203.0.113.7:7000", false);
	check("127.0.0.1", "127.0.0.1", "192.168.0.1", ":7000", "192.168.0.1:7000", false);
	check("127.0.0.1", "127.0.0.1", SITE, "203.0.113.7:7000", "203.0.113.7:7000", false);
	check("::1", "::1", "2001:db8::1", ":7000", "[2001:db8::1]:7000", false);
	check("127.0.0.1", "127.0.0.1", SITE, "8.8.8.8:53", "203.0.113.7:53", true);
}

static void test_what_cannot_be_dialed_is_refused(void **state) {
	struct member_sight sight = {.host = "", .own = "192.0.2.1"};
	struct rv_errtext et = {0};
	char out[NET_ADDR_BYTES];
	bool replaced;
	(void)state;
	assert_int_equal(member_address_choose(&sight, SITE, ":7000", out, &replaced, &et), RV_E_INVALID);
	memcpy(sight.host, "0.0.0.0", sizeof "0.0.0.0");
	assert_int_equal(member_address_choose(&sight, SITE, ":7000", out, &replaced, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "cannot be dialed"));
	memcpy(sight.host, "192.0.2.3", sizeof "192.0.2.3");
	assert_int_equal(member_address_choose(&sight, SITE, "7000", out, &replaced, &et), RV_E_INVALID);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_public_member_is_where_it_is_seen),
		cmocka_unit_test(test_no_other_host_is_believed),
		cmocka_unit_test(test_private_is_announced_where_the_coordinator_is),
		cmocka_unit_test(test_at_the_coordinators_site_its_host_may_be_stated),
		cmocka_unit_test(test_loopback_is_the_coordinators_machine),
		cmocka_unit_test(test_what_cannot_be_dialed_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
