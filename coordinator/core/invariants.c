/* invariants.c: what must hold of the core's state after every record and every step, whatever
 * members report. A violation is a bug of ours: the coordinator stops, and starts again from its
 * records. */
#include "base/assert.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

/* Rounds, snapshots and terms are in order, and the digests between them fit into a document. */
static void check_round(const struct core *c) {
	RV_ASSERT(c->round <= c->cfg.final_round);
	RV_ASSERT(c->snapshot_round <= c->round && c->round - c->snapshot_round <= NET_MAX_LOG_DIGESTS);
	RV_ASSERT(c->term <= NET_MAX_TERM && c->term_round <= c->round && (c->term > 0 || c->term_round == 0));
	RV_ASSERT(c->past.first <= c->round && c->round - c->past.first <= CORE_PAST_ROUNDS);
	const int n = c->past.n_snapshots;
	RV_ASSERT(n >= 0 && n <= CORE_PAST_SNAPSHOTS);
	RV_ASSERT(c->snapshot_round == (n > 0 ? c->past.snapshots[n - 1].round : 0));
	RV_ASSERT(c->snapshot_round > 0 || rv_hash_is_zero(&c->snapshot_hash));
}

/* Terms, rounds, attempts and numbers go on from what was seen last; a rollback begins a term. */
static void check_progress(struct core *c) {
	const struct core_progress *was = &c->checked;
	RV_ASSERT(c->term >= was->term && (c->term > was->term || c->round >= was->round));
	RV_ASSERT(c->term > was->term || c->round > was->round || c->attempt >= was->attempt);
	RV_ASSERT(c->doc.seq >= was->seq && c->seq_durable >= was->seq_durable && c->next_id >= was->next_id);
	RV_ASSERT(c->doc.seq <= c->seq_durable); /* no document is announced before its number is durable */
	c->checked = (struct core_progress){.term = c->term,
										.round = c->round,
										.seq = c->doc.seq,
										.seq_durable = c->seq_durable,
										.next_id = c->next_id,
										.attempt = c->attempt};
}

/* The open round waits, the one that is reduced does not, and nothing has begun in the future. */
static void check_times(const struct core *c) {
	const bool open = c->roster.n == 0;
	RV_ASSERT(c->ready_since_us == INT64_MAX || (open && c->ready_since_us <= c->now_us));
	RV_ASSERT(c->accused_since_us == INT64_MAX || (!open && c->accused_since_us <= c->now_us));
	RV_ASSERT(c->majority_us == INT64_MAX || (!open && c->majority_us <= c->now_us));
	RV_ASSERT(c->arrivals.since_us == INT64_MAX || (open && c->arrivals.since_us <= c->now_us));
	RV_ASSERT(c->attempt_since_us <= c->now_us && c->reduce_since_us <= c->now_us && c->exchange_us >= 0);
	RV_ASSERT(c->reopened <= c->attempt && c->in_vain <= c->reopened && c->parted < (int)c->cfg.max_here);
}

static void check_members(const struct core *c) {
	const struct core_slots *s = &c->slots;
	const int64_t heard_at_most = c->taken_us > c->now_us ? c->taken_us : c->now_us;
	RV_ASSERT(s->n >= 0 && s->n <= (int)c->cfg.max_here && core_size_of(c, s->used) == s->n);
	for (int k = 0; k < s->n; k++) {
		const struct core_member *m = &c->members[s->order[k]];
		RV_ASSERT(m->number == s->numbers[k] && m->number < s->next_number &&
				  (k == 0 || m->number > s->numbers[k - 1]));
		RV_ASSERT(m->told_us <= m->heard_us && m->heard_us <= heard_at_most);
		RV_ASSERT(!m->reported || m->last.tokens <= core_most_tokens(c));
		RV_ASSERT(m->put_away_round <= c->round);
	}
	for (int i = 0; i < c->n_pairs; i++) {
		const struct core_pair *p = &c->pairs[i];
		RV_ASSERT(core_number(c, p->a) < core_number(c, p->b) && (p->strikes > 0 || p->met));
	}
}

