/* Philox against Random123's known answers; the normal against an independent implementation of AS
 * 241, bit for bit reproducible, in its tails too; moments. */
#include "base/rng.h"
#include "tests/common/check.h"

#include <math.h>
#include <string.h>

static void philox_known_answers(void **state) {
	(void)state;
	/* Random123 1.09, kat_vectors, philox4x32 10: counter words, key words, result. */
	static const struct {
		uint64_t counter, stream, seed;
		uint32_t want[4];
	} kat[] = {
		{0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};
	for (size_t i = 0; i < sizeof kat / sizeof kat[0]; i++) {
		uint32_t out[4];
		rv_philox(kat[i].seed, kat[i].stream, kat[i].counter, out);
		assert_memory_equal(out, kat[i].want, sizeof out);
	}
}

static void a_value_depends_on_its_counter_only(void **state) {
	(void)state;
	struct rv_rng a = rv_rng_of(1, 2), b = rv_rng_of(1, 2);
	for (int i = 0; i < 5; i++)
		(void)rv_rng_normal(&a);
	assert_int_equal(a.counter, 5);
	b.counter = 5;
	assert_true(rv_rng_u64(&a) == rv_rng_u64(&b));
	struct rv_rng other_stream = rv_rng_of(1, 3), other_seed = rv_rng_of(2, 2);
	struct rv_rng same = rv_rng_of(1, 2);
	uint64_t v = rv_rng_u64(&same);
	assert_true(v != rv_rng_u64(&other_stream) && v != rv_rng_u64(&other_seed));
}

static void every_call_takes_one_counter_value(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(9, 9);
	(void)rv_rng_u64(&r);
	(void)rv_rng_below(&r, 3);
	(void)rv_rng_double(&r);
	(void)rv_rng_normal(&r);
	assert_int_equal(r.counter, 4);
}

static void below_stays_below_and_reaches_all(void **state) {
	(void)state;
	static const uint64_t limits[] = {1, 2, 3, 7, 17, 33, 127, 1023, 1ull << 32, (1ull << 63) + 1, UINT64_MAX};
	struct rv_rng r = rv_rng_of(3, 0);
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		for (int k = 0; k < 1000; k++)
			assert_true(rv_rng_below(&r, limits[i]) < limits[i]);
	}
	int counts[7] = {0};
	for (int k = 0; k < 70000; k++)
		counts[rv_rng_below(&r, 7)]++;
	for (int k = 0; k < 7; k++)
		assert_in_range(counts[k], 9500, 10500);
}

static void doubles_fill_the_unit_interval(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(4, 0);
	double sum = 0, low = 1, high = 0;
	for (int k = 0; k < 100000; k++) {
		double v = rv_rng_double(&r);
		assert_true(v >= 0 && v < 1);
		sum += v;
		low = v < low ? v : low;
		high = v > high ? v : high;
	}
	assert_true(fabs(sum / 100000 - 0.5) < 0.005);
	assert_true(low < 1e-4 && high > 1 - 1e-4);
}

static void check_normal(uint64_t stream, uint64_t counter, double want) {
	struct rv_rng r = rv_rng_of(42, stream);
	r.counter = counter;
	double got = rv_rng_normal(&r);
	if (fabs(got - want) > 4e-15 * fabs(want))
		fail_msg("stream %#llx counter %#llx: %.17g, want %.17g", (unsigned long long)stream,
				 (unsigned long long)counter, got, want);
}

static void normal_matches_an_independent_as241(void **state) {
	(void)state;
	/* CPython's statistics.NormalDist().inv_cdf at the same uniform. */
	static const double centre[] = {1.2580545718832397,   -0.3180204862239541, 1.5342033291414514,
									-0.01702758679009279, -0.9640983810976895, 1.3831771604862522};
	for (uint64_t i = 0; i < 6; i++)
		check_normal(7, i, centre[i]);
	check_normal(7, 192, 3.380896510517381);
}

static void normal_is_right_in_the_tails(void **state) {
	(void)state;
	/* Counters found by running Philox backwards from the wanted uniform (it is a bijection). */
	static const struct {
		uint64_t stream, counter;
		double want;
	} tails[] = {
		{0x4e04a489e3ef91fe, 0xb9dde2f85af881a3, -8.209536151601386}, /* p = 2^-53, the smallest */
		{0xda916fe17bd4842e, 0x781de687b0679a51, 8.209536151601386},
		{0xe7fe0113fc19c47a, 0xbcae31a0e049a3eb, -7.04768326661057},
		{0x7749e7513e3c0062, 0x40b8c225d5055a75, -2.6600674686174495},
		{0xa921f62c4e2a5268, 0x8ae8c59aff5b0026, -4.763001034244331},
		{0xfbfae3251eb59bb8, 0xc686c7ac57f15ee3, -6.230260063289477},
		{0x304b67cada102074, 0x8c3a9ace81652582, 2.7829164246717676e-16}, /* next to the median */
		{0xeded3fe55942c599, 0x0c32d1c30ec5604e, -2.7829164246717676e-16},
	};
	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++)
		check_normal(tails[i].stream, tails[i].counter, tails[i].want);
}

static void normal_has_its_moments(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(5, 0);
	double m[5] = {0};
	int n = 200000;
	for (int i = 0; i < n; i++) {
		double v = rv_rng_normal(&r), p = 1;
		for (int k = 1; k <= 4; k++) {
			p *= v;
			m[k] += p / n;
		}
	}
	assert_true(fabs(m[1]) < 0.01 && fabs(m[2] - 1) < 0.02 && fabs(m[3]) < 0.04 && fabs(m[4] - 3) < 0.12);
}

/* The bits themselves, so that a compiler, a flag or a machine that changes one is caught. */
static void normal_has_the_same_bits_everywhere(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(6, 0);
	uint64_t mix = 0;
	for (int i = 0; i < 100000; i++) {
		double v = rv_rng_normal(&r);
		uint64_t bits;
		memcpy(&bits, &v, sizeof bits);
		mix = (mix ^ bits) * 0x9e3779b97f4a7c15u;
	}
	assert_true(mix == 0x3dc22b61825b2693u);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_known_answers),
		cmocka_unit_test(a_value_depends_on_its_counter_only),
		cmocka_unit_test(every_call_takes_one_counter_value),
		cmocka_unit_test(below_stays_below_and_reaches_all),
		cmocka_unit_test(doubles_fill_the_unit_interval),
		cmocka_unit_test(normal_matches_an_independent_as241),
		cmocka_unit_test(normal_is_right_in_the_tails),
		cmocka_unit_test(normal_has_its_moments),
		cmocka_unit_test(normal_has_the_same_bits_everywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
