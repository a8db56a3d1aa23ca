/* reach.c: see reach.h. */
#include "worker/reach/reach.h"

#include "base/clock.h"
#include "net/tls.h"
#include "worker/reach/relay_connection.h"
#include "worker/reach/relay_reflection.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKUP_AGAIN_US = 50 * RV_US_PER_MS };

/* What a connection's callbacks get. */
struct end {
	struct reach *reach;
	int station;
};

/* What poll(2) was asked of a connection. */
struct polled {
	int slot; /* in the descriptors; -1: none */
	uint32_t serial;
};

struct reach {
	struct reach_owner owner;
	struct peers *peers;
	SSL_CTX *tls;
	struct reach_core *core;
	int64_t now_us; /* of the call under way */
	struct relay_dial_shared shared;
	struct end ends[REACH_STATIONS];
	struct relay_connection connections[REACH_STATIONS];
	struct relay_reflection_owner reflection_owner;
	struct relay_reflection reflections[REACH_REFLECTIONS];
	struct polled polled[REACH_MAX_FDS];
	_Alignas(16) uint8_t core_memory[];
};

/* ---- the core's operations ---- */

static void begin(void *ctx, int station, const struct relay_ref *to) {
	struct reach *r = ctx;
	relay_connection_begin(&r->connections[station], r->now_us, to);
}

static void end(void *ctx, int station) {
	relay_connection_end(&((struct reach *)ctx)->connections[station]);
}

static void send_frame(void *ctx, int station, const struct relay_frame *m) {
	relay_connection_send(&((struct reach *)ctx)->connections[station], m);
}

static void reflect(void *ctx, const struct reach_reflection *which, const struct relay_ref *to, uint16_t port,
					const uint8_t token[NET_TOKEN_BYTES]) {
	struct reach *r = ctx;
	const struct relay_dial_to dial = {
		.addr = to->addr, .port = port, .family = which->family, .local_port = peers_port(r->peers)};
	relay_reflection_begin(&r->reflections[reach_reflection_index(which)], r->now_us, &dial, token);
}

static void end_reflection(void *ctx, const struct reach_reflection *which) {
	relay_reflection_end(&((struct reach *)ctx)->reflections[reach_reflection_index(which)]);
}

static void ask_tickets(void *ctx, const uint32_t *peers, int n) {
	const struct reach *r = ctx;
	r->owner.ask_tickets(r->owner.ctx, peers, n);
}

static bool offer(void *ctx, int station, uint32_t peer, const struct route *route) {
	const struct reach *r = ctx;
	struct route to = *route;
	if (to.kind == ROUTE_RELAY)
		to.at = r->connections[station].dial.at;
	return peers_offer_route(r->peers, r->now_us, peer, &to);
}

static enum path_kind path(void *ctx, uint32_t peer) {
	return peers_path(((struct reach *)ctx)->peers, peer);
}

static void tell(void *ctx, const struct reach_event *e) {
	const struct reach *r = ctx;
	r->owner.tell(r->owner.ctx, e);
}

/* ---- what the connections say ---- */

static void on_secured(void *ctx) {
	const struct end *e = ctx;
	reach_core_connected(e->reach->core, e->reach->now_us, e->station);
}

static bool on_frame(void *ctx, const struct relay_frame *m) {
	const struct end *e = ctx;
	struct rv_errtext et;
	return reach_core_frame(e->reach->core, e->reach->now_us, e->station, m, &et) == RV_OK;
}

static void on_lost(void *ctx, const char *why) {
	const struct end *e = ctx;
	reach_core_lost(e->reach->core, e->reach->now_us, e->station, why);
}

static void on_seen(void *ctx, const struct reach_reflection *which, const struct address *at) {
	const struct reach *r = ctx;
	reach_core_reflected(r->core, r->now_us, which, at);
}

static void on_reflection_lost(void *ctx, const struct reach_reflection *which) {
	const struct reach *r = ctx;
	reach_core_reflection_lost(r->core, r->now_us, which);
}

/* ---- life ---- */

static void open_connections(struct reach *r) {
	for (int s = 0; s < REACH_STATIONS; s++) {
		r->ends[s] = (struct end){.reach = r, .station = s};
		const struct relay_connection_owner owner = {
			.ctx = &r->ends[s], .secured = on_secured, .frame = on_frame, .lost = on_lost};
		relay_connection_init(&r->connections[s], &owner, &r->shared, r->tls);
	}
}

static void open_reflections(struct reach *r) {
	struct reach_reflection w = {0};
	r->reflection_owner = (struct relay_reflection_owner){.ctx = r, .seen = on_seen, .lost = on_reflection_lost};
	for (w.station = 0; w.station < REACH_STATIONS; w.station++)
		for (w.family = 0; w.family < REACH_FAMILIES; w.family++)
			for (w.port = 0; w.port < REACH_PORTS; w.port++)
				r->reflections[reach_reflection_index(&w)] = (struct relay_reflection){
					.owner = &r->reflection_owner, .shared = &r->shared, .which = w, .dial = {.fd = -1}};
}

