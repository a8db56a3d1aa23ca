/* NFC: known examples, every character there is, and random mixtures; the last two against the hash of what Python's
 * unicodedata makes of the same. Of characters newer than Unicode 9 tokenizers 0.23, the judge, composes none. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include "base/hex.h"
#include "train/text/tokenizer/nfc.h"
#include "train/text/tokenizer/utf8.h"

#include <stdlib.h>
#include <string.h>

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
		{"\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc"}, /* never composed */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct nfc_scratch s = {0};
		struct byte_list out = {0};
		assert_ok(nfc_append(&s, (const uint8_t *)cases[i].text, strlen(cases[i].text), &out, &et));
		assert_int_equal(out.n, strlen(cases[i].normal));
		if (out.n > 0)
			assert_memory_equal(out.bytes, cases[i].normal, out.n);
		byte_list_release(&out);
		nfc_scratch_release(&s);
	}
}

/* What is hashed: the normal forms of many texts, one after the other. */
struct normals {
	struct rv_hasher hasher;
	struct nfc_scratch scratch;
	struct byte_list out;
	uint8_t text[128];
	size_t n;
};

static void put(struct normals *w, uint32_t c) {
	w->n += utf8_encode(c, w->text + w->n);
}

static void end_text(struct normals *w) {
	w->out.n = 0;
	assert_ok(nfc_append(&w->scratch, w->text, w->n, &w->out, &et));
	rv_hash_update(&w->hasher, w->out.bytes, w->out.n);
	w->n = 0;
}

static void assert_hash(struct normals *w, const char *wanted) {
	struct rv_hash h;
	char hex[2 * RV_HASH_BYTES + 1];
	rv_hash_final(&w->hasher, &h);
	rv_hex_encode(h.b, RV_HASH_BYTES, hex);
	assert_string_equal(hex, wanted);
	byte_list_release(&w->out);
	nfc_scratch_release(&w->scratch);
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

static uint32_t next_random(uint64_t *state, uint32_t n) {
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % n);
}

static void random_mixtures(void **state) {
	(void)state;
	static const uint32_t pools[][2] = {{0x41, 26},      {0x61, 26},   {0x300, 112}, {0x1100, 256},
										{0xac00, 11172}, {0x915, 176}, {0xf71, 20},  {0x1d157, 20},
										{0x1e00, 256},   {0xfb1d, 50}, {0x1f00, 256}};
	struct normals w = {0};
	uint64_t random = 1;
	rv_hash_init(&w.hasher);
	for (int round = 0; round < 20000; round++) {
		for (uint32_t n = 1 + next_random(&random, 12); n > 0; n--) {
			const uint32_t *pool = pools[next_random(&random, sizeof pools / sizeof pools[0])];
			put(&w, pool[0] + next_random(&random, pool[1]));
		}
		end_text(&w);
	}
	assert_hash(&w, "db159a73a5a6075ddc0bb432a1c118fc22256b3bd14ae8cc0b14b0ac987bfda8");
}

/* A mebibyte of marks on one letter, worst for sorting: it must not take the square of it. */
static void very_many_marks(void **state) {
	(void)state;
	enum { MARKS = 1 << 19 };
	struct nfc_scratch s = {0};
	struct byte_list out = {0};
	uint8_t *text = malloc(1 + 2 * MARKS);
	assert_non_null(text);
	text[0] = 'a';
	for (size_t i = 0; i < MARKS; i++)
		memcpy(text + 1 + 2 * i, i % 2 ? "\xcc\xa3" : "\xcc\x81", 2);
	assert_ok(nfc_append(&s, text, 1 + 2 * MARKS, &out, &et));
	assert_int_equal(out.n, 3 + 2 * (MARKS - 1));
	assert_memory_equal(out.bytes, "\xe1\xba\xa1\xcc\xa3", 5);
	assert_memory_equal(out.bytes + out.n - 4, "\xcc\x81\xcc\x81", 4);
	free(text);
	byte_list_release(&out);
	nfc_scratch_release(&s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_examples),
		cmocka_unit_test(every_character),
		cmocka_unit_test(random_mixtures),
		cmocka_unit_test(very_many_marks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
