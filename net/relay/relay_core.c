/* relay_core.c: connections, deadlines and what may be forwarded (relay_core.h). */
#include "net/relay/relay_core.h"

#include "base/assert.h"
#include "base/clock.h"
#include "net/relay/state.h"

#include <string.h>

enum { SLICE_BYTES = 1 << 14, RATE_DEPTH_TICKS = 2, USEFUL_SHARE = 8 };

size_t relay_core_size(void) {
	return sizeof(struct relay_core);
}

struct relay_core *relay_core_init(void *memory, const struct relay_config *cfg, int64_t now_us) {
	struct relay_core *r = memory;
	RV_ASSERT(cfg->relay != NULL && cfg->random != NULL && cfg->unix_s != NULL && cfg->rtt_us != NULL);
	memset(r, 0, sizeof *r);
	r->cfg = *cfg;
	r->start_us = r->tokens_us = now_us;
	return r;
}

const struct relay_totals *relay_core_totals(const struct relay_core *r) {
	return &r->totals;
}

/* ---- actions ---- */

void relay_act(struct relay_core *r, const struct relay_action *a) {
	RV_ASSERT(r->n_actions < RELAY_ACTIONS);
	r->actions[(r->first_action + r->n_actions++) % RELAY_ACTIONS] = *a;
}

void relay_send(struct relay_core *r, int connection, const struct relay_frame *m) {
	relay_act(r, &(struct relay_action){.type = RELAY_SEND, .connection = connection, .frame = *m});
}

bool relay_next_action(struct relay_core *r, struct relay_action *out) {
	if (r->n_actions == 0)
		return false;
	*out = r->actions[r->first_action];
	r->first_action = (r->first_action + 1) % RELAY_ACTIONS;
	r->n_actions--;
	return true;
}

/* ---- connections ---- */

static struct relay_connection *connection_of(struct relay_core *r, int connection) {
	RV_ASSERT(connection >= 0 && connection < RELAY_CONNECTIONS);
	struct relay_connection *k = &r->connections[connection];
	RV_ASSERT(k->state != RELAY_FREE);
	return k;
}

void relay_settle(struct relay_core *r, int connection, enum relay_state state) {
	struct relay_connection *k = connection_of(r, connection);
	RV_ASSERT(k->state == RELAY_STRANGER);
	k->state = (uint8_t)state;
	r->strangers--;
}

/* Forgets a connection, and its link with it; relay_close() also closes it. */
static void relay_forget(struct relay_core *r, int connection) {
	struct relay_connection *k = connection_of(r, connection);
	struct relay_connection was = *k;
	*k = (struct relay_connection){0};
	if (was.state == RELAY_STRANGER)
		r->strangers--;
	if (was.state == RELAY_REFLECTION)
		relay_forget_reflection(r, connection, &was);
	if (was.state == RELAY_STATION) {
		r->members[was.member].station = RELAY_NONE;
		r->totals.stations_now--;
		relay_end_reflections_of(r, &r->members[was.member]);
	}
	if (was.state != RELAY_WAITS && was.state != RELAY_JOINED)
		return;
	struct relay_link *l = &r->links[was.link];
	if (l->state == RELAY_FREE)
		return; /* it is being ended, both ends with it */
	l->connection[l->connection[1] == connection] = RELAY_NONE;
	relay_end_link(r, l);
}

void relay_close(struct relay_core *r, int connection) {
	relay_act(r, &(struct relay_action){.type = RELAY_CLOSE, .connection = connection});
	relay_forget(r, connection);
}

void relay_closed(struct relay_core *r, int connection) {
	relay_forget(r, connection);
}

static void close_stranger(struct relay_core *r, int connection) {
	r->totals.strangers_closed++;
	relay_close(r, connection);
}

static int count_strangers(const struct relay_core *r, const char *site) {
	int n = 0;
	for (int i = 0; i < RELAY_CONNECTIONS; i++)
		n += r->connections[i].state == RELAY_STRANGER && strcmp(r->connections[i].site, site) == 0;
	return n;
}

