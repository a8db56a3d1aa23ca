/* apart.c: see apart.h. */
#include "coordinator/core/apart.h"

#include "base/assert.h"

enum {
	ONCE = NET_MAX_PEERS + 1, /* to be apart once weighs more than all that one says */
	OUTCAST_SHARE = 4
};

void apart_init(struct apart *a, int n) {
	RV_ASSERT(n > 0 && n <= NET_MAX_ROSTER);
	a->n = n;
	a->words = SET_WORDS(n);
	a->any = false;
	memset(a->weight, 0, (size_t)n * sizeof a->weight[0]);
	memset(a->from, 0, (size_t)n * sizeof a->from[0]);
	memset(a->of, 0, (size_t)n * (size_t)a->words * sizeof a->of[0]);
}

static uint64_t *set_of(struct apart *a, int i) {
	RV_ASSERT(i >= 0 && i < a->n);
	return a->of + (size_t)i * (size_t)a->words;
}

const uint64_t *apart_from(const struct apart *a, int i) {
	RV_ASSERT(i >= 0 && i < a->n);
	return a->of + (size_t)i * (size_t)a->words;
}

void apart_note_claims(struct apart *a, int i, int times) {
	RV_ASSERT(times >= 0 && times < ONCE);
	a->weight[i] += (uint32_t)times;
}

void apart_add(struct apart *a, int i, int j) {
	RV_ASSERT(i != j && !set_has(apart_from(a, i), (uint32_t)j));
	set_add(set_of(a, i), (uint32_t)j);
	set_add(set_of(a, j), (uint32_t)i);
	a->weight[i] += ONCE;
	a->weight[j] += ONCE;
	a->from[i]++;
	a->from[j]++;
	a->any = true;
}

/* Returns the one of `left` with the most weight, if it is apart from another of them; of several
 * the last. -1: none is. */
static int most_apart(const struct apart *a, const uint64_t *left) {
	int most = -1;
	for (int i = set_next(left, 0, a->words); i >= 0; i = set_next(left, i + 1, a->words))
		if (a->weight[i] >= ONCE && (most < 0 || a->weight[i] >= a->weight[most]))
			most = i;
	return most;
}

static bool are_light(const struct apart *a, int few, int i, int j) {
	return a->from[i] <= few && a->from[j] <= few;
}

/* Takes from each what it weighs for being apart from `i`, but for one that is light as `i` is, or,
 * with `light`, for that one only. */
static void lighten(struct apart *a, int few, int i, bool light) {
	const uint64_t *apart = apart_from(a, i);
	for (int j = set_next(apart, 0, a->words); j >= 0; j = set_next(apart, j + 1, a->words))
		if (are_light(a, few, i, j) == light)
			a->weight[j] -= ONCE;
}

void apart_find_able(struct apart *a, int few, uint64_t *able) {
	set_first(able, a->n, APART_WORDS);
	for (int i = 0; i < a->n && a->any; i++)
		lighten(a, few, i, true);
	for (int worst = a->any ? most_apart(a, able) : -1; worst >= 0; worst = most_apart(a, able)) {
		set_drop(able, (uint32_t)worst);
		lighten(a, few, worst, false);
	}
}

bool apart_is_outcast(const struct apart *a, const uint64_t *able, int i) {
	uint64_t owners[APART_WORDS];
	set_copy(owners, able, a->words);
	set_meet(owners, apart_from(a, i), a->words);
	const int from = set_count(owners, a->words);
	return from > 0 && !set_has(able, (uint32_t)i) && OUTCAST_SHARE * from >= set_count(able, a->words);
}

void apart_drop_in_rows(const struct apart *a, const uint8_t *row, uint64_t *able) {
	for (int i = 0; i < a->n && a->any; i++) {
		const uint64_t *apart = apart_from(a, i);
		for (int j = set_next(apart, 0, a->words); j >= 0; j = set_next(apart, j + 1, a->words))
			if (row[i] == row[j])
				set_drop(able, (uint32_t)i);
	}
}
