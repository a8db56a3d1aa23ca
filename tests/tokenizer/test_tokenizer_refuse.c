/* Files that are wrong: each is refused with a text that names the thing. A file that is right is
 * changed in one place. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include <jansson.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 300 };

static void assert_refused(const char *text, size_t n, const char *pattern, enum rv_err wanted, const char *names) {
	struct tokenizer *t;
	struct rv_errtext why = {0};
	enum rv_err e = tokenizer_load("the-file", (const uint8_t *)text, n, pattern, &t, &why);
	if (e != wanted || !strstr(why.text, names) || !strstr(why.text, "the-file"))
		fail_msg("got %d \"%s\", wanted %d naming \"%s\"", e, why.text, wanted, names);
	assert_null(t);
}

struct change {
	const char *at;    /* path with dots; the last part is set */
	const char *value; /* JSON; NULL: removed */
	enum rv_err wanted;
	const char *names;
};

static const struct change changes[] = {
	{"model", NULL, RV_E_UNSUPPORTED, "type is missing"},
	{"model.type", "\"Unigram\"", RV_E_UNSUPPORTED, "Unigram"},
	{"model.vocab", "[]", RV_E_INVALID, "no vocab"},
	{"model.merges", "{}", RV_E_INVALID, "no merges"},
	{"model.dropout", "0.1", RV_E_UNSUPPORTED, "dropout"},
	{"model.byte_fallback", "true", RV_E_UNSUPPORTED, "byte_fallback"},
	{"model.end_of_word_suffix", "\"</w>\"", RV_E_UNSUPPORTED, "end_of_word_suffix"},
	{"normalizer", "{\"type\": \"NFKC\"}", RV_E_UNSUPPORTED, "normalizer NFKC: only NFC"},
	{"normalizer", "{}", RV_E_UNSUPPORTED, "normalizer without a type"},
	{"model.vocab.new", "17", RV_E_INVALID, "id 17 is given twice"},
	{"model.vocab.new", "5000", RV_E_RANGE, "\"new\" has id 5000"},
	{"model.vocab.new", "-1", RV_E_RANGE, "\"new\""},
	{"model.vocab.new", "1.5", RV_E_RANGE, "\"new\""},
	{"model.vocab.a b", "300", RV_E_INVALID, "\"a b\" is not byte-level text"},
	{"model.vocab.A", NULL, RV_E_RANGE, "id 299"},
	{"model.merges", "[\"A Qq\"]", RV_E_INVALID, "merge 0 names \"Qq\""},
	{"model.merges", "[\"A Q\"]", RV_E_INVALID, "merge 0 makes \"AQ\""},
	{"model.merges", "[\"AQ\"]", RV_E_INVALID, "merge 0: must be"},
	{"model.merges", "[\"h e\", [\"h\", \"e\"]]", RV_E_INVALID, "merge 1 (into \"he\") occurs twice"},
	{"model.merges", "[[\"h\"]]", RV_E_INVALID, "merge 0: must be"},
	{"model.merges", "[7]", RV_E_INVALID, "merge 0: must be"},
	{"added_tokens", "7", RV_E_INVALID, "added_tokens"},
	{"added_tokens", "[7]", RV_E_INVALID, "added token 0"},
	{"added_tokens", "[{\"id\": 3, \"content\": \"<|endoftext|>\"}]", RV_E_INVALID, "id 3 there and 299"},
	{"added_tokens", "[{\"id\": 300, \"content\": \"\"}]", RV_E_RANGE, "special token 300 has 0 bytes"},
	{"added_tokens", "[{\"id\": 300, \"content\": \"<m>\", \"lstrip\": true}]", RV_E_UNSUPPORTED, "<m> has lstrip"},
	{"added_tokens", "[{\"id\": 300, \"content\": \"x!\"}, {\"id\": 301, \"content\": \"x!\"}]", RV_E_INVALID,
	 "\"x!\" occurs twice"},
	{"pre_tokenizer", "null", RV_E_UNSUPPORTED, "without a type"},
	{"pre_tokenizer", "{\"type\": \"Metaspace\"}", RV_E_UNSUPPORTED, "Metaspace"},
	{"pre_tokenizer", "{\"type\": \"ByteLevel\"}", RV_E_UNSUPPORTED, "add_prefix_space"},
	{"pre_tokenizer", "{\"type\": \"Digits\"}", RV_E_UNSUPPORTED, "no ByteLevel"},
	{"pre_tokenizer", "{\"type\": \"Split\"}", RV_E_INVALID, "without a pattern"},
	{"pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}, \"behavior\": \"Isolated\"}",
	 RV_E_INVALID, "the pattern \"(\""},
	{"pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"x\"}, \"behavior\": \"MergedWithNext\"}",
	 RV_E_UNSUPPORTED, "MergedWithNext"},
};

