/* comm_host.c: one thread of the group carries out exchanges in the order of posting, once every
 * member has posted. Sums run over members 0, 1, 2, ... in this order. */
#include "train/comm_internal.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { RING = 64, /* most operations at a time */ PIECE_ELEMS = 4096 };

struct slot {
	struct comm_op ops[COMM_MAX_MEMBERS];
	int n_posted;
};

struct comm_host {
	int n;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t posted, finished;
	struct slot ring[RING];
	uint64_t n_posted[COMM_MAX_MEMBERS], n_done; /* operations since the start */
	bool stop;
};

/* Sums piece [at, at + n) of all members' vectors, over members in order. */
static void sum_piece(const struct slot *s, int members, size_t at, size_t n, float *sum) {
	memcpy(sum, s->ops[0].x + at, n * sizeof *sum);
	for (int m = 1; m < members; m++)
		for (size_t i = 0; i < n; i++)
			sum[i] = sum[i] + s->ops[m].x[at + i];
}

static void reduce(const struct slot *s, int members) {
	float sum[PIECE_ELEMS];
	const struct comm_op *op = &s->ops[0];
	for (size_t at = 0; at < op->n; at += PIECE_ELEMS) {
		size_t n = op->n - at < PIECE_ELEMS ? op->n - at : PIECE_ELEMS;
		sum_piece(s, members, at, n, sum);
		memcpy(s->ops[op->root].x + at, sum, n * sizeof *sum);
	}
}

static void broadcast(const struct slot *s, int members) {
	const struct comm_op *from = &s->ops[s->ops[0].root];
	for (int m = 0; m < members; m++)
		if (m != from->root && from->n > 0)
			memcpy(s->ops[m].x, from->x, from->n * sizeof *from->x);
}

static void carry_out(const struct slot *s, int members) {
	for (int m = 1; m < members; m++)
		RV_ASSERT(s->ops[m].kind == s->ops[0].kind && s->ops[m].n == s->ops[0].n && s->ops[m].root == s->ops[0].root);
	if (s->ops[0].kind == COMM_BROADCAST)
		broadcast(s, members);
	else
		reduce(s, members);
}

static void *serve(void *arg) {
	struct comm_host *h = arg;
	pthread_mutex_lock(&h->lock);
	for (;;) {
		struct slot *s = &h->ring[h->n_done % RING];
		while (s->n_posted < h->n && !h->stop)
			pthread_cond_wait(&h->posted, &h->lock);
		if (s->n_posted < h->n)
			break;
		pthread_mutex_unlock(&h->lock);
		carry_out(s, h->n);
		pthread_mutex_lock(&h->lock);
		s->n_posted = 0;
		h->n_done++;
		pthread_cond_broadcast(&h->finished);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

enum rv_err comm_host_new(int n, struct comm_host **out, struct rv_errtext *et) {
	*out = NULL;
	struct comm_host *h = calloc(1, sizeof *h);
	if (!h)
		return rv_fail(et, RV_E_NOMEM, "no memory for the exchange of %d devices", n);
	h->n = n;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->posted, NULL);
	pthread_cond_init(&h->finished, NULL);
	int failed = pthread_create(&h->thread, NULL, serve, h);
	if (failed) {
		free(h);
		return rv_fail_errno(et, failed, "no thread for the exchange of %d devices", n);
	}
	*out = h;
	return RV_OK;
}

void comm_host_free(struct comm_host *h) {
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	pthread_cond_signal(&h->posted);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	pthread_cond_destroy(&h->posted);
	pthread_cond_destroy(&h->finished);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

void comm_host_post(struct comm_host *h, int rank, const struct comm_op *op) {
	pthread_mutex_lock(&h->lock);
	while (h->n_posted[rank] - h->n_done >= RING)
		pthread_cond_wait(&h->finished, &h->lock);
	struct slot *s = &h->ring[h->n_posted[rank]++ % RING];
	s->ops[rank] = *op;
	if (++s->n_posted == h->n)
		pthread_cond_signal(&h->posted);
	pthread_mutex_unlock(&h->lock);
}

uint64_t comm_host_posted(struct comm_host *h, int rank) {
	pthread_mutex_lock(&h->lock);
	const uint64_t n = h->n_posted[rank];
	pthread_mutex_unlock(&h->lock);
	return n;
}

void comm_host_wait(struct comm_host *h, uint64_t posted) {
	pthread_mutex_lock(&h->lock);
	while (h->n_done < posted)
		pthread_cond_wait(&h->finished, &h->lock);
	pthread_mutex_unlock(&h->lock);
}
