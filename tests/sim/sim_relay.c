/* sim_relay.c: relays: the platform around net/relay/relay_core.h, as coordinator/relay is on
 * sockets. The first byte of a connection decides: a station states its key (no TLS here), anything
 * else has to be a preamble. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum {
	TICK_US = RELAY_TICK_MS * SIM_MS,
	/* No rate is set, so only deadlines need ticks, and may be so late; what waits for room is
	 * forwarded when there is some. */
	LAZY_TICK_US = 4 * SIM_S
};
enum stage { FRESH, AT_STATION, WAITS, JOINED };

const char *const sim_falsehood_names[SIM_FALSEHOODS] = {
	[FALSE_NOT] = "honest",      [FALSE_DROPS] = "drops",   [FALSE_CUTS] = "cuts", [FALSE_STALLS] = "stalls",
	[FALSE_REPLAYS] = "replays", [FALSE_FLOODS] = "floods", [FALSE_AIMS] = "aims"};

static int host_of(int relay) {
	return SIM_RELAY + relay;
}

void relay_key(const struct sim *s, int relay, uint8_t key[NET_KEY_BYTES]) {
	memcpy(key, s->relay_identities[relay].key, NET_KEY_BYTES);
}

int relay_of_key(const struct sim *s, const uint8_t key[NET_KEY_BYTES]) {
	int relay = 0;
	while (relay < s->opt.relay && memcmp(s->relay_identities[relay].key, key, NET_KEY_BYTES) != 0)
		relay++;
	RV_ASSERT(relay < s->opt.relay);
	return relay;
}

static void list_one(const struct sim *s, int relay, bool v6, struct relay_ref *out) {
	const struct sim_where at = {.ip = homes_relay(relay, v6), .port = SIM_RELAY_PORT};
	*out = (struct relay_ref){0};
	relay_key(s, relay, out->key);
	where_text(&at, out->addr);
}

/* Each has an address of each family. */
int relay_list(const struct sim *s, struct relay_ref out[NET_MAX_RELAYS]) {
	int n = 0;
	for (int relay = 0; relay < s->opt.relay; relay++) {
		list_one(s, relay, false, &out[n++]);
		list_one(s, relay, true, &out[n++]);
	}
	return n;
}

/* ---- connections ---- */

static struct sim_relay_end *end_of(struct sim_relay *r, uint32_t number, int *connection) {
	for (int i = 0; i < r->n_of; i++)
		if (r->of[i].number == number) {
			*connection = i;
			return &r->of[i];
		}
	return NULL;
}

static void forget(struct sim *s, int relay, int connection) {
	struct sim_relay *r = &s->relays[relay];
	uint32_t number = r->of[connection].number;
	r->of[connection] = (struct sim_relay_end){.number = 0};
	pipe_end(s, host_of(relay), number);
}

static void act(struct sim *s, int relay);

static void lost(struct sim *s, int relay, int connection) {
	forget(s, relay, connection);
	relay_closed(s->relays[relay].core, connection);
	act(s, relay);
}

/* ---- what the core decides ---- */

static void put_frame(struct sim *s, int relay, int connection, const struct relay_frame *m) {
	uint32_t number = s->relays[relay].of[connection].number;
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	size_t n = relay_frame_encode(m, bytes);
	if (n <= pipe_room(s, host_of(relay), number))
		pipe_put(s, host_of(relay), number, bytes, n);
}

/* Names a bystander instead of the address that was seen, with a good signature. */
static void aim(struct sim *s, int relay, int connection, struct relay_frame *m) {
	const struct sim_where at = homes_bystander();
	uint8_t key[NET_KEY_BYTES];
	char text[NET_ADDR_BYTES];
	sim_key_of(s, s->relays[relay].of[connection].host, key);
	where_text(&at, text);
	if (m->type == RELAY_SEEN)
		where_address(&at, &m->seen.at);
	if (m->type == RELAY_OPEN)
		where_address(&at, &m->open.at);
	if (m->type != RELAY_PROOF)
		return;
	where_address(&at, &m->proof.at);
	seen_sign(&s->relay_identities[relay], s->run_id, key, text, m->proof.unix_s, m->proof.signature);
}

