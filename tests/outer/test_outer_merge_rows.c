/* Contributions merged in two levels: partial sums of rows, and their join. With one row the bytes
 * are merge_chunk's; with several the mean is the weighted one, and every rule acts row by row. */
#include "outer/merge.h"

#include "tests/common/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4099, MAX_IN = 12 };

static float x[MAX_IN][N], mean[N];
static uint8_t in[MAX_IN][5 * N], out[5 * N], other[5 * N];
static const uint8_t *ins[MAX_IN];
static const uint32_t weights[MAX_IN] = {3, 1, 70000, 5, 2, 9, 9, 1, 4000, 77, 6, 2};

static void contribute(const struct codec *c, const float *scale) {
	for (int i = 0; i < MAX_IN; i++) {
		for (int k = 0; k < N; k++)
			x[i][k] = (scale ? scale[i] : 1) * (float)((k * 7919 + i * 104729) % 2001 - 1000) * 0x1p-10f;
		assert_int_equal(c->encode(c, x[i], N, in[i], NULL), RV_OK);
		ins[i] = in[i];
	}
}

static struct merge_rule rule_of(const struct merge_ops *ops, const struct codec *c) {
	return (struct merge_rule){
		.ops = ops, .contributions = c, .mean = &codec_fp32, .params = {.clip = 1.25, .trim_share = 0.25}};
}

static void roster(const struct merge_rule *rule, const struct merge_layout *l, uint8_t *to) {
	float *scratch = malloc(merge_roster_scratch(rule, l, N) * sizeof *scratch);
	assert_int_equal(merge_roster(rule, l, ins, weights, N, scratch, NULL, to, NULL), RV_OK);
	free(scratch);
}

static void test_one_row_is_the_plain_merge(void **state) {
	(void)state;
	for (int m = 0; merge_registry[m]; m++)
		for (int c = 0; codec_registry[c]; c++) {
			const struct merge_rule rule = rule_of(merge_registry[m], codec_registry[c]);
			const struct merge_layout l = merge_layout_of(MAX_IN, 64);
			float *scratch = malloc(merge_scratch(&rule, N, MAX_IN) * sizeof *scratch);
			contribute(codec_registry[c], NULL);
			assert_int_equal(l.n_rows, 1);
			roster(&rule, &l, out);
			assert_int_equal(merge_chunk(&rule, ins, weights, MAX_IN, N, scratch, NULL, other, NULL, NULL), RV_OK);
			assert_memory_equal(out, other, sizeof mean);
			free(scratch);
		}
}

/* A mean without limits, of values that fp32 sums exactly, does not depend on the layout. */
static void test_rows_give_the_weighted_mean(void **state) {
	(void)state;
	const struct merge_rule rule = rule_of(&merge_mean, &codec_fp32);
	for (int i = 0; i < MAX_IN; i++) {
		for (int k = 0; k < N; k++)
			x[i][k] = (float)((k * 31 + i * 17) % 64 - 32);
		assert_int_equal(codec_fp32.encode(&codec_fp32, x[i], N, in[i], NULL), RV_OK);
		ins[i] = in[i];
	}
	const struct merge_layout one = merge_layout_of(MAX_IN, 64);
	roster(&rule, &one, other);
	for (int size = 2; size < MAX_IN; size++) {
		const struct merge_layout l = merge_layout_of(MAX_IN, size);
		assert_true(l.n_rows > 1);
		roster(&rule, &l, out);
		assert_memory_equal(out, other, sizeof mean);
	}
	memcpy(mean, other, sizeof mean);
	for (int k = 0; k < N; k += 101) {
		double sum = 0, all = 0;
		for (int i = 0; i < MAX_IN; i++) {
			sum += weights[i] * (double)x[i][k];
			all += weights[i];
		}
		assert_true(fabs(mean[k] - sum / all) <= 1e-6 * 32);
	}
}

/* Two rows in which one contribution each is limited by its own row's median, not by that of
 * all. */
