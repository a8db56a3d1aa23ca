/* pairs.c: members that do not reach each other, each behind a router that forwards nothing. Two of
 * them take part as long as neither owns chunks (owners.c). Only where nobody could own any, some
 * are left out for some rounds, and then tried again; their training goes on meanwhile.
 *
 * Members report whom they are linked with, and whom they have tried to reach for seconds in vain;
 * a link counts if either side reports it. What reports do not show is learnt from accusations: two
 * attempts that a pair has cost, of which not both report a link. Two that have exchanged data
 * since they cost an attempt are not apart: the next one that they cost sets them at odds (odds.c).
 * All is volatile: a coordinator that starts again learns it anew. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum { STRIKES = 2, APART_ROUNDS = 8 };

/* How `a` meets `b`, as `a` reports. */
static uint8_t path(const struct core *c, uint32_t a, uint32_t b) {
	return report_path(&c->members[a].last, c->members[b].number);
}

/* Returns how many of the two report that they are linked. */
static int count_open(const struct core *c, uint32_t a, uint32_t b) {
	return path_is_open(path(c, a, b)) + path_is_open(path(c, b, a));
}

/* Returns true if one of the two has tried to reach the other for long, and neither is linked with
 * the other. */
static bool report_apart(const struct core *c, uint32_t a, uint32_t b) {
	bool tried = path(c, a, b) == PATH_APART || path(c, b, a) == PATH_APART;
	return tried && count_open(c, a, b) == 0;
}

/* Returns true if the member's connection has closed, and nothing came since: most likely it has
 * ended, and no router is between it and others. */
static bool has_ended(const struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	return m->hung_up && m->heard_us <= m->hung_up_us;
}

static struct core_pair *find_pair(struct core *c, uint32_t a, uint32_t b) {
	for (int i = 0; i < c->n_pairs; i++)
		if (c->pairs[i].a == a && c->pairs[i].b == b)
			return &c->pairs[i];
	return NULL;
}

static void forget(struct core *c, int i) {
	RV_ASSERT(i >= 0 && i < c->n_pairs);
	c->pairs[i] = c->pairs[--c->n_pairs];
}

/* Adds a pair; without room it replaces the one with the oldest strike. */
static struct core_pair *add(struct core *c, uint32_t a, uint32_t b) {
	int oldest = 0;
	for (int i = 1; i < c->n_pairs; i++)
		if (c->pairs[i].round < c->pairs[oldest].round)
			oldest = i;
	if (c->n_pairs == CORE_PAIRS)
		forget(c, oldest);
	RV_ASSERT(core_number(c, a) < core_number(c, b) && c->n_pairs < CORE_PAIRS && find_pair(c, a, b) == NULL);
	struct core_pair *p = &c->pairs[c->n_pairs++];
	*p = (struct core_pair){.a = a, .b = b};
	return p;
}

bool core_pair_strike(struct core *c, uint32_t i, uint32_t j) {
	RV_ASSERT(i < j && j < c->roster.n);
	bool ascend = c->roster.members[i] < c->roster.members[j];
	uint32_t a = c->roster.slots[ascend ? i : j], b = c->roster.slots[ascend ? j : i];
	struct core_pair *p = find_pair(c, a, b);
	const int open = count_open(c, a, b);
	if (open == 2 || (p != NULL && p->met)) /* linked, now or before: one of them withholds, or is slow */
		return true;
	if (p == NULL)
		p = add(c, a, b);
	p->strikes++;
	p->round = c->round;
	if (p->strikes <= STRIKES)
		core_note_lesson(c);
	if (p->strikes == STRIKES && !has_ended(c, a) && !has_ended(c, b))
		core_say_pair(c, b, a);
	return open > 0 || p->strikes > STRIKES;
}

static bool is_apart(const struct core *c, const struct core_pair *p) {
	bool recent = c->round >= p->round && c->round - p->round < APART_ROUNDS;
	return !p->met && p->strikes >= STRIKES && recent && count_open(c, p->a, p->b) < 2;
}

/* Returns true if attempts have shown that the two are apart. */
static bool pair_is_apart(const struct core *c, uint32_t a, uint32_t b) {
	for (int i = 0; i < c->n_pairs; i++) {
		const struct core_pair *p = &c->pairs[i];
		if (((p->a == a && p->b == b) || (p->a == b && p->b == a)) && is_apart(c, p))
			return true;
	}
	return false;
}

