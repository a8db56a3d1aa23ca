/* The ownership map: it covers every chunk once, follows what lines carry, and survivors keep what
 * they own. */

#include "base/rng.h"
#include "coordinator/core/internal.h"
#include "tests/common/check.h"

enum { CHUNKS_MAX = 5000 };

static const uint64_t unknown[NET_MAX_ROW];

static struct core_owners all_of(uint64_t set) {
	return (struct core_owners){.all = set};
}

/* Owner of every chunk; asserts that the ranges ascend, touch, and are not empty. */
static void owners_of(const struct owner_range *ranges, int n_ranges, uint32_t n_chunks, uint16_t *owner) {
	uint32_t next = 0;
	for (int i = 0; i < n_ranges; i++) {
		assert_int_equal(ranges[i].first, next);
		assert_true(ranges[i].count > 0);
		for (uint32_t k = 0; k < ranges[i].count; k++)
			owner[next++] = ranges[i].owner;
	}
	assert_int_equal(next, n_chunks);
}

static void test_split_is_equal(void **state) {
	(void)state;
	static struct owner_range ranges[NET_MAX_RANGES];
	static uint16_t owner[CHUNKS_MAX];
	const uint32_t sizes[] = {1, 3, 7, 64, 65, 127, 1000, 4999};
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		for (int n = 1; n <= NET_MAX_ROW; n++) {
			uint32_t counts[NET_MAX_ROW] = {0};
			uint16_t n_ranges = core_ownership_split(sizes[s], n, all_of(core_first(n)), unknown, ranges);
			owners_of(ranges, n_ranges, sizes[s], owner);
			for (uint32_t c = 0; c < sizes[s]; c++)
				counts[owner[c]]++;
			for (int i = 0; i < n; i++)
				assert_in_range(counts[i], sizes[s] / (uint32_t)n, sizes[s] / (uint32_t)n + 1);
		}
	}
}

/* New index of the survivor with old index i. */
static uint16_t renumbered(uint64_t keep, uint16_t i) {
	return (uint16_t)core_count(keep & core_first(i));
}

static void check_hand_over(const uint16_t *before, const uint16_t *after, uint32_t n_chunks, uint64_t keep) {
	uint32_t gained[NET_MAX_ROW] = {0}, freed = 0;
	uint32_t n = (uint32_t)core_count(keep);
	for (uint32_t c = 0; c < n_chunks; c++) {
		assert_true(after[c] < n);
		if (keep & core_bit(before[c])) {
			assert_int_equal(after[c], renumbered(keep, before[c]));
			continue;
		}
		freed++;
		gained[after[c]]++;
	}
	for (uint32_t i = 0; i < n; i++)
		assert_in_range(gained[i], freed / n, freed / n + 1);
}

/* From 64 participants down to one, one or several dying at a time. */
static void test_survivors_keep_their_chunks(void **state) {
	(void)state;
	static struct owner_range ranges[NET_MAX_RANGES];
	static uint16_t before[CHUNKS_MAX], after[CHUNKS_MAX];
	struct rv_rng rng = rv_rng_of(1, 2);
	for (int trial = 0; trial < 50; trial++) {
		uint32_t n_chunks = 1 + (uint32_t)rv_rng_below(&rng, CHUNKS_MAX - 1);
		int n = NET_MAX_ROW;
		uint16_t n_ranges = core_ownership_split(n_chunks, n, all_of(core_first(n)), unknown, ranges);
		while (n > 1) {
			owners_of(ranges, n_ranges, n_chunks, before);
			uint64_t keep = core_first(n);
			for (uint64_t dead = 1 + rv_rng_below(&rng, 3); dead > 0 && core_count(keep) > 1; dead--)
				keep &= ~core_bit((uint32_t)rv_rng_below(&rng, (uint64_t)n));
			if (keep == 0)
				continue;
			n_ranges = core_ownership_hand_over(ranges, n_ranges, keep, all_of(core_first(core_count(keep))), unknown);
			owners_of(ranges, n_ranges, n_chunks, after);
			check_hand_over(before, after, n_chunks, keep);
			n = core_count(keep);
		}
		assert_int_equal(n_ranges, 1);
	}
}

