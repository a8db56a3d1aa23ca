/* comm.c: the members of a group; see comm.h. */
#include "worker/train/comm.h"

#include "base/assert.h"
#include "kernels/host_memory.h"
#include "kernels/plugin.h"
#include "worker/train/comm_internal.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE_ELEMS = 64 };

/* A vector of a device whose memory is not the host's, on its way through the host. */
struct staged {
	struct staged *next;
	float *device;
	size_t n;
	float host[];
};

struct comm {
	struct comm_group *group;
	int rank;
	struct backend *be;
	struct comm_member *member; /* of the plugin's library */
	struct staged *staged;      /* started, not waited for; newest first */
};

/* The library that the plugin brings, when all members' backends are the plugin's. */
static const struct comm_ops *library_of(struct backend *const *be, int n) {
	const struct backend_plugin *p;
	for (int i = 0; i < n; i++)
		if (strcmp(be[i]->ops->name, "cuda") != 0)
			return NULL;
	return plugin_cuda(&p, NULL) == RV_OK ? p->comm : NULL;
}

enum rv_err comm_group_new(struct backend *const *be, int n, struct comm_group **out, struct rv_errtext *et) {
	RV_ASSERT(n >= 1 && n <= COMM_MAX_MEMBERS);
	*out = NULL;
	struct comm_group *g = calloc(1, sizeof *g);
	if (!g)
		return rv_fail(et, RV_E_NOMEM, "no memory for a group of %d devices", n);
	g->n = n;
	memcpy(g->be, be, (size_t)n * sizeof(struct backend *));
	pthread_barrier_init(&g->barrier, NULL, (unsigned)n);
	g->device = library_of(be, n);
	if (g->device && g->device->group_id(&g->id, NULL) != RV_OK)
		g->device = NULL; /* slower, and the same weights */
	enum rv_err e = g->device ? RV_OK : comm_host_new(n, &g->host, et);
	if (e != RV_OK) {
		comm_group_free(g);
		return e;
	}
	*out = g;
	return RV_OK;
}

void comm_group_free(struct comm_group *g) {
	if (!g)
		return;
	comm_host_free(g->host);
	pthread_barrier_destroy(&g->barrier);
	free(g);
}

const char *comm_group_name(const struct comm_group *g) {
	return g->device ? g->device->name : "host threads";
}

enum rv_err comm_join(struct comm_group *g, int rank, struct comm **out, struct rv_errtext *et) {
	RV_ASSERT(rank >= 0 && rank < g->n);
	*out = NULL;
	struct comm *c = calloc(1, sizeof *c);
	RV_ASSERT(c); /* some bytes; the others would wait for ever */
	c->group = g;
	c->rank = rank;
	c->be = g->be[rank];
	enum rv_err e = g->device ? g->device->join(c->be, &g->id, g->n, rank, &c->member, et) : RV_OK;
	double failed = e != RV_OK;
	comm_sum(c, &failed, 1);
	if (failed > 0) {
		comm_leave(c);
		return e != RV_OK ? e : rv_fail(et, RV_E_CLOSED, "another device could not join");
	}
	*out = c;
	return RV_OK;
}

void comm_leave(struct comm *c) {
	if (!c)
		return;
	if (c->member)
		c->group->device->leave(c->member);
	free(c);
}

int comm_rank(const struct comm *c) {
	return c->rank;
}

int comm_size(const struct comm *c) {
	return c->group->n;
}

struct comm_slice comm_slice_of(size_t n, int size, int rank) {
	size_t blocks = (n + SLICE_ELEMS - 1) / SLICE_ELEMS, k = (size_t)size, r = (size_t)rank;
	size_t begin = blocks * r / k * SLICE_ELEMS, end = blocks * (r + 1) / k * SLICE_ELEMS;
	return (struct comm_slice){begin < n ? begin : n, end < n ? end : n};
}

/* ---- exchanges ------------------------------------------------------------------------------------------------------
 */

