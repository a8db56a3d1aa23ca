/* test_worker_text_reading.c: the shards of what a member is to read, in the order of need, and of
 * what it evaluates on. */
#include "tests/common/check.h"
#include "worker/text/text_reading.h"

static void shards_come_in_the_order_of_need(void **state) {
	const struct manifest m = {.n_tokens = 40LL << 20, .n_shards = 20, .shard_tokens = 2 << 20, .holdout_every = 50};
	const struct sequence_order o = sequence_order_of((uint64_t)m.n_tokens, 50, 1024, 7);
	struct reading r = {.first = 100, .n = 2, .pieces = {{.begin = 1800, .count = 300}, {.begin = 5000, .count = 2}}};
	uint64_t shards[64], few[2];
	bool seen[20] = {0};
	(void)state;
	const int n = text_reading_shards(&r, &o, &m, shards, 64);
	int expected = 0;
	for (int piece = 0; piece < r.n; piece++)
		for (uint64_t k = 0; k < r.pieces[piece].count; k++) {
			const uint64_t token = sequence_order_at(&o, r.pieces[piece].begin + k).token;
			const uint64_t shard = token / (uint64_t)m.shard_tokens;
			assert_int_equal((token + 1024) / (uint64_t)m.shard_tokens, shard);
			if (seen[shard])
				continue;
			seen[shard] = true;
			assert_true(expected < n);
			assert_int_equal(shards[expected++], shard);
		}
	assert_int_equal(n, expected);
	assert_int_equal(n, 3); /* a window is one; the first piece lies in two */
	assert_int_equal(text_reading_shards(&r, &o, &m, few, 2), 2);
	assert_true(few[0] == shards[0] && few[1] == shards[1]);
	r.n = 0;
	assert_int_equal(text_reading_shards(&r, &o, &m, shards, 64), 0);
}

/* 100 GB. */
static void an_evaluation_needs_few_shards(void **state) {
	const struct manifest m = {
		.n_tokens = INT64_C(50) << 30, .n_shards = 25600, .shard_tokens = 2 << 20, .holdout_every = 100};
	const struct heldout h = heldout_of((uint64_t)m.n_tokens, 100, 128, true);
	uint64_t shards[64];
	(void)state;
	assert_int_equal(text_heldout_shards(&h, &m, 32768, shards, 64), HELDOUT_PLACES);
	for (int i = 0; i < HELDOUT_PLACES; i++)
		assert_int_equal(shards[i] / (25600 / HELDOUT_PLACES), i);
	assert_int_equal(text_heldout_shards(&h, &m, 32768, shards, HELDOUT_PLACES), HELDOUT_PLACES);
	assert_int_equal(text_heldout_shards(&h, &m, 32768, shards, HELDOUT_PLACES - 1), 0);
	assert_int_equal(text_heldout_shards(&h, &m, 0, shards, 64), 0); /* all of it: not ahead */
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(shards_come_in_the_order_of_need),
									   cmocka_unit_test(an_evaluation_needs_few_shards)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