/* ---- by bandwidth ---- */

/* The model of core/shares.c in floating point, to check it by: when the last owner is done. */
static double done_at(uint32_t n_chunks, int n, const uint64_t *rates, const uint32_t *share) {
	double worst = 0;
	for (int i = 0; i < n; i++) {
		double at = ((double)n_chunks + (double)(n - 2) * share[i]) / (double)rates[i];
		worst = at > worst ? at : worst;
	}
	return worst;
}

static uint32_t sum_of(const uint32_t *share, int n) {
	uint32_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += share[i];
	return sum;
}

static void equal_shares(uint32_t n_chunks, int n, const uint32_t *have, uint32_t *share) {
	core_shares(n_chunks, n, all_of(core_first(n)), unknown, have, share);
}

/* Rates within a factor of 1000 of each other, as lines have. */
static void draw_rates(struct rv_rng *rng, int n, uint64_t *rates) {
	uint64_t spread = 1 + rv_rng_below(rng, 1000);
	for (int i = 0; i < n; i++)
		rates[i] = 100000 * (1 + rv_rng_below(rng, spread));
}

static void check_shares(uint32_t n_chunks, int n, const uint64_t *rates, const uint32_t *have) {
	uint32_t share[NET_MAX_ROW], equal[NET_MAX_ROW];
	uint32_t most = 2 * ((n_chunks + (uint32_t)n - 1) / (uint32_t)n);
	core_shares(n_chunks, n, all_of(core_first(n)), rates, have, share);
	equal_shares(n_chunks, n, have, equal);
	assert_int_equal(sum_of(share, n), n_chunks);
	for (int i = 0; i < n; i++) {
		assert_true(share[i] >= have[i]);
		assert_true(share[i] <= (have[i] > most ? have[i] : most));
	}
	/* The integers round rates to 1/4096 of the fastest. */
	assert_true(done_at(n_chunks, n, rates, share) <= done_at(n_chunks, n, rates, equal) * 1.1);
}

static void test_shares_are_never_worse_than_equal(void **state) {
	(void)state;
	struct rv_rng rng = rv_rng_of(3, 4);
	for (int trial = 0; trial < 4000; trial++) {
		uint64_t rates[NET_MAX_ROW];
		uint32_t have[NET_MAX_ROW] = {0};
		int n = 1 + (int)rv_rng_below(&rng, NET_MAX_ROW);
		uint32_t n_chunks = 1 + (uint32_t)rv_rng_below(&rng, trial % 2 ? 200 : NET_MAX_CHUNKS);
		draw_rates(&rng, n, rates);
		for (int i = 0; trial % 3 == 0 && i < n; i++)
			have[i] = (uint32_t)rv_rng_below(&rng, n_chunks / (uint32_t)n + 1);
		check_shares(n_chunks, n, rates, have);
	}
}

static void test_a_faster_line_owns_no_less(void **state) {
	(void)state;
	static const uint32_t none[NET_MAX_ROW];
	struct rv_rng rng = rv_rng_of(5, 6);
	for (int trial = 0; trial < 2000; trial++) {
		uint64_t rates[NET_MAX_ROW];
		uint32_t share[NET_MAX_ROW];
		int n = 3 + (int)rv_rng_below(&rng, NET_MAX_ROW - 2);
		uint32_t n_chunks = 1 + (uint32_t)rv_rng_below(&rng, 5000);
		draw_rates(&rng, n, rates);
		core_shares(n_chunks, n, all_of(core_first(n)), rates, none, share);
		for (int i = 0; i < n; i++)
			for (int j = 0; j < n; j++)
				if (rates[i] > rates[j])
					assert_true(share[i] + 1 >= share[j]); /* equal shares differ by one chunk */
	}
}

