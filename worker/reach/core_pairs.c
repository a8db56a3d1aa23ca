/* core_pairs.c: the ways of a pair: from a wish of the mesh to a ticket, a call, and a route for
 * the mesh (core_state.h). */
#include "base/assert.h"
#include "base/gcra.h"
#include "base/planted.h"
#include "worker/reach/core_state.h"

#include <netinet/in.h>
#include <string.h>

enum {
	STATION_US = 8 * RV_US_PER_S, /* wait for a station and its reflections */
	SETTLE_US = RV_US_PER_S,      /* wait for the reflections of one that is up */
	PEER_SETTLES_US = 400 * 1000, /* wait for the peer's reflections */
	ANSWER_US = 3 * RV_US_PER_S,  /* wait for the relay's answer to a call */
	FORWARD_US = 5 * RV_US_PER_S, /* until a pair that both dial the relay has its link */
	HEAD_START_US = 800 * 1000,   /* of an opening, before the next way: */
	HEAD_START_ROUND_TRIPS = 4,   /* or so many of the station, if that is more, */
	HEAD_START_MAX_US = 3 * RV_US_PER_S,
	AGAIN_US = 6 * RV_US_PER_S,       /* from a relayed link to the second opening: relays allow one in 5 s */
	AGAIN_LATER_US = 2 * RV_US_PER_S, /* more, at the higher member number: one of the two calls */
	ENOUGH_OPENINGS = 2,              /* of their own accord; the mesh asks for more */
	CROWDED_US = 60 * RV_US_PER_S,    /* over which openings are spread that the relay had no time for */
	OFFER_AGAIN_US = 250 * 1000,      /* after the mesh has not taken a route */
	TOKEN_US = (NET_RELAY_TOKEN_MS - 2000) * RV_US_PER_MS, /* while it is offered */
	STALES = 2,                                            /* tickets that may come too late */
	GUEST_IDLE_US = 60 * RV_US_PER_S,                      /* after the last call */
	GUEST_BUSY_US = 3 * RV_US_PER_S,                       /* before it goes to the relay of another pair */
};

static bool is_opening(uint8_t way) {
	return way != WAY_FORWARD;
}

static uint8_t bit_of(uint8_t way) {
	return (uint8_t)(1u << way);
}

/* ---- documents ---- */

static void learn_member(struct reach_core *r, const struct member_ref *ref) {
	struct pair *p = pairs_add(r, ref->member, true);
	RV_ASSERT(p != NULL); /* a document names no more */
	uint8_t home = ref->relay > 0 ? (uint8_t)(reach_first_place(r, ref->relay - 1) + 1) : 0;
	if (home != p->home)
		p->choice = 0;
	p->home = home;
	hosts_learn(p, ref);
}

/* A member that this document does not name keeps what an earlier one said of it, until its place
 * is needed. */
void pairs_follow(struct reach_core *r, const struct document *d) {
	for (int i = 0; i < r->n_pairs; i++)
		r->pairs[i].is_named = false;
	for (int i = 0; i < d->n_members; i++)
		learn_member(r, &d->members[i]);
	for (int i = 0; i < d->n_column; i++)
		learn_member(r, &d->column[i]);
	for (int i = 0; i < d->n_syncing; i++)
		learn_member(r, &d->syncing[i]);
}

static void rest(struct pair *p) {
	p->step = PAIR_RESTS;
	p->turns = 0;
	p->is_passive = p->upgrades = false;
}

/* ---- where a pair meets ---- */

/* Fills in the places of the relays at which the pair may meet: the homes of the two, the earlier
 * one first, then the others, and bad ones last. Both ends come to the same order, as far as they
 * know the same. Returns their number. */
static int choices(const struct reach_core *r, int64_t now_us, const struct pair *p, int out[NET_MAX_RELAYS]) {
	int mine = reach_first_place(r, r->stations[r->home].place), theirs = p->home - 1, n = 0;
	for (int rank = 0; rank < 4; rank++)
		for (int i = 0; i < r->n_relays; i++) {
			bool is_other = i != mine && i != theirs;
			if (reach_first_place(r, i) == i && 2 * relays_is_bad(r, now_us, i) + is_other == rank)
				out[n++] = i;
		}
	return n;
}

