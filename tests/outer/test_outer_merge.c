/* The aggregation rules. clipped: whose contribution is scaled down and by how much, when it is the
 * plain mean to the bit, and what is measured. trimmed: what is left out, and what it
 * withstands. */
#include "outer/merge.h"

#include "base/hash.h"
#include "base/hex.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <stdlib.h>
#include <string.h>

enum { N = 4099, MAX_IN = 8 };

static float x[MAX_IN][N], scratch[N], values[N], mean[N];
static uint8_t in[MAX_IN][5 * N], out[5 * N], plain[5 * N];
static const uint8_t *const ins[MAX_IN] = {in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]};
static const uint32_t ones[MAX_IN] = {1, 1, 1, 1, 1, 1, 1, 1};

/* Contribution i is s[i] times integers that depend on i and the place alone, of about equal norms:
 * the same on every machine. */
static void contribute(const struct codec *c, const float *s, int n_in) {
	for (int i = 0; i < n_in; i++) {
		for (int k = 0; k < N; k++)
			x[i][k] = s[i] * (float)((k * 7919 + i * 104729) % 2001 - 1000) * 0x1p-10f;
		assert_int_equal(c->encode(c, x[i], N, in[i], NULL), RV_OK);
	}
}

/* Merges by "clipped"; clip 0: by "mean". */
static void merge(const struct codec *c, double clip, const uint32_t *weights, int n_in, uint8_t *to,
				  struct merge_measured *measured) {
	const struct merge_rule rule = {.ops = clip > 0 ? &merge_clipped : &merge_mean,
									.contributions = c,
									.mean = &codec_fp32,
									.params = {.clip = clip}};
	assert_int_equal(merge_chunk(&rule, ins, weights, n_in, N, scratch, NULL, to, measured, NULL), RV_OK);
}

static double norm_of(const float *v) {
	double sum = 0;
	for (int k = 0; k < N; k++)
		sum += (double)v[k] * (double)v[k];
	return sqrt(sum);
}

/* Nobody is beyond the limit, or there is none: the same bytes, whatever the codec and the
 * weights. */
static void test_within_the_limit_nothing_changes(void **state) {
	(void)state;
	const float within[] = {1, 1.9f, 0.01f, -1.9f, 1, 1, 0.9f, 1};
	const uint32_t tokens[] = {61440, 30720, 1, 123457, 5, 5, 5, 9};
	for (int c = 0; codec_registry[c]; c++)
		for (int n_in = 1; n_in <= MAX_IN; n_in++) {
			contribute(codec_registry[c], within, n_in);
			merge(codec_registry[c], 0, tokens, n_in, plain, NULL);
			merge(codec_registry[c], n_in < 4 ? 300 : 2, tokens, n_in, out, NULL);
			assert_memory_equal(out, plain, sizeof mean);
		}
}

/* One of four, far too large: it counts as if it had been sent `clip` times as large as the others,
 * in its own direction. */
static void test_what_is_too_large_is_scaled_down(void **state) {
	(void)state;
	const float attack[] = {1, 1, 1, -100};
	for (int c = 0; codec_registry[c]; c++) {
		struct merge_measured m = {.values = values};
		contribute(codec_registry[c], attack, 4);
		merge(codec_registry[c], 2, ones, 4, out, &m);
		memcpy(mean, out, sizeof mean);
		double limit = 0, largest = 0;
		for (int i = 0; i < 3; i++)
			limit = fmax(limit, sqrt(m.norm2[i]));
		for (int k = 0; k < N; k++)
			largest = fmax(largest, fabs((double)mean[k]));
		assert_int_equal(m.clipped[0] + m.clipped[1] + m.clipped[2], 0);
		assert_int_equal(m.clipped[3], 1);
		assert_true(norm_of(mean) <= (3 * limit + 2 * limit) / 4 * 1.001);
		assert_true(sqrt(m.norm2[3]) > 50 * limit);
	}
}

