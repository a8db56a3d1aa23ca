/* core_station.c: a station at a relay: when it is tried, proven and left, and what its relay may
 * send (core_state.h). */
#include "worker/reach/core_state.h"

#include "base/assert.h"
#include "base/gcra.h"
#include "base/planted.h"

#include <stdio.h>
#include <string.h>

enum {
	CONNECT_US = 10 * RV_US_PER_S, /* until SEEN */
	PING_US = 20 * RV_US_PER_S,    /* well within NET_RELAY_IDLE_MS; keeps a router's mapping too */
	SILENT_US = 45 * RV_US_PER_S,  /* two PINGs without an answer */
	FIRST_PAUSE_US = RV_US_PER_S,
	LAST_PAUSE_US = 60 * RV_US_PER_S,
	PROOF_US = 5 * RV_US_PER_S, /* for an answer, after the network has changed */
	TRIES = 2                   /* at one relay, before the next of the list */
};

/* A relay may send so much: calls of all members at one moment, later as many as they may make. */
static const struct gcra frames = {.each_us = RV_US_PER_S / 32, .burst = 256};

static void say(const struct reach_core *r, int station, enum reach_says_type type, const char *text) {
	const struct reach_event e = {
		.type = type, .relay = &r->relays[r->stations[station].place], .is_guest = station != r->home, .text = text};
	r->ops.tell(r->ops.ctx, &e);
}

/* ---- where it is ---- */

static void connect_now(struct reach_core *r, int64_t now_us, int station) {
	struct station *s = &r->stations[station];
	RV_ASSERT(s->place < r->n_relays);
	mapping_end(r, station);
	s->state = REACH_CONNECTING;
	s->try_us = now_us + CONNECT_US;
	r->ops.connect(r->ops.ctx, station, &r->relays[s->place]);
}

/* Returns the next place of the same relay, going round. */
static int next_address(const struct reach_core *r, int place) {
	int first = reach_first_place(r, place);
	do
		place = (place + 1) % r->n_relays;
	while (reach_first_place(r, place) != first);
	return place;
}

void station_use(struct reach_core *r, int64_t now_us, int station, int place) {
	struct station *s = &r->stations[station];
	if (s->is_used && s->state != REACH_UP) /* that address had its time */
		relays_begin_at(r, next_address(r, s->place));
	if (s->is_used)
		station_leave(r, station);
	*s = (struct station){.is_used = true, .pause_us = FIRST_PAUSE_US, .used_us = now_us};
	s->place = relays_begins_at(r, place);
	connect_now(r, now_us, station);
}

void station_leave(struct reach_core *r, int station) {
	struct station *s = &r->stations[station];
	const struct relay_frame leave = {.type = RELAY_LEAVE};
	mapping_end(r, station);
	if (s->state == REACH_UP)
		r->ops.send(r->ops.ctx, station, &leave);
	if (s->state != REACH_IDLE)
		r->ops.close(r->ops.ctx, station);
	s->is_used = false;
	s->state = REACH_IDLE;
}

static void rest(struct reach_core *r, int64_t now_us, struct station *s) {
	if (s->pause_us == 0)
		s->pause_us = FIRST_PAUSE_US;
	int64_t jitter_us = (int64_t)rv_rng_below(&r->rng, (uint64_t)s->pause_us / 2);
	s->state = REACH_IDLE;
	s->try_us = RV_BUG("station-once") ? INT64_MAX : now_us + s->pause_us / 2 + jitter_us;
	s->pause_us = 2 * s->pause_us < LAST_PAUSE_US ? 2 * s->pause_us : LAST_PAUSE_US;
}

static int count_addresses(const struct reach_core *r, int place) {
	int n = 0;
	for (int i = 0; i < r->n_relays; i++)
		n += reach_first_place(r, i) == reach_first_place(r, place);
	return n;
}

/* Makes the guest station the home, if it is at this place: a relay closes the first of two
 * stations of a member. Returns false if it is not there. */
static bool guest_becomes_home(struct reach_core *r, int place) {
	struct station *guest = &r->stations[!r->home];
	if (!guest->is_used || reach_first_place(r, guest->place) != place)
		return false;
	r->stations[r->home].is_used = false;
	r->home = !r->home;
	return true;
}

