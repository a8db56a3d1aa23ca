/* fuzz_tokenizer_text.c: any bytes as text: it comes back. One text in eight makes a vocabulary of
 * its own, which is written, loaded, and encodes it; that takes twenty times as long as the rest,
 * so the others share a few that are made once. The sum of the bytes says which: a mutation chooses
 * anew, so the corpus does not fill with slow ones. */
#include "tests/fuzz/fuzz_tokenizer.h"
#include "train/text/tokenizer/trainer.h"

#include <stdio.h>
#include <stdlib.h>

/* As large a vocabulary as there are pairs for, up to a few merges: what a refusal says is enough
 * is. */
static char *make_vocabulary(const struct piece_counts *counts) {
	enum { MOST_MERGES = 24 };
	char *json = NULL;
	unsigned enough = 0;
	struct rv_errtext et = {0};
	if (trainer_make_json(counts, TRAINER_MIN_VOCAB + MOST_MERGES, NULL, NULL, &json, &et) == RV_OK)
		return json;
	RV_ASSERT(sscanf(et.text, "the text has pairs for a vocabulary of %u tokens", &enough) == 1);
	RV_ASSERT(trainer_make_json(counts, enough + 1, NULL, NULL, &json, NULL) == RV_OK); /* and <|endoftext|> */
	return json;
}

static struct tokenizer *train(const uint8_t *text, size_t n) {
	struct piece_counter *c;
	struct tokenizer *t;
	RV_ASSERT(piece_counter_new(&c, NULL) == RV_OK);
	RV_ASSERT(piece_counter_add(c, text, n, NULL) == RV_OK);
	char *json = make_vocabulary(piece_counter_counts(c));
	piece_counter_free(c);
	RV_ASSERT(tokenizer_load("fuzz", (const uint8_t *)json, strlen(json), "auto", &t, NULL) == RV_OK);
	free(json);
	return t;
}

static const struct tokenizer *fixed(unsigned which) {
	static const char *const texts[] = {fuzz_text,
										"the quick brown fox, the lazy dog: 123 456; it's the the of of in in",
										"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabababababababab    \n\n\n\t\t\t"};
	enum { TEXTS = sizeof texts / sizeof texts[0] };
	static struct tokenizer *made[TEXTS];
	const char *text = texts[which % TEXTS];
	if (!made[which % TEXTS])
		made[which % TEXTS] = train((const uint8_t *)text, strlen(text));
	return made[which % TEXTS];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	enum { CHOICES = 24, OWN = 3 };
	unsigned choice = 0;
	for (size_t i = 0; i < size; i++)
		choice = (choice + data[i]) % CHOICES;
	if (choice >= OWN) {
		fuzz_round_trip(fixed(choice), data, size);
		return 0;
	}
	struct tokenizer *t = train(data, size);
	fuzz_round_trip(t, data, size);
	tokenizer_free(t);
	return 0;
}
