/* Means that hidden contributions can, and cannot, have brought about (outer/merge_reach.h). */
#include "outer/merge_reach.h"

#include "tests/common/check.h"
#include "tests/outer/codec_checks.h"
#include "tests/outer/vectors.h"

#include <stdlib.h>
#include <string.h>

enum { N = 1031, MOST = 9 };

static float x[MOST][N], scratch[(1 + MOST) * N], work[2 * N], mean[N];
static uint8_t in[MOST][5 * N], out[5 * N];
static const uint8_t *const ins[MOST] = {in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8]};
static const uint32_t ones[MOST] = {1, 1, 1, 1, 1, 1, 1, 1, 1};

static struct merge_rule rule_of(const struct merge_ops *ops, const struct codec *sent, const struct codec *of_mean) {
	return (struct merge_rule){.ops = ops, .contributions = sent, .mean = of_mean, .params = {.clip = 1.25}};
}

/* Contribution i: noise, and a part that all have in common, times size[i]. */
static void contribute(const struct codec *c, const float *size, int n_in, uint64_t seed) {
	static float common[N];
	fill_normal(common, N, seed);
	for (int i = 0; i < n_in; i++) {
		fill_normal(x[i], N, seed + 100 + (uint64_t)i);
		for (int k = 0; k < N; k++)
			x[i][k] = size[i] * (x[i][k] + 0.5f * common[k]);
		assert_int_equal(c->encode(c, x[i], N, in[i], NULL), RV_OK);
	}
}

static void merge_all(const struct merge_rule *rule, const uint32_t *weights, int n_in) {
	assert_int_equal(merge_chunk(rule, ins, weights, n_in, N, scratch, NULL, out, NULL, NULL), RV_OK);
}

/* Returns whether the mean in `out` is within reach, with the last n_missing unknown. */
static bool reaches(const struct merge_rule *rule, const uint32_t *weights, int n_in, int n_missing) {
	struct merge_known k = {.in = ins, .weights = weights, .n_in = n_in - n_missing, .n_missing = n_missing};
	bool found;
	for (int i = n_in - n_missing; i < n_in; i++)
		k.missing_weight += weights[i];
	assert_int_equal(merge_reaches(rule, &k, out, N, work, &found, NULL), RV_OK);
	return found;
}

/* Encodes the mean times `factor` in the place of the mean. */
static void falsify(const struct merge_rule *rule, float factor) {
	assert_int_equal(rule->mean->decode(rule->mean, out, N, mean, NULL), RV_OK);
	for (int k = 0; k < N; k++)
		mean[k] *= factor;
	assert_int_equal(rule->mean->encode(rule->mean, mean, N, out, NULL), RV_OK);
}

/* Sizes of contributions: the hidden ones come last. */
static const float sizes[][MOST] = {
	{1, 1, 1, 1, 1, 1, 1, 1, 1},
	{1, 1.2f, 0.9f, 1.1f, 1, 0.8f, 1, 1000, -1000},
	{1, 2, 0.5f, 3, 0.1f, 1, 0, 0, 0},
	{0, 0, 0, 0, 1, 1, 1, 1, 1},
	{1e-20f, 1e-20f, 2e-20f, 1e-20f, 1e-20f, 1e-20f, 1e-20f, 1e-20f, 1},
	{1e-38f, 1e-38f, 1e-38f, 1e-38f, 1e-38f, 1e-38f, 1e-38f, 1e-38f, 1e-38f},
};

/* Whatever the hidden contributions are, the rule, the codecs, the weights. */
static void test_a_true_mean_is_within_reach(void **state) {
	(void)state;
	static const uint32_t tokens[MOST] = {61440, 30720, 1, 123457, 5, 5, 5, 90000, 70000};
	for (const struct merge_ops *const *ops = merge_registry; *ops; ops++)
		for (const struct codec *const *c = codec_registry; *c; c++)
			for (size_t s = 0; s < COUNT_OF(sizes); s++)
				for (int n_in = 3; n_in <= MOST; n_in++) {
					const struct merge_rule rule = rule_of(*ops, *c, *c);
					const uint32_t *weights = n_in % 2 ? ones : tokens;
					contribute(*c, sizes[s], n_in, s);
					merge_all(&rule, weights, n_in);
					for (int missing = 0; missing < n_in; missing++)
						assert_true(reaches(&rule, weights, n_in, missing));
				}
}

