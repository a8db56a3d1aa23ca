/* reopen.c: OPEN again: a round whose rosters fail.
 *
 * A roster of none opens the round again (votes.c). Each time after the first the next roster waits
 * twice as long, so that a lasting cause costs a few attempts and not a dozen a second. A roster
 * that has shown two members to be apart (pairs.c) starts that anew: the next one is without one of
 * them. Several members behind routers take two rosters for each pair of them.
 *
 * If at least two votes have no majority of equal ones among all members that the round has
 * rostered, one owner has sent participants other means, or machines are broken. Equal votes of a
 * few are no reason to leave out the rest: an owner that sends the true mean to one member only
 * would have the run to itself and that one, and in a roster of two no contribution is limited
 * (outer/merge.h). No proof names the owner, but without it the others agree. So the rosters that
 * follow leave one member out, in turn, if enough are left; first the one without which the last
 * such round was committed. That is no blame: an owner that lies only while another takes part
 * would bring it on that one. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

enum { FIRST_SHARE = 4, DOUBLINGS_MAX = 6, LESSONS_MAX = CORE_PAIRS };

int64_t core_reopened_until_us(const struct core *c) {
	if (c->in_vain < 2)
		return INT64_MIN;
	uint32_t doublings = c->in_vain - 2 < DOUBLINGS_MAX ? c->in_vain - 2 : DOUBLINGS_MAX;
	return c->reopened_us + (c->cfg.silent_us / FIRST_SHARE << doublings);
}

bool core_splits(struct core *c, int best, int votes) {
	RV_ASSERT(best <= votes && votes <= c->roster.n);
	if (2 * best > core_size_of(c, c->rostered) || votes < 2 || c->split_rosters > (uint32_t)c->slots.n)
		return false;
	c->split_rosters++;
	core_say_all(c, CORE_EVENT_UNLIKE, c->round);
	return true;
}

/* Returns the member of `ready` to leave out after c->split_rosters; -1: none. */
static int next_in_turn(const struct core *c, const uint64_t *ready, int n_ready) {
	RV_ASSERT(n_ready > 0);
	bool again = c->parted >= 0 && set_has(ready, (uint32_t)c->parted);
	if (c->split_rosters == 0)
		return -1;
	if (c->split_rosters == 1 && again)
		return c->parted;
	int nth = ((int)c->split_rosters - (again ? 2 : 1)) % n_ready;
	for (int k = c->slots.n; k-- > 0;)
		if (set_has(ready, c->slots.order[k]) && nth-- == 0)
			return c->slots.order[k];
	return -1;
}

void core_drop_next(const struct core *c, uint64_t *ready) {
	int n = core_size_of(c, ready), who = n > (int)c->cfg.min_workers ? next_in_turn(c, ready, n) : -1;
	RV_ASSERT(who < 0 || set_has(ready, (uint32_t)who));
	if (who >= 0)
		set_drop(ready, (uint32_t)who);
}

void core_note_reopened(struct core *c) {
	c->reopened++;
	c->in_vain = c->learned ? 1 : c->in_vain + 1;
	c->learned = false;
	c->reopened_us = c->now_us;
	RV_ASSERT(c->in_vain > 0 && c->in_vain <= c->reopened && c->reopened <= c->attempt);
}

void core_note_lesson(struct core *c) {
	if (c->lessons == LESSONS_MAX)
		return;
	RV_ASSERT(c->lessons < LESSONS_MAX && c->roster.n > 0); /* rosters teach, open rounds do not */
	c->lessons++;
	c->learned = true;
}

/* Returns the lowest number's slot of those that the round had on a roster, and went on without. */
static int find_parted(const struct core *c, const uint64_t *participants) {
	for (int k = 0; k < c->slots.n; k++)
		if (set_has(c->rostered, c->slots.order[k]) && !set_has(participants, c->slots.order[k]))
			return c->slots.order[k];
	return -1;
}

void core_close_reopened(struct core *c, const uint64_t *participants) {
	c->parted = c->split_rosters > 0 && participants != NULL ? find_parted(c, participants) : -1;
	c->reopened = c->in_vain = c->lessons = c->split_rosters = c->n_dealt = c->n_void = 0;
	c->learned = false;
	c->overran = 0;
}
