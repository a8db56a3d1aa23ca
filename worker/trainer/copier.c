/* copier.c: slices of what is to be copied are taken under a mutex, by the thread and by who waits
 * for it. */
#include "worker/trainer/copier.h"

#include "base/assert.h"
#include "base/os_threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE_BYTES = 1 << 20 };

struct copier {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t begun, ended;
	struct copy_part parts[COPIER_MAX_PARTS]; /* their rest, not taken yet */
	int n, at;
	int copying; /* slices that were taken, and are not copied yet */
	void (*done)(void *ctx);
	void *ctx;
	bool busy, stop;
};

/* With the lock. False: everything is taken. */
static bool take_slice(struct copier *c, struct copy_part *out) {
	while (c->at < c->n && c->parts[c->at].bytes == 0)
		c->at++;
	if (!c->busy || c->at == c->n)
		return false;
	struct copy_part *p = &c->parts[c->at];
	*out = (struct copy_part){p->to, p->from, p->bytes < SLICE_BYTES ? p->bytes : SLICE_BYTES};
	*p = (struct copy_part){(char *)p->to + out->bytes, (const char *)p->from + out->bytes, p->bytes - out->bytes};
	c->copying++;
	return true;
}

/* With the lock. */
static void end_if_done(struct copier *c) {
	while (c->at < c->n && c->parts[c->at].bytes == 0)
		c->at++;
	if (!c->busy || c->at < c->n || c->copying > 0)
		return;
	c->busy = false;
	c->done(c->ctx);
	pthread_cond_broadcast(&c->ended);
}

/* With the lock, which it gives away while it copies. */
static void copy_slices(struct copier *c) {
	struct copy_part slice;
	while (take_slice(c, &slice)) {
		pthread_mutex_unlock(&c->lock);
		memcpy(slice.to, slice.from, slice.bytes);
		pthread_mutex_lock(&c->lock);
		c->copying--;
	}
	end_if_done(c);
}

static void *main_of_thread(void *arg) {
	struct copier *c = arg;
	os_thread_name("copier");
	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		copy_slices(c);
		if (!c->stop)
			pthread_cond_wait(&c->begun, &c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

enum rv_err copier_new(struct copier **out, struct rv_errtext *et) {
	struct copier *c = calloc(1, sizeof *c);
	if (!c)
		return rv_fail(et, RV_E_NOMEM, "no memory for the copying thread");
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->begun, NULL);
	pthread_cond_init(&c->ended, NULL);
	int failed = pthread_create(&c->thread, NULL, main_of_thread, c);
	if (failed) {
		pthread_cond_destroy(&c->begun);
		pthread_cond_destroy(&c->ended);
		pthread_mutex_destroy(&c->lock);
		free(c);
		return rv_fail_errno(et, failed, "cannot start the copying thread");
	}
	*out = c;
	return RV_OK;
}

static void wait_idle(struct copier *c) {
	copy_slices(c);
	while (c->busy)
		pthread_cond_wait(&c->ended, &c->lock);
}

void copier_free(struct copier *c) {
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	wait_idle(c);
	c->stop = true;
	pthread_cond_broadcast(&c->begun);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->begun);
	pthread_cond_destroy(&c->ended);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void copier_start(struct copier *c, const struct copy_part *parts, int n, void (*done)(void *ctx), void *ctx) {
	RV_ASSERT(n >= 0 && n <= COPIER_MAX_PARTS && done != NULL);
	pthread_mutex_lock(&c->lock);
	wait_idle(c);
	memcpy(c->parts, parts, (size_t)n * sizeof parts[0]);
	c->n = n;
	c->at = 0;
	c->done = done;
	c->ctx = ctx;
	c->busy = true;
	pthread_cond_broadcast(&c->begun);
	pthread_mutex_unlock(&c->lock);
}

void copier_wait(struct copier *c) {
	pthread_mutex_lock(&c->lock);
	wait_idle(c);
	pthread_mutex_unlock(&c->lock);
}