enum { PLACES = SET_WORDS(NET_MAX_PEERS) };

/* Calls `take` for each two of `set` that report to be apart, once. */
static void each_reported(const struct core *c, const uint64_t *set, core_take_pair *take, void *ctx) {
	for (int a = set_next(set, 0, c->words); a >= 0; a = set_next(set, a + 1, c->words)) {
		const struct core_member *m = &c->members[a];
		for (int k = set_next(m->apart, 0, PLACES); k >= 0; k = set_next(m->apart, k + 1, PLACES)) {
			int b = core_find(c, m->last.paths[k].member);
			if (b < 0 || b == a || !set_has(set, (uint32_t)b) || count_open(c, (uint32_t)a, (uint32_t)b) > 0)
				continue;
			bool both = path(c, (uint32_t)b, (uint32_t)a) == PATH_APART;
			if (!both || a < b)
				take(ctx, (uint32_t)a, (uint32_t)b);
		}
	}
}

void core_each_apart(const struct core *c, const uint64_t *set, core_take_pair *take, void *ctx) {
	each_reported(c, set, take, ctx);
	for (int i = 0; i < c->n_pairs; i++) {
		const struct core_pair *p = &c->pairs[i];
		if (set_has(set, p->a) && set_has(set, p->b) && is_apart(c, p) && !report_apart(c, p->a, p->b))
			take(ctx, p->a, p->b);
	}
}

/* Sets `out` to the members of `set` that the one in `slot` cannot exchange data with; returns
 * their number. */
static int apart_within(const struct core *c, uint32_t slot, const uint64_t *set, uint64_t *out) {
	const struct core_member *m = &c->members[slot];
	set_clear(out, c->words);
	for (int k = set_next(m->apart, 0, PLACES); k >= 0; k = set_next(m->apart, k + 1, PLACES)) {
		int other = core_find(c, m->last.paths[k].member);
		if (other >= 0 && (uint32_t)other != slot && report_apart(c, slot, (uint32_t)other))
			set_add(out, (uint32_t)other);
	}
	for (int i = set_next(set, 0, c->words); i >= 0; i = set_next(set, i + 1, c->words))
		if (!set_is_empty(c->members[i].apart, PLACES) && (uint32_t)i != slot && report_apart(c, slot, (uint32_t)i))
			set_add(out, (uint32_t)i);
	for (int i = 0; i < c->n_pairs; i++) {
		const struct core_pair *p = &c->pairs[i];
		if (is_apart(c, p) && (p->a == slot || p->b == slot))
			set_add(out, p->a == slot ? p->b : p->a);
	}
	set_meet(out, set, c->words);
	return core_size_of(c, out);
}

int core_apart_from(const struct core *c, uint32_t slot, uint64_t *out, uint64_t *until_round) {
	uint64_t here[CORE_HERE_WORDS];
	*until_round = 0;
	set_clear(out, c->words);
	if (core_available(c, &c->members[slot])) {
		(void)core_members_that(c, core_available, here);
		(void)apart_within(c, slot, here, out);
	}
	for (int i = 0; i < c->n_pairs; i++) {
		const struct core_pair *p = &c->pairs[i];
		if (p->strikes < STRIKES || (p->a != slot && p->b != slot))
			continue;
		set_add(out, p->a == slot ? p->b : p->a);
		if (p->round + APART_ROUNDS > *until_round)
			*until_round = p->round + APART_ROUNDS;
	}
	RV_ASSERT(!set_has(out, slot));
	return core_size_of(c, out);
}

void core_drop_ended(const struct core *c, uint64_t *set) {
	for (int i = set_next(set, 0, c->words); i >= 0; i = set_next(set, i + 1, c->words))
		if (has_ended(c, (uint32_t)i))
			set_drop(set, (uint32_t)i);
}

bool core_exchange(const struct core *c, uint32_t a, uint32_t b) {
	const bool many = core_rows_many(&c->roster.rows);
	return (c->owned[a] > 0 || c->owned[b] > 0) &&
		   (!many || core_rows_deal(&c->roster.rows, core_place(c, a), core_place(c, b)));
}

