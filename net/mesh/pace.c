/* pace.c: the pull of messages: what goes out next, and how much may be on its way
 * (net/mesh/state.h).
 *
 * Control is asked for first, on every link, and never waits for tokens or windows. Then links take
 * turns, a slice of bulk each; a slice that was begun is finished before another link begins one,
 * unless its socket is full: so control on any link is behind one slice at most. On fast lines a
 * slice is a whole frame.
 *
 * A socket takes far more than a slow line sends in a second, and so does the router. So no slice
 * is begun while more is on its way than the windows allow (net/mesh/pace_window.h): that of the
 * link, and that of all links together. */
#include "net/mesh/state.h"

#include "base/assert.h"
#include "base/planted.h"

#define STARVED 2.0 /* more than all that can be left */

enum {
	CONTROL_AT_ONCE = 16, /* frames of control for one link before the next has its turn */
	SLICES_AT_ONCE = 128, /* of bulk before incoming bytes are looked at again */
	AGAIN_US = 5 * 1000,  /* an acknowledgement wakes nobody */
	STUCK_US = 500 * 1000,
	PATIENCE_US = 250 * 1000 /* of bulk for one link while others' is urgent */
};

static bool is_open(const struct link *l) {
	return l != NULL && l->state == LINK_OPEN;
}

/* ---- what is on its way ---- */

/* What waits for a peer that takes nothing (frozen, cut off) waits in vain, and must not hold the
 * others back. */
static bool is_stuck(const struct peers *p, const struct link *l) {
	return p->now_us - l->delivered_us >= STUCK_US;
}

/* On a slow line BBR learns too little from short windows, and fills the router's queue to learn
 * more: there CUBIC stays in spite of losses. */
static void choose_congestion(struct peers *p, struct link *l, const struct pipe_info *info) {
	struct pace_flow theirs = l->flow; /* the other side's line, as far as is known */
	theirs.bytes_per_s *= PACE_SENDERS;
	l->is_slow = p->pace.is_slow || pace_is_slow(&theirs, l->is_slow);
	bool is_lossy = congestion_measure(&l->congestion, p->now_us, info, &p->pace.losses) && !l->is_slow;
	if (p->cfg.congestion != NULL || is_lossy == l->is_lossy)
		return;
	l->is_lossy = is_lossy;
	l->flow.flat = 0; /* the rate that the other one found is not the line's */
	p->net.control_congestion(p->net.ctx, l->fd, is_lossy ? PEERS_CONGESTION_LOSSY : PEERS_CONGESTION, p->congestion);
}

static bool is_idle(const struct link *l) {
	return l->waiting == 0 && !l->wrote && stream_pending(&l->stream) == 0;
}

/* Of many links most are idle: to ask the network about them too, twice a link and turn, would cost
 * more than all the rest. */
static void look_at_link(struct peers *p, struct link *l) {
	struct pipe_info info;
	bool moved = false;
	if (!is_idle(l)) {
		p->net.info(p->net.ctx, l->fd, &info);
		l->wrote = false;
		l->waiting = info.waiting + stream_pending(&l->stream);
		l->least_rtt_us = info.least_rtt_us;
		choose_congestion(p, l, &info);
		moved = info.delivered > l->delivered; /* what was acknowledged selectively is counted in packets: may shrink */
	}
	if (moved) {
		p->pace.delivered += info.delivered - l->delivered;
		l->delivered = info.delivered;
	}
	if (moved || l->waiting == 0)
		l->delivered_us = l->alive_us = p->now_us;
	pace_flow_measure(&l->flow, p->now_us, l->delivered, l->least_rtt_us);
	l->window = pace_link_window(&l->flow, &p->pace.flow, p->pace.n_busy, l->least_rtt_us);
}