static void flood(struct sim *s, int relay, int connection) {
	enum { FRAMES = 40 };
	const struct relay_frame ring = {.type = RELAY_RING, .ring = {.peer = (uint32_t)(s->now_us % NET_MAX_ROW)}};
	for (int i = 0; i < FRAMES; i++)
		put_frame(s, relay, connection, &ring);
}

static void send_frame(struct sim *s, int relay, const struct relay_action *a) {
	struct sim_relay *r = &s->relays[relay];
	struct relay_frame m = a->frame;
	if (sim_chance(s, host_of(relay), LUCK_LINE, r->drops))
		return;
	if (r->is == FALSE_AIMS)
		aim(s, relay, a->connection, &m);
	put_frame(s, relay, a->connection, &m);
	if (r->is == FALSE_REPLAYS)
		put_frame(s, relay, a->connection, &m);
	if (r->is == FALSE_FLOODS && r->of[a->connection].stage == AT_STATION)
		flood(s, relay, a->connection);
}

/* What each reads from now on was written by the other. */
static void splice(struct sim *s, int relay, int a, int b) {
	struct sim_relay *r = &s->relays[relay];
	const uint8_t go = RELAY_GO;
	const int both[2] = {a, b};
	for (int i = 0; i < 2; i++) {
		struct sim_relay_end *e = &r->of[both[i]], *other = &r->of[both[!i]];
		e->stage = JOINED;
		e->other = both[!i];
		pipe_beyond(s, host_of(relay), e->number, other->host);
		pipe_put(s, host_of(relay), e->number, &go, 1);
	}
}

static void act(struct sim *s, int relay) {
	struct sim_relay *r = &s->relays[relay];
	struct relay_action a;
	while (relay_next_action(r->core, &a)) {
		if (r->of[a.connection].number == 0)
			continue;
		if (a.type == RELAY_SEND)
			send_frame(s, relay, &a);
		else if (a.type == RELAY_CLOSE)
			forget(s, relay, a.connection);
		else
			splice(s, relay, a.connection, a.other);
	}
}

/* ---- what comes in ---- */

static void secure(struct sim *s, int relay, int connection, const uint8_t *opening) {
	struct sim_relay *r = &s->relays[relay];
	uint8_t own[NET_KEY_BYTES], theirs[NET_KEY_BYTES];
	uint32_t number = r->of[connection].number;
	memcpy(theirs, opening + 1, sizeof theirs);
	relay_key(s, relay, own);
	pipe_take(s, host_of(relay), number, SIM_OPENING_BYTES);
	pipe_put(s, host_of(relay), number, own, sizeof own);
	r->of[connection].stage = AT_STATION;
	relay_authenticated(r->core, connection, theirs);
}

static void take_preamble(struct sim *s, int relay, int connection, const uint8_t *bytes) {
	struct sim_relay *r = &s->relays[relay];
	struct relay_preamble m;
	if (relay_preamble_decode(bytes, &m, NULL) != RV_OK) {
		sim_fail(s, "a worker shows relay %d something that is no preamble", relay);
		return;
	}
	pipe_take(s, host_of(relay), r->of[connection].number, RELAY_PREAMBLE_BYTES);
	r->of[connection].stage = WAITS;
	relay_take_preamble(r->core, s->now_us, connection, &m);
	act(s, relay);
}

/* Takes one frame; false: there is no whole one, or the connection is gone. */
static bool take_frame(struct sim *s, int relay, int connection, uint32_t number) {
	struct sim_relay *r = &s->relays[relay];
	struct relay_frame m;
	struct rv_errtext et;
	size_t n, used;
	const uint8_t *bytes = pipe_peek(s, host_of(relay), number, &n);
	if (relay_frame_decode(bytes, n, &m, &used, &et) != RV_OK) {
		sim_fail(s, "w%d sends relay %d a frame that it refuses: %s", r->of[connection].host, relay, et.text);
		return false;
	}
	if (used == 0)
		return false;
	pipe_take(s, host_of(relay), number, used);
	relay_take_frame(r->core, s->now_us, connection, &m);
	act(s, relay);
	return r->of[connection].number == number;
}

