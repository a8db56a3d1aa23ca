/* test_base_leases.c: every position is in exactly one state, whatever members do, and is consumed
 * exactly once; numbers of a stream mean one position for ever; the memory is bounded. */
#include "base/leases.h"
#include "base/rng.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

enum { POSITIONS = 6000, MEMBERS = 5, STEPS = 1500, FREE_CAP = 64 };
enum { AHEAD = UINT8_MAX, FREE = UINT8_MAX - 1, CONSUMED = UINT8_MAX - 2, LEFT_OUT = UINT8_MAX - 3 };
enum { NUMBERS = 60000 };

/* What each position must be, kept apart from the ranges: AHEAD, FREE, CONSUMED or its holder. */
struct world {
	struct leases l;
	struct lease_holder holders[MEMBERS];
	struct lease_range free[FREE_CAP];
	uint8_t is[POSITIONS];
	int consumed_times[POSITIONS];
	uint32_t read_as[MEMBERS][NUMBERS]; /* by number of a member's stream: its position + 1; 0: not granted */
	struct rv_rng rng;
};

static uint64_t below(struct world *w, uint64_t n) {
	return rv_rng_u64(&w->rng) % n;
}

static void world_of(struct world *w, uint64_t seed, uint32_t free_cap) {
	memset(w, 0, sizeof *w);
	memset(w->is, AHEAD, sizeof w->is);
	w->rng = (struct rv_rng){.seed = seed};
	leases_init(&w->l, w->holders, MEMBERS, w->free, free_cap);
}

static uint8_t state_of(const struct leases *l, uint64_t p) {
	for (uint32_t i = 0; i < l->n_free; i++)
		if (p >= l->free[i].begin && p < l->free[i].end)
			return FREE;
	for (uint32_t m = 0; m < MEMBERS; m++)
		for (uint32_t i = 0; i < l->holders[m].n; i++)
			if (p - l->holders[m].pieces[i].begin < l->holders[m].pieces[i].count)
				return (uint8_t)m;
	return p >= l->next ? AHEAD : CONSUMED;
}

/* Compares every position with the ranges; one that was left out looks as if it were consumed. */
static void assert_states(const struct world *w) {
	uint64_t left_out = 0;
	assert_true(leases_are_valid(&w->l));
	for (uint64_t p = 0; p < POSITIONS; p++) {
		const uint8_t is = state_of(&w->l, p);
		left_out += is == CONSUMED && w->is[p] == FREE;
		if (is != w->is[p] && !(is == CONSUMED && w->is[p] == FREE))
			fail_msg("position %d is %d, must be %d", (int)p, is, w->is[p]);
	}
	assert_int_equal(w->l.left_out, left_out);
}

/* Takes what was granted into the states: it was free, or ahead. Numbers keep their positions. */
static void note_granted(struct world *w, uint32_t member) {
	const struct lease_holder *h = &w->l.holders[member];
	for (uint64_t k = h->first; k < h->first + h->held; k++) {
		const uint64_t p = leases_position(&w->l, member, k);
		assert_true(p < POSITIONS && k < NUMBERS);
		assert_true(w->is[p] == member || w->is[p] == FREE || w->is[p] == AHEAD);
		assert_true(w->read_as[member][k] == 0 || w->read_as[member][k] == p + 1);
		w->is[p] = (uint8_t)member;
		w->read_as[member][k] = (uint32_t)p + 1;
	}
}

static void grant(struct world *w, uint32_t member, uint64_t count) {
	const struct lease_holder before = w->l.holders[member];
	const uint64_t next = w->l.next;
	if (w->l.next + count > POSITIONS)
		return;
	const uint64_t n = leases_grant(&w->l, member, count);
	assert_int_equal(w->l.holders[member].held, before.held + n);
	assert_true(n == count || w->l.holders[member].n == LEASE_PIECES);
	if (before.n > 0)
		assert_int_equal(w->l.holders[member].first, before.first);
	if (w->l.next > next) /* free ones first, up to the half of the pieces */
		assert_true(w->l.n_free == 0 || w->l.holders[member].n >= LEASE_PIECES / 2);
	note_granted(w, member);
}

