/* reach_core.c: see reach_core.h. */
#include "worker/reach/reach_core.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/rng.h"

#include <stdio.h>
#include <string.h>

enum {
	CONNECT_US = 10 * RV_US_PER_S, /* until SEEN */
	PING_US = 20 * RV_US_PER_S,    /* well within NET_RELAY_IDLE_MS; keeps a router's mapping too */
	SILENT_US = 45 * RV_US_PER_S,  /* two PINGs without an answer */
	FIRST_PAUSE_US = RV_US_PER_S,
	LAST_PAUSE_US = 60 * RV_US_PER_S,
	PROOF_US = 5 * RV_US_PER_S,        /* for an answer, after the network has changed */
	FRAMES_AT_ONCE = 256,              /* that a relay may send: calls of all members at one moment; */
	FRAME_EVERY_US = RV_US_PER_S / 32, /* and later as many as they may make */
	TRIES = 2,                         /* at one relay, before the next of the list */
	MOVE_US = 60 * RV_US_PER_S         /* between two moves to the relay of a peer */
};

struct reach_core {
	struct reach_ops ops;
	struct relay_hello hello;
	struct rv_rng rng;
	uint8_t n_relays;
	struct relay_ref relays[NET_MAX_RELAYS];
	uint8_t stations[NET_MAX_MEMBERS]; /* of other members, as reach_core_relay */
	int home;                          /* index in `relays` */
	enum reach_state state;
	int64_t try_us;   /* IDLE: next try; CONNECTING, GREETING: time to give up */
	int64_t pause_us; /* after the next failure */
	int tries;        /* that failed at this relay, one after the other */
	bool told_down;
	int64_t heard_us, ping_us; /* UP: time of the last frame; of the next PING */
	int64_t move_us;           /* time before which it does not go to a peer's relay */
	uint64_t pings, pongs;     /* numbers of the last PING, and of the last that was answered */
	int64_t frames_us;         /* time up to which the frames so far are accounted for */
	uint64_t called;           /* set of members for which a CALL is under way */
	uint64_t wanted;           /* set of members that the mesh wants to reach */
	uint64_t asked;            /* those of them for whom tickets are asked */
};

size_t reach_core_size(void) {
	return sizeof(struct reach_core);
}

struct reach_core *reach_core_init(void *memory, const struct reach_config *cfg) {
	struct reach_core *r = memory;
	*r = (struct reach_core){
		.ops = cfg->ops, .hello = cfg->hello, .rng = rv_rng_of(cfg->seed, 0), .pause_us = FIRST_PAUSE_US};
	return r;
}

static void say(const struct reach_core *r, enum reach_says_type type, uint32_t peer, const char *text) {
	const struct reach_event e = {.type = type, .relay = &r->relays[r->home], .peer = peer, .text = text};
	r->ops.tell(r->ops.ctx, &e);
}

/* ---- the station ---- */

static void connect_now(struct reach_core *r, int64_t now_us) {
	RV_ASSERT(r->home < r->n_relays);
	r->state = REACH_CONNECTING;
	r->try_us = now_us + CONNECT_US;
	r->ops.connect(r->ops.ctx, &r->relays[r->home]);
}

static void rest(struct reach_core *r, int64_t now_us) {
	int64_t jitter_us = (int64_t)rv_rng_below(&r->rng, (uint64_t)r->pause_us / 2);
	r->state = REACH_IDLE;
	r->try_us = now_us + r->pause_us / 2 + jitter_us;
	r->pause_us = 2 * r->pause_us < LAST_PAUSE_US ? 2 * r->pause_us : LAST_PAUSE_US;
}

void reach_core_lost(struct reach_core *r, int64_t now_us, const char *why) {
	if (r->state == REACH_IDLE)
		return;
	if (!r->told_down)
		say(r, REACH_SAYS_DOWN, 0, why);
	r->told_down = true;
	if (r->state != REACH_UP && ++r->tries >= TRIES) {
		r->tries = 0;
		r->home = (r->home + 1) % r->n_relays;
	}
	rest(r, now_us);
}

static void give_up(struct reach_core *r, int64_t now_us, const char *why) {
	r->ops.close(r->ops.ctx);
	reach_core_lost(r, now_us, why);
}

void reach_core_connected(struct reach_core *r, int64_t now_us) {
	RV_ASSERT(r->state == REACH_CONNECTING);
	const struct relay_frame hello = {.type = RELAY_HELLO, .hello = r->hello};
	r->state = REACH_GREETING;
	r->heard_us = now_us;
	r->ops.send(r->ops.ctx, &hello);
}

