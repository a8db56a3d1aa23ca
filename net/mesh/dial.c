/* dial.c: the members of the mesh and their addresses, dialing and redialing (net/mesh/state.h). */
#include "net/mesh/state.h"

#include "base/planted.h"

#include <stdio.h>
#include <string.h>

enum {
	/* Addresses come from documents, and so from other members: none of them must be able to make
	 * this program flood a third party. So what never answered is soon left alone (book.h);
	 * failures count for the member, not for its address; a new address (or a member that comes
	 * back, or restarts) hurries a dial only every HURRY_EVERY_US; and all dials together have a
	 * budget. */
	HURRY_EVERY_US = 10 * 1000 * 1000,
	BRIEF_US = 900 * 1000,            /* one packet: TCP repeats it after 1 s */
	STRANGER_US = 2900 * 1000,        /* three packets, at an address that never answered */
	PROVEN_US = 1000 * 1000,          /* an address that answered before does so within this and some pauses */
	STEADY_US = 5 * 1000 * 1000,      /* a link that lived at least this long is redialed at once when it breaks */
	PROBE_MAX_US = 300 * 1000 * 1000, /* longest pause between dials beside a relayed link */
	AT_RELAY_US = 10 * 1000 * 1000,   /* wait for the other side: a call's tokens live as long */
	/* An address that never answered may refuse because a router does; but a live member behind it,
	 * which lost the same link, has dialed this worker by then. */
	REFUSED_US = 600 * 1000
};
static const struct gcra dials = {.each_us = 100 * 1000, .burst = 200};

static double jitter(struct peers *p) {
	return 0.75 + 0.5 * rv_rng_double(&p->rng);
}

int64_t peers_jittered(struct peers *p, int64_t us) {
	return (int64_t)((double)us * jitter(p));
}

bool peers_is_banned(const struct peers *p, uint32_t member) {
	return member != p->cfg.self_member && banned_has(&p->banned, member);
}

static int64_t courtesy_us(const struct peers *p, const struct peer *peer) {
	return peers_self_is_lower(p, peer->key) ? 0 : p->cfg.courtesy_us;
}

static bool is_relayed(const struct peer *peer) {
	return peer->link != NULL && peer->link->path == PATH_RELAYED;
}

static bool is_dialable(const struct peers *p, const struct peer *peer) {
	bool lacks_link = peer->link == NULL || peers_doubts(p, peer) || (is_relayed(peer) && !p->keeps_paths);
	bool punches = peer->calling != NULL && peer->calling->path == PATH_PUNCHED;
	return peer->wanted && lacks_link && peer->dialing == NULL && !punches;
}

