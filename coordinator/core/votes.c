/* votes.c: REDUCE: votes are counted until the round is committed, or goes on without some
 * participants.
 *
 * Why equal votes of the survivors suffice: the digest covers the reduced bytes, and these are the
 * mean over the whole roster, each chunk encoded once by its owner. A participant that dies after
 * delivering its part changes nothing in them. */
#include "base/assert.h"
#include "base/chain.h"
#include "coordinator/core/internal.h"

/* Returns true if participant `i` still has the outer gradient that the roster was frozen with, or
 * a vote for this attempt. */
static bool keeps_contribution(const struct core *c, uint32_t i) {
	RV_ASSERT(i < c->roster.n);
	const struct core_member *m = &c->members[c->roster.members[i]];
	if (!m->reported || m->last.phase == WORKER_LEAVING)
		return true; /* no report since the restart, or leaving: not a question of its contribution */
	bool voted_this = m->last.phase == WORKER_VOTED && m->last.attempt == c->attempt;
	return core_contributes(c, m) && (m->last.boot == c->roster.boots[i] || voted_this);
}

static uint64_t lost(const struct core *c) {
	uint64_t set = 0;
	for (uint32_t i = 0; i < c->roster.n; i++)
		if (!keeps_contribution(c, i))
			set |= core_bit(i);
	return set;
}

uint64_t core_missed(const struct core *c) {
	return lost(c) | (core_first(c->roster.n) & ~core_participants_that(c, core_available));
}

void core_take_vote(struct core *c, uint32_t i) {
	RV_ASSERT(i < c->roster.n && c->members[c->roster.members[i]].reported);
	const struct report *rep = &c->members[c->roster.members[i]].last;
	if (rep->term != c->term || rep->round != c->round || rep->attempt != c->attempt)
		return;
	if (rep->phase == WORKER_REDUCING || rep->phase == WORKER_VOTED)
		c->roster.taking_part |= core_bit(i);
	if (rep->phase != WORKER_VOTED)
		return;
	c->roster.voted |= core_bit(i);
	c->roster.digests[i] = rep->digest;
}

/* Returns the participants whose votes count. */
static uint64_t voters(const struct core *c) {
	return c->roster.voted & ~core_participants_that(c, core_is_banned);
}

/* Returns the largest set of voters of one digest; of several, the one with the lowest index. */
static uint64_t majority(const struct core *c, uint64_t votes) {
	uint64_t best = 0;
	for (uint32_t i = 0; i < c->roster.n; i++) {
		if (!(votes & core_bit(i)) || (best & core_bit(i)))
			continue;
		uint64_t same = 0;
		for (uint32_t j = i; j < c->roster.n; j++)
			if ((votes & core_bit(j)) && rv_hash_equal(&c->roster.digests[i], &c->roster.digests[j]))
				same |= core_bit(j);
		if (core_count(same) > core_count(best))
			best = same;
	}
	RV_ASSERT((best & ~votes) == 0 && (best != 0) == (votes != 0));
	return best;
}

/* Returns the fewest members that have a committed round on disk. */
static int quorum(const struct core *c) {
	int half = (c->roster.n + 1) / 2;
	RV_ASSERT(half > 0 && c->cfg.min_workers > 0);
	return (int)c->cfg.min_workers < half ? (int)c->cfg.min_workers : half;
}

static void push_participants(struct core_record *rec, const struct core_roster *r, uint64_t keep) {
	for (uint32_t i = 0; i < r->n; i++) {
		if (!(keep & core_bit(i)))
			continue;
		rec->members[rec->n_members] = r->members[i];
		rec->tokens[rec->n_members] = r->tokens[i];
		rec->boots[rec->n_members] = r->boots[i];
		rec->rates[rec->n_members] = r->rates[i];
		rec->n_members++;
	}
	RV_ASSERT(rec->n_members == core_count(keep));
}

/* Sets the members that this attempt is blamed on, but for those in `except` (roster indices). */
static void put_blame(struct core *c, struct core_record *rec, uint64_t except) {
	rec->blamed = c->blamed;
	for (uint32_t i = 0; i < c->roster.n; i++)
		if (except & core_bit(i))
			rec->blamed &= ~core_bit(c->roster.members[i]);
	RV_ASSERT((rec->blamed & ~c->rostered) == 0); /* blame is for participants of this round */
	c->blamed = 0;
	core_say_blamed(c, rec->blamed);
}

static void commit(struct core *c, const struct rv_hash *digest) {
	RV_ASSERT(c->roster.n > 0 && c->n_queue == 0 && c->round < c->cfg.final_round);
	RV_ASSERT(core_count(voters(c)) >= quorum(c)); /* so many have the result on their disks */
	for (uint32_t i = 0; i < c->roster.n; i++)
		RV_ASSERT(!(voters(c) & core_bit(i)) || rv_hash_equal(&c->roster.digests[i], digest));
	struct core_record *rec = core_push(c, CORE_COMMIT);
	rec->attempt = c->attempt;
	rec->digest = *digest;
	rec->chain = rv_chain_next(&c->chain, digest);
	push_participants(rec, &c->roster, core_first(c->roster.n));
	put_blame(c, rec, voters(c));
}