/* Goes to the next relay, at once. */
static void go_on(struct reach_core *r, int64_t now_us, int station) {
	struct station *s = &r->stations[station];
	int place = relays_next(r, now_us, s->place);
	s->tries = 0;
	if (guest_becomes_home(r, place)) {
		mapping_renew(r, now_us, r->home); /* its relay is asked for a proof */
		return;
	}
	if (relays_is_bad(r, now_us, reach_first_place(r, s->place)) && place != reach_first_place(r, s->place)) {
		s->pause_us = FIRST_PAUSE_US;
		s->try_us = now_us;
	}
	s->place = place;
}

/* Chooses where the home's next try goes: each address of the relay gets one, the relay TRIES at
 * least. */
static void choose_next(struct reach_core *r, int64_t now_us, int station) {
	struct station *s = &r->stations[station];
	int n = count_addresses(r, s->place);
	if (++s->tries >= (n > TRIES ? n : TRIES))
		go_on(r, now_us, station);
	else
		s->place = next_address(r, s->place);
}

/* Returns true if the relay is bad and shall be left: at once, where it was up or another one is
 * not bad; else each of its addresses gets its try. */
static bool is_to_be_left(const struct reach_core *r, int64_t now_us, int place, bool was_up) {
	bool is_bad = relays_is_bad(r, now_us, reach_first_place(r, place));
	return is_bad && (was_up || !relays_is_bad(r, now_us, relays_next(r, now_us, place)));
}

/* Connects to the next address of the guest's relay at once: pairs wait. Returns false if there is
 * none left, or the relay has answered. */
static bool guest_goes_on(struct reach_core *r, int64_t now_us, int station) {
	struct station *s = &r->stations[station];
	if (station == r->home || s->state == REACH_UP)
		return false;
	int next = next_address(r, s->place);
	relays_begin_at(r, next);
	if (++s->tries >= count_addresses(r, s->place))
		return false;
	s->place = next;
	connect_now(r, now_us, station);
	return true;
}

void station_lost(struct reach_core *r, int64_t now_us, int station, const char *why) {
	struct station *s = &r->stations[station];
	if (s->state == REACH_IDLE || guest_goes_on(r, now_us, station))
		return;
	bool was_up = s->state == REACH_UP;
	mapping_end(r, station);
	if (!s->told_down && !relays_is_own(r, s->place)) {
		say(r, station, REACH_SAYS_DOWN, why);
		s->told_down = true;
	}
	rest(r, now_us, s);
	s->is_used = station == r->home; /* pairs may want the guest again, or elsewhere */
	pairs_lost_station(r, now_us, station);
	if (!s->is_used && !was_up)
		relays_unreached(r, now_us, s->place);
	else if (s->is_used && is_to_be_left(r, now_us, s->place, was_up))
		go_on(r, now_us, station);
	else if (s->is_used && !was_up)
		choose_next(r, now_us, station);
}

static void give_up(struct reach_core *r, int64_t now_us, int station, const char *why) {
	r->ops.close(r->ops.ctx, station);
	station_lost(r, now_us, station, why);
}

void station_renew(struct reach_core *r, int64_t now_us, int station) {
	if (r->stations[station].state != REACH_IDLE)
		give_up(r, now_us, station, "this worker has a new ticket");
}

void station_connected(struct reach_core *r, int64_t now_us, int station) {
	struct station *s = &r->stations[station];
	RV_ASSERT(s->state == REACH_CONNECTING);
	const struct relay_frame hello = {.type = RELAY_HELLO, .hello = r->hello};
	s->state = REACH_GREETING;
	s->heard_us = s->hello_us = now_us;
	r->ops.send(r->ops.ctx, station, &hello);
}

/* ---- frames ---- */

static void take_seen(struct reach_core *r, int64_t now_us, int station, const struct relay_seen *seen) {
	struct station *s = &r->stations[station];
	char at[NET_ADDR_BYTES] = "";
	s->state = REACH_UP;
	s->pongs = s->pings;
	s->told_down = false;
	s->tries = 0;
	s->pause_us = FIRST_PAUSE_US;
	s->ping_us = now_us + PING_US;
	s->up_us = s->used_us = now_us;
	relays_begin_at(r, s->place);
	s->rtt_us = now_us - s->hello_us;
	s->second_port = seen->second_port;
	memcpy(s->token, seen->nonce, sizeof s->token);
	for (int i = 0; i < r->n_pairs; i++)
		r->pairs[i].owed[station] = 0;
	(void)address_format(&seen->at, at);
	say(r, station, REACH_SAYS_UP, at);
	mapping_begin(r, now_us, station);
}

