/* Which members test how a worker is reached, what comes of their answers, and how little of it
 * anybody can cause (coordinator/service/reach_tests.h). */
#include "coordinator/service/reach_tests.h"

#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>

#define S INT64_C(1000000)

static struct reach_tests tests;
static int64_t now_us;

static int set_up(void **state) {
	(void)state;
	reach_tests_init(&tests, 1000);
	now_us = 5 * S;
	return 0;
}

static struct reach_helper helper(uint32_t member, const char *host) {
	return (struct reach_helper){.member = member, .host = host};
}

static struct reach_question question(uint8_t key, const char *host, const char *addr) {
	struct reach_question q = {.key = {key}, .n = addr != NULL};
	(void)snprintf(q.host, sizeof q.host, "%s", host);
	(void)snprintf(q.addrs[0].addr, sizeof q.addrs[0].addr, "%s", addr != NULL ? addr : "");
	return q;
}

static const struct reach_question at_nine = {
	.key = {9}, .host = "11.0.0.9", .n = 2, .addrs = {{"11.0.0.9:7434"}, {"11.0.0.9:40001"}}};

static struct reach_finding ask(const struct reach_question *q, const struct reach_helper *helpers, int n) {
	struct reach_finding f;
	assert_ok(reach_tests_ask(&tests, now_us, q, helpers, n, &f, &et));
	return f;
}

static enum rv_err refused(const struct reach_question *q, const struct reach_helper *helpers, int n) {
	struct reach_finding f;
	struct rv_errtext et = {0};
	enum rv_err e = reach_tests_ask(&tests, now_us, q, helpers, n, &f, &et);
	assert_true(e == RV_OK || et.text[0] != '\0');
	return e;
}

static struct probe next(uint32_t member) {
	struct probes p = {0};
	assert_true(reach_tests_next(&tests, now_us, member, &p));
	return p.list[0];
}

static bool is_asked(uint32_t member) {
	struct probes p;
	return reach_tests_next(&tests, now_us, member, &p);
}

static void take(uint32_t member, uint64_t id, uint8_t n, uint8_t first, uint8_t second) {
	const struct probed_list all = {.n = 1, .list = {{.id = id, .n = n, .results = {first, second}}}};
	reach_tests_take(&tests, now_us, member, &all);
}

static void answer(uint32_t member, uint8_t first, uint8_t second) {
	const struct probe p = next(member);
	take(member, p.id, p.n, first, p.n > 1 ? second : 0);
	assert_true(!is_asked(member) || next(member).id != p.id);
}

static void two_members_at_other_sites_dial_and_the_best_answer_counts(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(0, "11.0.0.9"), helper(1, "11.0.0.1"), helper(2, "11.0.0.1"),
									   helper(3, "11.0.0.3"), helper(4, "11.0.0.4")};
	struct reach_finding f = ask(&at_nine, all, 5);
	assert_int_equal(f.n_probers, 2);
	assert_false(f.done);
	assert_false(is_asked(0)); /* the asker's own house */
	assert_int_equal(is_asked(1) + is_asked(2), 1);
	assert_int_equal(is_asked(3) + is_asked(4), 1);
	const struct probe p = next(1);
	assert_int_equal(p.n, 2);
	assert_memory_equal(p.key, at_nine.key, NET_KEY_BYTES);
	assert_string_equal(p.addrs[1].addr, "11.0.0.9:40001");
	assert_int_equal(next(1).id, p.id); /* the reply may be lost: until it is answered */
	answer(1, PROBE_SILENT, PROBE_OPEN);
	f = ask(&at_nine, all, 5);
	assert_false(f.done);
	assert_int_equal(f.results[1], PROBE_OPEN);
	answer(3, PROBE_REFUSED, PROBE_SILENT);
	f = ask(&at_nine, all, 5);
	assert_true(f.done);
	assert_int_equal(f.results[0], PROBE_REFUSED);
	assert_int_equal(f.results[1], PROBE_OPEN);
}

static void nobody_elsewhere_is_nobody_and_known_at_once(void **state) {
	(void)state;
	const struct reach_helper house[] = {helper(0, "11.0.0.9")};
	struct reach_finding f = ask(&at_nine, house, 1);
	assert_int_equal(f.n_probers, 0);
	assert_true(f.done);
	f = ask(&at_nine, NULL, 0);
	assert_true(f.done && f.n_probers == 0);
}

