/* nfc.c: text is cut before every character that can neither change nor join what is before it; most such parts are
 * that one character and are copied as they are. The others are decomposed, their marks sorted by class, and composed
 * (UAX #15, sections 1.3 and 9; Hangul: The Unicode Standard, section 3.12). */
#include "train/text/tokenizer/nfc.h"

#include "train/text/tokenizer/nfc_tables.h"
#include "train/text/tokenizer/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
	FIRST_JOINING = 0x300, /* below, nothing changes or joins */
	HANGUL = 0xac00,
	LEADS = 0x1100,
	VOWELS = 0x1161,
	TRAILS = 0x11a7, /* the first is none */
	N_LEADS = 19,
	N_VOWELS = 21,
	N_TRAILS = 28,
	N_HANGUL = N_LEADS * N_VOWELS * N_TRAILS,
	MOST_PARTS = 4, /* that one character decomposes into */
	CLASSES = 256,
};

void nfc_scratch_release(struct nfc_scratch *s) {
	free(s->chars);
	free(s->sorted);
	*s = (struct nfc_scratch){0};
}

static const struct nfc_range *find_range(const struct nfc_range *all, size_t n, uint32_t c) {
	size_t lo = 0, hi = n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (all[mid].last < c)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && all[lo].first <= c ? &all[lo] : NULL;
}

static uint32_t class_of(uint32_t c) {
	const struct nfc_range *r = c < FIRST_JOINING ? NULL : find_range(nfc_classes, NFC_CLASSES, c);
	return r ? r->value : 0;
}

static bool may_join(uint32_t c) {
	return c >= FIRST_JOINING && find_range(nfc_joining, NFC_JOINING, c);
}

static const struct nfc_parts *parts_of(uint32_t c) {
	size_t lo = 0, hi = NFC_PARTS;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (nfc_parts[mid].whole < c)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < NFC_PARTS && nfc_parts[lo].whole == c ? &nfc_parts[lo] : NULL;
}

/* The decomposition's later parts do not decompose further. */
static size_t decompose(uint32_t c, uint32_t out[static MOST_PARTS]) {
	if (c >= HANGUL && c < HANGUL + N_HANGUL) {
		uint32_t i = c - HANGUL, trail = i % N_TRAILS;
		out[0] = LEADS + i / (N_VOWELS * N_TRAILS);
		out[1] = VOWELS + i / N_TRAILS % N_VOWELS;
		out[2] = TRAILS + trail;
		return trail > 0 ? 3 : 2;
	}
	uint32_t later[MOST_PARTS];
	size_t n_later = 0, n = 0;
	for (const struct nfc_parts *p; n_later < MOST_PARTS - 1 && (p = parts_of(c)); c = p->part[0])
		if (p->part[1])
			later[n_later++] = p->part[1];
	out[n++] = c;
	while (n_later > 0)
		out[n++] = later[--n_later];
	return n;
}

static uint32_t compose(uint32_t first, uint32_t second) {
	if (first >= LEADS && first < LEADS + N_LEADS && second >= VOWELS && second < VOWELS + N_VOWELS)
		return HANGUL + ((first - LEADS) * N_VOWELS + (second - VOWELS)) * N_TRAILS;
	bool open_syllable = first >= HANGUL && first < HANGUL + N_HANGUL && (first - HANGUL) % N_TRAILS == 0;
	if (open_syllable && second > TRAILS && second < TRAILS + N_TRAILS)
		return first + second - TRAILS;
	size_t lo = 0, hi = NFC_PAIRS;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const uint32_t *part = nfc_parts[nfc_pairs[mid]].part;
		if (part[0] < first || (part[0] == first && part[1] < second))
			lo = mid + 1;
		else
			hi = mid;
	}
	const struct nfc_parts *p = lo < NFC_PAIRS ? &nfc_parts[nfc_pairs[lo]] : NULL;
	return p && p->part[0] == first && p->part[1] == second ? p->whole : 0;
}

