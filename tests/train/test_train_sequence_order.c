/* test_train_sequence_order.c: a pass reads every training sequence once, and few shards at a
 * time. */
#include "tests/common/check.h"
#include "train/text/data.h"
#include "train/text/published/manifest.h"
#include "train/text/sequence_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t sizes_blocks[] = {1, 2, 49, 50, 129, 1023, 1024, 1500, 5000};

static void a_pass_reads_each_sequence_once(void **state) {
	(void)state;
	for (size_t s = 0; s < sizeof sizes_blocks / sizeof sizes_blocks[0]; s++) {
		const uint64_t n_blocks = sizes_blocks[s];
		const struct sequence_order o = sequence_order_of(n_blocks * DATA_BLOCK + 77, 50, 4000, s);
		const uint64_t length = sequence_order_length(&o);
		assert_int_equal(length, (n_blocks - n_blocks / 50) * 4);
		uint8_t *seen = calloc(n_blocks * 4, 1);
		assert_non_null(seen);
		for (uint64_t i = 0; i < 2 * length; i++) {
			const struct sequence_place p = sequence_order_at(&o, i);
			assert_int_equal(p.pass, i / length);
			assert_true(n_blocks >= ORDER_LEAST_BLOCKS || p.window == 0);
			assert_true(p.block < n_blocks && p.block % 50 != 49);
			assert_int_equal(p.token / DATA_BLOCK, p.block);
			assert_true(p.token % DATA_BLOCK + 4000 < DATA_BLOCK); /* its last target too */
			seen[p.block * 4 + p.token % DATA_BLOCK / 4000]++;
		}
		for (uint64_t b = 0; b < n_blocks * 4; b++)
			assert_int_equal(seen[b], b / 4 % 50 == 49 ? 0 : 2);
		free(seen);
	}
}

/* Whatever part is held out, a pass reads one window, which is one shard, after the other. */
static void a_pass_reads_one_shard_after_the_other(void **state) {
	(void)state;
	static const uint32_t holdouts[] = {2, 3, 49, 50, 64, 127, 128, 129, 1000};
	enum { WHOLE = 300, REST = 77 };
	for (size_t k = 0; k < sizeof holdouts / sizeof holdouts[0]; k++) {
		const uint64_t n_tokens = (uint64_t)(WHOLE * ORDER_WINDOW_BLOCKS + REST) * DATA_BLOCK;
		const struct sequence_order o = sequence_order_of(n_tokens, holdouts[k], 9000, k);
		const uint64_t length = sequence_order_length(&o);
		uint64_t shard = UINT64_MAX, changes = 0;
		for (uint64_t i = 0; i < length; i++) {
			const struct sequence_place p = sequence_order_at(&o, length + i);
			assert_int_equal(p.token / MANIFEST_SHARD_TOKENS, p.window);
			changes += p.window != shard;
			shard = p.window;
		}
		assert_int_equal(changes, WHOLE + 1);
		assert_int_equal(shard, WHOLE); /* what is behind the last whole one comes last */
	}
}

/* A short text is read from everywhere in it; of a long one, a window and the beginning of the
 * next. */
static void the_least_room_holds_what_is_read_in_turns(void **state) {
	(void)state;
	static const struct {
		int64_t blocks, shard_blocks, least_shards; /* 0: all */
	} cases[] = {{1023, 128, 0}, {64, 8, 0},      {1, 128, 0},      {1024, 128, 2}, {100000, 128, 2},
				 {5000, 32, 5},  {5000, 4096, 0}, {50000, 4096, 2}, {5000, 100, 3}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct manifest m = {.vocab = 256, .n_tokens = cases[i].blocks * DATA_BLOCK, .holdout_every = 50};
		m.shard_tokens = cases[i].shard_blocks * DATA_BLOCK;
		m.n_shards = (m.n_tokens + m.shard_tokens - 1) / m.shard_tokens;
		const uint64_t all = (uint64_t)(m.n_tokens * 2 + m.n_shards * 1024);
		assert_int_equal(manifest_text_bytes(&m), all);
		const uint64_t least =
			cases[i].least_shards == 0 ? all : (uint64_t)cases[i].least_shards * (uint64_t)(m.shard_tokens * 2 + 1024);
		assert_int_equal(least_room_bytes(&m), least);
	}
}

