#include "outer/likeness.h"
#include "tests/common/check.h"

static void likeness_of_vectors(void **state) {
	(void)state;
	const float a[] = {3, 4, 0}, twice[] = {6, 8, 0}, flipped[] = {-3, -4, 0}, across[] = {-4, 3, 0},
				zero[] = {0, 0, 0};
	assert_true(likeness_of(a, a, 3).cosine == 1 && likeness_of(a, a, 3).norm_ratio == 1);
	assert_true(likeness_of(twice, a, 3).cosine == 1 && likeness_of(twice, a, 3).norm_ratio == 2);
	assert_true(likeness_of(flipped, a, 3).cosine == -1 && likeness_of(across, a, 3).cosine == 0);
	assert_true(likeness_of(zero, a, 3).cosine == 0 && likeness_of(zero, a, 3).norm_ratio == 0);
	assert_true(likeness_of(a, zero, 3).cosine == 0 && likeness_of(a, zero, 3).norm_ratio == 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(likeness_of_vectors)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
