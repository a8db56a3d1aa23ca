/* fuzz_tokenizer.h: what the tokenizer's fuzzers share. */
#ifndef RV_TESTS_FUZZ_FUZZ_TOKENIZER_H
#define RV_TESTS_FUZZ_FUZZ_TOKENIZER_H

#include "tests/fuzz/fuzz.h"
#include "train/text/tokenizer/tokenizer.h"

#include <string.h>

static const char fuzz_text[] = "It's 2026:  \xc3\xa4\xe4\xbd\xa0 \xff\xf0\x9f\x98\x80\r\n\tabc<|endoftext|>aaaaaaa";

/* Text that is encoded, or refused with a reason (a pattern that takes too long), decodes to
 * itself, unless the tokenizer normalizes. */
static inline void fuzz_round_trip(const struct tokenizer *t, const uint8_t *text, size_t n) {
	struct encoder *e;
	RV_ASSERT(encoder_new(t, &e, NULL) == RV_OK);
	for (int mode = SPECIALS_AS_TEXT; mode <= SPECIALS_RECOGNISED; mode++) {
		struct token_list ids = {0};
		struct byte_list back = {0};
		struct rv_errtext et = {0};
		if (tokenizer_encode(e, text, n, (enum specials)mode, &ids, &et) == RV_OK) {
			RV_ASSERT(tokenizer_decode(t, ids.ids, ids.n, &back, &et) == RV_OK);
			RV_ASSERT(tokenizer_normalizes(t) || (back.n == n && (n == 0 || memcmp(back.bytes, text, n) == 0)));
		} else {
			RV_ASSERT(et.text[0]);
		}
		byte_list_release(&back);
		token_list_release(&ids);
	}
	encoder_free(e);
}

#endif
