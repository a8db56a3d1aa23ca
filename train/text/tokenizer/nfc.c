/* nfc.c: copies what NFC cannot change and gives libunistring the rest: stretches of characters
 * that could change or join the previous one, which is included. Nothing joins across the end of a
 * stretch. */
#include "train/text/tokenizer/nfc.h"

#include "base/assert.h"
#include "train/text/tokenizer/stand_ins.h"
#include "train/text/tokenizer/utf8.h"

#include <stdbool.h>
#include <uninorm.h>

enum { MOST_GROWTH = 3 }; /* bytes of NFC per byte of text (UAX #15, table of expansion factors) */

struct range {
	uint32_t first, last;
};

/* Common characters that neither change nor join the previous one, as none below U+0300 does. */
static const struct range plain[] = {
	{0x388, 0x482},   {0x48a, 0x590},   {0x61c, 0x64a},   {0x671, 0x6d5},   {0x904, 0x93b},
	{0x93d, 0x94c},   {0xe01, 0xe37},   {0xe3b, 0xe47},   {0x1e00, 0x1eff}, {0x2002, 0x20cf},
	{0x3004, 0x3029}, {0x3030, 0x3098}, {0x309b, 0xa66e}, {0xac00, 0xf8ff}, {0x1f000, 0x1faff},
};

/* Characters of Unicode 10 to 14 that compose, decompose or combine; stand_ins.h has newer ones. */
static const struct range later[] = {
	{0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},
	{0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},   {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},
	{0xa82c, 0xa82c},   {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85},
	{0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11930},
	{0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47},
	{0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x16ff0, 0x16ff1},
	{0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef},
};

static bool is_in(const struct range *ranges, size_t n, uint32_t c) {
	size_t i = 0;
	while (i < n && ranges[i].last < c)
		i++;
	return i < n && ranges[i].first <= c;
}

static bool is_plain(uint32_t c) {
	return c < 0x300 || is_in(plain, sizeof plain / sizeof plain[0], c);
}

static bool is_later(uint32_t c) {
	return is_in(later, sizeof later / sizeof later[0], c) || stand_ins_has(c);
}

/* Appends the NFC of characters that Unicode 9 has. */
static enum rv_err append_known(const uint8_t *text, size_t n, struct byte_list *out, struct rv_errtext *et) {
	if (n == 0)
		return RV_OK;
	RV_TRY(byte_list_reserve(out, MOST_GROWTH * n, et));
	size_t room = out->cap - out->n;
	const uint8_t *normal = u8_normalize(UNINORM_NFC, text, n, out->bytes + out->n, &room);
	if (!normal)
		return rv_fail(et, RV_E_NOMEM, "no memory to normalize %zu bytes", n);
	RV_ASSERT(normal == out->bytes + out->n && room <= MOST_GROWTH * n);
	out->n += room;
	return RV_OK;
}

static enum rv_err append_part(const uint8_t *text, size_t n, struct byte_list *out, struct rv_errtext *et) {
	size_t begin = 0, len;
	for (size_t at = 0; at < n; at += len) {
		uint32_t c;
		len = utf8_decode(text + at, n - at, &c);
		RV_ASSERT(len > 0);
		if (!is_later(c))
			continue;
		RV_TRY(append_known(text + begin, at - begin, out, et));
		RV_TRY(byte_list_append(out, text + at, len, et));
		begin = at + len;
	}
	return append_known(text + begin, n - begin, out, et);
}

enum rv_err nfc_append(const uint8_t *text, size_t n, struct byte_list *out, struct rv_errtext *et) {
	size_t copied = 0, before = 0, end, len; /* `before` is the position of the character before `at` */
	for (size_t at = 0; at < n;) {
		uint32_t c = text[at];
		len = c < 0x80 ? 1 : utf8_decode(text + at, n - at, &c);
		RV_ASSERT(len > 0);
		if (is_plain(c)) {
			before = at;
			at += len;
			continue;
		}
		for (end = at; end < n && (len = utf8_decode(text + end, n - end, &c)) > 0 && !is_plain(c);)
			end += len;
		RV_TRY(byte_list_append(out, text + copied, before - copied, et));
		RV_TRY(append_part(text + before, end - before, out, et));
		copied = at = end;
	}
	return byte_list_append(out, text + copied, n - copied, et);
}