/* Begins an attempt at the next relay that takes calls of this pair; rests where none is left. */
static void begin(struct reach_core *r, int64_t now_us, struct pair *p) {
	int places[NET_MAX_RELAYS], n = choices(r, now_us, p, places);
	p->has_waited = false;
	p->not_before_us = 0;
	p->tried = p->stales = 0;
	for (; p->turns < n; p->turns++, p->choice++) {
		p->choice = (uint8_t)(p->choice % n);
		p->meets_at = (uint8_t)places[p->choice];
		if (now_us < p->wait_us[p->meets_at])
			continue;
		p->step = PAIR_WAITS;
		p->until_us = now_us + STATION_US;
		return;
	}
	rest(p);
}

/* Chooses the relay after this one; the first, if this one has become bad and so the last. */
static void go_on_from(const struct reach_core *r, int64_t now_us, struct pair *p, int place) {
	p->choice = relays_is_bad(r, now_us, place) ? 0 : (uint8_t)(p->choice + 1);
}

/* Goes on at the next relay: this one does not bring the pair together. */
static void fail_here(struct reach_core *r, int64_t now_us, struct pair *p) {
	bool goes_on = !p->is_passive && !p->upgrades;
	if (!goes_on) {
		rest(p);
		return;
	}
	p->turns++;
	go_on_from(r, now_us, p, p->meets_at);
	begin(r, now_us, p);
}

/* Returns the station at the relay of this place; NOWHERE: there is none. */
static int station_at(const struct reach_core *r, int place) {
	for (int s = 0; s < REACH_STATIONS; s++)
		if (r->stations[s].is_used && reach_first_place(r, r->stations[s].place) == place)
			return s;
	return NOWHERE;
}

/* Returns the station for the pair's calls; NOWHERE: it is not up, or its router's mapping is not
 * known yet. */
static int ready_station(const struct reach_core *r, int64_t now_us, const struct pair *p) {
	int at = station_at(r, p->meets_at);
	if (at == NOWHERE || r->stations[at].state != REACH_UP)
		return NOWHERE;
	const struct station *s = &r->stations[at];
	return mapping_is_settled(s) || now_us - s->up_us >= SETTLE_US ? at : NOWHERE;
}

static void bring_guest(struct reach_core *r, int64_t now_us, const struct pair *p) {
	const struct station *guest = &r->stations[!r->home];
	bool is_busy = guest->is_used && now_us - guest->used_us < GUEST_BUSY_US;
	if (station_at(r, p->meets_at) == NOWHERE && !is_busy && !RV_BUG("no-guest"))
		station_use(r, now_us, !r->home, p->meets_at);
}

/* ---- another list of relays ---- */

static uint8_t moved(const int places[NET_MAX_RELAYS], uint8_t counted_from_1) {
	return counted_from_1 > 0 ? (uint8_t)(places[counted_from_1 - 1] + 1) : 0;
}

static void move_waits(struct pair *p, const int places[NET_MAX_RELAYS]) {
	int64_t wait_us[NET_MAX_RELAYS] = {0};
	for (int i = NET_MAX_RELAYS - 1; i >= 0; i--) /* of a relay's places the first counts */
		if (places[i] != NOWHERE)
			wait_us[places[i]] = p->wait_us[i];
	memcpy(p->wait_us, wait_us, sizeof wait_us);
}

void pairs_move_relays(struct reach_core *r, const int places[NET_MAX_RELAYS]) {
	_Static_assert(NOWHERE == -1, "no place, counted from 1, is 0");
	for (int i = 0; i < r->n_pairs; i++) {
		struct pair *p = &r->pairs[i];
		int meets_at = places[p->meets_at];
		p->home = moved(places, p->home);
		p->linked_at = moved(places, p->linked_at);
		p->choice = 0; /* the order is another one */
		p->meets_at = meets_at != NOWHERE ? (uint8_t)meets_at : 0;
		move_waits(p, places);
		if (meets_at == NOWHERE || (p->step == PAIR_CALLED && station_at(r, meets_at) == NOWHERE))
			rest(p);
	}
}

