/* test_base_leases.c: every position is in exactly one state, whatever members do, and is consumed
 * exactly once; the memory is bounded, and work never stops for it. */
#include "base/leases.h"
#include "base/rng.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

enum { POSITIONS = 6000, MEMBERS = 5, STEPS = 4000, AHEAD = UINT8_MAX, FREE = UINT8_MAX - 1, CONSUMED = UINT8_MAX - 2 };

/* What each position must be, kept apart from the ranges: AHEAD, FREE, CONSUMED or its holder. */
struct world {
	struct leases l;
	struct lease memory[64];
	uint8_t is[POSITIONS];
	int consumed_times[POSITIONS];
	struct rv_rng rng;
};

static uint64_t below(struct world *w, uint64_t n) {
	return rv_rng_u64(&w->rng) % n;
}

static void world_of(struct world *w, uint64_t seed, uint32_t cap) {
	memset(w, 0, sizeof *w);
	memset(w->is, AHEAD, sizeof w->is);
	w->rng = (struct rv_rng){.seed = seed};
	leases_init(&w->l, w->memory, cap, 0);
}

/* Compares every position with the ranges. */
static void assert_states(const struct world *w) {
	assert_true(leases_are_valid(&w->l));
	assert_true(w->l.n <= w->l.cap);
	uint32_t r = 0;
	for (uint64_t p = 0; p < POSITIONS; p++) {
		while (r < w->l.n && w->l.at[r].end <= p)
			r++;
		uint8_t is = p >= w->l.next ? AHEAD : CONSUMED;
		if (r < w->l.n && w->l.at[r].begin <= p)
			is = w->l.at[r].holder == LEASE_FREE ? FREE : (uint8_t)w->l.at[r].holder;
		if (is != w->is[p])
			fail_msg("position %d is %d, must be %d", (int)p, is, w->is[p]);
	}
}

static bool any(const struct world *w, uint8_t is) {
	return memchr(w->is, is, sizeof w->is) != NULL;
}

/* Takes what was granted into the states: it was free, or ahead where nothing is free. */
static void note_granted(struct world *w, uint32_t member) {
	const uint64_t held = leases_held(&w->l, member);
	for (uint64_t i = 0; i < held; i++) {
		const uint64_t p = leases_position(&w->l, member, i);
		assert_true(p < POSITIONS);
		assert_true(w->is[p] == member || w->is[p] == FREE || w->is[p] == AHEAD);
		w->is[p] = (uint8_t)member;
	}
}

static void grant(struct world *w, uint32_t member, uint64_t count) {
	const bool had_free = any(w, FREE);
	const uint64_t next = w->l.next, held = leases_held(&w->l, member), n_free = leases_held(&w->l, LEASE_FREE);
	uint64_t first = held > 0 ? leases_position(&w->l, member, 0) : 0;
	if (w->l.next + count > POSITIONS)
		return;
	const uint64_t n = leases_grant(&w->l, member, count);
	assert_int_equal(leases_held(&w->l, member), held + n);
	if (held > 0) /* what it was reading is still the next */
		assert_int_equal(leases_position(&w->l, member, 0), first);
	assert_true(w->l.next == next || n >= n_free); /* free ones first */
	assert_true(!had_free || n > 0);
	note_granted(w, member);
}

static void consume(struct world *w, uint32_t member, uint64_t count) {
	const uint64_t held = leases_held(&w->l, member);
	struct rv_errtext why = {0};
	if (count > held) {
		assert_int_equal(leases_consume(&w->l, member, count, &why), RV_E_RANGE);
		assert_true(strstr(why.text, "leased") != NULL);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t p = leases_position(&w->l, member, i);
		assert_int_equal(w->is[p], member);
		w->is[p] = CONSUMED;
		w->consumed_times[p]++;
	}
	assert_int_equal(leases_consume(&w->l, member, count, &why), RV_OK);
}

static void give_back(struct world *w, uint32_t member) {
	const uint32_t n = w->l.n;
	leases_give_back(&w->l, member);
	assert_true(w->l.n <= n);
	for (int p = 0; p < POSITIONS; p++)
		if (w->is[p] == member)
			w->is[p] = FREE;
}

