/* exclusion.c: members that cost the others time stay out for longer and longer.
 *
 * Four costs are counted, each by a level that rises with every cost and falls with rounds without
 * one; at level l the consequence holds for 2^(l - 1) rounds, at most 64:
 *
 *   blamed   a member that ended an attempt is in no roster for that many rounds, the one that it
 *            spoiled included: an honest member that was cut off once loses that round only. The
 *            level falls by one when the member has taken part, without a cost, in the second
 *            round since the last change or later: it falls slower than it grows. Blame takes at
 *            least two accusers, in rows four or most of the roster (where two are alone the other
 *            one, if the accused accuses no member itself), or being overdue, or accusing more than
 *            half of the others in one row, or being at odds with several (odds.c). One accuser
 *            alone or a digest that differs cost nothing: a lying owner can bring each of these on
 *            an honest member.
 *            It stays out only while enough others are left, and not of a round in which rosters
 *            without it have failed: it may be needed (two of the others may not reach each other).
 *            A round that needs it because another member trains the round again waits for that one
 *            first, until grace is over (roster.c).
 *   gone     a member that ended an attempt by what it reports: it was started again, was stopped,
 *            or has lost the state. No other member can bring that on it, and nothing says whether
 *            it was a fault: the first time it costs nothing, from level 2 on as blame does. The
 *            level falls by one in the fourth clean round since the last change or later. It is
 *            counted once a round, when that is committed. If more than half of those that it has
 *            rostered have gone, the cause is a common one, and nothing is counted. Nor is silence:
 *            a slow line may be why. One that its peers had put away has gone if it reports as
 *            another process before a later round's roster has it: no word of theirs starts it
 *            again.
 *   awaited  a member for which an open round waited in vain, until grace was over or nearly so,
 *            is not waited for in that many rounds. It takes part in them if it is ready in time.
 *   mute     a participant whose vote a majority waited for in vain, or that accused half of the
 *            others and was outvoted (majority.c), is not waited for in that many rounds. It takes
 *            part in them, and its vote counts if it comes in time. One that accused fewer is at
 *            odds with these (odds.c).
 *
 * A member in quarantine (reputation.c) is left out as a blamed one.
 *
 * The first is part of the records of rosters and commits, so it survives a restart and adds no
 * record; a restart of the coordinator forgets the others, at the price of an attempt, a grace time
 * or a wait for a vote. */
#include "base/assert.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

enum { WAITED_SHARE = 2 };

static uint64_t rounds_of(const struct core_level *l) {
	RV_ASSERT(l->level > 0 && l->level <= CORE_LEVEL_MAX);
	return 1ull << (l->level - 1);
}

static void raise_level(struct core_level *l, uint64_t from_round) {
	if (l->level < CORE_LEVEL_MAX)
		l->level++;
	l->until_round = from_round + rounds_of(l);
	RV_ASSERT(l->until_round > from_round);
}

static void lower_level(struct core_level *l) {
	RV_ASSERT(l->level <= CORE_LEVEL_MAX);
	if (l->level > 0)
		l->level--;
}

/* ---- blamed ---- */

enum { CLEAN_ROUNDS = 2, CLEAN_ROUNDS_OF_GONE = 4 };

/* Lowers a level after a round without a cost, if so many have passed. */
static void make_up(struct core_level *l, uint64_t round, uint64_t clean_rounds) {
	if (l->level == 0 || round + 1 < l->until_round + clean_rounds)
		return;
	lower_level(l);
	l->until_round = round + 1;
}

void core_blame(struct core *c, const uint64_t *members) {
	for (int i = set_next(members, 0, c->words); i >= 0; i = set_next(members, i + 1, c->words))
		raise_level(&c->members[i].blame, c->round);
}

void core_absolve(struct core *c, const uint64_t *members) {
	for (int i = set_next(members, 0, c->words); i >= 0; i = set_next(members, i + 1, c->words)) {
		RV_ASSERT(!set_has(c->spoilers, (uint32_t)i)); /* none of the blamed */
		make_up(&c->members[i].blame, c->round, CLEAN_ROUNDS);
		make_up(&c->members[i].gone, c->round, CLEAN_ROUNDS_OF_GONE);
	}
}

void core_forget_blame(struct core *c) {
	for (int k = 0; k < c->slots.n; k++)
		c->members[c->slots.order[k]].blame = (struct core_level){0};
	set_clear(c->blamed, c->words);
}

void core_say_blamed(struct core *c, const uint64_t *members) {
	RV_ASSERT(set_is_within(members, c->rostered, c->words));
	for (int k = 0; k < c->slots.n; k++) {
		uint32_t slot = c->slots.order[k];
		struct core_level after = c->members[slot].blame;
		raise_level(&after, c->round);
		if (set_has(members, slot) && after.until_round > c->round + 1)
			core_say(c, CORE_EVENT_EXCLUDED, slot, after.until_round);
	}
}

