/* test_train_schedule.c: warm-up, cosine, floor. (PyTorch's values are in test_train_goldens.c.) */
#include "tests/train/train_fixture.h"

#include "train/schedule.h"

static const struct schedule usual = {.peak = 1e-3, .min_ratio = 0.1, .warmup_steps = 10, .total_steps = 110};

static void test_warms_up_linearly(void **state) {
	(void)state;
	assert_float_equal(schedule_lr(&usual, 0), 1e-4, 1e-10);
	assert_float_equal(schedule_lr(&usual, 4), 5e-4, 1e-10);
	assert_float_equal(schedule_lr(&usual, 9), 1e-3, 1e-10);
}

static void test_decays_along_a_cosine_to_the_floor(void **state) {
	(void)state;
	assert_float_equal(schedule_lr(&usual, 59), 5.5e-4, 1e-9); /* half way */
	assert_float_equal(schedule_lr(&usual, 109), 1e-4, 1e-10);
	for (uint64_t step = 10; step < 109; step++)
		assert_true(schedule_lr(&usual, step + 1) < schedule_lr(&usual, step));
}

static void test_stays_at_the_floor_after_the_end(void **state) {
	(void)state;
	assert_float_equal(schedule_lr(&usual, 110), 1e-4, 1e-10);
	assert_float_equal(schedule_lr(&usual, UINT64_MAX - 1), 1e-4, 1e-10);
}

static void test_works_without_warmup_and_without_decay(void **state) {
	(void)state;
	struct schedule s = {.peak = 1, .min_ratio = 1, .warmup_steps = 0, .total_steps = 5};
	for (uint64_t step = 0; step < 8; step++)
		assert_float_equal(schedule_lr(&s, step), 1, 1e-7);
	struct schedule all_warmup = {.peak = 1, .min_ratio = 0.5, .warmup_steps = 20, .total_steps = 10};
	assert_float_equal(schedule_lr(&all_warmup, 9), 0.5, 1e-7);
	assert_float_equal(schedule_lr(&all_warmup, 19), 1, 1e-7);
	assert_float_equal(schedule_lr(&all_warmup, 20), 0.5, 1e-7);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_warms_up_linearly),
		cmocka_unit_test(test_decays_along_a_cosine_to_the_floor),
		cmocka_unit_test(test_stays_at_the_floor_after_the_end),
		cmocka_unit_test(test_works_without_warmup_and_without_decay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