static void apply(json_t *root, const struct change *c) {
	char path[64], *last = path;
	json_t *object = root;
	snprintf(path, sizeof path, "%s", c->at);
	for (char *dot; (dot = strchr(last, '.')); last = dot + 1) {
		*dot = '\0';
		object = json_object_get(object, last);
		assert_non_null(object);
	}
	if (!c->value)
		assert_int_equal(json_object_del(object, last), 0);
	else
		assert_int_equal(json_object_set_new(object, last, json_loads(c->value, JSON_DECODE_ANY, NULL)), 0);
}

static void one_change_is_named(void **state) {
	(void)state;
	char *good = fixture_json(VOCAB);
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		json_t *root = json_loads(good, 0, NULL);
		assert_non_null(root);
		apply(root, &changes[i]);
		char *text = json_dumps(root, 0);
		assert_refused(text, strlen(text), "auto", changes[i].wanted, changes[i].names);
		free(text);
		json_decref(root);
	}
	free(good);
}

/* What others write too: merges as pairs, Llama 3's sequence of pre-tokenizers, ignore_merges. */
static void other_ways_to_say_it_are_taken(void **state) {
	(void)state;
	static const struct change good_changes[] = {
		{"model.merges", "[[\"h\", \"e\"]]", RV_OK, ""},
		{"model.ignore_merges", "true", RV_OK, ""},
		{"model.type", NULL, RV_OK, ""},
		{"added_tokens", "null", RV_OK, ""},
		{"pre_tokenizer",
		 "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\p{L}+\"}, "
		 "\"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"Digits\", \"individual_digits\": true}, "
		 "{\"type\": "
		 "\"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]}",
		 RV_OK, ""},
	};
	char *good = fixture_json(VOCAB);
	for (size_t i = 0; i < sizeof good_changes / sizeof good_changes[0]; i++) {
		struct tokenizer *t;
		struct encoder *e;
		json_t *root = json_loads(good, 0, NULL);
		apply(root, &good_changes[i]);
		char *text = json_dumps(root, 0);
		assert_ok(tokenizer_load("f", (const uint8_t *)text, strlen(text), "auto", &t, &et));
		assert_ok(encoder_new(t, &e, &et));
		assert_round_trip(t, e, fixture_text, strlen(fixture_text));
		encoder_free(e);
		tokenizer_free(t);
		free(text);
		json_decref(root);
	}
	free(good);
}

static void json_that_is_none_or_too_much_is_refused(void **state) {
	(void)state;
	enum { BRACKETS = 4 << 20 };
	static const char twice[] = "{\"model\": {\"vocab\": {\"abc\": 0, \"abc\": 1}}}";
	assert_refused("{\"a\": ", 6, "auto", RV_E_INVALID, "JSON, line 1");
	assert_refused(twice, strlen(twice), "auto", RV_E_INVALID, "abc");
	assert_refused("hello", 5, "auto", RV_E_INVALID, "neither");
	assert_refused("", 0, "auto", RV_E_INVALID, "neither");
	char *brackets = malloc(BRACKETS);
	assert_non_null(brackets);
	memset(brackets, '[', BRACKETS);
	brackets[0] = '{';
	assert_refused(brackets, BRACKETS, "auto", RV_E_RANGE, "arrays and objects");
	memset(brackets + 1, ' ', BRACKETS - 1);
	assert_refused(brackets, (size_t)TOKENIZER_MAX_FILE_BYTES + 1, "auto", RV_E_RANGE, "the limit is 67108864");
	free(brackets);
}