/* As merge.h says it: sums of squares in 16 lanes. */
static double norm_in_lanes(const float *v) {
	double lanes[16] = {0};
	for (int k = 0; k < N; k++)
		lanes[k % 16] += (double)v[k] * (double)v[k];
	for (int half = 8; half > 0; half /= 2)
		for (int l = 0; l < half; l++)
			lanes[l] += lanes[l + half];
	return sqrt(lanes[0]);
}

/* Written out, for fp32: of 0.75, 1, 1.2, 1.5, 77 the median is 1.2; a factor is one quotient and
 * one product in double, rounded to fp32 once. */
static void test_the_clipped_mean_is_this_loop(void **state) {
	(void)state;
	const float s[] = {1, -77, 1.5f, 0.75f, 1.2f};
	const uint32_t weights[] = {3, 2, 1, 4, 2};
	contribute(&codec_fp32, s, 5);
	merge(&codec_fp32, 1.1, weights, 5, out, NULL);
	memcpy(mean, out, sizeof mean);
	const double limit = 1.1 * norm_in_lanes(x[4]);
	const float factors[] = {3, (float)(limit / norm_in_lanes(x[1]) * 2), (float)(limit / norm_in_lanes(x[2])), 4, 2};
	for (int k = 0; k < N; k++) {
		float sum = 0;
		for (int i = 0; i < 5; i++)
			sum = sum + factors[i] * x[i][k];
		assert_true(mean[k] == sum / 12);
	}
}

/* With an even number the lower one of the middle: half of the roster cannot raise the limit. */
static void test_the_median_of_an_even_roster(void **state) {
	(void)state;
	const float s[] = {-50, 1, -50, 1};
	contribute(&codec_fp32, s, 4);
	merge(&codec_fp32, 2, ones, 4, out, NULL);
	memcpy(mean, out, sizeof mean);
	double limit = 2 * fmin(norm_of(x[1]), norm_of(x[3]));
	assert_true(norm_of(mean) <= (2 * limit + norm_of(x[1]) + norm_of(x[3])) / 4 * 1.001);
}

/* Of two norms neither is known to be wrong. */
static void test_two_are_not_limited(void **state) {
	(void)state;
	const float s[] = {1, 1000};
	for (int n_in = 1; n_in <= 2; n_in++) {
		contribute(&codec_int8, s, n_in);
		merge(&codec_int8, 0, ones, n_in, plain, NULL);
		merge(&codec_int8, 1, ones, n_in, out, NULL);
		assert_memory_equal(out, plain, sizeof mean);
	}
}

/* Where most have nothing, one has nothing to say; where one has nothing, the others are not held
 * back. */
static void test_norms_of_zero(void **state) {
	(void)state;
	const float all_zero[] = {0, 0, 0, 0}, one_speaks[] = {0, 0, 0, 5}, one_is_idle[] = {0, 1, 1, 1};
	contribute(&codec_int8, all_zero, 4);
	merge(&codec_int8, 2, ones, 4, out, NULL);
	for (int k = 0; k < N; k++)
		assert_int_equal(((uint32_t *)(void *)out)[k], 0);
	contribute(&codec_int8, one_speaks, 4);
	merge(&codec_int8, 2, ones, 4, out, NULL);
	memcpy(mean, out, sizeof mean);
	assert_true(norm_of(mean) == 0);
	contribute(&codec_int8, one_is_idle, 4);
	merge(&codec_int8, 2, ones, 4, out, NULL);
	merge(&codec_int8, 0, ones, 4, plain, NULL);
	assert_memory_equal(out, plain, sizeof mean);
}

/* A contribution is limited first and weighed then: the median is that of members, not of
 * weights. */
static void test_weights_do_not_move_the_limit(void **state) {
	(void)state;
	const float s[] = {1, 1, 1, 10};
	const uint32_t heavy[] = {1, 1, 1, 9};
	struct merge_measured m = {.values = values};
	contribute(&codec_fp32, s, 4);
	merge(&codec_fp32, 2, heavy, 4, out, &m);
	memcpy(mean, out, sizeof mean);
	assert_int_equal(m.clipped[3], 1);
	assert_true(norm_of(mean) < (3 + 9 * 2) / 12.0 * norm_of(x[0]) * 1.01);
}

