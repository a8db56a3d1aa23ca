/* sim_reach.c: a worker's stations and reflections at relays: the platform around
 * worker/reach/reach_core.h, as worker/reach/reach.c is on sockets. A station states its key first;
 * the relay answers with its own (no TLS here). */
#include "sim.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_US = 10 * SIM_S };

static bool address_of(const struct relay_ref *relay, struct sim_where *out) {
	struct address at;
	return address_parse(relay->addr, &at, NULL) == RV_OK && where_parse(&at, out);
}

/* ---- stations ---- */

static void disconnect(void *ctx, int station) {
	struct sim_worker *w = ctx;
	struct sim_station *st = &w->reach.stations[station];
	if (st->pipe != 0)
		pipe_end(w->sim, w->host, st->pipe);
	*st = (struct sim_station){.relay = st->relay};
}

static void lost(struct sim_worker *w, int station, const char *why) {
	disconnect(w, station);
	sim_say(w->sim, w->host, "has no station %d: %s", station, why);
	reach_core_lost(w->reach.core, w->sim->now_us, station, why);
}

static void begin(void *ctx, int station, const struct relay_ref *to) {
	struct sim_worker *w = ctx;
	struct sim_where at = {0};
	disconnect(w, station);
	RV_ASSERT(address_of(to, &at));
	w->reach.stations[station] = (struct sim_station){.relay = *to, .pipe = pipe_dial(w->sim, w->host, &at, 0)};
	RV_ASSERT(w->reach.stations[station].pipe != 0);
}

static void put_frame(void *ctx, int station, const struct relay_frame *m) {
	struct sim_worker *w = ctx;
	const struct sim_station *st = &w->reach.stations[station];
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	size_t n = relay_frame_encode(m, bytes);
	if (st->secured && n <= pipe_room(w->sim, w->host, st->pipe))
		pipe_put(w->sim, w->host, st->pipe, bytes, n);
}

static void greet(struct sim_worker *w, struct sim_station *st) {
	uint8_t opening[SIM_OPENING_BYTES] = {SIM_STATION_BYTE};
	sim_key_of(w->sim, w->host, opening + 1);
	pipe_put(w->sim, w->host, st->pipe, opening, sizeof opening);
	st->greeted = true;
}

static void secure(struct sim_worker *w, int station) {
	struct sim_station *st = &w->reach.stations[station];
	size_t n;
	const uint8_t *key = pipe_peek(w->sim, w->host, st->pipe, &n);
	if (n < NET_KEY_BYTES)
		return;
	if (memcmp(key, st->relay.key, NET_KEY_BYTES) != 0) {
		lost(w, station, "it does not hold the key that the document names");
		return;
	}
	pipe_take(w->sim, w->host, st->pipe, NET_KEY_BYTES);
	st->secured = true;
	reach_core_connected(w->reach.core, w->sim->now_us, station);
}

/* Takes one frame; false: there is no whole one, or the station is gone. */
static bool take_frame(struct sim_worker *w, int station) {
	const struct sim_station *st = &w->reach.stations[station];
	size_t n, used;
	const uint8_t *bytes = pipe_peek(w->sim, w->host, st->pipe, &n);
	struct relay_frame m;
	struct rv_errtext et;
	int relay = relay_of_key(w->sim, st->relay.key);
	if (relay_frame_decode(bytes, n, &m, &used, &et) != RV_OK) {
		oracle_relay_fault(w->sim, w->host, relay, et.text);
		lost(w, station, et.text);
		return false;
	}
	if (used == 0)
		return false;
	pipe_take(w->sim, w->host, st->pipe, used);
	if (reach_core_frame(w->reach.core, w->sim->now_us, station, &m, &et) == RV_OK)
		return st->secured;
	oracle_relay_fault(w->sim, w->host, relay, et.text);
	return false;
}

static void receive(struct sim_worker *w, int station) {
	struct sim_station *st = &w->reach.stations[station];
	const char *why;
	enum sim_end_state state = pipe_state(w->sim, w->host, st->pipe, &why);
	if (state == END_OVER) {
		lost(w, station, why);
		return;
	}
	if (state == END_OPEN && !st->greeted)
		greet(w, st);
	if (state == END_OPEN && !st->secured)
		secure(w, station);
	while (st->secured && take_frame(w, station))
		;
}

