/* reputation.c: what members have earned, and what audits cost them.
 *
 *   rounds     committed rounds with a contribution of the member, since it joined or since its last
 *              strike. In a run with `probation` it weighs little at first, and all after so many
 *   strike     a majority of auditors refuted its audit (audits.c), or did not get its
 *              contribution, or found it worthless: of these two others may think better (an
 *              appeal, scores.c); or it kept its auditors away, for all of two audits (evasion.c).
 *              It is in quarantine, which is an exclusion from rosters (exclusion.c), for 8, 32,
 *              128 rounds; the one after CORE_STRIKES_MAX bans it
 *   appeal     is durable when it is over: then there is no second one. A strike that it takes back
 *              leaves the quarantine of the one before as it was
 *
 * Rounds follow from the records of commits; strikes are part of the records of members, one for
 * each round at most, and never again for an earlier one: audits that a restarted coordinator draws
 * again strike nobody twice. A record changes one thing: the end of an appeal before a strike. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

enum { FIRST_QUARANTINE_ROUNDS = 8, FULL_WEIGHT = 16 };

static bool is_last_strike(const struct core_member *m, uint64_t round) {
	return m->reputation.reason != CORE_STRIKE_NONE && m->reputation.struck_round == round;
}

bool core_strike(struct core *c, uint32_t slot, uint64_t round, enum core_strike_reason reason) {
	struct core_member *m = &c->members[slot];
	if (m->strike_due != CORE_STRIKE_NONE || m->want_banned)
		return false;
	if (m->reputation.reason != CORE_STRIKE_NONE && round <= m->reputation.struck_round)
		return is_last_strike(m, round) && m->reputation.reason == reason && !m->reputation.appealed;
	if (m->reputation.strikes == CORE_STRIKES_MAX && c->banned.n < NET_MAX_BANNED)
		m->want_banned = true;
	m->strike_due = (uint8_t)reason;
	m->strike_round = round;
	return true;
}

static void end_appeal(struct core_member *m, uint64_t round, bool *due) {
	RV_ASSERT(!m->lift_due && !m->uphold_due);
	*due = m->reputation.strikes > 0;
	m->lift_round = round;
}

void core_lift_strike(struct core *c, uint32_t slot, uint64_t round) {
	end_appeal(&c->members[slot], round, &c->members[slot].lift_due);
}

void core_uphold_strike(struct core *c, uint32_t slot, uint64_t round) {
	struct core_member *m = &c->members[slot];
	if (is_last_strike(m, round)) /* else it can have no other look anyway */
		end_appeal(m, round, &m->uphold_due);
}

bool core_reputation_is_due(const struct core_member *m) {
	return m->strike_due != CORE_STRIKE_NONE || m->lift_due || m->uphold_due;
}

/* A strike that is lifted may have another one behind it: the quarantine of that goes on. */
static void end_due_appeal(const struct core_member *m, struct core_reputation *r) {
	const bool last = is_last_strike(m, m->lift_round);
	r->appealed = r->appealed || last;
	if (!m->lift_due)
		return;
	r->strikes--;
	if (last) {
		r->quarantined_until = r->until_before;
		r->reason = m->reason_before != CORE_STRIKE_NONE ? m->reason_before : r->reason;
	}
	r->until_before = 0;
}

struct core_reputation core_struck(const struct core *c, const struct core_member *m) {
	struct core_reputation r = m->reputation;
	if (m->lift_due || m->uphold_due) {
		end_due_appeal(m, &r);
		return r;
	}
	if (m->strike_due == CORE_STRIKE_NONE)
		return r;
	r.until_before = r.quarantined_until;
	r.quarantined_until = c->round + ((uint64_t)FIRST_QUARANTINE_ROUNDS << 2 * r.strikes);
	r.strikes = r.strikes < CORE_STRIKES_MAX ? (uint8_t)(r.strikes + 1) : r.strikes;
	r.reason = m->strike_due;
	r.appealed = false;
	r.struck_round = m->strike_round;
	r.rounds = 0;
	return r;
}

void core_take_reputation(struct core_member *m, const struct core_reputation *r) {
	const struct core_reputation *before = &m->reputation;
	if (r->struck_round != before->struck_round || r->strikes > before->strikes) {
		m->strike_due = CORE_STRIKE_NONE;
		m->reason_before = before->strikes > 0 ? before->reason : CORE_STRIKE_NONE;
	} else if (r->strikes < before->strikes) {
		m->reason_before = CORE_STRIKE_NONE;
	}
	m->lift_due &= r->strikes >= before->strikes;
	m->uphold_due &= !r->appealed;
	m->reputation = *r;
}

bool core_may_appeal(const struct core *c, const struct core_member *m) {
	const struct core_reputation *r = &m->reputation;
	const bool scored = r->reason == CORE_STRIKE_TRAINING || r->reason == CORE_STRIKE_WITHHELD;
	return scored && !r->appealed && !core_reputation_is_due(m) && core_in_quarantine(c, m);
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
