/* Hex and base64url: known texts, every length, and strict refusal of everything else. */
#include "base/hex.h"
#include "tests/common/check.h"

#include <string.h>

static void hex_known_and_back(void **state) {
	(void)state;
	const uint8_t b[] = {0x00, 0x01, 0x9a, 0xff};
	char text[9];
	uint8_t out[4];
	rv_hex_encode(b, 4, text);
	assert_string_equal(text, "00019aff");
	assert_true(rv_hex_decode("00019AfF", out, 4));
	assert_memory_equal(out, b, 4);
	rv_hex_encode(b, 0, text);
	assert_string_equal(text, "");
	assert_true(rv_hex_decode("", out, 0));
}

static void hex_refuses(void **state) {
	(void)state;
	static const char *const bad[] = {"", "0", "00", "000", "00000", "00 0", "0x00", "00g0", "-1-1", "000\n"};
	uint8_t out[2];
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(rv_hex_decode(bad[i], out, 2));
}

static void base64url_known(void **state) {
	(void)state;
	/* RFC 4648 section 10, without padding. */
	static const char *const plain[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
	static const char *const coded[] = {"", "Zg", "Zm8", "Zm9v", "Zm9vYg", "Zm9vYmE", "Zm9vYmFy"};
	for (size_t i = 0; i < 7; i++) {
		char text[16];
		rv_base64url_encode((const uint8_t *)plain[i], i, text);
		assert_string_equal(text, coded[i]);
		assert_int_equal(strlen(text), (i * 4 + 2) / 3);
	}
	char text[5];
	rv_base64url_encode((const uint8_t[]){0xfb, 0xef, 0xff}, 3, text);
	assert_string_equal(text, "--__");
}

static void base64url_round_trips_at_every_length(void **state) {
	(void)state;
	uint8_t in[129] = {0}, out[129];
	char text[(129 * 4 + 2) / 3 + 1];
	for (size_t n = 0; n < sizeof in; n++) {
		for (size_t i = 0; i < n; i++)
			in[i] = (uint8_t)(i * 31 + n);
		rv_base64url_encode(in, n, text);
		assert_true(rv_base64url_decode(text, strlen(text), out, n));
		assert_memory_equal(in, out, n);
		assert_false(rv_base64url_decode(text, strlen(text), out, n + 1));
		if (n > 0) {
			assert_false(rv_base64url_decode(text, strlen(text) - 1, out, n));
			assert_false(rv_base64url_decode(text, strlen(text), out, n - 1));
		}
	}
}

static void base64url_is_canonical(void **state) {
	(void)state;
	uint8_t out[4];
	assert_true(rv_base64url_decode("Zg", 2, out, 1));
	assert_false(rv_base64url_decode("Zh", 2, out, 1)); /* unused bits set */
	assert_false(rv_base64url_decode("Zm9", 3, out, 2));
	assert_false(rv_base64url_decode("Zg==", 4, out, 1));
	assert_false(rv_base64url_decode("Z+", 2, out, 1));
	assert_false(rv_base64url_decode("Z/", 2, out, 1));
	assert_false(rv_base64url_decode("Z ", 2, out, 1));
	assert_false(rv_base64url_decode("Z\0", 2, out, 1));
	assert_false(rv_base64url_decode("", 0, out, SIZE_MAX));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hex_known_and_back),     cmocka_unit_test(hex_refuses),
		cmocka_unit_test(base64url_known),        cmocka_unit_test(base64url_round_trips_at_every_length),
		cmocka_unit_test(base64url_is_canonical),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
