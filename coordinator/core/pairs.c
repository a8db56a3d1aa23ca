/* pairs.c: two workers that do not reach each other, though all others reach both: each is behind a
 * router that forwards nothing. In one roster they cost an attempt every time, so after two such
 * attempts one of them is left out for some rounds, if enough others are ready; then it is tried
 * again. Its training goes on meanwhile.
 *
 * Pairs are volatile: a coordinator that starts again finds them anew, at the price of two
 * attempts. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

enum { STRIKES = 2, APART_ROUNDS = 8 };

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
	return p->strikes >= STRIKES && c->round >= p->round && c->round - p->round < APART_ROUNDS;
}

uint64_t core_apart_from(const struct core *c, uint32_t member, uint64_t *until_round) {
	uint64_t set = 0;
	*until_round = 0;
	for (int i = 0; i < c->n_pairs; i++) {
		const struct core_pair *p = &c->pairs[i];
		if (p->strikes < STRIKES || (p->a != member && p->b != member))
			continue;
		set |= core_bit(p->a == member ? p->b : p->a);
		if (p->round + APART_ROUNDS > *until_round)
			*until_round = p->round + APART_ROUNDS;
	}
	RV_ASSERT((set & core_bit(member)) == 0 && (set != 0) == (*until_round != 0));
	return set;
}

void core_pairs_met(struct core *c, const struct core_record *commit) {
	uint64_t set = 0;
	for (int i = 0; i < commit->n_members; i++)
		set |= core_bit(commit->members[i]);
	for (int i = c->n_pairs - 1; i >= 0; i--)
		if ((set & core_bit(c->pairs[i].a)) && (set & core_bit(c->pairs[i].b)))
			forget(c, i);
}

void core_pairs_forget(struct core *c, uint32_t member) {
	for (int i = c->n_pairs - 1; i >= 0; i--)
		if (c->pairs[i].a == member || c->pairs[i].b == member)
			forget(c, i);
}

/* Counts the attempts that a member of `set` has cost by not reaching others in it. */
static int count_strikes(const struct core *c, uint32_t member, uint64_t set) {
	int n = 0;
	for (int i = 0; i < c->n_pairs; i++) {
		const struct core_pair *p = &c->pairs[i];
		bool both = (set & core_bit(p->a)) && (set & core_bit(p->b));
		n += both && is_apart(c, p) && (p->a == member || p->b == member) ? p->strikes : 0;
	}
	return n;
}

/* Takes out the member that has cost most first; of several, the highest number. A pair that was
 * blamed wrongly, during another fault, costs nothing later; so failed attempts add up against the
 * members that cause them. */
uint64_t core_without_apart(const struct core *c, uint64_t ready) {
	while (core_count(ready) > (int)c->cfg.min_workers) {
		uint32_t worst = 0;
		int most = 0;
		for (uint32_t i = 0; i < (uint32_t)c->n_members; i++) {
			int n = (ready & core_bit(i)) != 0 ? count_strikes(c, i, ready) : 0;
			if (n > 0 && n >= most) {
				most = n;
				worst = i;
			}
		}
		if (most == 0)
			return ready;
		ready &= ~core_bit(worst);
		RV_ASSERT(core_count(ready) >= (int)c->cfg.min_workers);
	}
	return ready;
}

bool core_left_out_apart(const struct core *c, uint32_t member) {
	uint64_t here = core_bit(member);
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++)
		if (core_available(c, &c->members[i]))
			here |= core_bit(i);
	return (core_without_apart(c, here) & core_bit(member)) == 0;
}
