/* roster.c: OPEN: which members take part in the round, and with what weight. */
#include "base/assert.h"
#include "base/weights.h"
#include "coordinator/core/internal.h"

uint64_t core_line_rate(const struct report *rep) {
	uint64_t up = rep->up_bytes_per_s, down = rep->down_bytes_per_s;
	return up < down ? up : down;
}

static void freeze(struct core *c, uint64_t ready) {
	RV_ASSERT(ready != 0 && (ready & ~core_contributors(c)) == 0); /* each has its contribution of this round */
	RV_ASSERT(c->roster.n == 0 && c->n_queue == 0 && c->round < c->cfg.final_round);
	struct core_record *rec = core_push(c, CORE_ROSTER);
	rec->attempt = c->attempt + 1;
	rec->n_chunks = core_chunks(c, c->round);
	core_put_owners(c, ready, rec);
	core_count_waits(c, ready);
	for (int i = 0; i < c->n_members; i++) {
		if (!(ready & core_bit((uint32_t)i)))
			continue;
		RV_ASSERT(core_available(c, &c->members[i]) && !c->members[i].banned);
		RV_ASSERT(c->members[i].last.tokens <= core_most_tokens(c));
		rec->members[rec->n_members] = (uint32_t)i;
		rec->tokens[rec->n_members] = c->members[i].last.tokens;
		rec->boots[rec->n_members] = c->members[i].last.boot;
		rec->rates[rec->n_members] = core_line_rate(&c->members[i].last);
		rec->n_members++;
	}
	RV_ASSERT(rec->n_members == core_count(ready) && rec->n_members >= c->cfg.min_workers);
}

/* Returns true if a roster of `roster` has an excluded member because the others that are ready are
 * too few. */
static bool needs_excluded(const struct core *c, uint64_t roster) {
	for (int i = 0; i < c->n_members && c->reopened == 0; i++)
		if ((roster & core_bit((uint32_t)i)) && core_is_excluded(c, &c->members[i]))
			return true;
	return false;
}

/* Returns the members that are not ready, and worth waiting for before `roster` is frozen. */
static uint64_t not_ready(const struct core *c, uint64_t roster) {
	uint64_t set = 0, ready = core_contributors(c);
	RV_ASSERT((roster & ~ready) == 0);
	bool needed = needs_excluded(c, roster);
	for (uint32_t i = 0; i < (uint32_t)c->n_members; i++)
		if (!(ready & core_bit(i)) && (core_waited_for(c, i) || (needed && core_trains_again(c, i))))
			set |= core_bit(i);
	return set;
}

/* Returns true if all members worth waiting for are ready, or the grace time is over. */
static bool waited_long_enough(struct core *c, uint64_t roster) {
	RV_ASSERT(c->ready_since_us <= c->now_us); /* grace has begun */
	uint64_t others = not_ready(c, roster);
	bool in_grace = c->now_us - c->ready_since_us < c->cfg.grace_us, all = others == 0;
	c->waited_for |= others;
	if (in_grace && all && core_waits_for_arrivals(c))
		return false;
	core_end_arrivals(c);
	return all || !in_grace;
}

/* Returns true if the round's digest would not fit into the document. */
static bool beyond_log(struct core *c) {
	RV_ASSERT(c->round >= c->snapshot_round);
	if (c->round - c->snapshot_round < NET_MAX_LOG_DIGESTS)
		return false;
	if (c->no_snapshot_said != c->round)
		core_say(c, CORE_EVENT_NO_SNAPSHOT, NET_MAX_MEMBERS, c->round);
	c->no_snapshot_said = c->round;
	return true;
}

void core_decide_roster(struct core *c) {
	RV_ASSERT(c->roster.n == 0 && c->n_queue == 0 && c->round < c->cfg.final_round);
	uint64_t ready = core_without_next(c, core_without_excluded(c, core_contributors(c)));
	if (core_count(ready) < (int)c->cfg.min_workers) {
		c->ready_since_us = INT64_MAX;
		c->waited_for = 0;
		core_end_arrivals(c);
		return;
	}
	if (c->ready_since_us == INT64_MAX)
		c->ready_since_us = c->now_us;
	if (waited_long_enough(c, ready) && c->now_us >= core_reopened_until_us(c) && !beyond_log(c))
		freeze(c, core_without_apart(c, ready));
}

void core_weigh(struct core *c) {
	struct core_roster *r = &c->roster;
	rv_weights(r->tokens, r->n, c->cfg.weight_by_tokens, r->weights);
	uint64_t sum = 0;
	for (int i = 0; i < r->n; i++) {
		RV_ASSERT(r->weights[i] > 0);
		sum += r->weights[i];
	}
	RV_ASSERT(sum <= NET_MAX_WEIGHT_SUM && (c->cfg.weight_by_tokens || sum == r->n));
}