/* Returns the time to dial this member; INT64_MAX: never. */
static int64_t dial_at_us(const struct peers *p, const struct peer *peer) {
	int64_t ready_us = is_dialable(p, peer) ? book_ready_us(&peer->book, p->met) : INT64_MAX;
	return ready_us > peer->next_dial_us ? ready_us : peer->next_dial_us;
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

void peers_probe_later(struct peers *p, struct peer *peer) {
	peer->pause_us = p->cfg.redial_max_us;
	peer->next_dial_us = p->now_us + peers_jittered(p, peer->pause_us);
}

/* Returns true if a refusal there means that the member's program is gone. */
static bool is_gone(const struct peers *p, const struct peer *peer, const struct address *at) {
	if (book_is_proven(&peer->book))
		return book_has_answered(&peer->book, at);
	return p->now_us - peer->missed_us >= REFUSED_US;
}

void peers_dial_failed(struct peers *p, struct peer *peer, const struct address *at, enum rv_err why,
					   const char *text) {
	book_failed(&peer->book, at, p->now_us, jitter(p));
	if (book_next(&peer->book, p->now_us, p->met) == NULL) { /* the pass is over */
		book_rewind(&peer->book);
		pause_dial(p, peer);
		peer->doubted = false;
	}
	if (why != RV_E_NOTFOUND || !peer->missed || !is_gone(p, peer, at))
		return;
	peer->missed = false;
	p->cfg.owner.on_link_down(p->cfg.owner.ctx, peer->member, true, why, text);
}

void peers_dial_again(struct peers *p, struct peer *peer, const struct link *l) {
	int64_t lived_us = l->fatal ? 0 : p->now_us - l->opened_us;
	bool dials_find_out = l->path == PATH_DIALED || l->path == PATH_ACCEPTED || book_is_proven(&peer->book);
	peer->missed = dials_find_out; /* else a refusal is the router's */
	peer->missed_us = p->now_us;
	peer->hurries = false;
	book_rewind(&peer->book);
	if (l->path == PATH_RELAYED || l->path == PATH_PUNCHED)
		peers_ask_again(p, peer, lived_us);
	else
		peers_ask_soon(p, peer);
	if (lived_us < STEADY_US || !dials_find_out) {
		pause_dial(p, peer);
		return;
	}
	peer->pause_us = p->cfg.redial_min_us;
	peer->next_dial_us = p->now_us + courtesy_us(p, peer);
}

void peers_dial_soon(struct peers *p, struct peer *peer) {
	book_forgive(&peer->book);
	peer->pause_us = p->cfg.redial_min_us;
	peer->next_dial_us = p->now_us;
}

/* Where the member was reached before, a new dial follows a lost first packet sooner than TCP
 * repeats it; but if no dial was answered within the shorter time, the next one waits longer. */
static int64_t connect_us(const struct peers *p, const struct peer *peer, const struct book_entry *to) {
	int64_t us = book_is_brief(to) ? BRIEF_US : to->answered ? PROVEN_US + 4 * peer->pause_us : STRANGER_US;
	return us < p->cfg.connect_us ? us : p->cfg.connect_us;
}

/* Returns how long a dial by a route that the owner offered may take. */
static int64_t route_us(const struct peers *p, const struct route *to) {
	return to->kind == ROUTE_PUNCH ? PEERS_PUNCH_US : p->cfg.connect_us + AT_RELAY_US;
}

/* Of a pair that both dial, the lower key is the TLS client. */
static enum frame_role role_in(const struct peers *p, const struct peer *peer, const struct route *to) {
	bool is_client = to->kind == ROUTE_DIRECT || peers_self_is_lower(p, peer->key);
	return is_client || RV_BUG("both-are-clients") ? FRAME_DIALER : FRAME_LISTENER;
}

struct link *peers_dial_route(struct peers *p, const struct peer *peer, const struct route *to, enum rv_err *why,
							  struct rv_errtext *et) {
	static const enum path_kind paths[] = {
		[ROUTE_DIRECT] = PATH_DIALED, [ROUTE_PUNCH] = PATH_PUNCHED, [ROUTE_RELAY] = PATH_RELAYED};
	char label[LINK_LABEL_BYTES], addr[NET_ADDR_BYTES] = "";
	int fd;
	address_format(&to->at, addr);
	snprintf(label, sizeof label, "member %u %s %s", peer->member, to->kind == ROUTE_RELAY ? "by the relay" : "at",
			 addr);
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
	l->member = peer->member;
	l->route = *to;
	l->deadline_us = p->now_us + route_us(p, to);
	return l;
}

static void dial(struct peers *p, struct peer *peer) {
	const struct book_entry *entry = book_next(&peer->book, p->now_us, p->met);
	if (entry == NULL) {
		book_rewind(&peer->book);
		return;
	}
	const struct book_entry at = *entry;
	const struct route to = {.kind = ROUTE_DIRECT, .at = at.at};
	struct rv_errtext et = {0};
	enum rv_err e;
	book_dialed(&peer->book, entry, p->now_us);
	peer->dialing = peers_dial_route(p, peer, &to, &e, &et);
	if (peer->dialing == NULL) {
		peers_dial_failed(p, peer, &at.at, e, et.text);
		return;
	}
	peer->dialing->deadline_us = p->now_us + connect_us(p, peer, &at);
	peer->dialing->candidate = at.kind;
}

/* Returns the time to hurry the next dial to this member; INT64_MAX: never. News that comes early
 * is kept: a member that is back may have nobody else to dial it, and the next long pause of an
 * address that never answered lasts up to 15 min. A dial under way may have begun before the member
 * was back, and its end begins a pause. */
static int64_t hurry_at_us(const struct peer *peer) {
	return peer->hurries && peer->wanted && peer->dialing == NULL ? peer->hurry_us : INT64_MAX;
}

static void hurry_due(struct peers *p, struct peer *peer) {
	if (p->now_us < hurry_at_us(peer))
		return;
	peer->hurries = false;
	peer->hurry_us = p->now_us + HURRY_EVERY_US;
	book_retry(&peer->book);
	if (peer->pause_us == 0)
		peer->pause_us = p->cfg.redial_min_us;
	peer->next_dial_us = p->now_us + courtesy_us(p, peer);
}

void peers_dial_due(struct peers *p) {
	for (int i = 0; i < p->n_members; i++) {
		hurry_due(p, p->members[i]);
		if (dial_at_us(p, p->members[i]) <= p->now_us && peers_dial_budget_us(p) <= p->now_us)
			dial(p, p->members[i]);
	}
}

int64_t peers_dial_deadline_us(const struct peers *p) {
	int64_t deadline = INT64_MAX;
	for (int i = 0; i < p->n_members; i++) {
		int64_t at_us = dial_at_us(p, p->members[i]), hurry_us = hurry_at_us(p->members[i]);
		deadline = at_us < deadline ? at_us : deadline;
		deadline = hurry_us < deadline ? hurry_us : deadline;
	}
	int64_t budget_us = peers_dial_budget_us(p);
	return deadline > budget_us ? deadline : budget_us;
}

/* ---- the roster ---- */

static void forget_links(struct peer *peer, const char *why) {
	if (peer->link != NULL)
		link_end(peer->link, true, RV_E_AUTH, why);
	if (peer->dialing != NULL)
		link_end(peer->dialing, false, RV_E_AUTH, why);
	if (peer->calling != NULL)
		link_end(peer->calling, false, RV_E_AUTH, why);
	peer->offered = false;
}

/* Doubts the link of a member that has moved or restarted, if nothing came on it recently: it may
 * be dead. */
static void doubt(struct peers *p, struct peer *peer) {
	struct link *l = peer->link;
	peer->doubted = l != NULL && l->state == LINK_OPEN && !peers_is_fresh(p, l);
	if (peer->doubted)
		peers_nudge(p, l);
}

/* Reports why there is no link to a member whose addresses are too narrow. */
static void tell_not_dialed(struct peers *p, const struct peer *peer) {
	const struct address *addr = book_too_narrow(&peer->book, p->met);
	struct rv_errtext et;
	char text[NET_ADDR_BYTES] = "";
	if (addr == NULL)
		return;
	(void)address_format(addr, text);
	enum rv_err why =
		rv_fail(&et, RV_E_UNSUPPORTED,
				"member %u at %s is not dialed: that is a %s address, and the coordinator is reached at a "
				"%s one; it has to dial this worker",
				peer->member, text, address_reach_name(address_reach(addr)), address_reach_name(p->met));
	peers_trouble(p, NULL, why, et.text);
}

static void want(struct peers *p, struct peer *peer, const struct member_ref *ref) {
	if ((peer->known || peer->link != NULL) && memcmp(peer->key, ref->key, NET_KEY_BYTES) != 0)
		forget_links(peer, "the roster gives this member another key");
	enum book_news news = book_set(&peer->book, ref->candidates, ref->n_candidates);
	bool restarted = ref->boot != 0 && peer->boot != 0 && !report_same_process(ref->boot, peer->boot);
	memcpy(peer->key, ref->key, NET_KEY_BYTES);
	peer->known = peer->wanted = true;
	peer->boot = ref->boot != 0 ? ref->boot : peer->boot;
	if (news != BOOK_SAME)
		tell_not_dialed(p, peer);
	if (!peer->was_wanted)
		peer->alone_us = p->now_us;
	if (!peer->was_wanted || restarted)
		peer->refused = PATH_NONE;
	peer->hurries |= news != BOOK_SAME || !peer->was_wanted || (restarted && peer->link == NULL);
	hurry_due(p, peer);
	if (!peer->was_wanted)
		peers_ask_soon(p, peer);
	if (restarted || news == BOOK_MOVED)
		doubt(p, peer);
}

static bool may_want(const struct peers *p, const struct member_ref *ref) {
	return ref->member != p->cfg.self_member && !peers_is_banned(p, ref->member);
}

/* Wants these members from now on, and counts those that it does not know. */
static int begin_wanting(struct peers *p, const struct member_ref *members, int n) {
	int n_new = 0;
	for (int i = 0; i < p->n_members; i++) {
		p->members[i]->was_wanted = p->members[i]->wanted;
		p->members[i]->wanted = false;
	}
	for (int i = 0; i < n; i++) {
		struct peer *peer = may_want(p, &members[i]) ? peers_find(p, members[i].member) : NULL;
		n_new += may_want(p, &members[i]) && peer == NULL;
		if (peer != NULL)
			peer->wanted = true;
	}
	for (int i = 0; i < p->n_members; i++)
		if (p->members[i]->was_wanted && !p->members[i]->wanted)
			p->members[i]->used_us = p->now_us;
	return n_new;
}

static void end_unwanted_dials(struct peers *p) {
	for (int i = 0; i < p->n_members; i++) {
		struct peer *peer = p->members[i];
		if (peer->wanted || peer->dialing == NULL)
			continue;
		peer->dialing->quiet = true;
		link_kill(peer->dialing, false, RV_E_CANCELLED, "no longer wanted");
	}
}

void peers_allow(struct peers *p, int64_t now_us, const struct member_ref *members, int n) {
	p->now_us = now_us;
	n = p->paused ? 0 : n;
	int n_new = begin_wanting(p, members, n);
	if (p->depth == 0)
		peers_make_room(p, n_new);
	p->depth++;
	for (int i = 0; i < n; i++) {
		struct peer *peer = may_want(p, &members[i]) ? peers_add(p, members[i].member) : NULL;
		if (peer != NULL)
			want(p, peer, &members[i]);
	}
	end_unwanted_dials(p);
	p->depth--;
	peers_reap(p);
}

void peers_pause(struct peers *p, int64_t now_us, bool paused) {
	p->paused = paused;
	peers_allow(p, now_us, NULL, 0);
	if (!paused)
		return;
	p->depth++;
	for (int i = 0; i < p->n_slots; i++)
		if (p->links[i] != NULL) {
			p->links[i]->quiet = true;
			link_end(p->links[i], false, RV_E_CANCELLED, "this worker pauses");
		}
	for (int i = 0; i < p->n_members; i++)
		p->members[i]->offered = false;
	p->depth--;
	peers_reap(p);
}

void peers_ban(struct peers *p, int64_t now_us, const struct banned *banned) {
	p->now_us = now_us;
	p->banned = *banned;
	p->depth++;
	for (int i = 0; i < p->n_members; i++) {
		struct peer *peer = p->members[i];
		if (!peers_is_banned(p, peer->member))
			continue;
		forget_links(peer, "it is banned from this run");
		peer->wanted = false;
	}
	p->depth--;
	peers_reap(p);
}
