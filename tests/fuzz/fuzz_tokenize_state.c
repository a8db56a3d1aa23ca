/* fuzz_tokenize_state.c: a tokens.json that somebody has written. What is accepted is written back and read again. */
#include "tests/fuzz/fuzz.h"
#include "worker/tokenizer/tokenize_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/rv-fuzz-state-XXXXXX", path[64];

static void remove_all(void) {
	(void)unlink(path);
	(void)rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct tokenize_state s, again;
	struct rv_errtext et = {0};
	if (!path[0]) {
		RV_ASSERT(mkdtemp(dir));
		(void)snprintf(path, sizeof path, "%s/" TOKENIZE_STATE_NAME, dir);
		(void)atexit(remove_all);
	}
	FILE *f = fopen(path, "wb");
	RV_ASSERT(f && fwrite(data, 1, size, f) == size);
	(void)fclose(f);
	if (tokenize_state_read(dir, &s, &et) != RV_OK) {
		RV_ASSERT(et.text[0]);
		return 0;
	}
	RV_ASSERT(tokenize_state_write(dir, &s, &et) == RV_OK && tokenize_state_read(dir, &again, &et) == RV_OK);
	RV_ASSERT(rv_hash_equal(&s.made_of, &again.made_of) && s.shards == again.shards && s.tokens == again.tokens &&
			  s.block == again.block && s.skip == again.skip && s.done == again.done);
	return 0;
}
