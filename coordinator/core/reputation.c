/* reputation.c: what members have earned, and what audits cost them.
 *
 *   rounds     committed rounds with a contribution of the member, since it joined or since its last
 *              strike. In a run with `probation` it weighs little at first, and all after so many
 *   strike     two auditors refuted its audit, or two did not get its contribution, or found it
 *              worthless; of the last two others may think better (an appeal, scores.c). It is in
 *              quarantine, which is an exclusion from rosters (exclusion.c), for 8, 32, 128 rounds;
 *              the one after CORE_STRIKES_MAX bans it
 *
 * Rounds follow from the records of commits; strikes are part of the records of members, one for
 * each round at most, and never again for an earlier one: audits that a restarted coordinator draws
 * again strike nobody twice. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

enum { FIRST_QUARANTINE_ROUNDS = 8, FULL_WEIGHT = 16 };

void core_strike(struct core *c, uint32_t slot, uint64_t round, enum core_strike_reason reason) {
	struct core_member *m = &c->members[slot];
	if (m->strike_due != CORE_STRIKE_NONE || m->want_banned ||
		(m->reputation.reason != CORE_STRIKE_NONE && round <= m->reputation.struck_round))
		return;
	if (m->reputation.strikes == CORE_STRIKES_MAX && c->banned.n < NET_MAX_BANNED)
		m->want_banned = true;
	m->strike_due = (uint8_t)reason;
	m->strike_round = round;
}

void core_lift_strike(struct core *c, uint32_t slot) {
	struct core_member *m = &c->members[slot];
	RV_ASSERT(m->reputation.strikes > 0);
	m->lift_due = m->strike_due == CORE_STRIKE_NONE;
}

struct core_reputation core_struck(const struct core *c, const struct core_member *m) {
	struct core_reputation r = m->reputation;
	if (m->lift_due) {
		r.strikes--;
		r.quarantined_until = 0;
	}
	if (m->strike_due == CORE_STRIKE_NONE || m->lift_due)
		return r;
	r.quarantined_until = c->round + ((uint64_t)FIRST_QUARANTINE_ROUNDS << 2 * r.strikes);
	r.strikes = r.strikes < CORE_STRIKES_MAX ? (uint8_t)(r.strikes + 1) : r.strikes;
	r.reason = m->strike_due;
	r.struck_round = m->strike_round;
	r.rounds = 0;
	return r;
}

void core_count_round(struct core *c, const uint64_t *participants) {
	for (int i = set_next(participants, 0, c->words); i >= 0; i = set_next(participants, i + 1, c->words))
		c->members[i].reputation.rounds += c->members[i].reputation.rounds < UINT32_MAX;
}

bool core_in_quarantine(const struct core *c, const struct core_member *m) {
	return m->reputation.strikes > 0 && c->round < m->reputation.quarantined_until;
}

/* The weight grows in FULL_WEIGHT steps: times a power of two, all with full weight have the mean
 * of equal weights, bit for bit. */
uint32_t core_probation_weight(const struct core *c, const struct core_member *m, uint32_t weight) {
	const uint64_t probation = c->cfg.probation, rounds = m->reputation.rounds;
	const uint32_t full = c->cfg.weight_by_tokens ? 1 : FULL_WEIGHT;
	if (probation == 0)
		return weight;
	RV_ASSERT(weight <= NET_MAX_WEIGHT_SUM);
	const uint64_t grown = rounds < probation ? weight * full * (rounds + 1) / (probation + 1) : weight * full;
	return grown > 0 ? (uint32_t)grown : 1;
}
