/* fuzz_tokenizer_shard.c: a token file from a stranger. What is accepted can be read to its end. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"
#include "train/text/tokenizer/shard.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char path[64];
	struct shard s;
	struct rv_errtext et = {0};
	int fd = memory_file(data, size, path);
	if (shard_open(&s, path, &et) == RV_OK) {
		int32_t last, part[256];
		RV_ASSERT(s.n_tokens * (unsigned)s.token_bytes <= size);
		if (s.n_tokens > 0)
			(void)shard_read(&s, 1000, s.n_tokens - 1, 1, &last, &et);
		for (uint64_t at = 0, n; at < s.n_tokens; at += n) {
			n = s.n_tokens - at < 256 ? s.n_tokens - at : 256;
			RV_ASSERT(shard_read(&s, 1000, at, n, part, &et) == RV_OK || et.text[0]);
		}
		shard_close(&s);
	} else {
		RV_ASSERT(et.text[0]);
	}
	(void)close(fd);
	return 0;
}
