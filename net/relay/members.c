/* members.c: members of the run at a relay: their stations, and what they sent and got today. */
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

/* Believes a newer serving key than is known here, if the member shows one with its ticket. */
static bool may_join(struct relay_core *r, const struct relay_connection *k, const struct relay_hello *m) {
	struct run_trust trust = r->has_run ? r->trust : run_trust_of(m->run_id, r->cfg.root);
	bool right_run = memcmp(trust.run_id, m->run_id, NET_RUN_ID_BYTES) == 0;
	bool certified = m->cert.serial == trust.cert.serial || run_trust_take(&trust, &m->cert, NULL) == RV_OK;
	if (!right_run || !certified || banned_has(&r->banned, m->member) ||
		!ticket_verify(run_trust_key(&trust), m->run_id, m->member, k->key, m->ticket))
		return false;
	r->trust = trust;
	r->has_run = true;
	return true;
}

static bool is_linked(const struct relay_core *r, int member) {
	bool linked = false;
	for (int i = 0; i < NET_RELAY_LINKS; i++)
		linked |=
			r->links[i].state != RELAY_FREE && (r->links[i].member[0] == member || r->links[i].member[1] == member);
	return linked;
}

/* Returns true if the member is kept for its bytes of the day only. */
static bool is_away(const struct relay_core *r, int member) {
	const struct relay_member *m = &r->members[member];
	bool seen = false;
	for (int f = 0; f < RELAY_FAMILIES; f++)
		for (int p = 0; p < RELAY_PORTS; p++)
			seen |= m->seen[f][p] != RELAY_NONE;
	return m->station == RELAY_NONE && !seen && !is_linked(r, member);
}

/* Returns the place of the member that is away and has had the fewest bytes today; RELAY_NONE: none
 * is away. */
static int place_of_one_away(struct relay_core *r, int64_t now_us) {
	int found = RELAY_NONE;
	uint64_t fewest = UINT64_MAX;
	for (int i = 0; i < NET_RELAY_MEMBERS; i++) {
		struct relay_spent *spent = &r->members[i].spent;
		(void)left_of(r, spent, 0, now_us);
		if (!is_away(r, i) || spent->bytes >= fewest)
			continue;
		found = i;
		fewest = spent->bytes;
	}
	return found;
}

/* Returns the index of the member with this number and key, or of a place for it; RELAY_NONE: all
 * places are of members that are here. */
static int place_for(struct relay_core *r, int64_t now_us, uint32_t number, const uint8_t key[NET_KEY_BYTES]) {
	int free = RELAY_NONE;
	for (int i = 0; i < NET_RELAY_MEMBERS; i++) {
		const struct relay_member *m = &r->members[i];
		if (m->known && m->number == number && memcmp(m->key, key, NET_KEY_BYTES) == 0)
			return i;
		free = !m->known && free == RELAY_NONE ? i : free;
	}
	if (free == RELAY_NONE && (free = place_of_one_away(r, now_us)) != RELAY_NONE)
		r->members[free].known = false;
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
	int place = may_join(r, k, m) ? place_for(r, now_us, m->member, k->key) : RELAY_NONE;
	if (place == RELAY_NONE) {
		r->totals.strangers_closed++;
		relay_close(r, connection);
		return;
	}
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
