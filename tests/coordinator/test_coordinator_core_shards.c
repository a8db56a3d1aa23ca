/* The shard map: it covers every chunk once, equal parts, and survivors keep what they own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "coordinator/core_internal.h"

enum { CHUNKS_MAX = 5000 };

/* Owner of every chunk; asserts that the ranges ascend, touch, and are not empty. */
static void owners_of(const struct shard_range *ranges, int n_ranges, uint32_t n_chunks, uint16_t *owner) {
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
	static struct shard_range ranges[NET_MAX_RANGES];
	static uint16_t owner[CHUNKS_MAX];
	const uint32_t sizes[] = {1, 3, 7, 64, 65, 127, 1000, 4999};
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		for (int n = 1; n <= NET_MAX_MEMBERS; n++) {
			uint32_t counts[NET_MAX_MEMBERS] = {0};
			uint16_t n_ranges = core_shards_split(sizes[s], n, ranges);
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
	uint32_t gained[NET_MAX_MEMBERS] = {0}, freed = 0;
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
	static struct shard_range ranges[NET_MAX_RANGES];
	static uint16_t before[CHUNKS_MAX], after[CHUNKS_MAX];
	struct rv_rng rng = rv_rng_of(1, 2);
	for (int trial = 0; trial < 50; trial++) {
		uint32_t n_chunks = 1 + (uint32_t)rv_rng_below(&rng, CHUNKS_MAX - 1);
		int n = NET_MAX_MEMBERS;
		uint16_t n_ranges = core_shards_split(n_chunks, n, ranges);
		while (n > 1) {
			owners_of(ranges, n_ranges, n_chunks, before);
			uint64_t keep = core_first(n);
			for (uint64_t dead = 1 + rv_rng_below(&rng, 3); dead > 0 && core_count(keep) > 1; dead--)
				keep &= ~core_bit((uint32_t)rv_rng_below(&rng, (uint64_t)n));
			if (keep == 0)
				continue;
			n_ranges = core_shards_hand_over(ranges, n_ranges, keep);
			owners_of(ranges, n_ranges, n_chunks, after);
			check_hand_over(before, after, n_chunks, keep);
			n = core_count(keep);
		}
		assert_int_equal(n_ranges, 1);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split_is_equal),
		cmocka_unit_test(test_survivors_keep_their_chunks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
