/* copier.c: a mutex, a condition variable, a thread. */
#include "worker/copier.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct copier {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void (*run)(void *ctx); /* NULL: nothing is being copied */
	void *ctx;
	bool stop;
};

static void *main_of_thread(void *arg) {
	struct copier *c = arg;
	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (!c->run && !c->stop)
			pthread_cond_wait(&c->changed, &c->lock);
		if (!c->run)
			break;
		pthread_mutex_unlock(&c->lock);
		c->run(c->ctx);
		pthread_mutex_lock(&c->lock);
		c->run = NULL;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

enum rv_err copier_new(struct copier **out, struct rv_errtext *et) {
	struct copier *c = calloc(1, sizeof *c);
	if (!c)
		return rv_fail(et, RV_E_NOMEM, "no memory for the copying thread");
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	int failed = pthread_create(&c->thread, NULL, main_of_thread, c);
	if (failed) {
		pthread_cond_destroy(&c->changed);
		pthread_mutex_destroy(&c->lock);
		free(c);
		return rv_fail_errno(et, failed, "cannot start the copying thread");
	}
	(void)pthread_setname_np(c->thread, "copier");
	*out = c;
	return RV_OK;
}

void copier_free(struct copier *c) {
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void wait_idle(struct copier *c) {
	while (c->run)
		pthread_cond_wait(&c->changed, &c->lock);
}

void copier_start(struct copier *c, void (*run)(void *ctx), void *ctx) {
	RV_ASSERT(run != NULL);
	pthread_mutex_lock(&c->lock);
	wait_idle(c);
	c->run = run;
	c->ctx = ctx;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

void copier_wait(struct copier *c) {
	pthread_mutex_lock(&c->lock);
	wait_idle(c);
	pthread_mutex_unlock(&c->lock);
}
