/* The byte-level characters: a bijection, with the values that GPT-2's files have. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include "train/text/tokenizer/byte_level.h"

static void bytes_and_characters_are_a_bijection(void **state) {
	(void)state;
	bool seen[0x200] = {false};
	for (int b = 0; b < 256; b++) {
		uint32_t c = byte_level_char((uint8_t)b);
		assert_true(c < 0x144 && !seen[c]);
		seen[c] = true;
		assert_int_equal(byte_level_byte(c), b);
	}
	for (uint32_t c = 0; c < 0x200; c++)
		assert_int_equal(byte_level_byte(c) >= 0, seen[c]);
	assert_int_equal(byte_level_byte(0x10ffff), -1);
}

static void known_characters(void **state) {
	(void)state;
	assert_int_equal(byte_level_char(' '), 0x120);
	assert_int_equal(byte_level_char('\n'), 0x10a);
	assert_int_equal(byte_level_char(0), 0x100);
	assert_int_equal(byte_level_char('a'), 'a');
	assert_int_equal(byte_level_char(0x7f), 0x121);
	assert_int_equal(byte_level_char(0xa0), 0x142);
	assert_int_equal(byte_level_char(0xad), 0x143);
	assert_int_equal(byte_level_char(0xff), 0xff);
}

static void text_round_trips(void **state) {
	(void)state;
	uint8_t bytes[256], back[512];
	char text[512];
	for (int b = 0; b < 256; b++)
		bytes[b] = (uint8_t)b;
	size_t n = byte_level_encode(bytes, sizeof bytes, text);
	assert_int_equal(byte_level_decode(text, n, back), 256);
	assert_memory_equal(back, bytes, 256);
	assert_int_equal(byte_level_decode("a b", 3, back), -1);      /* a space stands for no byte */
	assert_int_equal(byte_level_decode("a\xff", 2, back), -1);    /* no UTF-8 */
	assert_int_equal(byte_level_decode("\xc5\x84", 2, back), -1); /* U+0144 */
	assert_int_equal(byte_level_decode("", 0, back), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_and_characters_are_a_bijection),
		cmocka_unit_test(known_characters),
		cmocka_unit_test(text_round_trips),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
