/* utf8.c: by libunistring. */
#include "train/text/tokenizer/utf8.h"

#include "base/assert.h"

#include <unistr.h>

size_t utf8_decode(const uint8_t *text, size_t n, uint32_t *code_point) {
	ucs4_t c;
	const int len = n > 0 ? u8_mbtoucr(&c, text, n) : 0;
	if (len <= 0)
		return 0;
	*code_point = c;
	return (size_t)len;
}

size_t utf8_encode(uint32_t c, uint8_t out[static 4]) {
	const int len = u8_uctomb(out, c, 4);
	RV_ASSERT(len > 0);
	return (size_t)len;
}

size_t utf8_valid_prefix(const uint8_t *text, size_t n) {
	const uint8_t *end = u8_check(text, n);
	return end ? (size_t)(end - text) : n;
}

size_t utf8_invalid_prefix(const uint8_t *text, size_t n) {
	size_t at = 0;
	uint32_t c;
	while (at < n && utf8_decode(text + at, n - at, &c) == 0)
		at++;
	return at;
}
