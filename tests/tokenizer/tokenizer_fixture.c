/* tokenizer_fixture.c: round trips and where the reference files are. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