/* ---- which way ---- */

/* A peer that is known by IPv6 alone may have IPv4: if not, the relay answers at once. */
static bool is_usable(const struct station *s, const struct pair *p, uint8_t way) {
	if ((p->tried & bit_of(way)) != 0)
		return false;
	if (way == WAY_FORWARD)
		return !p->upgrades;
	enum reach_family family = way == WAY_OPEN_V6 ? REACH_V6 : REACH_V4;
	bool may_have = family == REACH_V4 || hosts_have_ipv6(p);
	return may_have && !p->is_hopeless && s->reflections[family][REACH_MAIN_PORT].is_open;
}

/* Returns the next way from this station; 0: there is none. */
static uint8_t next_way(const struct station *s, const struct pair *p) {
	static const uint8_t order[] = {WAY_OPEN_V6, WAY_OPEN_V4, WAY_FORWARD};
	for (size_t i = 0; i < sizeof order - RV_BUG("openings-only"); i++)
		if (is_usable(s, p, order[i]))
			return order[i];
	return 0;
}

/* Leaves the way behind, and tries the next one. */
static void try_next(int64_t now_us, struct pair *p) {
	p->tried |= bit_of(p->way);
	p->step = PAIR_WAITS;
	p->until_us = now_us + STATION_US;
}

/* ---- what became of a route ---- */

static bool has_met(enum path_kind path, const struct pair *p) {
	return path_is_open((uint8_t)path) && (path != PATH_RELAYED || !p->upgrades);
}

/* Plans the second opening, whose moments differ a little from the first one's. */
static void plan_again(struct reach_core *r, int64_t now_us, struct pair *p) {
	bool waits = r->hello.member > p->member;
	bool is_planned = p->again_us != INT64_MAX && p->again_us > now_us;
	if (!is_planned)
		p->again_us = INT64_MAX;
	if (!p->is_hopeless && p->openings < ENOUGH_OPENINGS && !is_planned)
		p->again_us = now_us + AGAIN_US + (waits ? AGAIN_LATER_US : 0);
}

static void take_link(struct reach_core *r, int64_t now_us, struct pair *p, enum path_kind path) {
	p->linked_at = path == PATH_RELAYED ? (uint8_t)(p->meets_at + 1) : 0;
	p->linked_us = now_us;
	if (path == PATH_RELAYED) {
		plan_again(r, now_us, p);
	} else {
		p->again_us = INT64_MAX;
		p->openings = 0;
	}
	rest(p);
}

/* The relay has not done its part: it, or the peer. */
static void blame_relay(struct reach_core *r, int64_t now_us, struct pair *p) {
	relays_failed(r, now_us, p->meets_at);
	fail_here(r, now_us, p);
}

/* Offers the mesh the relay with the call's token; again and again while an earlier attempt of the
 * mesh is in the way, and the token is good. */
static void offer_relay(struct reach_core *r, int64_t now_us, struct pair *p) {
	struct route route = {.kind = ROUTE_RELAY};
	int station = station_at(r, p->meets_at);
	memcpy(route.token, p->token, sizeof route.token);
	p->is_refused = station == NOWHERE || !r->ops.offer(r->ops.ctx, station, p->member, &route);
	p->until_us = now_us + (p->is_refused ? OFFER_AGAIN_US : FORWARD_US);
}

