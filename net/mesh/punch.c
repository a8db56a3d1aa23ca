/* punch.c: links that both ends dial at one moment (ROUTE_PUNCH; net/mesh/state.h).
 *
 * Three things can come of it. The packets cross, and both ends get a connection from connect(2)
 * (RFC 9293, section 3.5, simultaneous open). One end's packet comes first: the other end's
 * listener has the connection, and connect(2) there fails with EADDRNOTAVAIL, or is still under way
 * and fails later. Or the caller's router gives it another port for this destination, so the
 * connection that comes is from the right host and from a port that nobody named. So for PUNCH_US
 * from its moment on, the mesh takes what comes from that host as the other end.
 *
 * No end can tell which of these happened to the other one, so the lower key is the TLS client in
 * all of them. It begins at once where the address is the one that was named; where only the host
 * is, after TURN_US without a byte: another member of that host would be the client itself. */
#include "net/mesh/state.h"

#include "base/planted.h"

#include <string.h>

enum { TURN_US = 500 * 1000 };
static const struct gcra punches = {.each_us = 15 * 1000 * 1000, .burst = 8};

static bool is_host(const struct address *a, const struct address *b) {
	return strcmp(a->host, b->host) == 0;
}

static bool is_same(const struct address *a, const struct address *b) {
	return is_host(a, b) && a->port == b->port;
}

static bool is_due(const struct peers *p, const struct peer *peer) {
	return p->now_us <= peer->punch.until_us;
}

/* Returns the member with which a punch is under way or about to begin there, at the same port if
 * there is one; NULL: none. */
static struct peer *punches_with(const struct peers *p, const struct address *from) {
	struct peer *found = NULL;
	for (int i = 0; i < p->n_members; i++) {
		struct peer *peer = p->members[i];
		if (!is_due(p, peer) || !is_host(&peer->punch.at, from))
			continue;
		if (is_same(&peer->punch.at, from))
			return peer;
		found = peer;
	}
	return found;
}

bool peers_is_punched(const struct link *l, const struct peer *peer) {
	return l->inbound && l->begun_us <= peer->punch.until_us && l->begun_us >= peer->punch.offered_us &&
		   is_host(&peer->punch.at, &l->from);
}

/* Lets the dial go whose connection came to the listener instead. */
static void end_calling(struct peer *peer) {
	peer->offered = false;
	if (peer->calling == NULL || peer->calling->state != LINK_CONNECTING)
		return;
	peer->calling->quiet = true;
	link_kill(peer->calling, false, RV_E_CLOSED, "the other side's packet came first");
}

static void turn(struct peers *p, struct link *l) {
	struct rv_errtext et = {0};
	l->turn_us = 0;
	enum rv_err e = link_become_dialer(l, p->stream_shared, &et);
	if (e != RV_OK)
		link_kill(l, false, e, "%s", et.text);
}

/* Takes `l` for the connection of a punch with the member, whose address it has. */
static void begin(struct peers *p, struct link *l, struct peer *peer) {
	end_calling(peer);
	l->member = peer->member;
	if (peers_self_is_lower(p, peer->key) || RV_BUG("both-are-clients"))
		turn(p, l);
}

void peers_admit_punched(struct peers *p, struct link *l) {
	struct peer *peer = punches_with(p, &l->from);
	if (peer == NULL)
		return;
	if (is_same(&peer->punch.at, &l->from))
		begin(p, l, peer);
	else if (peers_self_is_lower(p, peer->key))
		l->turn_us = p->now_us + TURN_US;
}

void peers_turn_due(struct peers *p, struct link *l) {
	if (l->turn_us == 0 || (l->state == LINK_TLS && l->greeting_rx == 0 && l->turn_us > p->now_us))
		return;
	if (l->state == LINK_TLS && l->greeting_rx == 0)
		turn(p, l);
	l->turn_us = 0;
}

/* Finds a connection from there that came before this side learnt of the punch, and on which
 * nothing came: the other end waits for a client, too. */
static struct link *find_early(const struct peers *p, const struct address *at) {
	for (int i = 0; i < p->n_slots; i++) {
		struct link *l = p->links[i];
		if (l != NULL && l->inbound && l->state == LINK_TLS && l->role == FRAME_LISTENER && l->greeting_rx == 0 &&
			is_same(&l->from, at))
			return l;
	}
	return NULL;
}

bool peers_offer_punch(struct peers *p, struct peer *peer, const struct route *route) {
	int64_t begin_us = route->begin_us > p->now_us ? route->begin_us : p->now_us;
	struct link *early = find_early(p, &route->at);
	if (!gcra_take(&punches, &peer->punch.paid_us, p->now_us))
		return false;
	peer->punch.at = route->at;
	peer->punch.until_us = begin_us + PEERS_PUNCH_US;
	peer->punch.offered_us = early != NULL ? early->begun_us : p->now_us;
	peer->offer = *route;
	peer->offered = true;
	if (route->local_port == 0)
		peer->offer.local_port = RV_BUG("punch-from-another-port") ? 0 : p->port;
	if (early != NULL)
		begin(p, early, peer);
	return true;
}

/* A dial from another port of this machine would only be in the way. Of two connections between the
 * same addresses there can be one: a punched link that is in doubt ends first. One that is not
 * stays: if the other end has lost it, its packet makes TCP find that out. */
bool peers_may_punch(struct peers *p, struct peer *peer) {
	struct link *old = peer->link;
	if (peer->dialing != NULL && peer->dialing->state < LINK_GREETING) {
		peer->dialing->quiet = true;
		link_kill(peer->dialing, false, RV_E_CLOSED, "both dial at one moment now");
	}
	if (old == NULL || old->path != PATH_PUNCHED)
		return true;
	if (old->state == LINK_OPEN && !peers_doubts(p, peer))
		peer->offered = false;
	else if (old->state == LINK_OPEN)
		link_kill(old, false, RV_E_TIMEOUT, "in doubt, and both dial anew");
	return false;
}
