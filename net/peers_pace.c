/* peers_pace.c: the pull of messages: what goes out next, and how much may wait in sockets (net/peers_state.h).
 *
 * Control is asked for first, on every link, and never waits for tokens. Then links take turns, a frame each, and a
 * frame that was begun is finished before another link begins one, unless its socket is full: so control on any link is
 * behind one frame of bulk at most, and frames come out whole, one after the other.
 *
 * A socket takes far more than a slow line sends in a second, and there are as many sockets as peers. So no frame of
 * bulk is begun while more than WAIT_MS of what the line carries waits unsent, in all sockets together: then what
 * control on any link, of this process or another's, has to wait for is that, and the queue in the router. */
#include "net/peers_state.h"

#include "base/assert.h"
#include "net/socket_info.h"

enum {
	CONTROL_AT_ONCE = 16, /* frames of control for one link before the next has its turn */
	TURNS_AT_ONCE = 32,   /* of bulk before incoming bytes are looked at again */
	WINDOW_US = 100 * 1000,
	WAIT_MS = 200,
	WAIT_LEAST_BYTES = 1 << 14,
	AGAIN_US = 5 * 1000,
	STUCK_US = 500 * 1000
};
static const double decay = 0.75; /* of the best rate, in each window */

static bool is_bulk(const struct peers_message *m) {
	return m->header.type == FRAME_SCATTER || m->header.type == FRAME_GATHER || m->header.type == FRAME_PIECE;
}

static bool is_open(const struct link *l) {
	return l != NULL && l->state == LINK_OPEN;
}

/* ---- how much waits ---------------------------------------------------------------------------------------------- */

static void measure_rate(struct peers *p) {
	struct pace *c = &p->pace;
	int64_t us = p->now_us - c->since_us;
	if (us < WINDOW_US)
		return;
	double now = (double)(p->total.tx_bytes - c->since_bytes) * 1e6 / (double)us;
	double before = c->bytes_per_s * decay;
	c->bytes_per_s = now > before ? now : before;
	c->since_us = p->now_us;
	c->since_bytes = p->total.tx_bytes;
}

/* What waits for the line on this link. For a peer that takes nothing (frozen, cut off) it waits in vain, and must not
 * hold the others back. */
static size_t waiting(const struct peers *p, struct link *l) {
	struct socket_info info;
	socket_look(l->fd, &info);
	size_t bytes = info.unsent + tls_stream_pending(&l->tls);
	if (info.acked != l->acked || bytes == 0) {
		l->acked = info.acked;
		l->acked_us = p->now_us;
	}
	return p->now_us - l->acked_us < STUCK_US ? bytes : 0;
}

static bool may_begin(struct peers *p) {
	double most = p->pace.bytes_per_s * WAIT_MS / 1000;
	size_t bytes = 0;
	if (rate_allowed(&p->up, p->now_us) == 0)
		return false;
	for (int i = 0; i < PEERS_MAX_LINKS; i++)
		bytes += is_open(p->links[i]) ? waiting(p, p->links[i]) : 0;
	bool may = bytes <= WAIT_LEAST_BYTES || (double)bytes <= most;
	if (!may)
		p->pace.again_us = p->now_us + AGAIN_US;
	return may;
}

int64_t peers_pace_deadline_us(const struct peers *p) {
	return p->pace.again_us;
}

/* ---- control, then bulk ------------------------------------------------------------------------------------------ */

/* Behind bulk that was begun it would only queue, and PING would say what is no longer true. */
static void send_control(struct peers *p, struct link *l) {
	const struct peers_owner *owner = &p->cfg.owner;
	for (int i = 0; i < CONTROL_AT_ONCE && l->state == LINK_OPEN && owner->next_control != NULL; i++) {
		struct peers_message m = {0};
		if (!peers_drain(p, l) || !owner->next_control(owner->ctx, (uint32_t)l->member, &m))
			break;
		RV_ASSERT(!is_bulk(&m));
		if (!peers_put(l, &m))
			return;
	}
	if (l->state == LINK_OPEN)
		(void)peers_drain(p, l);
}

/* Finishes the frame under way and begins the next. False: nothing to send, or the socket is full, or not yet. */
static bool send_frame(struct peers *p, struct link *l) {
	struct peers_message m = {0};
	if (!peers_drain(p, l) || !may_begin(p))
		return false;
	if (!p->cfg.owner.next_message(p->cfg.owner.ctx, (uint32_t)l->member, &m) || !peers_put(l, &m))
		return false;
	l->bulk_pending = is_bulk(&m);
	return peers_drain(p, l);
}

/* One turn: a frame for every link that can take one. True: some link may take more, and more may be sent. */
static bool send_turn(struct peers *p) {
	bool again = false;
	int first = p->up_turn;
	for (int i = 0; i < PEERS_MAX_LINKS; i++) {
		int at = (first + i) % PEERS_MAX_LINKS;
		struct link *l = p->links[at];
		if (!is_open(l))
			continue;
		p->up_turn = at; /* out of tokens: its frame goes on first */
		again = send_frame(p, l) || again;
		bool is_held = p->pace.again_us != INT64_MAX;
		if (is_held || rate_allowed(&p->up, p->now_us) == 0) {
			p->up_turn = l->bulk_pending || is_held ? at : (at + 1) % PEERS_MAX_LINKS;
			return false;
		}
	}
	return again;
}

void peers_pump_links(struct peers *p) {
	RV_ASSERT(p->depth > 0);
	p->pace.again_us = INT64_MAX;
	measure_rate(p);
	for (int i = 0; i < PEERS_MAX_LINKS; i++)
		if (is_open(p->links[i]))
			send_control(p, p->links[i]);
	int turns = 0;
	while (turns < TURNS_AT_ONCE && send_turn(p))
		turns++;
	if (turns == TURNS_AT_ONCE)
		p->pace.again_us = p->now_us;
	for (int i = 0; i < PEERS_MAX_LINKS; i++)
		if (p->links[i] != NULL)
			peers_count(p, p->links[i]);
}