static void look_at_attempt(struct reach_core *r, int64_t now_us, struct pair *p) {
	enum path_kind path = r->ops.path(r->ops.ctx, p->member);
	if (has_met(path, p))
		take_link(r, now_us, p, path);
	else if (p->is_refused && now_us < p->token_us)
		offer_relay(r, now_us, p);
	else if (p->is_refused)
		fail_here(r, now_us, p); /* which is no fault of the relay */
	else if (p->is_passive)
		rest(p);
	else if (p->way == WAY_FORWARD)
		blame_relay(r, now_us, p);
	else
		try_next(now_us, p);
}

/* ---- wishes ---- */

void pairs_want(struct reach_core *r, int64_t now_us, uint32_t member, bool upgrades) {
	struct pair *p = r->n_relays > 0 ? pairs_add(r, member, false) : NULL;
	if (p == NULL)
		return;
	if (p->step != PAIR_RESTS) {
		p->is_passive = p->is_passive && upgrades;
		p->upgrades = p->upgrades && upgrades;
		return;
	}
	p->upgrades = upgrades;
	begin(r, now_us, p);
}

/* The attempt by a relay, or its link, is over: one that was cut soon is made at another relay. */
void pairs_relay_ended(struct reach_core *r, int64_t now_us, uint32_t m, int64_t lived_us, bool failed) {
	struct pair *p = pairs_find(r, m);
	if (p == NULL)
		return;
	bool is_tried = p->step == PAIR_TRIES && p->way == WAY_FORWARD && !p->is_refused;
	int place = p->linked_at > 0 ? p->linked_at - 1 : is_tried ? p->meets_at : NOWHERE;
	p->linked_at = 0;
	if (place == NOWHERE || r->n_relays == 0)
		return;
	bool is_fine = relays_link_ended(r, now_us, place, lived_us, failed);
	if (is_tried && failed)
		fail_here(r, now_us, p);
	else if (!is_fine)
		go_on_from(r, now_us, p, place);
}

void pairs_mapping_changed(struct reach_core *r, int64_t now_us) {
	for (int i = 0; i < r->n_pairs; i++) {
		struct pair *p = &r->pairs[i];
		p->is_hopeless = false;
		if (r->ops.path(r->ops.ctx, p->member) == PATH_RELAYED)
			p->again_us = now_us + RV_US_PER_S + (int64_t)rv_rng_below(&r->rng, RV_US_PER_S);
	}
}

static void open_again(struct reach_core *r, int64_t now_us, struct pair *p) {
	p->again_us = INT64_MAX;
	if (r->ops.path(r->ops.ctx, p->member) == PATH_RELAYED)
		pairs_want(r, now_us, p->member, true);
}

/* ---- tickets and calls ---- */

/* Returns true if the pair needs a ticket now. */
static bool needs_ticket(struct reach_core *r, int64_t now_us, struct pair *p) {
	bool waits = p->step == PAIR_WAITS && now_us >= p->not_before_us;
	int station = waits ? ready_station(r, now_us, p) : NOWHERE;
	if (station == NOWHERE)
		return false;
	p->way = next_way(&r->stations[station], p);
	if (p->way == 0)
		fail_here(r, now_us, p);
	return p->way != 0;
}

static void ask_tickets(struct reach_core *r, int64_t now_us) {
	if (r->n_asked > 0)
		return;
	for (int i = 0; i < r->n_pairs && r->n_asked < NET_MAX_ROW; i++) {
		struct pair *p = &r->pairs[i];
		if (!needs_ticket(r, now_us, p))
			continue;
		p->step = PAIR_ASKED;
		r->asked[r->n_asked++] = p->member;
	}
	if (r->n_asked > 0)
		r->ops.ask_tickets(r->ops.ctx, r->asked, r->n_asked);
}

static void call(struct reach_core *r, int64_t now_us, int station, struct pair *p, const struct pair_reply *reply,
				 const struct pair_ticket *t) {
	struct relay_frame m = {.type = RELAY_CALL,
							.call = {.peer = t->peer, .way = p->way, .term = reply->term, .round = reply->round}};
	memcpy(m.call.ticket, t->signature, sizeof m.call.ticket);
	p->step = PAIR_CALLED;
	p->until_us = now_us + ANSWER_US;
	r->stations[station].used_us = now_us;
	if (p->owed[station] < UINT8_MAX)
		p->owed[station]++;
	r->ops.send(r->ops.ctx, station, &m);
}

