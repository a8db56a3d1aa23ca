/* evasion.c: members that keep the auditors of their training away (scores.c): they end or refuse
 * the links by which a contribution would be fetched, and take part in rounds.
 *
 * One auditor's UNREACHED says nothing: its own line may be bad, a router between the two may have
 * forgotten them, it may lie. It counts if a round that opened after the auditor was asked was
 * committed with both, in one row, and nobody reports that these two are apart: then links of the
 * auditor to the others worked, the author's too, and theirs to each other. It goes on trying
 * whenever there is a link. An audit is *evaded* if at the end of its window three such auditors,
 * or all of a roster with fewer, say UNREACHED or WITHHELD, and nobody got the contribution. The
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

/* Returns true if the committed roster has both, and they reach each other, as far as they and the
 * attempts say. */
static bool meet(const struct core *c, uint32_t author, uint32_t auditor) {
	const int a = core_find(c, author), b = core_find(c, auditor);
	return a >= 0 && b >= 0 && has_member(&c->roster, auditor) && !core_are_apart(c, (uint32_t)a, (uint32_t)b);
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
			s->by[k].met |= c->round > s->by[k].asked_round && meet(c, s->order.member, s->by[k].member);
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
		away += by->met && (by->said.verdict == SCORE_UNREACHED || by->said.verdict == SCORE_WITHHELD);
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
