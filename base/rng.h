/* rng.h: a counter-based generator, Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC'11).
 *
 * A value is a pure function of (seed, stream, counter): nothing to save or restore but the counter, and any value can
 * be had without those before it. Used for initialisation, data order, sampling and the simulator. Results are
 * identical on every machine: integer arithmetic, and for the normal only IEEE-754 + - * / sqrt in double with
 * contraction off.
 */
#ifndef RV_BASE_RNG_H
#define RV_BASE_RNG_H

#include <stdint.h>

struct rv_rng {
	uint64_t seed, stream, counter;
};

/* The raw block function: 128 bits for one (seed, stream, counter). Known answers of Random123 are in its test. */
void rv_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);

struct rv_rng rv_rng_of(uint64_t seed, uint64_t stream);
/* Each call consumes one counter value, whatever it returns. */
uint64_t rv_rng_u64(struct rv_rng *r);
/* Uniform in [0, n), without bias that matters (Lemire's multiply-shift on 64 bits). n > 0. */
uint64_t rv_rng_below(struct rv_rng *r, uint64_t n);
/* Uniform in [0, 1), 53 bits. */
double rv_rng_double(struct rv_rng *r);
/* Standard normal by inversion (Wichura, AS 241), accurate to about 1e-9, the same bits everywhere. */
double rv_rng_normal(struct rv_rng *r);

#endif
