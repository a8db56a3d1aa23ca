/* The rule "agreed": its steps written out, when it is "clipped" to the bit, who is left out, and
 * who is not. */
#include "outer/merge.h"

#include "base/hash.h"
#include "base/hex.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <math.h>
#include <string.h>

enum { N = 4099, MAX_IN = 8 };

static float x[MAX_IN][N], mean[N], values[N], scratch[(1 + MAX_IN) * N];
static uint8_t in[MAX_IN][5 * N], out[5 * N], plain[5 * N];
static const uint8_t *const ins[MAX_IN] = {in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]};
static const uint32_t ones[MAX_IN] = {1, 1, 1, 1, 1, 1, 1, 1};

static void encode(const struct codec *c, int n_in) {
	for (int i = 0; i < n_in; i++)
		assert_int_equal(c->encode(c, x[i], N, in[i], NULL), RV_OK);
}

/* What all share, and what is i's alone, of about the same norm and without a relation. */
static float shared(int k) {
	return (float)(k * 7919 % 2001 - 1000) * 0x1p-10f;
}

static float own(int i, int k) {
	return (float)(k * (k + 37 * i) % 2003 - 1001) * 0x1p-10f;
}

/* Contribution i is s[i] times (the shared part + a third of its own). */
static void contribute(const struct codec *c, const float *s, int n_in) {
	for (int i = 0; i < n_in; i++)
		for (int k = 0; k < N; k++)
			x[i][k] = s[i] * (shared(k) + own(i, k) / 3);
	encode(c, n_in);
}

static struct merge_rule rule_of(const struct merge_ops *ops, const struct codec *c) {
	return (struct merge_rule){.ops = ops, .contributions = c, .mean = &codec_fp32, .params = {.clip = 1.25}};
}

static void merge(const struct merge_ops *ops, const struct codec *c, const uint32_t *weights, int n_in, uint8_t *to,
				  struct merge_measured *measured) {
	const struct merge_rule rule = rule_of(ops, c);
	assert_true(merge_scratch(&rule, N, n_in) <= COUNT_OF(scratch));
	assert_int_equal(merge_chunk(&rule, ins, weights, n_in, N, scratch, NULL, to, measured, NULL), RV_OK);
}

/* Nobody points against the others: the bytes of "clipped", of means and of partial sums, whatever
 * the codec and the weights. */
static void test_where_all_agree_it_is_clipped(void **state) {
	(void)state;
	const float s[] = {1, 9, 0.01f, 0.9f, 1, 1, 0, 1.2f};
	const uint32_t weights[] = {3, 7, 1, 12, 5, 5, 5, 9};
	for (int c = 0; codec_registry[c]; c++)
		for (int n_in = 1; n_in <= MAX_IN; n_in++) {
			const struct merge_rule agreed = rule_of(&merge_agreed, codec_registry[c]);
			const struct merge_rule clipped = rule_of(&merge_clipped, codec_registry[c]);
			contribute(codec_registry[c], s, n_in);
			merge(&merge_clipped, codec_registry[c], weights, n_in, plain, NULL);
			merge(&merge_agreed, codec_registry[c], weights, n_in, out, NULL);
			assert_memory_equal(out, plain, sizeof mean);
			assert_int_equal(merge_partial(&clipped, ins, weights, n_in, N, scratch, plain, NULL, NULL), RV_OK);
			assert_int_equal(merge_partial(&agreed, ins, weights, n_in, N, scratch, out, NULL, NULL), RV_OK);
			assert_memory_equal(out, plain, merge_partial_bytes(N));
		}
}

/* The last of 4 and 8 points the other way, a little or far: bytes of a roster without it. */
static void test_an_opponent_weighs_nothing(void **state) {
	(void)state;
	const float sizes[] = {-0.1f, -1, -4, -1e6f};
	for (int c = 0; codec_registry[c]; c++)
		for (size_t k = 0; k < COUNT_OF(sizes); k++)
			for (int n_in = 4; n_in <= MAX_IN; n_in *= 2) {
				float s[MAX_IN] = {1, 1, 1, 1, 1, 1, 1, 1};
				struct merge_measured m = {.values = values};
				s[n_in - 1] = sizes[k];
				contribute(codec_registry[c], s, n_in);
				merge(&merge_clipped, codec_registry[c], ones, n_in - 1, plain, NULL);
				merge(&merge_agreed, codec_registry[c], ones, n_in, out, &m);
				assert_memory_equal(out, plain, sizeof mean);
				for (int i = 0; i < n_in; i++)
					assert_int_equal(m.clipped[i], i == n_in - 1);
			}
}