static void step(struct world *w) {
	const uint32_t member = (uint32_t)below(w, MEMBERS);
	switch (below(w, 5)) {
	case 0:
	case 1:
		grant(w, member, 1 + below(w, 12));
		break;
	case 2:
	case 3:
		consume(w, member, below(w, 12));
		break;
	default:
		give_back(w, member);
	}
}

static void each_position_is_in_one_state(void **state) {
	(void)state;
	static struct world w;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		world_of(&w, seed, seed % 3 == 0 ? 64 : 2 * MEMBERS);
		for (int i = 0; i < STEPS && w.l.next + 16 < POSITIONS; i++) {
			step(&w);
			assert_states(&w);
		}
	}
}

/* Members come and go at any time; then those that stay consume all that was ever granted. */
static void all_is_consumed_once_in_the_end(void **state) {
	(void)state;
	static struct world w;
	for (uint64_t seed = 100; seed < 108; seed++) {
		world_of(&w, seed, 2 * MEMBERS);
		for (int i = 0; i < 800; i++)
			step(&w);
		for (uint32_t m = 1; m < MEMBERS; m++)
			give_back(&w, m);
		const uint64_t next = w.l.next;
		for (int rounds = 0; any(&w, FREE) || leases_held(&w.l, 0) > 0; rounds++) {
			assert_true(rounds < POSITIONS);
			consume(&w, 0, leases_held(&w.l, 0));
			if (any(&w, FREE))
				grant(&w, 0, 1);
		}
		assert_states(&w);
		for (uint64_t p = 0; p < next; p++)
			assert_int_equal(w.consumed_times[p], 1);
	}
}

/* A rollback: the state of a snapshot, and from it the same again. */
static void a_copy_goes_on_alike(void **state) {
	(void)state;
	static struct world a, b;
	world_of(&a, 7, 2 * MEMBERS);
	for (int i = 0; i < 300; i++)
		step(&a);
	b = a;
	b.l.at = b.memory;
	for (int i = 0; i < 300; i++) {
		step(&a);
		step(&b);
	}
	assert_int_equal(a.l.n, b.l.n);
	assert_int_equal(a.l.next, b.l.next);
	assert_memory_equal(a.is, b.is, sizeof a.is);
	for (uint32_t i = 0; i < a.l.n; i++)
		assert_true(a.l.at[i].begin == b.l.at[i].begin && a.l.at[i].end == b.l.at[i].end &&
					a.l.at[i].holder == b.l.at[i].holder && a.l.at[i].turn == b.l.at[i].turn);
}

/* The order in which a member reads is that of its grants, also where a lower range comes later. */
static void a_member_reads_in_the_order_of_its_grants(void **state) {
	(void)state;
	struct lease memory[8];
	struct leases l;
	struct rv_errtext why = {0};
	leases_init(&l, memory, 8, 1000);
	assert_int_equal(leases_grant(&l, 1, 10), 10); /* 1000..1009 */
	assert_int_equal(leases_grant(&l, 2, 10), 10); /* 1010..1019 */
	assert_int_equal(leases_grant(&l, 2, 5), 5);   /* 1020..1024: the same range goes on */
	assert_int_equal(l.n, 2);
	assert_int_equal(leases_consume(&l, 1, 4, &why), RV_OK);
	leases_give_back(&l, 1);
	assert_int_equal(leases_grant(&l, 2, 8), 8); /* 1004..1009, then 1025, 1026 */
	assert_int_equal(leases_position(&l, 2, 0), 1010);
	assert_int_equal(leases_position(&l, 2, 14), 1024);
	assert_int_equal(leases_position(&l, 2, 15), 1004);
	assert_int_equal(leases_position(&l, 2, 21), 1025);
	assert_int_equal(leases_held(&l, 2), 23);
	assert_int_equal(leases_consume(&l, 2, 24, &why), RV_E_RANGE);
	assert_int_equal(leases_held(&l, 2), 23);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_position_is_in_one_state),
		cmocka_unit_test(all_is_consumed_once_in_the_end),
		cmocka_unit_test(a_copy_goes_on_alike),
		cmocka_unit_test(a_member_reads_in_the_order_of_its_grants),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
