/* codec_checks.c: see codec_checks.h. */
#include "tests/outer/codec_checks.h"

#include "base/registries.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(size_t bytes) {
	void *p = malloc(bytes > 0 ? bytes : 1);
	assert_non_null(p);
	return p;
}

static float *floats(size_t n) {
	return allocate(n * sizeof(float));
}

/* x (n) encoded; the caller's. */
static uint8_t *encoded(const struct codec *c, const float *x, size_t n) {
	uint8_t *code = allocate(c->encoded_bytes(c, n));
	assert_int_equal(c->encode(c, x, n, code, NULL), RV_OK);
	return code;
}

/* decode(encode(x)) -> y (n). */
static void code_and_decode(const struct codec *c, const float *x, size_t n, float *y) {
	uint8_t *code = encoded(c, x, n);
	assert_int_equal(c->decode(c, code, n, y, NULL), RV_OK);
	free(code);
}

void check_one_encoding(const struct codec *c, const float *x, size_t n) {
	float *y = floats(n);
	code_and_decode(c, x, n, y);
	uint8_t *first = encoded(c, x, n), *again = encoded(c, y, n);
	assert_memory_equal(first, again, c->encoded_bytes(c, n));
	free(first);
	free(again);
	free(y);
}

void check_odd(const struct codec *c, const float *x, size_t n) {
	float *y = floats(n), *negative = floats(n);
	code_and_decode(c, x, n, y);
	for (size_t i = 0; i < n; i++)
		negative[i] = -x[i];
	code_and_decode(c, negative, n, negative);
	for (size_t i = 0; i < n; i++)
		assert_true(negative[i] == -y[i]);
	free(y);
	free(negative);
}

void check_delta_and_decode_add(const struct codec *c, size_t n) {
	float *x = floats(n), *y = floats(n), *z = floats(n);
	fill_normal(x, n, n);
	fill_normal(y, n, n + 1);
	for (size_t i = 0; i < n; i++)
		z[i] = x[i] - y[i];
	uint8_t *code = encoded(c, z, n), *delta = allocate(c->encoded_bytes(c, n));
	assert_int_equal(c->encode_delta(c, x, y, n, delta, NULL), RV_OK);
	assert_memory_equal(code, delta, c->encoded_bytes(c, n));
	assert_int_equal(c->decode(c, code, n, z, NULL), RV_OK);
	for (int weight = 1; weight < 4; weight++) {
		memcpy(y, x, n * sizeof *x);
		assert_int_equal(c->decode_add(c, code, n, (float)weight, y, NULL), RV_OK);
		for (size_t i = 0; i < n; i++)
			assert_true(y[i] == x[i] + (float)((float)weight * z[i]));
	}
	free(x);
	free(y);
	free(z);
	free(code);
	free(delta);
}

void check_refuses_what_is_not_finite(const struct codec *c, size_t n, size_t step) {
	const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
	float *x = floats(n), *zero = calloc(n, sizeof *zero);
	uint8_t *code = allocate(c->encoded_bytes(c, n));
	assert_non_null(zero);
	for (size_t b = 0; b < COUNT_OF(bad); b++)
		for (size_t at = 0; at < n; at += step) {
			struct rv_errtext et = {0};
			char place[32];
			snprintf(place, sizeof place, "value %zu is", at);
			fill_normal(x, n, at);
			x[at] = bad[b];
			assert_int_equal(c->encode(c, x, n, code, &et), RV_E_RANGE);
			assert_non_null(strstr(et.text, place));
			assert_non_null(strstr(et.text, c->name));
			et = (struct rv_errtext){0};
			assert_int_equal(c->encode_delta(c, zero, x, n, code, &et), RV_E_RANGE);
			assert_non_null(strstr(et.text, place));
		}
	free(x);
	free(zero);
	free(code);
}

void check_refused(const struct codec *c, const uint8_t *code, size_t n, const char *why) {
	struct rv_errtext et = {0};
	float *y = floats(n), *sum = calloc(n, sizeof *sum);
	assert_non_null(sum);
	assert_int_equal(c->decode(c, code, n, y, &et), RV_E_CORRUPT);
	if (!strstr(et.text, why))
		fail_msg("%s: '%s' does not say '%s'", c->name, et.text, why);
	assert_int_equal(c->decode_add(c, code, n, 1, sum, &et), RV_E_CORRUPT);
	free(y);
	free(sum);
}

bool check_any_bytes(const struct codec *c, const uint8_t *code, size_t n) {
	float *x = floats(n);
	const bool taken = c->decode(c, code, n, x, NULL) == RV_OK;
	if (taken) {
		for (size_t i = 0; i < n; i++)
			assert_true(isfinite(x[i]));
		uint8_t *again = encoded(c, x, n);
		assert_memory_equal(code, again, c->encoded_bytes(c, n));
		free(again);
	}
	free(x);
	return taken;
}

double codec_relative_error(const struct codec *c, const float *x, size_t n) {
	float *y = floats(n);
	double signal = 0, noise = 0;
	code_and_decode(c, x, n, y);
	for (size_t i = 0; i < n; i++) {
		signal += (double)x[i] * (double)x[i];
		noise += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
	}
	free(y);
	return sqrt(noise / signal);
}

int codec_even_steps(const struct codec *c) {
	static const struct {
		const struct codec *codec;
		int steps;
	} known[] = {{&codec_int8, 127}, {&codec_int16, 32767}, {&codec_int4, 7}};
	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (known[i].codec == c)
			return known[i].steps;
	return 0;
}

unsigned codec_facts_of(const struct codec *c) {
	int i = 0;
	while (codec_registry[i] != c)
		i++;
	return codec_facts[i].facts;
}
