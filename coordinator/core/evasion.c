/* evasion.c: members that keep the auditors of their training away (scores.c): they end or refuse
 * the links by which a contribution would be fetched, and take part in rounds.
 *
 * One auditor's UNREACHED says nothing: its own line may be bad, a router between the two may have
 * forgotten them, it may lie. It counts if a round that opened after the auditor was asked was
 * committed with both, in one row, and nobody reports that these two are apart: then links of the
 * auditor to the others worked, the author's too, and theirs to each other. It goes on trying
 * whenever there is a link. CUT says that links to the author came up, and ended one after the
 * other once it was asked: this counts also where the two are reported as apart, as a member is
 * that ends its links. An audit is *evaded* if at the end of its window three such auditors, or all
 * of a roster with fewer, say UNREACHED, CUT or WITHHELD, and nobody got the contribution. The
 * first audit in a row that is evaded names the author, each further one strikes it: quarantine for
 * 8, 32, 128 rounds, then a ban (reputation.c). An audit that ends with a measurement begins a new
 * row.
 *
 * The row is not durable: a restart costs one more audit. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

static bool has_member(const struct core_roster *r, uint32_t member) {
	bool found = false;
	for (int i = 0; i < r->n; i++)
		found |= r->members[i] == member;
	return found;
}

/* Notes whether the committed roster, which has the author, has the auditor too, and whether the
 * two reach each other, as far as they and the attempts say. */
static void note_met(const struct core *c, uint32_t author, struct core_scorer *by) {
	const int a = core_find(c, author), b = core_find(c, by->member);
	if (c->round <= by->asked_round || a < 0 || b < 0 || !has_member(&c->roster, by->member))
		return;
	by->together = true;
	by->met |= !core_are_apart(c, (uint32_t)a, (uint32_t)b);
}

static bool was_kept_away(const struct core_scorer *by) {
	const uint8_t said = by->said.verdict;
	return (by->met && (said == SCORE_UNREACHED || said == SCORE_WITHHELD)) || (by->together && said == SCORE_CUT);
}

void core_note_met(struct core *c) {
	const struct core_roster *r = &c->roster;
	if (core_rows_many(&r->rows))
		return;
	for (int i = 0; i < c->scores.n; i++) {
		struct core_score *s = &c->scores.open[i];
		if (s->over || !has_member(r, s->order.member))
			continue;
		for (uint32_t k = 0; k < s->asked; k++)
			note_met(c, s->order.member, &s->by[k]);
	}
}

bool core_is_evaded(const struct core_score *s) {
	const uint32_t enough = s->n < CORE_ENOUGH_AWAY ? s->n : CORE_ENOUGH_AWAY;
	uint32_t away = 0;
	RV_ASSERT(s->n >= 2);
	for (uint32_t i = 0; i < s->asked; i++) {
		const struct core_scorer *by = &s->by[i];
		if (by->said.verdict == SCORE_MEASURED)
			return false;
		away += was_kept_away(by);
	}
	return away >= enough;
}

void core_evade(struct core *c, uint32_t slot, uint64_t round) {
	struct core_member *m = &c->members[slot];
	if (m->evaded > 0)
		(void)core_strike(c, slot, round, CORE_STRIKE_EVADED);
	if (m->evaded < CORE_EVADED_MAX)
		m->evaded++;
	core_say_of(c, CORE_EVENT_EVADED, slot, round, m->evaded);
}
