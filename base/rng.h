/* rng.h: a counter-based generator, Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy
 * as 1, 2, 3", SC'11).
 *
 * A value is a pure function of (seed, stream, counter): only the counter needs saving, and any
 * value can be computed without those before it. Used for initialisation, data order, sampling and
 * the simulator. Results are identical on every machine: integer arithmetic, and for the normal
 * only IEEE-754 + - * / sqrt in double with contraction off. */
#ifndef RV_BASE_RNG_H
#define RV_BASE_RNG_H

#include <stdint.h>

struct rv_rng {
	uint64_t seed, stream, counter;
};

/* Writes the 128 bits of one (seed, stream, counter): the raw block function. Its test has the
 * known answers of Random123. */
void rv_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);

struct rv_rng rv_rng_of(uint64_t seed, uint64_t stream);
/* Returns 64 random bits. Every call below consumes one counter value. */
uint64_t rv_rng_u64(struct rv_rng *r);
/* Returns a uniform value in [0, n), n > 0, with negligible bias (Lemire's multiply-shift on 64
 * bits). */
uint64_t rv_rng_below(struct rv_rng *r, uint64_t n);
/* Returns a uniform value in [0, 1), 53 bits. */
double rv_rng_double(struct rv_rng *r);
/* Returns a standard normal by inversion (Wichura, AS 241), accurate to about 1e-9, the same bits
 * everywhere. */
double rv_rng_normal(struct rv_rng *r);

#endif
