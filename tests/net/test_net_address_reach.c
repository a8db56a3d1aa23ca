/* Which range an address is of, and who may dial it (net/address_reach.h). */
#include "net/address_reach.h"
#include "tests/common/check.h"

static struct address parsed(const char *text) {
	struct address a;
	assert_int_equal(address_parse(text, &a, NULL), RV_OK);
	return a;
}

static void every_range_is_known(void **state) {
	(void)state;
	static const struct {
		const char *text;
		enum address_reach reach;
	} cases[] = {
		{"8.8.8.8:1", ADDRESS_PUBLIC},
		{"9.255.255.255:1", ADDRESS_PUBLIC},
		{"11.0.0.0:1", ADDRESS_PUBLIC},
		{"10.0.0.1:1", ADDRESS_PRIVATE},
		{"10.255.255.255:1", ADDRESS_PRIVATE},
		{"100.63.255.255:1", ADDRESS_PUBLIC},
		{"100.64.0.1:1", ADDRESS_PRIVATE},
		{"100.127.255.255:1", ADDRESS_PRIVATE},
		{"100.128.0.0:1", ADDRESS_PUBLIC},
		{"172.15.0.1:1", ADDRESS_PUBLIC},
		{"172.16.0.1:1", ADDRESS_PRIVATE},
		{"172.31.255.1:1", ADDRESS_PRIVATE},
		{"172.32.0.1:1", ADDRESS_PUBLIC},
		{"192.168.1.1:1", ADDRESS_PRIVATE},
		{"192.169.1.1:1", ADDRESS_PUBLIC},
		{"169.254.169.254:80", ADDRESS_LINK},
		{"169.253.1.1:80", ADDRESS_PUBLIC},
		{"127.0.0.1:1", ADDRESS_LOOPBACK},
		{"127.9.9.9:1", ADDRESS_LOOPBACK},
		{"0.0.0.0:1", ADDRESS_UNUSABLE},
		{"0.1.2.3:1", ADDRESS_UNUSABLE},
		{"224.0.0.1:1", ADDRESS_UNUSABLE},
		{"239.255.255.255:1", ADDRESS_UNUSABLE},
		{"240.0.0.1:1", ADDRESS_UNUSABLE},
		{"255.255.255.255:1", ADDRESS_UNUSABLE},
		{":1", ADDRESS_UNUSABLE},
		{"example.org:1", ADDRESS_UNUSABLE},
		{"[2001:4860:4860::8888]:1", ADDRESS_PUBLIC},
		{"[fd00::1]:1", ADDRESS_PRIVATE},
		{"[fc12::1]:1", ADDRESS_PRIVATE},
		{"[fe80::1]:1", ADDRESS_LINK},
		{"[febf::1]:1", ADDRESS_LINK},
		{"[fec0::1]:1", ADDRESS_UNUSABLE},
		{"[::1]:1", ADDRESS_LOOPBACK},
		{"[::]:1", ADDRESS_UNUSABLE},
		{"[::7f00:1]:1", ADDRESS_UNUSABLE},
		{"[ff02::1]:1", ADDRESS_UNUSABLE},
		{"[::ffff:192.168.1.1]:1", ADDRESS_PRIVATE},
		{"[::ffff:127.0.0.1]:1", ADDRESS_LOOPBACK},
		{"[64:ff9b::10.0.0.1]:1", ADDRESS_PRIVATE},
		{"[64:ff9b::8.8.8.8]:1", ADDRESS_PUBLIC},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct address a = parsed(cases[i].text);
		if (address_reach(&a) != cases[i].reach)
			fail_msg("%s: %s, expected %s", cases[i].text, address_reach_name(address_reach(&a)),
					 address_reach_name(cases[i].reach));
	}
}

/* A narrower range than that in which the coordinator is met is nobody's to name. */
static void narrow_ranges_are_dialed_from_within(void **state) {
	(void)state;
	static const char *const texts[] = {"8.8.8.8:1", "192.168.1.1:1", "169.254.1.1:1", "127.0.0.1:1"};
	for (int met = ADDRESS_PUBLIC; met <= ADDRESS_LOOPBACK; met++)
		for (int i = 0; i < 4; i++) {
			struct address a = parsed(texts[i]);
			assert_int_equal(address_is_dialable(&a, (enum address_reach)met), i <= met);
		}
	struct address group = parsed("224.0.0.1:1"), no_port = parsed("8.8.8.8:0");
	assert_false(address_is_dialable(&group, ADDRESS_LOOPBACK));
	assert_false(address_is_dialable(&no_port, ADDRESS_LOOPBACK));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_range_is_known),
		cmocka_unit_test(narrow_ranges_are_dialed_from_within),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