static enum rv_err reserve(struct nfc_scratch *s, struct rv_errtext *et) {
	if (s->cap - s->n >= MOST_PARTS)
		return RV_OK;
	size_t cap = s->cap * 2 + 64;
	uint32_t *chars = realloc(s->chars, cap * sizeof *chars);
	if (chars)
		s->chars = chars;
	uint32_t *sorted = realloc(s->sorted, cap * sizeof *sorted);
	if (sorted)
		s->sorted = sorted;
	if (!chars || !sorted)
		return rv_fail(et, RV_E_NOMEM, "no memory to normalize %zu marks", cap);
	s->cap = cap;
	return RV_OK;
}

/* A stable sort by class of the marks [begin, end): by counting, so that any number of them is linear. */
static void sort_marks(struct nfc_scratch *s, size_t begin, size_t end) {
	size_t at[CLASSES + 1] = {0};
	if (end - begin < 2)
		return;
	for (size_t i = begin; i < end; i++)
		at[class_of(s->chars[i]) + 1]++;
	for (size_t k = 1; k < CLASSES; k++)
		at[k] += at[k - 1];
	for (size_t i = begin; i < end; i++)
		s->sorted[begin + at[class_of(s->chars[i])]++] = s->chars[i];
	memcpy(s->chars + begin, s->sorted + begin, (end - begin) * sizeof *s->chars);
}

static void sort_all_marks(struct nfc_scratch *s) {
	size_t begin = 0;
	for (size_t i = 0; i < s->n; i++)
		if (class_of(s->chars[i]) == 0) {
			sort_marks(s, begin, i);
			begin = i + 1;
		}
	sort_marks(s, begin, s->n);
}

/* In place. A mark joins the last character of class 0 unless one of the same or a higher class stands between. */
static void compose_all(struct nfc_scratch *s) {
	size_t base = SIZE_MAX, n = 0;
	uint32_t last_class = 0;
	for (size_t i = 0; i < s->n; i++) {
		uint32_t c = s->chars[i], k = class_of(c);
		bool adjacent = base != SIZE_MAX && n == base + 1;
		uint32_t whole = base != SIZE_MAX && (adjacent || last_class < k) ? compose(s->chars[base], c) : 0;
		if (whole) {
			s->chars[base] = whole;
			continue;
		}
		if (k == 0)
			base = n;
		last_class = k;
		s->chars[n++] = c;
	}
	s->n = n;
}

static enum rv_err append_chars(const struct nfc_scratch *s, struct byte_list *out, struct rv_errtext *et) {
	for (size_t i = 0; i < s->n; i++) {
		uint8_t bytes[4];
		RV_TRY(byte_list_append(out, bytes, utf8_encode(s->chars[i], bytes), et));
	}
	return RV_OK;
}

/* One part: a character and all that may join it. */
static enum rv_err append_part(struct nfc_scratch *s, const uint8_t *text, size_t n, struct byte_list *out,
							   struct rv_errtext *et) {
	s->n = 0;
	while (n > 0) {
		uint32_t c;
		size_t len = utf8_decode(text, n, &c);
		RV_TRY(reserve(s, et));
		s->n += decompose(c, s->chars + s->n);
		text += len;
		n -= len;
	}
	sort_all_marks(s);
	compose_all(s);
	return append_chars(s, out, et);
}

enum rv_err nfc_append(struct nfc_scratch *s, const uint8_t *text, size_t n, struct byte_list *out,
					   struct rv_errtext *et) {
	size_t copied = 0, begin = 0; /* of what is not out yet; of the part that `at` is in */
	for (size_t at = 0; at < n;) {
		uint32_t c;
		if (text[at] < 0x80) {
			begin = at++;
			continue;
		}
		size_t len = utf8_decode(text + at, n - at, &c);
		if (!may_join(c)) {
			begin = at;
			at += len;
			continue;
		}
		size_t end = at;
		while (end < n && (len = utf8_decode(text + end, n - end, &c)) > 0 && may_join(c))
			end += len;
		RV_TRY(byte_list_append(out, text + copied, begin - copied, et));
		RV_TRY(append_part(s, text + begin, end - begin, out, et));
		copied = begin = at = end;
	}
	return byte_list_append(out, text + copied, n - copied, et);
}