static void a_question_without_addresses_begins_nothing(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "11.0.0.1"), helper(3, "11.0.0.3")};
	const struct reach_question q = question(9, "11.0.0.9", NULL);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(&q, all, 2).n_probers, 2);
	assert_false(is_asked(1) || is_asked(3));
}

static void a_prober_that_never_answers_ends_with_the_test(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "11.0.0.1"), helper(3, "11.0.0.3")};
	(void)ask(&at_nine, all, 2);
	answer(1, PROBE_OPEN, PROBE_SILENT);
	now_us += REACH_TEST_US - 1;
	assert_false(ask(&at_nine, all, 2).done);
	assert_true(is_asked(3));
	now_us++;
	struct reach_finding f = ask(&at_nine, all, 2);
	assert_true(f.done);
	assert_int_equal(f.results[0], PROBE_OPEN);
	assert_false(is_asked(3));
}

static void a_member_probes_several_at_once(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "11.0.0.1")};
	for (uint8_t i = 0; i <= PROBES_AT_ONCE; i++) {
		char host[16], addr[24];
		(void)snprintf(host, sizeof host, "11.0.1.%d", i);
		(void)snprintf(addr, sizeof addr, "%s:7434", host);
		const struct reach_question q = question((uint8_t)(20 + i), host, addr);
		(void)ask(&q, all, 1);
	}
	struct probes p = {0};
	assert_true(reach_tests_next(&tests, now_us, 1, &p));
	assert_int_equal(p.n, PROBES_AT_ONCE);
	struct probed_list results = {.n = p.n};
	for (int i = 0; i < p.n; i++) {
		assert_int_equal(p.list[i].key[0], 20 + i);
		results.list[i] = (struct probed){.id = p.list[i].id, .n = 1, .results = {PROBE_OPEN}};
	}
	reach_tests_take(&tests, now_us, 1, &results);
	assert_true(reach_tests_next(&tests, now_us, 1, &p));
	assert_int_equal(p.n, 1);
	assert_int_equal(p.list[0].key[0], 20 + PROBES_AT_ONCE);
}

static void the_same_question_is_one_test_until_it_is_old(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "11.0.0.1")};
	(void)ask(&at_nine, all, 1);
	uint64_t id = next(1).id;
	answer(1, PROBE_SILENT, PROBE_SILENT);
	now_us += REACH_SAME_US - 1;
	assert_true(ask(&at_nine, all, 1).done);
	assert_false(is_asked(1));
	now_us++;
	assert_false(ask(&at_nine, all, 1).done);
	assert_true(next(1).id > id);
}

static void answers_of_others_and_of_other_probes_do_not_count(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "11.0.0.1"), helper(3, "11.0.0.3"), helper(4, "11.0.0.4")};
	(void)ask(&at_nine, all, 2);
	const struct probe p = next(1);
	take(4, p.id, 2, PROBE_OPEN, PROBE_OPEN);
	take(1, p.id, 1, PROBE_OPEN, 0);
	take(1, p.id + 1, 2, PROBE_OPEN, PROBE_OPEN);
	take(1, 0, 0, 0, 0);
	assert_int_equal(ask(&at_nine, all, 3).results[0], PROBE_NOT_KNOWN);
	answer(1, PROBE_SILENT, PROBE_SILENT);
	take(1, p.id, 2, PROBE_OPEN, PROBE_OPEN); /* only once */
	assert_int_equal(ask(&at_nine, all, 3).results[0], PROBE_SILENT);
}

static void probers_take_turns_and_those_of_the_same_family_come_first(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(0, "2a11::1"), helper(1, "11.0.0.1"), helper(2, "11.0.0.2"),
									   helper(3, "11.0.0.3"), helper(4, "11.0.0.4")};
	char host[16], addr[24];
	int asked[5] = {0};
	for (uint8_t i = 0; i < 4; i++) {
		(void)snprintf(host, sizeof host, "11.0.1.%d", i);
		(void)snprintf(addr, sizeof addr, "%s:7434", host);
		const struct reach_question q = question((uint8_t)(20 + i), host, addr);
		(void)ask(&q, all, 5);
		for (uint32_t m = 0; m < 5; m++)
			if (is_asked(m)) {
				asked[m]++;
				answer(m, PROBE_OPEN, 0);
			}
		now_us += S;
	}
	assert_int_equal(asked[0], 0);
	for (int m = 1; m < 5; m++)
		assert_int_equal(asked[m], 2);
	const struct reach_question v6 = question(30, "2a12::5", "[2a12::5]:7434");
	(void)ask(&v6, all, 5);
	assert_true(is_asked(0));
}