static int oldest_stranger(const struct relay_core *r) {
	int oldest = RELAY_NONE;
	for (int i = 0; i < RELAY_CONNECTIONS; i++)
		if (r->connections[i].state == RELAY_STRANGER &&
			(oldest == RELAY_NONE || r->connections[i].since_us < r->connections[oldest].since_us))
			oldest = i;
	return oldest;
}

int relay_accept(struct relay_core *r, int64_t now_us, const struct address *from, enum relay_port port) {
	char site[NET_ADDR_BYTES];
	address_site(from->host, site);
	if (count_strangers(r, site) >= NET_RELAY_STRANGERS_PER_ADDRESS) {
		r->totals.strangers_closed++;
		return RELAY_NONE;
	}
	int at = 0; /* not that of the one which makes room: its CLOSE is not done yet */
	while (r->connections[at].state != RELAY_FREE)
		RV_ASSERT(++at < RELAY_CONNECTIONS);
	if (r->strangers >= NET_RELAY_STRANGERS)
		close_stranger(r, oldest_stranger(r));
	r->strangers++;
	r->connections[at] = (struct relay_connection){.state = RELAY_STRANGER,
												   .port = (uint8_t)port,
												   .from = *from,
												   .since_us = now_us,
												   .deadline_us = now_us + NET_RELAY_GREETING_MS * RV_US_PER_MS};
	memcpy(r->connections[at].site, site, sizeof site);
	return at;
}

void relay_authenticated(struct relay_core *r, int connection, const uint8_t key[NET_KEY_BYTES]) {
	struct relay_connection *k = connection_of(r, connection);
	RV_ASSERT(k->state == RELAY_STRANGER && k->port == RELAY_MAIN_PORT && !k->has_key);
	memcpy(k->key, key, NET_KEY_BYTES);
	k->has_key = true;
}

/* ---- what comes in ---- */

static void take_from_station(struct relay_core *r, int64_t now_us, int connection, const struct relay_frame *m) {
	static const struct gcra frames = {.each_us = RV_US_PER_S / NET_RELAY_FRAMES_PER_S,
									   .burst = NET_RELAY_FRAMES_BURST};
	struct relay_connection *k = &r->connections[connection];
	bool calm = gcra_take(&frames, &r->members[k->member].frames_until_us, now_us);
	k->deadline_us = now_us + NET_RELAY_IDLE_MS * RV_US_PER_MS;
	if (calm && m->type == RELAY_CALL)
		relay_take_call(r, now_us, connection, &m->call);
	else if (calm && m->type == RELAY_PING)
		relay_send(r, connection, &(struct relay_frame){.type = RELAY_PONG, .number = m->number});
	else
		relay_close(r, connection); /* LEAVE, a second HELLO, a flood */
}

void relay_take_frame(struct relay_core *r, int64_t now_us, int connection, const struct relay_frame *m) {
	const struct relay_connection *k = connection_of(r, connection);
	RV_ASSERT(k->has_key);
	if (k->state == RELAY_STATION)
		take_from_station(r, now_us, connection, m);
	else if (m->type == RELAY_HELLO)
		relay_take_hello(r, now_us, connection, &m->hello);
	else
		close_stranger(r, connection);
}

void relay_take_preamble(struct relay_core *r, int64_t now_us, int connection, const struct relay_preamble *m) {
	const struct relay_connection *k = connection_of(r, connection);
	RV_ASSERT(k->state == RELAY_STRANGER && !k->has_key);
	if (m->kind == RELAY_REFLECT)
		relay_take_reflection(r, now_us, connection, m->token);
	else if (k->port == RELAY_MAIN_PORT)
		relay_take_token(r, now_us, connection, m->token);
	else
		close_stranger(r, connection);
}

/* ---- forwarding ---- */

static uint64_t depth_of(const struct relay_core *r) {
	return r->cfg.bytes_per_s * RATE_DEPTH_TICKS * RELAY_TICK_MS / 1000 + 1;
}

