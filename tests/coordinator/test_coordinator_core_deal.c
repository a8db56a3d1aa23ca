/* test_coordinator_core_deal.c: who shares a row and who owns its columns, whatever the lines are,
 * whoever is behind a router, and whoever lies about being apart. */
#include <string.h>

#include "base/rng.h"
#include "base/rows.h"
#include "coordinator/core/apart.h"
#include "coordinator/core/deal.h"
#include "coordinator/core/rows.h"
#include "tests/common/check.h"

enum { N = NET_MAX_ROSTER, CHUNKS = 512, CLAIMS = 256 };

static struct deal_entry entries[N];
static uint16_t order[N];

/* Nobody is apart, and no row is known. */
static void begin(int n) {
	for (int i = 0; i < n; i++)
		entries[i] = (struct deal_entry){.level = DEAL_MIDDLE, .row = -1};
}

static void deal(int n, int n_rows) {
	deal_rows(entries, n, n_rows, NULL, 0, order);
}

static int row_at(int n, int n_rows, int place) {
	int row = 0;
	while (place >= rows_first(n, n_rows, row + 1))
		row++;
	return row;
}

/* Makes what was dealt the last roster. */
static void remember(int n, int n_rows) {
	for (int place = 0; place < n; place++) {
		const int row = row_at(n, n_rows, place);
		entries[order[place]].row = (int8_t)row;
		entries[order[place]].place = (uint16_t)(place - rows_first(n, n_rows, row));
	}
}

static void test_equal_members_stay_in_order(void **state) {
	(void)state;
	begin(N);
	for (int n_rows = 1; n_rows <= ROWS_MAX; n_rows += 31) {
		deal(N, n_rows);
		for (int i = 0; i < N; i++)
			assert_int_equal(order[i], i);
	}
}

/* Each row has as many of each level, give or take one; the best come first; everybody comes
 * once. */
static void test_each_row_gets_its_share_of_each_level(void **state) {
	(void)state;
	struct rv_rng rng = rv_rng_of(44, 1);
	for (int turn = 0; turn < 500; turn++) {
		const int n = 2 + (int)rv_rng_below(&rng, 300),
				  n_rows = 1 + (int)rv_rng_below(&rng, (uint64_t)(n < 32 ? n : 32));
		int least[DEAL_LEVELS], most[DEAL_LEVELS] = {0};
		bool seen[N] = {false};
		begin(n);
		for (int i = 0; i < n; i++)
			entries[i] =
				(struct deal_entry){.level = (uint8_t)(rv_rng_below(&rng, 4) * (DEAL_NONE / 4 + 1) % DEAL_LEVELS),
									.row = (int8_t)((int)rv_rng_below(&rng, 40) - 1),
									.place = (uint16_t)rv_rng_below(&rng, N)};
		deal(n, n_rows);
		memset(least, 127, sizeof least);
		for (int row = 0; row < n_rows; row++) {
			int count[DEAL_LEVELS] = {0};
			for (int place = rows_first(n, n_rows, row), before = 0; place < rows_first(n, n_rows, row + 1); place++) {
				const int level = entries[order[place]].level;
				assert_true(level >= before && !seen[order[place]]);
				before = level;
				seen[order[place]] = true;
				count[level]++;
			}
			for (int level = 0; level < DEAL_LEVELS; level++) {
				least[level] = count[level] < least[level] ? count[level] : least[level];
				most[level] = count[level] > most[level] ? count[level] : most[level];
			}
		}
		for (int level = 0; level < DEAL_LEVELS; level++)
			assert_in_range(most[level] - least[level], 0, 1);
	}
}

/* Levels of one member each leave it no choice of a row, but it changes with the nearest. */
static void test_two_that_are_apart_are_parted_whatever_their_levels(void **state) {
	(void)state;
	enum { MEMBERS = 7 };
	for (int n_rows = 2; n_rows <= 3; n_rows++)
		for (int i = 0; i < MEMBERS; i++)
			for (int j = 0; j < i; j++) {
				uint64_t apart[MEMBERS] = {0};
				int row[MEMBERS];
				apart[i] = UINT64_C(1) << j;
				apart[j] = UINT64_C(1) << i;
				begin(MEMBERS);
				for (int k = 0; k < MEMBERS; k++)
					entries[k].level = (uint8_t)k;
				deal_rows(entries, MEMBERS, n_rows, apart, 1, order);
				for (int place = 0; place < MEMBERS; place++)
					row[order[place]] = row_at(MEMBERS, n_rows, place);
				assert_int_not_equal(row[i], row[j]);
			}
}

