/* What may be shown stays; what may not becomes '?'. */
#include "tests/lab/lab_fixture.h"

#include "base/clean_text.h"

#include <string.h>

static void test_texts(void **state) {
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", ""},
		{"plain <&> text", "plain <&> text"},
		{"é, 中, 𝄞, ü", "é, 中, 𝄞, ü"},
		{"a\tb\nc\x1b[31m\x7f", "a?b?c?[31m?"},
		{"\xc2\x85", "??"},                     /* a control character of two bytes */
		{"cut \xc3", "cut ?"},                  /* in the middle of a character */
		{"cut \xf0\x9d\x84", "cut ???"},        /* likewise */
		{"\xc0\xaf \xed\xa0\x80", "?? ???"},    /* overlong; a surrogate */
		{"\xf4\x90\x80\x80\xff", "?????"},      /* beyond the last character */
		{"x\xe2\x80\xaey", "x???y"},            /* turns what follows round */
		{"\xe2\x81\xa6\xe2\x80\xa8", "??????"}, /* isolates; ends a line */
		{"\xe2\x80\xa6", "\xe2\x80\xa6"},       /* an ellipsis is near these, and fine */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[64];
		strcpy(text, cases[i].text);
		clean_text(text);
		assert_string_equal(text, cases[i].want);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
