/* reputation.c: what members have earned, and what audits cost them.
 *
 *   rounds     committed rounds with a contribution of the member, since it joined or since its last
 *              strike. In a run with `probation` it weighs little at first, and all after so many;
 *              with audits of training, those count up to the last audited one that was found
 *              worthy: a draw that nobody foresees vouches for them
 *   strike     a majority of auditors refuted its audit (audits.c), or did not get its
 *              contribution, or found it worthless: of these two others may think better (an
 *              appeal, scores.c); or it kept its auditors away, for all of two audits (evasion.c).
 *              It is in quarantine, which is an exclusion from rosters (exclusion.c), for 8, 32,
 *              128 rounds, and for no less than one that is under way; the one after
 *              CORE_STRIKES_MAX bans it if three auditors found it, as so many have to where the
 *              roster has them: two may err or lie
 *   appeal     is durable when it is over: then there is no second one. A strike that it takes back
 *              leaves the quarantine of the one before as it was
 *
 * Rounds follow from the records of commits; strikes are part of the records of members, one for
 * each round at most, and never again for an earlier one: audits that a restarted coordinator draws
 * again strike nobody twice. A record changes one thing: the end of an appeal before a strike; and
 * how many audits in a row the member has evaded, and up to which round audits vouch for it. The
 * record of a rollback marks the last strike of its member as spent: it pays for no other one.
 * Weights follow from records alone, as a roster has to have the same after a restart. */
#include "base/assert.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

enum { FIRST_QUARANTINE_ROUNDS = 8, FULL_WEIGHT = 16 };

static bool is_last_strike(const struct core_member *m, uint64_t round) {
	return m->reputation.reason != CORE_STRIKE_NONE && m->reputation.struck_round == round;
}

bool core_is_last_chance(const struct core_member *m) {
	return m->reputation.strikes == CORE_STRIKES_MAX;
}

bool core_strike(struct core *c, uint32_t slot, uint64_t round, uint32_t found, enum core_strike_reason reason) {
	struct core_member *m = &c->members[slot];
	if (m->strike_due != CORE_STRIKE_NONE || m->want_banned)
		return false;
	if (m->reputation.reason != CORE_STRIKE_NONE && round <= m->reputation.struck_round)
		return is_last_strike(m, round) && m->reputation.reason == reason && !m->reputation.appealed;
	if (core_is_last_chance(m) && (found >= CORE_FOUND_TO_BAN || RV_BUG("ban-by-two")) && core_has_ban_room(c))
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
	return m->strike_due != CORE_STRIKE_NONE || m->lift_due || m->uphold_due || m->evaded != m->reputation.evaded ||
		   m->audited != m->reputation.audited;
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
	r.evaded = m->evaded;
	r.audited = m->audited;
	if (m->lift_due || m->uphold_due) {
		end_due_appeal(m, &r);
		return r;
	}
	if (m->strike_due == CORE_STRIKE_NONE)
		return r;
	r.until_before = r.quarantined_until;
	r.strikes = r.strikes < CORE_STRIKES_MAX ? (uint8_t)(r.strikes + 1) : r.strikes;
	const uint64_t until = c->round + ((uint64_t)FIRST_QUARANTINE_ROUNDS << 2 * (r.strikes - 1));
	r.quarantined_until = until > r.until_before ? until : r.until_before;
	r.reason = m->strike_due;
	r.appealed = false;
	r.spent = core_is_last_chance(m);
	r.struck_round = m->strike_round;
	r.rounds = r.audited = 0;
	return r;
}

void core_take_reputation(struct core_member *m, const struct core_reputation *r) {
	const struct core_reputation *before = &m->reputation;
	if (r->struck_round != before->struck_round || r->strikes > before->strikes) {
		m->strike_due = CORE_STRIKE_NONE;
		m->audited = before->audited; /* what an audit found meanwhile is of rounds before it */
		m->reason_before = before->strikes > 0 ? before->reason : CORE_STRIKE_NONE;
	} else if (r->strikes < before->strikes) {
		m->reason_before = CORE_STRIKE_NONE;
	}
	m->lift_due &= r->strikes >= before->strikes;
	m->uphold_due &= !r->appealed;
	m->evaded = m->evaded == before->evaded ? r->evaded : m->evaded; /* else the next record has it */
	m->audited = m->audited == before->audited ? r->audited : m->audited;
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

void core_note_worthy(struct core *c, uint32_t slot, uint32_t rounds) {
	struct core_member *m = &c->members[slot];
	RV_ASSERT(rounds <= m->reputation.rounds);
	if (m->reputation.audited < c->cfg.probation && rounds > m->reputation.audited && !core_reputation_is_due(m))
		m->audited = rounds;
}

void core_spend_strike(struct core *c, uint32_t member) {
	const int slot = core_find(c, member);
	if (slot >= 0)
		c->members[slot].reputation.spent = true;
}

bool core_in_quarantine(const struct core *c, const struct core_member *m) {
	return m->reputation.strikes > 0 && c->round < m->reputation.quarantined_until;
}

static uint32_t rounds_behind(const struct core *c, const struct core_member *m) {
	return core_has_scores(c) ? m->reputation.audited : m->reputation.rounds;
}

bool core_on_probation(const struct core *c, const struct core_member *m) {
	return rounds_behind(c, m) < c->cfg.probation;
}

/* The weight grows in FULL_WEIGHT steps: times a power of two, all with full weight have the mean
 * of equal weights, bit for bit. */
uint32_t core_probation_weight(const struct core *c, const struct core_member *m, uint32_t weight) {
	const uint64_t probation = c->cfg.probation, rounds = rounds_behind(c, m);
	const uint32_t full = c->cfg.weight_by_tokens ? 1 : FULL_WEIGHT;
	if (probation == 0)
		return weight;
	RV_ASSERT(weight <= NET_MAX_WEIGHT_SUM);
	const uint64_t grown = core_on_probation(c, m) ? weight * full * (rounds + 1) / (probation + 1) : weight * full;
	return grown > 0 ? (uint32_t)grown : 1;
}
