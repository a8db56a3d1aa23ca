/* peers_dial.c: the address book of the mesh, dialing and redialing (net/peers_state.h). */
#include "net/peers_state.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

enum {
	STEADY_US = 5 * 1000 * 1000, /* a link that lived so long is redialed at once when it breaks */
	/* An address that never answered us may refuse because a router does; but who lives behind it, and lost its link as
	 * we did, has dialed us by then. */
	REFUSED_US = 600 * 1000
};

/* 0.75 to 1.25 of it: workers that lost the same peer do not come back in step. */
static int64_t jittered(struct peers *p, int64_t us) {
	return (int64_t)((double)us * (0.75 + 0.5 * rv_rng_double(&p->rng)));
}

static int64_t courtesy_us(const struct peers *p, const struct peer *peer) {
	return peers_self_is_lower(p, peer->key) ? 0 : p->cfg.courtesy_us;
}

static bool is_dialable(const struct peer *peer) {
	return peer->wanted && peer->link == NULL && peer->dialing == NULL && peer->addr.host[0] != '\0';
}

static void pause_dial(struct peers *p, struct peer *peer) {
	peer->next_dial_us = p->now_us + jittered(p, peer->pause_us);
	peer->pause_us = 2 * peer->pause_us < p->cfg.redial_max_us ? 2 * peer->pause_us : p->cfg.redial_max_us;
}

void peers_dial_failed(struct peers *p, uint32_t m, enum rv_err why, const char *text) {
	struct peer *peer = &p->members[m];
	pause_dial(p, peer);
	bool is_gone = peer->reached || p->now_us - peer->missed_us >= REFUSED_US;
	if (why != RV_E_NOTFOUND || !peer->missed || !is_gone)
		return;
	peer->missed = false;
	p->cfg.owner.on_link_down(p->cfg.owner.ctx, m, true, why, text);
}

void peers_dial_again(struct peers *p, uint32_t m, int64_t lived_us) {
	struct peer *peer = &p->members[m];
	peer->missed = true;
	peer->missed_us = p->now_us;
	if (lived_us < STEADY_US) {
		pause_dial(p, peer);
		return;
	}
	peer->pause_us = p->cfg.redial_min_us;
	peer->next_dial_us = p->now_us + courtesy_us(p, peer);
}

static void dial(struct peers *p, uint32_t m) {
	struct peer *peer = &p->members[m];
	struct rv_errtext et = {0};
	char label[LINK_LABEL_BYTES], addr[NET_ADDR_BYTES] = "";
	int fd;
	address_format(&peer->addr, addr);
	snprintf(label, sizeof label, "member %u at %s", m, addr);
	enum rv_err e = socket_connect(&peer->addr, peers_receive_bytes(p), &fd, &et);
	if (e != RV_OK) {
		rv_fail_context(&et, e, "%s", label);
		peers_trouble(p, NULL, e, et.text);
		peers_dial_failed(p, m, e, et.text);
		return;
	}
	struct link *l = peers_add_link(p, fd, FRAME_DIALER);
	if (l == NULL) {
		pause_dial(p, peer);
		return;
	}
	memcpy(l->label, label, sizeof label);
	l->member = (int)m;
	l->deadline_us = p->now_us + p->cfg.connect_us;
	peer->dialing = l;
}

void peers_dial_due(struct peers *p) {
	for (uint32_t m = 0; m < NET_MAX_MEMBERS; m++)
		if (is_dialable(&p->members[m]) && p->members[m].next_dial_us <= p->now_us)
			dial(p, m);
}

int64_t peers_dial_deadline_us(const struct peers *p) {
	int64_t deadline = INT64_MAX;
	for (int m = 0; m < NET_MAX_MEMBERS; m++)
		if (is_dialable(&p->members[m]) && p->members[m].next_dial_us < deadline)
			deadline = p->members[m].next_dial_us;
	return deadline;
}

/* ---- the roster -------------------------------------------------------------------------------------------------- */

static void forget_links(struct peer *peer, const char *why) {
	if (peer->link != NULL)
		link_kill(peer->link, true, RV_E_AUTH, "%s", why);
	if (peer->dialing != NULL)
		link_kill(peer->dialing, false, RV_E_AUTH, "%s", why);
}

static void want(struct peers *p, const struct member_ref *ref, bool was_wanted) {
	struct peer *peer = &p->members[ref->member];
	struct address addr;
	if ((peer->known || peer->link != NULL) && memcmp(peer->key, ref->key, NET_KEY_BYTES) != 0)
		forget_links(peer, "the roster gives this member another key");
	/* What cannot be parsed cannot be dialed: such a member has to dial us. */
	if (address_parse(ref->addr, &addr, NULL) != RV_OK)
		addr = (struct address){0};
	bool moved = addr.port != peer->addr.port || strcmp(addr.host, peer->addr.host) != 0;
	memcpy(peer->key, ref->key, NET_KEY_BYTES);
	peer->known = peer->wanted = true;
	if (moved || !was_wanted) {
		peer->addr = addr;
		peer->reached = peer->reached && !moved;
		peer->pause_us = p->cfg.redial_min_us;
		peer->next_dial_us = p->now_us + courtesy_us(p, peer);
	}
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
		link_kill(peer->dialing, false, RV_E_CANCELLED, "not wanted any more");
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