static void test_equal_or_unknown_rates_give_equal_shares(void **state) {
	(void)state;
	static const uint32_t none[NET_MAX_ROW];
	for (int n = 1; n <= NET_MAX_ROW; n++) {
		uint64_t same[NET_MAX_ROW], nearly[NET_MAX_ROW];
		uint32_t share[NET_MAX_ROW], equal[NET_MAX_ROW];
		for (int i = 0; i < n; i++) {
			same[i] = 2500000;
			nearly[i] = 2500000 + 10000u * (uint64_t)(i % 5);
		}
		equal_shares(1000, n, none, equal);
		core_shares(1000, n, all_of(core_first(n)), same, none, share);
		assert_memory_equal(share, equal, (size_t)n * sizeof share[0]);
		core_shares(1000, n, all_of(core_first(n)), nearly, none, share);
		assert_memory_equal(share, equal, (size_t)n * sizeof share[0]);
	}
}

/* Recorded on four equal lines of 100 Mbit/s, round trips of 40 ms, by the meter that counted what
 * sockets swallowed, on a machine with nothing else to do and on a crowded one. */
static void test_noise_of_equal_lines_moves_no_share(void **state) {
	(void)state;
	static const uint32_t none[NET_MAX_ROW];
	static const uint64_t noisy[][4] = {
		{2347910, 2564649, 2513008, 2503838},    {2367999, 2438054, 2364130, 2401066},
		{2374769, 2416561, 2319183, 2401066},    {2419016, 2301973, 2307354, 2368107},
		{8105149, 7896078, 9550893, 8755552},    {6512902, 7003736, 6693978, 7690999},
		{5969468, 5936105, 5630470, 5561602},    {10946794, 10676449, 10530642, 9377892},
		{11936604, 11878301, 10893425, 10641378}};
	const uint32_t equal[] = {61, 61, 61, 61};
	for (size_t i = 0; i < sizeof noisy / sizeof noisy[0]; i++) {
		uint32_t share[4];
		core_shares(244, 4, all_of(core_first(4)), noisy[i], none, share);
		assert_memory_equal(share, equal, sizeof equal);
	}
}

/* The same noise on the fast lines hides no slow one, which gets what the linear program gives it:
 * nothing at a tenth, less at two thirds. */
static void test_a_slow_line_is_seen_through_noise(void **state) {
	(void)state;
	static const uint32_t none[NET_MAX_ROW];
	const uint64_t tenth[] = {8105149, 790000, 9550893, 8755552}, two_thirds[] = {9105149, 6000000, 9550893, 8755552};
	uint32_t share[4];
	core_shares(240, 4, all_of(core_first(4)), tenth, none, share);
	const uint32_t thirds[] = {80, 0, 80, 80};
	assert_memory_equal(share, thirds, sizeof thirds);
	core_shares(240, 4, all_of(core_first(4)), two_thirds, none, share);
	assert_in_range(share[1], 8, 11);
	assert_in_range(share[0], 76, 78);
}

/* Four workers, one with a tenth of the line: by the model 15 C / r with equal parts, 10 C / r
 * without. */
static void test_a_slow_line_owns_nothing_and_the_others_all(void **state) {
	(void)state;
	static const uint32_t none[NET_MAX_ROW];
	const uint64_t rates[] = {10000000, 1000000, 10000000, 10000000};
	uint32_t share[4];
	core_shares(999, 4, all_of(core_first(4)), rates, none, share);
	const uint32_t expect[] = {333, 0, 333, 333};
	assert_memory_equal(share, expect, sizeof expect);
	/* An unknown line counts as the median of the known ones. */
	const uint64_t one_unknown[] = {10000000, 1000000, 0, 10000000};
	core_shares(999, 4, all_of(core_first(4)), one_unknown, none, share);
	assert_memory_equal(share, expect, sizeof expect);
}