/* ---- gone ---- */

enum { FREE_LEVEL = 1 };

/* Returns the first round that is not closed to the member because it went; 0: none is. */
static uint64_t gone_until(const struct core_member *m) {
	return m->gone.level > FREE_LEVEL && !RV_BUG("go-for-free") ? m->gone.until_round : 0;
}

static bool is_gone(const struct core *c, const struct core_member *m) {
	return core_alive(c, m) && !m->banned && !set_has(c->blamed, core_slot_of(c, m));
}

void core_note_gone(struct core *c) {
	uint64_t missed[CORE_ROSTER_WORDS], gone[CORE_ROSTER_WORDS];
	core_missed(c, missed);
	(void)core_participants_that(c, is_gone, gone);
	set_meet(gone, missed, c->roster_words);
	set_less(gone, c->roster.disbelieved, c->roster_words);
	for (int i = set_next(gone, 0, c->roster_words); i >= 0; i = set_next(gone, i + 1, c->roster_words))
		core_participant(c, (uint32_t)i)->gone_in = c->round + 1;
}

void core_note_fallen(struct core *c, uint32_t slot) {
	struct core_member *m = &c->members[slot];
	RV_ASSERT(m->place < c->roster.n && c->roster.slots[m->place] == slot);
	m->fell_in = c->round + 1;
	m->fell_boot = c->roster.boots[m->place];
}

static void count_gone(struct core *c, struct core_member *m) {
	raise_level(&m->gone, c->round);
	m->n_gone++;
	if (gone_until(m) > c->round + 1)
		core_say_of(c, CORE_EVENT_UNSTEADY, core_slot_of(c, m), gone_until(m), m->n_gone);
}

void core_note_back(struct core *c, struct core_member *m, uint64_t boot) {
	const bool settled = m->fell_in == 0 || m->rostered_at > m->fell_in;
	if (!settled && report_same_process(boot, m->fell_boot))
		return; /* its report may have been under way when its process ended */
	if (!settled && m->fell_in == c->round + 1)
		m->gone_in = m->fell_in;
	else if (!settled)
		count_gone(c, m);
	m->fell_in = 0;
}

static bool went(const struct core *c, const struct core_member *m) {
	return m->gone_in == c->round + 1;
}

/* Returns true if it has gone in this round, or may have: it has not reported since. */
static bool may_have_gone(const struct core *c, const struct core_member *m) {
	return went(c, m) || (m->distrusted && m->fell_in == c->round + 1);
}

void core_count_gone(struct core *c) {
	uint64_t gone[CORE_HERE_WORDS], common[CORE_HERE_WORDS];
	(void)core_members_that(c, went, gone);
	if (2 * core_members_that(c, may_have_gone, common) > core_size_of(c, c->rostered)) {
		for (int i = set_next(common, 0, c->words); i >= 0; i = set_next(common, i + 1, c->words))
			c->members[i].fell_in = 0;
		return;
	}
	for (int i = set_next(gone, 0, c->words); i >= 0; i = set_next(gone, i + 1, c->words))
		count_gone(c, &c->members[i]);
}

/* ---- who stays out ---- */

bool core_is_excluded(const struct core *c, const struct core_member *m) {
	return c->round < m->blame.until_round || c->round < gone_until(m) || core_in_quarantine(c, m);
}

void core_say_needed(struct core *c, const struct core_record *rec) {
	for (int i = 0; i < rec->n_members; i++) {
		const int slot = core_find(c, rec->members[i]);
		if (core_in_quarantine(c, &c->members[slot]))
			core_say(c, CORE_EVENT_NEEDED, (uint32_t)slot, c->members[slot].reputation.quarantined_until);
	}
}

enum { ROUNDS_MAX = 1 << (CORE_LEVEL_MAX - 1) };

/* Returns for how many rounds the member stays out; 0: it does not. */
static int rounds_out(const struct core *c, const struct core_member *m) {
	const uint64_t quarantined = core_in_quarantine(c, m) ? m->reputation.quarantined_until : 0;
	uint64_t until = m->blame.until_round > gone_until(m) ? m->blame.until_round : gone_until(m);
	until = until > quarantined ? until : quarantined;
	const uint64_t left = c->round < until ? until - c->round : 0;
	return left < ROUNDS_MAX ? (int)left : ROUNDS_MAX;
}

bool core_may_be_needed(const struct core *c, uint32_t slot) {
	return c->reopened > 0 && (!set_has(c->rostered, slot) || set_has(c->left_out, slot));
}

/* Returns how many of those that are ready a roster can do without: a round that is open again
 * keeps more than half of those that it has rostered, for these alone are a majority. */
static int count_spare(const struct core *c, const uint64_t *ready) {
	const int most = c->reopened > 0 ? core_size_of(c, c->rostered) / 2 + 1 : 0;
	return core_size_of(c, ready) - (most > (int)c->cfg.min_workers ? most : (int)c->cfg.min_workers);
}

