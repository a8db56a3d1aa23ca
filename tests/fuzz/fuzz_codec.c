/* fuzz_codec.c: an encoded chunk from a peer: codec, element count, bytes. What is accepted is
 * finite, and is the one encoding of what it decodes to. */
#include "outer/codec.h"

#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 4200 }; /* a whole group of top-k, and part of another */

static size_t codecs(void) {
	size_t n = 0;
	while (codec_registry[n])
		n++;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	if (size < 3)
		return 0;
	const struct codec *codec = codec_registry[data[0] % codecs()];
	size_t n = 1 + (size_t)(data[1] | data[2] << 8) % VALUES_MAX, bytes = codec->encoded_bytes(codec, n);
	if (size - 3 < bytes)
		return 0;
	struct rv_errtext et = {0};
	float x[VALUES_MAX], sum[VALUES_MAX] = {0};
	uint8_t *again = malloc(bytes);
	RV_ASSERT(again);
	enum rv_err e = codec->decode(codec, data + 3, n, x, &et);
	RV_ASSERT((e == RV_OK) == (codec->decode_add(codec, data + 3, n, 1, sum, NULL) == RV_OK));
	if (e == RV_OK) {
		for (size_t i = 0; i < n; i++)
			RV_ASSERT(isfinite(x[i]) && sum[i] == x[i]);
		RV_ASSERT(codec->encode(codec, x, n, again, NULL) == RV_OK);
		RV_ASSERT(memcmp(again, data + 3, bytes) == 0);
	} else {
		RV_ASSERT(e == RV_E_CORRUPT && et.text[0]);
	}
	free(again);
	return 0;
}