void core_pairs_met(struct core *c, const uint64_t *participants) {
	for (int i = 0; i < c->n_pairs; i++) {
		struct core_pair *p = &c->pairs[i];
		if (set_has(participants, p->a) && set_has(participants, p->b) && core_exchange(c, p->a, p->b)) {
			p->met = true;
			p->strikes = 0;
		}
	}
}

void core_pairs_moved(struct core *c, uint32_t slot) {
	for (int i = c->n_pairs - 1; i >= 0; i--)
		if ((c->pairs[i].a == slot || c->pairs[i].b == slot) && !c->pairs[i].met)
			forget(c, i);
}

void core_pairs_forget(struct core *c, uint32_t slot) {
	for (int i = c->n_pairs - 1; i >= 0; i--)
		if (c->pairs[i].a == slot || c->pairs[i].b == slot)
			forget(c, i);
}

static void count_both(void *ctx, uint32_t a, uint32_t b) {
	uint16_t *count = ctx;
	count[a]++;
	count[b]++;
}

/* Returns true if a count of those of a set is not 0. */
static bool count_any(const struct core *c, const uint64_t *set, const uint16_t *count) {
	for (int i = set_next(set, 0, c->words); i >= 0; i = set_next(set, i + 1, c->words))
		if (count[i] > 0)
			return true;
	return false;
}

/* Everybody in the result is linked with one of them at least, who can own all chunks: the member
 * that is linked with the most; of several, the lowest number. Nor is anybody at odds with it for
 * long: one that says it is apart from all but one, and withholds from that one, would else cost an
 * attempt in each round. */
void core_drop_apart(const struct core *c, uint64_t *ready) {
	uint16_t count[NET_MAX_HERE]; /* of those that each is apart from, or at odds with */
	uint64_t apart[CORE_HERE_WORDS], odds[CORE_HERE_WORDS];
	int best = -1, n = core_size_of(c, ready);
	memset(count, 0, c->cfg.max_here * sizeof count[0]);
	core_each_apart(c, ready, count_both, count);
	const bool any = count_any(c, ready, count);
	if (any)
		core_each_lasting_odds(c, ready, count_both, count);
	for (int k = 0; k < c->slots.n && any; k++) {
		uint32_t slot = c->slots.order[k];
		if (set_has(ready, slot) && (best < 0 || count[slot] < count[best]))
			best = (int)slot;
	}
	if (best < 0 || count[best] == 0 || n - count[best] < (int)c->cfg.min_workers)
		return;
	(void)apart_within(c, (uint32_t)best, ready, apart);
	core_lasting_odds_with(c, (uint32_t)best, odds);
	set_meet(odds, ready, c->words);
	set_join(apart, odds, c->words);
	set_less(ready, apart, c->words);
}

bool core_are_apart(const struct core *c, uint32_t a, uint32_t b) {
	return report_apart(c, a, b) || pair_is_apart(c, a, b);
}

bool core_are_linked(const struct core *c, uint32_t a, uint32_t b) {
	return count_open(c, a, b) > 0;
}

bool core_may_be_apart(const struct core *c, uint32_t a, uint32_t b) {
	for (int i = 0; i < c->n_pairs; i++) {
		const struct core_pair *p = &c->pairs[i];
		if (((p->a == a && p->b == b) || (p->a == b && p->b == a)) && (p->met || p->strikes > STRIKES))
			return false;
	}
	return !core_are_linked(c, a, b) && core_are_apart(c, a, b);
}

bool core_is_relayed(const struct core *c, uint32_t slot, const uint64_t *set) {
	const struct report *rep = &c->members[slot].last;
	for (int k = 0; k < rep->n_paths; k++) {
		int other = rep->paths[k].path == PATH_RELAYED ? core_find(c, rep->paths[k].member) : -1;
		if (other >= 0 && set_has(set, (uint32_t)other) && path(c, (uint32_t)other, slot) == PATH_RELAYED)
			return true;
	}
	return false;
}

bool core_left_out_apart(const struct core *c, uint32_t slot) {
	enum { FEW = 16 }; /* who is apart from less than such a part of all costs its row little */
	uint64_t here[CORE_HERE_WORDS], apart[CORE_HERE_WORDS];
	(void)core_members_that(c, core_available, here);
	set_add(here, slot);
	core_drop_apart(c, here);
	if (FEW * apart_within(c, slot, here, apart) >= core_size_of(c, here))
		core_drop_apart_from_owners(c, here);
	return !set_has(here, slot);
}