static void consume(struct world *w, uint32_t member, uint64_t passed_over, uint64_t count) {
	const uint64_t first = w->l.holders[member].first + passed_over;
	struct lease_piece consumed[LEASE_PIECES];
	if (!leases_has(&w->l, member, first, count))
		return;
	for (uint64_t k = first - passed_over; k < first; k++)
		w->is[leases_position(&w->l, member, k)] = FREE;
	for (uint64_t k = first; k < first + count; k++) {
		const uint64_t p = leases_position(&w->l, member, k);
		assert_int_equal(w->is[p], member);
		w->is[p] = CONSUMED;
		w->consumed_times[p]++;
	}
	uint64_t sum = 0;
	const int n = leases_consume(&w->l, member, first, count, consumed);
	for (int i = 0; i < n; i++)
		for (uint64_t k = 0; k < consumed[i].count; k++, sum++)
			assert_int_equal(consumed[i].begin + k + 1, w->read_as[member][first + sum]);
	assert_int_equal(sum, count);
	if (n > 0 && below(w, 20) == 0) { /* taken back */
		leases_restore(&w->l, (struct lease_range){consumed[0].begin, consumed[0].begin + consumed[0].count});
		for (uint64_t k = 0; k < consumed[0].count; k++) {
			w->is[consumed[0].begin + k] = FREE;
			w->consumed_times[consumed[0].begin + k]--;
		}
	}
}

static void give_back(struct world *w, uint32_t member) {
	leases_give_back(&w->l, member);
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
		consume(w, member, below(w, 4) == 0 ? below(w, 5) : 0, below(w, 12));
		break;
	default:
		if (below(w, 3) == 0)
			give_back(w, member);
	}
}

static void each_position_is_in_one_state(void **state) {
	(void)state;
	static struct world w;
	uint64_t left_out = 0;
	for (uint64_t seed = 1; seed <= 9; seed++) {
		world_of(&w, seed, seed % 3 == 0 ? 3 : FREE_CAP);
		for (int i = 0; i < STEPS && w.l.next + 16 < POSITIONS; i++) {
			step(&w);
			assert_states(&w);
		}
		assert_true(seed % 3 == 0 || w.l.left_out == 0);
		left_out += w.l.left_out;
	}
	assert_true(left_out > 0); /* three ranges are too few */
}

/* Members come and go at any time; then one that stays consumes all that was ever granted. */
static void all_is_consumed_once_in_the_end(void **state) {
	(void)state;
	static struct world w;
	for (uint64_t seed = 100; seed < 108; seed++) {
		world_of(&w, seed, FREE_CAP);
		for (int i = 0; i < 800; i++)
			step(&w);
		for (uint32_t m = 1; m < MEMBERS; m++)
			give_back(&w, m);
		for (int rounds = 0; w.l.n_free > 0 || w.l.holders[0].held > 0; rounds++) {
			assert_true(rounds < POSITIONS);
			consume(&w, 0, 0, w.l.holders[0].held);
			grant(&w, 0, w.l.n_free > 0 ? 1 : 0);
		}
		assert_states(&w);
		for (uint64_t p = 0; p < w.l.next; p++)
			assert_int_equal(w.consumed_times[p], 1);
		assert_int_equal(w.l.consumed, w.l.next);
	}
}

/* The order in which a member reads is that of its grants, also where a lower range comes later;
 * what it passes over is another's. */
static void a_member_reads_in_the_order_of_its_grants(void **state) {
	(void)state;
	static struct world w;
	struct lease_piece consumed[LEASE_PIECES];
	struct leases *l = &w.l;
	world_of(&w, 1, FREE_CAP);
	assert_int_equal(leases_grant(l, 1, 10), 10); /* 0..9, numbers 0..9 */
	assert_int_equal(leases_grant(l, 2, 10), 10); /* 10..19, numbers 10..19 */
	assert_int_equal(leases_grant(l, 2, 5), 5);   /* 20..24: the same piece goes on, numbers 20..24 */
	assert_true(l->holders[2].first == 10 && l->holders[2].n == 1);
	assert_int_equal(leases_consume(l, 1, 0, 4, consumed), 1);
	leases_give_back(l, 1);
	assert_int_equal(leases_grant(l, 2, 8), 8); /* 4..9, then 25, 26 */
	assert_int_equal(leases_position(l, 2, 10), 10);
	assert_int_equal(leases_position(l, 2, 24), 24);
	assert_int_equal(leases_position(l, 2, 25), 4);
	assert_int_equal(leases_position(l, 2, 31), 25);
	assert_true(leases_has(l, 2, 32, 1) && !leases_has(l, 2, 32, 2) && !leases_has(l, 2, 9, 1));
	assert_int_equal(leases_consume(l, 2, 23, 5, consumed), 2); /* 23, 24; 4, 5, 6 */
	assert_true(consumed[0].begin == 23 && consumed[0].count == 2 && consumed[1].begin == 4 && consumed[1].count == 3);
	assert_true(l->holders[2].first == 28 && l->holders[2].held == 5 && leases_free(l) == 13); /* 10..22 */
	assert_int_equal(leases_grant(l, 1, 20), 20); /* its numbers go on behind all that were ever given */
	assert_int_equal(l->holders[1].first, 33);
	assert_true(leases_position(l, 1, 33) == 10 && leases_position(l, 1, 46) == 27);
	leases_restore(l, (struct lease_range){0, 3}); /* the round in which they were read was taken back */
	assert_int_equal(leases_free(l), 3);
	assert_true(leases_are_valid(l));
}

