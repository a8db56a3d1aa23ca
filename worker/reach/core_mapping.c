/* core_mapping.c: reflections from the port on which the mesh listens, and what they show of the
 * worker's router (core_state.h). */
#include "worker/reach/core_state.h"

#include "base/assert.h"

#include <string.h>

enum {
	FIRST_PAUSE_US = RV_US_PER_S,
	LAST_PAUSE_US = 300 * RV_US_PER_S,
	STEADY_US = 60 * RV_US_PER_S /* one that was open at least this long is asked
                                  for again at once */
};

enum reach_family mapping_family(const struct address *a) {
	return strchr(a->host, ':') != NULL ? REACH_V6 : REACH_V4;
}

static struct kept_reflection *of(struct reach_core *r, const struct reach_reflection *w) {
	RV_ASSERT(w->station < REACH_STATIONS && w->family < REACH_FAMILIES && w->port < REACH_PORTS);
	return &r->stations[w->station].reflections[w->family][w->port];
}

/* ---- asking ---- */

/* Returns the place of an address of the relay that may be of this family; NOWHERE: there is
 * none. */
static int place_of_family(const struct reach_core *r, int place, enum reach_family family) {
	int first = reach_first_place(r, place);
	for (int i = first; i < r->n_relays; i++) {
		struct address at;
		struct sockaddr_storage sa;
		socklen_t n;
		if (reach_first_place(r, i) != first || address_parse(r->relays[i].addr, &at, NULL) != RV_OK)
			continue;
		if (!address_to_socket(&at, &sa, &n) || mapping_family(&at) == family)
			return i; /* a name may have addresses of both */
	}
	return NOWHERE;
}

static uint16_t port_of(const struct reach_core *r, const struct reach_reflection *w, int place) {
	struct address at;
	if (w->port == REACH_SECOND_PORT)
		return r->stations[w->station].second_port;
	return address_parse(r->relays[place].addr, &at, NULL) == RV_OK ? at.port : 0;
}

static void ask(struct reach_core *r, const struct reach_reflection *w) {
	const struct station *s = &r->stations[w->station];
	struct kept_reflection *f = of(r, w);
	int place = place_of_family(r, s->place, w->family);
	uint16_t port = place != NOWHERE ? port_of(r, w, place) : 0;
	f->again_us = INT64_MAX;
	f->is_asked = port != 0;
	f->is_settled = f->is_settled || port == 0;
	if (port != 0)
		r->ops.reflect(r->ops.ctx, w, &r->relays[place], port, s->token);
}

static void each(struct reach_core *r, int64_t now_us, int station,
				 void (*f)(struct reach_core *r, int64_t now_us, const struct reach_reflection *w)) {
	struct reach_reflection w = {.station = (uint8_t)station};
	for (w.family = 0; w.family < REACH_FAMILIES; w.family++)
		for (w.port = 0; w.port < REACH_PORTS; w.port++)
			f(r, now_us, &w);
}

static void begin(struct reach_core *r, int64_t now_us, const struct reach_reflection *w) {
	*of(r, w) = (struct kept_reflection){.again_us = now_us, .pause_us = FIRST_PAUSE_US};
}

static void end(struct reach_core *r, int64_t now_us, const struct reach_reflection *w) {
	(void)now_us;
	if (of(r, w)->is_asked)
		r->ops.end_reflection(r->ops.ctx, w);
	*of(r, w) = (struct kept_reflection){.again_us = INT64_MAX};
}

void mapping_begin(struct reach_core *r, int64_t now_us, int station) {
	each(r, now_us, station, begin);
	mapping_tick(r, now_us, station);
}

void mapping_end(struct reach_core *r, int station) {
	each(r, 0, station, end);
}

void mapping_renew(struct reach_core *r, int64_t now_us, int station) {
	if (r->stations[station].state != REACH_UP)
		return;
	mapping_end(r, station);
	mapping_begin(r, now_us, station);
}

void mapping_tick(struct reach_core *r, int64_t now_us, int station) {
	struct reach_reflection w = {.station = (uint8_t)station};
	if (r->stations[station].state != REACH_UP)
		return;
	for (w.family = 0; w.family < REACH_FAMILIES; w.family++)
		for (w.port = 0; w.port < REACH_PORTS; w.port++)
			if (!of(r, &w)->is_asked && now_us >= of(r, &w)->again_us)
				ask(r, &w);
}

