/* test_tokenizer_nfc.c: NFC of known examples; of every character there is and of random mixtures,
 * against the hashes of what tokenizers 0.23 makes of the same (make_nfc_hashes.py), whatever
 * version of Unicode libunistring has. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include "base/hex.h"
#include "train/text/tokenizer/nfc.h"
#include "train/text/tokenizer/text_blocks.h"
#include "train/text/tokenizer/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <uninorm.h>

static void known_examples(void **state) {
	(void)state;
	static const struct {
		const char *text, *normal;
	} cases[] = {
		{"", ""},
		{"plain ASCII", "plain ASCII"},
		{"e\xcc\x81", "\xc3\xa9"},
		{"\xc3\xa9", "\xc3\xa9"},
		{"a\xcc\x81\xcc\xa3", "\xe1\xba\xa1\xcc\x81"}, /* the dot below goes first, and joins */
		{"\xcc\x81x", "\xcc\x81x"},                    /* nothing to join */
		{"\xe2\x84\xab", "\xc3\x85"},                  /* the angstrom sign is a letter */
		{"\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81"},
		{"\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc"},                             /* never composed */
		{"\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0", "\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0"}, /* compose since Unicode 13 */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct byte_list out = {0};
		assert_ok(nfc_append((const uint8_t *)cases[i].text, strlen(cases[i].text), &out, &et));
		assert_int_equal(out.n, strlen(cases[i].normal));
		if (out.n > 0)
			assert_memory_equal(out.bytes, cases[i].normal, out.n);
		byte_list_release(&out);
	}
}

/* What is hashed: the normal forms of many texts, one after the other. */
struct normals {
	struct rv_hasher hasher;
	struct byte_list out;
	uint8_t text[128];
	size_t n;
};

static void put(struct normals *w, uint32_t c) {
	w->n += utf8_encode(c, w->text + w->n);
}

static void end_text(struct normals *w) {
	w->out.n = 0;
	assert_ok(nfc_append(w->text, w->n, &w->out, &et));
	rv_hash_update(&w->hasher, w->out.bytes, w->out.n);
	w->n = 0;
}

static void assert_hash(struct normals *w, const char *wanted) {
	struct rv_hash h;
	char hex[2 * RV_HASH_BYTES + 1];
	h = rv_hash_final(&w->hasher);
	rv_hex_encode(h.b, RV_HASH_BYTES, hex);
	assert_string_equal(hex, wanted);
	byte_list_release(&w->out);
}

static void every_character(void **state) {
	(void)state;
	struct normals w = {0};
	rv_hash_init(&w.hasher);
	for (uint32_t c = 0; c < 0x110000; c++) {
		if (c >= 0xd800 && c < 0xe000)
			continue;
		const uint32_t text[] = {'x', c, 0x301, 0x323, c, '\n'};
		for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
			put(&w, text[i]);
		end_text(&w);
	}
	assert_hash(&w, "c28209124298fe9f79a678c3c095f59f5231111bc9acc32001ad724ba7d23f8b");
}

/* tokenizers 0.23 composes as many again: those of Unicode 9, whatever libunistring knows. */
static void every_composite(void **state) {
	(void)state;
	enum { COMPOSITES_OF_UNICODE_9 = 12112 };
	int n_composed = 0;
	for (uint32_t c = 0xc0; c < 0x110000; c++) {
		uint8_t text[4], parts[32];
		struct byte_list out = {0};
		size_t n = c < 0xd800 || c >= 0xe000 ? utf8_encode(c, text) : 0, n_parts = sizeof parts;
		if (n == 0)
			continue;
		assert_ptr_equal(u8_normalize(UNINORM_NFD, text, n, parts, &n_parts), parts);
		assert_ok(nfc_append(parts, n_parts, &out, &et));
		bool decomposes = n_parts != n || memcmp(parts, text, n) != 0;
		n_composed += decomposes && out.n == n && memcmp(out.bytes, text, n) == 0;
		byte_list_release(&out);
	}
	assert_int_equal(n_composed, COMPOSITES_OF_UNICODE_9);
}

