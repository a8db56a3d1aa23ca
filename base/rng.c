/* rng.c: see rng.h; the arithmetic is in rng_inline.h. */
#include "base/rng.h"

#include "base/assert.h"
#include "base/rng_inline.h"

void rv_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]) {
	const struct rv_philox_block b = rv_philox_inline(seed, stream, counter);
	memcpy(out, b.x, sizeof b.x);
}

struct rv_rng rv_rng_of(uint64_t seed, uint64_t stream) {
	return (struct rv_rng){.seed = seed, .stream = stream};
}

uint64_t rv_rng_u64(struct rv_rng *r) {
	uint32_t x[4];
	rv_philox(r->seed, r->stream, r->counter++, x);
	return (uint64_t)x[1] << 32 | x[0];
}

uint64_t rv_rng_below(struct rv_rng *r, uint64_t n) {
	RV_ASSERT(n > 0);
	__extension__ typedef unsigned __int128 u128;
	return (uint64_t)((u128)rv_rng_u64(r) * n >> 64);
}

double rv_rng_double(struct rv_rng *r) {
	return (double)(rv_rng_u64(r) >> 11) * 0x1p-53;
}

double rv_rng_normal(struct rv_rng *r) {
	const double p = rv_open_uniform(rv_rng_u64(r)), q = p - 0.5;
	if (fabs(q) <= RV_NORMAL_CENTRE)
		return rv_normal_centre(q);
	const double far = sqrt(-rv_log_exact(q < 0 ? p : 1 - p));
	const double x = far <= RV_NORMAL_NEAR ? rv_normal_near_tail(far) : rv_normal_far_tail(far);
	return q < 0 ? -x : x;
}
