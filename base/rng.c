/* rng.c: Philox4x32-10, and the normal by inversion (Wichura, "Algorithm AS 241", Applied Statistics 37, 1988). */
#include "base/rng.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

/* Constants of Salmon et al., section 4.3. */
enum { PHILOX_ROUNDS = 10 };
static const uint32_t philox_mul0 = 0xD2511F53u, philox_mul1 = 0xCD9E8D57u;
static const uint32_t philox_weyl0 = 0x9E3779B9u, philox_weyl1 = 0xBB67AE85u;

void rv_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]) {
	uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
	uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
	uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
	for (int round = 0; round < PHILOX_ROUNDS; round++) {
		uint64_t p0 = (uint64_t)philox_mul0 * c0, p1 = (uint64_t)philox_mul1 * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ key0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ key1;
		c3 = (uint32_t)p0;
		key0 += philox_weyl0;
		key1 += philox_weyl1;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
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

/* ln x for normal x > 0 from + - * / alone, within 2 ulp: x = m 2^e with m in [sqrt(1/2), sqrt(2)), and
 * ln m = 2 artanh(s), s = (m-1)/(m+1), |s| <= 0.172, by its series to s^21. libm's log may differ between machines. */
static double log_exact(double x) {
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	int e = (int)(bits >> 52) - 1022;
	bits = (bits & 0x000fffffffffffffull) | 0x3fe0000000000000ull; /* m in [1/2, 1) */
	double m;
	memcpy(&m, &bits, sizeof m);
	if (m < 0.70710678118654752440) {
		m *= 2;
		e -= 1;
	}
	double s = (m - 1) / (m + 1), z = s * s;
	double series = 0;
	for (int k = 21; k >= 3; k -= 2)
		series = (series + 1.0 / k) * z;
	/* ln 2 in two parts, the first with 32 trailing zero bits, so that e * ln2_hi is exact. */
	const double ln2_hi = 0x1.62e42feep-1, ln2_lo = 0x1.a39ef35793c76p-33;
	return e * ln2_hi + (2 * s + (2 * s * series + e * ln2_lo));
}

static double horner(const double c[8], double x) {
	double v = c[7];
	for (int i = 6; i >= 0; i--)
		v = v * x + c[i];
	return v;
}

/* AS 241, PPND16: the quantile function of the standard normal for p in (0, 1), relative error about 1e-16. */
static double normal_quantile(double p) {
	static const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
								1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
								3.3430575583588128105e+4, 2.5090809287301226727e+3};
	static const double b[8] = {1.0,
								4.2313330701600911252e+1,
								6.8718700749205790830e+2,
								5.3941960214247511077e+3,
								2.1213794301586595867e+4,
								3.9307895800092710610e+4,
								2.8729085735721942674e+4,
								5.2264952788528545610e+3};
	static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
								3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
								2.27238449892691845833e-2, 7.74545014278341407640e-4};
	static const double d[8] = {1.0,
								2.05319162663775882187e0,
								1.67638483018380384940e0,
								6.89767334985100004550e-1,
								1.48103976427480074590e-1,
								1.51986665636164571966e-2,
								5.47593808499534494600e-4,
								1.05075007164441684324e-9};
	static const double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
								2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
								2.71155556874348757815e-5, 2.01033439929228813265e-7};
	static const double f[8] = {1.0,
								5.99832206555887937690e-1,
								1.36929880922735805310e-1,
								1.48753612908506148525e-2,
								7.86869131145613259100e-4,
								1.84631831751005468180e-5,
								1.42151175831644588870e-7,
								2.04426310338993978564e-15};
	double q = p - 0.5;
	if (fabs(q) <= 0.425) {
		double r = 0.180625 - q * q;
		return q * horner(a, r) / horner(b, r);
	}
	double r = sqrt(-log_exact(q < 0 ? p : 1 - p));
	double x = r <= 5 ? horner(c, r - 1.6) / horner(d, r - 1.6) : horner(e, r - 5) / horner(f, r - 5);
	return q < 0 ? -x : x;
}

double rv_rng_normal(struct rv_rng *r) {
	/* 52 bits and a half: exact in a double, never 0 or 1, symmetric about 1/2. */
	return normal_quantile(((double)(rv_rng_u64(r) >> 12) + 0.5) * 0x1p-52);
}