static const char *take_pong(struct station *s, uint64_t number) {
	if (number <= s->pongs || number > s->pings)
		return "no PING has that number";
	s->pongs = number;
	return NULL;
}

static const char *take_when_up(struct reach_core *r, int64_t now_us, int station, const struct relay_frame *m) {
	switch (m->type) {
	case RELAY_PONG:
		return take_pong(&r->stations[station], m->number);
	case RELAY_OPEN:
		return pairs_take_open(r, now_us, station, &m->open);
	case RELAY_RING:
		return pairs_take_ring(r, now_us, station, &m->ring);
	case RELAY_REFUSED:
		return pairs_take_refused(r, now_us, station, &m->refused);
	case RELAY_PROOF:
		mapping_take_proof(r, station, &m->proof);
		return NULL;
	default:
		return "no relay sends that";
	}
}

/* Returns what is wrong with the frame; NULL: nothing. */
static const char *take(struct reach_core *r, int64_t now_us, int station, const struct relay_frame *m) {
	struct station *s = &r->stations[station];
	if (!gcra_take(&frames, &s->frames_us, now_us))
		return "it sends more than it is asked for";
	if (s->state == REACH_UP)
		return take_when_up(r, now_us, station, m);
	if (m->type != RELAY_SEEN)
		return "it must answer HELLO with SEEN first";
	take_seen(r, now_us, station, &m->seen);
	return NULL;
}

enum rv_err station_frame(struct reach_core *r, int64_t now_us, int station, const struct relay_frame *m,
						  struct rv_errtext *et) {
	struct station *s = &r->stations[station];
	RV_ASSERT(s->state == REACH_GREETING || s->state == REACH_UP);
	const char *wrong = take(r, now_us, station, m);
	if (wrong == NULL) {
		s->heard_us = now_us;
		return RV_OK;
	}
	enum rv_err e = rv_fail(et, RV_E_PROTOCOL, "the relay sends a frame of type %u: %s", m->type, wrong);
	char text[RV_ERRTEXT_BYTES];
	(void)snprintf(text, sizeof text, "it sends a frame of type %u: %s", m->type, wrong);
	s->pause_us = LAST_PAUSE_US; /* it answers, and so would do the same again at once */
	relays_broke_rules(r, now_us, s->place);
	give_up(r, now_us, station, text);
	return e;
}

/* ---- time ---- */

static void ping(struct reach_core *r, int64_t now_us, int station) {
	struct station *s = &r->stations[station];
	const struct relay_frame m = {.type = RELAY_PING, .number = ++s->pings};
	s->ping_us = now_us + PING_US;
	r->ops.send(r->ops.ctx, station, &m);
}

void station_tick(struct reach_core *r, int64_t now_us, int station) {
	const struct station *s = &r->stations[station];
	if (s->state == REACH_UP && now_us - s->heard_us >= SILENT_US)
		give_up(r, now_us, station, "it no longer answers");
	else if (s->state == REACH_UP && now_us >= s->ping_us)
		ping(r, now_us, station);
	else if (s->state == REACH_IDLE && now_us >= s->try_us)
		connect_now(r, now_us, station);
	else if (s->state != REACH_UP && s->state != REACH_IDLE && now_us >= s->try_us)
		give_up(r, now_us, station, "it does not answer in time");
}

void station_hurry(struct reach_core *r, int64_t now_us, int station) {
	struct station *s = &r->stations[station];
	int64_t proof_us = now_us - SILENT_US + PROOF_US;
	s->pause_us = FIRST_PAUSE_US;
	if (s->state != REACH_UP) {
		connect_now(r, now_us, station);
		return;
	}
	ping(r, now_us, station);
	s->heard_us = s->heard_us < proof_us ? s->heard_us : proof_us;
}

int64_t station_deadline_us(const struct reach_core *r, int station) {
	const struct station *s = &r->stations[station];
	return s->state == REACH_UP ? reach_earlier(s->ping_us, s->heard_us + SILENT_US) : s->try_us;
}