/* Of a terabyte: each stretch of a thousand sequences lies in a window or two. */
static void few_shards_are_read_at_a_time(void **state) {
	(void)state;
	enum { CONTEXT = 1024, STRETCH = 1000, LEAPS = 40 };
	const struct sequence_order o = sequence_order_of((uint64_t)500 << 30, 50, CONTEXT, 3);
	const uint64_t length = sequence_order_length(&o);
	for (uint64_t leap = 0; leap < LEAPS; leap++) {
		uint64_t shards[STRETCH], n = 0;
		for (uint64_t i = 0; i < STRETCH; i++) {
			const struct sequence_place p = sequence_order_at(&o, leap * (length / LEAPS) + i);
			const uint64_t shard = p.token / MANIFEST_SHARD_TOKENS;
			assert_int_equal((p.token + CONTEXT) / MANIFEST_SHARD_TOKENS, shard); /* never in two */
			uint64_t k = 0;
			while (k < n && shards[k] != shard)
				k++;
			shards[k] = shard;
			n += k == n;
		}
		assert_true(n <= 2);
	}
}

static void passes_and_seeds_differ(void **state) {
	(void)state;
	const struct sequence_order a = sequence_order_of(5000 * DATA_BLOCK, 50, 100, 1);
	const struct sequence_order b = sequence_order_of(5000 * DATA_BLOCK, 50, 100, 2);
	const uint64_t length = sequence_order_length(&a);
	int same_pass = 0, same_seed = 0, in_order = 0;
	for (uint64_t i = 0; i < 1000; i++) {
		const uint64_t token = sequence_order_at(&a, i).token;
		same_pass += token == sequence_order_at(&a, length + i).token;
		same_seed += token == sequence_order_at(&b, i).token;
		in_order += sequence_order_at(&a, i + 1).token > token;
	}
	assert_true(same_pass < 5 && same_seed < 5);
	assert_true(in_order > 400 && in_order < 600);
}

/* Returns Pearson's statistic of counts whose expectation is equal, less its expectation, in
 * standard deviations. */
static double excess(const uint32_t *counts, int n, double expected) {
	double chi2 = 0;
	for (int i = 0; i < n; i++)
		chi2 += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
	return (chi2 - (n - 1)) / sqrt(2.0 * (n - 1));
}

/* Every window is as likely at every place of a pass as any other, and every sequence at every
 * place of a window: counted over passes, with a fixed seed. */
static void windows_and_sequences_are_drawn_evenly(void **state) {
	(void)state;
	enum { WINDOWS = 16, PASSES = 4000, PER_BLOCK = 1, PARTS = 14, HOLDOUT = 64 /* two in each */ };
	const uint64_t blocks = (uint64_t)WINDOWS * ORDER_WINDOW_BLOCKS;
	const struct sequence_order o = sequence_order_of(blocks * DATA_BLOCK, HOLDOUT, DATA_BLOCK - 1, 7);
	const uint64_t length = sequence_order_length(&o), per_window = ORDER_WINDOW_BLOCKS - ORDER_WINDOW_BLOCKS / HOLDOUT;
	static uint32_t at_place[WINDOWS * WINDOWS], follows[WINDOWS * WINDOWS], in_window[PARTS * PARTS];
	assert_int_equal(o.per_block, PER_BLOCK);
	for (uint64_t pass = 0; pass < PASSES; pass++) {
		uint64_t before = WINDOWS;
		for (uint64_t place = 0; place < WINDOWS; place++) {
			const struct sequence_place p = sequence_order_at(&o, pass * length + place * per_window);
			assert_true(p.window < WINDOWS);
			at_place[place * WINDOWS + p.window]++;
			if (before < WINDOWS)
				follows[before * WINDOWS + p.window]++;
			before = p.window;
		}
		for (uint64_t part = 0; part < PARTS; part++) {
			const uint64_t i = part * (per_window / PARTS);
			const struct sequence_place p = sequence_order_at(&o, pass * length + i);
			const uint64_t of_train = p.block - p.block / HOLDOUT, in = of_train % per_window;
			in_window[part * PARTS + in / (per_window / PARTS)]++;
		}
	}
	assert_true(fabs(excess(at_place, WINDOWS * WINDOWS, (double)PASSES / WINDOWS)) < 5);
	assert_true(fabs(excess(in_window, PARTS * PARTS, (double)PASSES / PARTS)) < 5);
	for (int w = 0; w < WINDOWS; w++)
		assert_int_equal(follows[w * WINDOWS + w], 0); /* a pass takes each once */
	uint32_t pairs[WINDOWS * (WINDOWS - 1)];
	int n = 0;
	for (int a = 0; a < WINDOWS; a++)
		for (int b = 0; b < WINDOWS; b++)
			if (a != b)
				pairs[n++] = follows[a * WINDOWS + b];
	assert_true(fabs(excess(pairs, n, (double)PASSES * (WINDOWS - 1) / n)) < 5);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pass_reads_each_sequence_once),
		cmocka_unit_test(a_pass_reads_one_shard_after_the_other),
		cmocka_unit_test(the_least_room_holds_what_is_read_in_turns),
		cmocka_unit_test(few_shards_are_read_at_a_time),
		cmocka_unit_test(passes_and_seeds_differ),
		cmocka_unit_test(windows_and_sequences_are_drawn_evenly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
