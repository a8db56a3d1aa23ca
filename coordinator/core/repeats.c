/* repeats.c: which audits of training (scores.c) repeat the steps of the author, from the inner
 * state to which it has committed
 * (docs/decisions/0106-training-is-repeated-from-a-committed-inner-state.md).
 *
 * A share of the audits does, drawn with the audit. The steps of a round can be repeated if the
 * author took part in the round before, and its state there is that with which these steps began,
 * as its reports of both rounds say; if all that it has read since fits an order; and if its line
 * carries the state in time. Else the contribution is scored.
 *
 * A member can keep its rounds from being repeated by what it says of its inner state; honest ones
 * have reasons to, for a round or, with moments of 8 bits, for all. So it is reported, and strikes
 * nobody.
 *
 * Roots are in reports, not in records: after a restart of the coordinator the audits that it draws
 * again are scores, and so are those of the first round. */
#include "coordinator/core/internal.h"

enum { TOLD_AFTER = 8 /* rounds in a row that cannot be repeated */ };

/* Returns true if the state with which its steps began is that of the round before. */
static bool goes_on(const struct core *c, const struct core_member *m) {
	const struct commitment *said = &m->last.commitment;
	return m->last.round == c->round && m->inner_round + 1 == c->round && !rv_hash_is_zero(&said->inner_begin) &&
		   rv_hash_equal(&said->inner_begin, &m->inner_end);
}

/* Counts a round of which the author could have said that its steps went on from the one before. */
static void count_unrepeatable(struct core *c, uint32_t slot) {
	struct core_member *m = &c->members[slot];
	if (m->last.round != c->round || m->inner_round + 1 != c->round)
		return;
	m->unrepeatable = goes_on(c, m) ? 0 : m->unrepeatable + 1;
	if (m->unrepeatable == TOLD_AFTER)
		core_say_of(c, CORE_EVENT_NO_REPEAT, slot, c->round, TOLD_AFTER);
}

void core_note_inner(struct core *c) {
	for (uint32_t i = 0; c->cfg.repeat_ppm > 0 && i < c->roster.n; i++) {
		struct core_member *m = core_participant(c, i);
		count_unrepeatable(c, c->roster.slots[i]);
		m->inner_end = m->last.round == c->round ? m->last.commitment.inner_end : (struct rv_hash){{0}};
		m->inner_round = c->round;
	}
}

/* A line that was not measured in the exchange of the round before was faster than can be
 * measured, or carried next to nothing. */
static bool is_slow(const struct core *c, const struct core_member *m) {
	return !score_line_carries(c->cfg.inner_bytes, m->last.up_bytes_per_s);
}

/* Sets the order's text to all that the participant has read; returns false if it does not fit. */
static bool put_text(const struct core *c, uint32_t place, struct score_order *o) {
	const struct core_roster *r = &c->roster;
	o->n_pieces = 0;
	for (uint32_t i = 0; i < r->lease_count[place]; i++)
		if (!core_score_reads(o, leases_position(&c->leases.all, r->slots[place], r->lease_first[place] + i)))
			return false;
	return true;
}

void core_put_repeat(const struct core *c, uint32_t place, struct score_order *o) {
	const struct core_member *m = core_participant(c, place);
	const struct score_order scored = *o;
	if (!goes_on(c, m) || is_slow(c, m) || c->roster.lease_count[place] != c->cfg.lease_round || o->codec != 0 ||
		o->part != 0)
		return;
	if (!put_text(c, place, o)) {
		*o = scored;
		return;
	}
	o->repeat = true;
	o->inner_begin = m->last.commitment.inner_begin;
	o->inner_end = m->last.commitment.inner_end;
}
