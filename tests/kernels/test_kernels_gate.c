/* test_kernels_gate.c: what passes the gate, and what sleeps there. bench/limits.sh measures how
 * much time a share leaves; here is what holds however slow or busy the machine is. */
#include "base/clock.h"
#include "base/parallel.h"
#include "kernels/backend.h"
#include "kernels/gate.h"
#include "tests/common/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Uses that much of this thread's processor time. */
static void burn(int64_t us) {
	const int64_t until_us = rv_clock_thread_us() + us;
	while (rv_clock_thread_us() < until_us)
		;
}

/* Returns how often this thread gave the processor up by itself, as it does to sleep. */
static long sleeps(void) {
	struct rusage u;
	assert_int_equal(getrusage(RUSAGE_THREAD, &u), 0);
	return u.ru_nvcsw;
}

static int open_again(void **state) {
	(void)state;
	gate_set_cpu_share(100);
	gate_set_device_share(100);
	gate_set_priority(OS_PRIORITY_NORMAL);
	gate_set_threads(0);
	gate_hold(false);
	return 0;
}

struct use {
	int64_t used_us, at_us;
};

static struct use use_now(void) {
	return (struct use){rv_clock_process_us(), rv_clock_monotonic_us()};
}

/* Asserts that the process had no more than `percent` since then, and `more_us`. */
static void assert_share(struct use then, int percent, int64_t more_us) {
	const struct use now = use_now();
	const double most = percent / 100.0 * parallel_cores() * (double)(now.at_us - then.at_us) + (double)more_us;
	if ((double)(now.used_us - then.used_us) > most)
		fail_msg("%lld us of processor time used in %lld us: at most %.0f", (long long)(now.used_us - then.used_us),
				 (long long)(now.at_us - then.at_us), most);
}

/* Time that was used is paid back before the next task. */
static void test_a_share(void **state) {
	(void)state;
	enum { PERCENT = 20, TASKS = 40, BURN_US = 5000, LOOK_US = 2000 };
	gate_set_cpu_share(PERCENT);
	const struct use then = use_now();
	for (int i = 0; i < TASKS; i++) {
		gate_pass(NULL);
		burn(BURN_US);
	}
	gate_pass(NULL);
	assert_share(then, PERCENT, LOOK_US);
}

/* Unused time is not saved up: after a pause of any length a process has its share, not more. */
static void test_unused_time(void **state) {
	(void)state;
	enum { PERCENT = 20, BURN_US = 5000, LOOK_US = 2000 };
	gate_set_cpu_share(PERCENT);
	struct timespec second = {.tv_sec = 1};
	(void)nanosleep(&second, NULL);
	const struct use then = use_now();
	for (int i = 0; i < 60; i++) {
		gate_pass(NULL);
		burn(BURN_US);
	}
	gate_pass(NULL);
	assert_share(then, PERCENT, PERCENT * parallel_cores() * GATE_SAVED_MS * 1000 / 100 + LOOK_US);
}

/* The operations of the backend pass it, with all their threads. */
static void test_operations(void **state) {
	(void)state;
	enum { PERCENT = 10, BYTES = 32 << 20 };
	const struct backend_options o = {.threads = 2, .isa = "auto"};
	struct backend *be;
	void *memory;
	assert_ok(backend_open("cpu", &o, &be, &et));
	assert_ok(be->ops->alloc(be, BYTES, &memory, &et));
	be->ops->zero(be, memory, BYTES);
	const struct use before = use_now();
	be->ops->zero(be, memory, BYTES);
	const int64_t one_us = use_now().used_us - before.used_us;
	gate_set_cpu_share(PERCENT);
	const struct use then = use_now();
	for (int i = 0; i < 20; i++)
		be->ops->zero(be, memory, BYTES);
	gate_pass(NULL); /* the last one is paid back, too, however long it took */
	assert_share(then, PERCENT, 3 * one_us);
	gate_set_cpu_share(100);
	be->ops->free(be, memory);
	backend_close(be);
}

