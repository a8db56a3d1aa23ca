/* parallel_run: every iteration once, never more at a time than asked, the tick on the caller's
 * thread. */
#include "base/parallel.h"
#include "tests/common/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { MANY = 200 };

struct seen {
	atomic_int times[MANY], running, most, ticks;
	pthread_t caller;
	atomic_bool release;
};

static void count(void *ctx, int i) {
	struct seen *s = ctx;
	int now = atomic_fetch_add(&s->running, 1) + 1, most = atomic_load(&s->most);
	while (now > most && !atomic_compare_exchange_weak(&s->most, &most, now)) {
	}
	atomic_fetch_add(&s->times[i], 1);
	atomic_fetch_sub(&s->running, 1);
}

static void test_each_once(void **state) {
	(void)state;
	for (int threads = 1; threads <= 5; threads++) {
		struct seen s = {0};
		const struct parallel_loop loop = {.n = MANY, .threads = threads, .fn = count, .ctx = &s};
		assert_int_equal(parallel_run(&loop, NULL), RV_OK);
		for (int i = 0; i < MANY; i++)
			assert_int_equal(s.times[i], 1);
		assert_true(s.most <= threads);
	}
}

static void test_nothing_to_do(void **state) {
	(void)state;
	const struct parallel_loop loop = {.n = 0, .threads = 3, .fn = count};
	assert_int_equal(parallel_run(&loop, NULL), RV_OK);
}

/* An iteration that ends only when the tick says so: the tick does come meanwhile, on the calling
 * thread. */
static void wait_for_release(void *ctx, int i) {
	struct seen *s = ctx;
	(void)i;
	while (!atomic_load(&s->release))
		sched_yield();
}

static void release_all(void *ctx) {
	struct seen *s = ctx;
	assert_true(pthread_equal(pthread_self(), s->caller));
	atomic_store(&s->release, true);
}

static void test_tick(void **state) {
	(void)state;
	struct seen s = {.caller = pthread_self()};
	const struct parallel_loop loop = {.n = 3, .threads = 2, .fn = wait_for_release, .tick = release_all, .ctx = &s};
	assert_int_equal(parallel_run(&loop, NULL), RV_OK);
	assert_true(s.release);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_once),
		cmocka_unit_test(test_nothing_to_do),
		cmocka_unit_test(test_tick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
