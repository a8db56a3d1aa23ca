/* comm.c: the members of a group. */
#include "train/comm.h"

#include "base/assert.h"
#include "kernels/host_memory.h"
#include "kernels/plugin.h"
#include "train/comm_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE_ELEMS = MOMENTS_BLOCK, FIRST_STARTED = 64 };

/* A piece of a vector in device memory, on its way through the host. */
struct staged {
	struct staged *next;
	float *device; /* where it goes back to; NULL: nowhere */
	size_t n;
	uint64_t number; /* of its exchange, among those posted to the host */
	float host[];
};

struct comm {
	struct comm_group *group;
	int rank;
	struct backend *be;
	struct staged *staged;      /* started through the host, not waited for; newest first */
	int n_staged;               /* COMM_STAGED at most */
	struct comm_member *member; /* the plugin's library's member */
	struct comm_op *started;    /* started by the library, not waited for; repeated through the host if it fails */
	int n_started, cap_started;
	uint64_t n_exchanges; /* started, in all */
	uint64_t n_done;      /* of them, waited for */
	unsigned next_slot;   /* of marks */
	bool ordered;         /* the device computes behind exchanges that were not waited for */
	enum rv_err err;      /* the library's fault at a start */
	struct rv_errtext text;
};

/* Returns the plugin's library if all members' backends are one plugin's, or NULL. */
static const struct comm_ops *library_of(struct backend *const *be, int n) {
	const struct backend_plugin *p;
	for (int i = 0; i < n; i++)
		if (strcmp(be[i]->ops->name, be[0]->ops->name) != 0)
			return NULL;
	return plugin_load(be[0]->ops->name, &p, NULL) == RV_OK ? p->comm : NULL;
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
	enum rv_err e = comm_host_new(n, &g->host, et);
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

/* Returns whether the library failed for any member. If so, *logs is true for one of those that
 * know why. */
static bool any_failed(struct comm *c, bool *logs) {
	bool failed = c->err != RV_OK, knows = failed && c->err != RV_E_CLOSED;
	double values[] = {failed, knows ? 1 << c->rank : 0}; /* a sum of ranks' bits: at most 16 */
	comm_sum(c, values, 2);
	unsigned all = (unsigned)values[1];
	*logs = (all & -all) == 1u << c->rank;
	return values[0] > 0;
}

/* Switches to the host after a failure of the library; every member calls it. */
static void leave_device(struct comm *c, bool logs) {
	struct comm_group *g = c->group;
	if (logs)
		(void)fprintf(stderr, "devices exchange through host memory from now on: device %d of %d: %s\n", c->rank + 1,
					  g->n, c->text.text);
	if (c->member)
		g->device->abort(c->member);
	comm_barrier(c); /* pending waits end when all have aborted */
	if (c->member)
		g->device->leave(c->member);
	c->member = NULL;
	c->err = RV_OK;
	comm_barrier(c);
	if (c->rank == 0)
		g->device = NULL;
	comm_barrier(c);
}

void comm_join(struct comm_group *g, int rank, struct comm **out) {
	RV_ASSERT(rank >= 0 && rank < g->n);
	struct comm *c = calloc(1, sizeof *c);
	RV_ASSERT(c); /* asserted: without it the others would wait forever */
	*c = (struct comm){.group = g, .rank = rank, .be = g->be[rank]};
	*out = c;
	if (!g->device)
		return;
	c->err = g->device->join(c->be, &g->id, g->n, rank, &g->device_failed, &c->member, &c->text);
	if (c->err != RV_OK)
		atomic_store(&g->device_failed, true);
	bool logs;
	if (any_failed(c, &logs))
		leave_device(c, logs);
}

void comm_leave(struct comm *c) {
	if (!c)
		return;
	if (c->member)
		c->group->device->leave(c->member);
	free(c->started);
	free(c);
}

struct comm_slice comm_slice_of(size_t n, int size, int rank) {
	size_t blocks = (n + SLICE_ELEMS - 1) / SLICE_ELEMS, k = (size_t)size, r = (size_t)rank;
	size_t begin = blocks * r / k * SLICE_ELEMS, end = blocks * (r + 1) / k * SLICE_ELEMS;
	return (struct comm_slice){begin < n ? begin : n, end < n ? end : n};
}

/* ---- exchanges ---- */

static enum rv_err start_by(const struct comm_ops *d, struct comm_member *m, const struct comm_op *op,
							struct rv_errtext *et) {
	return op->kind == COMM_REDUCE ? d->start_reduce(m, op->x, op->n, op->root, et)
								   : d->start_broadcast(m, op->x, op->n, op->root, et);
}

/* Starts an operation, or after a failure only records it for comm_wait. */
static void start_on_device(struct comm *c, const struct comm_op *op) {
	if (c->n_started == c->cap_started) {
		c->cap_started = c->cap_started ? 2 * c->cap_started : FIRST_STARTED;
		c->started = realloc(c->started, (size_t)c->cap_started * sizeof *c->started);
		RV_ASSERT(c->started);
	}
	c->started[c->n_started++] = *op;
	if (c->err == RV_OK)
		c->err = start_by(c->group->device, c->member, op, &c->text);
	if (c->err != RV_OK)
		atomic_store(&c->group->device_failed, true);
}

static bool sends(const struct comm *c, const struct comm_op *op) {
	return op->kind != COMM_BROADCAST || op->root == c->rank;
}

/* Reports whether the exchange changes this member's vector. */
static bool receives(const struct comm *c, const struct comm_op *op) {
	return (op->kind == COMM_BROADCAST) != (op->root == c->rank);
}

/* Copies staged vectors of exchanges below number `posted` back to their devices, in any order. */
static void unstage(struct comm *c, uint64_t posted) {
	for (struct staged **at = &c->staged; *at;) {
		struct staged *s = *at;
		if (s->number >= posted) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		if (s->device)
			c->be->ops->upload(c->be, s->device, s->host, s->n * sizeof(float));
		free(s);
		c->n_staged--;
	}
}

static void wait_for_host(struct comm *c, uint64_t posted) {
	comm_host_wait(c->group->host, posted);
	unstage(c, posted);
}

/* Waits until there is room for one more piece. All members wait for an exchange that each of them
 * has posted, or posts before it waits itself: they post the same ones in the same order. */
static void make_room(struct comm *c) {
	if (c->n_staged < COMM_STAGED)
		return;
	const struct staged *oldest = c->staged;
	while (oldest->next)
		oldest = oldest->next;
	wait_for_host(c, oldest->number + 1);
}

static float *stage(struct comm *c, const struct comm_op *op) {
	make_room(c);
	c->n_staged++;
	struct staged *s = malloc(sizeof *s + op->n * sizeof(float));
	RV_ASSERT(s);
	*s = (struct staged){.next = c->staged,
						 .device = receives(c, op) ? op->x : NULL,
						 .n = op->n,
						 .number = comm_host_posted(c->group->host, c->rank)};
	c->staged = s;
	if (sends(c, op))
		c->be->ops->download(c->be, s->host, op->x, op->n * sizeof(float));
	return s->host;
}

/* Posts a piece to the host's thread. */
static void post(struct comm *c, struct comm_op op) {
	if (c->be->ops->alloc != host_backend_alloc)
		op.x = stage(c, &op);
	comm_host_post(c->group->host, c->rank, &op);
}

static void start(struct comm *c, struct comm_op op) {
	RV_ASSERT(op.root >= 0 && op.root < c->group->n);
	if (op.n == 0)
		return;
	c->n_exchanges++;
	if (c->group->device) {
		start_on_device(c, &op);
		return;
	}
	for (size_t at = 0; at < op.n; at += COMM_STAGED_FLOATS) {
		const size_t left = op.n - at;
		post(c, (struct comm_op){op.kind, op.x + at, left < COMM_STAGED_FLOATS ? left : COMM_STAGED_FLOATS, op.root});
	}
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

/* Repeats the broadcasts that the library left undone. Returns false if there were sums, whose
 * terms may be overwritten. */
static bool repeat_started(struct comm *c) {
	bool summed = false;
	for (int i = 0; i < c->n_started; i++)
		if (c->started[i].kind == COMM_BROADCAST)
			start(c, c->started[i]);
		else
			summed = true;
	wait_for_host(c, comm_host_posted(c->group->host, c->rank));
	return !summed && !c->ordered;
}

static bool wait_for_device(struct comm *c) {
	struct comm_group *g = c->group;
	if (c->err == RV_OK)
		c->err = g->device->wait(c->member, &g->device_failed, &c->text);
	if (c->err != RV_OK)
		atomic_store(&g->device_failed, true);
	bool done = true, logs;
	if (any_failed(c, &logs)) {
		leave_device(c, logs);
		done = repeat_started(c);
	}
	c->n_started = 0;
	c->ordered = false;
	return done;
}

bool comm_wait(struct comm *c) {
	bool done = true;
	if (c->group->device)
		done = wait_for_device(c);
	else
		wait_for_host(c, comm_host_posted(c->group->host, c->rank));
	c->n_done = c->n_exchanges;
	return done;
}

struct comm_mark comm_mark(struct comm *c) {
	struct comm_mark mark = {.started = c->n_exchanges, .slot = c->next_slot++ % COMM_MARKS};
	if (c->group->device)
		c->group->device->mark(c->member, mark.slot);
	else
		mark.posted = comm_host_posted(c->group->host, c->rank);
	return mark;
}

void comm_order(struct comm *c, struct comm_mark mark) {
	if (mark.started <= c->n_done)
		return;
	if (!c->group->device) {
		wait_for_host(c, mark.posted);
		return;
	}
	c->group->device->order(c->member, mark.slot);
	c->ordered = true;
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
	comm_barrier(c); /* nobody overwrites these before all have read them */
}