/* One member in 16 is another one in the next round; links of all others last. */
static void test_those_who_stay_keep_their_rows(void **state) {
	(void)state;
	enum { ROWS = 16, MEMBERS = 256 };
	begin(MEMBERS);
	for (int i = 0; i < MEMBERS; i++)
		entries[i].level = (uint8_t)(DEAL_MIDDLE + i % 3);
	deal(MEMBERS, ROWS);
	remember(MEMBERS, ROWS);
	for (int i = 5; i < MEMBERS; i += 16)
		entries[i].row = -1;
	struct deal_entry before[MEMBERS];
	memcpy(before, entries, sizeof before);
	deal(MEMBERS, ROWS);
	for (int place = 0; place < MEMBERS; place++)
		if (before[order[place]].row >= 0)
			assert_int_equal(before[order[place]].row, row_at(MEMBERS, ROWS, place));
}

/* A member that leaves moves one other at most: the one that fills its place. */
static void test_positions_outlast_one_that_leaves(void **state) {
	(void)state;
	enum { MEMBERS = 100, ROWS = 10 };
	static struct deal_entry before[MEMBERS];
	for (int gone = 0; gone < MEMBERS; gone++) {
		int moved = 0;
		begin(MEMBERS);
		deal(MEMBERS, ROWS);
		remember(MEMBERS, ROWS);
		for (int i = gone; i < MEMBERS - 1; i++)
			entries[i] = entries[i + 1];
		memcpy(before, entries, sizeof before);
		deal(MEMBERS - 1, ROWS);
		for (int place = 0; place < MEMBERS - 1; place++) {
			const int row = row_at(MEMBERS - 1, ROWS, place);
			const struct deal_entry *e = &before[order[place]];
			moved += e->row != row || e->place != place - rows_first(MEMBERS - 1, ROWS, row);
		}
		assert_in_range(moved, 0, 1);
	}
}

static void test_levels_of_lines(void **state) {
	(void)state;
	const uint64_t rates[] = {2500000, 2400000, 0, 2900000, 13750000, 625000, 1, UINT64_MAX, 2500000, 2500000};
	uint8_t level[10];
	deal_lines(rates, 10, level);
	for (int i = 0; i < 4; i++)
		assert_int_equal(level[i], DEAL_MIDDLE);
	assert_int_equal(level[4], DEAL_MIDDLE - 5); /* 5.5 times the median: 1.2 x 1.44^4 = 5.16 */
	assert_int_equal(level[5], DEAL_MIDDLE + 4); /* a fourth */
	assert_int_equal(level[6], DEAL_LINES - 1);
	assert_int_equal(level[7], 0);
}

/* ---- rosters with members behind routers, and liars ---- */

struct roster {
	int n, routers, liars; /* the first `routers` reach only others; the last `liars` lie */
	int kept[N], n_kept;   /* those that are not left out */
	int row_size, n_owners;
	struct apart apart;
	uint64_t able[APART_WORDS];
	struct core_rows rows;
};
static struct roster roster;

static void claim(struct apart *a, int i, int j) {
	if (i != j && !set_has(apart_from(a, i), (uint32_t)j))
		apart_add(a, i, j);
}

static void find_apart(struct roster *r, uint64_t seed) {
	struct rv_rng rng = rv_rng_of(seed, 3);
	apart_init(&r->apart, r->n);
	for (int i = 0; i < r->routers; i++)
		for (int j = 0; j < i; j++)
			claim(&r->apart, i, j);
	for (int i = r->n - r->liars; i < r->n; i++) {
		apart_note_claims(&r->apart, i, CLAIMS);
		const int first = (int)rv_rng_below(&rng, (uint64_t)r->n), most = 1 + (int)rv_rng_below(&rng, CLAIMS);
		for (int k = 0; k < most; k++)
			claim(&r->apart, i, (first + k) % r->n);
	}
}

/* As find_apart, without those that are left out. */
static void leave_out(struct roster *r) {
	static struct apart all;
	all = r->apart;
	r->n_kept = 0;
	for (int i = 0; i < r->n; i++)
		if (!apart_is_outcast(&all, r->able, i))
			r->kept[r->n_kept++] = i;
	apart_init(&r->apart, r->n_kept);
	for (int i = 0; i < r->n_kept; i++) {
		apart_note_claims(&r->apart, i, r->kept[i] >= r->n - r->liars ? CLAIMS : 0);
		for (int j = 0; j < i; j++)
			if (set_has(apart_from(&all, r->kept[i]), (uint32_t)r->kept[j]))
				apart_add(&r->apart, i, j);
	}
	apart_find_able(&r->apart, apart_few(rows_choose(r->n_kept, NET_MAX_ROW)), r->able);
}

