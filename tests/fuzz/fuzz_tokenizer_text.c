/* fuzz_tokenizer_text.c: any bytes as text, for a vocabulary made from those very bytes: it loads again, and the text
 * comes back. */
#include "tests/fuzz/fuzz_tokenizer.h"
#include "worker/tokenizer/trainer.h"

#include <stdlib.h>

static char *train(const uint8_t *text, size_t n) {
	enum { MOST_TOKENS = 24 };
	struct piece_counter *c;
	char *json = NULL;
	RV_ASSERT(piece_counter_new(&c, NULL) == RV_OK);
	RV_ASSERT(piece_counter_add(c, text, n, NULL) == RV_OK);
	for (uint32_t more = MOST_TOKENS; !json; more /= 2) /* a short text has few pairs */
		(void)trainer_make_json(piece_counter_counts(c), TRAINER_MIN_VOCAB + more, NULL, NULL, &json, NULL);
	piece_counter_free(c);
	return json;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct tokenizer *t;
	char *json = train(data, size);
	RV_ASSERT(tokenizer_load("fuzz", (const uint8_t *)json, strlen(json), "auto", &t, NULL) == RV_OK);
	fuzz_round_trip(t, data, size);
	tokenizer_free(t);
	free(json);
	return 0;
}