/* ---- calls ---- */

static void call(struct reach_core *r, const struct pair_reply *reply, const struct pair_ticket *t) {
	struct relay_frame m = {.type = RELAY_CALL,
							.call = {.peer = t->peer, .way = WAY_FORWARD, .term = reply->term, .round = reply->round}};
	memcpy(m.call.ticket, t->signature, sizeof m.call.ticket);
	r->called |= UINT64_C(1) << t->peer;
	r->ops.send(r->ops.ctx, &m);
}

/* A peer without a ticket is asked for again by the mesh, later. */
void reach_core_tickets(struct reach_core *r, int64_t now_us, const struct pair_reply *reply) {
	uint64_t asked = r->asked;
	(void)now_us;
	r->asked = 0;
	r->wanted &= ~asked;
	for (int i = 0; reply != NULL && r->state == REACH_UP && i < reply->n; i++)
		if (reply->tickets[i].peer < NET_MAX_MEMBERS && (asked >> reply->tickets[i].peer & 1) != 0)
			call(r, reply, &reply->tickets[i]);
}

static void ask_tickets(struct reach_core *r) {
	if (r->state != REACH_UP || r->wanted == 0 || r->asked != 0)
		return;
	r->asked = r->wanted;
	r->ops.ask_tickets(r->ops.ctx, r->asked);
}

/* Goes to the relay of a peer that is earlier in the list, so that all end up at one. */
static void follow_peer(struct reach_core *r, int64_t now_us, uint32_t member) {
	int theirs = r->stations[member] - 1;
	if (theirs < 0 || theirs >= r->home || now_us < r->move_us)
		return;
	r->move_us = now_us + MOVE_US;
	r->home = theirs;
	r->tries = 0;
	connect_now(r, now_us);
}

void reach_core_want(struct reach_core *r, int64_t now_us, uint32_t member) {
	RV_ASSERT(member < NET_MAX_MEMBERS);
	if (r->n_relays == 0)
		return;
	r->wanted |= UINT64_C(1) << member;
	follow_peer(r, now_us, member);
	ask_tickets(r);
}

/* ---- frames ---- */

static void take_seen(struct reach_core *r, int64_t now_us, const struct relay_seen *seen) {
	char at[NET_ADDR_BYTES] = "";
	r->state = REACH_UP;
	r->called = 0;
	r->pongs = r->pings;
	r->told_down = false;
	r->tries = 0;
	r->pause_us = FIRST_PAUSE_US;
	r->ping_us = now_us + PING_US;
	(void)address_format(&seen->at, at);
	say(r, REACH_SAYS_UP, 0, at);
	ask_tickets(r);
}

/* Returns true if the relay sends no more than it can have reason to. */
static bool keeps_pace(struct reach_core *r, int64_t now_us) {
	r->frames_us = (r->frames_us > now_us ? r->frames_us : now_us) + FRAME_EVERY_US;
	return r->frames_us - now_us <= (int64_t)FRAMES_AT_ONCE * FRAME_EVERY_US;
}

/* Takes the answer to a CALL, once. */
static bool was_called(struct reach_core *r, uint32_t peer) {
	uint64_t bit = peer < NET_MAX_MEMBERS ? UINT64_C(1) << peer : 0;
	bool was = (r->called & bit) != 0;
	r->called &= ~bit;
	return was;
}

static const char *take_refusal(struct reach_core *r, const struct relay_refused *refused) {
	if (!was_called(r, refused->peer))
		return "no call was under way";
	say(r, REACH_SAYS_REFUSED, refused->peer, relay_refusal_text(refused->reason));
	return NULL;
}

static const char *take_pong(struct reach_core *r, uint64_t number) {
	if (number <= r->pongs || number > r->pings)
		return "no PING has that number";
	r->pongs = number;
	return NULL;
}

static void take_ring(struct reach_core *r, const struct relay_ring *ring) {
	(void)was_called(r, ring->peer);
	r->ops.offer(r->ops.ctx, ring->peer, ring->token);
}

/* Returns what is wrong with the frame; NULL: nothing. */
static const char *take(struct reach_core *r, int64_t now_us, const struct relay_frame *m) {
	if (!keeps_pace(r, now_us))
		return "it sends more than it is asked for";
	if (m->type == RELAY_SEEN && r->state == REACH_GREETING)
		take_seen(r, now_us, &m->seen);
	else if (r->state != REACH_UP)
		return "it must answer HELLO with SEEN first";
	else if (m->type == RELAY_RING && m->ring.peer < NET_MAX_MEMBERS)
		take_ring(r, &m->ring);
	else if (m->type == RELAY_REFUSED)
		return take_refusal(r, &m->refused);
	else
		return m->type == RELAY_PONG ? take_pong(r, m->number) : "no relay sends that";
	return NULL;
}