/* Takes one of two owners of a column that are apart from `owners`; returns false if there are
 * none. */
static bool part_one(const struct roster *r, const struct apart *placed, uint64_t *owners) {
	for (int i = 0; i < r->n_kept; i++)
		for (int j = set_next(apart_from(placed, i), 0, placed->words); j >= 0;
			 j = set_next(apart_from(placed, i), j + 1, placed->words)) {
			const bool both = set_has(owners, (uint32_t)i) && set_has(owners, (uint32_t)j);
			if (both && core_rows_deal(&r->rows, i, j)) {
				set_drop(owners, (uint32_t)(placed->from[i] > placed->from[j] ? i : j));
				return true;
			}
		}
	return false;
}

/* Deals those that are kept, as the core does, and lays out the rows. */
static void lay_out(struct roster *r) {
	const int n = r->n_kept, n_rows = rows_choose(n, r->row_size);
	uint64_t owners[APART_WORDS] = {0};
	static const uint64_t none[APART_WORDS];
	static struct apart placed;
	uint8_t row[N];
	int place_of[N];
	begin(n);
	for (int i = 0; i < n; i++)
		entries[i].level = set_has(r->able, (uint32_t)i) ? DEAL_MIDDLE : DEAL_NONE;
	deal_rows(entries, n, n_rows, r->apart.of, r->apart.words, order);
	for (int place = 0; place < n; place++) {
		row[place] = (uint8_t)row_at(n, n_rows, place);
		place_of[order[place]] = place;
		if (set_has(r->able, order[place]))
			set_add(owners, (uint32_t)place);
	}
	apart_init(&placed, n);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			if (set_has(apart_from(&r->apart, i), (uint32_t)j))
				apart_add(&placed, place_of[i], place_of[j]);
	apart_drop_in_rows(&placed, row, owners);
	const struct core_lines lines = {owners, none, NULL};
	do
		core_rows_lay_out(&r->rows, n, r->row_size, CHUNKS, &lines, 1);
	while (part_one(r, &placed, owners));
	r->n_owners = set_count(owners, APART_WORDS);
	for (int i = 0; i < n; i++) { /* the one that owns reaches all that it deals with */
		const bool owns = core_rows_owned(&r->rows, i) > 0;
		for (int j = set_next(apart_from(&placed, i), 0, placed.words); owns && j >= 0;
			 j = set_next(apart_from(&placed, i), j + 1, placed.words))
			assert_false(core_rows_deal(&r->rows, i, j));
	}
}

/* Returns how much the most loaded owner has, in parts of what it had if all honest members that
 * reach everybody owned as much. */
static double worst_load(const struct roster *r) {
	const int honest = r->n - r->routers - r->liars;
	uint32_t most = 0;
	for (int i = 0; i < r->n_kept; i++) {
		const uint32_t owned = core_rows_owned(&r->rows, i);
		most = owned > most ? owned : most;
	}
	return (double)(most - 1) * honest / r->rows.plan.n_rows / CHUNKS; /* a chunk more or less is rounding */
}

static void one_roster(int n, int routers, int liars, uint64_t seed) {
	roster.n = n;
	roster.routers = routers;
	roster.liars = liars;
	find_apart(&roster, seed);
	roster.row_size = NET_MAX_ROW;
	apart_find_able(&roster.apart, apart_few(rows_choose(n, NET_MAX_ROW)), roster.able);
	leave_out(&roster);
	if (rows_choose(roster.n_kept, NET_MAX_ROW) > 1)
		lay_out(&roster);
}

/* Half of the members are behind routers, and up to one for each row lies: no owner has more than
 * twice its part, and there are at least half as many columns as honest owners in a row. */
static void test_columns_stay_many(void **state) {
	(void)state;
	struct rv_rng rng = rv_rng_of(44, 2);
	double worst = 0, fewest = 2;
	for (int turn = 0; turn < 1500; turn++) {
		const int n = 65 + (int)rv_rng_below(&rng, turn % 10 == 0 ? 960 : 300), rows = rows_choose(n, NET_MAX_ROW);
		const int routers = turn % 3 == 0 ? 0 : n / 2, liars = (int)rv_rng_below(&rng, (uint64_t)rows + 1);
		one_roster(n, routers, liars, (uint64_t)turn);
		if (rows_choose(roster.n_kept, NET_MAX_ROW) == 1)
			continue;
		const double load = worst_load(&roster), honest = (double)(n - routers - liars) / roster.rows.plan.n_rows;
		const double columns = roster.rows.plan.n_columns / (honest < NET_MAX_ROW ? honest : NET_MAX_ROW);
		if (load > worst || columns < fewest)
			print_message(
				"%d members, %d behind routers, %d liars: load %.2f, %d columns for %.1f honest owners a row\n", n,
				routers, liars, load, roster.rows.plan.n_columns, honest);
		worst = load > worst ? load : worst;
		fewest = columns < fewest ? columns : fewest;
	}
	assert_true(worst <= 2);
	assert_true(fewest >= 0.5);
}

