/* odds.c: members that accuse another one alone, or in rows with few others (suspects.c). A member
 * that nobody else accuses may have withheld its data from one only, or given that one other bytes;
 * or that one lies. Nothing says which, so both are noted, and for ODDS_ROUNDS they owe each other
 * nothing: in one row neither owns chunks (owners.c), in several the deal brings them into
 * different rows and columns (deal.h). Both go on to contribute, and the same two cost one
 * attempt. A liar has to find itself another one each time. Of two at odds the one with more
 * others at odds is put away (suspects.c), and with ODDS_BLAMED of them, or most others, it is to
 * blame, and stays out for longer and longer (exclusion.c). So many liars can bring that on an
 * honest member, if each of them accuses it, or withholds from it.
 *
 * Not counted: one that is known to be apart from the other (pairs.c), but for two that have cost
 * more attempts than show that, or of which one reports a link with the other, and one that has
 * died, or has not reported since. Volatile: a
 * coordinator that starts again learns it anew. */
#include "base/assert.h"
#include "coordinator/core/apart.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum {
	ODDS_ROUNDS = 128,
	ODDS_BLAMED = 4,
	ODDS_FEW = 3 /* fewer blame nobody in short rows, where an honest owner waits for another row's, too; but
	              * two, that are all others */
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

/* Returns true if the member has reported since, as the same process. */
static bool was_alive(const struct core *c, uint32_t slot, uint64_t boot, int64_t at_us) {
	const struct core_member *m = &c->members[slot];
	return m->reported && report_same_process(m->last.boot, boot) && m->told_us > at_us;
}

static bool counts(const struct core *c, const struct core_odds *o) {
	const bool recent = c->round >= o->round && c->round - o->round < ODDS_ROUNDS;
	return recent && was_alive(c, o->accuser, o->accuser_boot, o->at_us) &&
		   was_alive(c, o->accused, o->accused_boot, o->at_us);
}

/* A pair that counts, goes on to count: its members need not report once more. */
void core_odds_note(struct core *c, uint32_t i, uint32_t j) {
	RV_ASSERT(i != j && i < c->roster.n && j < c->roster.n);
	const uint32_t accuser = c->roster.slots[i], accused = c->roster.slots[j];
	struct core_odds *o = find(c, accuser, accused);
	const int64_t at_us = o != NULL && counts(c, o) ? o->at_us : c->now_us;
	if (o == NULL)
		o = add(c);
	*o = (struct core_odds){.accuser = accuser,
							.accused = accused,
							.accuser_boot = c->roster.boots[i],
							.accused_boot = c->roster.boots[j],
							.round = c->round,
							.at_us = at_us};
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

static bool is_here(const struct core *c, const struct core_member *m) {
	return core_alive(c, m) && !m->banned;
}

bool core_odds_blame(const struct core *c, uint32_t slot) {
	const int odds = core_odds_of(c, slot), others = core_count_that(c, is_here) - 1;
	const int few = others == 2 ? 2 : ODDS_FEW, least = core_rows_many(&c->roster.rows) ? few : 1;
	return odds >= ODDS_BLAMED || (odds >= least && 2 * odds > others);
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
