/* tokenizer_fixture.h: what the tokenizer's tests share. */
#ifndef RV_TESTS_TOKENIZER_TOKENIZER_FIXTURE_H
#define RV_TESTS_TOKENIZER_TOKENIZER_FIXTURE_H

#include "tests/common/check.h"
#include "train/text/tokenizer/tokenizer.h"

#include <stdbool.h>

/* Tokens of a text; the caller releases them. */
struct token_list encode_text(struct encoder *e, const void *text, size_t n, enum specials specials);
/* decode(encode(text)) is the text. Returns how many tokens it took. */
size_t assert_round_trip(const struct tokenizer *t, struct encoder *e, const void *text, size_t n);

/* Some hundred bytes of text in several scripts, for training and encoding. */
extern const char fixture_text[];
/* fixture_text `copies` times; *n: its bytes. free() it. */
uint8_t *fixture_copies(int copies, size_t *n);
/* Appends what a token file of this text holds: the separator, and the text's tokens. */
void fixture_wanted(const struct tokenizer *t, struct encoder *e, const uint8_t *text, size_t n,
					struct token_list *wanted);
/* tokenizer.json of `vocab` tokens trained on fixture_text; free() it. */
char *fixture_json(uint32_t vocab);
/* The tokenizer of that, and an encoder for it. */
void fixture_tokenizer(uint32_t vocab, struct tokenizer **t, struct encoder **e);

/* The path of a file of real vocabularies and encodings (RIVULET_TOKENIZER_REFERENCE), or NULL
 * after saying so. */
const char *reference_file(const char *name, char path[static 512]);

#endif
