/* sim_homes.c: homes and their routers: which address and port a host has for the others, and what
 * a router lets in. A router judges the first packet of a connection; what belongs to it passes.
 *
 * Homes have the same addresses inside, as homes do: 192.168.1.1 is another machine in each. */
#include "sim.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_US = 120 * SIM_S /* an idle mapping: RFC 5382 asks for two hours, routers give minutes */ };

const char *const sim_home_names[SIM_HOME_KINDS] = {
	[HOME_OPEN] = "open",           [HOME_FULL_CONE] = "full_cone", [HOME_ADDRESS] = "address", [HOME_PORT] = "port",
	[HOME_SYMMETRIC] = "symmetric", [HOME_DOUBLE] = "double",       [HOME_V6_ONLY] = "v6_only"};

/* ---- addresses ---- */

#define OF_V6      (UINT64_C(1) << 32)
#define OF_HOST    UINT64_C(0x2d000001) /* 45.0.0.1, and on: hosts without a router */
#define OF_MORE    UINT64_C(0x2e000001) /* 46.0.0.1, and on: the same, of large universes */
#define OF_ROUTER  UINT64_C(0x2d000101) /* 45.0.1.1 */
#define OF_RELAY   UINT64_C(0x2d000301)
#define OF_INSIDE  UINT64_C(0xc0a80101) /* 192.168.1.1 */
#define OF_CARRIER UINT64_C(0x64400001) /* 100.64.0.1: between the two routers of a double home */
enum { RELAY_OF_V6 = 0x1000 };

static bool is_v6(const struct sim_where *w) {
	return w->ip >= OF_V6;
}

void where_address(const struct sim_where *w, struct address *out) {
	*out = (struct address){.port = w->port};
	if (is_v6(w))
		(void)snprintf(out->host, sizeof out->host, "2600::%" PRIx64, w->ip & UINT32_MAX);
	else
		(void)snprintf(out->host, sizeof out->host, "%u.%u.%u.%u", (unsigned)(w->ip >> 24 & 255),
					   (unsigned)(w->ip >> 16 & 255), (unsigned)(w->ip >> 8 & 255), (unsigned)(w->ip & 255));
}

void where_text(const struct sim_where *w, char out[NET_ADDR_BYTES]) {
	struct address a;
	where_address(w, &a);
	(void)address_format(&a, out);
}

