/* team.c: threads that wait for tasks. */
#include "train/team.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct seat {
	struct team *team;
	int i;
	pthread_t thread;
};

struct team {
	int n, n_threads; /* requested and started threads */
	struct seat *seats;
	pthread_mutex_t lock;
	pthread_cond_t begin, end;
	uint64_t tasks; /* tasks so far */
	int left;       /* threads that have not finished the last task */
	bool stop;
	void (*fn)(void *ctx, int i);
	void *ctx;
};

static void *work(void *arg) {
	const struct seat *seat = arg;
	struct team *t = seat->team;
	pthread_mutex_lock(&t->lock);
	for (uint64_t seen = 0;; seen++) {
		while (t->tasks == seen && !t->stop)
			pthread_cond_wait(&t->begin, &t->lock);
		if (t->tasks == seen)
			break;
		pthread_mutex_unlock(&t->lock);
		t->fn(t->ctx, seat->i);
		pthread_mutex_lock(&t->lock);
		if (--t->left == 0)
			pthread_cond_signal(&t->end);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

enum rv_err team_new(int n, struct team **out, struct rv_errtext *et) {
	*out = NULL;
	struct team *t = calloc(1, sizeof *t);
	struct seat *seats = calloc((size_t)n, sizeof *seats);
	if (!t || !seats) {
		free(t);
		free(seats);
		return rv_fail(et, RV_E_NOMEM, "no memory for %d threads", n);
	}
	t->n = n;
	t->seats = seats;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->begin, NULL);
	pthread_cond_init(&t->end, NULL);
	for (int i = 0; i < n; i++) {
		seats[i] = (struct seat){.team = t, .i = i};
		int failed = pthread_create(&seats[i].thread, NULL, work, &seats[i]);
		if (failed) {
			team_free(t);
			return rv_fail_errno(et, failed, "thread %d of %d, one for each device", i + 1, n);
		}
		t->n_threads++;
	}
	*out = t;
	return RV_OK;
}

void team_free(struct team *t) {
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_broadcast(&t->begin);
	pthread_mutex_unlock(&t->lock);
	for (int i = 0; i < t->n_threads; i++)
		pthread_join(t->seats[i].thread, NULL);
	pthread_cond_destroy(&t->begin);
	pthread_cond_destroy(&t->end);
	pthread_mutex_destroy(&t->lock);
	free(t->seats);
	free(t);
}

void team_run(struct team *t, void (*fn)(void *ctx, int i), void *ctx) {
	pthread_mutex_lock(&t->lock);
	t->fn = fn;
	t->ctx = ctx;
	t->left = t->n;
	t->tasks++;
	pthread_cond_broadcast(&t->begin);
	while (t->left > 0)
		pthread_cond_wait(&t->end, &t->lock);
	pthread_mutex_unlock(&t->lock);
}