enum rv_err reach_core_frame(struct reach_core *r, int64_t now_us, const struct relay_frame *m, struct rv_errtext *et) {
	RV_ASSERT(r->state == REACH_GREETING || r->state == REACH_UP);
	const char *wrong = take(r, now_us, m);
	if (wrong == NULL) {
		r->heard_us = now_us;
		return RV_OK;
	}
	enum rv_err e = rv_fail(et, RV_E_PROTOCOL, "the relay sends a frame of type %u: %s", m->type, wrong);
	char text[RV_ERRTEXT_BYTES];
	(void)snprintf(text, sizeof text, "it sends a frame of type %u: %s", m->type, wrong);
	r->pause_us = LAST_PAUSE_US; /* it answers, and so would do the same again at once */
	give_up(r, now_us, text);
	return e;
}

/* ---- documents ---- */

static bool is_same(const struct relay_ref *a, const struct relay_ref *b) {
	return memcmp(a->key, b->key, NET_KEY_BYTES) == 0 && strcmp(a->addr, b->addr) == 0;
}

static int place_in(const struct document *d, const struct relay_ref *relay) {
	int i = 0;
	while (i < d->n_relays && !is_same(&d->relays[i], relay))
		i++;
	return i;
}

/* Keeps the station where its relay is still listed, at whatever place. */
static void take_relays(struct reach_core *r, int64_t now_us, const struct document *d) {
	int home = r->n_relays > 0 ? place_in(d, &r->relays[r->home]) : d->n_relays;
	bool is_gone = home == d->n_relays;
	if (is_gone && r->state != REACH_IDLE)
		r->ops.close(r->ops.ctx);
	memcpy(r->relays, d->relays, d->n_relays * sizeof d->relays[0]);
	r->n_relays = d->n_relays;
	r->home = is_gone ? 0 : home;
	if (!is_gone)
		return;
	r->state = REACH_IDLE;
	r->tries = 0;
	r->try_us = now_us;
}

void reach_core_follow(struct reach_core *r, int64_t now_us, const struct document *d) {
	memset(r->stations, 0, sizeof r->stations);
	for (int i = 0; i < d->n_members; i++)
		r->stations[d->members[i].member] = d->members[i].relay;
	for (int i = 0; i < d->n_syncing; i++)
		r->stations[d->syncing[i].member] = d->syncing[i].relay;
	take_relays(r, now_us, d);
}

/* ---- time ---- */

static void ping(struct reach_core *r, int64_t now_us) {
	const struct relay_frame m = {.type = RELAY_PING, .number = ++r->pings};
	r->ping_us = now_us + PING_US;
	r->ops.send(r->ops.ctx, &m);
}

void reach_core_tick(struct reach_core *r, int64_t now_us) {
	if (r->n_relays == 0)
		return;
	if (r->state == REACH_UP && now_us - r->heard_us >= SILENT_US)
		give_up(r, now_us, "it no longer answers");
	else if (r->state == REACH_UP && now_us >= r->ping_us)
		ping(r, now_us);
	else if (r->state == REACH_IDLE && now_us >= r->try_us)
		connect_now(r, now_us);
	else if (r->state != REACH_UP && r->state != REACH_IDLE && now_us >= r->try_us)
		give_up(r, now_us, "it does not answer in time");
}

void reach_core_hurry(struct reach_core *r, int64_t now_us) {
	int64_t proof_us = now_us - SILENT_US + PROOF_US;
	r->pause_us = FIRST_PAUSE_US;
	if (r->n_relays > 0 && r->state != REACH_UP)
		connect_now(r, now_us);
	if (r->state != REACH_UP)
		return;
	ping(r, now_us);
	r->heard_us = r->heard_us < proof_us ? r->heard_us : proof_us;
}

int64_t reach_core_deadline_us(const struct reach_core *r) {
	int64_t silent_us = r->heard_us + SILENT_US;
	if (r->n_relays == 0)
		return INT64_MAX;
	if (r->state != REACH_UP)
		return r->try_us;
	return r->ping_us < silent_us ? r->ping_us : silent_us;
}

uint8_t reach_core_relay(const struct reach_core *r) {
	return r->state == REACH_UP ? (uint8_t)(r->home + 1) : 0;
}

enum reach_state reach_core_state(const struct reach_core *r) {
	return r->state;
}
