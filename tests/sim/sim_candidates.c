/* sim_candidates.c: the addresses at which a member may be dialed: what a worker reports (as
 * worker/session/candidates.c), and what the coordinator announces of it (as
 * coordinator/service/candidates.c; coordinator/service/member_address.h judges). */
#include "sim.h"

#include "base/assert.h"
#include "coordinator/service/member_address.h"

#include <stdio.h>
#include <string.h>

static struct candidate *add(struct report *rep, enum candidate_kind kind, const struct sim_where *at) {
	if (rep->n_candidates == NET_MAX_CANDIDATES)
		return NULL;
	struct candidate *c = &rep->candidates[rep->n_candidates++];
	*c = (struct candidate){.kind = (uint8_t)kind};
	if (at != NULL)
		where_text(at, c->addr);
	return c;
}

static void add_reflected(const struct sim_worker *w, enum reach_family family, struct report *rep) {
	const struct reach_proof *p = reach_core_proof(w->reach.core, family);
	struct candidate *c = p != NULL ? add(rep, CANDIDATE_REFLECTED, NULL) : NULL;
	if (c == NULL)
		return;
	(void)address_format(&p->at, c->addr);
	c->relay = p->relay;
	c->unix_s = p->unix_s;
	memcpy(c->signature, p->signature, sizeof c->signature);
}

/* Sends the others to a bystander, by every kind that names a host; the proof is none. */
static void lie(struct report *rep) {
	const struct sim_where at = homes_bystander();
	(void)add(rep, CANDIDATE_GIVEN, &at);
	(void)add(rep, CANDIDATE_PRIVATE, &at);
	struct candidate *c = add(rep, CANDIDATE_REFLECTED, &at);
	c->relay = 1;
	c->unix_s = SIM_WALL_S;
}

/* Returns another port in each report. */
static uint16_t another_port(const struct sim *s) {
	enum { FIRST = 1024, PORTS = 60000 };
	return (uint16_t)(FIRST + s->now_us / SIM_MS % PORTS);
}

void candidates_report(const struct sim_worker *w, struct report *rep) {
	const struct sim *s = w->sim;
	const struct sim_where inside = {.ip = homes_inside(s, w->host), .port = SIM_PORT};
	rep->n_candidates = 0;
	const uint16_t port = lies_so(s, w->host, LIE_MOVES) ? another_port(s) : peers_port(w->mesh);
	(void)snprintf(add(rep, CANDIDATE_SEEN, NULL)->addr, NET_ADDR_BYTES, ":%u", port);
	if (w->host == s->false_address || lies_so(s, w->host, LIE_ADDRESSES)) {
		lie(rep);
		return;
	}
	if (homes_is_closed(s, w->host) && s->homes[w->host].has_v4)
		(void)add(rep, CANDIDATE_PRIVATE, &inside);
	add_reflected(w, REACH_V4, rep);
	add_reflected(w, REACH_V6, rep);
}

/* ---- the coordinator ---- */

void moves_begin(struct sim *s) {
	s->oracle.moves_from_us = s->now_us;
	for (int h = 0; h < SIM_ORDINARY; h++)
		s->oracle.moves[h].changes = 0;
}

void moves_record(struct sim *s, const struct core_record *rec) {
	enum { AT_ONCE = 4, EVERY_US = 10 * SIM_S };
	const int host = oracle_host_of(s, rec->member);
	if (rec->type != CORE_MEMBER || host == SIM_NOBODY || host >= SIM_ORDINARY)
		return;
	struct sim_moves *m = &s->oracle.moves[host];
	const bool moved = m->n > 0 && !candidates_equal(m->at, m->n, rec->candidates, rec->n_candidates);
	m->changes += moved;
	m->n = rec->n_candidates;
	memcpy(m->at, rec->candidates, sizeof m->at);
	if (m->changes > AT_ONCE + (s->now_us - s->oracle.moves_from_us) / EVERY_US)
		sim_fail(s, "the addresses of w%d were recorded, and announced to all, %u times in %lld s", host, m->changes,
				 (long long)(s->now_us - s->oracle.moves_from_us) / SIM_S);
}

static bool is_confirmed(const struct member_facts *f, const struct candidate *c, const char *seen,
						 char out[NET_ADDR_BYTES]) {
	enum member_verdict v = member_address_judge(f, seen, c, out, NULL);
	return v == MEMBER_CONFIRMED || (v == MEMBER_NEEDS_PROOF && member_proof_check(f, c));
}

static bool is_listed(const struct report *rep, const char *addr) {
	for (int i = 0; i < rep->n_candidates; i++)
		if (strcmp(rep->candidates[i].addr, addr) == 0)
			return true;
	return false;
}

/* In the order in which the others dial them. */
static void announce(const struct member_facts *f, const struct report *stated, const char *seen, struct report *rep) {
	static const uint8_t order[] = {CANDIDATE_PRIVATE, CANDIDATE_SEEN, CANDIDATE_GIVEN, CANDIDATE_REFLECTED};
	rep->n_candidates = 0;
	for (size_t k = 0; k < sizeof order; k++)
		for (int i = 0; i < stated->n_candidates; i++) {
			const struct candidate *c = &stated->candidates[i];
			char addr[NET_ADDR_BYTES] = "";
			if (c->kind != order[k])
				continue;
			if (i == 0)
				memcpy(addr, seen, sizeof addr);
			else if (!is_confirmed(f, c, seen, addr))
				continue;
			if (!is_listed(rep, addr))
				memcpy(add(rep, (enum candidate_kind)c->kind, NULL)->addr, addr, sizeof addr);
		}
}

void candidates_confirm(struct sim *s, int host, struct report *rep) {
	const struct sim_where at = {.ip = homes_outside(s, host, !s->homes[host].has_v4)};
	struct relay_ref relays[NET_MAX_RELAYS];
	struct member_sight sight = {.own = "45.0.8.1"};
	struct member_facts f = {.sight = &sight,
							 .site = "",
							 .relays = relays,
							 .n_relays = (uint8_t)relay_list(s, relays),
							 .unix_s = SIM_WALL_S + (uint64_t)(s->now_us / SIM_S)};
	struct address a;
	char seen[NET_ADDR_BYTES] = "";
	struct report stated = *rep;
	struct rv_errtext et = {0};
	where_address(&at, &a);
	memcpy(sight.host, a.host, sizeof sight.host);
	memcpy(f.run_id, s->run_id, sizeof f.run_id);
	sim_key_of(s, host, f.key);
	if (member_address_seen(&f, rep->candidates[0].addr, seen, &et) != RV_OK)
		sim_fail(s, "w%d: its address is refused: %s", host, et.text);
	announce(&f, &stated, seen, rep);
}