static void test_a_rule_acts_row_by_row(void **state) {
	(void)state;
	const float scale[MAX_IN] = {1, 1, 1, 1, 1, 9, 100, 100, 100, 100, 100, 900};
	const struct merge_layout l = {.n_rows = 2, .length = {6, 6}};
	for (int m = 0; merge_registry[m]; m++) {
		const struct merge_rule rule = rule_of(merge_registry[m], &codec_int8);
		float *scratch = malloc(merge_scratch(&rule, N, MAX_IN) * sizeof *scratch);
		uint8_t *part[2];
		uint32_t row_weights[2] = {0, 0};
		contribute(&codec_int8, scale);
		for (int r = 0; r < 2; r++) {
			part[r] = malloc(merge_partial_bytes(N));
			for (int i = 0; i < 6; i++)
				row_weights[r] += weights[6 * r + i];
			assert_int_equal(merge_partial(&rule, ins + 6 * r, weights + 6 * r, 6, N, scratch, part[r], NULL, NULL),
							 RV_OK);
			/* A row alone, divided by its weights, is what merge_chunk makes of it. */
			assert_int_equal(
				merge_join(&rule, (const uint8_t *const[]){part[r]}, &row_weights[r], 1, N, scratch, NULL, out, NULL),
				RV_OK);
			assert_int_equal(merge_chunk(&rule, ins + 6 * r, weights + 6 * r, 6, N, scratch, NULL, other, NULL, NULL),
							 RV_OK);
			for (int k = 0; k < N; k++) {
				float a, b;
				memcpy(&a, out + 4 * k, 4);
				memcpy(&b, other + 4 * k, 4);
				assert_true(fabsf(a - b) <= 1e-6f * fabsf(b) + 1e-30f);
			}
		}
		assert_int_equal(merge_join(&rule, (const uint8_t *const *)part, row_weights, 2, N, scratch, NULL, out, NULL),
						 RV_OK);
		roster(&rule, &l, other);
		assert_memory_equal(out, other, sizeof mean);
		free(part[0]);
		free(part[1]);
		free(scratch);
	}
}

/* What is measured in a row is relative to its mean, as merge_chunk measures it. */
static void test_a_row_is_measured(void **state) {
	(void)state;
	static float values[2][N];
	const struct merge_rule rule = rule_of(&merge_clipped, &codec_int8);
	float *scratch = malloc(merge_scratch(&rule, N, 6) * sizeof *scratch);
	struct merge_measured row = {.values = values[0]}, plain = {.values = values[1]};
	contribute(&codec_int8, (const float[MAX_IN]){1, 1, 1, 1, 1, 9, 1, 1, 1, 1, 1, 1});
	assert_int_equal(merge_partial(&rule, ins, weights, 6, N, scratch, out, &row, NULL), RV_OK);
	assert_int_equal(merge_chunk(&rule, ins, weights, 6, N, scratch, NULL, out, &plain, NULL), RV_OK);
	assert_memory_equal(row.norm2, plain.norm2, sizeof row.norm2);
	assert_memory_equal(row.dot, plain.dot, sizeof row.dot);
	assert_memory_equal(row.clipped, plain.clipped, sizeof row.clipped);
	assert_int_equal(row.clipped[5], 1);
	assert_true(row.mean2 == plain.mean2);
	free(scratch);
}

static void test_a_spoiled_partial_sum_is_named(void **state) {
	(void)state;
	static float scratch[2 * N];
	const struct merge_rule rule = rule_of(&merge_mean, &codec_int8);
	const uint32_t two[2] = {1, 2};
	struct rv_errtext et = {0};
	contribute(&codec_fp32, NULL);
	memcpy(in[1] + 4 * 7, &(float){NAN}, 4);
	assert_int_equal(merge_join(&rule, ins, two, 2, N, scratch, NULL, out, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "partial sum 1 of 2"));
	for (int i = 0; i < 2; i++)
		memcpy(in[i] + 4 * 7, &(float){3e38f}, 4);
	assert_int_equal(merge_join(&rule, ins, two, 2, N, scratch, NULL, out, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "mean of 2 rows"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_row_is_the_plain_merge),     cmocka_unit_test(test_rows_give_the_weighted_mean),
		cmocka_unit_test(test_a_rule_acts_row_by_row),         cmocka_unit_test(test_a_row_is_measured),
		cmocka_unit_test(test_a_spoiled_partial_sum_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