/* The 256 bytes as tiktoken ranks, then `more`. */
static char *ranks(const char *more) {
	size_t cap = 8192 + strlen(more), n = 0;
	char *text = malloc(cap);
	assert_non_null(text);
	for (int b = 0; b < 256; b++) {
		char base64[8];
		sodium_bin2base64(base64, sizeof base64, &(uint8_t){(uint8_t)b}, 1, sodium_base64_VARIANT_ORIGINAL);
		n += (size_t)snprintf(text + n, cap - n, "%s %d\n", base64, b);
	}
	snprintf(text + n, cap - n, "%s", more);
	return text;
}

static void ranks_are_read(void **state) {
	(void)state;
	struct tokenizer *t;
	struct encoder *e;
	char *text = ranks("YWI= 256\r\nYWJj 257\n"); /* ab, abc */
	assert_ok(tokenizer_load("ranks", (const uint8_t *)text, strlen(text), "gpt2", &t, &et));
	assert_string_equal(tokenizer_kind(t), "tiktoken");
	assert_int_equal(tokenizer_vocab(t), 259);
	assert_ok(encoder_new(t, &e, &et));
	struct token_list ids = encode_text(e, "abcab<|endoftext|>", 18, SPECIALS_RECOGNISED);
	assert_int_equal(ids.n, 3);
	assert_int_equal(ids.ids[0], 257);
	assert_int_equal(ids.ids[1], 256);
	assert_int_equal(ids.ids[2], 258);
	token_list_release(&ids);
	encoder_free(e);
	tokenizer_free(t);
	free(text);
}

static void wrong_ranks_are_named(void **state) {
	(void)state;
	static const struct {
		const char *more, *pattern;
		enum rv_err wanted;
		const char *names;
	} cases[] = {
		{"YWI= 256\n", "auto", RV_E_INVALID, "give the pattern"},
		{"YWI= 256\n", "(", RV_E_INVALID, "the pattern \"(\""},
		{"YWI= 255\n", "gpt2", RV_E_INVALID, "line 257: id 255 is given twice"},
		{"YQ== 256\n", "gpt2", RV_E_INVALID, "line 257: token \"a\" occurs twice"},
		{"YWI= 300\n", "gpt2", RV_E_RANGE, "line 257"},
		{"YWI= 257\n", "cl100k_base", RV_E_INVALID, "no token has id 256"},
		{"YWI 256\n", "gpt2", RV_E_INVALID, "line 257: not base64"},
		{"YWI=\n", "gpt2", RV_E_INVALID, "line 257: must be"},
		{"YWI= x\n", "gpt2", RV_E_INVALID, "line 257: the rank is not a number"},
		{"YWI= 99999999999\n", "gpt2", RV_E_INVALID, "line 257: must be"},
		{"\n", "gpt2", RV_E_INVALID, "line 257"},
		{" 256\n", "gpt2", RV_E_INVALID, "token 256 is empty"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *text = ranks(cases[i].more);
		assert_refused(text, strlen(text), cases[i].pattern, cases[i].wanted, cases[i].names);
		free(text);
	}
	assert_refused("YQ== 0\n", 7, "gpt2", RV_E_INVALID, "the byte 0x00");
}

static void files_are_named(void **state) {
	(void)state;
	struct tokenizer *t;
	struct rv_errtext why = {0};
	assert_int_equal(tokenizer_open("/nonexistent/tokenizer.json", "auto", &t, &why), RV_E_NOTFOUND);
	assert_non_null(strstr(why.text, "/nonexistent/tokenizer.json"));
	assert_null(t);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_change_is_named),
		cmocka_unit_test(other_ways_to_say_it_are_taken),
		cmocka_unit_test(json_that_is_none_or_too_much_is_refused),
		cmocka_unit_test(ranks_are_read),
		cmocka_unit_test(wrong_ranks_are_named),
		cmocka_unit_test(files_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
