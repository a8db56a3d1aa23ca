/* guard.h: who is answered on loopback. */
#include "tests/common/check.h"
#include "worker/local/guard.h"

static const char token[] = "00112233445566778899aabbccddeeff";
enum { PORT = 40123 };

static struct guard_request own(void) {
	return (struct guard_request){.host = "127.0.0.1:40123",
								  .authorization = "Bearer 00112233445566778899aabbccddeeff"};
}

static enum guard_verdict check(const struct guard_request *rq) {
	return guard_check(rq, PORT, token, false);
}

static void test_the_owner_is_answered(void **state) {
	(void)state;
	struct guard_request rq = own();
	assert_int_equal(check(&rq), GUARD_PASSES);
	rq.host = "localhost:40123";
	rq.origin = "http://localhost:40123";
	rq.fetch_site = "same-origin";
	assert_int_equal(check(&rq), GUARD_PASSES);
}

/* A name of an attacker that resolves to 127.0.0.1. */
static void test_another_host_is_refused(void **state) {
	(void)state;
	static const char *const hosts[] = {"evil.example:40123",
										"127.0.0.1",
										"127.0.0.1:40124",
										"localhost",
										"127.0.0.1:401230",
										"evil.example:40123@127.0.0.1:40123",
										"",
										"127.0.0.1:40123 "};
	struct guard_request rq = own();
	for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
		rq.host = hosts[i];
		assert_int_equal(check(&rq), GUARD_OTHER_HOST);
		assert_int_equal(guard_check(&rq, PORT, token, true), GUARD_OTHER_HOST);
	}
	rq.host = NULL;
	assert_int_equal(check(&rq), GUARD_OTHER_HOST);
	rq = own();
	rq.repeated = true;
	assert_int_equal(check(&rq), GUARD_OTHER_HOST);
}

static void test_another_page_is_refused(void **state) {
	(void)state;
	static const char *const origins[] = {"http://evil.example",
										  "null",
										  "https://127.0.0.1:40123",
										  "http://127.0.0.1:8080",
										  "http://127.0.0.1:40123.evil.example",
										  ""};
	static const char *const sites[] = {"cross-site", "same-site", ""};
	for (size_t i = 0; i < sizeof origins / sizeof origins[0]; i++) {
		struct guard_request rq = own();
		rq.origin = origins[i];
		assert_int_equal(check(&rq), GUARD_OTHER_ORIGIN);
	}
	for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++) {
		struct guard_request rq = own();
		rq.fetch_site = sites[i];
		assert_int_equal(check(&rq), GUARD_OTHER_ORIGIN);
	}
}

static void test_the_token_is_needed(void **state) {
	(void)state;
	static const char *const wrong[] = {"Bearer 00112233445566778899aabbccddeefe",
										"Bearer 00112233445566778899aabbccddeeff0",
										"Bearer 00112233445566778899aabbccddee",
										"00112233445566778899aabbccddeeff",
										"Basic 00112233445566778899aabbccddeeff",
										"Bearer ",
										""};
	struct guard_request rq = own();
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		rq.authorization = wrong[i];
		assert_int_equal(check(&rq), GUARD_NO_TOKEN);
	}
	rq.authorization = NULL;
	assert_int_equal(check(&rq), GUARD_NO_TOKEN);
	assert_int_equal(guard_check(&rq, PORT, token, true), GUARD_PASSES);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_owner_is_answered), cmocka_unit_test(test_another_host_is_refused),
		cmocka_unit_test(test_another_page_is_refused), cmocka_unit_test(test_the_token_is_needed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
