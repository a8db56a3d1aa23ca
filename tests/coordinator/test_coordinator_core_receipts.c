/* test_coordinator_core_receipts.c: what lines count with for ownership: not what members say of
 * themselves alone, nor what a few say of another. */
#include "coordinator/core/internal.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { WORKERS = 6, CHUNKS = 600, LINE = 2000000, HUGE_LINE = INT32_MAX, ROWS = 12, ROW = 4 };

/* What each says of its own line, and of those of others; 0: nothing. */
struct said {
	uint64_t own[ROWS], of[ROWS][ROWS];
};

static struct said all_alike(void) {
	struct said s;
	for (int i = 0; i < ROWS; i++) {
		s.own[i] = LINE;
		for (int j = 0; j < ROWS; j++)
			s.of[i][j] = i == j ? 0 : LINE;
	}
	return s;
}

static void open_run(struct rig *r, int n, uint32_t row_size) {
	rig_init(r, (uint32_t)n);
	r->cfg.row_size = row_size;
	r->cfg.n_chunks[0] = CHUNKS;
	rig_start(r);
	rig_join(r, n);
	rig_say_all(r, n, WORKER_TRAINING);
}

/* All are ready for a roster, which is frozen. */
static void freeze(struct rig *r, int n, const struct said *s) {
	for (uint32_t i = 0; i < (uint32_t)n; i++) {
		struct report rep = rig_report(r, i, WORKER_READY);
		rep.n_chunks = CHUNKS;
		rep.up_bytes_per_s = rep.down_bytes_per_s = s->own[i];
		for (uint32_t j = 0; j < (uint32_t)n; j++)
			if (s->of[i][j] > 0)
				rep.receipts[rep.n_receipts++] = (struct report_receipt){j, receipt_band(s->of[i][j])};
		rig_send(r, i, &rep);
	}
	assert_int_equal(rig_doc(r)->phase, RUN_REDUCE);
}

/* Returns what the line of member `i` counts with in the last roster. */
static uint64_t counted(const struct rig *r, uint32_t i) {
	const struct core_record *rec = rig_last(r, CORE_ROSTER);
	for (int k = 0; k < rec->n_members; k++)
		if (rec->members[k] == i)
			return rec->rates[k];
	fail_msg("member %u is not in the roster", i);
	return 0;
}

static uint32_t owned(const struct rig *r, uint32_t i) {
	return core_view(r->core, (uint32_t)core_find(r->core, i)).owned_chunks;
}

static void one_roster(struct rig *r, const struct said *s) {
	open_run(r, WORKERS, 0);
	freeze(r, WORKERS, s);
}

static bool is_about(uint64_t rate, uint64_t line) {
	return 16 * rate >= 15 * line && 16 * rate <= 17 * line;
}

/* Of two fast ones, and a liar that claims to be faster than all. */
static void test_who_claims_a_line_that_nobody_saw_owns_no_more(void **state) {
	(void)state;
	struct rig r;
	struct said s = all_alike();
	s.own[0] = HUGE_LINE;
	one_roster(&r, &s);
	assert_true(is_about(counted(&r, 0), LINE));
	for (uint32_t i = 0; i < WORKERS; i++)
		assert_int_equal(owned(&r, i), CHUNKS / WORKERS);
	rig_release(&r);
}

static void test_a_slow_liar_owns_what_a_slow_member_does(void **state) {
	(void)state;
	uint32_t honest = 0;
	for (int claims = 0; claims < 2; claims++) {
		struct rig r;
		struct said s = all_alike();
		s.own[0] = claims ? HUGE_LINE : LINE / 4;
		for (int i = 1; i < WORKERS; i++)
			s.of[i][0] = LINE / 4;
		one_roster(&r, &s);
		assert_true(owned(&r, 0) < CHUNKS / WORKERS / 2);
		assert_true(!claims || owned(&r, 0) <= honest + 1);
		honest = owned(&r, 0);
		rig_release(&r);
	}
}

static void test_what_lines_carry_still_decides(void **state) {
	(void)state;
	struct rig r;
	struct said s = all_alike();
	s.own[0] = s.own[1] = 4 * LINE;
	for (int i = 0; i < WORKERS; i++)
		s.of[i][0] = s.of[i][1] = i > 1 ? 4 * LINE : s.of[i][0];
	s.of[0][1] = s.of[1][0] = 4 * LINE;
	one_roster(&r, &s);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(is_about(counted(&r, i), 4 * LINE));
		assert_in_range(owned(&r, i), CHUNKS / WORKERS * 3 / 2, CORE_SHARE_MOST * CHUNKS / WORKERS);
	}
	rig_release(&r);
}

