/* exclusion.c: members that cost the others time stay out for longer and longer.
 *
 * Two costs are counted, each by a level that rises with every cost and falls with every round
 * without one; at level l the consequence holds for 2^(l - 1) rounds, at most 64:
 *
 *   blamed   a member that ended an attempt is in no roster for that many rounds, the one that it
 *            spoiled included: an honest member that was cut off once loses that round only. Blame
 *            takes at least two accusers (in a roster of two the other one, if the accused accuses
 *            no member itself), or being overdue. One accuser alone, a digest that differs or a
 *            restarted process cost nothing: a lying owner can bring each of these on an honest
 *            member. It stays out only while enough others are left, and not of a round that was
 *            opened again: rosters without it have failed there, and it may be needed (two of the
 *            others may not reach each other). A round that needs it because another member trains
 *            the round again waits for that one first, until grace is over (roster.c).
 *   awaited  a member for which an open round waited in vain, until grace was over or nearly so,
 *            is not waited for in that many rounds. It takes part in them if it is ready in time.
 *
 * The first is part of the records of rosters and commits, so it survives a restart and adds no
 * record; a restart forgets the second, at the price of a grace time. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

enum { LEVEL_MAX = 7, WAITED_SHARE = 2 };

static uint64_t rounds_of(const struct core_level *l) {
	RV_ASSERT(l->level > 0 && l->level <= LEVEL_MAX);
	return 1ull << (l->level - 1);
}

static void raise_level(struct core_level *l, uint64_t from_round) {
	if (l->level < LEVEL_MAX)
		l->level++;
	l->until_round = from_round + rounds_of(l);
	RV_ASSERT(l->until_round > from_round);
}

static void lower_level(struct core_level *l) {
	RV_ASSERT(l->level <= LEVEL_MAX);
	if (l->level > 0)
		l->level--;
}

/* ---- blamed ---- */

void core_blame(struct core *c, uint64_t members) {
	RV_ASSERT((members & ~core_first(c->n_members)) == 0);
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++)
		if (members & core_bit(i))
			raise_level(&c->members[i].blame, c->round);
}

void core_absolve(struct core *c, uint64_t members) {
	RV_ASSERT((members & (c->spoilers | ~core_first(c->n_members))) == 0); /* none of the blamed */
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++)
		if (members & core_bit(i))
			lower_level(&c->members[i].blame);
}

void core_forget_blame(struct core *c) {
	for (int i = 0; i < c->n_members; i++)
		c->members[i].blame = (struct core_level){0};
	c->blamed = 0;
}

void core_say_blamed(struct core *c, uint64_t members) {
	RV_ASSERT((members & ~c->rostered) == 0);
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++) {
		struct core_level after = c->members[i].blame;
		raise_level(&after, c->round);
		if ((members & core_bit(i)) && after.until_round > c->round + 1)
			core_say(c, CORE_EVENT_EXCLUDED, i, after.until_round);
	}
}

bool core_is_excluded(const struct core *c, const struct core_member *m) {
	return c->round < m->blame.until_round;
}

uint64_t core_without_excluded(const struct core *c, uint64_t ready) {
	while (core_count(ready) > (int)c->cfg.min_workers && c->reopened == 0) {
		int worst = -1;
		for (int i = 0; i < c->n_members; i++)
			if ((ready & core_bit((uint32_t)i)) && core_is_excluded(c, &c->members[i]) &&
				(worst < 0 || c->members[i].blame.until_round >= c->members[worst].blame.until_round))
				worst = i;
		if (worst < 0)
			return ready;
		ready &= ~core_bit((uint32_t)worst);
		RV_ASSERT(core_count(ready) >= (int)c->cfg.min_workers);
	}
	return ready;
}

/* ---- awaited ---- */

bool core_waits_no_more(const struct core *c, const struct core_member *m) {
	return c->round < m->vain.until_round;
}

void core_forget_waits(struct core *c) {
	for (int i = 0; i < c->n_members; i++) {
		c->members[i].vain = (struct core_level){0};
		c->members[i].put_away = 0;
	}
	c->waited_for = 0;
}

void core_count_waits(struct core *c, uint64_t roster) {
	RV_ASSERT((roster & ~core_first(c->n_members)) == 0);
	bool long_one = c->now_us - c->ready_since_us >= c->cfg.grace_us / WAITED_SHARE && c->cfg.grace_us > 0;
	uint64_t came = roster | core_contributors(c); /* in time, though another decision may have left it out */
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++) {
		struct core_level *l = &c->members[i].vain;
		if (roster & core_bit(i)) {
			lower_level(l);
		} else if (long_one && (c->waited_for & ~came & core_bit(i))) {
			RV_ASSERT(!core_waits_no_more(c, &c->members[i])); /* or no round had waited for it */
			raise_level(l, c->round + 1);
			core_say(c, CORE_EVENT_IN_VAIN, i, l->until_round);
		}
	}
	c->waited_for = 0;
}
