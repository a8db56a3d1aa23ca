/* tokenizer_fixture.c: round trips and where the reference files are. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include "train/text/tokenizer/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char fixture_text[] =
	"The quick brown fox jumps over the lazy dog; the dog doesn't mind, it's the fox's way of saying hello.\n"
	"She sells sea shells on the sea shore, and the shells that she sells are sea shells, I'm sure.\r\n\r\n"
	"1234567 apples, 89 pears and 12.5 % of 2026;  two spaces,   three spaces,\ttabs\t\tand more.\n"
	"\xc3\x84rger mit \xc3\x9c"
	"bergr\xc3\xb6\xc3\x9f"
	"en, na\xc3\xafve caf\xc3\xa9s; "
	"\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c\xe3\x80\x82\xe4\xbd\xa0\xe5\xa5\xbd "
	"\xf0\x9f\x98\x80\xf0\x9f\x98\x80 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80 e\xcc\x81\xcc\xa3o\n\n\n"
	"for (int i = 0; i < n; i++) { sum += values[i] * weights[i]; } // the sum of the values and the weights\n";

uint8_t *fixture_copies(int copies, size_t *n) {
	const size_t one = strlen(fixture_text);
	uint8_t *text = malloc((size_t)copies * one);
	assert_non_null(text);
	for (int i = 0; i < copies; i++)
		memcpy(text + (size_t)i * one, fixture_text, one);
	*n = (size_t)copies * one;
	return text;
}

void fixture_wanted(const struct tokenizer *t, struct encoder *e, const uint8_t *text, size_t n,
					struct token_list *wanted) {
	const uint32_t separator = tokenizer_end_of_text(t);
	assert_ok(token_list_append(wanted, &separator, 1, &et));
	assert_ok(tokenizer_encode(e, text, n, SPECIALS_AS_TEXT, wanted, &et));
}

char *fixture_json(uint32_t vocab) {
	struct piece_counter *c;
	char *json;
	assert_ok(piece_counter_new(&c, &et));
	assert_ok(piece_counter_add(c, (const uint8_t *)fixture_text, strlen(fixture_text), &et));
	assert_ok(trainer_make_json(piece_counter_counts(c), vocab, NULL, NULL, &json, &et));
	piece_counter_free(c);
	return json;
}

void fixture_tokenizer(uint32_t vocab, struct tokenizer **t, struct encoder **e) {
	char *json = fixture_json(vocab);
	assert_ok(tokenizer_load("trained", (const uint8_t *)json, strlen(json), "auto", t, &et));
	assert_ok(encoder_new(*t, e, &et));
	free(json);
}

struct token_list encode_text(struct encoder *e, const void *text, size_t n, enum specials specials) {
	struct token_list ids = {0};
	assert_ok(tokenizer_encode(e, text, n, specials, &ids, &et));
	return ids;
}

size_t assert_round_trip(const struct tokenizer *t, struct encoder *e, const void *text, size_t n) {
	struct token_list ids = encode_text(e, text, n, SPECIALS_AS_TEXT);
	struct byte_list back = {0};
	assert_ok(tokenizer_decode(t, ids.ids, ids.n, &back, &et));
	assert_int_equal(back.n, n);
	if (n > 0)
		assert_memory_equal(back.bytes, text, n);
	size_t n_ids = ids.n;
	token_list_release(&ids);
	byte_list_release(&back);
	return n_ids;
}

const char *reference_file(const char *name, char path[static 512]) {
	const char *dir = getenv("RIVULET_TOKENIZER_REFERENCE");
	if (!dir) {
		print_message("RIVULET_TOKENIZER_REFERENCE is not set: %s is not tested against\n", name);
		return NULL;
	}
	(void)snprintf(path, 512, "%s/%s", dir, name);
	return path;
}
