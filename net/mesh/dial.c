/* dial.c: the address book of the mesh, dialing and redialing (net/mesh/state.h). */
#include "net/mesh/state.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdio.h>
#include <string.h>

enum {
	/* Addresses come from documents, and so from other members: none of them must be able to make
	 * this program flood a third party. So failures count for the member, not for its address; a
	 * new address (or a member that comes back) hurries a dial only every HURRY_EVERY_US; and all
	 * dials together have a budget. */
	HURRY_EVERY_US = 10 * 1000 * 1000,
	PROVEN_US = 1000 * 1000,     /* an address that answered before does so within this and some pauses */
	STEADY_US = 5 * 1000 * 1000, /* a link that lived at least this long is redialed at once when it breaks */
	/* Longest pause between dials beside a relayed link: an address that never answered gets 3
	 * packets in it (TCP repeats the first after 1 and 3 s, and connect_us ends the dial). */
	PROBE_MAX_US = 300 * 1000 * 1000,
	AT_RELAY_US = 10 * 1000 * 1000, /* wait for the other side: a call's tokens live as long */
	/* An address that never answered may refuse because a router does; but a live member behind it,
	 * which lost the same link, has dialed this worker by then. */
	REFUSED_US = 600 * 1000
};
static const struct gcra dials = {.each_us = 100 * 1000, .burst = 200};

int64_t peers_jittered(struct peers *p, int64_t us) {
	return (int64_t)((double)us * (0.75 + 0.5 * rv_rng_double(&p->rng)));
}

static int64_t courtesy_us(const struct peers *p, const struct peer *peer) {
	return peers_self_is_lower(p, peer->key) ? 0 : p->cfg.courtesy_us;
}

static bool is_relayed(const struct peer *peer) {
	return peer->link != NULL && peer->link->path == PATH_RELAYED;
}

static bool is_dialable(const struct peers *p, const struct peer *peer) {
	bool lacks_link = peer->link == NULL || peers_doubts(p, peer) || (is_relayed(peer) && !p->keeps_paths);
	return peer->wanted && lacks_link && peer->dialing == NULL && address_is_dialable(&peer->addr, p->met);
}

int64_t peers_dial_budget_us(const struct peers *p) {
	return gcra_ready_us(&dials, p->dials_us);
}

static void pause_dial(struct peers *p, struct peer *peer) {
	int64_t most_us = is_relayed(peer) ? PROBE_MAX_US : p->cfg.redial_max_us;
	if (peer->pause_us > most_us) /* it grew beside a relayed link, which is lost */
		peer->pause_us = most_us;
	peer->next_dial_us = p->now_us + peers_jittered(p, peer->pause_us);
	if (RV_BUG("redial-without-backoff"))
		return;
	peer->pause_us = 2 * peer->pause_us < most_us ? 2 * peer->pause_us : most_us;
}

void peers_probe_later(struct peers *p, uint32_t m) {
	struct peer *peer = &p->members[m];
	peer->pause_us = p->cfg.redial_max_us;
	peer->next_dial_us = p->now_us + peers_jittered(p, peer->pause_us);
}

void peers_dial_failed(struct peers *p, uint32_t m, enum rv_err why, const char *text) {
	struct peer *peer = &p->members[m];
	pause_dial(p, peer);
	peer->doubted = false;
	bool is_gone = peer->reached || p->now_us - peer->missed_us >= REFUSED_US;
	if (why != RV_E_NOTFOUND || !peer->missed || !is_gone)
		return;
	peer->missed = false;
	p->cfg.owner.on_link_down(p->cfg.owner.ctx, m, true, why, text);
}

void peers_dial_again(struct peers *p, uint32_t m, const struct link *l) {
	struct peer *peer = &p->members[m];
	int64_t lived_us = l->fatal ? 0 : p->now_us - l->opened_us;
	bool dials_find_out = l->path == PATH_DIALED || l->path == PATH_ACCEPTED || peer->reached;
	peer->missed = dials_find_out; /* else a refusal is the router's */
	peer->missed_us = p->now_us;
	if (l->path == PATH_RELAYED || l->path == PATH_PUNCHED)
		peers_ask_again(p, m, lived_us);
	else
		peers_ask_soon(p, m);
	if (lived_us < STEADY_US || !dials_find_out) {
		pause_dial(p, peer);
		return;
	}
	peer->pause_us = p->cfg.redial_min_us;
	peer->next_dial_us = p->now_us + courtesy_us(p, peer);
}