/* Everyone at the limits of what a report can say. */
/* What the others say of their lines still counts. */
static void test_one_absurd_rate_hides_nobodys(void **state) {
	(void)state;
	static const uint32_t none[NET_MAX_ROW];
	static const uint64_t rates[5] = {1000000, 10000000, 10000000, 10000000, 1ull << 40};
	uint32_t share[5];
	core_shares(1000, 5, all_of(core_first(5)), rates, none, share);
	assert_int_equal(sum_of(share, 5), 1000);
	assert_int_equal(share[0], 0);
	assert_true(share[1] > 150);
}

static void test_extreme_rates(void **state) {
	(void)state;
	static const uint32_t none[NET_MAX_ROW];
	const uint64_t rates[] = {UINT64_MAX, 1, 0, UINT64_MAX / 2};
	uint32_t share[4];
	core_shares(NET_MAX_CHUNKS, 4, all_of(core_first(4)), rates, none, share);
	assert_int_equal(sum_of(share, 4), NET_MAX_CHUNKS);
	uint64_t many[NET_MAX_ROW];
	uint32_t shares[NET_MAX_ROW];
	for (int i = 0; i < NET_MAX_ROW; i++)
		many[i] = i == 0 ? UINT64_MAX : 1;
	core_shares(NET_MAX_CHUNKS, NET_MAX_ROW, all_of(core_first(NET_MAX_ROW)), many, none, shares);
	assert_int_equal(sum_of(shares, NET_MAX_ROW), NET_MAX_CHUNKS);
}

/* The dead one's chunks go to the fast lines; what survivors own stays where it is. */
static void test_hand_over_follows_bandwidth(void **state) {
	(void)state;
	static struct owner_range ranges[NET_MAX_RANGES];
	uint32_t before[NET_MAX_ROW], after[NET_MAX_ROW];
	const uint64_t rates[] = {10000000, 1000000, 10000000, 10000000};
	uint16_t n = core_ownership_split(400, 4, all_of(core_first(4)), unknown, ranges);
	core_ownership_count(ranges, n, before);
	n = core_ownership_hand_over(ranges, n, 0x7, all_of(core_first(core_count(0x7))), rates);
	core_ownership_count(ranges, n, after);
	assert_int_equal(before[1], 100);
	assert_int_equal(after[1], 100);
	assert_int_equal(after[0], 150);
	assert_int_equal(after[2], 150);
}

/* Five of eight are owners: none has more than two of the eight parts, whatever it says of its
 * line. Three are too few for that: none has more than twice its part of the three. */
static void test_nobody_owns_more_than_two_parts_of_the_roster(void **state) {
	(void)state;
	static const uint32_t none[NET_MAX_ROW];
	static const uint64_t rates[] = {1ull << 40, 9000000, 1000000, 1000000, 1000000, 1000000, 1000000, 1000000};
	uint32_t share[NET_MAX_ROW];
	core_shares(800, 8, (struct core_owners){0x1f, 0}, rates, none, share);
	assert_int_equal(share[0], 200);
	assert_int_equal(sum_of(share, 8), 800);
	for (int i = 0; i < 8; i++)
		assert_true(share[i] <= 200 && (i < 5 || share[i] == 0));
	core_shares(800, 8, (struct core_owners){0x07, 0}, rates, none, share);
	assert_int_equal(sum_of(share, 8), 800);
	for (int i = 0; i < 3; i++)
		assert_true(share[i] <= 2 * 267);
}

/* ---- relayed owners ---- */

/* Whatever the lines carry: each relayed owner gets at most half of what another one gets in equal
 * parts, all chunks are owned, and the others keep within twice their part. */
