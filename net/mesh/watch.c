/* watch.c: which links still deliver, and what a change of the network means (net/mesh/state.h).
 *
 * A line that was cut gives no sign. TCP finds out by its retransmission timer, which doubles: 10 s
 * after a cut it tries again after 5 to 12 s more. A fresh connection finds out at once, so a link
 * on which bytes wait and none move gets a second one beside it, which replaces it when it is
 * up. */
#include "net/mesh/state.h"

enum {
	STUCK_US = 500 * 1000,
	FRESH_US = 1000 * 1000, /* a link that received bytes within this is alive, whatever the roster says */
	LOOKS = 8,              /* within silent_us, while something waits */
	ABSENT_LOOKS = 2        /* missed: this program did not run */
};

/* Returns how long bytes have waited while none was delivered and none came. */
static int64_t silence_us(const struct peers *p, const struct link *l) {
	return l->state == LINK_OPEN && l->waiting > 0 ? p->now_us - l->alive_us : 0;
}

bool peers_doubts(const struct peers *p, const struct peer *peer) {
	if (peer->link == NULL || peer->link->state != LINK_OPEN)
		return false;
	return peer->doubted || silence_us(p, peer->link) >= p->cfg.silent_us / 2;
}

bool peers_is_fresh(const struct peers *p, const struct link *l) {
	return l->state == LINK_OPEN && p->now_us - l->last_rx_us < FRESH_US;
}

int64_t peers_watch_deadline_us(const struct peers *p, const struct link *l) {
	if (l->state != LINK_OPEN || l->waiting == 0)
		return INT64_MAX;
	return p->watched_us + p->cfg.silent_us / LOOKS;
}

void peers_forgive_own_absence(struct peers *p) {
	bool absent = p->now_us - p->watched_us > ABSENT_LOOKS * p->cfg.silent_us / LOOKS;
	p->watched_us = p->now_us;
	for (int i = 0; absent && i < p->n_slots; i++)
		if (p->links[i] != NULL)
			p->links[i]->alive_us = p->now_us;
}

/* Ends a dial beside the link, but only before its HELLO is out: until then the other side cannot
 * have opened it. */
static void end_dial_beside(const struct peer *peer) {
	struct link *beside = peer->dialing;
	if (beside == NULL || beside->state >= LINK_GREETING)
		return;
	beside->quiet = true;
	link_kill(beside, false, RV_E_CLOSED, "duplicate: the link delivers again");
}

void peers_watch(struct peers *p, struct link *l) {
	const struct peer *peer = peers_find(p, l->member);
	int64_t silent_us = silence_us(p, l);
	if (silent_us >= p->cfg.silent_us)
		link_kill(l, false, RV_E_TIMEOUT, "nothing was delivered or came for %.1f s", (double)silent_us * 1e-6);
	else if (peer != NULL && peer->link == l && l->path != PATH_RELAYED && !peers_doubts(p, peer))
		end_dial_beside(peer);
}

void peers_set_reach(struct peers *p, enum address_reach met) {
	p->met = met;
}

/* ---- another network ---- */

static void drop_stranded(struct peers *p) {
	for (int i = 0; i < p->n_slots; i++) {
		struct link *l = p->links[i];
		if (l == NULL || l->state == LINK_DEAD || !p->net.is_stranded(p->net.ctx, l->fd))
			continue;
		link_end(l, false, RV_E_CANCELLED, "this machine no longer has the address that the link was made from");
		l->say_bye = false;
	}
}

/* Drops dials without an answer: TCP repeats a lost connection request only after 1, 3 and 7 s. */
static void drop_unanswered(struct peers *p) {
	for (int i = 0; i < p->n_slots; i++) {
		struct link *l = p->links[i];
		if (l == NULL || l->state != LINK_CONNECTING)
			continue;
		l->quiet = true;
		link_kill(l, false, RV_E_CANCELLED, "dialed anew: the network has changed");
	}
}

void peers_nudge(struct peers *p, struct link *l) {
	if (l->state != LINK_OPEN || link_is_cut(l) || stream_pending(&l->stream) > 0)
		return; /* what waits does as well */
	const struct peers_message m = {.header = frame_header_of(FRAME_NUDGE, l->run_tag, 0)};
	if (l->waiting == 0)
		l->alive_us = p->now_us;
	if (peers_put(l, &m))
		(void)peers_drain(p, l);
	l->waiting += FRAME_HEADER_BYTES;
	p->watched_us = p->now_us;
}

static void hurry(struct peers *p, int64_t now_us, bool doubts_all) {
	p->now_us = now_us;
	p->depth++;
	drop_stranded(p);
	drop_unanswered(p);
	p->depth--;
	peers_reap(p);
	for (int i = 0; i < p->n_members; i++) {
		struct peer *peer = p->members[i];
		if (!peer->wanted)
			continue;
		if (peer->link != NULL) {
			peer->doubted = peer->doubted || doubts_all || silence_us(p, peer->link) >= STUCK_US;
			peers_nudge(p, peer->link);
		} else
			peers_ask_soon(p, peer);
		peers_upgrade_soon(p, peer);
		peers_dial_soon(p, peer);
	}
}

void peers_hurry(struct peers *p, int64_t now_us) {
	hurry(p, now_us, false);
}

void peers_woke(struct peers *p, int64_t now_us) {
	hurry(p, now_us, true);
}
