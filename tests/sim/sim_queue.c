/* sim_queue.c: virtual time: a heap of events, ordered by time, then by the time at which they were
 * due before their host was frozen, then by when they were scheduled. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>

enum { MOST_AT_ONCE = 100000 };

static bool before(const struct sim_event *a, const struct sim_event *b) {
	if (a->at_us != b->at_us)
		return a->at_us < b->at_us;
	return a->due_us != b->due_us ? a->due_us < b->due_us : a->order < b->order;
}

enum { CHILDREN = 4 }; /* of a node: flatter than a binary heap, and they lie side by side */

static void push(struct sim_queue *q, const struct sim_event *ev) {
	if (q->n == q->cap) {
		q->cap = q->cap == 0 ? 256 : 2 * q->cap;
		q->heap = realloc(q->heap, q->cap * sizeof *q->heap);
		RV_ASSERT(q->heap != NULL);
	}
	size_t i = q->n++;
	for (; i > 0 && before(ev, &q->heap[(i - 1) / CHILDREN]); i = (i - 1) / CHILDREN)
		q->heap[i] = q->heap[(i - 1) / CHILDREN];
	q->heap[i] = *ev;
}

static struct sim_event pop(struct sim_queue *q) {
	struct sim_event first = q->heap[0], last = q->heap[--q->n];
	size_t i = 0;
	for (size_t child = 1; child < q->n; child = CHILDREN * i + 1) {
		size_t least = child, end = child + CHILDREN < q->n ? child + CHILDREN : q->n;
		for (size_t c = child + 1; c < end; c++)
			if (before(&q->heap[c], &q->heap[least]))
				least = c;
		if (!before(&q->heap[least], &last))
			break;
		q->heap[i] = q->heap[least];
		i = least;
	}
	q->heap[i] = last;
	return first;
}

void sim_at(struct sim *s, int64_t at_us, int host, uint64_t life, sim_fire *fire, void *arg) {
	int64_t due_us = at_us > s->now_us ? at_us : s->now_us;
	struct sim_event ev = {.at_us = due_us,
						   .due_us = due_us,
						   .order = s->queue.next_order++,
						   .host = host,
						   .life = life,
						   .fire = fire,
						   .arg = arg};
	push(&s->queue, &ev);
}

/* The host is frozen, and may be frozen for longer than when others of its events were postponed:
 * they must not overtake this one, as what a link brings stays in order. */
static void postpone(struct sim *s, const struct sim_event *ev) {
	struct sim_event later = *ev;
	later.at_us = s->frozen_until_us[ev->host];
	push(&s->queue, &later);
}

static uint64_t life_of(const struct sim *s, int host) {
	if (host >= SIM_RELAY)
		return s->relays[host - SIM_RELAY].life;
	return host == SIM_COORDINATOR ? s->coordinator.life : s->workers[host].life;
}

static void fire(struct sim *s, struct sim_event *ev) {
	if (ev->host != SIM_NOBODY) {
		if (ev->life != 0 && ev->life != life_of(s, ev->host)) {
			free(ev->arg);
			return;
		}
		if (s->frozen_until_us[ev->host] > s->now_us) {
			postpone(s, ev);
			return;
		}
	}
	s->stats.events++;
	s->stats.trace = (s->stats.trace ^ (uint64_t)s->now_us ^ ev->order << 40) * 0x100000001b3u + (uint64_t)ev->host;
	ev->fire(s, ev->host, ev->arg);
}

bool sim_queue_step(struct sim *s, int64_t until_us) {
	if (s->queue.n == 0 || s->queue.heap[0].at_us > until_us)
		return false;
	struct sim_event ev = pop(&s->queue);
	s->queue.at_once = ev.at_us == s->now_us ? s->queue.at_once + 1 : 0;
	if (s->queue.at_once > MOST_AT_ONCE)
		sim_fail(s, "time stands still: %d events, and none later", (int)MOST_AT_ONCE);
	s->now_us = ev.at_us;
	fire(s, &ev);
	return true;
}

void sim_queue_release(struct sim_queue *q) {
	for (size_t i = 0; i < q->n; i++)
		free(q->heap[i].arg);
	free(q->heap);
}
