/* slots.c: the members in memory. Each has a slot, an index of arrays and sets; they are found by
 * key, by number, and in the order of their numbers. Numbers are never given again, slots are. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

#include <string.h>

/* ---- finding ---- */

/* Returns the head of the list of the slots whose keys have this hash. */
static uint16_t *head_of(const struct core *c, const uint8_t key[NET_KEY_BYTES]) {
	uint64_t words[NET_KEY_BYTES / 8], mixed = 0;
	memcpy(words, key, sizeof words);
	for (int i = 0; i < NET_KEY_BYTES / 8; i++)
		mixed = (mixed ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
	return &c->slots.heads[(mixed >> 32) % (2 * (uint64_t)c->cfg.max_here)];
}

int core_find_key(const struct core *c, const uint8_t key[NET_KEY_BYTES]) {
	for (int at = *head_of(c, key); at != 0; at = c->slots.next[at - 1])
		if (memcmp(c->members[at - 1].key, key, NET_KEY_BYTES) == 0)
			return at - 1;
	return -1;
}

/* Returns the first place in the order whose number is at least `member`. */
static int place_of(const struct core_slots *s, uint32_t member) {
	int low = 0, high = s->n;
	while (low < high) {
		int middle = (low + high) / 2;
		if (s->numbers[middle] < member)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int core_find(const struct core *c, uint32_t member) {
	int at = place_of(&c->slots, member);
	return at < c->slots.n && c->slots.numbers[at] == member ? c->slots.order[at] : -1;
}

int core_here(const struct core *c) {
	return c->slots.n;
}

uint32_t core_nth(const struct core *c, int k) {
	RV_ASSERT(k >= 0 && k < c->slots.n);
	return c->slots.order[k];
}

int core_words(const struct core *c) {
	return c->words;
}

uint32_t core_number(const struct core *c, uint32_t slot) {
	RV_ASSERT(slot < c->cfg.max_here && set_has(c->slots.used, slot));
	return c->members[slot].number;
}

/* ---- taking and giving ---- */

static uint32_t first_free(const struct core *c) {
	for (int w = 0; w < c->words; w++)
		if (c->slots.used[w] != UINT64_MAX)
			return (uint32_t)(w * SET_BITS + __builtin_ctzll(~c->slots.used[w]));
	return UINT32_MAX;
}

static void put_in_order(struct core_slots *s, uint32_t number, uint32_t slot) {
	int at = place_of(s, number);
	size_t behind = (size_t)(s->n - at);
	RV_ASSERT(at == s->n || s->numbers[at] != number);
	memmove(&s->numbers[at + 1], &s->numbers[at], behind * sizeof s->numbers[0]);
	memmove(&s->order[at + 1], &s->order[at], behind * sizeof s->order[0]);
	s->numbers[at] = number;
	s->order[at] = (uint16_t)slot;
	s->n++;
}

uint32_t core_slots_take(struct core *c, const struct core_facts *f) {
	uint32_t slot = first_free(c);
	RV_ASSERT(slot < c->cfg.max_here && core_find_key(c, f->key) < 0);
	struct core_member *m = &c->members[slot];
	*m = (struct core_member){.number = f->number,
							  .token_hash = f->token_hash,
							  .blame = f->blame,
							  .reputation = f->reputation,
							  .evaded = f->reputation.evaded,
							  .audited = f->reputation.audited,
							  .came_us = c->now_us,
							  .came_at = c->round};
	memcpy(m->key, f->key, sizeof m->key);
	set_clear(&c->put_away[slot * (uint32_t)c->words], c->words);
	set_add(c->slots.used, slot);
	put_in_order(&c->slots, f->number, slot);
	uint16_t *head = head_of(c, f->key);
	c->slots.next[slot] = *head;
	*head = (uint16_t)(slot + 1);
	c->owned[slot] = 0;
	core_scores_note_who(c);
	return slot;
}

static void drop_key(struct core *c, uint32_t slot) {
	uint16_t *at = head_of(c, c->members[slot].key);
	while (*at != slot + 1) {
		RV_ASSERT(*at != 0);
		at = &c->slots.next[*at - 1];
	}
	*at = c->slots.next[slot];
}

static void drop_from_order(struct core_slots *s, uint32_t number) {
	int at = place_of(s, number);
	size_t behind = (size_t)(s->n - at - 1);
	RV_ASSERT(at < s->n && s->numbers[at] == number);
	memmove(&s->numbers[at], &s->numbers[at + 1], behind * sizeof s->numbers[0]);
	memmove(&s->order[at], &s->order[at + 1], behind * sizeof s->order[0]);
	s->n--;
}

/* The last rounds' participants are forgotten with the rest: a rollback asks who held the state,
 * and one that is not in memory can be asked nothing. */
static void drop_from_sets(struct core *c, uint32_t slot) {
	uint64_t *const sets[] = {c->rostered, c->left_out,     c->spoilers,  c->last_commit,
							  c->blamed,   c->seen_holding, c->waited_for};
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
		set_drop(sets[i], slot);
	for (int k = 0; k < c->slots.n; k++)
		set_drop(&c->put_away[c->slots.order[k] * (uint32_t)c->words], slot);
	core_past_forget(c, slot);
	if (c->parted == (int)slot)
		c->parted = -1;
}

void core_slots_give(struct core *c, uint32_t slot) {
	RV_ASSERT(slot < c->cfg.max_here && set_has(c->slots.used, slot));
	core_pairs_forget(c, slot);
	core_odds_forget(c, slot);
	drop_from_sets(c, slot);
	drop_key(c, slot);
	drop_from_order(&c->slots, c->members[slot].number);
	set_drop(c->slots.used, slot);
	core_scores_note_who(c);
}

/* A member that has just come has not had the time to report. */
static int64_t last_heard_us(const struct core_member *m) {
	return m->heard_us > m->came_us ? m->heard_us : m->came_us;
}

/* Returns the last round of which records show that the member was there. */
static uint64_t last_round(const struct core_member *m) {
	return m->rostered_at > m->came_at ? m->rostered_at : m->came_at;
}

/* Returns true if the member has not reported since this coordinator started, and records show
 * nothing of it for long: most likely it has gone. */
static bool was_gone(const struct core *c, const struct core_member *m) {
	return m->awaited && !m->reported && c->round >= last_round(m) + CORE_GONE_ROUNDS;
}

/* Returns true if nothing under way depends on the member: it is long gone, and neither on a roster
 * of the round nor among those that may hold its state. */
static bool is_idle(const struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	bool gone = c->now_us - last_heard_us(m) >= c->cfg.liveness_us || was_gone(c, m);
	return gone && m->banned == m->want_banned && !set_has(c->rostered, slot) && !set_has(c->last_commit, slot) &&
		   !set_has(c->seen_holding, slot) && !set_has(c->blamed, slot) && !set_has(c->waited_for, slot) &&
		   !core_is_leaving(c, slot);
}

/* Returns true if `a` has been away for longer than `b`, as far as is known: after a start of the
 * coordinator by what records show. */
static bool went_before(const struct core_member *a, const struct core_member *b) {
	const int64_t heard_a = last_heard_us(a), heard_b = last_heard_us(b);
	return heard_a != heard_b ? heard_a < heard_b : last_round(a) < last_round(b);
}

int core_slots_find_idle(const struct core *c) {
	int best = -1;
	for (int k = 0; k < c->slots.n; k++) {
		uint32_t slot = c->slots.order[k];
		if (is_idle(c, slot) && (best < 0 || went_before(&c->members[slot], &c->members[best])))
			best = (int)slot;
	}
	return best;
}

void core_facts_of(const struct core *c, uint32_t slot, struct core_facts *out) {
	const struct core_member *m = &c->members[slot];
	*out = (struct core_facts){.number = m->number,
							   .places = m->places,
							   .banned = m->banned,
							   .token_hash = m->token_hash,
							   .blame = m->blame,
							   .reputation = m->reputation};
	memcpy(out->key, m->key, sizeof out->key);
	memcpy(out->name, m->name, sizeof out->name);
}

void core_facts_of_record(const struct core_record *rec, struct core_facts *out) {
	*out = (struct core_facts){.number = rec->member,
							   .places = {.n = rec->n_candidates},
							   .banned = rec->banned,
							   .token_hash = rec->token_hash,
							   .blame = {.level = rec->blame_level, .until_round = rec->blame_until},
							   .reputation = rec->reputation};
	memcpy(out->key, rec->key, sizeof out->key);
	memcpy(out->name, rec->name, sizeof out->name);
	memcpy(out->places.at, rec->candidates, sizeof out->places.at);
}
