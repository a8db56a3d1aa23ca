/* Members as people read them. */
#include "tests/common/check.h"
#include "worker/session/member_list.h"

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
	const struct CMUnitTest tests[] = {cmocka_unit_test(lists_are_read_as_sentences)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