static void take_ticket(struct reach_core *r, int64_t now_us, struct pair *p, const struct pair_reply *reply,
						const struct pair_ticket *t) {
	enum path_kind path = r->ops.path(r->ops.ctx, t->peer);
	int station = ready_station(r, now_us, p);
	if (has_met(path, p)) {
		take_link(r, now_us, p, path);
	} else if (station == NOWHERE) {
		p->step = PAIR_WAITS;
		p->until_us = now_us + STATION_US;
	} else {
		call(r, now_us, station, p, reply, t);
	}
}

/* Returns the pair with this member if a ticket is asked for it. */
static struct pair *find_asked(struct reach_core *r, uint32_t member) {
	struct pair *p = pairs_find(r, member);
	return p != NULL && p->step == PAIR_ASKED ? p : NULL;
}

void pairs_take_tickets(struct reach_core *r, int64_t now_us, const struct pair_reply *reply) {
	int n_asked = r->n_asked;
	r->n_asked = 0;
	for (int i = 0; reply != NULL && i < reply->n; i++) {
		struct pair *p = find_asked(r, reply->tickets[i].peer);
		if (p != NULL)
			take_ticket(r, now_us, p, reply, &reply->tickets[i]);
	}
	for (int i = 0; i < n_asked; i++) {
		struct pair *p = find_asked(r, r->asked[i]);
		if (p != NULL)
			rest(p); /* without a ticket; the mesh asks again, later */
	}
}

/* ---- answers, and calls of peers ---- */

/* Begins to wait for the link by this way. */
static void begin_route(struct reach_core *r, int station, struct pair *p, uint8_t way, int64_t until_us) {
	if (p->step == PAIR_RESTS) {
		p->is_passive = true;
		p->tried = 0;
		p->upgrades = r->ops.path(r->ops.ctx, p->member) == PATH_RELAYED;
	}
	p->step = PAIR_TRIES;
	p->way = way;
	p->until_us = until_us;
	p->is_refused = false;
	p->meets_at = (uint8_t)reach_first_place(r, r->stations[station].place);
}

/* Returns the part of a round trip by which this end dials later than OPEN says: where a router
 * answers with RST, the packets of both must cross, and the same moments again would fail
 * again. */
static int64_t variation_us(const struct reach_core *r, const struct station *s, const struct pair *p) {
	bool is_lower = r->hello.member < p->member;
	return p->openings % 2 == 1 && (p->openings % 4 == 1) == is_lower ? s->rtt_us / 4 : 0;
}

static void tell_opening(const struct reach_core *r, int station, const struct relay_open *m) {
	char at[NET_ADDR_BYTES] = "";
	(void)address_format(&m->at, at);
	const struct reach_event e = {.type = REACH_SAYS_OPENING,
								  .relay = &r->relays[r->stations[station].place],
								  .is_guest = station != r->home,
								  .peer = m->peer,
								  .text = at};
	r->ops.tell(r->ops.ctx, &e);
}

/* Returns false if the mesh does not take it: it has a link that delivers, or keeps it, or another
 * attempt goes well. */
static bool take_opening(struct reach_core *r, int64_t now_us, int station, struct pair *p,
						 const struct relay_open *m) {
	const struct station *s = &r->stations[station];
	int64_t head_us = HEAD_START_ROUND_TRIPS * s->rtt_us;
	head_us = head_us < HEAD_START_US ? HEAD_START_US : reach_earlier(head_us, HEAD_START_MAX_US);
	struct route route = {.kind = ROUTE_PUNCH, .at = m->at};
	route.begin_us = now_us + m->delay_us + variation_us(r, s, p);
	uint8_t way = mapping_family(&m->at) == REACH_V6 ? WAY_OPEN_V6 : WAY_OPEN_V4;
	if (!r->ops.offer(r->ops.ctx, station, m->peer, &route))
		return false;
	begin_route(r, station, p, way, route.begin_us + head_us);
	p->openings++;
	p->is_hopeless = false; /* the relay would have refused it */
	p->again_us = INT64_MAX;
	tell_opening(r, station, m);
	return true;
}

