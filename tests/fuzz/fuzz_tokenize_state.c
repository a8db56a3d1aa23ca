/* fuzz_tokenize_state.c: a tokens.json that somebody has written. What is accepted is written back
 * and read again. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_dir.h"
#include "train/text/tokenizer/tokenize_job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct tokenize_state s, again;
	struct rv_errtext et = {0};
	(void)memory_dir_put(TOKENIZE_STATE_NAME, data, size);
	if (tokenize_state_read(memory_dir(), &s, &et) != RV_OK) {
		RV_ASSERT(et.text[0]);
		return 0;
	}
	RV_ASSERT(tokenize_state_write(memory_dir(), &s, &et) == RV_OK);
	RV_ASSERT(tokenize_state_read(memory_dir(), &again, &et) == RV_OK);
	RV_ASSERT(rv_hash_equal(&s.made_of, &again.made_of) && s.shards == again.shards && s.tokens == again.tokens &&
			  s.block == again.block && s.skip == again.skip && s.done == again.done);
	return 0;
}