static void one_site_gets_eight_tests_in_ten_minutes(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "11.0.0.1")};
	for (uint8_t i = 0; i < REACH_PER_SITE; i++) {
		const struct reach_question q = question((uint8_t)(40 + i), "2a12::5", "[2a12::5]:7434");
		(void)ask(&q, all, 1);
		now_us += S;
	}
	const struct reach_question neighbour = question(60, "2a12::77:1", "[2a12::77:1]:7434");
	assert_int_equal(refused(&neighbour, all, 1), RV_E_BUSY);
	const struct reach_question elsewhere = question(60, "2a12:0:0:1::5", "[2a12:0:0:1::5]:7434");
	assert_int_equal(refused(&elsewhere, all, 1), RV_OK);
	now_us += REACH_KEPT_US;
	assert_int_equal(refused(&neighbour, all, 1), RV_OK);
}

static void all_sites_together_are_bounded_too(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "12.0.0.1")};
	int begun = 0;
	for (int i = 0; i < 3600; i++) {
		char host[32], addr[40];
		(void)snprintf(host, sizeof host, "11.%d.%d.9", i / 256, i % 256);
		(void)snprintf(addr, sizeof addr, "%s:1", host);
		const struct reach_question q = question(9, host, addr);
		begun += refused(&q, all, 1) == RV_OK;
		now_us += S;
	}
	assert_in_range(begun, 64, REACH_BURST + 3600 * S / REACH_EVERY_US);
}

static struct reach_question given(uint8_t key, const char *addr) {
	struct reach_question q = question(key, "11.0.0.9", addr);
	q.given = true;
	return q;
}

static void a_given_address_is_confirmed_by_all_who_can_tell(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "11.0.0.1"), helper(3, "11.0.0.3")};
	const uint8_t key[NET_KEY_BYTES] = {9}, other[NET_KEY_BYTES] = {8};
	const struct reach_question q = given(9, "13.0.0.1:7434");
	(void)ask(&q, all, 2);
	assert_false(reach_tests_confirmed(&tests, now_us, key, "13.0.0.1:7434"));
	answer(1, PROBE_OPEN, 0);
	assert_true(reach_tests_confirmed(&tests, now_us, key, "13.0.0.1:7434"));
	answer(3, PROBE_SILENT, 0);
	assert_false(reach_tests_confirmed(&tests, now_us, key, "13.0.0.1:7434"));
	now_us += 2 * 3600 * S;
	(void)ask(&q, all, 2);
	answer(1, PROBE_UNABLE, 0);
	answer(3, PROBE_OPEN, 0);
	assert_true(reach_tests_confirmed(&tests, now_us, key, "13.0.0.1:7434"));
	assert_false(reach_tests_confirmed(&tests, now_us, other, "13.0.0.1:7434"));
	assert_false(reach_tests_confirmed(&tests, now_us, key, "13.0.0.1:7435"));
	assert_false(reach_tests_confirmed(&tests, now_us + REACH_CONFIRMED_US, key, "13.0.0.1:7434"));
}

/* Packets of probes that reach an address which no worker holds, whoever names it. */
static int probes_of(const char *addr, int hours, bool changes) {
	const struct reach_helper all[] = {helper(1, "11.0.0.1"), helper(3, "11.0.0.3")};
	int n = 0;
	for (int i = 0; i < hours * 3600; i++, now_us += S) {
		char at[NET_ADDR_BYTES];
		(void)snprintf(at, sizeof at, changes ? "%s:%d" : "%s:1", addr, 1 + i % 65535);
		struct reach_question q = given((uint8_t)(i % 50), at);
		(void)snprintf(q.host, sizeof q.host, "14.%d.0.1", i % 200);
		(void)refused(&q, all, 2);
		for (uint32_t m = 1; m <= 3; m += 2)
			while (is_asked(m)) {
				n++;
				answer(m, PROBE_SILENT, 0);
			}
	}
	return n;
}

static void a_given_address_is_probed_three_times_an_hour_over_the_whole_run(void **state) {
	(void)state;
	assert_in_range(probes_of("13.0.0.1", 1, false), 2, 3);
	assert_in_range(probes_of("13.0.0.1", 4, false), 3, 5);
}

