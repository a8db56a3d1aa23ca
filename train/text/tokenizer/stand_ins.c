/* stand_ins.c: see stand_ins.h. */
#include "train/text/tokenizer/stand_ins.h"

#include "base/assert.h"
#include "train/text/tokenizer/stand_in_tables.h"
#include "train/text/tokenizer/utf8.h"

#include <unistr.h>

enum { FIRST_LEAD = 0xcd }; /* first byte of U+0378, the first unsettled character */

/* Decodes the character at text[0, n), well-formed. Returns its length in bytes. */
static size_t decode(const uint8_t *text, size_t n, uint32_t *c) {
	return (size_t)u8_mbtouc_unsafe(c, text, n);
}

/* Returns the stand-in of `c`, or NULL if it is settled. */
static const struct stand_in *stand_in_of(uint32_t c) {
	size_t low = 0, high = STAND_INS;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (stand_ins[middle].last < c)
			low = middle + 1;
		else
			high = middle;
	}
	return low < STAND_INS && stand_ins[low].first <= c ? &stand_ins[low] : NULL;
}

bool stand_ins_has(uint32_t c) {
	uint32_t page = c >> 8;
	return (stand_in_pages[page / 32] >> page % 32 & 1) && stand_in_of(c);
}

size_t stand_ins_find(const uint8_t *text, size_t n) {
	for (size_t at = 0; at < n;) {
		uint32_t c;
		if (text[at] < FIRST_LEAD) { /* ASCII, or inside a settled character */
			at++;
			continue;
		}
		size_t length = decode(text + at, n - at, &c);
		if (stand_ins_has(c))
			return at;
		at += length;
	}
	return n;
}

void stand_ins_put(uint8_t *text, size_t n) {
	for (size_t at = stand_ins_find(text, n); at < n; at += stand_ins_find(text + at, n - at)) {
		uint32_t c;
		size_t length = decode(text + at, n - at, &c), written = utf8_encode(stand_in_of(c)->instead, text + at);
		RV_ASSERT(written == length);
	}
}
