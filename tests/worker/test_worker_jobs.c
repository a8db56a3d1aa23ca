/* test_worker_jobs.c: jobs run in order on their thread and are answered on the poster's; ending
 * waits for them, and drops those that nobody took. */
#include "base/jobs.h"
#include "tests/common/check.h"

#include <pthread.h>
#include <semaphore.h>

enum { N = 1000 };

struct counted {
	struct job job;
	int number;
};

struct world {
	sem_t finished;
	pthread_t runner, reaper;
	int ran, done, dropped;
	bool ran_in_order, done_in_order, dropped_in_order, elsewhere; /* the first is the runner's until it has ended */
	struct counted jobs[N];
};

static struct world w;

static void run(struct job *j) {
	struct counted *c = JOB_OWNER(j, struct counted, job);
	w.ran_in_order = w.ran_in_order && c->number == w.ran;
	w.runner = pthread_self();
	w.ran++;
}

static void done(struct job *j) {
	struct counted *c = JOB_OWNER(j, struct counted, job);
	w.done_in_order = w.done_in_order && c->number == w.done;
	w.elsewhere = w.elsewhere || !pthread_equal(pthread_self(), w.reaper);
	w.done++;
}

static void dropped(struct job *j) {
	struct counted *c = JOB_OWNER(j, struct counted, job);
	w.dropped_in_order = w.dropped_in_order && c->number == w.done + w.dropped;
	w.elsewhere = w.elsewhere || !pthread_equal(pthread_self(), w.reaper);
	w.dropped++;
	j->next = j; /* as if its memory were used again */
}

static void wake(void *ctx) {
	(void)ctx;
	sem_post(&w.finished);
}

static struct jobs *start(void) {
	struct jobs *t;
	w = (struct world){.ran_in_order = true, .done_in_order = true, .dropped_in_order = true, .reaper = pthread_self()};
	sem_init(&w.finished, 0, 0);
	assert_int_equal(jobs_new("test", wake, NULL, &t, NULL), RV_OK);
	for (int i = 0; i < N; i++)
		w.jobs[i] = (struct counted){.job = {.run = run, .done = done, .dropped = dropped}, .number = i};
	return t;
}

static void jobs_are_done_in_order(void **state) {
	(void)state;
	struct jobs *t = start();
	assert_true(jobs_idle(t));
	for (int i = 0; i < N; i++)
		jobs_post(t, &w.jobs[i].job);
	while (w.done < N) {
		sem_wait(&w.finished);
		jobs_reap(t);
	}
	assert_true(jobs_idle(t));
	jobs_free(t);
	assert_true(w.ran_in_order && w.done_in_order);
	assert_false(w.elsewhere);
	assert_false(pthread_equal(w.runner, w.reaper));
}

static void ending_lets_queued_jobs_finish(void **state) {
	(void)state;
	struct jobs *t = start();
	for (int i = 0; i < N; i++)
		jobs_post(t, &w.jobs[i].job);
	assert_false(jobs_idle(t));
	jobs_free(t);
	assert_int_equal(w.ran, N);
	assert_int_equal(w.done, 0);
	assert_int_equal(w.dropped, N);
	assert_true(w.dropped_in_order);
	assert_false(w.elsewhere);
}

static void what_was_reaped_is_not_dropped(void **state) {
	(void)state;
	struct jobs *t = start();
	w.jobs[N - 1].job.dropped = NULL; /* holds nothing */
	for (int i = 0; i < N / 2; i++)
		jobs_post(t, &w.jobs[i].job);
	while (w.done < N / 2) {
		sem_wait(&w.finished);
		jobs_reap(t);
	}
	for (int i = N / 2; i < N; i++)
		jobs_post(t, &w.jobs[i].job);
	jobs_free(t);
	assert_int_equal(w.ran, N);
	assert_int_equal(w.done, N / 2);
	assert_int_equal(w.dropped, N / 2 - 1);
	assert_true(w.dropped_in_order);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_are_done_in_order),
		cmocka_unit_test(ending_lets_queued_jobs_finish),
		cmocka_unit_test(what_was_reaped_is_not_dropped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
