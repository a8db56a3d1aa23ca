/* receipt.c: see receipt.h. */
#include "net/control/receipt.h"

#include "base/assert.h"

enum { STEP_BITS = 3, STEPS = 1 << STEP_BITS, BANDS = UINT8_MAX };

uint8_t receipt_band(uint64_t bytes_per_s) {
	if (bytes_per_s < STEPS)
		return 1;
	const int octave = 63 - __builtin_clzll(bytes_per_s) - STEP_BITS;
	const int step = (int)(bytes_per_s >> octave & (STEPS - 1)); /* the bits behind the first */
	const int band = 1 + STEPS * octave + step;
	return (uint8_t)(band < BANDS ? band : BANDS);
}

uint64_t receipt_rate(uint8_t band) {
	RV_ASSERT(band > 0);
	const int octave = (band - 1) / STEPS, step = (band - 1) % STEPS;
	return ((uint64_t)(2 * (STEPS + step) + 1) << octave) / 2;
}
