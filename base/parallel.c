/* parallel.c: threads that take the next iteration from a shared counter, and a caller that waits
 * and ticks. */
#include "base/parallel.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/os_cpus.h"
#include "base/os_threads.h"

#include <pthread.h>

int parallel_cores(void) {
	int n = os_cpus_allowed();
	return n < 1 ? 1 : n < PARALLEL_MAX_THREADS ? n : PARALLEL_MAX_THREADS;
}

enum { TICK_US = 100 * RV_US_PER_MS };

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
	(void)os_cond_wait_until(&s->all_done, &s->mutex, rv_clock_monotonic_us() + TICK_US);
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
	os_cond_init(&s.all_done);

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