/* Logs contributions lost because the process is another one; members that hold other weights are
 * logged elsewhere. */
static void say_lost(struct core *c) {
	uint64_t set = lost(c);
	for (uint32_t i = 0; i < c->roster.n; i++)
		if ((set & core_bit(i)) && !core_diverged(c, &c->members[c->roster.members[i]]))
			core_say(c, CORE_EVENT_LOST, c->roster.members[i], c->round);
}

static void say_all(struct core *c, enum core_event_type type, uint64_t set) {
	for (uint32_t i = 0; i < c->roster.n; i++)
		if (set & core_bit(i))
			core_say(c, type, c->roster.members[i], c->round);
}

/* Returns the members at these indices of the roster. */
static uint64_t members_at(const struct core_roster *r, uint64_t indices) {
	uint64_t set = 0;
	for (uint32_t i = 0; i < r->n; i++)
		if (indices & core_bit(i))
			set |= core_bit(r->members[i]);
	return set;
}

/* Starts attempt a+1 over `keep`, or opens the round again; or does nothing, if waiting may
 * help. */
static void go_on_with(struct core *c, uint64_t keep, bool waiting_may_help) {
	RV_ASSERT((keep & ~core_first(c->roster.n)) == 0 && c->n_queue == 0);
	bool enough = core_count(keep) >= (int)c->cfg.min_workers;
	bool others = core_count(core_contributors(c)) >= (int)c->cfg.min_workers;
	if (!enough && waiting_may_help && !others)
		return;
	struct core_record *rec = core_push(c, CORE_ROSTER);
	rec->attempt = c->attempt + 1;
	rec->n_chunks = core_chunks(c, c->round);
	if (enough) {
		push_participants(rec, &c->roster, keep);
		core_put_owners(c, members_at(&c->roster, keep), rec);
	}
	RV_ASSERT(rec->n_members == 0 || rec->n_members >= c->cfg.min_workers);
	put_blame(c, rec, keep);
}

/* Returns the participants that an earlier roster of this round was without, until they are known
 * to take part again. Such a member treats its contribution as uncounted and keeps it for the next
 * round, but peers may still hold it from before that, and have averaged it. */
static uint64_t unaware(const struct core *c) {
	uint64_t set = 0;
	for (uint32_t i = 0; i < c->roster.n; i++)
		if (c->left_out & core_bit(c->roster.members[i]))
			set |= core_bit(i);
	return set & ~c->roster.taking_part;
}

static void all_present_voted(struct core *c, uint64_t missed, bool overdue) {
	uint64_t votes = voters(c), best = majority(c, votes);
	RV_ASSERT((core_first(c->roster.n) & ~missed & ~votes) == 0); /* each present participant has voted */
	if (best == votes && core_count(votes) >= quorum(c) && unaware(c) == 0) {
		commit(c, &c->roster.digests[__builtin_ctzll(votes)]);
		return;
	}
	if (core_splits(c, core_count(best), core_count(votes))) {
		go_on_with(c, 0, false);
		return;
	}
	say_all(c, CORE_EVENT_DISAGREED, votes & ~best);
	go_on_with(c, best & ~missed, best == votes && lost(c) == 0 && !overdue);
}

/* Returns the participants whose process is not the one on the roster: data that the former had not
 * delivered will never come. A vote of the new one (the former one's result, from the disk) does
 * not help the others to theirs. */
static uint64_t successors(const struct core *c) {
	uint64_t set = 0;
	for (uint32_t i = 0; i < c->roster.n; i++) {
		const struct core_member *m = &c->members[c->roster.members[i]];
		if (m->reported && m->last.boot != c->roster.boots[i])
			set |= core_bit(i);
	}
	return set;
}

void core_decide_reduce(struct core *c) {
	RV_ASSERT(c->roster.n > 0 && c->attempt > 0 && c->n_queue == 0);
	RV_ASSERT(c->roster.n_chunks == core_chunks(c, c->round)); /* core_apply() refuses any other */
	bool overdue = core_end_overdue(c);
	uint64_t missed = core_missed(c);
	uint64_t present = core_first(c->roster.n) & ~missed;
	say_lost(c);
	if (c->owners_apart)
		go_on_with(c, present, false);
	else if ((present & ~voters(c)) == 0)
		all_present_voted(c, missed, overdue);
	else if (missed != 0)
		go_on_with(c, present, !overdue && lost(c) == 0 && (missed & successors(c)) == 0);
}