/* ---- reflections ---- */

static void end_reflection(void *ctx, const struct reach_reflection *which) {
	struct sim_worker *w = ctx;
	struct sim_reflection *f = &w->reach.reflections[reach_reflection_index(which)];
	if (f->pipe != 0)
		pipe_end(w->sim, w->host, f->pipe);
	*f = (struct sim_reflection){.pipe = 0};
}

static void reflection_lost(struct sim_worker *w, struct sim_reflection *f) {
	const struct reach_reflection which = f->which;
	end_reflection(w, &which);
	reach_core_reflection_lost(w->reach.core, w->sim->now_us, &which);
}

static void reflect(void *ctx, const struct reach_reflection *which, const struct relay_ref *to, uint16_t port,
					const uint8_t token[NET_TOKEN_BYTES]) {
	struct sim_worker *w = ctx;
	struct sim_reflection *f = &w->reach.reflections[reach_reflection_index(which)];
	struct sim_where at = {0};
	end_reflection(w, which);
	RV_ASSERT(address_of(to, &at));
	at.port = port;
	*f = (struct sim_reflection){.is_asked = true,
								 .which = *which,
								 .until_us = w->sim->now_us + ANSWER_US,
								 .pipe = pipe_dial(w->sim, w->host, &at, SIM_PORT)};
	memcpy(f->token, token, sizeof f->token);
}

static void show(struct sim_worker *w, struct sim_reflection *f) {
	struct relay_preamble shown = {.kind = RELAY_REFLECT};
	uint8_t preamble[RELAY_PREAMBLE_BYTES];
	memcpy(shown.token, f->token, sizeof shown.token);
	relay_preamble_encode(&shown, preamble);
	pipe_put(w->sim, w->host, f->pipe, preamble, sizeof preamble);
	f->is_shown = true;
}

/* Returns false if it is not what a relay sends. */
static bool take_answer(struct sim_worker *w, struct sim_reflection *f) {
	struct relay_frame m;
	size_t n, used;
	const uint8_t *bytes = pipe_peek(w->sim, w->host, f->pipe, &n);
	if (n == 0)
		return true;
	if (f->is_seen || relay_frame_decode(bytes, n, &m, &used, NULL) != RV_OK)
		return false;
	if (used == 0)
		return true;
	if (m.type != RELAY_SEEN || used != n || memcmp(m.seen.nonce, f->token, sizeof f->token) != 0)
		return false;
	pipe_take(w->sim, w->host, f->pipe, used);
	f->is_seen = true;
	reach_core_reflected(w->reach.core, w->sim->now_us, &f->which, &m.seen.at);
	return true;
}

static void handle_reflection(struct sim_worker *w, struct sim_reflection *f) {
	enum sim_end_state state = f->pipe != 0 ? pipe_state(w->sim, w->host, f->pipe, NULL) : END_OVER;
	bool good = state != END_OVER && (f->is_seen || w->sim->now_us < f->until_us);
	if (good && state == END_OPEN && !f->is_shown)
		show(w, f);
	if (!good || (f->is_shown && !take_answer(w, f)))
		reflection_lost(w, f);
}

/* ---- the core's other operations ---- */

static void ask_tickets(void *ctx, const uint32_t *peers, int n) {
	struct sim_worker *w = ctx;
	control_client_ask_pairs(w->control, peers, n);
}

static int host_of(const struct sim *s, uint32_t member) {
	for (int h = 0; h < s->opt.n_workers; h++)
		if (s->oracle.member_of[h] == member)
			return h;
	return SIM_NOBODY;
}

static bool offer(void *ctx, int station, uint32_t peer, const struct route *route) {
	struct sim_worker *w = ctx;
	struct route to = *route;
	if (to.kind == ROUTE_RELAY && host_of(w->sim, peer) != SIM_NOBODY)
		oracle_opening_over(w->sim, w->host, host_of(w->sim, peer)); /* the relay's takes its place */
	if (to.kind == ROUTE_RELAY)
		RV_ASSERT(address_parse(w->reach.stations[station].relay.addr, &to.at, NULL) == RV_OK);
	return peers_offer_route(w->mesh, w->sim->now_us, peer, &to);
}

static enum path_kind path_to(void *ctx, uint32_t peer) {
	const struct sim_worker *w = ctx;
	return peers_path(w->mesh, peer);
}

