/* reach_core.c: life of the reach core, documents, and what goes in (reach_core.h). */
#include "worker/reach/reach_core.h"

#include "worker/reach/core_state.h"

#include <string.h>

size_t reach_core_size(void) {
	return sizeof(struct reach_core);
}

struct reach_core *reach_core_init(void *memory, const struct reach_config *cfg) {
	struct reach_core *r = memory;
	memset(r, 0, sizeof *r);
	r->ops = cfg->ops;
	r->hello = cfg->hello;
	memcpy(r->key, cfg->key, sizeof r->key);
	r->rng = rv_rng_of(cfg->seed, 0);
	r->met = ADDRESS_LOOPBACK;
	return r;
}

/* ---- documents ---- */

int reach_first_place(const struct reach_core *r, int place) {
	int i = 0;
	while (memcmp(r->relays[i].key, r->relays[place].key, NET_KEY_BYTES) != 0)
		i++;
	return i;
}

static bool is_same(const struct relay_ref *a, const struct relay_ref *b) {
	return memcmp(a->key, b->key, NET_KEY_BYTES) == 0 && strcmp(a->addr, b->addr) == 0;
}

static int place_in(const struct document *d, const struct relay_ref *relay) {
	for (int i = 0; i < d->n_relays; i++)
		if (is_same(&d->relays[i], relay))
			return i;
	return NOWHERE;
}

static bool is_same_list(const struct reach_core *r, const struct document *d) {
	bool same = r->n_relays == d->n_relays;
	for (int i = 0; same && i < d->n_relays; i++)
		same = is_same(&r->relays[i], &d->relays[i]);
	return same;
}

/* Gives a proof the place that its relay has now. */
static void move_proof(const struct reach_core *r, const struct document *d, struct reach_proof *proof) {
	int i = 0;
	while (proof->relay > 0 && i < d->n_relays &&
		   memcmp(d->relays[i].key, r->relays[proof->relay - 1].key, NET_KEY_BYTES) != 0)
		i++;
	if (proof->relay == 0 || i == d->n_relays)
		*proof = (struct reach_proof){0};
	else
		proof->relay = (uint8_t)(i + 1);
}

/* Finds where the relays are now, by their keys: places[i] of the former place i, at its first
 * place; NOWHERE: it is no longer listed. */
static void find_relays(const struct reach_core *r, const struct document *d, int places[NET_MAX_RELAYS]) {
	for (int former = 0; former < NET_MAX_RELAYS; former++) {
		places[former] = NOWHERE;
		for (int i = d->n_relays - 1; former < r->n_relays && i >= 0; i--)
			if (memcmp(d->relays[i].key, r->relays[former].key, NET_KEY_BYTES) == 0)
				places[former] = i;
	}
}

/* Keeps what is known of the relays that are still listed. */
static void move_records(struct reach_core *r, const int places[NET_MAX_RELAYS]) {
	struct relay_record judged[NET_MAX_RELAYS] = {0};
	for (int former = r->n_relays - 1; former >= 0; former--) /* of a relay's places the first counts */
		if (places[former] != NOWHERE)
			judged[places[former]] = r->judged[former];
	memcpy(r->judged, judged, sizeof judged);
}

static void begin_home(struct reach_core *r, int64_t now_us) {
	r->stations[r->home] = (struct station){.is_used = true, .try_us = now_us};
	if (relays_is_bad(r, now_us, 0))
		r->stations[r->home].place = relays_next(r, now_us, 0);
}

/* Keeps stations where their relays are still listed, at whatever place. */
static void take_relays(struct reach_core *r, int64_t now_us, const struct document *d) {
	int places[REACH_STATIONS], moved[NET_MAX_RELAYS];
	find_relays(r, d, moved);
	for (int s = 0; s < REACH_STATIONS; s++)
		places[s] = r->stations[s].is_used ? place_in(d, &r->relays[r->stations[s].place]) : NOWHERE;
	for (int family = 0; family < REACH_FAMILIES; family++)
		move_proof(r, d, &r->proofs[family]);
	move_records(r, moved);
	memcpy(r->relays, d->relays, d->n_relays * sizeof d->relays[0]);
	r->n_relays = d->n_relays;
	for (int s = 0; s < REACH_STATIONS; s++) {
		if (places[s] != NOWHERE)
			r->stations[s].place = places[s];
		else if (r->stations[s].is_used)
			station_leave(r, s);
	}
	pairs_move_relays(r, moved);
	if (!r->stations[r->home].is_used && r->stations[!r->home].is_used)
		r->home = !r->home;
	if (!r->stations[r->home].is_used && r->n_relays > 0)
		begin_home(r, now_us);
}

