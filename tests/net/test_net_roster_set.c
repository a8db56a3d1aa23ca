/* Sets of roster places, and lists of banned members. */
#include <string.h>

#include "net/banned.h"
#include "net/roster_set.h"
#include "tests/common/check.h"

static void test_sets_span_words(void **state) {
	(void)state;
	uint64_t set[ROSTER_SET_WORDS] = {0};
	static const uint16_t in[] = {0, 63, 64, 127, 700, NET_MAX_ROSTER - 1};
	assert_int_equal(roster_set_words(1), 1);
	assert_int_equal(roster_set_words(64), 1);
	assert_int_equal(roster_set_words(65), 2);
	assert_int_equal(roster_set_words(NET_MAX_ROSTER), ROSTER_SET_WORDS);
	for (int i = 0; i < 6; i++)
		roster_set_add(set, in[i]);
	assert_int_equal(roster_set_count(set, ROSTER_SET_WORDS), 6);
	assert_int_equal(roster_set_count(set, 1), 2);
	assert_true(roster_set_has(set, 64) && !roster_set_has(set, 65));
	uint16_t out[8];
	assert_int_equal(roster_set_list(set, ROSTER_SET_WORDS, out, 8), 6);
	assert_memory_equal(out, in, sizeof in);
	assert_int_equal(roster_set_list(set, ROSTER_SET_WORDS, out, 2), 2);
	roster_set_remove(set, 64);
	assert_int_equal(roster_set_next(set, ROSTER_SET_WORDS, 64), 127);
	assert_int_equal(roster_set_next(set, ROSTER_SET_WORDS, 128), 700);
	assert_int_equal(roster_set_next(set, ROSTER_SET_WORDS, NET_MAX_ROSTER), -1);
	assert_int_equal(roster_set_next(set, 1, 64), -1);
}

/* A list from outside may name places beyond the roster. */
static void test_a_set_of_a_list(void **state) {
	(void)state;
	uint64_t set[2] = {~UINT64_C(0), ~UINT64_C(0)};
	const uint16_t places[] = {3, 127, 128, UINT16_MAX};
	roster_set_of(set, 2, places, 4);
	assert_true(set[0] == 8 && set[1] == UINT64_C(1) << 63);
}

static void test_banned(void **state) {
	(void)state;
	const struct banned some = {.n = 3, .members = {2, 64, 4000000000u}}, none = {0};
	struct banned same = {.n = 3, .members = {2, 64, 4000000000u, 7}};
	assert_true(banned_has(&some, 2) && banned_has(&some, 64) && banned_has(&some, 4000000000u));
	assert_false(banned_has(&some, 0) || banned_has(&some, 63) || banned_has(&some, UINT32_MAX) ||
				 banned_has(&none, 2));
	assert_true(banned_equal(&some, &same) && !banned_equal(&some, &none));
	same.members[1] = 65;
	assert_false(banned_equal(&some, &same));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets_span_words),
		cmocka_unit_test(test_a_set_of_a_list),
		cmocka_unit_test(test_banned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
