/* core_roster.c: OPEN: who takes part in the round, and with what weight. */
#include "base/weights.h"
#include "coordinator/core_internal.h"

/* The size that most of `set` have; of several, that of the lowest number. */
static uint32_t common_size(const struct core *c, uint64_t set) {
	uint32_t best = 0;
	int best_count = 0;
	for (int i = 0; i < c->n_members; i++) {
		int count = 0;
		for (int j = 0; j < c->n_members; j++)
			count += (set & core_bit((uint32_t)j)) && c->members[j].last.n_chunks == c->members[i].last.n_chunks;
		if ((set & core_bit((uint32_t)i)) && count > best_count) {
			best = c->members[i].last.n_chunks;
			best_count = count;
		}
	}
	return best;
}

uint64_t core_line_rate(const struct report *rep) {
	uint64_t up = rep->up_bytes_per_s, down = rep->down_bytes_per_s;
	return up < down ? up : down;
}

static void freeze(struct core *c, uint64_t ready, uint32_t n_chunks) {
	struct core_record *rec = core_push(c, CORE_ROSTER);
	rec->attempt = c->attempt + 1;
	rec->n_chunks = n_chunks;
	for (int i = 0; i < c->n_members; i++) {
		if (!(ready & core_bit((uint32_t)i)))
			continue;
		rec->members[rec->n_members] = (uint32_t)i;
		rec->tokens[rec->n_members] = c->members[i].last.tokens;
		rec->boots[rec->n_members] = c->members[i].last.boot;
		rec->rates[rec->n_members] = c->cfg.equal_shards ? 0 : core_line_rate(&c->members[i].last);
		rec->n_members++;
	}
}

static bool all_are_ready(const struct core *c, uint64_t ready) {
	for (int i = 0; i < c->n_members; i++)
		if (!(ready & core_bit((uint32_t)i)) && core_waited_for(c, (uint32_t)i))
			return false;
	return true;
}

/* Everyone worth waiting for is ready, or the grace time is over. */
static bool waited_long_enough(struct core *c, uint64_t ready) {
	bool in_grace = c->now_us - c->ready_since_us < c->cfg.grace_us, all = all_are_ready(c, ready);
	if (in_grace && all && core_waits_for_arrivals(c))
		return false;
	core_end_arrivals(c);
	return all || !in_grace;
}

/* The round's digest would not fit into the document. */
static bool beyond_log(struct core *c) {
	if (c->round - c->base_round < NET_MAX_LOG_DIGESTS)
		return false;
	if (c->no_base_said != c->round)
		core_say(c, CORE_EVENT_NO_BASE, NET_MAX_MEMBERS, c->round);
	c->no_base_said = c->round;
	return true;
}

/* It would exchange n_chunks in this round. */
static bool is_wrong_size(const struct core *c, const struct core_member *m, uint32_t n_chunks) {
	bool this_fragment = core_fragment(c, m->last.round) == core_fragment(c, c->round);
	return m->reported && (this_fragment ? m->last.n_chunks != n_chunks : !core_right_size(c, m));
}

void core_decide_roster(struct core *c) {
	uint64_t ready = core_contributors(c);
	uint32_t known = core_chunks(c, c->round), n_chunks = known != 0 ? known : common_size(c, ready);
	for (int i = 0; i < c->n_members; i++) {
		if (n_chunks == 0 || !is_wrong_size(c, &c->members[i], n_chunks))
			continue;
		ready &= ~core_bit((uint32_t)i);
		core_say(c, CORE_EVENT_WRONG_SIZE, (uint32_t)i, c->round);
	}
	if (core_count(ready) < (int)c->cfg.min_workers) {
		c->ready_since_us = INT64_MAX;
		core_end_arrivals(c);
		return;
	}
	if (c->ready_since_us == INT64_MAX)
		c->ready_since_us = c->now_us;
	if (waited_long_enough(c, ready) && !beyond_log(c))
		freeze(c, core_without_apart(c, ready), n_chunks);
}

void core_weigh(struct core *c) {
	struct core_roster *r = &c->roster;
	rv_weights(r->tokens, r->n, c->cfg.weight_by_tokens, r->weights);
}
