/* fuzz_partial_sum.c: a packed partial sum from a peer: a count of values, bytes. What is accepted
 * is the one form of what it holds. */
#include "outer/partial_sum.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 600 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	if (size < 2)
		return 0;
	const size_t n = 1 + (size_t)(data[0] | data[1] << 8) % VALUES_MAX, room = n * sizeof(float);
	struct rv_errtext et = {0};
	uint8_t *sum = malloc(room), *again = malloc(room), *in = malloc(size - 2 + 1);
	RV_ASSERT(sum && again && in);
	memcpy(in, data + 2, size - 2); /* of its own, so that reading past it is seen */
	const enum rv_err e = partial_sum_unpack(in, size - 2, n, sum, &et);
	RV_ASSERT(e == RV_OK || (e == RV_E_CORRUPT && et.text[0]));
	if (e == RV_OK) {
		RV_ASSERT(partial_sum_pack(sum, n, again) == size - 2);
		RV_ASSERT(memcmp(again, in, size - 2) == 0);
	}
	free(sum);
	free(again);
	free(in);
	return 0;
}