/* Sets name members in memory only. */
static void check_sets(const struct core *c) {
	const uint64_t *const sets[] = {c->rostered,    c->spoilers,     c->blamed,
									c->last_commit, c->seen_holding, c->waited_for};
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
		RV_ASSERT(set_is_within(sets[i], c->slots.used, c->words));
	RV_ASSERT(set_is_within(c->left_out, c->rostered, c->words));
}

/* The roster is that of the attempt under way: each participant has one place, and votes are
 * theirs. */
static void check_roster(const struct core *c) {
	const struct core_roster *r = &c->roster;
	uint64_t all[CORE_ROSTER_WORDS];
	RV_ASSERT(r->n <= c->slots.n && (c->attempt > 0 || r->n == 0));
	if (r->n == 0)
		return;
	RV_ASSERT(c->attempt > 0 && c->round < c->cfg.final_round && r->n_chunks == core_chunks(c, c->round));
	for (int i = 0; i < r->n; i++) {
		RV_ASSERT(c->members[r->slots[i]].number == r->members[i] && core_place(c, r->slots[i]) == i);
		RV_ASSERT(set_has(c->rostered, r->slots[i]));
	}
	set_first(all, r->n, c->roster_words);
	RV_ASSERT(set_is_within(r->taking_part, all, c->roster_words));
	RV_ASSERT(set_is_within(r->voted, r->taking_part, c->roster_words));
}

/* Records that wait to be durable have consecutive numbers, and the last ones. One of them at most
 * decides, and what it decides about has not changed since. */
static void check_queue(const struct core *c) {
	int decisions = 0;
	RV_ASSERT(c->n_queue >= 0 && c->n_queue <= CORE_QUEUE);
	for (int i = 0; i < c->n_queue; i++) {
		const struct core_queued *q = &c->queue[i];
		const struct core_record *rec = &c->decision;
		bool ahead = c->ahead && i == 0;
		RV_ASSERT(q->id + (uint64_t)(c->n_queue - i) == c->next_id);
		decisions += q->type != CORE_MEMBER && q->type != CORE_AWAY && q->type != CORE_SEQ;
		if (!ahead && q->type == CORE_ROSTER)
			RV_ASSERT(rec->round == c->round && rec->attempt == c->attempt + 1);
		if (!ahead && q->type == CORE_COMMIT)
			RV_ASSERT(rec->round == c->round && rec->attempt == c->attempt && rec->n_members == c->roster.n);
	}
	RV_ASSERT(decisions <= 1);
	RV_ASSERT(c->n_odds >= 0 && c->n_odds <= CORE_ODDS);
	RV_ASSERT(c->n_pairs >= 0 && c->n_pairs <= CORE_PAIRS && c->n_events >= 0 && c->n_events <= CORE_EVENTS);
}

void core_check(struct core *c) {
	check_sets(c);
	check_round(c);
	check_progress(c);
	check_times(c);
	check_members(c);
	check_roster(c);
	check_queue(c);
	core_leases_check(c);
}

/* A row has at least half of those that it was laid out with, or nobody. */
static void check_rows(const struct core_roster *r) {
	RV_ASSERT(r->rows.plan.first[r->rows.plan.n_rows] == r->n);
	for (int row = 0; row < r->rows.plan.n_rows; row++) {
		const int left = core_rows_length(&r->rows, row);
		RV_ASSERT(left <= r->rows.laid[row]);
		RV_ASSERT(left == 0 || 2 * left >= r->rows.laid[row] || RV_BUG("keep-failed-rows"));
	}
}

void core_check_ranges(const struct core_roster *r) {
	uint32_t next = 0;
	if (core_rows_many(&r->rows)) {
		check_rows(r);
		return;
	}
	for (int i = 0; i < r->n_ranges; i++) {
		RV_ASSERT(r->ranges[i].first == next && r->ranges[i].count > 0 && r->ranges[i].owner < r->n);
		next += r->ranges[i].count;
	}
	RV_ASSERT(next == r->n_chunks);
}