/* An honest one of three agrees with one and not with the other: on average not at all, which is
 * enough to stay. */
static void test_one_of_three(void **state) {
	(void)state;
	contribute(&codec_int8, (const float[]){1, 1, -4}, 3);
	merge(&merge_mean, &codec_int8, ones, 2, plain, NULL);
	merge(&merge_agreed, &codec_int8, ones, 3, out, NULL);
	assert_memory_equal(out, plain, sizeof mean);
}

/* Never half of a roster: of four one, of eight three. */
static void test_fewer_than_half_are_left_out(void **state) {
	(void)state;
	const float s[] = {1, -1, 1, -1, -1, 1, -1, 1};
	for (int n_in = 3; n_in <= MAX_IN; n_in++) {
		struct merge_measured m = {.values = values};
		int left_out = 0;
		contribute(&codec_fp32, s, n_in);
		merge(&merge_agreed, &codec_fp32, ones, n_in, out, &m);
		for (int i = 0; i < n_in; i++)
			left_out += (int)m.clipped[i];
		assert_true(left_out <= (n_in - 1) / 2);
	}
}

/* One is zero, and one is orthogonal to the sum of the others: both stay. */
static void test_what_is_orthogonal_stays(void **state) {
	(void)state;
	contribute(&codec_fp32, (const float[]){1, 1, 1, 0, 1}, 5);
	for (int k = 0; k < N; k++)
		x[4][k] = k + 1 == N ? 0 : (k % 2 ? -1 : 1) * (x[0][k ^ 1] + x[1][k ^ 1] + x[2][k ^ 1]) / 4;
	encode(&codec_fp32, 5);
	merge(&merge_clipped, &codec_fp32, ones, 5, plain, NULL);
	merge(&merge_agreed, &codec_fp32, ones, 5, out, NULL);
	assert_memory_equal(out, plain, sizeof mean);
}

/* ---- written out ---- */

/* As codec_fp32's dot product: 16 lanes. */
static double dot_in_lanes(const float *a, const float *b) {
	double lanes[16] = {0};
	for (int k = 0; k < N; k++)
		lanes[k % 16] += (double)a[k] * (double)b[k];
	for (int half = 8; half > 0; half /= 2)
		for (int l = 0; l < half; l++)
			lanes[l] += lanes[l + half];
	return lanes[0];
}

static double cosine_plainly(int i, int k) {
	return dot_in_lanes(x[i], x[k]) / (sqrt(dot_in_lanes(x[i], x[i])) * sqrt(dot_in_lanes(x[k], x[k])));
}

/* Returns the mean of contribution i's cosines with the others, each at most `most`. */
static double agreement_plainly(int i, int n_in, double most) {
	double sum = 0;
	for (int k = 0; k < n_in; k++)
		sum += k == i ? 0 : fmin(cosine_plainly(i, k), most);
	return sum / (n_in - 1);
}

/* Returns the cosine below which three quarters of the pairs are. */
static double quartile_plainly(int n_in) {
	double pairs[MAX_IN * MAX_IN];
	int n = 0;
	for (int i = 0; i < n_in; i++)
		for (int k = 0; k < i; k++) {
			int at = n++;
			for (; at > 0 && pairs[at - 1] > cosine_plainly(i, k); at--)
				pairs[at] = pairs[at - 1];
			pairs[at] = cosine_plainly(i, k);
		}
	return pairs[3 * n / 4];
}

/* Seven, of which two send one and the same vector, the opposite of what they have in common with
 * the others: each agrees with the other one, which counts no more than honest ones do. */