static void new_given_addresses_are_bounded_over_the_whole_run(void **state) {
	(void)state;
	int most = REACH_PROBERS * (REACH_GIVEN_BURST + (int)(3600 * S / REACH_GIVEN_EVERY_US));
	assert_in_range(probes_of("13.0.0.1", 1, true), REACH_GIVEN_BURST, most);
}

static void an_unreachable_given_address_leaves_the_tests_to_others(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "11.0.0.1"), helper(3, "11.0.0.3")};
	struct reach_question bad = given(9, "13.0.0.1:7434");
	bad.of_report = true;
	for (int i = 0; i < 4 * 600; i++, now_us += S / 4) {
		(void)refused(&bad, all, 2);
		for (uint32_t m = 1; m <= 3; m += 2)
			while (is_asked(m))
				answer(m, PROBE_SILENT, 0);
	}
	for (uint8_t i = 0; i < REACH_BURST; i++) { /* not one is missing */
		char host[16], addr[24];
		(void)snprintf(host, sizeof host, "11.0.1.%d", i);
		(void)snprintf(addr, sizeof addr, "%s:7434", host);
		const struct reach_question q = question((uint8_t)(20 + i), host, addr);
		assert_int_equal(refused(&q, all, 2), RV_OK);
	}
}

static void reports_leave_a_share_of_the_tests_to_newcomers(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "11.0.0.1")};
	int begun = 0;
	for (int i = 0; i < 2 * REACH_BURST; i++) {
		char host[16], addr[24];
		(void)snprintf(host, sizeof host, "11.0.1.%d", i);
		(void)snprintf(addr, sizeof addr, "%s:7434", host);
		struct reach_question q = question((uint8_t)(20 + i), host, addr);
		q.of_report = i < REACH_BURST;
		begun += refused(&q, all, 1) == RV_OK;
		if (i == REACH_BURST - 1)
			assert_int_equal(begun, REACH_BURST - REACH_NEWCOMERS);
	}
	assert_int_equal(begun, REACH_BURST);
}

/* Has the worker tested at the given address: all probers that are sent find `result`. Returns how
 * many were sent. */
static int found_at(uint8_t key, const char *addr, uint8_t result) {
	const struct reach_helper all[] = {helper(1, "11.0.0.1"), helper(3, "11.0.0.3")};
	const struct reach_question q = given(key, addr);
	int n = 0;
	(void)refused(&q, all, 2);
	for (uint32_t m = 1; m <= 3; m += 2)
		for (; is_asked(m); n++)
			answer(m, result, 0);
	return n;
}

static void a_test_for_another_worker_clears_no_confirmation(void **state) {
	(void)state;
	const uint8_t key[NET_KEY_BYTES] = {9}, evil[NET_KEY_BYTES] = {66};
	assert_int_equal(found_at(9, "13.0.0.1:7434", PROBE_OPEN), 2);
	for (int hour = 1; hour < 23; hour++) {
		now_us += 3600 * S;
		(void)found_at(66, "13.0.0.1:7434", PROBE_OTHER_KEY);
		assert_true(reach_tests_confirmed(&tests, now_us, key, "13.0.0.1:7434"));
		assert_false(reach_tests_confirmed(&tests, now_us, evil, "13.0.0.1:7434"));
	}
	now_us += 3600 * S;
	(void)found_at(66, "13.0.0.1:7434", PROBE_OPEN); /* a liar's */
	assert_true(reach_tests_confirmed(&tests, now_us, key, "13.0.0.1:7434"));
	assert_true(reach_tests_confirmed(&tests, now_us, evil, "13.0.0.1:7434"));
}

static void others_leave_a_probe_to_the_worker_that_holds_the_address(void **state) {
	(void)state;
	const uint8_t key[NET_KEY_BYTES] = {9};
	int n = 0;
	assert_int_equal(found_at(9, "13.0.0.1:7434", PROBE_OPEN), 2);
	for (int i = 0; i < 24 * 3600 + 1800; i += 31, now_us += 31 * S) /* until the confirmation has lapsed */
		n += found_at(66, "13.0.0.1:7434", PROBE_OTHER_KEY);
	assert_in_range(n, 20, 24);
	assert_false(reach_tests_confirmed(&tests, now_us, key, "13.0.0.1:7434"));
	assert_int_equal(found_at(9, "13.0.0.1:7434", PROBE_OPEN), 1);
	assert_true(reach_tests_confirmed(&tests, now_us, key, "13.0.0.1:7434"));
}

