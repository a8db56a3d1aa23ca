/* hex.c: bytes as hex and as base64url, by libsodium, whose decoders are strict. Here they also
 * refuse any other length: one text per value, so that texts can be compared. */
#include "base/hex.h"

#include <sodium/utils.h>
#include <string.h>

void rv_hex_encode(const uint8_t *data, size_t n, char *out) {
	(void)sodium_bin2hex(out, 2 * n + 1, data, n);
}

bool rv_hex_decode(const char *text, uint8_t *out, size_t n) {
	size_t got;
	return strnlen(text, 2 * n + 1) == 2 * n && sodium_hex2bin(out, n, text, 2 * n, NULL, &got, NULL) == 0 && got == n;
}

void rv_base64url_encode(const uint8_t *data, size_t n, char *out) {
	const int variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
	(void)sodium_bin2base64(out, sodium_base64_encoded_len(n, variant), data, n, variant);
}

bool rv_base64url_decode(const char *text, size_t text_len, uint8_t *out, size_t n) {
	const int variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
	size_t got;
	return n <= SIZE_MAX / 4 - 1 && text_len == (n * 4 + 2) / 3 &&
		   sodium_base642bin(out, n, text, text_len, NULL, &got, NULL, variant) == 0 && got == n;
}
