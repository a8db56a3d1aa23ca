/* codec_noise.c: the random numbers of rounding, a pure function of the key and the element. */
#include "base/rng.h"
#include "outer/codec.h"

#include "base/assert.h"

#define STREAM_TAG (UINT64_C(0x7264) << 48) /* "rd": no other user of the seed draws from these streams */

enum { LANES = 4, ROUND_BITS = 32 };

struct codec_noise codec_noise_of(uint64_t seed, uint64_t round, uint32_t worker) {
	RV_ASSERT(round >> ROUND_BITS == 0 && worker <= UINT16_MAX);
	return (struct codec_noise){.seed = seed, .stream = STREAM_TAG | (uint64_t)worker << ROUND_BITS | round};
}

void codec_noise_fill(const struct codec_noise *noise, size_t offset, float *uniform, size_t n) {
	const uint64_t begin = noise->first + offset;
	uint32_t bits[LANES] = {0};
	for (size_t i = 0; i < n; i++) {
		const uint64_t element = begin + i;
		if (i == 0 || element % LANES == 0)
			rv_philox(noise->seed, noise->stream, element / LANES, bits);
		uniform[i] = (float)(bits[element % LANES] >> 8) * 0x1p-24f;
	}
}