void reach_core_follow(struct reach_core *r, int64_t now_us, const struct document *d) {
	if (!is_same_list(r, d))
		take_relays(r, now_us, d);
	pairs_follow(r, d);
}

void reach_core_set_reach(struct reach_core *r, enum address_reach met) {
	r->met = met;
}

/* ---- what happens ---- */

void reach_core_want(struct reach_core *r, int64_t now_us, uint32_t member, bool upgrades) {
	pairs_want(r, now_us, member, upgrades);
	pairs_ask(r, now_us);
}

void reach_core_relay_ended(struct reach_core *r, int64_t now_us, uint32_t member, int64_t lived_us, bool failed) {
	pairs_relay_ended(r, now_us, member, lived_us, failed);
	pairs_ask(r, now_us);
}

void reach_core_show(struct reach_core *r, int64_t now_us, const struct relay_hello *hello) {
	r->hello = *hello;
	for (int s = 0; s < REACH_STATIONS; s++)
		if (r->stations[s].is_used)
			station_renew(r, now_us, s);
	pairs_tick(r, now_us);
}

void reach_core_tickets(struct reach_core *r, int64_t now_us, const struct pair_reply *reply) {
	pairs_take_tickets(r, now_us, reply);
	pairs_tick(r, now_us);
}

void reach_core_connected(struct reach_core *r, int64_t now_us, int station) {
	station_connected(r, now_us, station);
}

enum rv_err reach_core_frame(struct reach_core *r, int64_t now_us, int station, const struct relay_frame *m,
							 struct rv_errtext *et) {
	RV_TRY(station_frame(r, now_us, station, m, et));
	pairs_tick(r, now_us);
	return RV_OK;
}

void reach_core_lost(struct reach_core *r, int64_t now_us, int station, const char *why) {
	station_lost(r, now_us, station, why);
	pairs_tick(r, now_us);
}

void reach_core_reflected(struct reach_core *r, int64_t now_us, const struct reach_reflection *which,
						  const struct address *at) {
	mapping_seen(r, now_us, which, at);
	pairs_tick(r, now_us);
}

void reach_core_reflection_lost(struct reach_core *r, int64_t now_us, const struct reach_reflection *which) {
	mapping_lost(r, now_us, which);
	pairs_tick(r, now_us);
}

void reach_core_hurry(struct reach_core *r, int64_t now_us) {
	enum { RENEW_US = 2 * RV_US_PER_S }; /* addresses come and go in groups */
	bool renews = now_us >= r->reflect_us;
	r->reflect_us = renews ? now_us + RENEW_US : r->reflect_us;
	for (int s = 0; s < REACH_STATIONS; s++) {
		if (!r->stations[s].is_used)
			continue;
		station_hurry(r, now_us, s);
		if (renews)
			mapping_renew(r, now_us, s);
	}
}

/* ---- time ---- */

void reach_core_tick(struct reach_core *r, int64_t now_us) {
	for (int s = 0; s < REACH_STATIONS; s++)
		if (r->stations[s].is_used)
			station_tick(r, now_us, s);
	for (int s = 0; s < REACH_STATIONS; s++)
		if (r->stations[s].is_used)
			mapping_tick(r, now_us, s);
	pairs_tick(r, now_us);
	relays_leave_bad_home(r, now_us);
}

int64_t reach_core_deadline_us(const struct reach_core *r) {
	int64_t at = pairs_deadline_us(r);
	for (int s = 0; s < REACH_STATIONS; s++)
		if (r->stations[s].is_used)
			at = reach_earlier(reach_earlier(at, station_deadline_us(r, s)), mapping_deadline_us(&r->stations[s]));
	return at;
}

uint8_t reach_core_relay(const struct reach_core *r) {
	const struct station *home = &r->stations[r->home];
	return home->state == REACH_UP ? (uint8_t)(reach_first_place(r, home->place) + 1) : 0;
}

const struct reach_mapping *reach_core_mapping(const struct reach_core *r, enum reach_family family) {
	return &r->mappings[family];
}

const struct reach_proof *reach_core_proof(const struct reach_core *r, enum reach_family family) {
	bool is_useful = r->proofs[family].at.port != 0 && r->mappings[family].kind != REACH_MAPPING_DEPENDENT;
	return is_useful ? &r->proofs[family] : NULL;
}
