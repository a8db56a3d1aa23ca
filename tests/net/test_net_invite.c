/* Invite links and addresses: there and back, and every way to get them wrong. */
#include "net/invite.h"

#include "base/hex.h"
#include "tests/common/check.h"

#include <string.h>

#define RUN   "00112233445566778899aabbccddeeff"
#define KEY   "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
#define TOKEN "AAECAwQFBgcICQoLDA0ODw"

static void there_and_back(void **state) {
	(void)state;
	static const char *const good[] = {
		"rivulet://example.org:7433/" RUN "#k=" KEY "&t=" TOKEN,
		"rivulet://10.0.0.1:1/" RUN "#k=" KEY,
		"rivulet://[2001:db8::1]:65535/" RUN "#k=" KEY "&t=" TOKEN,
	};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct invite in;
		char text[INVITE_MAX_BYTES];
		struct rv_errtext et = {0};
		if (invite_parse(good[i], &in, &et) != RV_OK)
			fail_msg("%s: %s", good[i], et.text);
		invite_format(&in, text);
		assert_string_equal(text, good[i]);
	}
	struct invite in;
	assert_int_equal(invite_parse(good[2], &in, NULL), RV_OK);
	assert_string_equal(in.coordinator.host, "2001:db8::1");
	assert_int_equal(in.coordinator.port, 65535);
	assert_int_equal(in.run_id[1], 0x11);
	assert_int_equal(in.key[0], 0xd7);
	assert_true(in.has_token);
	assert_int_equal(in.token[15], 15);
	assert_int_equal(invite_parse("RIVULET://h:1/" RUN "#t=" TOKEN "&k=" KEY, &in, NULL), RV_OK);
}

static void longest_link_fits(void **state) {
	(void)state;
	struct invite in = {.has_token = true}, back;
	char text[INVITE_MAX_BYTES];
	memset(in.coordinator.host, 'h', NET_ADDR_BYTES - 7);
	in.coordinator.port = 65535;
	memset(in.key, 0xff, sizeof in.key);
	invite_format(&in, text);
	assert_int_equal(invite_parse(text, &back, NULL), RV_OK);
	assert_memory_equal(&in, &back, sizeof in);
}