/* What cannot be decoded is refused as without a limit, and named. */
static void test_what_is_no_encoding_is_refused(void **state) {
	(void)state;
	const float s[] = {1, 1, 1, 1};
	const struct merge_rule rule = {
		.ops = &merge_clipped, .contributions = &codec_int8, .mean = &codec_int8, .params = {.clip = 2}};
	const struct merge_rule floats = {
		.ops = &merge_clipped, .contributions = &codec_fp32, .mean = &codec_fp32, .params = {.clip = 2}};
	const uint32_t scales[] = {0x7fc00000, 0x7f800000, 0xffffffff, 0x80000000};
	for (size_t i = 0; i < COUNT_OF(scales); i++) {
		struct rv_errtext et = {0};
		contribute(&codec_int8, s, 4);
		memcpy(in[2], &scales[i], sizeof scales[i]);
		assert_int_equal(merge_chunk(&rule, ins, ones, 4, N, scratch, NULL, out, NULL, &et), RV_E_CORRUPT);
		assert_non_null(strstr(et.text, "contribution 2 of 4"));
		contribute(&codec_fp32, s, 4);
		memcpy(in[1] + 40, &scales[i], sizeof scales[i]);
		enum rv_err e = merge_chunk(&floats, ins, ones, 4, N, scratch, NULL, out, NULL, &et);
		assert_int_equal(e, i == 3 ? RV_OK : RV_E_CORRUPT); /* a negative zero is a number */
	}
}

/* Sums over chunks, against sums in double of what is decoded. */
static void test_what_is_measured(void **state) {
	(void)state;
	const float s[] = {1, -2, 30, 0};
	for (int c = 0; codec_registry[c]; c++) {
		struct merge_measured m = {.values = values};
		contribute(codec_registry[c], s, 4);
		for (int chunk = 1; chunk <= 2; chunk++)
			merge(codec_registry[c], 2, ones, 4, out, &m);
		memcpy(mean, out, sizeof mean);
		for (int i = 0; i < 4; i++) {
			double dot = 0;
			assert_int_equal(codec_registry[c]->decode(codec_registry[c], in[i], N, values, NULL), RV_OK);
			for (int k = 0; k < N; k++)
				dot += (double)values[k] * (double)mean[k];
			double norm = norm_of(values), most = norm * norm_of(mean);
			assert_true(fabs(m.norm2[i] - 2 * norm * norm) <= 1e-9 * norm * norm);
			assert_true(fabs(m.dot[i] - 2 * dot) <= 1e-6 * most);
			assert_int_equal(m.clipped[i], i == 2 ? 2 : 0);
		}
		assert_true(fabs(m.mean2 - 2 * norm_of(mean) * norm_of(mean)) <= 1e-9 * m.mean2);
		assert_true(m.mean2_of[0] == m.mean2);
		m.places = (const uint8_t[]){0, 1, 3, 2}; /* the third of four contributes to no other chunk */
		const double before = m.mean2;
		merge(codec_registry[c], 2, ones, 3, out, &m);
		assert_true(m.mean2_of[3] == m.mean2 && m.mean2_of[2] == before && m.mean2 > before);
	}
}

/* ---- trimmed ---- */

static void trim(const struct codec *c, const struct codec *of_mean, double share, const uint32_t *weights, int n_in,
				 uint8_t *to) {
	const struct merge_rule rule = {
		.ops = &merge_trimmed, .contributions = c, .mean = of_mean, .params = {.clip = 1.25, .trim_share = share}};
	float *exactly = malloc(merge_scratch(&rule, N, n_in) * sizeof *exactly);
	assert_non_null(exactly);
	assert_int_equal(merge_chunk(&rule, ins, weights, n_in, N, exactly, NULL, to, NULL, NULL), RV_OK);
	free(exactly);
}

/* Written out: sort the members by their value, leave out both ends, and sum the others in roster
 * order. */
