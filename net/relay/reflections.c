/* reflections.c: what a relay sees of the ports on which members listen: reflections that it keeps
 * open, and the proofs that it signs of them. */
#include "base/clock.h"
#include "net/relay/state.h"

#include <string.h>

#define PROOF_US (INT64_C(6) * 3600 * RV_US_PER_S)
static const struct gcra reflections = {.each_us = INT64_C(5) * RV_US_PER_S, .burst = 16};

static enum relay_family family_of(const struct address *a) {
	return strchr(a->host, ':') != NULL ? RELAY_V6 : RELAY_V4;
}

const struct address *relay_mapping(const struct relay_core *r, const struct relay_member *m, enum relay_family f) {
	int main = m->seen[f][RELAY_MAIN_PORT];
	return main != RELAY_NONE ? &r->connections[main].from : NULL;
}

bool relay_is_dependent(const struct relay_core *r, const struct relay_member *m, enum relay_family f) {
	const struct address *at = relay_mapping(r, m, f);
	int second = m->seen[f][RELAY_SECOND_PORT];
	if (at == NULL || second == RELAY_NONE)
		return false;
	const struct address *other = &r->connections[second].from;
	return at->port != other->port || strcmp(at->host, other->host) != 0;
}

/* ---- proofs ---- */

static void prove(struct relay_core *r, int64_t now_us, struct relay_member *m, enum relay_family f) {
	const struct address *at = relay_mapping(r, m, f);
	struct relay_frame proof = {.type = RELAY_PROOF, .proof = {.at = *at, .unix_s = r->cfg.unix_s(r->cfg.ctx)}};
	char text[NET_ADDR_BYTES];
	m->proven_us[f] = now_us;
	if (!address_format(at, text))
		return; /* no socket's address is that long */
	seen_sign(r->cfg.relay, r->trust.run_id, m->key, text, proof.proof.unix_s, proof.proof.signature);
	relay_send(r, m->station, &proof);
}

void relay_renew_proofs(struct relay_core *r, int64_t now_us, struct relay_member *m) {
	for (enum relay_family f = RELAY_V4; f < RELAY_FAMILIES; f++)
		if (relay_mapping(r, m, f) != NULL && now_us - m->proven_us[f] >= PROOF_US)
			prove(r, now_us, m, f);
}

/* ---- reflections ---- */

static void answer(struct relay_core *r, int connection, const uint8_t token[NET_TOKEN_BYTES]) {
	struct relay_frame seen = {.type = RELAY_SEEN,
							   .seen = {.at = r->connections[connection].from, .second_port = r->cfg.second_port}};
	memcpy(seen.seen.nonce, token, NET_TOKEN_BYTES);
	r->totals.reflections++;
	relay_send(r, connection, &seen);
}

/* Returns the index of the member whose station has this token, or RELAY_NONE. */
static int find_station(const struct relay_core *r, const uint8_t token[NET_TOKEN_BYTES]) {
	for (int i = 0; i < NET_RELAY_MEMBERS; i++) {
		const struct relay_member *m = &r->members[i];
		if (m->known && m->station != RELAY_NONE && memcmp(m->token, token, NET_TOKEN_BYTES) == 0)
			return i;
	}
	return RELAY_NONE;
}

static void keep(struct relay_core *r, int64_t now_us, int connection, int member) {
	struct relay_connection *k = &r->connections[connection];
	struct relay_member *m = &r->members[member];
	enum relay_family f = family_of(&k->from);
	int *place = &m->seen[f][k->port];
	relay_settle(r, connection, RELAY_REFLECTION);
	k->member = member;
	if (*place != RELAY_NONE)
		relay_close(r, *place);
	*place = connection;
	if (k->port == RELAY_MAIN_PORT)
		prove(r, now_us, m, f);
}

void relay_take_reflection(struct relay_core *r, int64_t now_us, int connection, const uint8_t token[NET_TOKEN_BYTES]) {
	int member = find_station(r, token);
	if (member == RELAY_NONE) {
		answer(r, connection, token);
		relay_close(r, connection);
		return;
	}
	if (!gcra_take(&reflections, &r->members[member].reflections_until_us, now_us)) {
		r->totals.strangers_closed++;
		relay_close(r, connection);
		return;
	}
	answer(r, connection, token);
	keep(r, now_us, connection, member);
}

void relay_forget_reflection(struct relay_core *r, int connection, const struct relay_connection *was) {
	int *place = &r->members[was->member].seen[family_of(&was->from)][was->port];
	if (*place == connection)
		*place = RELAY_NONE;
}

void relay_end_reflections_of(struct relay_core *r, const struct relay_member *m) {
	for (enum relay_family f = RELAY_V4; f < RELAY_FAMILIES; f++)
		for (int port = 0; port < RELAY_PORTS; port++)
			if (m->seen[f][port] != RELAY_NONE)
				relay_close(r, m->seen[f][port]);
}