/* The round trip of the line is that of its links, each for its part. */
static void look(struct peers *p) {
	struct pace *c = &p->pace;
	double rates = 0, sum = 0;
	struct congestion_line losses = {0};
	int n_busy = 0;
	c->waiting = 0;
	peers_forgive_own_absence(p);
	for (int i = 0; i < p->n_slots; i++) {
		struct link *l = p->links[i];
		if (!is_open(l))
			continue;
		look_at_link(p, l);
		peers_rest(p, l);
		peers_watch(p, l);
		if (!is_open(l))
			continue;
		c->waiting += is_stuck(p, l) ? 0 : l->waiting;
		n_busy += l->waiting > 0;
		congestion_join(&losses, &l->congestion);
		rates += l->flow.bytes_per_s + 1;
		sum += (l->flow.bytes_per_s + 1) * (double)l->least_rtt_us;
	}
	int64_t rtt_us = rates > 0 ? (int64_t)(sum / rates) : 0;
	pace_flow_measure(&c->flow, p->now_us, c->delivered, rtt_us);
	c->window = pace_flow_window(&c->flow, rtt_us);
	c->is_slow = pace_is_slow(&c->flow, c->is_slow);
	c->losses = losses;
	c->n_busy = n_busy;
}

int64_t peers_pace_deadline_us(const struct peers *p) {
	return p->pace.again_us;
}

/* ---- control, then bulk ---- */

/* Sends control unless bulk is pending: behind that it would only queue, and a PING would be out of
 * date. */
static void send_control(struct peers *p, struct link *l) {
	const struct peers_owner *owner = &p->cfg.owner;
	for (int i = 0; i < CONTROL_AT_ONCE && l->state == LINK_OPEN && owner->next_control != NULL; i++) {
		struct peers_message m = {0};
		if (!peers_drain(p, l) || !owner->next_control(owner->ctx, l->member, &m))
			break;
		RV_ASSERT(!frame_is_bulk(m.header.type));
		if (!peers_put(l, &m))
			return;
	}
	if (l->state == LINK_OPEN)
		(void)peers_drain(p, l);
}

enum turn {
	TURN_OVER, /* nothing to send, or the socket is full */
	TURN_HELD, /* the link's window is full */
	TURN_WAIT, /* the line's window is full, or there are no tokens */
	TURN_SENT
};

/* Returns true if the link, or all together, have as much on the way as they may. Either way that
 * shows the link's rate, and until the line's rate is found, the line's. */
static bool is_held(struct peers *p, struct link *l, bool all) {
	struct pace *c = &p->pace;
	const size_t opening = all ? peers_opening_window(p) : SIZE_MAX;
	if (all ? pace_fits(c->waiting, c->window) && pace_fits(c->waiting, opening) : pace_fits(l->waiting, l->window))
		return false;
	if (opening < c->window) {
		c->again_us = p->now_us + AGAIN_US;
		return true;
	}
	l->flow.held = true;
	if (RV_BUG("forget-the-rest-of-a-frame"))
		l->cut_at = l->cut.body_bytes;
	c->flow.held = c->flow.held || all || !pace_is_found(&c->flow);
	c->again_us = p->now_us + AGAIN_US;
	return true;
}

/* Encrypts the next slice, or a whole frame where that is short. False: there is nothing to
 * send. */
static bool put_next(struct peers *p, struct link *l, size_t slice) {
	struct peers_message m = {0};
	if (link_is_cut(l))
		return peers_put_slice(l, slice);
	if (!p->cfg.owner.next_message(p->cfg.owner.ctx, l->member, &m))
		return false;
	l->bulk_pending = frame_is_bulk(m.header.type);
	if (l->bulk_pending && m.header.body_bytes > slice + slice / 2)
		return peers_put_sliced(l, &m, slice);
	return peers_put(l, &m);
}

/* Finishes the slice under way and begins the next. */
static enum turn send_slice(struct peers *p, struct link *l) {
	struct pace *c = &p->pace;
	if (!peers_drain(p, l))
		return l->bulk_pending && rate_allowed(&p->up, p->now_us) == 0 ? TURN_WAIT : TURN_OVER;
	if (rate_allowed(&p->up, p->now_us) == 0 || is_held(p, l, true))
		return TURN_WAIT;
	if (is_held(p, l, false))
		return TURN_HELD;
	if (!put_next(p, l, pace_slice_bytes(&c->flow, &l->flow)))
		return TURN_OVER;
	peers_note_bulk(p, l);
	l->waiting += stream_pending(&l->stream);
	c->waiting += stream_pending(&l->stream);
	const bool taken = peers_drain(p, l);
	peers_wake(p, l);
	return taken ? TURN_SENT : TURN_OVER;
}

