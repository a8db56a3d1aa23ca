/* test_train_mirror_hosts.c: which hosts a person agrees to, and which mirrors are at them. */
#include "tests/common/check.h"
#include "train/text/published/mirror_hosts.h"

#include <string.h>

static void a_url_has_one_host(void **state) {
	(void)state;
	static const struct {
		const char *url, *host;
	} of[] = {{"https://A.example/b", "a.example"},
			  {"http://a.example:8080", "a.example"},
			  {"http://[2001:db8::1]:80/b", "[2001:db8::1]"},
			  {"s3://texts/a/b", "s3://texts"}};
	/* Two programs may find different hosts in these. */
	static const char *const refused[] = {"http://good.example@bad.example/",
										  "http://good.example\\@bad.example/",
										  "http://good.example#bad.example",
										  "http://good.example?bad.example",
										  "http://good.example:80@bad.example",
										  "http:///b",
										  "http://[::1/b",
										  "no url"};
	char host[MIRROR_HOST_BYTES];
	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		assert_true(mirror_host(of[i].url, host));
		assert_string_equal(host, of[i].host);
	}
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (mirror_host(refused[i], host))
			fail_msg("%s: host %s", refused[i], host);
}

static void lists_name_each_host_once(void **state) {
	(void)state;
	char hosts[32] = "";
	assert_true(mirror_hosts_add(hosts, sizeof hosts, "https://a.example/one"));
	assert_true(mirror_hosts_add(hosts, sizeof hosts, "https://A.example/two"));
	assert_true(mirror_hosts_add(hosts, sizeof hosts, "s3://texts/b"));
	assert_false(mirror_hosts_add(hosts, sizeof hosts, "https://no-room.example/"));
	assert_false(mirror_hosts_add(hosts, sizeof hosts, "no url"));
	assert_string_equal(hosts, "a.example, s3://texts");
	assert_true(mirror_hosts_have(hosts, "http://a.example:81/") && mirror_hosts_have(hosts, "s3://texts/c"));
	assert_false(mirror_hosts_have(hosts, "http://b.a.example/") || mirror_hosts_have(hosts, "http://a.example.b/"));
	assert_false(mirror_hosts_have(hosts, "http://texts/") || mirror_hosts_have("", "http://a.example/"));
}

static void a_list_is_read_as_people_write_it(void **state) {
	(void)state;
	static const struct {
		const char *given, *list;
	} of[] = {{"a.example, b.example", "a.example, b.example"},
			  {"a.example,B.example", "a.example, b.example"},
			  {"a.example ,  a.EXAMPLE,s3://texts", "a.example, s3://texts"},
			  {"[2001:db8::1]", "[2001:db8::1]"}};
	static const struct {
		const char *given, *names;
	} refused[] = {{"a.example:443", "\"a.example:443\""},
				   {"a.example, https://b.example", "\"https://b.example\""},
				   {"a.example/path", "\"a.example/path\""},
				   {"a.example b.example", "\"a.example b.example\""},
				   {"a.example,", "\"\""},
				   {", a.example", "\"\""},
				   {"s3://", "\"s3://\""},
				   {"s3://texts/way", "\"s3://texts/way\""},
				   {"me@a.example", "\"me@a.example\""},
				   {"[2001:db8::1", "\"[2001:db8::1\""}};
	char hosts[64];
	struct rv_errtext et;
	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		assert_int_equal(mirror_hosts_read(of[i].given, hosts, sizeof hosts, &et), RV_OK);
		assert_string_equal(hosts, of[i].list);
	}
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		if (mirror_hosts_read(refused[i].given, hosts, sizeof hosts, &et) != RV_E_INVALID)
			fail_msg("%s: not refused", refused[i].given);
		assert_non_null(strstr(et.text, refused[i].names));
	}
	assert_int_equal(mirror_hosts_read("a.example,b.example", hosts, sizeof "a.example", &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "b.example"));
	assert_int_equal(mirror_hosts_read("a.example", hosts, sizeof "a.example", &et), RV_OK);
}

static void a_host_is_one_source(void **state) {
	(void)state;
	static struct manifest m = {
		.mirrors = {"http://a.example/1", "http://b.example/1", "http://a.example:81/2", "http://c.example/"},
		.n_mirrors = 4};
	static const bool takes[] = {true, false, false, true};
	for (int i = 0; i < 4; i++)
		assert_int_equal(mirror_hosts_take("a.example, c.example", &m, i), takes[i]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_url_has_one_host), cmocka_unit_test(lists_name_each_host_once),
		cmocka_unit_test(a_list_is_read_as_people_write_it), cmocka_unit_test(a_host_is_one_source)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
