/* test_train_permute.c: the permutation is one, for every size, and depends on its key. */
#include "tests/train/train_fixture.h"

#include "train/text/permute.h"

#include <stdlib.h>

static void assert_bijection(uint64_t n, uint64_t key) {
	uint8_t *seen = calloc(n, 1);
	assert_non_null(seen);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t to = permute_index(n, key, i);
		assert_true(to < n);
		assert_int_equal(seen[to], 0);
		seen[to] = 1;
	}
	free(seen);
}

static void test_is_a_bijection_at_every_size(void **state) {
	(void)state;
	for (uint64_t n = 1; n <= 300; n++)
		assert_bijection(n, 1000 + n);
	static const uint64_t sizes[] = {1023, 1024, 1025, 4095, 4097, 65535, 65537};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		assert_bijection(sizes[i], i);
}

static void test_huge_sizes_stay_inside(void **state) {
	(void)state;
	uint64_t n = ((uint64_t)1 << 62) - 5;
	assert_true(permute_index(n, 3, 0) < n);
	assert_true(permute_index(n, 3, n - 1) < n);
	assert_int_not_equal(permute_index(n, 3, 0), permute_index(n, 3, n - 1));
}

/* About one position in n stays where it is in a random permutation; another key gives another
 * order. */
static void test_order_is_scrambled_and_keyed(void **state) {
	(void)state;
	enum { N = 5000 };
	int fixed = 0, successors = 0, same_as_other_key = 0;
	for (uint64_t i = 0; i < N; i++) {
		uint64_t to = permute_index(N, 42, i);
		fixed += to == i;
		successors += i + 1 < N && permute_index(N, 42, i + 1) == to + 1;
		same_as_other_key += to == permute_index(N, 43, i);
	}
	assert_in_range(fixed, 0, 10);
	assert_in_range(successors, 0, 10);
	assert_in_range(same_as_other_key, 0, 10);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_a_bijection_at_every_size),
		cmocka_unit_test(test_huge_sizes_stay_inside),
		cmocka_unit_test(test_order_is_scrambled_and_keyed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
