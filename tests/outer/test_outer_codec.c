/* The registry of codecs, and means without a limit against a mean in double. (The limit:
 * test_outer_merge.c) */
#include "outer/merge.h"
#include "tests/common/check.h"
#include "tests/outer/codec_checks.h"
#include "tests/outer/vectors.h"

#include <stdlib.h>
#include <string.h>

enum { N = 1023, MAX_IN = 16, MAX_EQUAL = 64 };

static float x[N], scratch[N], decoded[N];
static uint8_t in[MAX_IN][4 * N], out[4 * N], out2[4 * N];
static const uint8_t *ins[MAX_IN];

static enum rv_err mean_of(const struct codec *contributions, const struct codec *mean, const uint8_t *const *vectors,
						   const uint32_t *weights, int n_in, size_t n, float *values, uint8_t *code,
						   struct rv_errtext *et) {
	const struct merge_rule rule = {.ops = &merge_mean, .contributions = contributions, .mean = mean};
	return merge_chunk(&rule, vectors, weights, n_in, n, values, NULL, code, NULL, et);
}

/* Contribution i holds the normal vector of seed `first_seed` + i. */
static void contribute(const struct codec *c, int n_in, uint64_t first_seed) {
	for (int i = 0; i < n_in; i++) {
		fill_normal(x, N, first_seed + (uint64_t)i);
		assert_int_equal(c->encode(c, x, N, in[i], NULL), RV_OK);
		ins[i] = in[i];
	}
}

static void test_registry(void **state) {
	(void)state;
	for (int i = 0; codec_registry[i]; i++) {
		assert_string_equal(codec_registry[i]->name, codec_facts[i].name);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(codec_registry[j]->id, codec_registry[i]->id);
	}
	assert_ptr_equal(codec_registry[CODEC_int4], &codec_int4);
	assert_int_equal(codec_int8.id, 1);
	assert_int_equal(codec_fp32.id, 2);
	assert_int_equal(codec_int4.id, 3);
	assert_int_equal(codec_topk32.id, 7);
	assert_int_equal(codec_topk64.id, 8);
	assert_int_equal(codec_topk128.id, 9);
	assert_int_equal(codec_int16.id, 11);
}

/* The facts of base/codecs.def against the code. */
static void test_facts(void **state) {
	(void)state;
	for (int i = 0; codec_registry[i]; i++) {
		const struct codec *c = codec_registry[i];
		const unsigned facts = codec_facts[i].facts;
		int zeros = 0, moved = 0;
		for (int k = 0; k < N; k++)
			x[k] = sinf((float)k); /* of about one size */
		assert_int_equal(c->encode(c, x, N, in[0], NULL), RV_OK);
		assert_int_equal(c->decode(c, in[0], N, decoded, NULL), RV_OK);
		for (int k = 0; k < N; k++) {
			zeros += decoded[k] == 0;
			moved += decoded[k] != 0 && decoded[k] != x[k];
		}
		assert_int_equal((facts & CODEC_ROUNDS) != 0, moved > 0);
		assert_int_equal((facts & CODEC_SPARSE) != 0, zeros > N * 9 / 10);
		assert_int_equal(codec_of_mean[codec_of_mean[i]], codec_of_mean[i]);
	}
}

/* How far one encoding may move a value in a block whose largest is `most`, in a chunk whose
 * largest is `largest`: by that where the codec's values are not known. */
static double encoding_error(const struct codec *c, double most, double largest) {
	if (codec_even_steps(c) > 0)
		return most / (2 * codec_even_steps(c));
	return codec_facts_of(c) & (CODEC_ROUNDS | CODEC_SPARSE) ? largest : 0;
}

/* Against the mean, in double, of the decoded contributions: only rounding and one encoding may
 * differ. */
static void check_mean(const struct codec *c, const uint32_t *weights, int n_in) {
	double mean[N] = {0}, total = 0, largest = 0, most[(N + 255) / 256] = {0};
	contribute(c, n_in, 100);
	for (int i = 0; i < n_in; i++) {
		assert_int_equal(c->decode(c, in[i], N, decoded, NULL), RV_OK);
		total += weights[i];
		for (int j = 0; j < N; j++)
			mean[j] += weights[i] * (double)decoded[j];
	}
	for (int j = 0; j < N; j++) {
		mean[j] /= total;
		most[j / 256] = fmax(most[j / 256], fabs(mean[j]));
		largest = fmax(largest, fabs(mean[j]));
	}
	assert_int_equal(mean_of(c, c, ins, weights, n_in, N, scratch, out, NULL), RV_OK);
	assert_int_equal(c->decode(c, out, N, decoded, NULL), RV_OK);
	for (int j = 0; j < N; j++) {
		double rounding = most[j / 256] * 1e-5;
		double step = encoding_error(c, most[j / 256], largest) * (1 + 0x1p-12);
		assert_true(fabs(decoded[j] - mean[j]) <= step + rounding);
	}
}

static void test_mean(void **state) {
	(void)state;
	const uint32_t equal[MAX_IN] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	const uint32_t tokens[] = {61440, 61440, 30720, 1, 123457};
	for (int k = 1; k <= MAX_IN; k++)
		for (int i = 0; codec_registry[i]; i++)
			check_mean(codec_registry[i], equal, k);
	for (int i = 0; codec_registry[i]; i++)
		check_mean(codec_registry[i], tokens, COUNT_OF(tokens));
}

