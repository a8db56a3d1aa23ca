/* fuzz_tokenizer_ranks.c: a tiktoken file and its pattern from a stranger: input is PATTERN, a zero
 * byte, and what follows the ranks of the 256 bytes. What is accepted encodes and decodes without
 * loss. */
#include "tests/fuzz/fuzz_tokenizer.h"

#include <sodium/utils.h>
#include <stdio.h>
#include <stdlib.h>

/* The ranks of the bytes, then `more`. */
static char *make_file(const uint8_t *more, size_t n, size_t *bytes) {
	enum { LINE_BYTES = 16 };
	char *text = malloc(256 * LINE_BYTES + n), base64[8];
	RV_ASSERT(text);
	*bytes = 0;
	for (int b = 0; b < 256; b++) {
		sodium_bin2base64(base64, sizeof base64, &(uint8_t){(uint8_t)b}, 1, sodium_base64_VARIANT_ORIGINAL);
		*bytes += (size_t)snprintf(text + *bytes, LINE_BYTES, "%s %d\n", base64, b);
	}
	memcpy(text + *bytes, more, n);
	*bytes += n;
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const uint8_t *end = memchr(data, 0, size);
	struct tokenizer *t;
	struct rv_errtext et = {0};
	size_t n;
	if (!end)
		return 0;
	char *file = make_file(end + 1, (size_t)(data + size - end - 1), &n);
	if (tokenizer_load("fuzz", (const uint8_t *)file, n, (const char *)data, &t, &et) == RV_OK) {
		fuzz_round_trip(t, (const uint8_t *)fuzz_text, strlen(fuzz_text));
		tokenizer_free(t);
	} else {
		RV_ASSERT(et.text[0] && !t);
	}
	free(file);
	return 0;
}
