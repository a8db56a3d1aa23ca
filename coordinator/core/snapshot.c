/* snapshot.c: the full state from which a joiner starts: the latest round whose full hash a
 * majority of the last commit's participants vouch for. A fresh worker, which took part in no
 * round, can never become the truth. */
#include "base/assert.h"
#include "base/chain.h"
#include "coordinator/core/internal.h"

struct rv_hash core_chain_at(const struct core *c, uint64_t round) {
	RV_ASSERT(round >= c->snapshot_round && round <= c->round);
	struct rv_hash chain = c->snapshot_chain;
	for (uint64_t i = 0; i < round - c->snapshot_round; i++)
		chain = rv_chain_next(&chain, &c->log[i]);
	return chain;
}

/* Returns true if its full hash counts, for a round that is still ahead of the snapshot. */
static bool vouches(const struct core *c, const struct core_member *m) {
	return m->reported && !m->banned && m->last.term == c->term && m->last.full_round > c->snapshot_round &&
		   m->last.full_round <= c->round && !rv_hash_is_zero(&m->last.full_hash);
}

static bool vouch_alike(const struct core_member *a, const struct core_member *b) {
	return a->last.full_round == b->last.full_round && rv_hash_equal(&a->last.full_hash, &b->last.full_hash);
}

/* Adds to `seen` the electors that report the same full hash as `m`; returns their number. */
static int count_agreeing(const struct core *c, const struct core_member *m, const uint64_t *electors, uint64_t *seen) {
	int n = 0;
	RV_ASSERT(vouches(c, m));
	for (int k = 0; k < c->slots.n; k++) {
		uint32_t slot = c->slots.order[k];
		if (!set_has(electors, slot) || !vouches(c, &c->members[slot]) || !vouch_alike(m, &c->members[slot]))
			continue;
		set_add(seen, slot);
		n++;
	}
	return n;
}

/* Logs the members whose full hash of the snapshot round is another. */
static void name_diverged(struct core *c) {
	for (int k = 0; k < c->slots.n; k++)
		if (core_diverged(c, &c->members[c->slots.order[k]]))
			core_say(c, CORE_EVENT_DIVERGED, c->slots.order[k], c->snapshot_round);
}

/* Sets `out` to all of the last participants; at the limit of the log, where the run would stand
 * still, to the present ones. */
static void electors_now(const struct core *c, uint64_t *out) {
	uint64_t available[CORE_HERE_WORDS];
	if (core_stands_still(c)) {
		core_electors_standing_still(c, out);
		return;
	}
	set_copy(out, c->last_commit, c->words);
	if (c->round - c->snapshot_round < NET_MAX_LOG_DIGESTS)
		return;
	(void)core_members_that(c, core_available, available);
	set_meet(out, available, c->words);
}

/* Logs that all electors vouch for the same round, and no majority of them for the same bits:
 * waiting will not help. */
static void name_split(struct core *c, const uint64_t *electors) {
	uint64_t round = 0;
	for (int i = set_next(electors, 0, c->words); i >= 0; i = set_next(electors, i + 1, c->words)) {
		const struct core_member *m = &c->members[i];
		if (!vouches(c, m) || (round != 0 && m->last.full_round != round))
			return;
		round = m->last.full_round;
	}
	if (round != 0 && c->split_said != round)
		core_say_all(c, CORE_EVENT_SPLIT, round);
	c->split_said = round != 0 ? round : c->split_said;
}

static int count_vouching(const struct core *c, const uint64_t *electors) {
	int n = 0;
	for (int i = set_next(electors, 0, c->words); i >= 0; i = set_next(electors, i + 1, c->words))
		n += vouches(c, &c->members[i]);
	return n;
}

/* Returns an elector whose full hash a majority reports, of the latest such round; NULL: there is
 * none. Electors that have been counted with an earlier one are not counted again; and once half of
 * them are, no majority is left. */
static const struct core_member *find_vouched(const struct core *c, const uint64_t *electors) {
	const struct core_member *best = NULL;
	uint64_t seen[CORE_HERE_WORDS];
	int n_electors = core_size_of(c, electors), left = count_vouching(c, electors);
	set_clear(seen, c->words);
	for (int k = 0; k < c->slots.n && 2 * left > n_electors; k++) {
		uint32_t slot = c->slots.order[k];
		const struct core_member *m = &c->members[slot];
		if (!set_has(electors, slot) || set_has(seen, slot) || !vouches(c, m))
			continue;
		int agreeing = count_agreeing(c, m, electors, seen);
		left -= agreeing;
		if (2 * agreeing > n_electors && (best == NULL || m->last.full_round > best->last.full_round))
			best = m;
	}
	return best;
}

void core_decide_snapshot(struct core *c) {
	uint64_t electors[CORE_HERE_WORDS];
	name_diverged(c);
	electors_now(c, electors);
	RV_ASSERT(c->n_queue == 0 && set_is_within(electors, c->slots.used, c->words));
	const struct core_member *best = find_vouched(c, electors);
	if (best == NULL) {
		name_split(c, electors);
		return;
	}
	RV_ASSERT(best->last.full_round > c->snapshot_round && best->last.full_round <= c->round);
	struct core_record *rec = core_push(c, CORE_SNAPSHOT);
	rec->round = best->last.full_round;
	rec->digest = best->last.full_hash;
	rec->chain = core_chain_at(c, rec->round);
}
