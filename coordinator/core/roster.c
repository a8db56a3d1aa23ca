/* roster.c: OPEN: which members take part in the round, and with what weight. */
#include "base/assert.h"
#include "base/planted.h"
#include "base/weights.h"
#include "coordinator/core/internal.h"
#include "net/control/signed_roots.h"

uint64_t core_line_rate(const struct report *rep) {
	uint64_t up = rep->up_bytes_per_s, down = rep->down_bytes_per_s;
	return up < down ? up : down;
}

static void add_participant(struct core_record *rec, const struct core_member *m) {
	const int i = rec->n_members++;
	rec->members[i] = m->number;
	rec->tokens[i] = m->last.tokens;
	rec->boots[i] = m->last.boot;
	rec->rates[i] = core_line_rate(&m->last);
	rec->lease_first[i] = m->last.lease_first;
	rec->lease_count[i] = m->last.lease_count;
	rec->downs[i] = m->last.down_bytes_per_s;
	if (!RV_BUG("forms-of-a-former-roster"))
		rec->codecs[i] = rec->parts[i] = 0;
}

/* Says what each participant has committed to, in the form in which it is to send it; one that has
 * not committed to a coarser form sends the run's, which is the first. */
static void put_roots(const struct core *c, struct core_record *rec) {
	for (int i = 0; i < rec->n_members; i++) {
		const struct report *said = &c->members[core_find(c, rec->members[i])].last;
		int at = 0;
		while (at < said->commitment.n && said->commitment.roots[at].codec != rec->codecs[i])
			at++;
		if (at == said->commitment.n)
			rec->codecs[i] = 0;
		at = at < said->commitment.n ? at : 0;
		rec->roots[i] = said->commitment.n > 0 ? report_seal(said, at) : (struct seal){.root = {{0}}};
	}
}

static void freeze(struct core *c, const uint64_t *ready) {
	RV_ASSERT(c->roster.n == 0 && c->n_queue == 0 && c->round < c->cfg.final_round);
	struct core_record *rec = core_push(c, CORE_ROSTER);
	rec->attempt = c->attempt + 1;
	rec->n_chunks = core_chunks(c, c->round);
	rec->overran = c->overran;
	core_count_waits(c, ready);
	core_say_resting(c, ready);
	for (int k = 0; k < c->slots.n; k++) {
		const struct core_member *m = &c->members[c->slots.order[k]];
		if (!set_has(ready, c->slots.order[k]))
			continue;
		RV_ASSERT(core_available(c, m) && core_contributes(c, m)); /* each has its contribution of this round */
		RV_ASSERT(m->last.tokens <= core_most_tokens(c));
		add_participant(rec, m);
	}
	core_put_rates(c, rec);
	core_put_forms(c, rec);
	put_roots(c, rec);
	core_say_forms(c, rec);
	core_say_needed(c, rec);
	core_keep_figures(c, rec);
	core_deal(c, rec);
	core_put_owners(c, rec);
	RV_ASSERT(rec->n_members >= c->cfg.min_workers && rec->n_members <= c->cfg.max_roster);
	core_check_roster(c, rec);
}

/* Returns true if a roster of `roster` has an excluded member because the others that are ready are
 * too few. */
static bool needs_excluded(const struct core *c, const uint64_t *roster) {
	for (int k = 0; k < c->slots.n; k++) {
		const uint32_t slot = c->slots.order[k];
		if (set_has(roster, slot) && core_is_excluded(c, &c->members[slot]) && !core_may_be_needed(c, slot))
			return true;
	}
	return false;
}

/* Sets `out` to the members that are not ready, and worth waiting for before `roster` is frozen. */
static void not_ready(const struct core *c, const uint64_t *roster, uint64_t *out) {
	uint64_t ready[CORE_HERE_WORDS];
	(void)core_contributors(c, ready);
	RV_ASSERT(set_is_within(roster, ready, c->words));
	bool needed = needs_excluded(c, roster);
	set_clear(out, c->words);
	for (int k = 0; k < c->slots.n; k++) {
		uint32_t slot = c->slots.order[k];
		const struct core_member *m = &c->members[slot];
		if (!set_has(ready, slot) && (core_waited_for(c, m) || (needed && core_trains_again(c, m))))
			set_add(out, slot);
	}
}

/* Returns true if all members worth waiting for are ready, or the grace time is over. */
static bool waited_long_enough(struct core *c, const uint64_t *roster) {
	uint64_t others[CORE_HERE_WORDS];
	RV_ASSERT(c->ready_since_us <= c->now_us); /* grace has begun */
	not_ready(c, roster, others);
	bool in_grace = c->now_us - c->ready_since_us < c->cfg.grace_us, all = set_is_empty(others, c->words);
	set_join(c->waited_for, others, c->words);
	if (in_grace && all && core_waits_for_arrivals(c))
		return false;
	core_end_arrivals(c);
	return all || !in_grace;
}

