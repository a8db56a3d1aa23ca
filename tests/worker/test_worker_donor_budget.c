/* How much of the state one member may be given (worker/transfer/donor_budget.h). */
#include "tests/common/check.h"
#include "worker/transfer/donor_budget.h"

enum { STATE = 1000 * 1000, ENTRY = 10 * 1000, WHO = 7 };
static const int64_t second_us = 1000 * 1000, hour_us = 3600 * 1000 * (int64_t)1000;

/* All that it may have at this time, in slices. */
static int64_t take_all(struct donor_budget *b, int64_t now_us, uint64_t round) {
	int64_t taken = 0;
	while (donor_budget_left(b, now_us, round, WHO) > 0) {
		donor_budget_charge(b, WHO, 100);
		taken += 100;
	}
	return taken;
}

static void it_is_two_states_and_comes_back_in_an_hour(void **state) {
	(void)state;
	struct donor_budget b = donor_budget_of(STATE, ENTRY);
	assert_int_equal(take_all(&b, 5 * second_us, 3), 2 * STATE);
	assert_int_equal(take_all(&b, 5 * second_us, 3), 0);
	assert_in_range(take_all(&b, 5 * second_us + hour_us / 4, 3), STATE / 2 - 100, STATE / 2 + 100);
	assert_in_range(take_all(&b, 5 * second_us + 100 * hour_us, 3), 2 * STATE - 100, 2 * STATE + 100);
}

/* Whoever is late each time needs each round's entry. */
static void every_round_brings_an_entry(void **state) {
	(void)state;
	struct donor_budget b = donor_budget_of(STATE, ENTRY);
	(void)take_all(&b, second_us, 3);
	assert_int_equal(take_all(&b, second_us, 4), ENTRY);
	assert_int_equal(take_all(&b, second_us, 4), 0);
	assert_int_equal(take_all(&b, second_us, 9), 5 * ENTRY);
	assert_int_equal(take_all(&b, second_us, 8), 0); /* the operator took rounds back */
	assert_int_equal(take_all(&b, second_us, UINT64_MAX), 2 * STATE);
}

static void it_says_when(void **state) {
	(void)state;
	struct donor_budget b = donor_budget_of(STATE, ENTRY);
	assert_int_equal(donor_budget_ready_us(&b, WHO), INT64_MIN);
	(void)take_all(&b, second_us, 3);
	donor_budget_charge(&b, WHO, STATE / 10);
	int64_t at_us = donor_budget_ready_us(&b, WHO);
	assert_in_range(at_us, second_us + hour_us / 20, second_us + hour_us / 20 + second_us);
	assert_true(donor_budget_left(&b, at_us - second_us, 3, WHO) <= 0);
	at_us = donor_budget_ready_us(&b, WHO);
	assert_true(donor_budget_left(&b, at_us, 3, WHO) > 0);
}

/* More members than are remembered: those that were given most keep their debts. */
static void the_greatest_debts_are_remembered(void **state) {
	(void)state;
	struct donor_budget b = donor_budget_of(STATE, ENTRY);
	(void)take_all(&b, second_us, 3);
	for (uint32_t m = 0; m < 3 * NET_MAX_PEERS; m++) {
		assert_int_equal(donor_budget_left(&b, second_us, 3, 4000000000u + m), 2 * STATE);
		donor_budget_charge(&b, 4000000000u + m, 100);
	}
	assert_int_equal(donor_budget_left(&b, second_us, 3, WHO), 0);
	assert_int_equal(donor_budget_left(&b, second_us, 3, 4000000000u + 3 * NET_MAX_PEERS - 1), 2 * STATE - 100);
}

/* Asked at every turn of the loop, it comes back as fast as when it is asked once. */
static void parts_of_a_byte_are_not_lost(void **state) {
	(void)state;
	struct donor_budget b = donor_budget_of(1000, 10); /* 0.55 bytes a second */
	(void)take_all(&b, 0, 3);
	int64_t left = 0;
	for (int64_t now_us = 0; now_us <= 360 * second_us; now_us += second_us / 10)
		left = donor_budget_left(&b, now_us, 3, WHO);
	assert_in_range(left, 100, 200);
}

static void members_have_their_own(void **state) {
	(void)state;
	struct donor_budget b = donor_budget_of(STATE, ENTRY);
	(void)take_all(&b, second_us, 3);
	assert_int_equal(donor_budget_left(&b, second_us, 3, WHO + 1), 2 * STATE);
}

static void none_is_no_limit(void **state) {
	(void)state;
	struct donor_budget b = donor_budget_of(0, 0);
	donor_budget_charge(&b, WHO, 1u << 30);
	assert_int_equal(donor_budget_left(&b, second_us, 3, WHO), INT64_MAX);
	assert_int_equal(donor_budget_ready_us(&b, WHO), INT64_MIN);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_two_states_and_comes_back_in_an_hour),
		cmocka_unit_test(every_round_brings_an_entry),
		cmocka_unit_test(it_says_when),
		cmocka_unit_test(parts_of_a_byte_are_not_lost),
		cmocka_unit_test(the_greatest_debts_are_remembered),
		cmocka_unit_test(members_have_their_own),
		cmocka_unit_test(none_is_no_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