void peers_dial_soon(struct peers *p, uint32_t m) {
	struct peer *peer = &p->members[m];
	peer->pause_us = p->cfg.redial_min_us;
	peer->next_dial_us = p->now_us;
}

/* TCP sends a lost first packet again after 1, 3 and 7 s, a new dial sooner; but if no dial was
 * answered within the shorter time, the next one waits longer. */
static int64_t connect_us(const struct peers *p, const struct peer *peer) {
	int64_t us = PROVEN_US + 4 * peer->pause_us;
	return peer->reached && us < p->cfg.connect_us ? us : p->cfg.connect_us;
}

static int64_t route_us(const struct peers *p, const struct peer *peer, const struct route *to) {
	if (to->kind == ROUTE_PUNCH)
		return PEERS_PUNCH_US;
	return connect_us(p, peer) + (to->kind == ROUTE_RELAY ? AT_RELAY_US : 0);
}

/* Of a pair that both dial, the lower key is the TLS client. */
static enum frame_role role_in(const struct peers *p, const struct peer *peer, const struct route *to) {
	bool is_client = to->kind == ROUTE_DIRECT || peers_self_is_lower(p, peer->key);
	return is_client || RV_BUG("both-are-clients") ? FRAME_DIALER : FRAME_LISTENER;
}

struct link *peers_dial_route(struct peers *p, uint32_t m, const struct route *to, enum rv_err *why,
							  struct rv_errtext *et) {
	static const enum path_kind paths[] = {
		[ROUTE_DIRECT] = PATH_DIALED, [ROUTE_PUNCH] = PATH_PUNCHED, [ROUTE_RELAY] = PATH_RELAYED};
	const struct peer *peer = &p->members[m];
	char label[LINK_LABEL_BYTES], addr[NET_ADDR_BYTES] = "";
	int fd;
	address_format(&to->at, addr);
	snprintf(label, sizeof label, "member %u %s %s", m, to->kind == ROUTE_RELAY ? "by the relay" : "at", addr);
	*why = p->net.connect(p->net.ctx, to, peers_receive_bytes(p), &fd, et);
	if (*why == RV_E_BUSY)
		return NULL;
	if (*why != RV_OK) {
		rv_fail_context(et, *why, "%s", label);
		peers_trouble(p, NULL, *why, et->text);
		return NULL;
	}
	gcra_count(&dials, &p->dials_us, p->now_us);
	struct link *l = peers_add_link(p, fd, role_in(p, peer, to), paths[to->kind]);
	if (l == NULL) {
		*why = rv_fail(et, RV_E_FULL, "the mesh has no room for another link");
		return NULL;
	}
	memcpy(l->label, label, sizeof label);
	l->member = (int)m;
	l->route = *to;
	l->deadline_us = p->now_us + route_us(p, peer, to);
	return l;
}

static void dial(struct peers *p, uint32_t m) {
	struct peer *peer = &p->members[m];
	const struct route to = {.kind = ROUTE_DIRECT, .at = peer->addr};
	struct rv_errtext et = {0};
	enum rv_err e;
	peer->dialing = peers_dial_route(p, m, &to, &e, &et);
	if (peer->dialing == NULL)
		peers_dial_failed(p, m, e, et.text);
}

void peers_dial_due(struct peers *p) {
	for (uint32_t m = 0; m < NET_MAX_MEMBERS; m++)
		if (is_dialable(p, &p->members[m]) && p->members[m].next_dial_us <= p->now_us &&
			peers_dial_budget_us(p) <= p->now_us)
			dial(p, m);
}

int64_t peers_dial_deadline_us(const struct peers *p) {
	int64_t deadline = INT64_MAX;
	for (int m = 0; m < NET_MAX_MEMBERS; m++)
		if (is_dialable(p, &p->members[m]) && p->members[m].next_dial_us < deadline)
			deadline = p->members[m].next_dial_us;
	int64_t budget_us = peers_dial_budget_us(p);
	return deadline > budget_us ? deadline : budget_us;
}

/* ---- the roster ---- */

static void forget_links(struct peer *peer, const char *why) {
	if (peer->link != NULL)
		link_kill(peer->link, true, RV_E_AUTH, "%s", why);
	if (peer->dialing != NULL)
		link_kill(peer->dialing, false, RV_E_AUTH, "%s", why);
	if (peer->calling != NULL)
		link_kill(peer->calling, false, RV_E_AUTH, "%s", why);
	peer->offered = false;
}

