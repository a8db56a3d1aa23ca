/* "Did you mean": near names are found, far ones are not. */
#include "base/options.h"
#include "tests/common/check.h"

#include <string.h>

static const char *const names[] = {"inner-lr", "outer-lr", "rounds", "silence-ms", "lr", "data"};

static const char *nearest(const char *word) {
	return rv_nearest_name(word, names, sizeof names / sizeof names[0]);
}

static void typos_are_understood(void **state) {
	(void)state;
	assert_string_equal(nearest("rounds"), "rounds");
	assert_string_equal(nearest("round"), "rounds");
	assert_string_equal(nearest("ruonds"), "rounds"); /* a swap is one edit */
	assert_string_equal(nearest("inner_lr"), "inner-lr");
	assert_string_equal(nearest("silence"), "silence-ms");
	assert_string_equal(nearest("dta"), "data");
}

static void strangers_are_not(void **state) {
	(void)state;
	assert_null(nearest("frobnicate"));
	assert_null(nearest(""));
	assert_null(nearest("x"));
	assert_null(nearest("zz")); /* distance 2 to lr, but that is the whole word */
	assert_null(rv_nearest_name("lr", names, 0));
}

static void long_words_are_harmless(void **state) {
	(void)state;
	char word[5000];
	memset(word, 'a', sizeof word);
	word[sizeof word - 1] = '\0';
	const char *one[] = {word};
	assert_null(nearest(word));
	assert_null(rv_nearest_name("aaaa", one, 1));
	word[63] = '\0';
	assert_ptr_equal(rv_nearest_name(word, one, 1), word);
	word[63] = 'a';
	word[64] = '\0';
	assert_null(rv_nearest_name(word, one, 1));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(typos_are_understood),
		cmocka_unit_test(strangers_are_not),
		cmocka_unit_test(long_words_are_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
