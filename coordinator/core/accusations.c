/* accusations.c: which participants accuse which, as their last reports say. An accusation counts
 * of one with which the accuser exchanges data; in one row one that does not is held against the
 * accuser (suspects.c). */
#include "coordinator/core/internal.h"

#include <string.h>

/* Returns true if the last report of `i` accuses, in this attempt. */
static bool speaks(const struct core *c, const struct core_accusations *a, uint32_t i) {
	const struct report *rep = &core_participant(c, i)->last;
	return set_has(a->present, i) && (rep->phase == WORKER_REDUCING || rep->phase == WORKER_VOTED) &&
		   rep->round == c->round && rep->attempt == c->attempt && rep->n_suspects > 0;
}

/* Returns true if the accusation counts: a member that exchanges nothing with another one cannot
 * know what that one owes. */
static bool counts(const struct core *c, const struct core_accusations *a, uint32_t i, uint32_t suspect) {
	const struct core_rows *rows = &c->roster.rows;
	if (suspect >= (uint32_t)a->n || suspect == i || !set_has(a->present, suspect))
		return false;
	return core_rows_many(rows) ? core_rows_deal(rows, (int)i, (int)suspect)
								: core_exchange(c, c->roster.slots[i], c->roster.slots[suspect]);
}

/* Returns true if `i` knows by its document that the other one owes it nothing, in one row. */
static bool is_idle(const struct core *c, const struct core_accusations *a, uint32_t i, uint32_t suspect) {
	return suspect < (uint32_t)a->n && suspect != i && set_has(a->present, suspect) && !core_rows_many(&c->roster.rows);
}

/* Lists whom each participant accuses. Places ascend in a report. */
static void read_out(const struct core *c, struct core_accusations *a) {
	a->n_all = 0;
	for (uint32_t i = 0; i < (uint32_t)a->n; i++) {
		const struct report *rep = &core_participant(c, i)->last;
		a->out_first[i] = a->n_all;
		a->idle[i] = 0;
		for (int k = 0; speaks(c, a, i) && k < rep->n_suspects; k++)
			if (counts(c, a, i, rep->suspects[k]))
				a->out[a->n_all++] = rep->suspects[k];
			else
				a->idle[i] += is_idle(c, a, i, rep->suspects[k]);
		a->accuses[i] = a->n_all - a->out_first[i];
	}
	a->out_first[a->n] = a->n_all;
}

/* Lists by whom each is accused. */
static void turn_round(struct core_accusations *a) {
	int at[NET_MAX_ROSTER], sum = 0;
	memset(a->accusers, 0, (size_t)a->n * sizeof a->accusers[0]);
	for (int k = 0; k < a->n_all; k++)
		a->accusers[a->out[k]]++;
	a->n_any = 0;
	for (int i = 0; i < a->n; i++) {
		a->in_first[i] = at[i] = sum;
		sum += a->accusers[i];
		a->n_any += a->accusers[i] > 0;
	}
	a->in_first[a->n] = sum;
	for (int i = 0; i < a->n; i++)
		for (int k = a->out_first[i]; k < a->out_first[i + 1]; k++)
			a->in[at[a->out[k]]++] = (uint16_t)i;
}

/* Finds those that take part in accusations, and are at odds with too many. */
static void find_doubted(const struct core *c, struct core_accusations *a) {
	set_clear(a->doubted, c->roster_words);
	for (uint32_t i = 0; i < (uint32_t)a->n; i++)
		if ((a->accuses[i] > 0 || a->accusers[i] > 0) && core_odds_blame(c, c->roster.slots[i]))
			set_add(a->doubted, i);
}

bool core_read_accusations(const struct core *c, struct core_accusations *a) {
	uint64_t missed[CORE_ROSTER_WORDS];
	a->n = c->roster.n;
	core_missed(c, missed);
	set_first(a->present, a->n, c->roster_words);
	set_less(a->present, missed, c->roster_words);
	read_out(c, a);
	if (a->n_all > 0) {
		turn_round(a);
		find_doubted(c, a);
	}
	return a->n_all > 0;
}

bool core_has_accused(const struct core_accusations *a, uint32_t i, uint32_t of) {
	for (int k = a->out_first[i]; k < a->out_first[i + 1]; k++)
		if (a->out[k] == of)
			return true;
	return false;
}
