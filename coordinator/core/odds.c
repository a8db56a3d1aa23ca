/* odds.c: members that accuse another one alone, or with few others (suspects.c). A member
 * that nobody else accuses may have withheld its data from one only, or given that one other bytes;
 * or that one lies. Nothing says which, so both are noted, and for ODDS_ROUNDS they owe each other
 * nothing: in one row neither owns chunks (owners.c), in several the deal brings them into
 * different rows and columns (deal.h). Both go on to contribute, and the same two cost one
 * attempt. A liar has to find itself another one each time. Of two at odds the one with more
 * others at odds is put away (suspects.c), and with most others, in rows also with
 * core_odds_many(), it is to blame, and stays out for longer and longer (exclusion.c). So many
 * liars can bring that on an honest member, if each of them accuses it, or withholds from it.
 *
 * In one row liars that accuse many would own all chunks. Each member at odds spreads one doubt
 * evenly over the others, and one with more doubt than members are at odds with nobody is left out
 * of rosters (core_drop_at_odds).
 *
 * Two that are at odds in a second round had to exchange data, as all others are apart from
 * somebody: then one of the two is left out (pairs.c).
 *
 * Not counted: one that is known to be apart from the other (pairs.c), but for two that have cost
 * more attempts than show that, or of which one reports a link with the other; one that has not
 * reported since; and an accused one that has died. Volatile: a coordinator that starts again
 * learns it anew. */
#include "base/assert.h"
#include "base/rows.h"
#include "coordinator/core/apart.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum {
	ODDS_ROUNDS = 128,
	LASTING = 2,
	/* In rows: an eighth, so that a liar costs a large run few attempts before it is to blame. */
	MANY_SHARE = 8,
	MANY_LEAST = 4,
	MANY_MOST = 16,
	/* Fewer blame nobody in short rows, where an honest owner waits for another row's, too; two do
	 * if they are all others. */
	ODDS_FEW = 3
};

static struct core_odds *find(struct core *c, uint32_t a, uint32_t b) {
	for (int i = 0; i < c->n_odds; i++) {
		struct core_odds *o = &c->odds[i];
		if ((o->accuser == a && o->accused == b) || (o->accuser == b && o->accused == a))
			return o;
	}
	return NULL;
}

/* Returns room for two more; without any the place of those with the oldest round. */
static struct core_odds *add(struct core *c) {
	int oldest = 0;
	if (c->n_odds < CORE_ODDS)
		return &c->odds[c->n_odds++];
	for (int i = 1; i < c->n_odds; i++)
		if (c->odds[i].round < c->odds[oldest].round)
			oldest = i;
	return &c->odds[oldest];
}

/* Returns true if the member has reported since, as any process. */
static bool has_told(const struct core *c, uint32_t slot, int64_t at_us) {
	const struct core_member *m = &c->members[slot];
	return m->reported && m->told_us > at_us;
}

/* Returns true if the member has reported since, as the same process. */
static bool was_alive(const struct core *c, uint32_t slot, uint64_t boot, int64_t at_us) {
	return has_told(c, slot, at_us) && report_same_process(c->members[slot].last.boot, boot);
}

/* An accuser that starts again has accused all the same: else it could begin anew in each round.
 * An accused one may have been dead. */
static bool counts(const struct core *c, const struct core_odds *o) {
	const bool recent = c->round >= o->round && c->round - o->round < ODDS_ROUNDS;
	return recent && has_told(c, o->accuser, o->at_us) && was_alive(c, o->accused, o->accused_boot, o->at_us);
}

/* A pair that counts, goes on to count: its members need not report once more. */
void core_odds_note(struct core *c, uint32_t i, uint32_t j, bool outvoted) {
	RV_ASSERT(i != j && i < c->roster.n && j < c->roster.n);
	const uint32_t accuser = c->roster.slots[i], accused = c->roster.slots[j];
	struct core_odds *o = find(c, accuser, accused);
	const bool before = o != NULL && counts(c, o);
	const int64_t at_us = before ? o->at_us : c->now_us;
	const bool always = outvoted && (!before || (o->outvoted && o->accuser == accuser));
	const uint32_t n_rounds = before ? o->n_rounds + (o->round != c->round) : 1;
	if (o == NULL)
		o = add(c);
	*o = (struct core_odds){.accuser = accuser,
							.accused = accused,
							.accused_boot = c->roster.boots[j],
							.round = c->round,
							.at_us = at_us,
							.n_rounds = n_rounds,
							.outvoted = always};
}