static struct reach_core *core_in(struct reach *r, const struct reach_shell_config *cfg) {
	struct reach_config core = {.ops = {.ctx = r,
										.connect = begin,
										.close = end,
										.send = send_frame,
										.reflect = reflect,
										.end_reflection = end_reflection,
										.ask_tickets = ask_tickets,
										.offer = offer,
										.path = path,
										.tell = tell},
								.hello = cfg->hello,
								.seed = cfg->seed};
	memcpy(core.key, cfg->identity->key, sizeof core.key);
	return reach_core_init(r->core_memory, &core);
}

enum rv_err reach_new(const struct reach_shell_config *cfg, struct reach **out, struct rv_errtext *et) {
	struct reach *r = calloc(1, sizeof *r + reach_core_size());
	struct relay_names *names = relay_names_new();
	enum rv_err e = r != NULL && names != NULL ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for stations at relays");
	if (e == RV_OK)
		e = tls_context_new(cfg->identity, TLS_CLIENTS_MUST, &r->tls, et);
	if (e != RV_OK) {
		relay_names_free(names);
		free(r);
		return e;
	}
	r->owner = cfg->owner;
	r->peers = cfg->peers;
	r->shared =
		(struct relay_dial_shared){.names = names, .coordinator_at = cfg->owner.coordinator_at, .ctx = cfg->owner.ctx};
	memcpy(r->shared.coordinator, cfg->coordinator, sizeof r->shared.coordinator);
	for (int i = 0; i < REACH_MAX_FDS; i++)
		r->polled[i].slot = -1;
	open_connections(r);
	open_reflections(r);
	r->core = core_in(r, cfg);
	*out = r;
	return RV_OK;
}

void reach_free(struct reach *r) {
	const struct relay_frame leave = {.type = RELAY_LEAVE};
	if (r == NULL)
		return;
	for (int i = 0; i < REACH_REFLECTIONS; i++)
		relay_reflection_end(&r->reflections[i]);
	for (int s = 0; s < REACH_STATIONS; s++) {
		relay_connection_send(&r->connections[s], &leave);
		relay_connection_end(&r->connections[s]);
	}
	relay_names_free(r->shared.names);
	SSL_CTX_free(r->tls);
	free(r);
}

struct reach_core *reach_core_of(struct reach *r) {
	return r->core;
}

/* ---- the loop ---- */

static const struct relay_dial *dial_of(const struct reach *r, int i) {
	return i < REACH_STATIONS ? &r->connections[i].dial : &r->reflections[i - REACH_STATIONS].dial;
}

static bool pollfd_of(const struct reach *r, int i, struct pollfd *out) {
	return i < REACH_STATIONS ? relay_connection_pollfd(&r->connections[i], out)
							  : relay_reflection_pollfd(&r->reflections[i - REACH_STATIONS], out);
}

int reach_pollfds(struct reach *r, struct pollfd *fds) {
	int n = 0;
	for (int i = 0; i < REACH_MAX_FDS; i++) {
		bool has = pollfd_of(r, i, &fds[n]);
		r->polled[i] = (struct polled){.slot = has ? n : -1, .serial = dial_of(r, i)->serial};
		n += has;
	}
	return n;
}

/* Returns what poll(2) found for the connection; 0: nothing, or that was an earlier one, whose
 * descriptor this one may have. */
static short revents_of(const struct reach *r, const struct pollfd *fds, int i) {
	const struct polled *p = &r->polled[i];
	return p->slot >= 0 && p->serial == dial_of(r, i)->serial ? fds[p->slot].revents : 0;
}

void reach_handle(struct reach *r, int64_t now_us, const struct pollfd *fds) {
	r->now_us = now_us;
	for (int i = 0; i < REACH_MAX_FDS; i++) {
		short revents = revents_of(r, fds, i);
		if (i < REACH_STATIONS)
			relay_connection_handle(&r->connections[i], now_us, revents);
		else
			relay_reflection_handle(&r->reflections[i - REACH_STATIONS], now_us, revents);
	}
	reach_core_tick(r->core, now_us);
	for (int s = 0; s < REACH_STATIONS; s++)
		relay_connection_flush(&r->connections[s]);
	for (int i = 0; i < REACH_MAX_FDS; i++)
		r->polled[i].slot = -1;
}

/* Returns true if a connection failed at once, which the next reach_handle takes. */
static bool has_failed(const struct reach *r) {
	bool failed = false;
	for (int s = 0; s < REACH_STATIONS; s++)
		failed = failed || r->connections[s].dial.state == RELAY_DIAL_FAILED;
	return failed;
}

int64_t reach_deadline_us(const struct reach *r, int64_t now_us) {
	int64_t at = reach_core_deadline_us(r->core);
	for (int i = 0; i < REACH_REFLECTIONS; i++) {
		int64_t reflection_us = relay_reflection_deadline_us(&r->reflections[i], now_us);
		at = reflection_us < at ? reflection_us : at;
	}
	if (has_failed(r))
		return now_us;
	return relay_names_busy(r->shared.names) && at > now_us + LOOKUP_AGAIN_US ? now_us + LOOKUP_AGAIN_US : at;
}
