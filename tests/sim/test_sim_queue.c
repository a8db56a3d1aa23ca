/* test_sim_queue.c: virtual time: events fire in their order, also those of a host that is
 * frozen. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { FIRED_MAX = 8 };

static struct {
	int numbers[FIRED_MAX], n;
	int64_t at_us[FIRED_MAX];
} fired;

static void fire(struct sim *s, int host, void *arg) {
	(void)host;
	fired.at_us[fired.n] = s->now_us;
	fired.numbers[fired.n++] = *(int *)arg;
	free(arg);
}

static void at(struct sim *s, int64_t at_us, int host, int number) {
	int *arg = sim_alloc(sizeof *arg);
	*arg = number;
	sim_at(s, at_us, host, 0, fire, arg);
}

static void run(struct sim *s) {
	while (sim_queue_step(s, SIM_S))
		;
}

static int setup(void **state) {
	memset(&fired, 0, sizeof fired);
	*state = sim_alloc(sizeof(struct sim));
	return 0;
}

static int teardown(void **state) {
	struct sim *s = *state;
	sim_queue_release(&s->queue);
	free(s);
	return 0;
}

static void assert_fired(int n, const int numbers[]) {
	assert_int_equal(fired.n, n);
	assert_memory_equal(fired.numbers, numbers, (size_t)n * sizeof numbers[0]);
}

static void test_of_equal_times_the_first_scheduled_fires_first(void **state) {
	struct sim *s = *state;
	at(s, 20, SIM_NOBODY, 1);
	at(s, 10, SIM_NOBODY, 2);
	at(s, 20, SIM_NOBODY, 3);
	at(s, 10, SIM_NOBODY, 4);
	run(s);
	assert_fired(4, (const int[]){2, 4, 1, 3});
}

static void freeze(struct sim *s, int host, void *arg) {
	s->frozen_until_us[0] = *(int64_t *)arg;
	free(arg);
	(void)host;
}

static void freeze_at(struct sim *s, int64_t at_us, int64_t until_us) {
	int64_t *arg = sim_alloc(sizeof *arg);
	*arg = until_us;
	sim_at(s, at_us, SIM_NOBODY, 0, freeze, arg);
}

/* An event of before the second fault is postponed twice, one of after it once. (Simulator seed
 * 7008172: a frame overtook another of its link.) */
static void test_a_host_that_is_frozen_again_keeps_the_order_of_its_events(void **state) {
	struct sim *s = *state;
	freeze_at(s, 10, 50);
	at(s, 20, 0, 1);
	freeze_at(s, 30, 60);
	at(s, 40, 0, 2);
	at(s, 60, 0, 3);
	at(s, 25, 1, 4); /* another host's */
	run(s);
	assert_fired(4, (const int[]){4, 1, 2, 3});
	assert_int_equal(fired.at_us[0], 25);
	assert_int_equal(fired.at_us[1], 60);
	assert_int_equal(fired.at_us[2], 60);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_of_equal_times_the_first_scheduled_fires_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_host_that_is_frozen_again_keeps_the_order_of_its_events, setup,
										teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
