/* offer.c: routes that the owner finds to members that nobody reaches by dialing: when it is asked
 * for one, and what comes of what it offers (net/mesh/state.h).
 *
 * A route is good for one attempt, which both ends make at the same time. Links and dials to the
 * member's own address go on beside it; greet.c decides which link stays. */
#include "net/mesh/state.h"

#include "base/assert.h"
#include "base/planted.h"

#include <string.h>

enum {
	ASK_AFTER_US = 2 * 1000 * 1000, /* time without a link: dials have failed, or an answer is far off */
	COURTESY_US = 1000 * 1000,      /* time that the higher key waits for the lower one to ask */
	ASK_EVERY_US = 1000 * 1000,     /* over all members */
	STEADY_US = 5 * 1000 * 1000     /* a link that lived at least this long is asked for at once when it breaks */
};

static int64_t courtesy_us(const struct peers *p, const struct peer *peer) {
	return peers_self_is_lower(p, peer->key) ? 0 : COURTESY_US;
}

/* ---- asking ---- */

/* A direct link in doubt is dialed anew first. */
static bool is_unreached(const struct peers *p, const struct peer *peer) {
	bool lacks_link = peer->link == NULL || (peer->link->path == PATH_RELAYED && peers_doubts(p, peer));
	return p->cfg.owner.on_unreached != NULL && peer->wanted && lacks_link && peer->calling == NULL && !peer->offered;
}

void peers_ask_soon(struct peers *p, uint32_t m) {
	struct peer *peer = &p->members[m];
	peer->ask_us = p->now_us + ASK_AFTER_US + courtesy_us(p, peer);
	peer->ask_pause_us = ASK_AFTER_US;
}

static void pause_asking(struct peers *p, struct peer *peer) {
	peer->ask_us = p->now_us + peers_jittered(p, peer->ask_pause_us);
	peer->ask_pause_us = 2 * peer->ask_pause_us < p->cfg.redial_max_us ? 2 * peer->ask_pause_us : p->cfg.redial_max_us;
}

void peers_ask_again(struct peers *p, uint32_t m, int64_t lived_us) {
	struct peer *peer = &p->members[m];
	if (lived_us < STEADY_US) {
		pause_asking(p, peer);
		return;
	}
	peer->ask_us = RV_BUG("called-only-once") ? INT64_MAX : p->now_us + courtesy_us(p, peer);
	peer->ask_pause_us = ASK_AFTER_US;
}

static void ask(struct peers *p, uint32_t m) {
	pause_asking(p, &p->members[m]);
	p->asked_us = p->now_us;
	p->cfg.owner.on_unreached(p->cfg.owner.ctx, m);
}

/* The one that has waited longest is asked for first. */
static void ask_for_one(struct peers *p) {
	int longest = LINK_NOBODY;
	for (int m = 0; m < NET_MAX_MEMBERS; m++)
		if (is_unreached(p, &p->members[m]) && p->members[m].ask_us <= p->now_us &&
			(longest == LINK_NOBODY || p->members[m].ask_us < p->members[longest].ask_us))
			longest = m;
	if (longest != LINK_NOBODY && p->now_us - p->asked_us >= ASK_EVERY_US)
		ask(p, (uint32_t)longest);
}

/* ---- what is offered ---- */

bool peers_offer_route(struct peers *p, int64_t now_us, uint32_t member, const struct route *route) {
	RV_ASSERT(member < NET_MAX_MEMBERS && route->kind != ROUTE_DIRECT);
	struct peer *peer = &p->members[member];
	p->now_us = now_us;
	bool delivers = peer->link != NULL && peers_is_fresh(p, peer->link) && !peers_doubts(p, peer);
	if (!peer->known || (p->banned >> member & 1) || delivers || peer->calling != NULL || peer->offered)
		return false;
	peer->offer = *route;
	peer->offered = true;
	if (route->kind == ROUTE_PUNCH && route->local_port == 0)
		peer->offer.local_port = p->port;
	return true;
}

/* Takes the route that was offered. A dial from another port of this machine would only be in the
 * way of a punch. */
static void call(struct peers *p, uint32_t m) {
	struct peer *peer = &p->members[m];
	struct rv_errtext et = {0};
	enum rv_err e;
	peer->offered = false;
	if (peer->offer.kind == ROUTE_PUNCH && peer->dialing != NULL && peer->dialing->state < LINK_GREETING) {
		peer->dialing->quiet = true;
		link_kill(peer->dialing, false, RV_E_CLOSED, "both dial at one moment now");
	}
	peer->calling = peers_dial_route(p, m, &peer->offer, &e, &et);
	if (peer->calling == NULL)
		peers_ask_again(p, m, 0);
}

void peers_offers_due(struct peers *p) {
	for (uint32_t m = 0; m < NET_MAX_MEMBERS; m++)
		if (p->members[m].offered && p->members[m].offer.begin_us <= p->now_us && peers_dial_budget_us(p) <= p->now_us)
			call(p, m);
	ask_for_one(p);
}

static int64_t later(int64_t a, int64_t b) {
	return a > b ? a : b;
}

int64_t peers_offers_deadline_us(const struct peers *p) {
	int64_t call_us = INT64_MAX, ask_us = INT64_MAX;
	for (int m = 0; m < NET_MAX_MEMBERS; m++) {
		const struct peer *peer = &p->members[m];
		if (peer->offered && peer->offer.begin_us < call_us)
			call_us = peer->offer.begin_us;
		if (is_unreached(p, peer) && peer->ask_us < ask_us)
			ask_us = peer->ask_us;
	}
	call_us = later(call_us, peers_dial_budget_us(p));
	ask_us = later(ask_us, p->asked_us + ASK_EVERY_US);
	return call_us < ask_us ? call_us : ask_us;
}

/* ---- punches whose connection comes to the listener ---- */

static bool is_punch_to(const struct route *r, const struct address *to) {
	return r->kind == ROUTE_PUNCH && r->at.port == to->port && strcmp(r->at.host, to->host) == 0;
}

int peers_punches_with(const struct peers *p, const struct address *from) {
	for (int m = 0; m < NET_MAX_MEMBERS; m++) {
		const struct peer *peer = &p->members[m];
		bool is_under_way = peer->calling != NULL && peer->calling->state == LINK_CONNECTING;
		if ((peer->offered && is_punch_to(&peer->offer, from)) ||
			(is_under_way && is_punch_to(&peer->calling->route, from)))
			return m;
	}
	return LINK_NOBODY;
}

void peers_end_punch(struct peers *p, uint32_t m) {
	struct peer *peer = &p->members[m];
	peer->offered = false;
	if (peer->calling == NULL)
		return;
	peer->calling->quiet = true;
	link_kill(peer->calling, false, RV_E_CLOSED, "the other side's packet came first");
}

/* ---- paths ---- */

void peers_keep_paths(struct peers *p, bool keeps) {
	p->keeps_paths = keeps;
}
