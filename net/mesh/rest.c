/* rest.c: what a link that pauses keeps of what it knows (net/mesh/state.h).
 *
 * Linux lets a connection that has sent nothing for one retransmission timeout begin anew, with ten
 * packets a round trip (RFC 5681 section 4.1; net.ipv4.tcp_slow_start_after_idle). That would cost
 * four round trips at the beginning of every exchange, though what was known is a fair guess for
 * some minutes (RFC 7661). Congestion controls with a rate of their own are spared, so a link that
 * pauses rests with BBR, and bulk wakes it. Its first bytes still go out by BBR, as the kernel
 * decides when they are written; those that follow, by CUBIC. The line's window opens step by step
 * (pace_opening_window), so that no burst fills a router's queue. */
#include "net/mesh/state.h"

enum {
	REST_US = 100 * 1000, /* without bulk; less than the shortest retransmission timeout, 200 ms */
	LOOK_US = 20 * 1000,  /* while acknowledgements are awaited */
	KEEP_US = 300 * 1000 * 1000
};

static bool may_rest(const struct peers *p, const struct link *l) {
	return l->state == LINK_OPEN && l->fed_us > 0 && p->cfg.congestion == NULL && !l->is_lossy && !l->is_slow &&
		   p->now_us - l->fed_us < KEEP_US;
}

static void control(const struct peers *p, const struct link *l, const char *congestion) {
	char used[sizeof p->congestion];
	p->net.control_congestion(p->net.ctx, l->fd, congestion, used);
}

void peers_rest(struct peers *p, struct link *l) {
	if (l->rests && !may_rest(p, l))
		peers_wake(p, l);
	if (l->rests || !may_rest(p, l) || l->waiting > 0 || p->now_us - l->fed_us < REST_US)
		return;
	l->rests = true;
	control(p, l, PEERS_CONGESTION_LOSSY);
}

void peers_wake(struct peers *p, struct link *l) {
	if (!l->rests)
		return;
	l->rests = false;
	if (!l->is_lossy)
		control(p, l, PEERS_CONGESTION);
}

int64_t peers_rest_deadline_us(const struct peers *p, const struct link *l) {
	if (l->rests || !may_rest(p, l))
		return INT64_MAX;
	const int64_t due_us = l->fed_us + REST_US, next_us = p->watched_us + LOOK_US;
	return due_us > next_us ? due_us : next_us;
}

void peers_note_bulk(struct peers *p, struct link *l) {
	l->fed_us = p->pace.fed_us = p->now_us;
}

size_t peers_opening_window(struct peers *p) {
	struct pace *c = &p->pace;
	if (p->now_us - c->fed_us >= REST_US)
		c->begun_us = p->now_us;
	return pace_opening_window(&c->flow, p->now_us - c->begun_us);
}
