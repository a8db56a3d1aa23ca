/* reopen.c: OPEN again: a round whose rosters fail.
 *
 * A roster of none opens the round again (votes.c). Each time after the first the next roster waits
 * twice as long, so that a lasting cause costs a few attempts and not a dozen a second. A roster
 * that has shown two members to be apart (pairs.c) starts that anew: the next one is without one of
 * them. Several members behind routers take two rosters for each pair of them.
 *
 * If at least three votes have no majority of equal ones among all members that the round has
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
	if (2 * best > core_count(c->rostered) || votes < 3 || c->split_rosters > (uint32_t)c->n_members)
		return false;
	c->split_rosters++;
	core_say(c, CORE_EVENT_UNLIKE, NET_MAX_MEMBERS, c->round);
	return true;
}

/* Returns the member of `ready` to leave out after c->split_rosters; NET_MAX_MEMBERS: none. */
static uint32_t next_in_turn(const struct core *c, uint64_t ready) {
	RV_ASSERT(ready != 0);
	bool again = c->parted < NET_MAX_MEMBERS && (ready & core_bit(c->parted));
	if (c->split_rosters == 0)
		return NET_MAX_MEMBERS;
	if (c->split_rosters == 1 && again)
		return c->parted;
	int nth = ((int)c->split_rosters - (again ? 2 : 1)) % core_count(ready);
	for (uint32_t i = NET_MAX_MEMBERS; i-- > 0;)
		if ((ready & core_bit(i)) && nth-- == 0)
			return i;
	return NET_MAX_MEMBERS;
}

uint64_t core_without_next(const struct core *c, uint64_t ready) {
	uint32_t who = core_count(ready) > (int)c->cfg.min_workers ? next_in_turn(c, ready) : NET_MAX_MEMBERS;
	RV_ASSERT(who == NET_MAX_MEMBERS || (ready & core_bit(who)));
	return who < NET_MAX_MEMBERS ? ready & ~core_bit(who) : ready;
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

void core_close_reopened(struct core *c, uint64_t participants) {
	uint64_t without = c->split_rosters > 0 ? c->rostered & ~participants : 0;
	c->parted = without != 0 ? (uint32_t)__builtin_ctzll(without) : NET_MAX_MEMBERS;
	c->reopened = c->in_vain = c->lessons = c->split_rosters = 0;
	c->learned = false;
}