/* Written out: the order is the caller's, from zero, in fp32. */
static void test_fp32_mean_is_this_loop(void **state) {
	(void)state;
	const uint32_t weights[] = {3, 1, 2};
	contribute(&codec_fp32, 3, 7);
	assert_int_equal(mean_of(&codec_fp32, &codec_fp32, ins, weights, 3, N, scratch, out, NULL), RV_OK);
	for (int j = 0; j < N; j++) {
		float sum = 0, mean;
		for (int i = 0; i < 3; i++) {
			float v;
			memcpy(&v, in[i] + 4 * j, 4);
			sum = sum + (float)weights[i] * v;
		}
		memcpy(&mean, out + 4 * j, 4);
		assert_true(mean == sum / 6);
	}
}

/* Equal contributions. Codes and levels: the mean is the contribution, byte for byte, for any
 * number of them, because rounding in the sum is far below what the scale keeps. Values as they
 * are: exact for 1, 2 and 4; beyond, x+x+...+x rounds on the way. */
static void test_mean_of_equals(void **state) {
	(void)state;
	uint32_t weights[MAX_EQUAL];
	const uint8_t *same[MAX_EQUAL];
	for (int i = 0; codec_registry[i]; i++) {
		const struct codec *c = codec_registry[i];
		contribute(c, 1, 42);
		assert_int_equal(c->decode(c, in[0], N, x, NULL), RV_OK);
		for (int k = 1; k <= MAX_EQUAL; k++) {
			weights[k - 1] = 1;
			same[k - 1] = in[0];
			assert_int_equal(mean_of(c, c, same, weights, k, N, scratch, out, NULL), RV_OK);
			if (codec_facts_of(c) & CODEC_ROUNDS || k == 1 || k == 2 || k == 4)
				assert_memory_equal(out, in[0], c->encoded_bytes(c, N));
			assert_int_equal(c->decode(c, out, N, decoded, NULL), RV_OK);
			for (int j = 0; j < N; j++)
				assert_true(fabsf(decoded[j] - x[j]) <= (float)k * 0x1p-24f * fabsf(x[j]));
		}
	}
}

/* Weights count like repetitions of exact values. */
static void test_weights_are_repetitions(void **state) {
	(void)state;
	const uint32_t weights[] = {1, 3}, ones[] = {1, 1, 1, 1};
	contribute(&codec_int8, 2, 5);
	for (int i = 0; i < 2; i++) { /* few bits, so that no order of summation rounds */
		for (int j = 0; j < N; j++)
			x[j] = (float)((i * 31 + j * 17) % 255 - 127);
		x[0] = x[256] = x[512] = x[768] = 127;
		assert_int_equal(codec_int8.encode(&codec_int8, x, N, in[i], NULL), RV_OK);
	}
	const uint8_t *repeated[] = {in[0], in[1], in[1], in[1]};
	assert_int_equal(mean_of(&codec_int8, &codec_int8, ins, weights, 2, N, scratch, out, NULL), RV_OK);
	assert_int_equal(mean_of(&codec_int8, &codec_int8, repeated, ones, 4, N, scratch, out2, NULL), RV_OK);
	assert_memory_equal(out, out2, codec_int8.encoded_bytes(&codec_int8, N));
}

static void test_mean_names_the_corrupt_contribution(void **state) {
	(void)state;
	const uint32_t ones[] = {1, 1, 1};
	struct rv_errtext et = {0};
	contribute(&codec_int8, 3, 5);
	in[1][3] = 0xff; /* a negative scale */
	assert_int_equal(mean_of(&codec_int8, &codec_int8, ins, ones, 3, N, scratch, out, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "contribution 1 of 3"));
}

/* Two codecs: the mean of what the first one says, encoded by the second. */
static void test_mean_by_another_codec(void **state) {
	(void)state;
	const uint32_t weights[] = {2, 1, 1};
	contribute(&codec_topk32, 3, 9);
	assert_int_equal(mean_of(&codec_topk32, &codec_fp32, ins, weights, 3, N, scratch, out, NULL), RV_OK);
	memset(x, 0, sizeof x);
	for (int i = 0; i < 3; i++)
		assert_int_equal(codec_topk32.decode_add(&codec_topk32, in[i], N, (float)weights[i], x, NULL), RV_OK);
	for (int j = 0; j < N; j++)
		x[j] /= 4;
	assert_memory_equal(out, x, sizeof x);
	assert_int_equal(mean_of(&codec_topk32, &codec_int8, ins, weights, 3, N, scratch, out, NULL), RV_OK);
	assert_int_equal(codec_int8.encode(&codec_int8, x, N, out2, NULL), RV_OK);
	assert_memory_equal(out, out2, codec_int8.encoded_bytes(&codec_int8, N));
}

static void test_mean_that_overflows(void **state) {
	(void)state;
	const uint32_t ones[] = {1, 1};
	for (int j = 0; j < N; j++)
		x[j] = 3e38f;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(codec_fp32.encode(&codec_fp32, x, N, in[i], NULL), RV_OK);
		ins[i] = in[i];
	}
	assert_int_equal(mean_of(&codec_fp32, &codec_fp32, ins, ones, 2, N, scratch, out, NULL), RV_E_RANGE);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registry),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_mean),
		cmocka_unit_test(test_fp32_mean_is_this_loop),
		cmocka_unit_test(test_mean_of_equals),
		cmocka_unit_test(test_weights_are_repetitions),
		cmocka_unit_test(test_mean_names_the_corrupt_contribution),
		cmocka_unit_test(test_mean_by_another_codec),
		cmocka_unit_test(test_mean_that_overflows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
