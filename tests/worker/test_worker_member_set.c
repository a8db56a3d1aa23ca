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

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(sets_are_read_as_sentences)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