/* One that says it is apart from everybody it can name costs itself only. */
static void test_a_lie_costs_the_liar(void **state) {
	(void)state;
	for (int n = 65; n <= N; n += 137) {
		one_roster(n, 0, 0, 7);
		const int columns = roster.rows.plan.n_columns;
		one_roster(n, 0, 1, 7);
		for (int i = 0; i < roster.n_kept; i++)
			if (set_has(roster.able, (uint32_t)i))
				assert_int_not_equal(roster.kept[i], n - 1);
		assert_in_range(roster.n_kept, n - 1, n);
		assert_in_range(roster.rows.plan.n_columns, columns - 1 - columns / 4, NET_MAX_ROW);
	}
}

/* ---- members that let no link with some come up ---- */

/* Each of the first `refusers` of n members lets none of `each` others reach it, drawn by lot from
 * the `victims` after them; all say so, or say nothing. Returns how many of the others may own. */
static int honest_owners(int n, int refusers, int each, int victims, bool say, uint64_t seed) {
	struct rv_rng rng = rv_rng_of(seed, 4);
	int honest = 0;
	roster.n = roster.n_kept = n;
	roster.row_size = NET_MAX_ROW;
	roster.routers = roster.liars = 0;
	apart_init(&roster.apart, n);
	for (int i = 0; i < refusers; i++)
		for (int k = 0; k < each; k++)
			claim(&roster.apart, i, refusers + (each == 1 ? i % victims : (int)rv_rng_below(&rng, (uint64_t)victims)));
	for (int i = 0; i < n; i++)
		apart_note_claims(&roster.apart, i, i >= refusers || say ? roster.apart.from[i] : 0);
	apart_find_able(&roster.apart, apart_few(rows_choose(n, NET_MAX_ROW)), roster.able);
	for (int i = 0; i < n; i++)
		roster.kept[i] = i;
	lay_out(&roster);
	for (int i = 0; i < n; i++)
		honest += order[i] >= refusers && core_rows_owned(&roster.rows, i) > 0;
	return honest;
}

/* A quarter of 100 to 1,024 members each refuse one other, or a few drawn by lot; or two refuse the
 * same one: as many honest members own chunks as if nobody did (some own none where a row has more
 * owners than there are columns). If each refuses more than a few, they keep about as many from
 * owning as they are. */
static void test_those_who_refuse_keep_few_from_owning(void **state) {
	(void)state;
	for (int n = 100; n <= N; n += 231) {
		const int few = apart_few(rows_choose(n, NET_MAX_ROW)), quarter = n / 4;
		const int all = honest_owners(n, quarter, 0, quarter, false, 1);
		for (int say = 0; say < 2; say++) {
			const int one = honest_owners(n, quarter, 1, quarter, say, 2),
					  several = honest_owners(n, quarter, few / 2, quarter, say, 3),
					  two = honest_owners(n, 2, 1, 1, say, 4), all_two = honest_owners(n, 2, 0, 1, say, 4);
			const int many = honest_owners(n, quarter, few + 1, quarter, say, 5);
			print_message(
				"%d members, %d refuse one: %d of %d others own; %d each: %d, %d each: %d; two one: %d of %d\n", n,
				quarter, one, all, few / 2, several, few + 1, many, two, all_two);
			assert_in_range(many, all - quarter - quarter / 8, n);
			assert_in_range(one, all - all / 20, n);
			assert_in_range(several, all - all / 10, n);
			assert_int_equal(two, all_two);
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_members_stay_in_order),
		cmocka_unit_test(test_each_row_gets_its_share_of_each_level),
		cmocka_unit_test(test_two_that_are_apart_are_parted_whatever_their_levels),
		cmocka_unit_test(test_those_who_stay_keep_their_rows),
		cmocka_unit_test(test_positions_outlast_one_that_leaves),
		cmocka_unit_test(test_levels_of_lines),
		cmocka_unit_test(test_columns_stay_many),
		cmocka_unit_test(test_a_lie_costs_the_liar),
		cmocka_unit_test(test_those_who_refuse_keep_few_from_owning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