static void wrong_links_are_explained(void **state) {
	(void)state;
	static const struct {
		const char *text, *words;
	} bad[] = {
		{"", "must start with rivulet://"},
		{"https://h:1/" RUN "#k=" KEY, "must start with rivulet://"},
		{"rivulet://h:1/" RUN, "put the link in quotes"},
		{"rivulet://h:1#k=" KEY, "host:port/RUN#k=KEY"},
		{"rivulet://h/" RUN "#k=" KEY, "must be host:port"},
		{"rivulet://:1/" RUN "#k=" KEY, "needs a host"},
		{"rivulet://h:0/" RUN "#k=" KEY, "port from 1"},
		{"rivulet://h:65536/" RUN "#k=" KEY, "65536"},
		{"rivulet://h:+1/" RUN "#k=" KEY, "digits"},
		{"rivulet://::1:1/" RUN "#k=" KEY, "brackets"},
		{"rivulet://[::1/" RUN "#k=" KEY, "[v6]:port"},
		{"rivulet://[::1]1/" RUN "#k=" KEY, "[v6]:port"},
		{"rivulet://user@h:1/" RUN "#k=" KEY, "0x40"},
		{"rivulet://h:1/0011#k=" KEY, "32 hex digits"},
		{"rivulet://h:1/" RUN "0#k=" KEY, "32 hex digits"},
		{"rivulet://h:1/zz112233445566778899aabbccddeeff#k=" KEY, "32 hex digits"},
		{"rivulet://h:1/" RUN "#t=" TOKEN, "k=KEY"},
		{"rivulet://h:1/" RUN "#k=" KEY "&k=" KEY, "k= stands twice"},
		{"rivulet://h:1/" RUN "#k=" KEY "&x=1", "only k=KEY and t=TOKEN"},
		{"rivulet://h:1/" RUN "#k=" KEY "&", "only k=KEY and t=TOKEN"},
		{"rivulet://h:1/" RUN "#", "only k=KEY and t=TOKEN"},
		{"rivulet://h:1/" RUN "#k=short", "is 5 characters"},
		{"rivulet://h:1/" RUN "#k=" KEY "&t=", "was the link cut?"},
		{"rivulet://h:1/" RUN "#k=" KEY "&t=AAECAwQFBgcICQoLDA0OD!", "base64url"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct invite in;
		struct rv_errtext et = {0};
		assert_int_equal(invite_parse(bad[i].text, &in, &et), RV_E_INVALID);
		if (strstr(et.text, bad[i].words) == NULL)
			fail_msg("%s: %s", bad[i].text, et.text);
	}
}

/* Cut anywhere, a link is refused, and no text gives the token away. */
static void every_cut_is_refused(void **state) {
	(void)state;
	static const char whole[] = "rivulet://h:1/" RUN "#k=" KEY "&t=" TOKEN;
	size_t without_token = strlen(whole) - strlen("&t=" TOKEN);
	for (size_t n = 0; n < strlen(whole); n++) {
		char text[sizeof whole];
		struct invite in;
		struct rv_errtext et = {0};
		memcpy(text, whole, n);
		text[n] = '\0';
		assert_int_equal(invite_parse(text, &in, &et), n == without_token ? RV_OK : RV_E_INVALID);
		assert_null(strstr(et.text, "AAECAw"));
	}
	char endless[2 * INVITE_MAX_BYTES];
	struct invite in;
	memset(endless, 'a', sizeof endless);
	memcpy(endless, INVITE_SCHEME, strlen(INVITE_SCHEME));
	endless[sizeof endless - 1] = '\0';
	assert_int_equal(invite_parse(endless, &in, NULL), RV_E_INVALID);
}

static void addresses_become_sockets(void **state) {
	(void)state;
	static const struct {
		const char *text, *shown;
		int family; /* 0: a name */
	} cases[] = {
		{"127.0.0.1:80", "127.0.0.1:80", AF_INET},
		{"[::1]:443", "[::1]:443", AF_INET6},
		{"[::ffff:10.1.2.3]:9", "10.1.2.3:9", AF_INET6},
		{":7440", "[::]:7440", AF_INET6},
		{"example.org:1", "", 0},
		{"1.2.3:1", "", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct address a;
		struct sockaddr_storage sa;
		socklen_t n;
		char shown[NET_ADDR_BYTES];
		assert_int_equal(address_parse(cases[i].text, &a, NULL), RV_OK);
		assert_int_equal(address_to_socket(&a, &sa, &n), cases[i].family != 0);
		if (cases[i].family == 0)
			continue;
		assert_int_equal(sa.ss_family, cases[i].family);
		address_of_socket(&sa, &a);
		assert_true(address_format(&a, shown));
		assert_string_equal(shown, cases[i].shown);
	}
}

static void names_are_looked_up(void **state) {
	(void)state;
	struct address a, found;
	struct sockaddr_storage sa;
	socklen_t n;
	struct rv_errtext et = {0};
	assert_int_equal(address_parse("localhost:7440", &a, NULL), RV_OK);
	assert_int_equal(address_resolve(&a, &found, &et), RV_OK);
	assert_true(address_to_socket(&found, &sa, &n));
	assert_int_equal(found.port, 7440);
	static const char *const numeric[] = {"10.1.2.3:9", "[2001:db8::1]:9", ":9"};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(address_parse(numeric[i], &a, NULL), RV_OK);
		assert_int_equal(address_resolve(&a, &found, &et), RV_OK);
		assert_string_equal(found.host, a.host);
		assert_int_equal(found.port, 9);
	}
	/* Too long for a label (RFC 1035, 2.3.4): nobody has to be asked. */
	memset(a.host, 'a', 70);
	a.host[70] = '\0';
	assert_int_equal(address_resolve(&a, &found, &et), RV_E_NOTFOUND);
	assert_non_null(strstr(et.text, a.host));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(longest_link_fits),
		cmocka_unit_test(wrong_links_are_explained),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(addresses_become_sockets),
		cmocka_unit_test(names_are_looked_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
