/* rng_inline.h: the arithmetic behind rng.h, for loops over many values: compiled into such a loop,
 * it becomes vectors (kernels/cpu/isa/normals.c). Only integers and IEEE-754 + - * / sqrt in
 * double, each rounded by itself: the same bits in vectors of any width. Include it where
 * -ffp-contract=off is set, as it is in all of this tree.
 *
 * Philox4x32-10: Salmon et al., SC'11. The normal by inversion: Wichura, "Algorithm AS 241: The
 * percentage points of the normal distribution", Applied Statistics 37, 1988, PPND16. */
#ifndef RV_BASE_RNG_INLINE_H
#define RV_BASE_RNG_INLINE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

struct rv_philox_block {
	uint32_t x[4];
};

/* Returns the 128 bits of one (seed, stream, counter); constants of Salmon et al., section 4.3. */
static inline struct rv_philox_block rv_philox_inline(uint64_t seed, uint64_t stream, uint64_t counter) {
	enum { PHILOX_ROUNDS = 10 };
	const uint32_t mul0 = 0xD2511F53u, mul1 = 0xCD9E8D57u, weyl0 = 0x9E3779B9u, weyl1 = 0xBB67AE85u;
	uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
	uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
	uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
	for (int round = 0; round < PHILOX_ROUNDS; round++) {
		uint64_t p0 = (uint64_t)mul0 * c0, p1 = (uint64_t)mul1 * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ key0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ key1;
		c3 = (uint32_t)p0;
		key0 += weyl0;
		key1 += weyl1;
	}
	return (struct rv_philox_block){{c0, c1, c2, c3}};
}

/* Returns the uniform number in (0, 1) that rv_rng_normal makes of 64 random bits: 52 of them and a
 * half, exact in a double, never 0 or 1, symmetric about 1/2. */
static inline double rv_open_uniform(uint64_t random) {
	const uint64_t bits = random >> 12 | UINT64_C(0x4330000000000000); /* 2^52 + the 52 bits */
	double x;
	memcpy(&x, &bits, sizeof x);
	return (x - 0x1p52 + 0.5) * 0x1p-52;
}

/* Returns ln x for normal x > 0 from + - * / alone, within 2 ulp: x = m 2^e with m in [sqrt(1/2),
 * sqrt(2)), and ln m = 2 artanh(s), s = (m-1)/(m+1), |s| <= 0.172, by its series to s^21. libm's
 * log may differ between machines. */
static inline double rv_log_exact(double x) {
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	const int exponent = (int)(bits >> 52) - 1022;
	bits = (bits & 0x000fffffffffffffull) | 0x3fe0000000000000ull; /* m in [1/2, 1) */
	double m;
	memcpy(&m, &bits, sizeof m);
	const int low = m < 0.70710678118654752440; /* no branch: loops with this become vectors */
	m *= 1 + low;
	const double e = exponent - low;
	double s = (m - 1) / (m + 1), z = s * s;
	double series = 0;
	for (int k = 21; k >= 3; k -= 2)
		series = (series + 1.0 / k) * z;
	/* ln 2 in two parts, the first with 32 trailing zero bits, so that e * ln2_hi is exact. */
	const double ln2_hi = 0x1.62e42feep-1, ln2_lo = 0x1.a39ef35793c76p-33;
	return e * ln2_hi + (2 * s + (2 * s * series + e * ln2_lo));
}

static inline double rv_horner(const double c[8], double x) {
	return ((((((c[7] * x + c[6]) * x + c[5]) * x + c[4]) * x + c[3]) * x + c[2]) * x + c[1]) * x + c[0];
}

/* Returns the quantile of the standard normal: three functions, for the three ranges of AS 241;
 * relative error about 1e-16. This one: q = p - 1/2, |q| <= RV_NORMAL_CENTRE. */
#define RV_NORMAL_CENTRE 0.425
static inline double rv_normal_centre(double q) {
	const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
						 1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
						 3.3430575583588128105e+4, 2.5090809287301226727e+3};
	const double b[8] = {1.0,
						 4.2313330701600911252e+1,
						 6.8718700749205790830e+2,
						 5.3941960214247511077e+3,
						 2.1213794301586595867e+4,
						 3.9307895800092710610e+4,
						 2.8729085735721942674e+4,
						 5.2264952788528545610e+3};
	const double r = 0.180625 - q * q;
	return q * rv_horner(a, r) / rv_horner(b, r);
}

/* Returns the positive quantile in the tails, where p is the smaller of p and 1 - p: r = sqrt(-ln
 * p) up to RV_NORMAL_NEAR. */
#define RV_NORMAL_NEAR 5.0
static inline double rv_normal_near_tail(double r) {
	const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
						 3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
						 2.27238449892691845833e-2, 7.74545014278341407640e-4};
	const double d[8] = {1.0,
						 2.05319162663775882187e0,
						 1.67638483018380384940e0,
						 6.89767334985100004550e-1,
						 1.48103976427480074590e-1,
						 1.51986665636164571966e-2,
						 5.47593808499534494600e-4,
						 1.05075007164441684324e-9};
	return rv_horner(c, r - 1.6) / rv_horner(d, r - 1.6);
}

/* Returns the same for r beyond it: about 3 of 10^11 values. */
static inline double rv_normal_far_tail(double r) {
	const double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
						 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
						 2.71155556874348757815e-5, 2.01033439929228813265e-7};
	const double f[8] = {1.0,
						 5.99832206555887937690e-1,
						 1.36929880922735805310e-1,
						 1.48753612908506148525e-2,
						 7.86869131145613259100e-4,
						 1.84631831751005468180e-5,
						 1.42151175831644588870e-7,
						 2.04426310338993978564e-15};
	return rv_horner(e, r - 5) / rv_horner(f, r - 5);
}

#endif
