/* evasion.c: members that keep the auditors of their training away (scores.c): they end or refuse
 * the links by which a contribution would be fetched, and take part in rounds.
 *
 * One auditor's UNREACHED says nothing: its own line may be bad, a router between the two may have
 * forgotten them, it may lie. It counts if a round that opened after the auditor was asked was
 * committed with both, in one row, and nobody reports that these two are apart: then links of the
 * auditor to the others worked, the author's too, and theirs to each other. It goes on trying
 * whenever there is a link. CUT says that links to the author came up, and ended one after the
 * other once it was asked: this counts also where the two are reported as apart, as a member is
 * that ends its links; so does SLOW, which says that it gave something, but not as fast as its line
 * can. An audit is *evaded* if at the end of its window three such auditors, or all of a roster
 * with fewer, say UNREACHED, CUT, SLOW or WITHHELD, and nobody finds it worthy. Those that got it
 * and find it worthless count with them: one that has nothing worth giving may show it to some.
 * Those that got it and cannot measure it are to be fewer than these: they speak for its links. The
 * first audit in a row
 * that is evaded names the author, each further one strikes it: quarantine for 8, 32, 128 rounds,
 * then a ban (reputation.c). An audit that ends with a measurement begins a new row. The row is
 * durable, as strikes are (reputation.c). */
#include "base/assert.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

/* Notes whether the committed roster has the author, in `slot`, and the auditor in one row, and
 * whether the two reach each other, as far as they and the attempts say. */
static void note_met(const struct core *c, int a, struct core_scorer *by) {
	const int b = core_find(c, by->member), at = core_place(c, (uint32_t)a);
	const int with = b >= 0 ? core_place(c, (uint32_t)b) : -1;
	if (c->round <= by->asked_round || at < 0 || with < 0)
		return;
	const struct core_row row = core_row_at(&c->roster, (uint32_t)at);
	if ((uint32_t)with - row.first >= row.n)
		return;
	by->together = true;
	by->met |= !core_are_apart(c, (uint32_t)a, (uint32_t)b);
}

static bool was_kept_away(const struct core_scorer *by) {
	const uint8_t said = by->said.verdict;
	return (by->met && (said == SCORE_UNREACHED || said == SCORE_WITHHELD)) ||
		   (by->together && (said == SCORE_CUT || said == SCORE_SLOW));
}

bool core_says_away(const struct core_scorer *by) {
	const uint8_t said = by->said.verdict;
	return said == SCORE_UNREACHED || said == SCORE_CUT || said == SCORE_SLOW;
}

void core_note_met(struct core *c) {
	for (int i = 0; i < c->scores.n; i++) {
		struct core_score *s = &c->scores.open[i];
		const int author = s->over ? -1 : core_find(c, s->order.member);
		for (uint32_t k = 0; k < s->asked && author >= 0; k++)
			note_met(c, author, &s->by[k]);
	}
}

uint32_t core_count_evaded(const struct core_score *s) {
	const uint32_t enough = s->n < CORE_ENOUGH_AWAY ? s->n : CORE_ENOUGH_AWAY;
	uint32_t away = 0, looked[CORE_LOOKS] = {0};
	RV_ASSERT(s->n >= 2);
	for (uint32_t i = 0; i < s->asked; i++) {
		looked[core_look_of(&s->by[i])]++;
		away += was_kept_away(&s->by[i]);
	}
	if (looked[CORE_LOOK_WORTHY] > 0 || away == 0 || (RV_BUG("a-look-clears") && looked[CORE_LOOK_WORTHLESS] > 0))
		return 0;
	away += looked[CORE_LOOK_WORTHLESS];
	return away >= enough && away > looked[CORE_LOOK_BLIND] ? away : 0;
}

void core_evade(struct core *c, uint32_t slot, uint64_t round, uint32_t kept_away) {
	struct core_member *m = &c->members[slot];
	if (m->evaded > 0)
		(void)core_strike(c, slot, round, kept_away, CORE_STRIKE_EVADED);
	if (m->evaded < CORE_EVADED_MAX)
		m->evaded++;
	core_say_of(c, CORE_EVENT_EVADED, slot, round, m->evaded);
}
