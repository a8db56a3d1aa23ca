/* peers_pace.c: the pull of messages under a cap on the upload (net/peers_state.h).
 *
 * Control is asked for first, on every link, and never waits for tokens. Then links take turns, a frame each, and a
 * frame that was begun is finished before another link begins one, unless its socket is full: so control on any link is
 * behind one frame of bulk at most, and frames come out whole at the pace of the cap, one after the other. */
#include "net/peers_state.h"

#include "base/assert.h"

enum { CONTROL_AT_ONCE = 16 }; /* frames of control for one link before the next has its turn */

static bool is_bulk(const struct peers_message *m) {
	return m->header.type == FRAME_SCATTER || m->header.type == FRAME_GATHER || m->header.type == FRAME_PIECE;
}

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

/* Finishes the frame under way and begins the next. False: nothing to send, or the socket is full, or no tokens. */
static bool send_frame(struct peers *p, struct link *l) {
	struct peers_message m = {0};
	if (!peers_drain(p, l) || rate_allowed(&p->up, p->now_us) == 0)
		return false;
	if (!p->cfg.owner.next_message(p->cfg.owner.ctx, (uint32_t)l->member, &m) || !peers_put(l, &m))
		return false;
	l->bulk_pending = is_bulk(&m);
	return peers_drain(p, l);
}

static bool is_open(const struct link *l) {
	return l != NULL && l->state == LINK_OPEN;
}

/* One turn: a frame for every link that can take one. True: some link may take more, and there are tokens. */
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
		if (rate_allowed(&p->up, p->now_us) == 0) {
			p->up_turn = l->bulk_pending ? at : (at + 1) % PEERS_MAX_LINKS;
			return false;
		}
	}
	return again;
}

void peers_pump_paced(struct peers *p) {
	RV_ASSERT(p->depth > 0);
	for (int i = 0; i < PEERS_MAX_LINKS; i++) {
		if (!is_open(p->links[i]))
			continue;
		p->links[i]->more = false;
		send_control(p, p->links[i]);
	}
	while (send_turn(p))
		;
	for (int i = 0; i < PEERS_MAX_LINKS; i++)
		if (p->links[i] != NULL)
			peers_count(p, p->links[i]);
}
