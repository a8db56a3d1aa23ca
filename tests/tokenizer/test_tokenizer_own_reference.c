/* Small vocabularies of every sort that is read: encodings equal those that make_reference.py has
 * worked out. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include "base/file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 41 };

struct reference {
	const char *file, *pattern;
};

static const struct reference references[] = {
	{"gpt2.json", "auto"},   {"llama3.json", "auto"},      {"qwen2.json", "auto"},
	{"digits.json", "auto"}, {"ranks.tiktoken", "llama3"},
};

static bool equals(const struct tokenizer *t, struct encoder *e, const json_t *line) {
	const json_t *text = json_object_get(line, "text"), *wanted = json_object_get(line, "ids");
	struct token_list ids = encode_text(e, json_string_value(text), json_string_length(text), SPECIALS_AS_TEXT);
	bool equal = ids.n == json_array_size(wanted);
	for (size_t i = 0; equal && i < ids.n; i++)
		equal = ids.ids[i] == json_integer_value(json_array_get(wanted, i));
	if (!equal)
		print_message("differs: \"%.60s\"\n", json_string_value(text));
	token_list_release(&ids);
	if (!tokenizer_normalizes(t))
		assert_round_trip(t, e, json_string_value(text), json_string_length(text));
	return equal;
}

/* Twice each: the second time the pieces come from the cache. */
static void compare(const struct reference *r, char *lines) {
	char path[512], *rest = NULL;
	struct tokenizer *t;
	struct encoder *e;
	int texts = 0, equal = 0;
	(void)snprintf(path, sizeof path, REFERENCE_DIR "/%s", r->file);
	assert_ok(tokenizer_open(path, r->pattern, &t, &et));
	assert_ok(encoder_new(t, &e, &et));
	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *parsed = json_loads(line, JSON_ALLOW_NUL, NULL);
		assert_non_null(parsed);
		if (strcmp(json_string_value(json_object_get(parsed, "tokenizer")), r->file) == 0) {
			texts++;
			equal += equals(t, e, parsed) && equals(t, e, parsed);
		}
		json_decref(parsed);
	}
	print_message("%s: %d of %d texts equal\n", r->file, equal, texts);
	assert_int_equal(texts, TEXTS);
	assert_int_equal(equal, texts);
	encoder_free(e);
	tokenizer_free(t);
}

static void encodings_equal(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
		uint8_t *lines;
		size_t n;
		assert_ok(rv_file_read(REFERENCE_DIR "/encodings.jsonl", 1 << 20, &lines, &n, &et));
		compare(&references[i], (char *)lines);
		free(lines);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encodings_equal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
