/* relays.c: the relays of documents: the operator's first, then those that members offer. Members
 * report their relay by its place, which moves when an earlier one leaves the list. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/gcra.h"
#include "coordinator/core/internal.h"

#include <string.h>

bool core_same_relay(const struct relay_ref *a, const struct relay_ref *b) {
	return memcmp(a->key, b->key, NET_KEY_BYTES) == 0 && strcmp(a->addr, b->addr) == 0;
}

static bool same_list(const struct core *c, const struct relay_ref *relays, int n) {
	for (int i = 0; i < n && n == c->n_relays; i++)
		if (!core_same_relay(&relays[i], &c->relays[i]))
			return false;
	return n == c->n_relays;
}

/* Returns the place of a relay, counted from 1; 0: it is not in the list. */
static uint8_t place_in(const struct relay_ref *relays, int n, const struct relay_ref *relay) {
	for (int i = 0; i < n; i++)
		if (core_same_relay(&relays[i], relay))
			return (uint8_t)(i + 1);
	return 0;
}

/* ---- the relays of members ---- */

static uint8_t moved(const struct core *c, uint8_t place, const struct relay_ref *relays, int n) {
	return place > 0 && place <= c->n_relays ? place_in(relays, n, &c->relays[place - 1]) : 0;
}

/* Until the member reports its place in the new list. */
static void move_stations(struct core *c, const struct relay_ref *relays, int n) {
	for (int k = 0; k < c->slots.n; k++) {
		struct core_member *m = &c->members[c->slots.order[k]];
		m->last.relay = moved(c, m->last.relay, relays, n);
		m->relay = moved(c, m->relay, relays, n);
	}
}

/* A member whose relay has gone is announced at another at once; one that goes to and fro, now and
 * then. */
static const struct gcra stations = {.each_us = 10 * RV_US_PER_S, .burst = 4};

bool core_station_moved(const struct core_member *m) {
	return m->reported && m->last.relay != m->relay;
}

int64_t core_station_moves_at(const struct core_member *m) {
	return gcra_ready_us(&stations, m->station_until_us);
}

void core_follow_stations(struct core *c) {
	for (int k = 0; k < c->slots.n; k++) {
		struct core_member *m = &c->members[c->slots.order[k]];
		if (!core_station_moved(m) || !gcra_take(&stations, &m->station_until_us, c->now_us))
			continue;
		m->relay = m->last.relay;
		core_views_touch(c, c->slots.order[k]);
	}
}

/* ---- the list ---- */

void core_list_relays(struct core *c, const struct relay_ref *offered, int n) {
	struct relay_ref relays[NET_MAX_RELAYS] = {0};
	int count = c->cfg.n_relays;
	RV_ASSERT(n >= 0 && count <= NET_MAX_RELAYS);
	memcpy(relays, c->cfg.relays, (size_t)count * sizeof relays[0]);
	for (int i = 0; i < n && count < NET_MAX_RELAYS; i++)
		relays[count++] = offered[i];
	if (same_list(c, relays, count))
		return;
	move_stations(c, relays, count);
	memcpy(c->relays, relays, sizeof c->relays);
	c->n_relays = (uint8_t)count;
	core_views_touch_all(c);
	core_publish(c);
	core_check(c);
}
