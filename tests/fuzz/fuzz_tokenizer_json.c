/* fuzz_tokenizer_json.c: a tokenizer.json from a stranger. What is accepted encodes and decodes
 * without loss. */
#include "tests/fuzz/fuzz_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct tokenizer *t;
	struct rv_errtext et = {0};
	if (tokenizer_load("fuzz", data, size, "gpt2", &t, &et) == RV_OK) {
		fuzz_round_trip(t, (const uint8_t *)fuzz_text, strlen(fuzz_text));
		tokenizer_free(t);
	} else {
		RV_ASSERT(et.text[0] && !t);
	}
	return 0;
}
