/* hex.c: bytes as hex and as base64url. Decoders are strict: one text per value, so that texts can
 * be compared. */
#include "base/hex.h"

static const char base64url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void rv_hex_encode(const uint8_t *data, size_t n, char *out) {
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[data[i] >> 4];
		out[2 * i + 1] = digits[data[i] & 15];
	}
	out[2 * n] = '\0';
}

static int hex_value(char c) {
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool rv_hex_decode(const char *text, uint8_t *out, size_t n) {
	for (size_t i = 0; i < n; i++) {
		int high = hex_value(text[2 * i]);
		int low = high < 0 ? -1 : hex_value(text[2 * i + 1]);
		if (low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return text[2 * n] == '\0';
}

void rv_base64url_encode(const uint8_t *data, size_t n, char *out) {
	uint32_t bits = 0;
	int n_bits = 0;
	for (size_t i = 0; i < n; i++) {
		bits = bits << 8 | data[i];
		for (n_bits += 8; n_bits >= 6; n_bits -= 6)
			*out++ = base64url_digits[bits >> (n_bits - 6) & 63];
	}
	if (n_bits > 0)
		*out++ = base64url_digits[bits << (6 - n_bits) & 63];
	*out = '\0';
}

static int base64url_value(char c) {
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '-')
		return 62;
	return c == '_' ? 63 : -1;
}

bool rv_base64url_decode(const char *text, size_t text_len, uint8_t *out, size_t n) {
	if (n > SIZE_MAX / 4 - 1 || text_len != (n * 4 + 2) / 3)
		return false;
	uint32_t bits = 0;
	int n_bits = 0;
	for (size_t i = 0; i < text_len; i++) {
		int v = base64url_value(text[i]);
		if (v < 0)
			return false;
		bits = bits << 6 | (uint32_t)v;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			*out++ = (uint8_t)(bits >> n_bits);
		}
	}
	return (bits & ((1u << n_bits) - 1)) == 0;
}