void core_odds_with(const struct core *c, uint32_t i, uint64_t *out) {
	const uint32_t slot = c->roster.slots[i];
	set_clear(out, c->roster_words);
	for (int k = 0; k < c->n_odds; k++) {
		const struct core_odds *o = &c->odds[k];
		const uint32_t other = o->accuser == slot ? o->accused : o->accuser;
		const bool its = o->accuser == slot || o->accused == slot;
		const int place = its && (counts(c, o) || o->at_us == c->now_us) ? core_place(c, other) : -1;
		if (place >= 0 && !core_may_be_apart(c, slot, other))
			set_add(out, (uint32_t)place);
	}
}

int core_odds_of(const struct core *c, uint32_t slot) {
	int n = 0;
	for (int i = 0; i < c->n_odds; i++) {
		const struct core_odds *o = &c->odds[i];
		const bool its = o->accuser == slot || o->accused == slot;
		n += its && counts(c, o) && !core_may_be_apart(c, o->accuser, o->accused);
	}
	return n;
}

/* Returns true if the two were at odds in LASTING rounds: they had to exchange data, as no others
 * could own. */
static bool lasts(const struct core *c, const struct core_odds *o) {
	return o->n_rounds >= LASTING && counts(c, o) && !core_are_apart(c, o->accuser, o->accused);
}

void core_each_lasting_odds(const struct core *c, const uint64_t *set, core_take_pair *take, void *ctx) {
	for (int k = 0; k < c->n_odds; k++) {
		const struct core_odds *o = &c->odds[k];
		if (set_has(set, o->accuser) && set_has(set, o->accused) && lasts(c, o))
			take(ctx, o->accuser, o->accused);
	}
}

void core_lasting_odds_with(const struct core *c, uint32_t slot, uint64_t *out) {
	set_clear(out, c->words);
	for (int k = 0; k < c->n_odds; k++) {
		const struct core_odds *o = &c->odds[k];
		if ((o->accuser == slot || o->accused == slot) && lasts(c, o))
			set_add(out, o->accuser == slot ? o->accused : o->accuser);
	}
}

static bool is_here(const struct core *c, const struct core_member *m) {
	return core_alive(c, m) && !m->banned;
}

int core_odds_many(int n) {
	const int share = n / MANY_SHARE;
	return share < MANY_LEAST ? MANY_LEAST : share > MANY_MOST ? MANY_MOST : share;
}

bool core_odds_blame(const struct core *c, uint32_t slot) {
	const bool many = core_rows_many(&c->roster.rows);
	const int odds = core_odds_of(c, slot), others = core_count_that(c, is_here) - 1;
	const int few = others == 2 ? 2 : ODDS_FEW, least = many ? few : 1;
	return (many && odds >= core_odds_many(others + 1)) || (odds >= least && 2 * odds > others);
}

/* ---- doubt ---- */

enum { ONE_DOUBT = 1 << 20 };

struct doubts {
	uint64_t here[CORE_HERE_WORDS]; /* slots of those that may take part */
	uint16_t with[NET_MAX_HERE];    /* by slot: number of others that it is at odds with */
	uint64_t of[NET_MAX_HERE];      /* by slot: doubt, in parts of ONE_DOUBT */
	uint64_t until[NET_MAX_HERE];   /* by slot: round in which its last odds are over */
	int clean;                      /* members that are at odds with nobody */
};

static bool may_take_part(const struct core *c, const struct core_member *m) {
	return is_here(c, m) && !core_is_excluded(c, m);
}

