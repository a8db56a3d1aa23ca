/* Real vocabularies: encodings equal those of the reference implementation, text by text. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include "base/file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct reference {
	const char *vocabulary, *encodings;
	size_t n_texts;
	uint32_t vocab, end_of_text;
};

static const struct reference gpt2 = {"gpt2.tokenizer.json", "reference.gpt2.jsonl", 94, 50257, 50256};
static const struct reference cl100k = {"cl100k_base.tiktoken", "reference.cl100k_base.jsonl", 94, 100277, 100257};

/* The place where the ids differ, or -1. */
static int64_t first_difference(const struct token_list *ids, const json_t *wanted) {
	size_t n = json_array_size(wanted);
	for (size_t i = 0; i < n && i < ids->n; i++)
		if (ids->ids[i] != json_integer_value(json_array_get(wanted, i)))
			return (int64_t)i;
	return n == ids->n ? -1 : (int64_t)(n < ids->n ? n : ids->n);
}

static bool equals_reference(const struct tokenizer *t, struct encoder *e, const json_t *line, size_t number) {
	const json_t *text = json_object_get(line, "text"), *wanted = json_object_get(line, "ids");
	assert_true(json_is_string(text) && json_is_array(wanted));
	assert_round_trip(t, e, json_string_value(text), json_string_length(text));
	struct token_list ids = encode_text(e, json_string_value(text), json_string_length(text), SPECIALS_AS_TEXT);
	int64_t at = first_difference(&ids, wanted);
	if (at >= 0)
		print_message("text %zu differs at token %lld: \"%.60s\"\n", number, (long long)at, json_string_value(text));
	token_list_release(&ids);
	return at < 0;
}

/* Twice: the second time the pieces come from the cache. */
static void compare_all(const struct tokenizer *t, const struct reference *r, const char *path) {
	struct encoder *e;
	size_t n, texts = 0, equal = 0;
	uint8_t *file;
	assert_ok(encoder_new(t, &e, &et));
	assert_ok(rv_file_read(path, 16 << 20, &file, &n, &et));
	char *rest = NULL;
	for (char *line = strtok_r((char *)file, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *parsed = json_loads(line, JSON_ALLOW_NUL, NULL);
		assert_non_null(parsed);
		texts++;
		bool cold = equals_reference(t, e, parsed, texts);
		bool warm = equals_reference(t, e, parsed, texts);
		equal += cold && warm;
		json_decref(parsed);
	}
	print_message("%s: %zu of %zu texts equal\n", r->encodings, equal, texts);
	assert_int_equal(texts, r->n_texts);
	assert_int_equal(equal, texts);
	free(file);
	encoder_free(e);
}

static void encodings_equal(const struct reference *r) {
	char vocabulary[512], encodings[512];
	struct tokenizer *t;
	if (!reference_file(r->vocabulary, vocabulary) || !reference_file(r->encodings, encodings))
		skip();
	assert_ok(tokenizer_open(vocabulary, "auto", &t, &et));
	assert_int_equal(tokenizer_vocab(t), r->vocab);
	assert_int_equal(tokenizer_end_of_text(t), r->end_of_text);
	compare_all(t, r, encodings);
	tokenizer_free(t);
}

static void gpt2_encodes_as_the_reference(void **state) {
	(void)state;
	encodings_equal(&gpt2);
}

static void cl100k_encodes_as_the_reference(void **state) {
	(void)state;
	encodings_equal(&cl100k);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpt2_encodes_as_the_reference),
		cmocka_unit_test(cl100k_encodes_as_the_reference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
