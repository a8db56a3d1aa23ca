/* test_train_heldout.c: an evaluation reads each of its sequences once, none of them in training
 * text, and of a text that comes shard by shard from few shards. */
#include "tests/common/check.h"
#include "train/text/data.h"
#include "train/text/heldout.h"

#include <stdlib.h>

enum { SHARD_TOKENS = 128 * DATA_BLOCK };

/* Checks the sequences of an evaluation; returns in how many shards they lie. */
static int shards_of(const struct heldout *h, uint64_t used) {
	uint64_t last = 0, last_shard = UINT64_MAX;
	int shards = 0;
	for (uint64_t i = 0; i < used; i++) {
		const uint64_t sequence = heldout_choice(h, i, used), token = heldout_token(h, sequence);
		assert_true(i == 0 || sequence > last); /* so none twice */
		assert_true(sequence < heldout_sequences(h));
		assert_int_equal(token / DATA_BLOCK % h->holdout_every, h->holdout_every - 1);
		assert_true(token % DATA_BLOCK + h->context < DATA_BLOCK); /* its last target too */
		shards += token / SHARD_TOKENS != last_shard;
		last_shard = token / SHARD_TOKENS;
		last = sequence;
	}
	return shards;
}

/* A terabyte, and an evaluation by default: 32,768 tokens. */
static void an_evaluation_of_a_large_text_reads_eight_shards(void **state) {
	static const uint32_t contexts[] = {64, 128, 256, 1024, 4096, 8192};
	const uint64_t tokens = 500000000000;
	(void)state;
	for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++) {
		const struct heldout few = heldout_of(tokens, 100, contexts[i], true);
		const struct heldout all = heldout_of(tokens, 100, contexts[i], false);
		const uint64_t used = heldout_used(&few, 32768);
		assert_int_equal(used, 32768 / contexts[i]);
		if (contexts[i] <= 4096)
			assert_int_equal(shards_of(&few, used), HELDOUT_PLACES);
		assert_int_equal(shards_of(&all, used), used);
		/* Evenly spread: one in each eighth. */
		for (uint64_t place = 0; place < HELDOUT_PLACES && used >= HELDOUT_PLACES; place++) {
			const uint64_t token = heldout_token(&few, heldout_choice(&few, place * used / HELDOUT_PLACES, used));
			assert_int_equal(token / (tokens / HELDOUT_PLACES), place);
		}
	}
}

static void any_number_of_any_text_is_read_once(void **state) {
	static const uint64_t blocks[] = {2, 3, 7, 8, 9, 23, 100, 1000};
	(void)state;
	for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++)
		for (uint32_t every = 2; every <= 10; every += 4)
			for (int in_places = 0; in_places <= 1; in_places++) {
				const struct heldout h = heldout_of(blocks[b] * DATA_BLOCK + 5, every, 3000, in_places);
				assert_int_equal(h.n_blocks, blocks[b] / every);
				const uint64_t have = heldout_sequences(&h);
				for (uint64_t used = 1; used <= have; used++)
					(void)shards_of(&h, used);
				assert_true(have == 0 || heldout_used(&h, 0) == have);
			}
}

/* With more sequences than eight blocks have, it takes neighbours, and in the end all. */
static void a_larger_evaluation_takes_more_blocks(void **state) {
	const struct heldout h = heldout_of((uint64_t)100 * SHARD_TOKENS, 8, 128, true); /* 16 held out a shard */
	(void)state;
	assert_int_equal(shards_of(&h, 8 * 127), 8);
	assert_int_equal(shards_of(&h, 8 * 127 * 10), 4 + 4 * 2); /* ten blocks each; every other begins amid a shard */
	assert_int_equal(shards_of(&h, heldout_sequences(&h)), 100);
	assert_int_equal(heldout_choice(&h, 77, heldout_sequences(&h)), 77);
}

static void the_number_of_sequences_follows_from_tokens(void **state) {
	const struct heldout h = heldout_of((uint64_t)10 * DATA_BLOCK, 5, 1000, true); /* 2 blocks of 16 */
	(void)state;
	assert_int_equal(heldout_used(&h, 1), 1);
	assert_int_equal(heldout_used(&h, 5999), 5);
	assert_int_equal(heldout_used(&h, 32000), 32);
	assert_int_equal(heldout_used(&h, 99999), 32);
	assert_int_equal(heldout_used(&h, 0), 32);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(an_evaluation_of_a_large_text_reads_eight_shards),
									   cmocka_unit_test(any_number_of_any_text_is_read_once),
									   cmocka_unit_test(a_larger_evaluation_takes_more_blocks),
									   cmocka_unit_test(the_number_of_sequences_follows_from_tokens)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