static void a_worker_and_a_site_bring_two_given_addresses(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "12.0.0.1")};
	char addr[24];
	int begun = 0;
	for (uint8_t i = 0; i < REACH_GIVEN_BURST; i++) { /* one worker, of many sites */
		(void)snprintf(addr, sizeof addr, "13.0.0.%d:7434", i);
		struct reach_question q = given(66, addr);
		(void)snprintf(q.host, sizeof q.host, "11.0.1.%d", i);
		begun += refused(&q, all, 1) == RV_OK;
	}
	assert_int_equal(begun, REACH_GIVENS_EACH);
	for (uint8_t i = 0; i < REACH_GIVEN_BURST; i++) { /* many keys, of one site */
		(void)snprintf(addr, sizeof addr, "13.0.1.%d:7434", i);
		const struct reach_question q = given((uint8_t)(70 + i), addr);
		begun += refused(&q, all, 1) == RV_OK;
	}
	assert_int_equal(begun, 2 * REACH_GIVENS_EACH);
	struct reach_question q = given(20, "13.0.2.1:7434"); /* a member there, by its report */
	q.of_report = true;
	assert_int_equal(refused(&q, all, 1), RV_OK);
	now_us += 2 * REACH_GIVEN_PROBE_US;
	const struct reach_question third = given(66, "13.0.0.9:7434");
	assert_int_equal(refused(&third, all, 1), RV_OK);
}

static void new_given_addresses_take_no_confirmed_ones_place(void **state) {
	(void)state;
	const uint8_t key[NET_KEY_BYTES] = {9};
	assert_int_equal(found_at(9, "13.0.0.1:7434", PROBE_OPEN), 2);
	now_us += 2 * REACH_GIVEN_PROBE_US + S;
	(void)probes_of("13.0.0.2", 12, true);
	assert_true(reach_tests_confirmed(&tests, now_us, key, "13.0.0.1:7434"));
}

static void a_table_that_is_full_of_running_tests_refuses(void **state) {
	(void)state;
	const struct reach_helper all[] = {helper(1, "12.0.0.1")};
	for (int i = 0; i < REACH_TESTS; i++) {
		tests.tests[i] = (struct reach_test){.id = (uint64_t)i + 1, .begun_us = now_us, .n_probers = 1};
		(void)snprintf(tests.tests[i].ask.host, NET_ADDR_BYTES, "11.1.%d.1", i);
	}
	assert_int_equal(refused(&at_nine, all, 1), RV_E_BUSY);
	now_us += REACH_TEST_US;
	assert_int_equal(refused(&at_nine, all, 1), RV_OK);
}

int main(void) {
#define T(name) cmocka_unit_test_setup(name, set_up)
	const struct CMUnitTest all[] = {
		T(two_members_at_other_sites_dial_and_the_best_answer_counts),
		T(nobody_elsewhere_is_nobody_and_known_at_once),
		T(a_question_without_addresses_begins_nothing),
		T(a_prober_that_never_answers_ends_with_the_test),
		T(a_member_probes_several_at_once),
		T(the_same_question_is_one_test_until_it_is_old),
		T(answers_of_others_and_of_other_probes_do_not_count),
		T(probers_take_turns_and_those_of_the_same_family_come_first),
		T(one_site_gets_eight_tests_in_ten_minutes),
		T(all_sites_together_are_bounded_too),
		T(a_given_address_is_confirmed_by_all_who_can_tell),
		T(a_given_address_is_probed_three_times_an_hour_over_the_whole_run),
		T(new_given_addresses_are_bounded_over_the_whole_run),
		T(an_unreachable_given_address_leaves_the_tests_to_others),
		T(reports_leave_a_share_of_the_tests_to_newcomers),
		T(a_test_for_another_worker_clears_no_confirmation),
		T(others_leave_a_probe_to_the_worker_that_holds_the_address),
		T(a_worker_and_a_site_bring_two_given_addresses),
		T(new_given_addresses_take_no_confirmed_ones_place),
		T(a_table_that_is_full_of_running_tests_refuses),
	};
	return cmocka_run_group_tests(all, NULL, NULL);
}
