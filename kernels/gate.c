/* gate.c: see gate.h. */
#include "kernels/gate.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/parallel.h"

#include <pthread.h>
#include <time.h>

enum {
	ALL = 100,
	LOOK_US = 1 * RV_US_PER_MS, /* between two looks at the process's time: a system call */
	NAP_US = 50 * RV_US_PER_MS  /* longest sleep without a look at what has changed */
};

static struct {
	atomic_bool held;
	atomic_bool limits; /* the processor share is below ALL */
	atomic_int threads; /* 0: no limit */
	atomic_int device_percent;
	atomic_int priority;  /* enum os_priority */
	pthread_mutex_t lock; /* guards the fields below */
	int percent;
	double rate;       /* microseconds of processor time that a microsecond gives */
	int64_t looked_us; /* at the last look: the time, and what the process had used */
	int64_t used_us;
	double saved_us; /* processor time that may be used; negative: to be paid back */
} gate = {.device_percent = ALL, .lock = PTHREAD_MUTEX_INITIALIZER, .percent = ALL};

/* ---- what is allowed ---- */

void gate_set_cpu_share(int percent) {
	RV_ASSERT(percent >= 1 && percent <= ALL);
	pthread_mutex_lock(&gate.lock);
	if (percent != gate.percent) { /* what was used before does not count */
		gate.looked_us = rv_clock_monotonic_us();
		gate.used_us = rv_clock_process_us();
		gate.saved_us = 0;
	}
	gate.percent = percent;
	gate.rate = (double)percent / ALL * parallel_cores();
	atomic_store(&gate.limits, percent < ALL);
	pthread_mutex_unlock(&gate.lock);
}

void gate_hold(bool held) {
	atomic_store(&gate.held, held);
}

void gate_set_threads(int threads) {
	RV_ASSERT(threads >= 0);
	atomic_store(&gate.threads, threads);
}

int gate_threads(int has) {
	const int most = atomic_load_explicit(&gate.threads, memory_order_relaxed);
	return most > 0 && most < has ? most : has;
}

void gate_set_device_share(int percent) {
	RV_ASSERT(percent >= 1 && percent <= ALL);
	atomic_store(&gate.device_percent, percent);
}

void gate_set_priority(enum os_priority p) {
	atomic_store(&gate.priority, (int)p);
}

/* ---- passing ---- */

static double within(double x, double lo, double hi) {
	return x < lo ? lo : x > hi ? hi : x;
}

/* Enters into the budget what has passed since the last look. With the lock. */
static void look(int64_t now_us) {
	if (now_us - gate.looked_us < LOOK_US)
		return;
	const int64_t used_us = rv_clock_process_us();
	const double given_us = (double)(now_us - gate.looked_us) * gate.rate;
	gate.saved_us = within(gate.saved_us + given_us - (double)(used_us - gate.used_us),
						   -gate.rate * GATE_DEBT_MS * RV_US_PER_MS, gate.rate * GATE_SAVED_MS * RV_US_PER_MS);
	gate.looked_us = now_us;
	gate.used_us = used_us;
}

/* Returns the time from now until the budget has something again; 0: it has. */
static int64_t paid_back_in_us(void) {
	int64_t in_us = 0;
	pthread_mutex_lock(&gate.lock);
	if (gate.percent < ALL) {
		look(rv_clock_monotonic_us());
		in_us = gate.saved_us >= 0 ? 0 : LOOK_US + (int64_t)(-gate.saved_us / gate.rate);
	}
	pthread_mutex_unlock(&gate.lock);
	return in_us;
}

static bool is_set(const atomic_bool *stop) {
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static void nap(int64_t us) {
	const int64_t least_us = us < NAP_US ? us : NAP_US;
	const struct timespec t = {.tv_sec = 0, .tv_nsec = least_us * 1000};
	(void)nanosleep(&t, NULL);
}

static void follow_priority(void) {
	static _Thread_local int mine = OS_PRIORITY_NORMAL;
	const int wanted = atomic_load_explicit(&gate.priority, memory_order_relaxed);
	if (mine == wanted)
		return;
	mine = wanted;
	(void)os_priority_set((enum os_priority)wanted);
}

void gate_pass(const atomic_bool *stop) {
	follow_priority();
	while (atomic_load_explicit(&gate.held, memory_order_relaxed) && !is_set(stop))
		nap(NAP_US);
	if (!atomic_load_explicit(&gate.limits, memory_order_relaxed))
		return;
	for (int64_t in_us; !is_set(stop) && (in_us = paid_back_in_us()) > 0;)
		nap(in_us);
}

static _Thread_local const atomic_bool *abandons;

void gate_abandon_with(const atomic_bool *stop) {
	abandons = stop;
}

const atomic_bool *gate_abandons(void) {
	return abandons;
}

/* ---- GPUs ---- */

bool gate_limits_device(void) {
	return atomic_load_explicit(&gate.device_percent, memory_order_relaxed) < ALL;
}

/* Returns how long such work has to be followed by rest. */
static int64_t rest_us(int64_t busy_us) {
	const int percent = atomic_load(&gate.device_percent);
	return busy_us * (ALL - percent) / percent;
}

void gate_device_end(int64_t busy_us, const atomic_bool *stop) {
	const int64_t began_us = rv_clock_monotonic_us();
	for (int64_t left_us; !is_set(stop) && (left_us = began_us + rest_us(busy_us) - rv_clock_monotonic_us()) > 0;)
		nap(left_us);
}
