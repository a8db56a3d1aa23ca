/* bf16 and fp16: every bit pattern decodes as the standards say, and encoding rounds to nearest
 * even. */

#include "base/rng.h"
#include "tests/common/check.h"
#include "train/files/weights_format.h"

#include <math.h>
#include <string.h>

static float decode(enum weights_format f, uint16_t v) {
	float x;
	weights_decode(f, &v, 1, &x);
	return x;
}

/* IEEE 754 binary16, by its definition. */
static double half_value(uint16_t v) {
	int exponent = v >> 10 & 31, fraction = v & 1023;
	double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
	return v & 0x8000 ? -magnitude : magnitude;
}

static void test_every_half_comes_back(void **state) {
	(void)state;
	for (uint32_t v = 0; v < 65536; v++) {
		float x = decode(WEIGHTS_F16, (uint16_t)v);
		uint16_t again = 1;
		if ((v >> 10 & 31) == 31) {
			assert_false(isfinite(x));
			assert_int_equal(weights_encode(WEIGHTS_F16, &x, 1, &again), 0);
			continue;
		}
		assert_true((double)x == half_value((uint16_t)v));
		assert_int_equal(weights_encode(WEIGHTS_F16, &x, 1, &again), 1);
		assert_int_equal(again, v);
	}
}

static void test_every_bf16_comes_back(void **state) {
	(void)state;
	for (uint32_t v = 0; v < 65536; v++) {
		float x = decode(WEIGHTS_BF16, (uint16_t)v);
		uint32_t bits;
		uint16_t again = 1;
		memcpy(&bits, &x, sizeof bits);
		assert_int_equal(bits, v << 16);
		assert_int_equal(weights_encode(WEIGHTS_BF16, &x, 1, &again), isfinite(x) ? 1 : 0);
		if (isfinite(x))
			assert_int_equal(again, v);
	}
}

/* No other number of the format is nearer; of two that are as near, the even one. */
static void check_rounding(enum weights_format f, float x) {
	uint16_t v;
	if (weights_encode(f, &x, 1, &v) == 0)
		return;
	double error = fabs((double)decode(f, v) - (double)x);
	for (int step = -1; step <= 1; step += 2) {
		uint16_t neighbour = (uint16_t)(v + step);
		float y = decode(f, neighbour);
		if (((neighbour ^ v) & 0x8000) || !isfinite(y))
			continue;
		double other = fabs((double)y - (double)x);
		assert_true(error < other || (error == other && (v & 1) == 0));
	}
}

static void test_rounds_to_nearest_even(void **state) {
	(void)state;
	struct rv_rng rng = rv_rng_of(3, 3);
	for (int i = 0; i < 200000; i++) {
		float x = (float)ldexp(rv_rng_normal(&rng), (int)rv_rng_below(&rng, 60) - 40);
		check_rounding(WEIGHTS_F16, x);
		check_rounding(WEIGHTS_BF16, x);
	}
	for (uint32_t v = 0; v < 65535; v++)
		for (int f = WEIGHTS_BF16; f <= WEIGHTS_F16; f++) { /* halfway between neighbours */
			float a = decode((enum weights_format)f, (uint16_t)v),
				  b = decode((enum weights_format)f, (uint16_t)(v + 1));
			if (isfinite(a) && isfinite(b) && fabsf(b - a) < 1e30f)
				check_rounding((enum weights_format)f, a + (b - a) / 2);
		}
}

static void test_what_does_not_fit_is_counted(void **state) {
	(void)state;
	const float values[4] = {1, 65519, 65520, 1}; /* the last that rounds to fp16's largest; the first that does not */
	uint16_t out[4];
	assert_int_equal(weights_encode(WEIGHTS_F16, values, 4, out), 2);
	assert_int_equal(out[1], 0x7bff);
	const float large = 3.4e38f; /* rounds beyond bf16's largest */
	assert_int_equal(weights_encode(WEIGHTS_BF16, &large, 1, out), 0);
	float same[4];
	assert_int_equal(weights_encode(WEIGHTS_F32, values, 4, same), 4);
	assert_memory_equal(same, values, sizeof values);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_half_comes_back),
		cmocka_unit_test(test_every_bf16_comes_back),
		cmocka_unit_test(test_rounds_to_nearest_even),
		cmocka_unit_test(test_what_does_not_fit_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