uint64_t core_lot(const struct core *c, uint32_t member) {
	uint64_t x = (c->round << 32 | member) * UINT64_C(0x9E3779B97F4A7C15);
	x = (x ^ x >> 32) * UINT64_C(0xD6E8FEB86659FD93);
	return x ^ x >> 32;
}

/* Returns true if `a` goes before `b` where there is no room for both: it has waited for longer
 * since its last roster. */
static bool goes_before(const struct core *c, const struct core_member *a, const struct core_member *b) {
	return a->rostered_at != b->rostered_at ? a->rostered_at < b->rostered_at
											: core_lot(c, a->number) < core_lot(c, b->number);
}

/* Restores the order of a heap of slots below `at`: on top is the one that goes last. */
static void sink(const struct core *c, uint16_t *heap, int n, int at) {
	for (;;) {
		int last = at;
		for (int child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
			if (goes_before(c, &c->members[heap[last]], &c->members[heap[child]]))
				last = child;
		if (last == at)
			return;
		uint16_t slot = heap[at];
		heap[at] = heap[last];
		heap[last] = slot;
		at = last;
	}
}

/* Keeps of `ready` as many as a roster takes: those that have waited for longest. */
static void drop_beyond_roster(const struct core *c, uint64_t *ready) {
	uint16_t heap[NET_MAX_HERE];
	int n = 0;
	if (core_size_of(c, ready) <= (int)c->cfg.max_roster)
		return;
	for (int i = set_next(ready, 0, c->words); i >= 0; i = set_next(ready, i + 1, c->words))
		heap[n++] = (uint16_t)i;
	for (int at = n / 2; at-- > 0;)
		sink(c, heap, n, at);
	while (n > (int)c->cfg.max_roster) { /* the one that goes last is on top */
		set_drop(ready, heap[0]);
		heap[0] = heap[--n];
		sink(c, heap, n, 0);
	}
}

/* Returns true if the round's digest would not fit into the document. */
static bool beyond_log(struct core *c) {
	RV_ASSERT(c->round >= c->snapshot_round);
	if (c->round - c->snapshot_round < NET_MAX_LOG_DIGESTS)
		return false;
	if (c->no_snapshot_said != c->round)
		core_say_all(c, CORE_EVENT_NO_SNAPSHOT, c->round);
	c->no_snapshot_said = c->round;
	return true;
}

/* Returns the number of members with which a round begins at least. */
static int least_members(const struct core *c) {
	return (int)c->cfg.min_workers + (RV_BUG("need-the-banned") ? c->banned.n : 0);
}

void core_decide_roster(struct core *c) {
	uint64_t ready[CORE_HERE_WORDS];
	RV_ASSERT(c->roster.n == 0 && c->n_queue == 0 && c->round < c->cfg.final_round);
	core_watch_lines(c);
	(void)core_contributors(c, ready);
	core_drop_excluded(c, ready);
	core_drop_resting(c, ready);
	core_drop_next(c, ready);
	if (core_size_of(c, ready) < least_members(c)) {
		c->ready_since_us = INT64_MAX;
		set_clear(c->waited_for, c->words);
		core_end_arrivals(c);
		return;
	}
	if (c->ready_since_us == INT64_MAX)
		c->ready_since_us = c->now_us;
	if (!waited_long_enough(c, ready) || c->now_us < core_reopened_until_us(c) || beyond_log(c))
		return;
	core_drop_at_odds(c, ready);
	core_drop_apart(c, ready);
	drop_beyond_roster(c, ready);
	core_drop_apart_from_owners(c, ready);
	freeze(c, ready);
}

/* Limits all weights by the median of the participants that are past probation, or of all where
 * those are too few for a median: a flood of newcomers does not take the others' weight away. */
static void cap_weights(struct core *c) {
	struct core_roster *r = &c->roster;
	uint32_t veterans[NET_MAX_ROSTER];
	int n = 0;
	for (int i = 0; i < r->n; i++)
		if (!core_on_probation(c, core_participant(c, (uint32_t)i)))
			veterans[n++] = r->weights[i];
	if (n >= RV_WEIGHT_CAP_MIN)
		rv_weights_cap(r->weights, r->n, veterans, n);
	else
		rv_weights_cap(r->weights, r->n, r->weights, r->n);
}

void core_weigh(struct core *c) {
	struct core_roster *r = &c->roster;
	rv_weights(r->tokens, r->n, c->cfg.weight_by_tokens, r->weights);
	uint64_t sum = 0;
	for (int i = 0; i < r->n; i++)
		r->weights[i] = core_probation_weight(c, core_participant(c, (uint32_t)i), r->weights[i]);
	if (c->cfg.probation > 0)
		cap_weights(c);
	for (int i = 0; i < r->n; i++) {
		RV_ASSERT(r->weights[i] > 0);
		sum += r->weights[i];
	}
	RV_ASSERT(sum <= NET_MAX_WEIGHT_SUM && (c->cfg.weight_by_tokens || c->cfg.probation > 0 || sum == r->n));
}