/* Returns true if the link has waited for so long that its silence might be taken for ours. */
static bool is_starved(const struct peers *p, const struct link *l) {
	return p->now_us - l->fed_us >= PATIENCE_US;
}

/* Returns true if others wait for what the other end makes of the bulk that goes there now. */
static bool is_urgent(const struct peers *p, const struct link *l) {
	const struct peers_owner *owner = &p->cfg.owner;
	if (is_starved(p, l))
		return true;
	if (link_is_cut(l))
		return l->cut.type != FRAME_GATHER && l->cut.type != FRAME_PIECE;
	return owner->is_awaited != NULL && owner->is_awaited(owner->ctx, (uint32_t)l->member);
}

static double part_left(const struct peers *p, const struct link *l) {
	const struct peers_owner *owner = &p->cfg.owner;
	if (is_starved(p, l))
		return STARVED;
	return owner->part_left != NULL ? owner->part_left(owner->ctx, (uint32_t)l->member) : 1;
}

/* Returns the index of the link that sends next, of those of one kind; -1: there is none. A link
 * that was held, by its receiver's line or after a loss, catches up as soon as it may: what it lags
 * behind would be alone on the line at the end. Those with as much left take turns. */
static int next_in_turn(const struct peers *p, bool urgent) {
	int next = -1;
	double most = -1;
	for (int i = 0; i < p->n_slots; i++) {
		const int at = (p->up_turn + i) % p->n_slots;
		const struct link *l = p->links[at];
		if (!is_open(l) || l->is_passed || is_urgent(p, l) != urgent)
			continue;
		const double left = part_left(p, l);
		next = left > most ? at : next;
		most = left > most ? left : most;
	}
	return next;
}

/* Sends a slice on a link of one kind that can take one: TURN_SENT if some may take more, and more
 * may be sent. */
static enum turn send_turn(struct peers *p, bool urgent) {
	for (int at; (at = next_in_turn(p, urgent)) >= 0;) {
		struct link *l = p->links[at];
		const enum turn turn = send_slice(p, l);
		const bool waits = turn == TURN_WAIT || rate_allowed(&p->up, p->now_us) == 0;
		const bool goes_first = turn == TURN_WAIT || (waits && l->bulk_pending); /* it has not had all of its turn */
		p->up_turn = goes_first ? at : (at + 1) % p->n_slots;
		if (waits)
			return TURN_WAIT;
		if (turn == TURN_SENT)
			return TURN_SENT;
		l->is_passed = true;
	}
	return TURN_OVER;
}

/* Contributions go before means, over all links: a mean that comes early serves nobody, and takes
 * of its receiver's line what contributions need that others wait for. Returns true if more may be
 * sent. */
static bool send_turns(struct peers *p) {
	const enum turn turn = send_turn(p, true);
	return turn == TURN_SENT || (turn == TURN_OVER && send_turn(p, false) == TURN_SENT);
}

void peers_pump_links(struct peers *p) {
	RV_ASSERT(p->depth > 0);
	p->pace.again_us = INT64_MAX;
	for (int i = 0; i < p->n_slots; i++)
		if (is_open(p->links[i]))
			send_control(p, p->links[i]);
	look(p);
	for (int i = 0; i < p->n_slots; i++)
		if (p->links[i] != NULL)
			p->links[i]->is_passed = false;
	int slices = 0;
	while (slices < SLICES_AT_ONCE && send_turns(p))
		slices++;
	if (slices == SLICES_AT_ONCE)
		p->pace.again_us = p->now_us;
	for (int i = 0; i < p->n_slots; i++)
		if (p->links[i] != NULL)
			peers_count(p, p->links[i]);
}