static void tell(void *ctx, const struct reach_event *e) {
	const struct sim_worker *w = ctx;
	int peer = host_of(w->sim, e->peer);
	if (e->type == REACH_SAYS_OPENING && peer != SIM_NOBODY)
		oracle_opens(w->sim, w->host, peer, relay_of_key(w->sim, e->relay->key), e->text);
	char at[NET_ADDR_BYTES] = "";
	if (e->type == REACH_SAYS_BAD) {
		oracle_bad_relay(w->sim, w->host, relay_of_key(w->sim, e->relay->key), e->text);
	} else if (e->type == REACH_SAYS_MAPPING) {
		(void)address_format(&e->mapping->at, at);
		sim_say(w->sim, w->host, "is seen at %s, kind %d", at, e->mapping->kind);
	} else if (e->type == REACH_SAYS_UP || e->type == REACH_SAYS_DOWN) {
		sim_say(w->sim, w->host, "%s %sstation at %s: %s", e->type == REACH_SAYS_UP ? "has a" : "lost its",
				e->is_guest ? "guest " : "", e->relay->addr, e->text);
	} else {
		sim_say(w->sim, w->host, "%s member %u: %s", e->type == REACH_SAYS_REFUSED ? "is refused" : "opens with",
				e->peer, e->text);
	}
}

/* ---- life ---- */

static void look(struct sim_worker *w) {
	w->reach.due_us = reach_core_deadline_us(w->reach.core);
	for (int i = 0; i < REACH_REFLECTIONS; i++) {
		const struct sim_reflection *f = &w->reach.reflections[i];
		if (f->is_asked && !f->is_seen && f->until_us < w->reach.due_us)
			w->reach.due_us = f->until_us;
	}
}

void reach_open(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct reach_config cfg = {.ops = {.ctx = w,
									   .connect = begin,
									   .close = disconnect,
									   .send = put_frame,
									   .reflect = reflect,
									   .end_reflection = end_reflection,
									   .ask_tickets = ask_tickets,
									   .offer = offer,
									   .path = path_to,
									   .tell = tell},
							   .hello = {.version = RELAY_VERSION, .member = w->member},
							   .seed = s->opt.seed + w->life};
	memcpy(cfg.hello.run_id, s->run_id, sizeof cfg.hello.run_id);
	memcpy(cfg.key, s->identities[host].id.key, sizeof cfg.key);
	ticket_sign(&s->run_identity, s->run_id, w->member, s->identities[host].id.key, cfg.hello.ticket);
	if (w->reach.memory == NULL)
		w->reach.memory = sim_alloc(reach_core_size());
	w->reach = (struct sim_reach){.memory = w->reach.memory, .core = reach_core_init(w->reach.memory, &cfg)};
	look(w);
}

void reach_close(struct sim_worker *w) {
	const struct relay_frame leave = {.type = RELAY_LEAVE};
	if (w->reach.core == NULL)
		return;
	for (int i = 0; i < REACH_STATIONS; i++) {
		put_frame(w, i, &leave);
		disconnect(w, i);
	}
	for (int i = 0; i < REACH_REFLECTIONS; i++)
		if (w->reach.reflections[i].is_asked) {
			const struct reach_reflection which = w->reach.reflections[i].which;
			end_reflection(w, &which);
		}
	w->reach.core = NULL;
}

void reach_crash(struct sim_worker *w) {
	w->reach = (struct sim_reach){.memory = w->reach.memory};
}

/* What it waits for has come, or it is time for something. */
void reach_handle(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	if (s->opt.relay == 0)
		return;
	for (int i = 0; i < REACH_STATIONS; i++)
		if (w->reach.stations[i].pipe != 0)
			receive(w, i);
	for (int i = 0; i < REACH_REFLECTIONS; i++)
		if (w->reach.reflections[i].is_asked)
			handle_reflection(w, &w->reach.reflections[i]);
	reach_core_tick(w->reach.core, s->now_us);
	look(w);
}

void reach_wants(struct sim *s, int host, uint32_t member, bool upgrades) {
	reach_core_want(s->workers[host].reach.core, s->now_us, member, upgrades);
}

int64_t reach_due_us(const struct sim_worker *w) {
	return w->reach.due_us;
}
