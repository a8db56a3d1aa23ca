/* majority.c: REDUCE: how long a majority waits for the other votes.
 *
 * Once more than half of all that the round has rostered have voted alike, its result is on so many
 * disks, and nothing that the others say can change it. A member that lacks it at the commit
 * fetches it as a log entry. So the others are waited for only as long as the majority took, and
 * withheld_us / 4 at least; not at all if they accuse a participant (the others do hold its data),
 * or if other rounds have waited for them in vain (exclusion.c). A member that never votes, votes
 * for something else, or accuses others, costs no attempt where more than half are honest.
 *
 * One whose vote is another is asked what it got (disputes.c), and waited for no longer than a vote
 * that is missing.
 *
 * For the same reason an accusation that stands alone is not weighed at once, while those that
 * accuse nobody are a majority and may still vote: within withheld_us of the attempt's begin. Later
 * it is: then the accused may be what a majority waits for. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

enum { WAIT_SHARE = 4 };

int64_t core_majority_wait_us(const struct core *c) {
	const int64_t took_us = c->majority_us - c->attempt_since_us, least_us = c->cfg.withheld_us / WAIT_SHARE;
	RV_ASSERT(took_us >= 0);
	return took_us > least_us ? took_us : least_us;
}

int64_t core_majority_waits_until_us(const struct core *c) {
	return c->majority_us == INT64_MAX ? INT64_MAX : c->majority_us + core_majority_wait_us(c);
}

bool core_is_majority(const struct core *c, int votes) {
	RV_ASSERT(votes >= 0 && votes <= c->roster.n);
	return 2 * votes > core_size_of(c, c->rostered);
}

/* Returns true if the vote of participant `i` is worth waiting for. */
static bool is_awaited(const struct core *c, uint32_t i) {
	const struct core_member *m = core_participant(c, i);
	const bool this_attempt = m->last.round == c->round && m->last.attempt == c->attempt;
	if (core_is_mute(c, m) || (this_attempt && m->last.n_suspects > 0))
		return false;
	return c->now_us < core_majority_waits_until_us(c);
}

void core_note_majority(struct core *c, int votes) {
	if (!core_is_majority(c, votes))
		c->majority_us = INT64_MAX;
	else if (c->majority_us > c->now_us)
		c->majority_us = c->now_us;
}

bool core_majority_waits(const struct core *c, const uint64_t *present, const uint64_t *votes) {
	for (int i = set_next(present, 0, c->roster_words); i >= 0; i = set_next(present, i + 1, c->roster_words))
		if (!set_has(votes, (uint32_t)i) && is_awaited(c, (uint32_t)i))
			return true;
	return false;
}

bool core_may_be_outvoted(const struct core *c, int accusers) {
	const bool early = c->now_us < c->attempt_since_us + c->cfg.withheld_us;
	return early && core_is_majority(c, c->roster.n - accusers) && c->roster.n > 2;
}
