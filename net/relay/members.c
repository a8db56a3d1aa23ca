/* members.c: members of the run at a relay: their stations, and what they sent and got today. */
#include "base/assert.h"
#include "base/clock.h"
#include "net/identity.h"
#include "net/relay/state.h"

#include <string.h>

#define DAY_US (INT64_C(86400) * RV_US_PER_S)

struct relay_member *relay_find_member(struct relay_core *r, uint32_t number) {
	for (int i = 0; i < NET_RELAY_MEMBERS; i++) {
		struct relay_member *m = &r->members[i];
		if (m->known && m->number == number && m->station != RELAY_NONE)
			return m;
	}
	return NULL;
}

static int64_t day_of(const struct relay_core *r, int64_t now_us) {
	return (now_us - r->start_us) / DAY_US;
}

uint32_t relay_next_day_ms(const struct relay_core *r, int64_t now_us) {
	return (uint32_t)((DAY_US - (now_us - r->start_us) % DAY_US) / RV_US_PER_MS);
}

static uint64_t left_of(const struct relay_core *r, struct relay_spent *spent, uint64_t budget, int64_t now_us) {
	int64_t today = day_of(r, now_us);
	if (spent->day != today)
		*spent = (struct relay_spent){.day = today};
	if (budget == 0)
		return UINT64_MAX;
	return spent->bytes < budget ? budget - spent->bytes : 0;
}

uint64_t relay_budget_left(struct relay_core *r, struct relay_member *m, int64_t now_us) {
	return left_of(r, &m->spent, r->cfg.bytes_per_day, now_us);
}

uint64_t relay_budget_of_all_left(struct relay_core *r, int64_t now_us) {
	return left_of(r, &r->spent, r->cfg.bytes_per_day_of_all, now_us);
}

static bool may_join(const struct relay_core *r, const struct relay_connection *k, const struct relay_hello *m) {
	bool right_run = !r->has_run || memcmp(r->run_id, m->run_id, NET_RUN_ID_BYTES) == 0;
	return right_run && !banned_has(&r->banned, m->member) &&
		   ticket_verify(r->cfg.run_key, m->run_id, m->member, k->key, m->ticket);
}

/* Returns the index of the member with this number and key, or of a free place for it; the table
 * has more places than a run has members. */
static int place_for(const struct relay_core *r, uint32_t number, const uint8_t key[NET_KEY_BYTES]) {
	_Static_assert((int)NET_RELAY_MEMBERS >= (int)NET_MAX_MEMBERS, "every member of the run has a place");
	int free = RELAY_NONE;
	for (int i = 0; i < NET_RELAY_MEMBERS; i++) {
		const struct relay_member *m = &r->members[i];
		if (m->known && m->number == number && memcmp(m->key, key, NET_KEY_BYTES) == 0)
			return i;
		free = !m->known && free == RELAY_NONE ? i : free;
	}
	return free;
}

static void make_known(struct relay_member *m, uint32_t number, const uint8_t key[NET_KEY_BYTES]) {
	if (m->known)
		return;
	*m = (struct relay_member){.known = true,
							   .number = number,
							   .station = RELAY_NONE,
							   .seen = {{RELAY_NONE, RELAY_NONE}, {RELAY_NONE, RELAY_NONE}}};
	memcpy(m->key, key, NET_KEY_BYTES);
}

static void greet(struct relay_core *r, int connection, struct relay_member *m) {
	struct relay_frame seen = {.type = RELAY_SEEN,
							   .seen = {.at = r->connections[connection].from, .second_port = r->cfg.second_port}};
	r->cfg.random(r->cfg.ctx, m->token, sizeof m->token);
	memcpy(seen.seen.nonce, m->token, sizeof m->token);
	relay_send(r, connection, &seen);
}

void relay_take_hello(struct relay_core *r, int64_t now_us, int connection, const struct relay_hello *m) {
	struct relay_connection *k = &r->connections[connection];
	int place = may_join(r, k, m) ? place_for(r, m->member, k->key) : RELAY_NONE;
	if (place == RELAY_NONE) {
		r->totals.strangers_closed++;
		relay_close(r, connection);
		return;
	}
	memcpy(r->run_id, m->run_id, NET_RUN_ID_BYTES);
	r->has_run = true;
	make_known(&r->members[place], m->member, k->key);
	if (r->members[place].station != RELAY_NONE)
		relay_close(r, r->members[place].station);
	relay_settle(r, connection, RELAY_STATION);
	k->member = place;
	k->deadline_us = now_us + NET_RELAY_IDLE_MS * RV_US_PER_MS;
	r->members[place].station = connection;
	r->totals.stations_now++;
	greet(r, connection, &r->members[place]);
}
