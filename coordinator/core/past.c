/* past.c: the last committed rounds and vouched snapshots, from the records: all that a rollback
 * needs. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

#include <string.h>

static struct core_past_round *at(struct core *c, uint64_t round) {
	RV_ASSERT(round >= c->past.first && round <= c->round);
	return &c->past.rounds[round % CORE_PAST_ROUNDS];
}

/* Returns the set of the round's participants. */
static uint64_t *participants_at(const struct core *c, uint64_t round) {
	return &c->past.participants[round % CORE_PAST_ROUNDS * (uint64_t)c->words];
}

void core_past_commit(struct core *c, const struct core_record *rec, const uint64_t *participants) {
	RV_ASSERT(rec->round == c->round && c->past.first <= c->round);
	*at(c, c->round) = (struct core_past_round){.chain = c->chain, .digest = rec->digest};
	set_copy(participants_at(c, c->round), participants, c->words);
	RV_ASSERT(core_size_of(c, participants) == rec->n_members);
	if (c->round + 1 - c->past.first > CORE_PAST_ROUNDS)
		c->past.first = c->round + 1 - CORE_PAST_ROUNDS;
}

void core_past_forget(struct core *c, uint32_t slot) {
	for (uint64_t round = c->past.first; round < c->round; round++)
		set_drop(participants_at(c, round), slot);
}

/* Drops snapshots from before the known rounds: no log leads on from them. */
static void drop_useless_snapshots(struct core_past *p) {
	int n = 0;
	while (n < p->n_snapshots && p->snapshots[n].round < p->first)
		n++;
	RV_ASSERT(n <= p->n_snapshots);
	p->n_snapshots -= n;
	memmove(&p->snapshots[0], &p->snapshots[n], (size_t)p->n_snapshots * sizeof p->snapshots[0]);
}

void core_past_snapshot(struct core *c, uint64_t round, const struct rv_hash *hash) {
	struct core_past *p = &c->past;
	if (p->n_snapshots == CORE_PAST_SNAPSHOTS)
		drop_useless_snapshots(p);
	RV_ASSERT(p->n_snapshots <
			  CORE_PAST_SNAPSHOTS); /* they ascend: one per known round, and one of the current round */
	RV_ASSERT(p->n_snapshots == 0 || p->snapshots[p->n_snapshots - 1].round < round);
	p->snapshots[p->n_snapshots++] = (struct core_past_snapshot){.round = round, .hash = *hash};
}

bool core_past_chain(const struct core *c, uint64_t round, struct rv_hash *chain) {
	if (round < c->past.first || round > c->round)
		return false;
	*chain = round == c->round ? c->chain : c->past.rounds[round % CORE_PAST_ROUNDS].chain;
	return true;
}

const struct rv_hash *core_past_digest(const struct core *c, uint64_t round) {
	RV_ASSERT(round >= c->past.first && round < c->round);
	return &c->past.rounds[round % CORE_PAST_ROUNDS].digest;
}

/* Counts the snapshots that are not after `round`. */
static int snapshots_until(const struct core *c, uint64_t round) {
	int n = c->past.n_snapshots;
	while (n > 0 && c->past.snapshots[n - 1].round > round)
		n--;
	return n;
}

/* The run began at round 0, with a snapshot that needs no vouching. */
static struct core_past_snapshot latest_snapshot(const struct core *c, int n) {
	return n > 0 ? c->past.snapshots[n - 1] : (struct core_past_snapshot){0};
}

uint64_t core_past_earliest(const struct core *c) {
	if (c->past.first == 0)
		return 0;
	for (int i = 0; i < c->past.n_snapshots; i++)
		if (c->past.snapshots[i].round >= c->past.first)
			return c->past.snapshots[i].round;
	return c->round;
}

bool core_past_can_return(const struct core *c, uint64_t round) {
	uint64_t snapshot = latest_snapshot(c, snapshots_until(c, round)).round;
	return round <= c->round && snapshot >= c->past.first && round - snapshot <= NET_MAX_LOG_DIGESTS;
}

bool core_past_return(struct core *c, uint64_t round) {
	if (!core_past_can_return(c, round))
		return false;
	struct rv_hash chain;
	int n = snapshots_until(c, round);
	struct core_past_snapshot snapshot = latest_snapshot(c, n);
	(void)core_past_chain(c, round, &chain);
	(void)core_past_chain(c, snapshot.round, &c->snapshot_chain);
	c->snapshot_round = snapshot.round;
	c->snapshot_hash = snapshot.hash;
	for (uint64_t r = snapshot.round; r < round; r++)
		c->log[r - snapshot.round] = at(c, r)->digest;
	set_clear(c->last_commit, c->words);
	if (round > c->past.first)
		set_copy(c->last_commit, participants_at(c, round - 1), c->words);
	RV_ASSERT(round <= c->round && snapshot.round <= round);
	c->past.n_snapshots = n;
	c->round = round;
	c->chain = chain;
	const struct rv_hash end = core_chain_at(c, round);
	RV_ASSERT(rv_hash_equal(&end, &c->chain));
	return true;
}
