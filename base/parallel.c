/* parallel.c: threads that take the next iteration from a shared counter, and a caller that waits
 * and ticks. */
#include "base/parallel.h"

#include "base/assert.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

int parallel_cores(void) {
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < PARALLEL_MAX_THREADS ? n : PARALLEL_MAX_THREADS;
}

enum { TICK_NS = 100 * 1000 * 1000, NS_PER_S = 1000 * 1000 * 1000 };

struct shared {
	const struct parallel_loop *loop;
	pthread_mutex_t mutex; /* guards the fields below */
	pthread_cond_t all_done;
	int next, running;
};

static void *work(void *arg) {
	struct shared *s = arg;
	pthread_mutex_lock(&s->mutex);
	while (s->next < s->loop->n) {
		int i = s->next++;
		pthread_mutex_unlock(&s->mutex);
		s->loop->fn(s->loop->ctx, i);
		pthread_mutex_lock(&s->mutex);
	}
	if (--s->running == 0)
		pthread_cond_signal(&s->all_done);
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

static void wait_one_tick(struct shared *s) {
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TICK_NS;
	until.tv_sec += until.tv_nsec / NS_PER_S;
	until.tv_nsec %= NS_PER_S;
	(void)pthread_cond_timedwait(&s->all_done, &s->mutex, &until);
}

static void wait_for_all(struct shared *s) {
	pthread_mutex_lock(&s->mutex);
	while (s->running > 0) {
		wait_one_tick(s);
		if (s->loop->tick) {
			pthread_mutex_unlock(&s->mutex);
			s->loop->tick(s->loop->ctx);
			pthread_mutex_lock(&s->mutex);
		}
	}
	pthread_mutex_unlock(&s->mutex);
}

enum rv_err parallel_run(const struct parallel_loop *loop, struct rv_errtext *et) {
	RV_ASSERT(loop->threads >= 1 && loop->threads <= PARALLEL_MAX_THREADS);
	struct shared s = {.loop = loop, .mutex = PTHREAD_MUTEX_INITIALIZER};
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&s.all_done, &attributes);
	pthread_condattr_destroy(&attributes);

	pthread_t threads[PARALLEL_MAX_THREADS];
	int wanted = loop->threads < loop->n ? loop->threads : loop->n, started = 0, refused = 0;
	while (started < wanted && refused == 0) {
		pthread_mutex_lock(&s.mutex);
		s.running++;
		pthread_mutex_unlock(&s.mutex);
		refused = pthread_create(&threads[started], NULL, work, &s);
		started += refused == 0;
	}
	if (refused != 0) {
		pthread_mutex_lock(&s.mutex);
		s.running--;
		pthread_mutex_unlock(&s.mutex);
	}
	wait_for_all(&s);
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_cond_destroy(&s.all_done);
	pthread_mutex_destroy(&s.mutex);
	if (started == 0 && wanted > 0)
		return rv_fail_errno(et, refused, "cannot start a thread");
	return RV_OK;
}
