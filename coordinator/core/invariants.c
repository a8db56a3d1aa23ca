/* invariants.c: what must hold of the core's state after every record and every step, whatever
 * members report. A violation is a bug of ours: the coordinator stops, and starts again from its
 * records. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

static bool is_subset(uint64_t set, uint64_t of) {
	return (set & ~of) == 0;
}

/* Rounds, snapshots and terms are in order, and the digests between them fit into a document. */
static void check_round(const struct core *c) {
	RV_ASSERT(c->round <= c->cfg.final_round);
	RV_ASSERT(c->snapshot_round <= c->round && c->round - c->snapshot_round <= NET_MAX_LOG_DIGESTS);
	RV_ASSERT(c->term <= NET_MAX_TERM && c->term_round <= c->round && (c->term > 0 || c->term_round == 0));
	RV_ASSERT(c->past.first <= c->round && c->round - c->past.first <= CORE_PAST_ROUNDS);
	RV_ASSERT(c->past.n_snapshots >= 0 && c->past.n_snapshots <= CORE_PAST_SNAPSHOTS);
}

/* Sets name members only. */
static void check_sets(const struct core *c) {
	const uint64_t all = core_first(c->n_members);
	RV_ASSERT(c->n_members >= 0 && c->n_members <= NET_MAX_MEMBERS);
	RV_ASSERT(is_subset(c->rostered, all) && is_subset(c->left_out, c->rostered));
	RV_ASSERT(is_subset(c->spoilers, all) && is_subset(c->blamed, all));
	RV_ASSERT(is_subset(c->last_commit, all) && is_subset(c->seen_holding, all) && is_subset(c->waited_for, all));
}

/* The roster is that of the attempt under way: its participants ascend, and votes are theirs. */
static void check_roster(const struct core *c) {
	const struct core_roster *r = &c->roster;
	RV_ASSERT(r->n <= c->n_members);
	if (r->n == 0)
		return;
	RV_ASSERT(c->attempt > 0 && c->round < c->cfg.final_round && r->n_chunks == core_chunks(c, c->round));
	for (int i = 0; i < r->n; i++) {
		RV_ASSERT(r->members[i] < (uint32_t)c->n_members && (i == 0 || r->members[i] > r->members[i - 1]));
		RV_ASSERT(c->rostered & core_bit(r->members[i]));
	}
	RV_ASSERT(is_subset(r->voted, core_first(r->n)) && is_subset(r->taking_part, core_first(r->n)));
	RV_ASSERT(is_subset(r->voted, r->taking_part));
}

/* Decisions that wait to be durable have consecutive numbers, and the last ones. */
static void check_queue(const struct core *c) {
	RV_ASSERT(c->n_queue >= 0 && c->n_queue <= CORE_QUEUE);
	for (int i = 0; i < c->n_queue; i++)
		RV_ASSERT(c->queue[i].id + (uint64_t)(c->n_queue - i) == c->next_id);
	RV_ASSERT(c->n_pairs >= 0 && c->n_pairs <= CORE_PAIRS && c->n_events >= 0 && c->n_events <= CORE_EVENTS);
}

void core_check(const struct core *c) {
	check_sets(c);
	check_round(c);
	check_roster(c);
	check_queue(c);
}

void core_check_ranges(const struct core_roster *r) {
	uint32_t next = 0;
	for (int i = 0; i < r->n_ranges; i++) {
		RV_ASSERT(r->ranges[i].first == next && r->ranges[i].count > 0 && r->ranges[i].owner < r->n);
		next += r->ranges[i].count;
	}
	RV_ASSERT(next == r->n_chunks);
}