/* Where one is hidden and codecs lose little, "clipped" does not even leave room for zeros. */
static void test_a_lie_is_out_of_reach(void **state) {
	(void)state;
	static const struct codec *const codecs[] = {&codec_int8, &codec_int4, &codec_fp32, &codec_topk64};
	static const float lies[] = {64, -64, 16, -4, -1, 0};
	for (size_t i = 0; i < COUNT_OF(codecs); i++)
		for (int n_in = 4; n_in <= MOST; n_in++)
			for (int missing = 1; missing <= (n_in - 1) / 3; missing++)
				for (size_t k = 0; k < COUNT_OF(lies); k++) {
					const struct merge_rule clipped = rule_of(&merge_clipped, codecs[i], codecs[i]);
					const struct merge_rule agreed = rule_of(&merge_agreed, codecs[i], codecs[i]);
					contribute(codecs[i], sizes[0], n_in, k);
					merge_all(&clipped, ones, n_in);
					falsify(&clipped, lies[k]);
					const bool large = fabsf(lies[k]) >= 16, fine = codecs[i]->loses < 0.1;
					if (large || (fine && (missing == 1 || fabsf(lies[k]) > 1)))
						assert_false(reaches(&clipped, ones, n_in, missing));
					if (large)
						assert_false(reaches(&agreed, ones, n_in, missing));
				}
}

/* Two helpers of a liar whose contributions are large raise no limit, as long as honest ones are
 * more than half. */
static void test_large_contributions_of_others_hide_nothing(void **state) {
	static const float large[] = {1, 1, 1, 1, 1, 1e6f, 1e6f, 1};
	const struct merge_rule rule = rule_of(&merge_clipped, &codec_int8, &codec_int8);
	(void)state;
	contribute(&codec_int8, large, 8, 3);
	merge_all(&rule, ones, 8);
	assert_true(reaches(&rule, ones, 8, 1));
	falsify(&rule, 64);
	assert_false(reaches(&rule, ones, 8, 1));
}

/* Nothing is known of means without a limit of norms, of two contributions, or of a roster of which
 * half are missing. */
static void test_what_is_not_known_is_within_reach(void **state) {
	const struct merge_rule mean_rule = rule_of(&merge_mean, &codec_int8, &codec_int8);
	const struct merge_rule clipped = rule_of(&merge_clipped, &codec_int8, &codec_int8);
	(void)state;
	contribute(&codec_int8, sizes[0], 4, 1);
	merge_all(&mean_rule, ones, 4);
	falsify(&mean_rule, 64);
	assert_true(reaches(&mean_rule, ones, 4, 1));
	assert_false(reaches(&clipped, ones, 4, 2));
	assert_true(reaches(&clipped, ones, 4, 3) && reaches(&clipped, ones, 2, 1));
}

static void test_what_cannot_be_decoded_is_refused(void **state) {
	const struct merge_rule rule = rule_of(&merge_clipped, &codec_fp32, &codec_fp32);
	const struct merge_known k = {.in = ins, .weights = ones, .n_in = 3, .n_missing = 1, .missing_weight = 1};
	bool found;
	(void)state;
	contribute(&codec_fp32, sizes[0], 4, 1);
	merge_all(&rule, ones, 4);
	memset(in[1], 0xff, 4);
	assert_int_equal(merge_reaches(&rule, &k, out, N, work, &found, NULL), RV_E_CORRUPT);
	contribute(&codec_fp32, sizes[0], 4, 1);
	memset(out, 0xff, 4);
	assert_int_equal(merge_reaches(&rule, &k, out, N, work, &found, NULL), RV_E_CORRUPT);
}

/* codec.loses holds: of one large value among some just below half a step, the worst case, too. */
static void test_codecs_lose_no_more_than_they_say(void **state) {
	(void)state;
	for (const struct codec *const *c = codec_registry; *c; c++) {
		for (size_t i = 0; i < COUNT_OF(awkward_sizes); i++) {
			fill_normal(x[0], awkward_sizes[i] < N ? awkward_sizes[i] : N, i);
			assert_true(codec_relative_error(*c, x[0], awkward_sizes[i] < N ? awkward_sizes[i] : N) <= (*c)->loses);
		}
		const int steps = codec_even_steps(*c);
		for (int k = 0; k < N && steps > 0; k++)
			x[0][k] = k % (int)(*c)->block == 0 ? 1 : 0.4999f / (float)steps;
		if (steps > 0)
			assert_true(codec_relative_error(*c, x[0], N) <= (*c)->loses);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_true_mean_is_within_reach),
		cmocka_unit_test(test_a_lie_is_out_of_reach),
		cmocka_unit_test(test_large_contributions_of_others_hide_nothing),
		cmocka_unit_test(test_what_is_not_known_is_within_reach),
		cmocka_unit_test(test_what_cannot_be_decoded_is_refused),
		cmocka_unit_test(test_codecs_lose_no_more_than_they_say),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