const char *pairs_take_open(struct reach_core *r, int64_t now_us, int station, const struct relay_open *m) {
	if (m->peer == r->hello.member)
		return "it names this worker";
	struct pair *p = pairs_add(r, m->peer, false);
	r->stations[station].used_us = now_us;
	if (p == NULL)
		return NULL;
	bool is_taken = hosts_may_open(r, now_us, p, &m->at) && take_opening(r, now_us, station, p, m);
	if (!is_taken && p->step == PAIR_CALLED)
		try_next(now_us, p);
	return NULL;
}

const char *pairs_take_ring(struct reach_core *r, int64_t now_us, int station, const struct relay_ring *m) {
	if (m->peer == r->hello.member)
		return "it names this worker";
	struct pair *p = pairs_add(r, m->peer, false);
	r->stations[station].used_us = now_us;
	if (p == NULL)
		return NULL;
	memcpy(p->token, m->token, sizeof p->token);
	if (RV_BUG("refused-after-a-ring"))
		p->owed[station] = 0;
	p->token_us = now_us + TOKEN_US;
	begin_route(r, station, p, WAY_FORWARD, now_us);
	p->upgrades = false; /* the peer has lost the link */
	offer_relay(r, now_us, p);
	return NULL;
}

static void tell_refused(const struct reach_core *r, int station, const struct relay_refused *m) {
	const struct reach_event e = {.type = REACH_SAYS_REFUSED,
								  .relay = &r->relays[r->stations[station].place],
								  .is_guest = station != r->home,
								  .peer = m->peer,
								  .text = relay_refusal_text(m->reason)};
	r->ops.tell(r->ops.ctx, &e);
}

/* Plans an opening that the relay has no time for now, among those of all the other pairs. */
static void plan_later(struct reach_core *r, int64_t now_us, struct pair *p, uint32_t wait_ms) {
	int64_t spread_us = (int64_t)rv_rng_below(&r->rng, CROWDED_US);
	p->again_us = now_us + (int64_t)wait_ms * RV_US_PER_MS + CROWDED_US / 2 + spread_us;
}

/* Returns true if the reason holds for every way. */
static bool is_final(uint8_t reason) {
	return reason == RELAY_REFUSE_ABSENT || reason == RELAY_REFUSE_BANNED || reason == RELAY_REFUSE_TICKET;
}

static void take_refusal(struct reach_core *r, int64_t now_us, int station, struct pair *p,
						 const struct relay_refused *m) {
	if (m->reason == RELAY_REFUSE_STALE && p->stales++ < STALES) {
		p->step = PAIR_WAITS; /* for another ticket */
		p->until_us = now_us + STATION_US;
		return;
	}
	if (m->reason == RELAY_REFUSE_UNMAPPED && m->whose == RELAY_CALLED && !p->has_waited) {
		p->has_waited = true; /* it may have come to the relay a moment ago */
		p->step = PAIR_WAITS;
		p->not_before_us = now_us + PEER_SETTLES_US;
		p->until_us = now_us + STATION_US;
		return;
	}
	p->is_hopeless = p->is_hopeless || m->reason == RELAY_REFUSE_DEPENDENT;
	if (is_opening(p->way) && m->reason == RELAY_REFUSE_RATE)
		plan_later(r, now_us, p, m->wait_ms);
	if (is_opening(p->way) && !is_final(m->reason)) {
		try_next(now_us, p);
		return;
	}
	tell_refused(r, station, m);
	p->wait_us[p->meets_at] = now_us + (int64_t)m->wait_ms * RV_US_PER_MS;
	fail_here(r, now_us, p);
}