static void start_on_device(struct comm *c, const struct comm_op *op) {
	const struct comm_ops *d = c->group->device;
	switch (op->kind) {
	case COMM_ALL_REDUCE:
		d->start_all_reduce(c->member, op->x, op->n);
		break;
	case COMM_REDUCE:
		d->start_reduce(c->member, op->x, op->n, op->root);
		break;
	case COMM_BROADCAST:
		d->start_broadcast(c->member, op->x, op->n, op->root);
		break;
	}
}

static bool sends(const struct comm *c, const struct comm_op *op) {
	return op->kind != COMM_BROADCAST || op->root == c->rank;
}

static float *stage(struct comm *c, const struct comm_op *op) {
	struct staged *s = malloc(sizeof *s + op->n * sizeof(float));
	RV_ASSERT(s);
	*s = (struct staged){.next = c->staged, .device = op->x, .n = op->n};
	c->staged = s;
	if (sends(c, op))
		c->be->ops->download(c->be, s->host, op->x, op->n * sizeof(float));
	return s->host;
}

static void start(struct comm *c, struct comm_op op) {
	RV_ASSERT(op.root >= 0 && op.root < c->group->n);
	if (op.n == 0)
		return;
	if (c->group->device) {
		start_on_device(c, &op);
		return;
	}
	if (c->be->ops->alloc != host_backend_alloc)
		op.x = stage(c, &op);
	comm_host_post(c->group->host, c->rank, &op);
}

void comm_start_all_reduce(struct comm *c, float *x, size_t n) {
	start(c, (struct comm_op){COMM_ALL_REDUCE, x, n, 0});
}

void comm_start_reduce(struct comm *c, float *x, size_t n, int root) {
	start(c, (struct comm_op){COMM_REDUCE, x, n, root});
}

void comm_start_broadcast(struct comm *c, float *x, size_t n, int root) {
	start(c, (struct comm_op){COMM_BROADCAST, x, n, root});
}

void comm_start_reduce_scatter(struct comm *c, float *x, size_t n, size_t begin, size_t end) {
	RV_ASSERT(begin <= end && end <= n);
	for (int r = 0; r < c->group->n; r++) {
		struct comm_slice s = comm_slice_of(n, c->group->n, r);
		size_t b = s.begin > begin ? s.begin : begin, e = s.end < end ? s.end : end;
		if (b < e)
			comm_start_reduce(c, x + b, e - b, r);
	}
}

void comm_start_all_gather(struct comm *c, float *x, size_t n) {
	for (int r = 0; r < c->group->n; r++) {
		struct comm_slice s = comm_slice_of(n, c->group->n, r);
		comm_start_broadcast(c, x + s.begin, s.end - s.begin, r);
	}
}

/* Staged vectors go back to where they came from; their order does not matter. */
static void unstage(struct comm *c) {
	while (c->staged) {
		struct staged *s = c->staged;
		c->staged = s->next;
		c->be->ops->upload(c->be, s->device, s->host, s->n * sizeof(float));
		free(s);
	}
}

void comm_wait(struct comm *c) {
	if (c->group->device) {
		c->group->device->wait(c->member);
		return;
	}
	comm_host_wait(c->group->host, c->rank);
	unstage(c);
}

void comm_barrier(struct comm *c) {
	(void)pthread_barrier_wait(&c->group->barrier);
}

void comm_sum(struct comm *c, double *values, int n) {
	struct comm_group *g = c->group;
	RV_ASSERT(n >= 0 && n <= COMM_MAX_VALUES);
	memcpy(g->values[c->rank], values, (size_t)n * sizeof *values);
	comm_barrier(c);
	for (int i = 0; i < n; i++) {
		values[i] = 0;
		for (int m = 0; m < g->n; m++)
			values[i] += g->values[m][i];
	}
	comm_barrier(c); /* nobody writes the next ones before all have read these */
}
