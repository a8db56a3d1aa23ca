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

/* Returns the members of `electors` that report the same full hash as `m`. */
static uint64_t agreeing(const struct core *c, const struct core_member *m, uint64_t electors) {
	uint64_t set = 0;
	RV_ASSERT(vouches(c, m));
	for (int j = 0; j < c->n_members; j++) {
		const struct core_member *o = &c->members[j];
		if ((electors & core_bit((uint32_t)j)) && vouches(c, o) && o->last.full_round == m->last.full_round &&
			rv_hash_equal(&o->last.full_hash, &m->last.full_hash))
			set |= core_bit((uint32_t)j);
	}
	return set;
}

/* Logs the members whose full hash of the snapshot round is another. */
static void name_diverged(struct core *c) {
	for (int i = 0; i < c->n_members; i++)
		if (core_diverged(c, &c->members[i]))
			core_say(c, CORE_EVENT_DIVERGED, (uint32_t)i, c->snapshot_round);
}

/* Returns all of the last participants; at the limit of the log, where the run would stand still,
 * the present ones. */
static uint64_t electors_now(const struct core *c) {
	uint64_t electors = c->last_commit;
	if (core_stands_still(c))
		return core_electors_standing_still(c);
	if (c->round - c->snapshot_round < NET_MAX_LOG_DIGESTS)
		return electors;
	return electors & core_members_that(c, core_available);
}

/* Logs that all electors vouch for the same round, and no majority of them for the same bits:
 * waiting will not help. */
static void name_split(struct core *c, uint64_t electors) {
	uint64_t round = 0;
	for (int i = 0; i < c->n_members; i++) {
		const struct core_member *m = &c->members[i];
		if (!(electors & core_bit((uint32_t)i)))
			continue;
		if (!vouches(c, m) || (round != 0 && m->last.full_round != round))
			return;
		round = m->last.full_round;
	}
	if (round != 0 && c->split_said != round)
		core_say(c, CORE_EVENT_SPLIT, NET_MAX_MEMBERS, round);
	c->split_said = round != 0 ? round : c->split_said;
}

void core_decide_snapshot(struct core *c) {
	name_diverged(c);
	uint64_t electors = electors_now(c);
	RV_ASSERT(c->n_queue == 0 && (electors & ~core_first(c->n_members)) == 0);
	const struct core_member *best = NULL;
	for (int i = 0; i < c->n_members; i++) {
		const struct core_member *m = &c->members[i];
		if (!(electors & core_bit((uint32_t)i)) || !vouches(c, m))
			continue;
		if (core_count(agreeing(c, m, electors)) * 2 > core_count(electors) &&
			(best == NULL || m->last.full_round > best->last.full_round))
			best = m;
	}
	if (best == NULL) {
		name_split(c, electors);
		return;
	}
	RV_ASSERT(best->last.full_round > c->snapshot_round && best->last.full_round <= c->round);
	RV_ASSERT(core_count(agreeing(c, best, electors)) * 2 > core_count(electors));
	struct core_record *rec = core_push(c, CORE_SNAPSHOT);
	rec->round = best->last.full_round;
	rec->digest = best->last.full_hash;
	rec->chain = core_chain_at(c, rec->round);
}