/* Two of six say that they got nothing from member 5, and all from each other. */
static void test_a_few_take_nobodys_chunks_away_nor_give_each_other_any(void **state) {
	(void)state;
	struct rig r;
	struct said s = all_alike();
	for (int liar = 0; liar < 2; liar++) {
		s.own[liar] = HUGE_LINE;
		s.of[liar][5] = 1;
		s.of[liar][1 - liar] = HUGE_LINE;
	}
	one_roster(&r, &s);
	for (uint32_t i = 0; i < WORKERS; i++) {
		assert_true(is_about(counted(&r, i), LINE));
		assert_int_equal(owned(&r, i), CHUNKS / WORKERS);
	}
	rig_release(&r);
}

/* ... nor do they as the only ones that have receipts. */
static void test_a_few_receipts_are_none(void **state) {
	(void)state;
	struct rig r;
	struct said s = all_alike();
	for (int i = 0; i < WORKERS; i++)
		for (int j = 0; j < WORKERS; j++)
			s.of[i][j] = i < 2 && i != j ? (j < 2 ? HUGE_LINE : 1) : 0;
	s.own[0] = s.own[1] = HUGE_LINE;
	s.own[5] = LINE / 8;
	one_roster(&r, &s);
	for (uint32_t i = 0; i < WORKERS; i++)
		assert_int_equal(counted(&r, i), i == 5 ? LINE / 8 : LINE);
	assert_true(owned(&r, 5) < CHUNKS / WORKERS / 2);
	assert_true(owned(&r, 0) <= owned(&r, 2) + 1);
	rig_release(&r);
}

static void test_who_says_nothing_counts_with_what_is_seen(void **state) {
	(void)state;
	struct rig r;
	struct said s = all_alike();
	s.own[0] = s.own[1] = 0;
	for (int i = 0; i < WORKERS; i++) {
		s.of[i][0] = i == 0 ? 0 : LINE / 8;
		s.of[i][1] = 0; /* of one of them nobody says anything either */
	}
	one_roster(&r, &s);
	assert_true(is_about(counted(&r, 0), LINE / 8));
	assert_int_equal(counted(&r, 1), 0);
	assert_true(owned(&r, 0) < CHUNKS / WORKERS / 2);
	rig_release(&r);
}

/* In a first round few lines are known: one that claims is not the median of them. */
static void test_lines_that_are_not_known_yet_are_no_witnesses(void **state) {
	(void)state;
	struct said s = {.own = {HUGE_LINE}};
	for (int known = 1; known < WORKERS; known++) {
		struct rig r;
		s.own[known] = LINE;
		one_roster(&r, &s);
		assert_int_equal(counted(&r, 0), LINE);
		for (uint32_t i = 0; i < WORKERS; i++)
			assert_int_equal(owned(&r, i), CHUNKS / WORKERS);
		rig_release(&r);
	}
}

/* In rows those count that were in the member's row: nine others that lie do not. */
static void test_rows_are_witnesses_of_their_own(void **state) {
	(void)state;
	struct rig r;
	struct said s = all_alike();
	uint32_t row[ROW];
	open_run(&r, ROWS, ROW);
	freeze(&r, ROWS, &s);
	memcpy(row, rig_last(&r, CORE_ROSTER)->members, sizeof row);
	rig_say_all(&r, ROWS, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	for (int i = 0; i < ROWS; i++) {
		bool mate = false;
		for (int k = 0; k < ROW; k++)
			mate = mate || row[k] == (uint32_t)i;
		s.of[i][row[0]] = mate ? s.of[i][row[0]] : 1;
	}
	freeze(&r, ROWS, &s);
	assert_true(is_about(counted(&r, row[0]), LINE));
	rig_release(&r);
}

static void test_a_restarted_coordinator_says_the_same(void **state) {
	(void)state;
	struct rig r;
	struct said s = all_alike();
	uint32_t before[WORKERS];
	for (int i = 1; i < WORKERS; i++)
		s.of[i][0] = LINE / 4;
	s.own[0] = HUGE_LINE;
	one_roster(&r, &s);
	for (uint32_t i = 0; i < WORKERS; i++)
		before[i] = owned(&r, i);
	rig_restart(&r);
	for (uint32_t i = 0; i < WORKERS; i++)
		assert_int_equal(owned(&r, i), before[i]);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_claims_a_line_that_nobody_saw_owns_no_more),
		cmocka_unit_test(test_a_slow_liar_owns_what_a_slow_member_does),
		cmocka_unit_test(test_what_lines_carry_still_decides),
		cmocka_unit_test(test_a_few_take_nobodys_chunks_away_nor_give_each_other_any),
		cmocka_unit_test(test_a_few_receipts_are_none),
		cmocka_unit_test(test_who_says_nothing_counts_with_what_is_seen),
		cmocka_unit_test(test_lines_that_are_not_known_yet_are_no_witnesses),
		cmocka_unit_test(test_rows_are_witnesses_of_their_own),
		cmocka_unit_test(test_a_restarted_coordinator_says_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