static void refill(struct relay_core *r, int64_t now_us) {
	uint64_t depth = depth_of(r);
	uint64_t gap_us = now_us > r->tokens_us ? (uint64_t)(now_us - r->tokens_us) : 0;
	gap_us = gap_us < RV_US_PER_S ? gap_us : RV_US_PER_S;
	uint64_t more = r->cfg.bytes_per_s * gap_us / RV_US_PER_S;
	if (more == 0)
		return;
	r->tokens = r->tokens + more < depth ? r->tokens + more : depth;
	r->tokens_us = now_us;
}

static uint64_t least(uint64_t a, uint64_t b) {
	return a < b ? a : b;
}

size_t relay_allowance(struct relay_core *r, int64_t now_us, int connection) {
	const struct relay_connection *k = connection_of(r, connection);
	RV_ASSERT(k->state == RELAY_JOINED);
	const int *ends = r->links[k->link].member;
	uint64_t allowed = relay_budget_left(r, &r->members[ends[0]], now_us);
	allowed = least(allowed, relay_budget_left(r, &r->members[ends[1]], now_us));
	allowed = least(allowed, relay_budget_of_all_left(r, now_us));
	if (r->cfg.bytes_per_s > 0) {
		refill(r, now_us);
		uint64_t useful = least(depth_of(r) / USEFUL_SHARE, SLICE_BYTES);
		allowed = least(allowed, r->tokens >= useful ? r->tokens : 0); /* not byte by byte */
	}
	return (size_t)least(allowed, SLICE_BYTES);
}

void relay_forwarded(struct relay_core *r, int64_t now_us, int connection, size_t n) {
	const struct relay_connection *k = connection_of(r, connection);
	RV_ASSERT(k->state == RELAY_JOINED);
	struct relay_link *l = &r->links[k->link];
	const int ends[2] = {l->member[0], l->member[1]};
	r->totals.bytes += n;
	r->tokens -= n < r->tokens ? n : r->tokens;
	l->deadline_us = now_us + NET_RELAY_IDLE_MS * RV_US_PER_MS;
	for (int e = 0; e < 2; e++) {
		struct relay_member *m = &r->members[ends[e]];
		uint64_t left = relay_budget_left(r, m, now_us);
		m->spent.bytes += n;
		if (n >= left)
			relay_end_links_of(r, ends[e]);
	}
	uint64_t left = relay_budget_of_all_left(r, now_us);
	r->spent.bytes += n;
	for (int i = 0; i < NET_RELAY_LINKS && n >= left; i++)
		relay_end_link(r, &r->links[i]);
}

/* ---- time, and the operator ---- */

void relay_name_second(struct relay_core *r, uint16_t port) {
	r->cfg.second_port = port;
}

void relay_ban(struct relay_core *r, const struct banned *members) {
	r->banned = *members;
	for (int i = 0; i < NET_RELAY_MEMBERS; i++) {
		struct relay_member *m = &r->members[i];
		if (!m->known || !banned_has(members, m->number))
			continue;
		relay_end_links_of(r, i);
		if (m->station != RELAY_NONE)
			relay_close(r, m->station);
	}
}

void relay_tick(struct relay_core *r, int64_t now_us) {
	for (int i = 0; i < RELAY_CONNECTIONS; i++) {
		const struct relay_connection *k = &r->connections[i];
		if (k->state == RELAY_STRANGER && now_us >= k->deadline_us)
			close_stranger(r, i);
		else if (k->state == RELAY_STATION && now_us >= k->deadline_us)
			relay_close(r, i);
	}
	for (int i = 0; i < NET_RELAY_LINKS; i++)
		if (r->links[i].state != RELAY_FREE && now_us >= r->links[i].deadline_us)
			relay_end_link(r, &r->links[i]);
	for (int i = 0; i < NET_RELAY_MEMBERS; i++)
		if (r->members[i].known && r->members[i].station != RELAY_NONE)
			relay_renew_proofs(r, now_us, &r->members[i]);
}
