/* Encoding and decoding with a tokenizer that the test trains itself, and with the bytes: the
 * identity on any bytes, the same with a warm cache and a cold one, special tokens. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include "base/rng.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 420 };

struct both {
	struct tokenizer *trained, *bytes;
	struct encoder *trained_encoder, *bytes_encoder;
};

static int setup(void **state) {
	static struct both b;
	fixture_tokenizer(VOCAB, &b.trained, &b.trained_encoder);
	assert_ok(tokenizer_open("bytes", "auto", &b.bytes, &et));
	assert_ok(encoder_new(b.bytes, &b.bytes_encoder, &et));
	*state = &b;
	return 0;
}

static int teardown(void **state) {
	struct both *b = *state;
	encoder_free(b->trained_encoder);
	encoder_free(b->bytes_encoder);
	tokenizer_free(b->trained);
	tokenizer_free(b->bytes);
	return 0;
}

static void round_trip(const struct both *b, const void *text, size_t n) {
	assert_round_trip(b->trained, b->trained_encoder, text, n);
	assert_int_equal(assert_round_trip(b->bytes, b->bytes_encoder, text, n), n);
}

static void adversarial_text_round_trips(void **state) {
	static const char nul[] = "a\0b\0\0c", lines[] = "a\r\nb\r\n\r\n\n\rc";
	static const char *const texts[] = {
		"",
		" ",
		"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",
		"Z\xcc\x80\xcc\x81\xcc\x82\xcc\x83\xcc\x84\xcc\x85\xcc\x86 e\xcc\x81",
		"\xe6\xbc\xa2\xe5\xad\x97\xe3\x81\x8b\xe3\x81\xaa\xed\x95\x9c\xea\xb8\x80\xe3\x80\x80\xe4\xb8\xad",
		"\xff\xfe invalid \x80 in \xc3( between \xed\xa0\x80\xf4\x90\x80\x80",
		"\xef\xbb\xbfwith a mark \xe1\xa0\x8e and odd\xc2\xa0spaces\xe2\x80\x89",
		"<|endoftext|> as text <|endoftext|",
		"cut short \xf0\x9f\x98",
	};
	const struct both *b = *state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		round_trip(b, texts[i], strlen(texts[i]));
	round_trip(b, nul, sizeof nul);
	round_trip(b, lines, sizeof lines);
	round_trip(b, fixture_text, strlen(fixture_text));
}

static void random_bytes_round_trip(void **state) {
	const struct both *b = *state;
	struct rv_rng rng = rv_rng_of(11, 0);
	uint8_t text[2000];
	for (int round = 0; round < 500; round++) {
		size_t n = rv_rng_below(&rng, sizeof text);
		uint64_t letters = round % 3 == 0 ? 256 : round % 3 == 1 ? 128 : 6;
		for (size_t i = 0; i < n; i++)
			text[i] =
				letters == 6 ? (uint8_t) " a\xc3\xa4\n1"[rv_rng_below(&rng, 6)] : (uint8_t)rv_rng_below(&rng, letters);
		round_trip(b, text, n);
	}
}

static void a_mebibyte_without_a_space_round_trips(void **state) {
	enum { BYTES = 1 << 20 };
	const struct both *b = *state;
	struct rv_rng rng = rv_rng_of(13, 0);
	uint8_t *text = malloc(BYTES);
	assert_non_null(text);
	memset(text, 'e', BYTES);
	round_trip(b, text, BYTES);
	for (size_t i = 0; i < BYTES; i++)
		text[i] = (uint8_t)('a' + rv_rng_below(&rng, 26));
	round_trip(b, text, BYTES);
	memset(text, 0xff, BYTES);
	round_trip(b, text, BYTES);
	memset(text, ' ', BYTES);
	round_trip(b, text, BYTES);
	free(text);
}

static void a_warm_cache_changes_nothing(void **state) {
	const struct both *b = *state;
	struct encoder *cold;
	assert_ok(encoder_new(b->trained, &cold, &et));
	for (size_t n = 0; n < strlen(fixture_text); n += 17) {
		struct token_list warm_ids = encode_text(b->trained_encoder, fixture_text, n, SPECIALS_AS_TEXT);
		struct token_list cold_ids = encode_text(cold, fixture_text, n, SPECIALS_AS_TEXT);
		assert_int_equal(warm_ids.n, cold_ids.n);
		if (n > 0)
			assert_memory_equal(warm_ids.ids, cold_ids.ids, cold_ids.n * sizeof *cold_ids.ids);
		token_list_release(&warm_ids);
		token_list_release(&cold_ids);
	}
	encoder_free(cold);
}

static void special_tokens_are_found_only_on_demand(void **state) {
	static const char text[] = "a<|endoftext|><|endoftext|>b<|endoftext";
	const struct both *b = *state;
	uint32_t special = tokenizer_special(b->trained, "<|endoftext|>");
	assert_int_equal(special, VOCAB - 1);
	assert_int_equal(tokenizer_end_of_text(b->trained), special);
	assert_int_equal(tokenizer_end_of_text(b->bytes), TOKENIZER_NO_TOKEN);
	struct token_list ids = encode_text(b->trained_encoder, text, strlen(text), SPECIALS_AS_TEXT);
	for (size_t i = 0; i < ids.n; i++)
		assert_int_not_equal(ids.ids[i], special);
	token_list_release(&ids);
	ids = encode_text(b->trained_encoder, text, strlen(text), SPECIALS_RECOGNISED);
	assert_int_equal(ids.ids[1], special);
	assert_int_equal(ids.ids[2], special);
	assert_true(ids.n > 4);
	struct byte_list back = {0};
	assert_ok(tokenizer_decode(b->trained, ids.ids, ids.n, &back, &et));
	assert_int_equal(back.n, strlen(text));
	assert_memory_equal(back.bytes, text, back.n);
	byte_list_release(&back);
	token_list_release(&ids);
}

static void added_tokens_that_are_not_special_are_always_found(void **state) {
	(void)state;
	char *good = fixture_json(300);
	json_t *root = json_loads(good, 0, NULL);
	json_t *added = json_object_get(root, "added_tokens");
	assert_int_equal(json_array_append_new(added, json_pack("{si ss sb}", "id", 300, "content", "   ", "special", 0)),
					 0);
	char *text = json_dumps(root, 0);
	struct tokenizer *t;
	struct encoder *e;
	assert_ok(tokenizer_load("added", (const uint8_t *)text, strlen(text), "auto", &t, &et));
	assert_ok(encoder_new(t, &e, &et));
	struct token_list ids = encode_text(e, "a   <|endoftext|>", 17, SPECIALS_AS_TEXT);
	assert_true(ids.n > 3);
	assert_int_equal(ids.ids[1], 300);
	assert_int_not_equal(ids.ids[2], 299);
	token_list_release(&ids);
	encoder_free(e);
	tokenizer_free(t);
	json_decref(root);
	free(text);
	free(good);
}

static void decoding_names_an_id_that_is_none(void **state) {
	const struct both *b = *state;
	const uint32_t ids[] = {65, 66, VOCAB};
	struct byte_list out = {0};
	struct rv_errtext why = {0};
	assert_int_equal(tokenizer_decode(b->trained, ids, 3, &out, &why), RV_E_RANGE);
	assert_non_null(strstr(why.text, "token 2 of 3 is 420"));
	assert_int_equal(tokenizer_decode(b->trained, (const uint32_t[]){UINT32_MAX}, 1, &out, &why), RV_E_RANGE);
	byte_list_release(&out);
}

static void kinds_have_names_and_sizes(void **state) {
	const struct both *b = *state;
	assert_string_equal(tokenizer_kind(b->bytes), "bytes");
	assert_string_equal(tokenizer_kind(b->trained), "huggingface");
	assert_int_equal(tokenizer_vocab(b->bytes), 256);
	assert_int_equal(tokenizer_vocab(b->trained), VOCAB);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adversarial_text_round_trips),
		cmocka_unit_test(random_bytes_round_trip),
		cmocka_unit_test(a_mebibyte_without_a_space_round_trips),
		cmocka_unit_test(a_warm_cache_changes_nothing),
		cmocka_unit_test(special_tokens_are_found_only_on_demand),
		cmocka_unit_test(added_tokens_that_are_not_special_are_always_found),
		cmocka_unit_test(decoding_names_an_id_that_is_none),
		cmocka_unit_test(kinds_have_names_and_sizes),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