int64_t mapping_deadline_us(const struct station *s) {
	int64_t at = INT64_MAX;
	for (int family = 0; s->state == REACH_UP && family < REACH_FAMILIES; family++)
		for (int port = 0; port < REACH_PORTS; port++)
			at = reach_earlier(at, s->reflections[family][port].again_us);
	return at;
}

bool mapping_is_settled(const struct station *s) {
	bool settled = true;
	for (int family = 0; family < REACH_FAMILIES; family++)
		settled = settled && s->reflections[family][REACH_MAIN_PORT].is_settled;
	return settled;
}

/* ---- what is learnt ---- */

static bool is_same(const struct address *a, const struct address *b) {
	return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static uint8_t kind_of(const struct kept_reflection *main, const struct kept_reflection *second) {
	if (!second->is_open)
		return REACH_MAPPING_UNKNOWN;
	return is_same(&main->at, &second->at) ? REACH_MAPPING_INDEPENDENT : REACH_MAPPING_DEPENDENT;
}

static void learn(struct reach_core *r, int64_t now_us, enum reach_family family) {
	const struct station *home = &r->stations[r->home];
	const struct kept_reflection *main = &home->reflections[family][REACH_MAIN_PORT];
	const struct kept_reflection *second = &home->reflections[family][REACH_SECOND_PORT];
	struct reach_mapping *known = &r->mappings[family], now = {.at = main->at, .kind = kind_of(main, second)};
	if (!main->is_open || !second->is_settled)
		return;
	bool moved = !is_same(&now.at, &known->at);
	if (!moved && (now.kind == known->kind || now.kind == REACH_MAPPING_UNKNOWN))
		return;
	*known = now;
	const struct reach_event e = {.type = REACH_SAYS_MAPPING,
								  .relay = &r->relays[home->place],
								  .text = "",
								  .family = (uint8_t)family,
								  .mapping = known};
	r->ops.tell(r->ops.ctx, &e);
	if (moved)
		pairs_mapping_changed(r, now_us);
}

void mapping_seen(struct reach_core *r, int64_t now_us, const struct reach_reflection *which,
				  const struct address *at) {
	struct kept_reflection *f = of(r, which);
	RV_ASSERT(f->is_asked && !f->is_open);
	f->is_open = f->is_settled = true;
	f->at = *at;
	f->open_us = now_us;
	if (which->station == r->home)
		learn(r, now_us, which->family);
}

/* Gives up what is no longer kept: the router may have given the port to another host. */
static void forget(struct reach_core *r, const struct reach_reflection *which) {
	if (which->station != r->home || which->port != REACH_MAIN_PORT)
		return;
	r->mappings[which->family] = (struct reach_mapping){0};
	r->proofs[which->family] = (struct reach_proof){0};
}

void mapping_lost(struct reach_core *r, int64_t now_us, const struct reach_reflection *which) {
	struct kept_reflection *f = of(r, which);
	RV_ASSERT(f->is_asked);
	if (f->is_open && now_us - f->open_us >= STEADY_US)
		f->pause_us = FIRST_PAUSE_US;
	if (!f->is_open)
		forget(r, which);
	f->is_asked = f->is_open = false;
	f->is_settled = true;
	f->again_us = now_us + f->pause_us / 2 + (int64_t)rv_rng_below(&r->rng, (uint64_t)f->pause_us);
	f->pause_us = 2 * f->pause_us < LAST_PAUSE_US ? 2 * f->pause_us : LAST_PAUSE_US;
	if (which->station == r->home)
		learn(r, now_us, which->family);
}

void mapping_take_proof(struct reach_core *r, int station, const struct relay_proof *proof) {
	if (station != r->home)
		return;
	struct reach_proof *p = &r->proofs[mapping_family(&proof->at)];
	*p = (struct reach_proof){.relay = (uint8_t)(reach_first_place(r, r->stations[station].place) + 1),
							  .at = proof->at,
							  .unix_s = proof->unix_s};
	memcpy(p->signature, proof->signature, sizeof p->signature);
}