/* Those that stay out for longest go first; of these the highest numbers, but in a round that is
 * open again all or none: a roster that came to nothing may have brought blame on all. */
void core_drop_excluded(const struct core *c, uint64_t *ready) {
	int count[ROUNDS_MAX + 1] = {0}, rounds = ROUNDS_MAX;
	int spare = count_spare(c, ready), out_of[NET_MAX_HERE];
	for (int k = 0; k < c->slots.n; k++) {
		const uint32_t slot = c->slots.order[k];
		out_of[slot] = core_may_be_needed(c, slot) ? 0 : rounds_out(c, &c->members[slot]);
		if (set_has(ready, slot))
			count[out_of[slot]]++;
	}
	for (; rounds > 0 && count[rounds] <= spare; rounds--)
		spare -= count[rounds];
	for (int k = c->slots.n; k-- > 0;) {
		uint32_t slot = c->slots.order[k];
		const int out = set_has(ready, slot) ? out_of[slot] : 0;
		if (out == 0 || out < rounds || (out == rounds && (c->reopened > 0 || spare-- <= 0)))
			continue;
		set_drop(ready, slot);
	}
}

/* ---- awaited ---- */

bool core_waits_no_more(const struct core *c, const struct core_member *m) {
	return c->round < m->vain.until_round;
}

void core_forget_waits(struct core *c) {
	for (int k = 0; k < c->slots.n; k++) {
		uint32_t slot = c->slots.order[k];
		c->members[slot].vain = c->members[slot].mute = c->members[slot].gone = (struct core_level){0};
		c->members[slot].put_away_round = c->members[slot].gone_in = c->members[slot].fell_in = 0;
		set_clear(&c->put_away[slot * (uint32_t)c->words], c->words);
	}
	set_clear(c->waited_for, c->words);
}

void core_count_waits(struct core *c, const uint64_t *roster) {
	bool long_one = c->now_us - c->ready_since_us >= c->cfg.grace_us / WAITED_SHARE && c->cfg.grace_us > 0;
	uint64_t came[CORE_HERE_WORDS]; /* in time, though another decision may have left it out */
	(void)core_contributors(c, came);
	RV_ASSERT(set_is_within(roster, c->slots.used, c->words));
	set_join(came, roster, c->words);
	for (int k = 0; k < c->slots.n; k++) {
		uint32_t slot = c->slots.order[k];
		struct core_level *l = &c->members[slot].vain;
		if (set_has(roster, slot)) {
			lower_level(l);
		} else if (long_one && set_has(c->waited_for, slot) && !set_has(came, slot)) {
			RV_ASSERT(!core_waits_no_more(c, &c->members[slot])); /* or no round had waited for it */
			raise_level(l, c->round + 1);
			core_say(c, CORE_EVENT_IN_VAIN, slot, l->until_round);
		}
	}
	set_clear(c->waited_for, c->words);
}

/* ---- mute ---- */

bool core_is_mute(const struct core *c, const struct core_member *m) {
	return c->round < m->mute.until_round;
}

/* Notes a participant whose accusation a majority has outvoted, as at odds with those it accuses;
 * returns false for none, and for several that are half of the others: it may fail itself. */
static bool note_outvoted(struct core *c, uint32_t i) {
	const struct report *rep = &core_participant(c, i)->last;
	const uint32_t slot = c->roster.slots[i];
	bool any = false;
	if (rep->round != c->round || rep->attempt != c->attempt)
		return false;
	if (rep->n_suspects > 1 && 2 * rep->n_suspects >= c->roster.n - 1)
		return false;
	for (int k = 0; k < rep->n_suspects; k++) {
		const uint32_t other = rep->suspects[k];
		if (other >= c->roster.n || other == i || !core_exchange(c, slot, c->roster.slots[other]))
			continue;
		core_odds_note(c, i, other, true);
		core_say_of(c, CORE_EVENT_AT_ODDS, slot, c->round, c->roster.members[other]);
		any = true;
	}
	if (any && core_odds_blame(c, slot))
		set_add(c->blamed, slot);
	return any;
}

void core_count_votes(struct core *c, const uint64_t *present, const uint64_t *votes) {
	const bool waited = c->now_us >= core_majority_waits_until_us(c);
	for (int i = set_next(present, 0, c->roster_words); i >= 0; i = set_next(present, i + 1, c->roster_words)) {
		struct core_member *m = core_participant(c, (uint32_t)i);
		if (set_has(votes, (uint32_t)i)) {
			lower_level(&m->mute);
		} else if (note_outvoted(c, (uint32_t)i)) {
			RV_ASSERT(m->last.n_suspects > 0);
		} else if ((waited || m->last.n_suspects > 0) && !core_is_mute(c, m)) {
			raise_level(&m->mute, c->round + 1);
			core_say(c, CORE_EVENT_MUTE, c->roster.slots[i], m->mute.until_round);
		}
	}
}
