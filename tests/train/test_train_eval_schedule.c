/* test_train_eval_schedule.c: evaluations cost about a tenth of training, however long a round
 * is. */
#include "tests/train/train_fixture.h"

#include "train/eval_schedule.h"

static void what_was_asked_for(void **state) {
	(void)state;
	assert_int_equal(eval_every_rounds(0, 1000, 10, 5), 0);
	assert_int_equal(eval_every_rounds(7, 1000, 10, 5), 7);
}

/* A forward pass is a third of a step: so many tokens trained between two are at least ten times
 * what those cost. */
static void a_tenth_of_the_time(void **state) {
	(void)state;
	for (uint64_t round = 1; round < 2000000; round = round * 3 + 1) {
		const uint64_t tokens = 32768;
		const uint64_t every = (uint64_t)eval_every_rounds(EVAL_EVERY_CHOSEN, tokens, round, INT64_MAX);
		assert_true(every >= 1);
		assert_true(3 * every * round >= 10 * tokens);
		assert_true(every == 1 || 3 * (every - 1) * round < 10 * tokens);
	}
	assert_int_equal(eval_every_rounds(EVAL_EVERY_CHOSEN, 32768, 15360, 80), 8); /* a worker of the demo */
	assert_int_equal(eval_every_rounds(EVAL_EVERY_CHOSEN, 1, 0, 100), 4);
}

/* A curve of a short run has points all the same. */
static void four_at_least(void **state) {
	(void)state;
	assert_int_equal(eval_every_rounds(EVAL_EVERY_CHOSEN, 1 << 20, 100, 24), 6);
	assert_int_equal(eval_every_rounds(EVAL_EVERY_CHOSEN, 1 << 20, 100, 3), 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_asked_for),
		cmocka_unit_test(a_tenth_of_the_time),
		cmocka_unit_test(four_at_least),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