static void check_relayed(int n, uint64_t relayed, uint32_t n_chunks, const uint64_t *rates) {
	static const uint32_t none[NET_MAX_ROW];
	uint32_t share[NET_MAX_ROW], halves = (uint32_t)(2 * n - core_count(relayed));
	core_shares(n_chunks, n, (struct core_owners){core_first(n), relayed}, rates, none, share);
	assert_int_equal(sum_of(share, n), n_chunks);
	for (int i = 0; i < n; i++) {
		bool half = (relayed & core_bit((uint32_t)i)) != 0;
		assert_true(share[i] <= (half ? n_chunks / halves + 1 : 2 * (2 * n_chunks / halves + 1)));
	}
}

static void test_relayed_owners_get_half_a_part(void **state) {
	(void)state;
	static const uint32_t none[NET_MAX_ROW];
	uint32_t share[NET_MAX_ROW];
	core_shares(900, 5, (struct core_owners){0x1f, 0x1e}, unknown, none, share);
	assert_int_equal(share[0], 300);
	for (int i = 1; i < 5; i++)
		assert_int_equal(share[i], 150);
	struct rv_rng rng = rv_rng_of(7, 8);
	uint64_t rates[NET_MAX_ROW];
	for (int trial = 0; trial < 2000; trial++) {
		int n = 3 + (int)rv_rng_below(&rng, NET_MAX_ROW - 2);
		uint64_t relayed =
			(rv_rng_below(&rng, UINT64_MAX) & core_first(n)) & ~core_bit((uint32_t)rv_rng_below(&rng, (uint64_t)n));
		draw_rates(&rng, n, rates);
		check_relayed(n, relayed, 1 + (uint32_t)rv_rng_below(&rng, CHUNKS_MAX), trial % 2 ? rates : unknown);
	}
}

/* The fastest line does not help: a relay carries what that owner gets. */
static void test_a_fast_relayed_line_owns_no_more(void **state) {
	(void)state;
	static const uint32_t none[NET_MAX_ROW];
	const uint64_t rates[] = {1000000, 100000000, 1000000, 1000000, 1000000};
	uint32_t share[NET_MAX_ROW];
	core_shares(900, 5, (struct core_owners){0x1f, 0x1e}, rates, none, share);
	assert_true(share[1] <= 150);
	assert_true(share[0] >= 300);
	assert_int_equal(sum_of(share, 5), 900);
}

/* The heirs of one that has died keep to it, too. */
static void test_relayed_heirs(void **state) {
	(void)state;
	static struct owner_range ranges[NET_MAX_RANGES];
	uint32_t owned[NET_MAX_ROW];
	uint16_t n = core_ownership_split(900, 5, (struct core_owners){0x1f, 0x1e}, unknown, ranges);
	n = core_ownership_hand_over(ranges, n, 0xf, (struct core_owners){0xf, 0xe}, unknown);
	core_ownership_count(ranges, n, owned);
	assert_int_equal(owned[0], 360);
	for (int i = 1; i < 4; i++)
		assert_int_equal(owned[i], 180);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split_is_equal),
		cmocka_unit_test(test_survivors_keep_their_chunks),
		cmocka_unit_test(test_shares_are_never_worse_than_equal),
		cmocka_unit_test(test_a_faster_line_owns_no_less),
		cmocka_unit_test(test_equal_or_unknown_rates_give_equal_shares),
		cmocka_unit_test(test_noise_of_equal_lines_moves_no_share),
		cmocka_unit_test(test_a_slow_line_is_seen_through_noise),
		cmocka_unit_test(test_a_slow_line_owns_nothing_and_the_others_all),
		cmocka_unit_test(test_one_absurd_rate_hides_nobodys),
		cmocka_unit_test(test_extreme_rates),
		cmocka_unit_test(test_hand_over_follows_bandwidth),
		cmocka_unit_test(test_nobody_owns_more_than_two_parts_of_the_roster),
		cmocka_unit_test(test_relayed_owners_get_half_a_part),
		cmocka_unit_test(test_a_fast_relayed_line_owns_no_more),
		cmocka_unit_test(test_relayed_heirs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
