/* offer.c: routes that the owner finds to members that nobody reaches by dialing: when it is asked
 * for one, and what comes of what it offers (net/mesh/state.h).
 *
 * A route is good for one attempt, which both ends make at the same time. Links and dials to the
 * member's own addresses go on beside it; greet.c decides which link stays. */
#include "net/mesh/state.h"

#include "base/assert.h"

#include <string.h>

enum {
	ASK_AFTER_US = 1000 * 1000,     /* time without a link: dials have failed, or an answer is far off */
	COURTESY_US = 500 * 1000,       /* time that the higher key waits for the lower one to ask */
	NEXT_WAY_US = 200 * 1000,       /* from a punch that failed to the next way */
	HANDSHAKE_US = 4 * 1000 * 1000, /* by a relay, from the call to the link */
	STEADY_US = 5 * 1000 * 1000     /* a link that lived at least this long is asked for at once when it breaks */
};
static const int64_t upgrade_min_us = INT64_C(60) * 1000 * 1000, upgrade_max_us = INT64_C(960) * 1000 * 1000;
static const struct gcra asks = {.each_us = 250 * 1000, .burst = 16};

static int64_t courtesy_us(const struct peers *p, const struct peer *peer) {
	return peers_self_is_lower(p, peer->key) ? 0 : COURTESY_US;
}

/* ---- asking ---- */

/* A direct link in doubt is dialed anew first. */
static bool is_unreached(const struct peers *p, const struct peer *peer) {
	return peer->link == NULL || (peer->link->path == PATH_RELAYED && peers_doubts(p, peer));
}

static bool is_relayed(const struct peers *p, const struct peer *peer) {
	return peer->link != NULL && peer->link->path == PATH_RELAYED && !p->keeps_paths;
}

/* Returns the time to ask the owner for a route to this member; INT64_MAX: never. */
static int64_t ask_at_us(const struct peers *p, const struct peer *peer) {
	if (p->cfg.owner.on_unreached == NULL || !peer->wanted || peer->calling != NULL || peer->offered)
		return INT64_MAX;
	if (is_unreached(p, peer))
		return peer->ask_us;
	return is_relayed(p, peer) ? peer->upgrade_us : INT64_MAX;
}

void peers_ask_soon(struct peers *p, struct peer *peer) {
	peer->ask_us = p->now_us + ASK_AFTER_US + courtesy_us(p, peer);
	peer->ask_pause_us = ASK_AFTER_US;
}

static void pause_asking(struct peers *p, struct peer *peer) {
	peer->ask_us = p->now_us + peers_jittered(p, peer->ask_pause_us);
	peer->ask_pause_us = 2 * peer->ask_pause_us < p->cfg.redial_max_us ? 2 * peer->ask_pause_us : p->cfg.redial_max_us;
}

static void pause_upgrade(struct peers *p, struct peer *peer) {
	peer->upgrade_us = p->now_us + peers_jittered(p, peer->upgrade_pause_us);
	peer->upgrade_pause_us = 2 * peer->upgrade_pause_us < upgrade_max_us ? 2 * peer->upgrade_pause_us : upgrade_max_us;
}

void peers_upgrade_later(struct peers *p, struct peer *peer) {
	peer->upgrade_pause_us = upgrade_min_us;
	pause_upgrade(p, peer);
}

void peers_upgrade_soon(const struct peers *p, struct peer *peer) {
	peer->upgrade_us = p->now_us + courtesy_us(p, peer);
	peer->upgrade_pause_us = upgrade_min_us;
}

void peers_ask_again(struct peers *p, struct peer *peer, int64_t lived_us) {
	if (lived_us < STEADY_US) {
		pause_asking(p, peer);
		return;
	}
	peer->ask_us = p->now_us + courtesy_us(p, peer);
	peer->ask_pause_us = ASK_AFTER_US;
}

void peers_ask_next_way(struct peer *peer, int64_t from_us) {
	peer->ask_us = peer->upgrade_us = from_us + NEXT_WAY_US;
	peer->next_way = true;
}

/* The pauses double from one search for a way to the next, not within one. */
static void ask(struct peers *p, struct peer *peer) {
	enum peers_need need = is_unreached(p, peer) ? PEERS_UNREACHED : PEERS_RELAYED;
	int64_t *pause_us = need == PEERS_UNREACHED ? &peer->ask_pause_us : &peer->upgrade_pause_us;
	int64_t same_us = *pause_us;
	if (need == PEERS_UNREACHED)
		pause_asking(p, peer);
	else
		pause_upgrade(p, peer);
	if (peer->next_way)
		*pause_us = same_us;
	peer->next_way = false;
	gcra_count(&asks, &p->asks_us, p->now_us);
	p->cfg.owner.on_unreached(p->cfg.owner.ctx, peer->member, need);
}