const char *pairs_take_refused(struct reach_core *r, int64_t now_us, int station, const struct relay_refused *m) {
	struct pair *p = pairs_find(r, m->peer);
	if (p == NULL || p->owed[station] == 0)
		return "no call was under way";
	p->owed[station]--;
	if (p->step == PAIR_CALLED && p->way == m->way && station_at(r, p->meets_at) == station)
		take_refusal(r, now_us, station, p, m);
	return NULL; /* else its peer called too, and that was answered */
}

/* ---- time ---- */

void pairs_lost_station(struct reach_core *r, int64_t now_us, int station) {
	int place = reach_first_place(r, r->stations[station].place);
	for (int i = 0; i < r->n_pairs; i++) {
		struct pair *p = &r->pairs[i];
		bool waits = p->step == PAIR_CALLED || (p->step == PAIR_WAITS && station != r->home);
		if (waits && p->meets_at == place)
			fail_here(r, now_us, p);
	}
}

static void step_due(struct reach_core *r, int64_t now_us, struct pair *p) {
	if (p->step == PAIR_RESTS && now_us >= p->again_us)
		open_again(r, now_us, p);
	if (now_us >= p->not_before_us)
		p->not_before_us = 0;
	if (p->step == PAIR_RESTS || p->step == PAIR_ASKED || now_us < p->until_us)
		return;
	if (p->step == PAIR_TRIES)
		look_at_attempt(r, now_us, p);
	else if (p->step == PAIR_CALLED)
		blame_relay(r, now_us, p);
	else
		fail_here(r, now_us, p);
}

static void leave_idle_guest(struct reach_core *r, int64_t now_us) {
	const struct station *guest = &r->stations[!r->home];
	if (guest->is_used && guest->state == REACH_UP && now_us - guest->used_us >= GUEST_IDLE_US)
		station_leave(r, !r->home);
}

void pairs_ask(struct reach_core *r, int64_t now_us) {
	for (int i = 0; r->n_relays > 0 && i < r->n_pairs; i++)
		if (r->pairs[i].step == PAIR_WAITS)
			bring_guest(r, now_us, &r->pairs[i]);
	ask_tickets(r, now_us);
}

void pairs_tick(struct reach_core *r, int64_t now_us) {
	if (r->n_relays == 0)
		return;
	for (int i = 0; i < r->n_pairs; i++)
		step_due(r, now_us, &r->pairs[i]);
	pairs_ask(r, now_us);
	leave_idle_guest(r, now_us);
}

/* Returns when a pair that waits for a station has to be looked at. */
static int64_t waits_until_us(const struct reach_core *r, const struct pair *p) {
	int at = station_at(r, p->meets_at);
	if (p->not_before_us != 0)
		return reach_earlier(p->until_us, p->not_before_us);
	if (at == NOWHERE)
		return reach_earlier(p->until_us, r->stations[!r->home].used_us + GUEST_BUSY_US);
	const struct station *s = &r->stations[at];
	bool settles =
		s->state == REACH_UP && !mapping_is_settled(s) && (r->n_asked == 0 || RV_BUG("look-at-what-is-past"));
	return settles ? reach_earlier(p->until_us, s->up_us + SETTLE_US) : p->until_us;
}

static int64_t pair_deadline_us(const struct reach_core *r, const struct pair *p) {
	switch ((enum pair_step)p->step) {
	case PAIR_RESTS:
		return p->again_us;
	case PAIR_WAITS:
		return waits_until_us(r, p);
	case PAIR_ASKED:
		return INT64_MAX;
	default:
		return p->until_us;
	}
}

int64_t pairs_deadline_us(const struct reach_core *r) {
	const struct station *guest = &r->stations[!r->home];
	int64_t at = guest->is_used && guest->state == REACH_UP ? guest->used_us + GUEST_IDLE_US : INT64_MAX;
	for (int i = 0; r->n_relays > 0 && i < r->n_pairs; i++)
		at = reach_earlier(at, pair_deadline_us(r, &r->pairs[i]));
	return at;
}
