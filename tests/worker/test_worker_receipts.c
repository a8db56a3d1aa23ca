/* test_worker_receipts.c: how fast contributions of others came: the second best of five, without
 * exchanges that say nothing. */
#include "tests/common/check.h"
#include "worker/mesh/receipts.h"

enum { S = 1000000, MB = 1000000 };

static void got(struct receipts *r, uint32_t member, uint64_t bytes, int64_t us) {
	const struct reduce_receipt one = {.member = member, .bytes = bytes, .us = us};
	receipts_note(r, &one, 1);
}

/* Returns what a report says of the member; 0: nothing. */
static uint64_t said_of(const struct receipts *r, uint32_t member) {
	static struct report rep;
	receipts_report(r, &rep);
	for (int i = 0; i < rep.n_receipts; i++)
		if (rep.receipts[i].member == member)
			return receipt_rate(rep.receipts[i].band);
	return 0;
}

static void test_the_second_best_counts(void **state) {
	(void)state;
	struct receipts r = {.n = 0};
	assert_int_equal(said_of(&r, 7), 0);
	got(&r, 7, MB, S);
	assert_in_range(said_of(&r, 7), 940000, 1060000);
	got(&r, 7, MB, S / 4);
	got(&r, 7, MB, S / 2);
	got(&r, 7, MB, 2 * S);
	assert_in_range(said_of(&r, 7), 1880000, 2120000);
	for (int i = 0; i < RECEIPTS_ROUNDS; i++)
		got(&r, 7, MB, 2 * S);
	assert_in_range(said_of(&r, 7), 470000, 530000);
}

static void test_next_to_nothing_and_an_instant_say_nothing(void **state) {
	(void)state;
	struct receipts r = {.n = 0};
	got(&r, 7, 65535, S);
	got(&r, 8, MB, S / 10 - 1);
	assert_int_equal(r.n, 0);
	got(&r, 7, 65536, S);
	got(&r, 8, MB, S / 10);
	assert_int_equal(r.n, 2);
}

/* Else it would count as slow for ever, if exchanges with its faster line are as short as that. */
static void test_an_instant_raises_who_counts_as_slower(void **state) {
	(void)state;
	struct receipts r = {.n = 0};
	got(&r, 7, MB, 2 * S);
	got(&r, 8, 20 * MB, S);
	for (int i = 0; i < RECEIPTS_ROUNDS; i++) {
		got(&r, 7, MB, S / 100);
		got(&r, 8, MB, S / 100);
	}
	assert_in_range(said_of(&r, 7), 9400000, 10600000); /* no more than a tenth of a second shows */
	assert_in_range(said_of(&r, 8), 18800000, 21200000);
}

static void test_reports_ascend_and_the_longest_ago_is_forgotten(void **state) {
	(void)state;
	struct receipts r = {.n = 0};
	struct report rep = {0};
	for (uint32_t m = NET_MAX_ROW; m > 0; m--)
		got(&r, 2 * m, MB, S);
	got(&r, 2 * NET_MAX_ROW, MB, S); /* met again */
	got(&r, 5, MB, S);
	receipts_report(&r, &rep);
	assert_int_equal(rep.n_receipts, NET_MAX_ROW);
	for (int i = 1; i < rep.n_receipts; i++)
		assert_true(rep.receipts[i].member > rep.receipts[i - 1].member);
	assert_true(said_of(&r, 5) > 0 && said_of(&r, 2 * NET_MAX_ROW) > 0);
	assert_int_equal(said_of(&r, 2 * NET_MAX_ROW - 2), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_second_best_counts),
		cmocka_unit_test(test_next_to_nothing_and_an_instant_say_nothing),
		cmocka_unit_test(test_an_instant_raises_who_counts_as_slower),
		cmocka_unit_test(test_reports_ascend_and_the_longest_ago_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
