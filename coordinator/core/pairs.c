/* pairs.c: members that do not reach each other, each behind a router that forwards nothing, and
 * which members can own chunks in spite of that.
 *
 * Participants exchange data only where one of the two owns chunks. So an owner is one that is
 * linked with all others of the roster; two that are apart take part as long as neither owns
 * anything. Members that meet others through a relay own nothing either, if enough do not: then no
 * data of the round passes a relay; if only few do not, half of an equal part. Only where nobody is
 * linked with all, some are left out for some rounds, and then tried again; their training goes on
 * meanwhile.
 *
 * Members report whom they are linked with, and whom they have tried to reach for seconds in vain;
 * a link counts if either side reports it. What reports do not show is learnt from accusations: two
 * attempts that a pair has cost, of which not both report a link. Both are volatile: a coordinator
 * that starts again learns them anew. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

enum {
	STRIKES = 2,
	APART_ROUNDS = 8,
	DIRECT_SHARE = 4 /* members that need no relay own everything if they are at least one in so many */
};

/* Returns how many of the two report that they are linked. */
static int count_open(const struct core *c, uint32_t a, uint32_t b) {
	return path_is_open(report_path(&c->members[a].last, b)) + path_is_open(report_path(&c->members[b].last, a));
}

/* Returns true if one of the two has tried to reach the other for long, and neither is linked with
 * the other. */
static bool report_apart(const struct core *c, uint32_t a, uint32_t b) {
	bool tried = report_path(&c->members[a].last, b) == PATH_APART || report_path(&c->members[b].last, a) == PATH_APART;
	return tried && count_open(c, a, b) == 0;
}

static struct core_pair *find(struct core *c, uint32_t a, uint32_t b) {
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
	RV_ASSERT(a < b && b < (uint32_t)c->n_members && c->n_pairs < CORE_PAIRS && find(c, a, b) == NULL);
	struct core_pair *p = &c->pairs[c->n_pairs++];
	*p = (struct core_pair){.a = a, .b = b};
	return p;
}

void core_pair_strike(struct core *c, uint32_t i, uint32_t j) {
	RV_ASSERT(i < j && j < c->roster.n);
	uint32_t x = c->roster.members[i], y = c->roster.members[j];
	uint32_t a = x < y ? x : y, b = x < y ? y : x;
	struct core_pair *p = find(c, a, b);
	if (count_open(c, a, b) == 2) /* they are linked: one of them withholds, or is slow */
		return;
	if (p == NULL)
		p = add(c, a, b);
	p->strikes++;
	p->round = c->round;
	if (p->strikes <= STRIKES)
		core_note_lesson(c);
	if (p->strikes == STRIKES)
		core_say_pair(c, b, a);
}

static bool is_apart(const struct core *c, const struct core_pair *p) {
	bool recent = c->round >= p->round && c->round - p->round < APART_ROUNDS;
	return p->strikes >= STRIKES && recent && count_open(c, p->a, p->b) < 2;
}

/* Returns the members of `set` that `member` cannot exchange data with. */
static uint64_t apart_within(const struct core *c, uint32_t member, uint64_t set) {
	uint64_t apart = 0;
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++)
		if (i != member && (set & core_bit(i)) && report_apart(c, member, i))
			apart |= core_bit(i);
	for (int i = 0; i < c->n_pairs; i++) {
		const struct core_pair *p = &c->pairs[i];
		if (is_apart(c, p) && (p->a == member || p->b == member))
			apart |= set & core_bit(p->a == member ? p->b : p->a);
	}
	return apart;
}

uint64_t core_apart_from(const struct core *c, uint32_t member, uint64_t *until_round) {
	uint64_t set = 0;
	*until_round = 0;
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++)
		if (core_available(c, &c->members[i]))
			set |= core_bit(i);
	set = (set & core_bit(member)) ? apart_within(c, member, set) : 0;
	for (int i = 0; i < c->n_pairs; i++) {
		const struct core_pair *p = &c->pairs[i];
		if (p->strikes < STRIKES || (p->a != member && p->b != member))
			continue;
		set |= core_bit(p->a == member ? p->b : p->a);
		if (p->round + APART_ROUNDS > *until_round)
			*until_round = p->round + APART_ROUNDS;
	}
	RV_ASSERT((set & core_bit(member)) == 0);
	return set;
}

void core_pairs_met(struct core *c, const struct core_record *commit) {
	uint64_t set = core_named(commit);
	for (int i = c->n_pairs - 1; i >= 0; i--) {
		uint32_t a = c->pairs[i].a, b = c->pairs[i].b;
		bool exchanged = c->owned[a] > 0 || c->owned[b] > 0;
		if ((set & core_bit(a)) && (set & core_bit(b)) && exchanged)
			forget(c, i);
	}
}

void core_pairs_forget(struct core *c, uint32_t member) {
	for (int i = c->n_pairs - 1; i >= 0; i--)
		if (c->pairs[i].a == member || c->pairs[i].b == member)
			forget(c, i);
}

/* Everybody in the result is linked with one of them at least, who can own all chunks: the member
 * that is linked with the most; of several, the lowest number. */
uint64_t core_without_apart(const struct core *c, uint64_t ready) {
	uint64_t best = 0;
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++) {
		uint64_t set = (ready & core_bit(i)) ? ready & ~apart_within(c, i, ready) : 0;
		best = core_count(set) > core_count(best) ? set : best;
	}
	return core_count(best) >= (int)c->cfg.min_workers ? best : ready;
}

/* Returns those of `roster` that are linked with all others in it, as far as is known. */
static uint64_t linked_with_all(const struct core *c, uint64_t roster) {
	uint64_t set = 0;
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++)
		if ((roster & core_bit(i)) && apart_within(c, i, roster) == 0)
			set |= core_bit(i);
	return set;
}

/* Returns true if `member` exchanges data with one of `set` through a relay, as both report. */
static bool is_relayed(const struct core *c, uint32_t member, uint64_t set) {
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++)
		if ((set & core_bit(i)) && report_path(&c->members[member].last, i) == PATH_RELAYED &&
			report_path(&c->members[i].last, member) == PATH_RELAYED)
			return true;
	return false;
}

void core_put_owners(const struct core *c, uint64_t roster, struct core_record *rec) {
	uint64_t set = linked_with_all(c, roster), direct = set;
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++)
		if ((direct & core_bit(i)) && is_relayed(c, i, roster))
			direct &= ~core_bit(i);
	bool enough = DIRECT_SHARE * core_count(direct) >= core_count(roster);
	rec->owners = enough ? direct : set != 0 ? set : roster;
	rec->relayed = direct != 0 ? rec->owners & ~direct : 0;
}

bool core_blames_its_owners(const struct core *c, const uint64_t accused[NET_MAX_MEMBERS]) {
	const struct core_roster *r = &c->roster;
	uint64_t roster = 0, missed = core_missed(c);
	bool any = false;
	for (uint32_t i = 0; i < r->n; i++)
		roster |= missed & core_bit(i) ? 0 : core_bit(r->members[i]);
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t j = 0; j < r->n; j++)
			any |= (accused[i] & core_bit(j)) && (apart_within(c, r->members[i], roster) & core_bit(r->members[j]));
	return any && linked_with_all(c, roster) != 0;
}

bool core_left_out_apart(const struct core *c, uint32_t member) {
	uint64_t here = core_bit(member) | core_members_that(c, core_available);
	return (core_without_apart(c, here) & core_bit(member)) == 0;
}
