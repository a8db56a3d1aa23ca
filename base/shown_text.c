/* shown_text.c: see shown_text.h. */
#include "base/shown_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the length of the well-formed sequence at `p` (NUL-terminated text); 0: there is none. */
static size_t utf8_sequence(const uint8_t *p) {
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
	bool surrogate = p[0] == 0xed && p[1] > 0x9f;
	bool too_large = p[0] == 0xf4 && p[1] > 0x8f;
	return overlong || surrogate || too_large ? 0 : n;
}

const char *rv_utf8_invalid(const char *text) {
	const uint8_t *p = (const uint8_t *)text;
	while (*p != 0) {
		size_t n = utf8_sequence(p);
		if (n == 0)
			return "not well-formed UTF-8";
		p += n;
	}
	return NULL;
}

static uint32_t code_point(const uint8_t *p, size_t n) {
	static const uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t c = p[0] & first_bits[n];
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static bool is_control(uint32_t c) {
	bool c1 = c >= 0x80 && c <= 0x9f, direction = c == 0x61c || c == 0x200e || c == 0x200f;
	return c1 || direction || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

const char *rv_shown_invalid(const char *text) {
	const char *why = rv_utf8_invalid(text);
	if (why != NULL)
		return why;
	for (const uint8_t *p = (const uint8_t *)text; *p != 0; p += utf8_sequence(p))
		if (is_control(code_point(p, utf8_sequence(p))))
			return "a control character, or one that changes the direction of writing";
	return NULL;
}
