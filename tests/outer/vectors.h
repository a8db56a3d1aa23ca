/* vectors.h: deterministic test vectors for outer/. */
#ifndef RV_TESTS_OUTER_VECTORS_H
#define RV_TESTS_OUTER_VECTORS_H

#include "base/rng.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

static const size_t awkward_sizes[] = {1,  3,   7,   8,   15,  16,  17,  31,   33,   63,  64,
									   65, 127, 255, 256, 257, 511, 513, 1000, 1023, 4099};

enum { LARGEST_SIZE = 4099 };

/* Like outer gradients: normal values, the scale of which changes from one run of 100 to the
 * next. */
static inline void fill_normal(float *x, size_t n, uint64_t seed) {
	struct rv_rng r = rv_rng_of(seed, 7);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)(rv_rng_normal(&r) * exp2((double)(i / 100 % 9) * 3 - 20));
}

/* Any finite bit pattern at all: all exponents, denormals, both zeros. */
static inline void fill_any_finite(float *x, size_t n, uint64_t seed) {
	struct rv_rng r = rv_rng_of(seed, 8);
	for (size_t i = 0; i < n; i++) {
		union {
			uint32_t u;
			float f;
		} v;
		do
			v.u = (uint32_t)rv_rng_u64(&r);
		while (!isfinite(v.f));
		x[i] = v.f;
	}
}

#endif
