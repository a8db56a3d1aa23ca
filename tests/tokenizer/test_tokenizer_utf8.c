/* UTF-8: every code point there and back; what is not well-formed is refused byte by byte. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include "train/text/tokenizer/utf8.h"

#include <string.h>

static void every_code_point_round_trips(void **state) {
	(void)state;
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		uint8_t bytes[4];
		uint32_t back = 0;
		if (c >= 0xd800 && c < 0xe000) /* a surrogate is no character */
			continue;
		size_t n = utf8_encode(c, bytes);
		assert_int_equal(utf8_decode(bytes, n, &back), n);
		assert_int_equal(back, c);
		assert_int_equal(utf8_decode(bytes, n - 1, &back), 0);
	}
}

static void malformed_bytes_are_refused(void **state) {
	(void)state;
	static const char *const malformed[] = {"\x80",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
											"\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
											"\xff",         "\xe2\x82",         "\xe2\x28\xa1",     "\xf0\x9f\x98"};
	for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
		uint32_t c;
		assert_int_equal(utf8_decode((const uint8_t *)malformed[i], strlen(malformed[i]), &c), 0);
		assert_int_equal(utf8_valid_prefix((const uint8_t *)malformed[i], strlen(malformed[i])), 0);
	}
}

static void prefixes_end_where_it_changes(void **state) {
	(void)state;
	const uint8_t text[] = "0123456789abcdef\xc3\xa4xyz\xff\xfe\xc3(";
	assert_int_equal(utf8_valid_prefix(text, sizeof text - 1), 21);
	assert_int_equal(utf8_invalid_prefix(text + 21, sizeof text - 22), 3);
	for (size_t at = 0; at < 40; at++) { /* wherever it stands among eight-byte steps */
		uint8_t long_text[41];
		memset(long_text, 'a', sizeof long_text);
		long_text[at] = 0x80;
		assert_int_equal(utf8_valid_prefix(long_text, sizeof long_text), at);
		assert_int_equal(utf8_invalid_prefix(long_text + at, sizeof long_text - at), 1);
	}
	assert_int_equal(utf8_valid_prefix(text, 0), 0);
	assert_int_equal(utf8_invalid_prefix(text, 0), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point_round_trips),
		cmocka_unit_test(malformed_bytes_are_refused),
		cmocka_unit_test(prefixes_end_where_it_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