/* While nothing is limited nothing sleeps, however much time was used. */
static void test_no_limit(void **state) {
	(void)state;
	burn(20000);
	const long then = sleeps();
	for (int i = 0; i < 1000; i++)
		gate_pass(NULL);
	gate_device_end(1000000, NULL);
	assert_false(gate_limits_device());
	assert_int_equal(sleeps(), then);
}

/* Results that nobody wants are not waited for. */
static void test_stop(void **state) {
	(void)state;
	atomic_bool stop = true;
	gate_set_cpu_share(1);
	gate_set_device_share(1);
	burn(50000);
	const long then = sleeps();
	gate_pass(&stop);
	gate_device_end(1000000, &stop);
	assert_int_equal(sleeps(), then);
}

static void test_a_device_rests(void **state) {
	(void)state;
	gate_set_device_share(25);
	assert_true(gate_limits_device());
	int64_t began_us = rv_clock_monotonic_us();
	gate_device_end(5000, NULL);
	assert_true(rv_clock_monotonic_us() - began_us >= 15000);
	const long then = sleeps();
	gate_device_end(0, NULL);
	assert_int_equal(sleeps(), then);
}

static void *pass_once(void *passed) {
	gate_pass(NULL);
	atomic_store((atomic_bool *)passed, true);
	return NULL;
}

/* A pause holds a thread back for as long as it lasts, and no longer than a nap more. */
static void test_hold(void **state) {
	(void)state;
	atomic_bool passed = false, stop = true;
	pthread_t thread;
	gate_hold(true);
	gate_pass(&stop); /* results that nobody wants */
	assert_int_equal(pthread_create(&thread, NULL, pass_once, &passed), 0);
	(void)nanosleep(&(struct timespec){.tv_nsec = 200 * 1000 * 1000}, NULL);
	assert_false(atomic_load(&passed));
	gate_hold(false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(atomic_load(&passed));
}

/* Fewer threads than the backend has compute, with the same results. */
static void test_threads(void **state) {
	(void)state;
	assert_int_equal(gate_threads(8), 8);
	gate_set_threads(3);
	assert_int_equal(gate_threads(8), 3);
	assert_int_equal(gate_threads(2), 2);
	gate_set_threads(0);
	assert_int_equal(gate_threads(8), 8);
}

struct seen {
	int nice, policy;
};

static void *pass_with(void *arg) {
	struct seen *s = arg;
	gate_pass(NULL);
	s->nice = getpriority(PRIO_PROCESS, 0);
	s->policy = sched_getscheduler(0);
	return NULL;
}

static struct seen priority_of_a_thread(enum os_priority p) {
	struct seen s;
	pthread_t thread;
	gate_set_priority(p);
	assert_int_equal(pthread_create(&thread, NULL, pass_with, &s), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return s;
}

/* Threads that compute are lowered when they pass; the one that keeps the links alive never. */
static void test_priority(void **state) {
	(void)state;
	const int nice = getpriority(PRIO_PROCESS, 0), policy = sched_getscheduler(0);
	assert_int_equal(priority_of_a_thread(OS_PRIORITY_LOW).nice, nice < 10 ? 10 : nice);
	assert_int_equal(priority_of_a_thread(OS_PRIORITY_IDLE).policy, SCHED_IDLE);
	const struct seen normal = priority_of_a_thread(OS_PRIORITY_NORMAL);
	assert_true(normal.nice == nice && normal.policy == policy);
	assert_true(getpriority(PRIO_PROCESS, 0) == nice && sched_getscheduler(0) == policy);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_share, open_again),
		cmocka_unit_test_teardown(test_unused_time, open_again),
		cmocka_unit_test_teardown(test_operations, open_again),
		cmocka_unit_test_teardown(test_no_limit, open_again),
		cmocka_unit_test_teardown(test_stop, open_again),
		cmocka_unit_test_teardown(test_a_device_rests, open_again),
		cmocka_unit_test_teardown(test_priority, open_again),
		cmocka_unit_test_teardown(test_hold, open_again),
		cmocka_unit_test_teardown(test_threads, open_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