static uint32_t next_random(uint64_t *state, uint32_t n) {
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % n);
}

static size_t put_random(struct normals *w, uint64_t *random, uint32_t most) {
	static const uint32_t pools[][2] = {{0x41, 26},    {0x61, 26},    {0x300, 112},  {0x1100, 256}, {0xac00, 11172},
										{0x915, 176},  {0xf71, 20},   {0x1d157, 20}, {0x1e00, 256}, {0xfb1d, 50},
										{0x1f00, 256}, {0x11930, 20}, {0x113b0, 32}, {0x105c0, 40}, {0x1ab0, 40},
										{0x3040, 96},  {0x400, 256}};
	for (uint32_t n = 1 + next_random(random, most); n > 0; n--) {
		const uint32_t *pool = pools[next_random(random, sizeof pools / sizeof pools[0])];
		put(w, pool[0] + next_random(random, pool[1]));
	}
	return w->n;
}

static void random_mixtures(void **state) {
	(void)state;
	struct normals w = {0};
	uint64_t random = 1;
	rv_hash_init(&w.hasher);
	for (int round = 0; round < 20000; round++) {
		put_random(&w, &random, 12);
		end_text(&w);
	}
	assert_hash(&w, "12e5eb9863a7023bd1643ffa7ecb8b5a1f365cf6350c0aca4a88433c10e3d3c6");
}

/* The forms of two blocks make the form of the text that was cut into them. */
static void text_is_cut_where_nothing_joins(void **state) {
	(void)state;
	struct normals w = {0};
	uint64_t random = 2;
	for (int round = 0; round < 20000; round++) {
		struct byte_list whole = {0}, parts = {0};
		w.n = 0;
		for (const char *c = "ab cd"; *c; c++)
			put(&w, (uint32_t)*c);
		while (put_random(&w, &random, 4) < sizeof w.text - 24)
			put(&w, next_random(&random, 2) ? ' ' : '\n');
		size_t cut = text_blocks_cut(w.text, w.n, 3 + next_random(&random, (uint32_t)w.n - 3));
		assert_in_range(cut, 2, w.n - 1);
		assert_ok(nfc_append(w.text, w.n, &whole, &et));
		assert_ok(nfc_append(w.text, cut, &parts, &et));
		assert_ok(nfc_append(w.text + cut, w.n - cut, &parts, &et));
		assert_int_equal(parts.n, whole.n);
		assert_memory_equal(parts.bytes, whole.bytes, whole.n);
		byte_list_release(&whole);
		byte_list_release(&parts);
	}
}

/* A mebibyte of marks on one letter, worst for sorting: it must not take the square of it. */
static void very_many_marks(void **state) {
	(void)state;
	enum { MARKS = 1 << 19 };
	struct byte_list out = {0};
	uint8_t *text = malloc(1 + 2 * MARKS);
	assert_non_null(text);
	text[0] = 'a';
	for (size_t i = 0; i < MARKS; i++)
		memcpy(text + 1 + 2 * i, i % 2 ? "\xcc\xa3" : "\xcc\x81", 2);
	assert_ok(nfc_append(text, 1 + 2 * MARKS, &out, &et));
	assert_int_equal(out.n, 3 + 2 * (MARKS - 1));
	assert_memory_equal(out.bytes, "\xe1\xba\xa1\xcc\xa3", 5);
	assert_memory_equal(out.bytes + out.n - 4, "\xcc\x81\xcc\x81", 4);
	free(text);
	byte_list_release(&out);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_examples),
		cmocka_unit_test(every_character),
		cmocka_unit_test(every_composite),
		cmocka_unit_test(random_mixtures),
		cmocka_unit_test(text_is_cut_where_nothing_joins),
		cmocka_unit_test(very_many_marks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