/* The one that has waited longest is asked for first. */
static void ask_for_one(struct peers *p) {
	struct peer *longest = NULL;
	int64_t since_us = p->now_us;
	for (int i = 0; i < p->n_members; i++) {
		int64_t at_us = ask_at_us(p, p->members[i]);
		if (at_us > since_us || (at_us == since_us && longest != NULL))
			continue;
		longest = p->members[i];
		since_us = at_us;
	}
	if (longest != NULL && gcra_ready_us(&asks, p->asks_us) <= p->now_us)
		ask(p, longest);
}

/* ---- what is offered ---- */

/* Returns true if the member needs no such route: its link delivers. */
static bool is_reached(const struct peers *p, const struct peer *peer, enum route_kind kind) {
	if (peer->link == NULL || !peers_is_fresh(p, peer->link) || peers_doubts(p, peer))
		return false;
	return kind != ROUTE_PUNCH || !is_relayed(p, peer);
}

/* Returns true if an attempt is worth less than a newer offer, for which both ends were called
 * anew: a punch that is not connected, if a relay is there; a wait at a relay for the other end,
 * which does not come; a relay that has forwarded no handshake for long. */
static bool gives_way(const struct peers *p, const struct link *l, enum route_kind to) {
	if (l->path == PATH_PUNCHED)
		return to == ROUTE_RELAY && l->state == LINK_CONNECTING;
	return l->state == LINK_CONNECTING || p->now_us - l->begun_us >= HANDSHAKE_US;
}

static void give_way(struct peers *p, struct peer *peer, enum route_kind to) {
	if (to == ROUTE_RELAY && peer->offered && peer->offer.kind == ROUTE_PUNCH)
		peer->offered = false;
	if (peer->calling == NULL || !gives_way(p, peer->calling, to))
		return;
	peer->calling->quiet = true;
	link_kill(peer->calling, false, RV_E_CANCELLED, "a newer offer takes its place");
	peers_reap(p);
}

bool peers_offer_route(struct peers *p, int64_t now_us, uint32_t member, const struct route *route) {
	RV_ASSERT(route->kind != ROUTE_DIRECT);
	struct peer *peer = peers_find(p, member);
	p->now_us = now_us;
	if (p->paused || peer == NULL || !peer->known || peers_is_banned(p, member) || is_reached(p, peer, route->kind))
		return false;
	give_way(p, peer, route->kind);
	if (peer->calling != NULL || peer->offered)
		return false;
	if (route->kind == ROUTE_PUNCH)
		return peers_offer_punch(p, peer, route);
	peer->offer = *route;
	peer->offered = true;
	return true;
}

/* Takes the route that was offered. */
static void call(struct peers *p, struct peer *peer) {
	struct rv_errtext et = {0};
	enum rv_err e;
	if (peer->offer.kind == ROUTE_PUNCH && !peers_may_punch(p, peer))
		return;
	peer->offered = false;
	peer->calling = peers_dial_route(p, peer, &peer->offer, &e, &et);
	if (peer->calling != NULL)
		return;
	if (peer->offer.kind == ROUTE_PUNCH)
		peers_ask_next_way(peer, e == RV_E_BUSY ? peer->punch.until_us : p->now_us);
	else
		peers_ask_again(p, peer, 0);
}

void peers_offers_due(struct peers *p) {
	for (int i = 0; i < p->n_members; i++) {
		struct peer *peer = p->members[i];
		if (peer->offered && peer->offer.begin_us <= p->now_us && peers_dial_budget_us(p) <= p->now_us)
			call(p, peer);
	}
	ask_for_one(p);
}

static int64_t later(int64_t a, int64_t b) {
	return a > b ? a : b;
}

int64_t peers_offers_deadline_us(const struct peers *p) {
	int64_t call_us = INT64_MAX, ask_us = INT64_MAX;
	for (int i = 0; i < p->n_members; i++) {
		const struct peer *peer = p->members[i];
		int64_t at_us = ask_at_us(p, peer);
		if (peer->offered && peer->offer.begin_us < call_us)
			call_us = peer->offer.begin_us;
		if (at_us < ask_us)
			ask_us = at_us;
	}
	call_us = later(call_us, peers_dial_budget_us(p));
	ask_us = later(ask_us, gcra_ready_us(&asks, p->asks_us));
	return call_us < ask_us ? call_us : ask_us;
}

/* ---- paths ---- */

void peers_keep_paths(struct peers *p, bool keeps) {
	p->keeps_paths = keeps;
}