/* Returns true if an attacker has done something else with what has come. */
static bool is_kept(struct sim *s, int relay, int connection, uint32_t number) {
	enum { CUT_AFTER_BYTES = 5000, STALLS_US = 3 * SIM_S };
	struct sim_relay *r = &s->relays[relay];
	size_t n;
	(void)pipe_peek(s, host_of(relay), number, &n);
	if (r->is == FALSE_DROPS)
		pipe_take(s, host_of(relay), number, n);
	else if (r->is == FALSE_CUTS && r->of[connection].forwarded > CUT_AFTER_BYTES)
		lost(s, relay, connection);
	else if (r->is != FALSE_STALLS || s->now_us / STALLS_US % 2 == 0)
		return false;
	return true;
}

/* As far as the core allows and the other end has room. */
static bool forward(struct sim *s, int relay, int connection, uint32_t number) {
	struct sim_relay *r = &s->relays[relay];
	if (r->is != FALSE_NOT && is_kept(s, relay, connection, number))
		return false;
	uint32_t to = r->of[r->of[connection].other].number;
	size_t n;
	const uint8_t *bytes = pipe_peek(s, host_of(relay), number, &n);
	size_t allowed = n > 0 ? relay_allowance(r->core, s->now_us, connection) : 0;
	size_t room = n > 0 && allowed > 0 ? pipe_room(s, host_of(relay), to) : 0;
	n = n < allowed ? n : allowed;
	n = n < room ? n : room;
	if (n == 0)
		return false;
	pipe_put(s, host_of(relay), to, bytes, n);
	pipe_take(s, host_of(relay), number, n);
	s->stats.relayed_bytes += n;
	r->of[connection].forwarded += n;
	relay_forwarded(r->core, s->now_us, connection, n);
	act(s, relay);
	return r->of[connection].number == number;
}

/* Does one thing with what has arrived there; false: nothing is to be done. */
static bool take(struct sim *s, int relay, int connection, uint32_t number) {
	struct sim_relay *r = &s->relays[relay];
	size_t n;
	const uint8_t *bytes = pipe_peek(s, host_of(relay), number, &n);
	switch (r->of[connection].stage) {
	case FRESH:
		if (n >= SIM_OPENING_BYTES && bytes[0] == SIM_STATION_BYTE)
			secure(s, relay, connection, bytes);
		else if (n >= RELAY_PREAMBLE_BYTES && bytes[0] != SIM_STATION_BYTE)
			take_preamble(s, relay, connection, bytes);
		else
			return false;
		return r->of[connection].number == number;
	case AT_STATION:
		return take_frame(s, relay, connection, number);
	case JOINED:
		return forward(s, relay, connection, number);
	default:
		return false;
	}
}

static void serve(struct sim *s, int relay, int connection) {
	struct sim_relay *r = &s->relays[relay];
	uint32_t number = r->of[connection].number;
	while (!s->failed && take(s, relay, connection, number))
		;
	if (r->of[connection].number != number)
		return;
	size_t n;
	(void)pipe_peek(s, host_of(relay), number, &n);
	r->of[connection].waits = n > 0 && r->of[connection].stage == JOINED;
	if (pipe_state(s, host_of(relay), number, NULL) == END_OVER)
		lost(s, relay, connection);
}

void relay_new_end(struct sim *s, int relay, uint32_t number, uint16_t port) {
	struct sim_relay *r = &s->relays[relay];
	const struct sim_where from = pipe_from(s, host_of(relay), number);
	struct address at;
	where_address(&from, &at);
	int connection =
		relay_accept(r->core, s->now_us, &at, port == SIM_SECOND_PORT ? RELAY_SECOND_PORT : RELAY_MAIN_PORT);
	act(s, relay);
	if (connection < 0) {
		pipe_end(s, host_of(relay), number);
		return;
	}
	r->of[connection] = (struct sim_relay_end){.number = number, .host = pipe_peer(s, host_of(relay), number)};
	r->n_of = connection >= r->n_of ? connection + 1 : r->n_of;
}

/* ---- turns ---- */

static void count(struct sim *s, int relay) {
	const struct relay_totals *now = relay_core_totals(s->relays[relay].core);
	s->stats.calls += now->calls - s->relays[relay].counted.calls;
	s->stats.openings += now->openings - s->relays[relay].counted.openings;
	s->relays[relay].counted = *now;
}

