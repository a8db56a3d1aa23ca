/* clean_text.c: see clean_text.h. */
#include "base/clean_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Length of the character at `c` when it is well-formed (RFC 3629, section 4), else 0. */
static size_t character_bytes(const unsigned char *c) {
	size_t n = c[0] < 0x80 ? 1 : c[0] >= 0xc2 && c[0] < 0xe0 ? 2 : (c[0] & 0xf0) == 0xe0 ? 3 : 4;
	if (n == 1)
		return 1;
	if (c[0] < 0xc2 || c[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) /* a NUL is no continuation: nothing behind the end is read */
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	bool overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
	bool surrogate = c[0] == 0xed && c[1] > 0x9f, beyond = c[0] == 0xf4 && c[1] > 0x8f;
	return overlong || surrogate || beyond ? 0 : n;
}

/* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069, and the second half of the control
 * characters. */
static bool disturbs(const unsigned char *c, size_t n) {
	if (n == 1)
		return c[0] < 0x20 || c[0] == 0x7f;
	if (n == 2)
		return c[0] == 0xc2 && c[1] < 0xa0;
	if (n != 3 || c[0] != 0xe2)
		return false;
	return (c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae))) ||
		   (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9);
}

void clean_text(char *text) {
	unsigned char *c = (unsigned char *)text;
	while (*c) {
		size_t n = character_bytes(c), bad = n == 0 ? 1 : disturbs(c, n) ? n : 0;
		memset(c, '?', bad);
		c += n > 0 ? n : 1;
	}
}
