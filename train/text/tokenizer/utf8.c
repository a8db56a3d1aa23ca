/* utf8.c: one decoder; eight ASCII bytes at a time where there are so many. */
#include "train/text/tokenizer/utf8.h"

#include "base/assert.h"

#include <string.h>

static size_t length_of_lead(uint8_t lead) {
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

size_t utf8_decode(const uint8_t *text, size_t n, uint32_t *code_point) {
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = n > 0 ? length_of_lead(text[0]) : 0;
	if (len == 0 || len > n)
		return 0;
	uint32_t c = len == 1 ? text[0] : text[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3fu);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*code_point = c;
	return len;
}

size_t utf8_encode(uint32_t c, uint8_t out[static 4]) {
	RV_ASSERT(c <= 0x10ffff);
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = len - 1; i > 0; i--, c >>= 6)
		out[i] = (uint8_t)(0x80 | (c & 0x3f));
	out[0] = (uint8_t)((0xf00u >> len & 0xff) | c);
	return len;
}

size_t utf8_valid_prefix(const uint8_t *text, size_t n) {
	size_t at = 0;
	while (at < n) {
		uint64_t eight;
		if (n - at >= sizeof eight && (memcpy(&eight, text + at, sizeof eight), (eight & 0x8080808080808080u) == 0)) {
			at += sizeof eight;
			continue;
		}
		uint32_t c;
		size_t len = utf8_decode(text + at, n - at, &c);
		if (len == 0)
			break;
		at += len;
	}
	return at;
}

size_t utf8_invalid_prefix(const uint8_t *text, size_t n) {
	size_t at = 0;
	uint32_t c;
	while (at < n && utf8_decode(text + at, n - at, &c) == 0)
		at++;
	return at;
}