static void tick(struct sim *s, int host, void *arg) {
	int relay = host - SIM_RELAY;
	struct sim_relay *r = &s->relays[relay];
	(void)arg;
	r->tick_us = INT64_MAX;
	relay_tick(r->core, s->now_us);
	act(s, relay);
	for (int i = 0; i < r->n_of; i++)
		if (r->of[i].number != 0)
			serve(s, relay, i);
	relay_turn(s, relay);
}

static void set_timer(struct sim *s, int relay) {
	struct sim_relay *r = &s->relays[relay];
	int64_t after_us = r->is == FALSE_STALLS ? TICK_US : LAZY_TICK_US;
	if (r->ends.n == 0 || s->now_us + after_us >= r->tick_us)
		return;
	r->tick_us = s->now_us + after_us;
	sim_at(s, r->tick_us, host_of(relay), r->life, tick, NULL);
}

/* There is room again, or a connection broke. */
void relay_turn(struct sim *s, int relay) {
	struct sim_relay *r = &s->relays[relay];
	if (r->core == NULL)
		return;
	for (int i = 0; i < r->n_of; i++)
		if (r->of[i].waits)
			serve(s, relay, i);
	count(s, relay);
	set_timer(s, relay);
}

void relay_receive(struct sim *s, const struct packet *p) {
	int relay = p->dst - SIM_RELAY, connection;
	struct sim_relay *r = &s->relays[relay];
	pipe_receive(s, p);
	if (r->core == NULL || end_of(r, p->link, &connection) == NULL)
		return;
	serve(s, relay, connection);
	set_timer(s, relay);
	count(s, relay);
}

/* ---- its life ---- */

/* The same numbers each time, and others for each relay and life. */
static void random_bytes(void *ctx, void *out, size_t n) {
	struct sim_relay *r = ctx;
	const struct rv_hash hash = rv_hash_of(&r->random, sizeof r->random);
	r->random++;
	RV_ASSERT(n <= sizeof hash.b);
	memcpy(out, hash.b, n);
}

static uint64_t unix_s(void *ctx) {
	const struct sim_relay *r = ctx;
	return SIM_WALL_S + (uint64_t)(r->sim->now_us / SIM_S);
}

static uint32_t rtt_us(void *ctx, int connection) {
	const struct sim_relay *r = ctx;
	struct sim *s = r->sim;
	return (uint32_t)pipe_rtt_us(s, host_of((int)(r - s->relays)), r->of[connection].number);
}

void relay_start(struct sim *s, int relay) {
	struct sim_relay *r = &s->relays[relay];
	if (r->core != NULL)
		return;
	struct relay_config cfg = {.relay = &s->relay_identities[relay],
							   .second_port = SIM_SECOND_PORT,
							   .ctx = r,
							   .random = random_bytes,
							   .unix_s = unix_s,
							   .rtt_us = rtt_us};
	r->sim = s;
	memcpy(cfg.root, s->run_identity.key, sizeof cfg.root);
	if (r->memory == NULL) {
		r->memory = sim_alloc(relay_core_size());
		r->of = sim_alloc(RELAY_CONNECTIONS * sizeof r->of[0]);
	}
	r->life = ++s->lives;
	r->random = s->opt.seed ^ r->life << 48 ^ (uint64_t)relay << 40;
	r->tick_us = INT64_MAX;
	r->counted = (struct relay_totals){0};
	r->core = relay_core_init(r->memory, &cfg, s->now_us);
}

void relay_crash(struct sim *s, int relay, bool silent) {
	struct sim_relay *r = &s->relays[relay];
	if (r->core == NULL)
		return;
	count(s, relay);
	pipe_close_all(s, host_of(relay), silent);
	memset(r->of, 0, (size_t)r->n_of * sizeof r->of[0]);
	r->n_of = 0;
	r->core = NULL;
	r->life = 0;
}

void relay_breaks(struct sim *s, int relay, int host) {
	struct sim_relay *r = &s->relays[relay];
	for (int i = 0; r->core != NULL && i < r->n_of; i++)
		if (r->of[i].number != 0 && r->of[i].stage == JOINED && r->of[i].host == host)
			lost(s, relay, i);
}

void relay_release(struct sim_relay *r) {
	pipe_release(&r->ends);
	free(r->memory);
	free(r->of);
}
