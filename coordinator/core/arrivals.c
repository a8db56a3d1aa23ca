/* arrivals.c: OPEN: waits for members that are a few rounds behind and catching up. Such a member
 * needs a round's result after its commit: if fetching one takes as long as a round, it would come
 * too late for every roster. So an open round waits for it, once all others are ready, and never
 * past grace. The wait has a budget: as much time as a silent member is waited for, or as the last
 * exchange took; a sixteenth of all time is added back. Once it is used up there is no wait until
 * it is whole again, as a part of it may be too short for any member. A member that has just come,
 * or come back, is waited for from its first round on: until then nothing shows that its links
 * carry anything, and the wait may be used up before its first byte. So all arrivals together cost
 * the others at most a sixteenth of their time, whether they get in or not. */
#include "base/assert.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

enum {
	ARRIVAL_ROUNDS = 8, /* most rounds behind for a member that counts as catching up */
	ARRIVAL_SHARE = 16
};

/* Returns true if it applies log entries, or is about to; a member that fetches a snapshot is far
 * behind. */
static bool goes_by_log(const struct report *rep) {
	return rep->phase != WORKER_SYNCING || rep->needs_from == rep->round;
}

void core_note_arrival(const struct core *c, struct core_member *m, const struct report *rep, int64_t now_us) {
	bool comes = !m->reported || rep->boot != m->last.boot || now_us - m->heard_us >= c->cfg.silent_us;
	if (comes) {
		m->unmoved = rep->round < c->round;
		m->came_round = rep->round;
	} else if (rep->round != m->came_round) {
		m->unmoved = false;
	}
}

static bool is_arriving(const struct core *c, const struct core_member *m) {
	const struct report *rep = &m->last;
	if (!core_available(c, m) || !m->reported || !core_stores(m) || m->places.n == 0 || core_diverged(c, m))
		return false;
	if (m->unmoved || core_is_excluded(c, m) || core_waits_no_more(c, m) || core_rests(c, m))
		return false; /* no roster waits for it when it is there */
	return rep->term == c->term && rep->round < c->round && c->round - rep->round <= ARRIVAL_ROUNDS &&
		   goes_by_log(rep) && core_right_size(c, m) && c->now_us < core_silent_at(c, m);
}

/* Returns the whole budget in microseconds. */
static int64_t most_us(const struct core *c) {
	return c->exchange_us > c->cfg.silent_us ? c->exchange_us : c->cfg.silent_us;
}

static int64_t left_us(const struct core *c) {
	const struct core_arrivals *a = &c->arrivals;
	int64_t used_us = a->since_us != INT64_MAX ? c->now_us - a->since_us : 0;
	int64_t back_us = (c->now_us - a->counted_us) / ARRIVAL_SHARE;
	int64_t most = most_us(c);
	RV_ASSERT(used_us >= 0 && back_us >= 0 && most > 0);
	return a->left_us < most - back_us ? a->left_us + back_us - used_us : most - used_us;
}

int64_t core_arrival_deadline_us(const struct core *c) {
	const struct core_arrivals *a = &c->arrivals;
	int64_t left = left_us(c);
	return a->since_us != INT64_MAX && left > 0 ? c->now_us + left : INT64_MAX;
}

void core_end_arrivals(struct core *c) {
	struct core_arrivals *a = &c->arrivals;
	if (a->since_us == INT64_MAX)
		return;
	int64_t left = left_us(c);
	*a = (struct core_arrivals){
		.since_us = INT64_MAX, .counted_us = c->now_us, .left_us = left > 0 ? left : 0, .used_up = left <= 0};
}

bool core_waits_for_arrivals(struct core *c) {
	struct core_arrivals *a = &c->arrivals;
	int64_t left = left_us(c);
	RV_ASSERT(c->roster.n == 0 && left <= most_us(c)); /* an open round waits, within its budget */
	a->used_up = a->used_up && left < most_us(c);
	if (RV_BUG("leave-behind") || left <= 0 || a->used_up || !core_are_that(c, is_arriving, 1)) {
		core_end_arrivals(c);
		return false;
	}
	if (a->since_us == INT64_MAX)
		a->since_us = c->now_us;
	return true;
}