/* Doubts the link of a member that has moved or restarted, if nothing came on it recently: it may
 * be dead. */
static void doubt(struct peers *p, struct peer *peer) {
	const struct link *l = peer->link;
	peer->doubted = l != NULL && l->state == LINK_OPEN && !peers_is_fresh(p, l);
}

static void hurry(struct peers *p, struct peer *peer) {
	if (p->now_us < peer->hurry_us)
		return;
	peer->hurry_us = p->now_us + HURRY_EVERY_US;
	if (peer->pause_us == 0)
		peer->pause_us = p->cfg.redial_min_us;
	peer->next_dial_us = p->now_us + courtesy_us(p, peer);
}

/* Reports why there is no link to a member whose address is too narrow. */
static void tell_not_dialed(struct peers *p, uint32_t m, const struct address *addr) {
	struct rv_errtext et;
	char text[NET_ADDR_BYTES] = "";
	if (addr->host[0] == '\0' || address_is_dialable(addr, p->met))
		return;
	(void)address_format(addr, text);
	enum rv_err why =
		rv_fail(&et, RV_E_UNSUPPORTED,
				"member %u at %s is not dialed: that is a %s address, and the coordinator is reached at a "
				"%s one; it has to dial this worker",
				m, text, address_reach_name(address_reach(addr)), address_reach_name(p->met));
	peers_trouble(p, NULL, why, et.text);
}

static void want(struct peers *p, const struct member_ref *ref, bool was_wanted) {
	struct peer *peer = &p->members[ref->member];
	struct address addr;
	if ((peer->known || peer->link != NULL) && memcmp(peer->key, ref->key, NET_KEY_BYTES) != 0)
		forget_links(peer, "the roster gives this member another key");
	/* Without an address that can be parsed it cannot be dialed: such a member has to dial this
	 * worker. */
	if (address_parse(candidates_seen(ref->candidates, ref->n_candidates), &addr, NULL) != RV_OK)
		addr = (struct address){0};
	bool moved = addr.port != peer->addr.port || strcmp(addr.host, peer->addr.host) != 0;
	bool restarted = ref->boot != 0 && peer->boot != 0 && !report_same_process(ref->boot, peer->boot);
	bool had_addr = peer->addr.host[0] != '\0';
	memcpy(peer->key, ref->key, NET_KEY_BYTES);
	peer->known = peer->wanted = true;
	peer->boot = ref->boot != 0 ? ref->boot : peer->boot;
	if (moved)
		tell_not_dialed(p, ref->member, &addr);
	if (!was_wanted)
		peer->alone_us = p->now_us;
	if (moved || !was_wanted) {
		peer->addr = addr;
		peer->reached = peer->reached && !moved;
		hurry(p, peer);
	}
	if (!was_wanted)
		peers_ask_soon(p, ref->member);
	if (restarted || (moved && had_addr))
		doubt(p, peer);
}

void peers_allow(struct peers *p, int64_t now_us, const struct member_ref *members, int n) {
	bool was_wanted[NET_MAX_MEMBERS];
	p->now_us = now_us;
	p->depth++;
	for (int m = 0; m < NET_MAX_MEMBERS; m++) {
		was_wanted[m] = p->members[m].wanted;
		p->members[m].wanted = false;
	}
	for (int i = 0; i < n; i++) {
		RV_ASSERT(members[i].member < NET_MAX_MEMBERS);
		bool banned = p->banned >> members[i].member & 1;
		if (members[i].member != p->cfg.self_member && !banned)
			want(p, &members[i], was_wanted[members[i].member]);
	}
	for (int m = 0; m < NET_MAX_MEMBERS; m++) {
		struct peer *peer = &p->members[m];
		if (peer->wanted || peer->dialing == NULL)
			continue;
		peer->dialing->quiet = true;
		link_kill(peer->dialing, false, RV_E_CANCELLED, "no longer wanted");
	}
	p->depth--;
	peers_reap(p);
}

void peers_ban(struct peers *p, int64_t now_us, uint64_t banned) {
	p->now_us = now_us;
	p->banned = banned & ~(UINT64_C(1) << p->cfg.self_member);
	p->depth++;
	for (int m = 0; m < NET_MAX_MEMBERS; m++) {
		if (!(p->banned >> m & 1))
			continue;
		forget_links(&p->members[m], "it is banned from this run");
		p->members[m].wanted = false;
	}
	p->depth--;
	peers_reap(p);
}