static float trimmed_plainly(const float *value, const uint32_t *weights, int n_in, int left_out) {
	int order[MAX_IN];
	bool counts[MAX_IN] = {false};
	float sum = 0, weight = 0;
	for (int i = 0; i < n_in; i++) {
		int at = i;
		for (; at > 0 && value[i] < value[order[at - 1]]; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	for (int i = left_out; i < n_in - left_out; i++)
		counts[order[i]] = true;
	for (int i = 0; i < n_in; i++) {
		sum = counts[i] ? sum + (float)weights[i] * value[i] : sum;
		weight += counts[i] ? (float)weights[i] : 0;
	}
	return sum / weight;
}

static void test_the_trimmed_mean_is_this_sort(void **state) {
	(void)state;
	const float s[] = {1, -7, 1.25f, 0.5f, 3, 0, -1, 2};
	const uint32_t weights[] = {3, 1, 2, 7, 5, 2, 2, 9};
	const double shares[] = {0.01, 0.25, 0.3334, 0.5};
	for (int n_in = 1; n_in <= MAX_IN; n_in++)
		for (size_t k = 0; k < COUNT_OF(shares); k++) {
			contribute(&codec_fp32, s, n_in);
			for (int i = 0; i < n_in; i++) /* and values that are equal */
				for (int e = 0; e < N; e += 3)
					memcpy(in[i] + 4 * e, &(float){(float)(e % 7 + i % 2)}, 4);
			trim(&codec_fp32, &codec_fp32, shares[k], weights, n_in, out);
			memcpy(mean, out, sizeof mean);
			for (int e = 0; e < N; e++) {
				float value[MAX_IN];
				for (int i = 0; i < n_in; i++)
					memcpy(&value[i], in[i] + 4 * e, 4);
				assert_true(mean[e] == trimmed_plainly(value, weights, n_in, merge_trimmed_count(shares[k], n_in)));
			}
		}
}

static void test_how_many_are_trimmed(void **state) {
	(void)state;
	static const struct {
		double share;
		int n, trimmed;
	} rows[] = {{0.25, 4, 1},  {0.25, 3, 1}, {0.3334, 3, 1}, {0.2, 5, 1},   {0.3, 10, 3},
				{0.29, 10, 2}, {0.5, 4, 1},  {0.5, 5, 2},    {0.5, 1, 0},   {0.5, 2, 0},
				{0.1, 9, 1},   {0.1, 10, 1}, {0.1, 64, 6},   {0.01, 64, 1}, {0.5, 64, 31}};
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		assert_int_equal(merge_trimmed_count(rows[i].share, rows[i].n), rows[i].trimmed);
}

/* Of one or two values none is an extreme: the mean without a limit, whatever the codecs and
 * weights, byte for byte. */
static void test_without_trimming_it_is_the_mean(void **state) {
	(void)state;
	const float s[] = {1, -2, 30, 0.5f};
	const uint32_t weights[] = {3, 1, 2, 7};
	for (int c = 0; codec_registry[c]; c++)
		for (int n_in = 1; n_in <= 2; n_in++) {
			contribute(codec_registry[c], s, n_in);
			merge(codec_registry[c], 0, weights, n_in, plain, NULL);
			trim(codec_registry[c], &codec_fp32, 0.1, weights, n_in, out);
			assert_memory_equal(out, plain, sizeof mean);
		}
}

/* Two of eight send anything at all: each value stays between two of the honest ones. */
static void test_liars_move_nothing_beyond_the_honest(void **state) {
	(void)state;
	const float s[] = {1, 0.9f, -1e30f, 1.1f, 1, 1e20f, 0.8f, -1};
	contribute(&codec_fp32, s, 8);
	trim(&codec_fp32, &codec_fp32, 0.25, ones, 8, out);
	memcpy(mean, out, sizeof mean);
	for (int k = 0; k < N; k++) {
		float low = INFINITY, high = -INFINITY;
		for (int i = 0; i < 8; i++) {
			low = i == 2 || i == 5 ? low : fminf(low, x[i][k]);
			high = i == 2 || i == 5 ? high : fmaxf(high, x[i][k]);
		}
		assert_true(low <= mean[k] && mean[k] <= high);
	}
}

static void test_the_trimmed_mean_of_equals_is_one_of_them(void **state) {
	(void)state;
	contribute(&codec_int8, (const float[]){1}, 1);
	for (int i = 1; i < MAX_IN; i++)
		memcpy(in[i], in[0], codec_int8.encoded_bytes(&codec_int8, N));
	for (int n_in = 1; n_in <= MAX_IN; n_in++) {
		trim(&codec_int8, &codec_int8, 0.34, ones, n_in, out);
		assert_memory_equal(out, in[0], codec_int8.encoded_bytes(&codec_int8, N));
	}
}

static void test_the_trimmed_mean_names_what_is_no_encoding(void **state) {
	(void)state;
	const struct merge_rule rule = {
		.ops = &merge_trimmed, .contributions = &codec_int8, .mean = &codec_int8, .params = {.trim_share = 0.25}};
	float *memory = malloc(merge_scratch(&rule, N, 4) * sizeof *memory);
	struct rv_errtext et = {0};
	contribute(&codec_int8, (const float[]){1, 1, 1, 1}, 4);
	in[2][3] = 0xff;
	assert_int_equal(merge_chunk(&rule, ins, ones, 4, N, memory, NULL, out, NULL, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "contribution 2 of 4"));
	free(memory);
}

/* Bytes of this processor must be those of all others, codec by codec. */
static const struct golden {
	const struct codec *codec;
	const char *hash; /* hex of its first eight bytes */
} goldens[] = {
	{&codec_int8, "17e9b2c14c9b7b82"},    {&codec_int16, "0253768191005be2"},  {&codec_fp32, "79ce29b55d57dd7f"},
	{&codec_int4, "c6135091833d5b4e"},    {&codec_topk32, "88fee70655e64595"}, {&codec_topk64, "4f70be38a6308af3"},
	{&codec_topk128, "253ca14fceacf49c"},
};

static const char *golden_of(const struct codec *c) {
	for (size_t i = 0; i < COUNT_OF(goldens); i++)
		if (goldens[i].codec == c)
			return goldens[i].hash;
	return "none: give it a line in goldens[]";
}

static void test_golden(void **state) {
	(void)state;
	const float s[] = {1, -9, 1.25f, 0.5f, 3};
	const uint32_t weights[] = {3, 1, 2, 7, 5};
	for (const struct codec *const *c = codec_registry; *c; c++) {
		char hex[2 * 8 + 1];
		contribute(*c, s, 5);
		merge(*c, 1.5, weights, 5, out, NULL);
		const struct rv_hash hash = rv_hash_of(out, sizeof mean);
		rv_hex_encode(hash.b, 8, hex);
		if (strcmp(hex, golden_of(*c)) != 0)
			fail_msg("%s: the mean has the hash %s, must be %s", (*c)->name, hex, golden_of(*c));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within_the_limit_nothing_changes),
		cmocka_unit_test(test_what_is_too_large_is_scaled_down),
		cmocka_unit_test(test_the_clipped_mean_is_this_loop),
		cmocka_unit_test(test_the_median_of_an_even_roster),
		cmocka_unit_test(test_two_are_not_limited),
		cmocka_unit_test(test_norms_of_zero),
		cmocka_unit_test(test_weights_do_not_move_the_limit),
		cmocka_unit_test(test_what_is_no_encoding_is_refused),
		cmocka_unit_test(test_what_is_measured),
		cmocka_unit_test(test_the_trimmed_mean_is_this_sort),
		cmocka_unit_test(test_how_many_are_trimmed),
		cmocka_unit_test(test_without_trimming_it_is_the_mean),
		cmocka_unit_test(test_liars_move_nothing_beyond_the_honest),
		cmocka_unit_test(test_the_trimmed_mean_of_equals_is_one_of_them),
		cmocka_unit_test(test_the_trimmed_mean_names_what_is_no_encoding),
		cmocka_unit_test(test_golden),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