bool where_parse(const struct address *a, struct sim_where *out) {
	unsigned b[4], v6 = 0;
	*out = (struct sim_where){.port = a->port};
	if (sscanf(a->host, "%u.%u.%u.%u", &b[0], &b[1], &b[2], &b[3]) == 4)
		out->ip = (uint64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
	else if (sscanf(a->host, "2600::%x", &v6) == 1)
		out->ip = OF_V6 | v6;
	return out->ip != 0;
}

static uint64_t address_of(int host) {
	return (host < SIM_ORDINARY ? OF_HOST : OF_MORE) + (uint64_t)host;
}

static bool is_same(const struct sim_where *a, const struct sim_where *b) {
	return a->ip == b->ip && a->port == b->port;
}

/* ---- who lives where ---- */

static struct sim_router *router_of(const struct sim *s, int host) {
	int at = host < SIM_MAX_WORKERS ? s->homes[host].router : SIM_NO_ROUTER;
	return at == SIM_NO_ROUTER ? NULL : s->routers[at];
}

static struct sim_router *beyond(const struct sim *s, const struct sim_router *r) {
	return r->beyond == SIM_NO_ROUTER ? NULL : s->routers[r->beyond];
}

static int add_router(struct sim *s, enum sim_home_kind kind, uint32_t traits) {
	RV_ASSERT(s->n_routers < SIM_MAX_ROUTERS);
	struct sim_router *r = sim_alloc(sizeof *r);
	*r = (struct sim_router){.kind = (uint8_t)kind,
							 .traits = (uint8_t)traits,
							 .outside = OF_ROUTER + (uint64_t)s->n_routers,
							 .beyond = SIM_NO_ROUTER};
	s->routers[s->n_routers] = r;
	return s->n_routers++;
}

/* The provider of all double homes has one. */
static int provider(struct sim *s) {
	if (s->provider == 0)
		s->provider = 1 + add_router(s, HOME_PORT, HOME_MOVES | HOME_HAIRPINS);
	return s->provider - 1;
}

void homes_add(struct sim *s, uint64_t set, enum sim_home_kind kind, uint32_t traits) {
	bool routed = kind != HOME_OPEN, double_home = kind == HOME_DOUBLE;
	int router = routed ? add_router(s, double_home ? HOME_PORT : kind, traits) : SIM_NO_ROUTER;
	if (double_home) {
		int beyond = provider(s);
		s->routers[router]->beyond = beyond;
		s->routers[router]->outside = OF_CARRIER + (uint64_t)router;
	}
	s->had_shared_home = s->had_shared_home || (routed && (set & (set - 1)) != 0) || double_home;
	for (int h = 0; h < s->opt.n_workers; h++)
		if (sim_in_set(s->opt.n_workers, set, h))
			s->homes[h] = (struct sim_home){.router = router,
											.kind = (uint8_t)kind,
											.has_v4 = kind != HOME_V6_ONLY,
											.has_v6 = kind == HOME_V6_ONLY || (traits & HOME_V6) != 0};
}

void homes_add_one(struct sim *s, int host, enum sim_home_kind kind) {
	s->homes[host] = (struct sim_home){.router = add_router(s, kind, 0), .kind = (uint8_t)kind, .has_v4 = true};
}

void homes_release(struct sim *s) {
	for (int i = 0; i < s->n_routers; i++)
		free(s->routers[i]);
}

bool homes_share(const struct sim *s, int a, int b) {
	return a < SIM_MAX_WORKERS && b < SIM_MAX_WORKERS && s->homes[a].router == s->homes[b].router &&
		   s->homes[a].router != SIM_NO_ROUTER;
}

bool homes_is_closed(const struct sim *s, int host) {
	return router_of(s, host) != NULL;
}

static bool is_strict(const struct sim_home *h) {
	return h->kind == HOME_PORT || h->kind == HOME_DOUBLE || h->kind == HOME_SYMMETRIC;
}

static bool resets(const struct sim *s, int host) {
	const struct sim_router *r = router_of(s, host);
	return r != NULL && (r->traits & HOME_RESETS) != 0;
}

bool homes_open(const struct sim *s, int a, int b, bool v6) {
	const struct sim_home *of_a = &s->homes[a], *of_b = &s->homes[b];
	if (homes_share(s, a, b) || resets(s, a) || resets(s, b))
		return false;
	if (v6)
		return of_a->has_v6 && of_b->has_v6;
	bool a_moves = of_a->kind == HOME_SYMMETRIC && is_strict(of_b),
		 b_moves = of_b->kind == HOME_SYMMETRIC && is_strict(of_a);
	return of_a->has_v4 && of_b->has_v4 && !a_moves && !b_moves;
}

bool homes_never_meet(const struct sim *s, int a, int b) {
	const struct sim_home *of_a = &s->homes[a], *of_b = &s->homes[b];
	const bool symmetric = of_a->kind == HOME_SYMMETRIC && of_b->kind == HOME_SYMMETRIC;
	return symmetric && s->opt.relay == 0 && !homes_share(s, a, b) && !(of_a->has_v6 && of_b->has_v6);
}

uint64_t homes_inside(const struct sim *s, int host) {
	uint64_t place = 0;
	for (int h = 0; h < host; h++)
		place += homes_share(s, h, host);
	return router_of(s, host) == NULL ? address_of(host) : OF_INSIDE + place;
}

uint64_t homes_outside(const struct sim *s, int host, bool v6) {
	const struct sim_router *r = router_of(s, host);
	if (v6)
		return s->homes[host].has_v6 ? OF_V6 | (uint64_t)(host + 1) : 0;
	if (!s->homes[host].has_v4)
		return 0;
	while (r != NULL && beyond(s, r) != NULL)
		r = beyond(s, r);
	return r == NULL ? address_of(host) : r->outside;
}

#define OF_BYSTANDER UINT64_C(0x2d000901) /* 45.0.9.1 */

struct sim_where homes_bystander(void) {
	return (struct sim_where){.ip = OF_BYSTANDER, .port = 443};
}

bool homes_is_strange(const struct sim_where *to) {
	return to->ip == OF_BYSTANDER;
}

uint64_t homes_relay(int relay, bool v6) {
	return v6 ? OF_V6 | (uint64_t)(RELAY_OF_V6 + relay) : OF_RELAY + (uint64_t)relay;
}

/* ---- out: mappings and holes ---- */

static bool is_alive(struct sim *s, int64_t until_us, int host, const struct sim_where *to) {
	return until_us > s->now_us || pipe_has_from_port(s, host, SIM_PORT, to);
}

static bool maps_for_each(const struct sim_router *r) {
	return r->kind == HOME_SYMMETRIC;
}

static struct sim_mapping *find_mapping(struct sim *s, struct sim_router *r, const struct sim_where *inside,
										const struct sim_where *to) {
	for (int i = 0; i < r->n_mappings; i++) {
		struct sim_mapping *m = &r->mappings[i];
		if (is_same(&m->inside, inside) && (!maps_for_each(r) || is_same(&m->to, to)) &&
			is_alive(s, m->until_us, m->host, maps_for_each(r) ? to : NULL))
			return m;
	}
	return NULL;
}

static bool is_used(struct sim *s, const struct sim_router *r, const struct sim_mapping *m) {
	return is_alive(s, m->until_us, m->host, maps_for_each(r) ? &m->to : NULL);
}

/* Those that have expired must not be used again by connections that were made since. */
static void forget_unused(struct sim *s, struct sim_router *r) {
	int n = 0;
	for (int i = 0; i < r->n_mappings; i++)
		if (is_used(s, r, &r->mappings[i]))
			r->mappings[n++] = r->mappings[i];
	r->n_mappings = n;
}

static const struct sim_mapping *mapping_at(struct sim *s, const struct sim_router *r, uint16_t port) {
	for (int i = 0; i < r->n_mappings; i++)
		if (r->mappings[i].port == port && is_used(s, r, &r->mappings[i]))
			return &r->mappings[i];
	return NULL;
}

static uint16_t choose_port(struct sim *s, const struct sim_router *r, uint16_t inside) {
	enum { FIRST = 20000, PORTS = 30000 };
	bool keeps = (r->traits & HOME_MOVES) == 0 && !maps_for_each(r);
	uint16_t port = inside;
	while (!keeps || mapping_at(s, r, port) != NULL) {
		port = (uint16_t)(FIRST + s->next_outside_port++ % PORTS);
		keeps = true;
	}
	return port;
}

/* Returns a slot for another one: the one that has not been used for longest, if it is full. */
static struct sim_mapping *add_mapping(struct sim_router *r) {
	if (r->n_mappings < SIM_MAX_MAPPINGS)
		return &r->mappings[r->n_mappings++];
	int oldest = 0;
	for (int i = 1; i < r->n_mappings; i++)
		oldest = r->mappings[i].until_us < r->mappings[oldest].until_us ? i : oldest;
	return &r->mappings[oldest];
}

static void open_hole(struct sim *s, struct sim_router *r, int host, const struct sim_where *inside,
					  const struct sim_where *to) {
	int at = 0;
	for (int i = 0; i < r->n_holes; i++) {
		at = r->holes[i].until_us < r->holes[at].until_us ? i : at;
		if (is_same(&r->holes[i].inside, inside) && is_same(&r->holes[i].from, to)) {
			r->holes[i].until_us = s->now_us + KEPT_US;
			return;
		}
	}
	if (r->n_holes < SIM_MAX_MAPPINGS)
		at = r->n_holes++;
	r->holes[at] = (struct sim_hole){.inside = *inside, .from = *to, .until_us = s->now_us + KEPT_US, .host = host};
}

static struct sim_where translate(struct sim *s, struct sim_router *r, int host, const struct sim_where *inside,
								  const struct sim_where *to) {
	struct sim_mapping *m = find_mapping(s, r, inside, to);
	if (m == NULL) {
		forget_unused(s, r);
		uint16_t port = choose_port(s, r, inside->port);
		m = add_mapping(r);
		*m = (struct sim_mapping){.inside = *inside, .to = *to, .port = port, .host = host};
		sim_say(s, host, "its router gives it port %u", port);
	}
	m->until_us = s->now_us + KEPT_US;
	open_hole(s, r, host, inside, to);
	return (struct sim_where){.ip = r->outside, .port = m->port};
}

static bool leaves_by_v6(struct sim *s, int host, uint16_t port, const struct sim_where *to, struct sim_where *from) {
	*from = (struct sim_where){.ip = homes_outside(s, host, true), .port = port};
	if (from->ip == 0)
		return false;
	if (router_of(s, host) != NULL)
		open_hole(s, router_of(s, host), host, from, to);
	return true;
}

bool homes_leave(struct sim *s, int host, uint16_t port, const struct sim_where *to, struct sim_where *from) {
	enum { FIRST = 50000, PORTS = 15000 };
	bool any = port == 0;
	if (any)
		port = (uint16_t)(FIRST + s->next_outside_port++ % PORTS);
	RV_ASSERT(host < SIM_MAX_WORKERS); /* a relay dials nobody */
	if (is_v6(to))
		return leaves_by_v6(s, host, port, to, from);
	*from = (struct sim_where){.ip = homes_inside(s, host), .port = port};
	if (to->ip >> 16 == OF_INSIDE >> 16)
		return true;
	for (struct sim_router *r = router_of(s, host); r != NULL; r = beyond(s, r)) {
		if (any) /* nobody dials it */
			from->ip = r->outside;
		else
			*from = translate(s, r, host, from, to);
	}
	return s->homes[host].has_v4;
}

/* ---- in ---- */

static bool lets_in(struct sim *s, const struct sim_router *r, const struct sim_where *inside,
					const struct sim_where *from) {
	if (r->kind == HOME_FULL_CONE && !is_v6(inside))
		return true;
	for (int i = 0; i < r->n_holes; i++) {
		const struct sim_hole *h = &r->holes[i];
		bool from_there = h->from.ip == from->ip && (h->from.port == from->port || r->kind == HOME_ADDRESS);
		if (from_there && is_same(&h->inside, inside) && is_alive(s, h->until_us, h->host, &h->from))
			return true;
	}
	return false;
}

static bool is_behind(const struct sim *s, int host, const struct sim_router *r) {
	const struct sim_router *at = router_of(s, host);
	while (at != NULL && at != r)
		at = beyond(s, at);
	return at != NULL;
}

static struct sim_router *router_at(const struct sim *s, uint64_t ip) {
	for (int i = 0; i < s->n_routers; i++)
		if (s->routers[i]->outside == ip)
			return s->routers[i];
	return NULL;
}

static int enter(struct sim *s, int src, const struct sim_where *from, const struct sim_where *to, bool ask_doors,
				 uint16_t *port, bool *resets) {
	const struct sim_mapping *m = NULL;
	struct sim_where at = *to;
	for (const struct sim_router *r = router_at(s, at.ip); r != NULL; r = router_at(s, at.ip)) {
		bool from_behind = is_behind(s, src, r);
		m = mapping_at(s, r, at.port);
		*resets = (r->traits & HOME_RESETS) != 0;
		if (m == NULL || (from_behind && (r->traits & HOME_HAIRPINS) == 0))
			return SIM_OUTSIDE;
		bool its_own = !maps_for_each(r) || is_same(&m->to, from);
		if (ask_doors && (!its_own || !lets_in(s, r, &m->inside, from)))
			return SIM_OUTSIDE;
		at = m->inside;
	}
	*port = at.port;
	return m != NULL ? m->host : SIM_OUTSIDE;
}

static int at_home(const struct sim *s, int src, uint64_t ip) {
	for (int h = 0; h < s->opt.n_workers; h++)
		if (homes_share(s, src, h) && homes_inside(s, h) == ip)
			return h;
	return SIM_OUTSIDE;
}

bool homes_is_missing(const struct sim *s, int host, const struct sim_where *to) {
	return to->ip >> 16 == OF_INSIDE >> 16 && at_home(s, host, to->ip) == SIM_OUTSIDE;
}

static int find_v6(struct sim *s, const struct sim_where *from, const struct sim_where *to, bool ask_doors,
				   bool *resets) {
	int n = (int)(to->ip & UINT32_MAX);
	if (n >= RELAY_OF_V6 && n < RELAY_OF_V6 + s->opt.relay)
		return SIM_RELAY + n - RELAY_OF_V6;
	if (n < 1 || n > s->opt.n_workers || !s->homes[n - 1].has_v6)
		return SIM_OUTSIDE;
	const struct sim_router *r = router_of(s, n - 1);
	*resets = r != NULL && (r->traits & HOME_RESETS) != 0;
	return r == NULL || !ask_doors || lets_in(s, r, to, from) ? n - 1 : SIM_OUTSIDE;
}

int homes_find(struct sim *s, int src, const struct sim_where *from, const struct sim_where *to, bool ask_doors,
			   uint16_t *port, bool *resets) {
	*resets = false;
	*port = to->port;
	if (is_v6(to))
		return find_v6(s, from, to, ask_doors, resets);
	if (to->ip >= OF_RELAY && to->ip < OF_RELAY + (uint64_t)s->opt.relay)
		return SIM_RELAY + (int)(to->ip - OF_RELAY);
	if (to->ip >> 16 == OF_INSIDE >> 16)
		return at_home(s, src, to->ip);
	uint64_t host = to->ip - (to->ip >= OF_MORE ? OF_MORE : OF_HOST);
	bool is_host = to->ip >= OF_HOST && host < (uint64_t)s->opt.n_workers && address_of((int)host) == to->ip;
	if (is_host && router_of(s, (int)host) == NULL)
		return (int)host;
	return enter(s, src, from, to, ask_doors, port, resets);
}