static bool is_doubt(const struct core *c, const struct doubts *d, const struct core_odds *o) {
	return set_has(d->here, o->accuser) && set_has(d->here, o->accused) && counts(c, o) &&
		   !core_may_be_apart(c, o->accuser, o->accused);
}

static void count_pair(struct doubts *d, const struct core_odds *o, uint32_t slot) {
	d->with[slot]++;
	if (d->until[slot] < o->round + ODDS_ROUNDS)
		d->until[slot] = o->round + ODDS_ROUNDS;
}

/* Counts doubts among those of d->here. */
static void find_doubts(const struct core *c, struct doubts *d) {
	memset(d->with, 0, sizeof d->with);
	memset(d->of, 0, sizeof d->of);
	memset(d->until, 0, sizeof d->until);
	for (int k = 0; k < c->n_odds; k++) {
		const struct core_odds *o = &c->odds[k];
		if (!is_doubt(c, d, o))
			continue;
		count_pair(d, o, o->accuser);
		count_pair(d, o, o->accused);
	}
	for (int k = 0; k < c->n_odds; k++) {
		const struct core_odds *o = &c->odds[k];
		if (!is_doubt(c, d, o))
			continue;
		d->of[o->accuser] += ONE_DOUBT / d->with[o->accused];
		d->of[o->accused] += o->outvoted ? 0 : ONE_DOUBT / d->with[o->accuser];
	}
	d->clean = 0;
	for (int i = set_next(d->here, 0, c->words); i >= 0; i = set_next(d->here, i + 1, c->words))
		d->clean += d->with[i] == 0;
}

/* Returns the slot of the member of `ready` with the most doubt, of several the latest; -1: that is
 * no more than members are clean, and than one. */
static int find_most_doubted(const struct core *c, const struct doubts *d, const uint64_t *ready) {
	const uint64_t few = ONE_DOUBT * (uint64_t)(d->clean > 1 ? d->clean : 1);
	int most = -1;
	for (int k = 0; k < c->slots.n; k++) {
		const uint32_t slot = c->slots.order[k];
		if (set_has(ready, slot) && d->of[slot] > few && (most < 0 || d->of[slot] >= d->of[most]))
			most = (int)slot;
	}
	return most;
}

void core_drop_at_odds(struct core *c, uint64_t *ready) {
	struct doubts d;
	int left = core_size_of(c, ready);
	const int half = core_size_of(c, c->reopened > 0 ? c->rostered : ready) / 2;
	const int least = half + 1 > (int)c->cfg.min_workers ? half + 1 : (int)c->cfg.min_workers;
	if (c->n_odds == 0 || left > NET_MAX_ROSTER || rows_choose(left, core_row_size(c)) > 1)
		return;
	(void)core_members_that(c, may_take_part, d.here);
	set_join(d.here, ready, c->words);
	while (left-- > least) {
		find_doubts(c, &d);
		const int slot = find_most_doubted(c, &d, ready);
		if (slot < 0)
			return;
		core_say(c, CORE_EVENT_EXCLUDED, (uint32_t)slot, d.until[slot]);
		set_drop(d.here, (uint32_t)slot);
		set_drop(ready, (uint32_t)slot);
	}
}

void core_odds_part(const struct core *c, const struct core_record *rec, struct apart *a) {
	int16_t index[NET_MAX_HERE]; /* by slot; -1: no participant */
	if (c->n_odds == 0)
		return;
	memset(index, -1, sizeof index);
	for (int i = 0; i < rec->n_members; i++)
		index[core_find(c, rec->members[i])] = (int16_t)i;
	for (int k = 0; k < c->n_odds; k++) {
		const struct core_odds *o = &c->odds[k];
		const int i = index[o->accuser], j = index[o->accused];
		if (i >= 0 && j >= 0 && counts(c, o) && !set_has(apart_from(a, i), (uint32_t)j))
			apart_add(a, i, j);
	}
}

void core_odds_forget(struct core *c, uint32_t slot) {
	for (int i = c->n_odds - 1; i >= 0; i--)
		if (c->odds[i].accuser == slot || c->odds[i].accused == slot)
			c->odds[i] = c->odds[--c->n_odds];
}
