/* jobs.c: two linked lists, a mutex, a condition variable, a thread. */
#include "base/jobs.h"

#include "base/assert.h"
#include "base/os_threads.h"

#include <pthread.h>
#include <stdlib.h>

struct job_list {
	struct job *head, *tail;
};

struct jobs {
	pthread_t thread;
	const char *name;
	pthread_mutex_t lock;
	pthread_cond_t posted;
	struct job_list todo, finished;
	bool running, stop;
	void (*wake)(void *ctx);
	void *wake_ctx;
};

static void push(struct job_list *l, struct job *j) {
	j->next = NULL;
	if (l->tail)
		l->tail->next = j;
	else
		l->head = j;
	l->tail = j;
}

static struct job *pop(struct job_list *l) {
	struct job *j = l->head;
	if (j) {
		l->head = j->next;
		if (!l->head)
			l->tail = NULL;
	}
	return j;
}

/* Returns the next job, or NULL if the thread must end. */
static struct job *take(struct jobs *t) {
	pthread_mutex_lock(&t->lock);
	while (!t->todo.head && !t->stop)
		pthread_cond_wait(&t->posted, &t->lock);
	struct job *j = pop(&t->todo);
	t->running = j != NULL;
	pthread_mutex_unlock(&t->lock);
	return j;
}

static void *main_of_thread(void *arg) {
	struct jobs *t = arg;
	struct job *j;
	os_thread_name(t->name);
	while ((j = take(t))) {
		j->run(j);
		pthread_mutex_lock(&t->lock);
		push(&t->finished, j);
		t->running = false;
		pthread_mutex_unlock(&t->lock);
		t->wake(t->wake_ctx);
	}
	return NULL;
}

enum rv_err jobs_new(const char *name, void (*wake)(void *ctx), void *ctx, struct jobs **out, struct rv_errtext *et) {
	struct jobs *t = calloc(1, sizeof *t);
	if (!t)
		return rv_fail(et, RV_E_NOMEM, "no memory for the %s thread", name);
	t->name = name;
	t->wake = wake;
	t->wake_ctx = ctx;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->posted, NULL);
	int failed = pthread_create(&t->thread, NULL, main_of_thread, t);
	if (failed) {
		pthread_cond_destroy(&t->posted);
		pthread_mutex_destroy(&t->lock);
		free(t);
		return rv_fail_errno(et, failed, "cannot start the %s thread", name);
	}
	*out = t;
	return RV_OK;
}

static void drop_all(struct job *j) {
	while (j) {
		struct job *next = j->next;
		if (j->dropped)
			j->dropped(j);
		j = next;
	}
}

void jobs_free(struct jobs *t) {
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->posted);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	RV_ASSERT(!t->todo.head && !t->running);
	drop_all(t->finished.head);
	pthread_cond_destroy(&t->posted);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

void jobs_post(struct jobs *t, struct job *j) {
	RV_ASSERT(j->run && j->done);
	pthread_mutex_lock(&t->lock);
	push(&t->todo, j);
	pthread_cond_signal(&t->posted);
	pthread_mutex_unlock(&t->lock);
}

void jobs_reap(struct jobs *t) {
	pthread_mutex_lock(&t->lock);
	struct job *j = t->finished.head;
	t->finished = (struct job_list){0};
	pthread_mutex_unlock(&t->lock);
	while (j) {
		struct job *next = j->next;
		j->done(j);
		j = next;
	}
}

bool jobs_idle(struct jobs *t) {
	pthread_mutex_lock(&t->lock);
	bool idle = !t->todo.head && !t->running && !t->finished.head;
	pthread_mutex_unlock(&t->lock);
	return idle;
}
