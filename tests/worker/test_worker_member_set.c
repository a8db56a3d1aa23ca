/* A set of members as people read it. */
#include <string.h>

#include "tests/common/check.h"
#include "worker/session/member_set.h"

static void sets_are_read_as_sentences(void **state) {
	(void)state;
	static const struct {
		uint64_t set;
		const char *want;
	} cases[] = {{0, "nobody"},
				 {1, "member 0"},
				 {UINT64_C(1) << 63, "member 63"},
				 {6, "members 1 and 2"},
				 {0x29, "members 0, 3 and 5"}};
	char text[MEMBER_SET_TEXT_BYTES];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		member_set_text(cases[i].set, text);
		assert_string_equal(text, cases[i].want);
	}
	member_set_text(UINT64_MAX, text);
	assert_string_equal(strstr(text, "61"), "61, 62 and 63");
}

static void lists_are_read_as_sentences(void **state) {
	(void)state;
	static const uint32_t members[64] = {7, 4000000000, 12, 4294967294, 4294967293, 4294967292, 9};
	static const struct {
		int n;
		const char *want;
	} cases[] = {{0, "nobody"},
				 {1, "member 7"},
				 {2, "members 7 and 4000000000"},
				 {6, "members 7, 4000000000, 12, 4294967294, 4294967293 and 4294967292"},
				 {7, "members 7, 4000000000, 12, 4294967294, 4294967293 and 2 more"},
				 {64, "members 7, 4000000000, 12, 4294967294, 4294967293 and 59 more"}};
	char text[MEMBER_LIST_TEXT_BYTES];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		member_list_text(members, cases[i].n, text);
		assert_string_equal(text, cases[i].want);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(sets_are_read_as_sentences),
									   cmocka_unit_test(lists_are_read_as_sentences)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
