/* byte_level.c: the map in closed form: three ranges of bytes have no printable character. */
#include "train/text/tokenizer/byte_level.h"

#include "train/text/tokenizer/utf8.h"

enum {
	LOW_END = 0x21, /* 0x00-0x20: U+0100-U+0120 */
	MID = 0x7f,     /* 0x7f-0xa0: U+0121-U+0142 */
	MID_END = 0xa1, /* end of that range */
	SOFT = 0xad,    /* the soft hyphen: U+0143 */
	FIRST = 0x100,  /* the first character that stands for another byte */
	FIRST_MID = FIRST + LOW_END,
	FIRST_SOFT = FIRST_MID + MID_END - MID,
};

uint32_t byte_level_char(uint8_t byte) {
	if (byte < LOW_END)
		return FIRST + byte;
	if (byte >= MID && byte < MID_END)
		return FIRST_MID + (byte - MID);
	return byte == SOFT ? FIRST_SOFT : byte;
}

int byte_level_byte(uint32_t c) {
	if (c >= FIRST)
		return c < FIRST_MID ? (int)c - FIRST : c < FIRST_SOFT ? (int)c - FIRST_MID + MID : c == FIRST_SOFT ? SOFT : -1;
	return byte_level_char((uint8_t)c) == c ? (int)c : -1;
}

int64_t byte_level_decode(const char *text, size_t n, uint8_t *out) {
	int64_t len = 0;
	for (size_t at = 0; at < n;) {
		uint32_t c = 0;
		size_t bytes = utf8_decode((const uint8_t *)text + at, n - at, &c);
		int byte = bytes > 0 ? byte_level_byte(c) : -1;
		if (byte < 0)
			return -1;
		out[len++] = (uint8_t)byte;
		at += bytes;
	}
	return len;
}

size_t byte_level_encode(const uint8_t *bytes, size_t n, char *out) {
	size_t len = 0;
	for (size_t i = 0; i < n; i++) {
		uint8_t c[4];
		size_t k = utf8_encode(byte_level_char(bytes[i]), c);
		for (size_t j = 0; j < k; j++)
			out[len++] = (char)c[j];
	}
	return len;
}
