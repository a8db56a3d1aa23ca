/* A roster of several rows in which a few members of one row accuse the same honest one of it,
 * whenever one of them deals with it: fewer than an eighth have it left out of attempts, and never
 * of rounds. */
#include "coordinator/core/core.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { GRID = 64, ROW = 16, VICTIM = 0, ROUNDS = 60, CHUNKS = 240 };

static void open_grid(struct rig *r) {
	rig_init(r, 2);
	r->cfg.max_here = r->cfg.max_roster = GRID;
	r->cfg.row_size = ROW;
	r->cfg.n_chunks[0] = CHUNKS;
	r->cfg.final_round = ROUNDS + 1;
	rig_start(r);
	rig_join(r, GRID);
}

/* Returns the place of the victim, if `who` is of its row or of one of its columns; -1: neither. */
static int place_dealt_with(const struct rig *r, uint32_t who) {
	const struct document *d = rig_doc_of(r, who);
	if (d == NULL || document_find(d, who) < 0)
		return -1;
	for (int i = 0; i < d->n_members; i++)
		if (d->members[i].member == VICTIM)
			return d->members[i].place;
	for (int i = 0; i < d->n_column; i++)
		if (d->column[i].member == VICTIM)
			return d->column[i].place;
	return -1;
}

/* Returns the first `n` others of the victim's row: a set. */
static uint64_t row_mates(const struct rig *r, int n) {
	const struct document *d = rig_doc_of(r, VICTIM);
	uint64_t set = 0;
	for (int i = 0; i < d->n_members && n > 0; i++) {
		const bool other = d->members[i].member != VICTIM;
		set |= (uint64_t)other << d->members[i].member;
		n -= other;
	}
	assert_int_equal(n, 0);
	return set;
}

/* Reports for all until the attempt ends, or for seconds: member i accuses accused[i]; -1: nobody.
 * Returns true if it ends. */
static bool play_attempt(struct rig *r, const int *accused) {
	const uint32_t attempt = rig_doc(r)->attempt;
	for (int s = 0; s < 4 && rig_doc(r)->attempt == attempt; s++) {
		for (uint32_t i = 0; i < GRID; i++) {
			struct report rep = rig_report(r, i, WORKER_REDUCING);
			rig_accuse(&rep, accused[i] >= 0 ? UINT64_C(1) << accused[i] : 0);
			rig_send(r, i, &rep);
		}
		rig_wait(r, RIG_S);
	}
	return rig_doc(r)->attempt != attempt;
}

/* The liars accuse the victim, if they deal with it. */
static bool accuse(struct rig *r, uint64_t liars) {
	int accused[GRID];
	for (uint32_t i = 0; i < GRID; i++)
		accused[i] = liars >> i & 1 ? place_dealt_with(r, i) : -1;
	return play_attempt(r, accused);
}

/* One liar accuses the member at `place`. */
static bool accuse_place(struct rig *r, uint32_t liar, int place) {
	int accused[GRID];
	for (uint32_t i = 0; i < GRID; i++)
		accused[i] = i == liar ? place : -1;
	return play_attempt(r, accused);
}

/* All are ready, until those that are not left out are in the all-reduce. */
static void freeze(struct rig *r) {
	rig_wait(r, RIG_S / 10); /* reports of before do not show that one is alive */
	for (int pass = 0; rig_doc(r)->phase != RUN_REDUCE && pass < 20; pass++) {
		rig_say_all(r, GRID, pass == 0 ? WORKER_TRAINING : WORKER_READY);
		rig_wait(r, RIG_S);
	}
	assert_int_equal(rig_doc(r)->phase, RUN_REDUCE);
}

static void vote(struct rig *r) {
	const uint64_t round = rig_doc(r)->round;
	for (uint32_t i = 0; i < GRID && rig_doc(r)->round == round; i++)
		if (document_find(rig_doc_of(r, i), i) >= 0)
			rig_say(r, i, WORKER_VOTED);
	rig_expect(r, RUN_OPEN, round + 1, 0);
}

/* Returns the attempts lost; `excluded`: whether the victim was ever left out of rounds. */
static int lose_to(int n_liars, bool *excluded) {
	struct rig r;
	uint64_t liars = 0;
	int lost = 0;
	*excluded = false;
	open_grid(&r);
	for (int round = 0; round < ROUNDS; round++) {
		freeze(&r);
		liars = round == 0 ? row_mates(&r, n_liars) : liars;
		while (accuse(&r, liars))
			lost++;
		*excluded = rig_saw(&r, CORE_EVENT_EXCLUDED, VICTIM) || *excluded;
		vote(&r);
	}
	rig_release(&r);
	return lost;
}

static void test_fewer_than_an_eighth_exclude_nobody(void **state) {
	(void)state;
	for (int liars = 1; liars < GRID / 8; liars++) {
		bool excluded;
		const int lost = lose_to(liars, &excluded);
		print_message("%d of %d: %d attempts in %d rounds\n", liars, GRID, lost, ROUNDS);
		assert_false(excluded);
		assert_in_range(lost, 1, 2 * liars);
	}
}

/* Returns the place of an honest member that `liar` deals with, another one for each `turn`; -1:
 * the liar takes no part. */
static int next_place(const struct rig *r, uint32_t liar, int turn) {
	const struct document *d = rig_doc_of(r, liar);
	if (document_find(d, liar) < 0)
		return -1;
	int at = turn % (d->n_members - 1);
	at += at >= document_find(d, liar);
	return d->members[at].place;
}

/* One that accuses another one in each round is at odds with an eighth soon, and left out then. */
static void test_one_that_accuses_many_is_left_out(void **state) {
	(void)state;
	enum { LIAR = GRID - 1 };
	struct rig r;
	int lost = 0;
	open_grid(&r);
	for (int round = 0; round < ROUNDS; round++) {
		freeze(&r);
		const int place = next_place(&r, LIAR, round);
		lost += place >= 0 && accuse_place(&r, LIAR, place);
		vote(&r);
	}
	print_message("%d attempts in %d rounds\n", lost, ROUNDS);
	assert_in_range(lost, GRID / 8, GRID / 4);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fewer_than_an_eighth_exclude_nobody),
		cmocka_unit_test(test_one_that_accuses_many_is_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