/* A holder that has only small pieces still gets a round's sequences: the last one is long. */
static void small_free_ranges_do_not_starve_a_holder(void **state) {
	(void)state;
	static struct world w;
	struct lease_piece consumed[LEASE_PIECES];
	world_of(&w, 1, FREE_CAP);
	(void)leases_grant(&w.l, 0, 100);
	for (int i = 0; i < 50; i++) /* every second one is free */
		(void)leases_consume(&w.l, 0, 2 * (uint64_t)i + 1, 1, consumed);
	assert_int_equal(w.l.n_free, 50);
	assert_int_equal(leases_lacks(&w.l, 1, 40), 3 * 40);
	assert_int_equal(leases_grant(&w.l, 1, 120), 120);
	assert_int_equal(w.l.holders[1].n, LEASE_PIECES / 2 + 1);
	assert_int_equal(w.l.n_free, 50 - LEASE_PIECES / 2);
	(void)leases_consume(&w.l, 1, w.l.holders[1].first, 9, consumed);
	assert_int_equal(leases_lacks(&w.l, 1, 40), 0); /* less than a quarter of a round */
	(void)leases_consume(&w.l, 1, w.l.holders[1].first, 1, consumed);
	assert_int_equal(leases_lacks(&w.l, 1, 40), 10);
	assert_true(leases_are_valid(&w.l));
}

static void a_state_that_cannot_be_is_refused(void **state) {
	(void)state;
	static struct world w, bad;
#define REFUSED(change)                                                                                                \
	do {                                                                                                               \
		bad = w;                                                                                                       \
		bad.l.holders = bad.holders;                                                                                   \
		bad.l.free = bad.free;                                                                                         \
		assert_true(leases_are_valid(&bad.l));                                                                         \
		change;                                                                                                        \
		assert_false(leases_are_valid(&bad.l));                                                                        \
	} while (0)
	world_of(&w, 1, FREE_CAP);
	for (uint32_t m = 0; m < MEMBERS; m++)
		(void)leases_grant(&w.l, m, 10);
	leases_give_back(&w.l, 1);
	leases_give_back(&w.l, 3);
	(void)leases_grant(&w.l, 2, 15);
	REFUSED(bad.l.next++);
	REFUSED(bad.l.n_free = FREE_CAP + 1);
	REFUSED(bad.free[0].end = bad.free[0].begin);
	REFUSED(bad.free[0].begin--);
	REFUSED(bad.holders[2].n = LEASE_PIECES + 1);
	REFUSED(bad.holders[2].held--);
	REFUSED(bad.holders[2].pieces[1].begin--);
	REFUSED(bad.holders[2].pieces[2] = bad.holders[0].pieces[0]);
	REFUSED(bad.holders[4].pieces[0].begin = UINT64_MAX);
	REFUSED(bad.holders[4].first = bad.l.granted);
	REFUSED((bad.l.consumed = 5, bad.l.next += 4));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_position_is_in_one_state),
		cmocka_unit_test(all_is_consumed_once_in_the_end),
		cmocka_unit_test(a_member_reads_in_the_order_of_its_grants),
		cmocka_unit_test(small_free_ranges_do_not_starve_a_holder),
		cmocka_unit_test(a_state_that_cannot_be_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