static void test_the_agreed_mean_is_this_loop(void **state) {
	(void)state;
	const uint32_t weights[] = {3, 2, 1, 4, 2, 6, 5};
	const double chance = 2 / sqrt((double)N * 6);
	for (int i = 0; i < 7; i++)
		for (int k = 0; k < N; k++)
			x[i][k] = i == 1 || i == 3 ? own(1, k) - 0.25f * shared(k) : own(i, k) + 0.75f * shared(k);
	encode(&codec_fp32, 7);
	const double most = quartile_plainly(7);
	assert_true(agreement_plainly(1, 7, 1) > 0 && agreement_plainly(1, 7, most) < -chance);
	for (int i = 0; i < 7; i++)
		assert_true(i == 1 || i == 3 || agreement_plainly(i, 7, most) > -chance);
	merge(&merge_agreed, &codec_fp32, weights, 7, out, NULL);
	memcpy(mean, out, sizeof mean);
	for (int k = 0; k < N; k++) {
		float sum = 0;
		for (int i = 0; i < 7; i++)
			sum = sum + (i == 1 || i == 3 ? 0 : (float)weights[i]) * x[i][k];
		assert_true(mean[k] == sum / 17);
	}
}

/* A row whose opponent is left out counts by the weights of all its members. */
static void test_a_partial_sum_has_the_weight_of_the_row(void **state) {
	(void)state;
	const struct merge_rule rule = rule_of(&merge_agreed, &codec_fp32);
	const uint32_t weights[] = {2, 3, 1, 6};
	contribute(&codec_fp32, (const float[]){1, 1, 1, -1}, 4);
	merge(&merge_agreed, &codec_fp32, weights, 4, out, NULL);
	memcpy(mean, out, sizeof mean);
	assert_int_equal(merge_partial(&rule, ins, weights, 4, N, scratch, out, NULL, NULL), RV_OK);
	memcpy(values, out, sizeof values);
	for (int k = 0; k < N; k++)
		assert_true(values[k] == mean[k] * 12);
}

static void test_what_is_no_encoding_is_named(void **state) {
	(void)state;
	const struct merge_rule rule = rule_of(&merge_agreed, &codec_int8);
	struct rv_errtext et = {0};
	contribute(&codec_int8, (const float[]){1, 1, -1, 1}, 4);
	in[2][3] = 0xff;
	assert_int_equal(merge_chunk(&rule, ins, ones, 4, N, scratch, NULL, out, NULL, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "contribution 2 of 4"));
}

/* Bytes of this processor must be those of all others: an integer codec, whose dot product is its
 * own, and one that is decoded. */
static void test_golden(void **state) {
	(void)state;
	static const struct golden {
		const struct codec *codec;
		const char *hash; /* hex of its first eight bytes */
	} goldens[] = {{&codec_int8, "75eea82842325dad"}, {&codec_topk64, "39632e0851f49dc7"}};
	const uint32_t weights[] = {3, 1, 2, 7, 5};
	for (size_t i = 0; i < COUNT_OF(goldens); i++) {
		char hex[2 * 8 + 1];
		contribute(goldens[i].codec, (const float[]){1, -9, 1.25f, 0.5f, 3}, 5);
		merge(&merge_agreed, goldens[i].codec, weights, 5, out, NULL);
		const struct rv_hash hash = rv_hash_of(out, sizeof mean);
		rv_hex_encode(hash.b, 8, hex);
		if (strcmp(hex, goldens[i].hash) != 0)
			fail_msg("%s: the mean has the hash %s, must be %s", goldens[i].codec->name, hex, goldens[i].hash);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_all_agree_it_is_clipped),
		cmocka_unit_test(test_an_opponent_weighs_nothing),
		cmocka_unit_test(test_one_of_three),
		cmocka_unit_test(test_fewer_than_half_are_left_out),
		cmocka_unit_test(test_what_is_orthogonal_stays),
		cmocka_unit_test(test_the_agreed_mean_is_this_loop),
		cmocka_unit_test(test_a_partial_sum_has_the_weight_of_the_row),
		cmocka_unit_test(test_what_is_no_encoding_is_named),
		cmocka_unit_test(test_golden),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
