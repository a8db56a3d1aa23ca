/* test_base_weights.c: weights of a round: shares of tokens as small integers whose sum is exact in
 * fp32. */
#include "base/rng.h"
#include "base/weights.h"
#include "tests/common/check.h"

static void check(const uint64_t *tokens, int n, bool by_tokens, const uint32_t *want) {
	uint32_t got[8];
	rv_weights(tokens, n, by_tokens, got);
	for (int i = 0; i < n; i++)
		assert_int_equal(got[i], want[i]);
}

static void test_not_by_tokens_all_weigh_one(void **state) {
	(void)state;
	check((uint64_t[]){0, 77, UINT64_MAX}, 3, false, (uint32_t[]){1, 1, 1});
}

static void test_shares_are_divided_by_what_they_have_in_common(void **state) {
	(void)state;
	check((uint64_t[]){4096, 4096, 4096, 4096}, 4, true, (uint32_t[]){1, 1, 1, 1});
	check((uint64_t[]){4096, 8192, 12288}, 3, true, (uint32_t[]){1, 2, 3});
	check((uint64_t[]){3, 7}, 2, true, (uint32_t[]){3, 7});
	check((uint64_t[]){UINT64_MAX, UINT64_MAX}, 2, true, (uint32_t[]){1, 1});
}

/* One of three or more that claims far more than the others; an honest one that trained twice as
 * much; half of them; two, of whom neither is the odd one. */
static void test_nobody_counts_for_more_than_two_medians(void **state) {
	(void)state;
	check((uint64_t[]){2560, 2560, 2560, 2560000}, 4, true, (uint32_t[]){1, 1, 1, 2});
	check((uint64_t[]){2560, UINT64_MAX, 2560}, 3, true, (uint32_t[]){1, 2, 1});
	check((uint64_t[]){10, 20, 10, 15}, 4, true, (uint32_t[]){2, 4, 2, 3});
	check((uint64_t[]){10, 1000, 10, 1000}, 4, true, (uint32_t[]){1, 2, 1, 2});
	check((uint64_t[]){UINT64_MAX, UINT64_MAX, UINT64_MAX}, 3, true, (uint32_t[]){1, 1, 1});
	check((uint64_t[]){0, 0, 50}, 3, true, (uint32_t[]){1, 1, 1});
	check((uint64_t[]){1, 1000}, 2, true, (uint32_t[]){1, 1000});
}

static void test_nothing_trained_still_weighs_one(void **state) {
	(void)state;
	check((uint64_t[]){0}, 1, true, (uint32_t[]){1});
	check((uint64_t[]){0, 0}, 2, true, (uint32_t[]){1, 1});
	check((uint64_t[]){0, 10, 20}, 3, true, (uint32_t[]){1, 1, 2});
}

static void test_more_tokens_than_fp32_counts_are_halved(void **state) {
	(void)state;
	check((uint64_t[]){(1 << 24) - 2, 1}, 2, true, (uint32_t[]){(1 << 24) - 2, 1}); /* the largest sum there is */
	check((uint64_t[]){(1 << 24) - 1, 1}, 2, true, (uint32_t[]){(1 << 23) - 1, 1});
	check((uint64_t[]){UINT64_MAX, 1}, 2, true, (uint32_t[]){(1 << 23) - 1, 1});
}

static void test_any_shares_give_a_sum_that_fits(void **state) {
	(void)state;
	struct rv_rng rng = rv_rng_of(7, 1);
	for (int run = 0; run < 2000; run++) {
		uint64_t tokens[64], sum = 0;
		uint32_t weights[64];
		int n = 1 + (int)rv_rng_below(&rng, 64);
		for (int i = 0; i < n; i++)
			tokens[i] = rv_rng_u64(&rng) >> rv_rng_below(&rng, 64);
		rv_weights(tokens, n, true, weights);
		for (int i = 0; i < n; i++) {
			assert_true(weights[i] >= 1);
			sum += weights[i];
			for (int j = 0; j < n; j++)
				assert_true(tokens[i] > tokens[j] || weights[i] <= weights[j]); /* more tokens never weigh less */
		}
		assert_true(sum <= RV_WEIGHT_SUM_MAX);
	}
}

static void test_weights_are_capped(void **state) {
	(void)state;
	uint32_t one_of_long_standing[] = {16, 1, 1, 1, 1, 1}, like[] = {16, 16, 16, 8}, two[] = {16, 1};
	uint32_t flood[] = {16, 16, 16, 64, 1, 1, 1, 1, 1};
	rv_weights_cap(one_of_long_standing, 6, one_of_long_standing, 6);
	rv_weights_cap(like, 4, like, 4);
	rv_weights_cap(two, 2, two, 2);
	rv_weights_cap(flood, 9, flood, 4);
	assert_memory_equal(flood, ((uint32_t[]){16, 16, 16, 32, 1, 1, 1, 1, 1}), sizeof flood);
	assert_memory_equal(one_of_long_standing, ((uint32_t[]){2, 1, 1, 1, 1, 1}), sizeof one_of_long_standing);
	assert_memory_equal(like, ((uint32_t[]){16, 16, 16, 8}), sizeof like);
	assert_memory_equal(two, ((uint32_t[]){16, 1}), sizeof two);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_by_tokens_all_weigh_one),
		cmocka_unit_test(test_shares_are_divided_by_what_they_have_in_common),
		cmocka_unit_test(test_nobody_counts_for_more_than_two_medians),
		cmocka_unit_test(test_nothing_trained_still_weighs_one),
		cmocka_unit_test(test_more_tokens_than_fp32_counts_are_halved),
		cmocka_unit_test(test_weights_are_capped),
		cmocka_unit_test(test_any_shares_give_a_sum_that_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
