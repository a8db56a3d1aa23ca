/* test_coordinator_offered_relays.c: relays that members run for others: which are listed and when
 * (coordinator/service/offered_relays.h), and at the service: an offer, the probe of another
 * member, the document. */
#include "coordinator/service/offered_relays.h"

#include "tests/common/check.h"
#include "tests/coordinator/probe_bench.h"

#include <stdio.h>

/* ---- which are listed ---- */

static struct offered_relays table;

static struct relay_ref relay(uint8_t n, uint16_t port) {
	struct relay_ref r = {.key = {n}};
	(void)snprintf(r.addr, sizeof r.addr, "11.0.0.%d:%d", n, port);
	return r;
}

static void offer(int64_t now_us, uint8_t member, uint16_t port) {
	const struct relay_ref at = relay(member, port), none = {.key = {member}};
	offered_relays_take(&table, now_us, member, port != 0 ? &at : &none);
}

/* Lists those of the first 64 slots that are in `live`. */
static int list(int64_t now_us, uint64_t live, struct relay_ref out[NET_MAX_RELAYS]) {
	const uint64_t slots[SET_WORDS(NET_MAX_HERE)] = {live};
	return offered_relays_list(&table, now_us, slots, out);
}

static void expect_list(int64_t now_us, uint64_t live, const uint8_t *keys, int n) {
	struct relay_ref out[NET_MAX_RELAYS];
	assert_int_equal(list(now_us, live, out), n);
	for (int i = 0; i < n; i++)
		assert_int_equal(out[i].key[0], keys[i]);
}

#define EXPECT_LIST(now, live, ...)                                                                                    \
	expect_list(now, live, (const uint8_t[]){__VA_ARGS__}, (int)sizeof((const uint8_t[]){__VA_ARGS__}))
#define EXPECT_NONE(now, live) expect_list(now, live, NULL, 0)

static void an_offer_is_listed_once_it_was_reached(void **state) {
	(void)state;
	table = (struct offered_relays){0};
	assert_false(offered_relays_due(&table, 0, 3));
	offer(0, 3, 7435);
	offer(0, 2, 7435);
	assert_true(offered_relays_due(&table, 0, 3));
	EXPECT_NONE(0, UINT64_MAX);
	offered_relays_tested(&table, 1 * S, 3, OFFERED_NOBODY);
	EXPECT_NONE(1 * S, UINT64_MAX);
	assert_false(offered_relays_due(&table, 5 * S, 3)); /* not at every report */
	assert_true(offered_relays_due(&table, 6 * S, 3));
	offered_relays_tested(&table, 6 * S, 3, OFFERED_NOT_REACHED);
	assert_false(offered_relays_due(&table, 65 * S, 3));
	assert_true(offered_relays_due(&table, 66 * S, 3));
	offered_relays_tested(&table, 66 * S, 3, OFFERED_REACHED);
	offered_relays_tested(&table, 67 * S, 2, OFFERED_REACHED);
	EXPECT_LIST(67 * S, UINT64_MAX, 3, 2); /* the earliest first */
	EXPECT_LIST(67 * S, 1 << 2, 2);        /* of those that are there */
	offer(68 * S, 3, 7435);                /* nothing new */
	EXPECT_LIST(68 * S, UINT64_MAX, 3, 2);
	offer(69 * S, 3, 7436); /* another one */
	EXPECT_LIST(69 * S, UINT64_MAX, 2);
	offer(70 * S, 2, 0);
	EXPECT_NONE(70 * S, UINT64_MAX);
}

/* Each change is a document for every member. */
static void withdrawn_and_offered_in_turn_it_is_listed_at_a_pace(void **state) {
	(void)state;
	struct relay_ref out[NET_MAX_RELAYS];
	int listings = 0;
	table = (struct offered_relays){0};
	for (int64_t now_us = 0; now_us < 600 * S; now_us += S / 10) {
		offer(now_us, 1, 7435);
		if (offered_relays_due(&table, now_us, 1))
			offered_relays_tested(&table, now_us, 1, OFFERED_REACHED);
		listings += list(now_us, UINT64_MAX, out);
		offer(now_us, 1, 0);
		EXPECT_NONE(now_us, UINT64_MAX);
	}
	assert_int_equal(listings, OFFERED_LISTINGS + 9);
}

static void another_port_each_time_has_the_same_pace(void **state) {
	(void)state;
	struct relay_ref out[NET_MAX_RELAYS];
	int listings = 0;
	table = (struct offered_relays){0};
	for (uint16_t i = 0; i < 100; i++) {
		offer(S, 1, 7435 + i % 2);
		offered_relays_tested(&table, S, 1, OFFERED_REACHED);
		listings += list(S, UINT64_MAX, out);
	}
	assert_int_equal(listings, OFFERED_LISTINGS);
}

static void one_that_is_offered_again_needs_no_test(void **state) {
	(void)state;
	table = (struct offered_relays){0};
	offer(0, 1, 7435);
	offered_relays_tested(&table, 0, 1, OFFERED_REACHED);
	offer(10 * S, 1, 0);
	assert_false(offered_relays_due(&table, OFFERED_RENEW_US, 1));
	offer(20 * S, 1, 7435);
	assert_false(offered_relays_due(&table, 20 * S, 1));
	EXPECT_LIST(20 * S, UINT64_MAX, 1);
	offer(30 * S, 1, 0);
	offer(OFFERED_LISTED_US, 1, 7435); /* its hour is over */
	EXPECT_NONE(OFFERED_LISTED_US, UINT64_MAX);
}

static void one_that_is_no_longer_reached_leaves_the_list(void **state) {
	(void)state;
	table = (struct offered_relays){0};
	offer(0, 1, 7435);
	offer(0, 2, 7435);
	offered_relays_tested(&table, 0, 1, OFFERED_REACHED);
	offered_relays_tested(&table, 0, 2, OFFERED_REACHED);
	assert_false(offered_relays_due(&table, OFFERED_RENEW_US - 1, 1));
	assert_true(offered_relays_due(&table, OFFERED_RENEW_US, 1));
	offered_relays_tested(&table, OFFERED_RENEW_US, 1, OFFERED_NOBODY);
	EXPECT_LIST(OFFERED_LISTED_US - 1, UINT64_MAX, 1, 2);
	offered_relays_tested(&table, OFFERED_RENEW_US, 2, OFFERED_NOT_REACHED);
	EXPECT_LIST(OFFERED_LISTED_US - 1, UINT64_MAX, 1);
	EXPECT_NONE(OFFERED_LISTED_US, UINT64_MAX); /* its hour is over */
	offered_relays_tested(&table, OFFERED_LISTED_US, 2, OFFERED_REACHED);
	offered_relays_tested(&table, OFFERED_LISTED_US, 1, OFFERED_REACHED);
	EXPECT_LIST(OFFERED_LISTED_US, UINT64_MAX, 1, 2); /* an hour that went on keeps its turn */
}

static void there_are_no_more_than_a_document_lists(void **state) {
	(void)state;
	table = (struct offered_relays){0};
	for (uint8_t i = 0; i < NET_MAX_ROW; i++) {
		offer(0, i, 7435);
		offered_relays_tested(&table, 0, i, OFFERED_REACHED);
	}
	EXPECT_LIST(0, UINT64_MAX, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* ---- at the service ---- */

static int set_up(void **state) {
	const struct relay_ref operators = {.addr = "train.example.org:7435"};
	*state = probe_bench_open(&operators, 1, 3);
	return 0;
}

static int tear_down(void **state) {
	probe_bench_close(*state);
	return 0;
}

/* A report of `who`, seen at 11.0.0.WHO, that offers a relay at this port. Returns true if it is
 * asked to probe. */
static bool report(struct probe_bench *b, uint8_t who, uint16_t offers, const struct probed *probed,
				   struct probe *out) {
	char host[16];
	struct report rep = probe_bench_next_report(b);
	rep.offers_relay = offers;
	(void)snprintf(host, sizeof host, "11.0.0.%d", who);
	return probe_bench_report(b, who, host, &rep, probed, out);
}

/* Both others dial what `who` offers, with these results. */
static void probe_both(struct probe_bench *b, uint8_t who, const char *addr, uint8_t one, uint8_t two) {
	uint8_t results[] = {one, two};
	for (uint8_t other = 1, i = 0; other <= 3; other++) {
		struct probe p;
		if (other == who)
			continue;
		assert_true(report(b, other, 0, NULL, &p));
		assert_int_equal(p.key[0], who); /* the relay has the member's own key */
		assert_int_equal(p.n, 1);
		assert_string_equal(p.addrs[0].addr, addr);
		const struct probed answer = {.id = p.id, .n = 1, .results = {results[i++]}};
		assert_false(report(b, other, 0, &answer, &p));
	}
}

static void all_report(struct probe_bench *b, uint16_t offer_of_1) {
	struct probe p;
	for (uint8_t who = 2; who <= 3; who++)
		(void)report(b, who, 0, NULL, &p);
	(void)report(b, 1, offer_of_1, NULL, &p);
}

/* A worker that tests how others reach it reflects at the relays that the document lists. */
static void a_reach_test_names(struct probe_bench *b, const struct relay_ref *relays, int n) {
	struct reach_test_reply got;
	assert_ok(probe_bench_ask(b, 2, "11.0.0.2", NULL, NULL, &got, &et));
	assert_int_equal(got.n_relays, n);
	for (int i = 0; i < n; i++)
		assert_string_equal(got.relays[i].addr, relays[i].addr);
}

static void a_relay_that_another_member_reaches_is_listed(void **state) {
	struct probe_bench *b = *state;
	struct probe p;
	all_report(b, 7435);
	assert_int_equal(probe_bench_document(b)->n_relays, 1);
	probe_both(b, 1, "11.0.0.1:7435", PROBE_SILENT, PROBE_OPEN); /* one of two lies, or is cut off */
	(void)report(b, 1, 7435, NULL, &p);
	const struct document *d = probe_bench_document(b);
	assert_int_equal(d->n_relays, 2);
	assert_string_equal(d->relays[0].addr, "train.example.org:7435");
	assert_string_equal(d->relays[1].addr, "11.0.0.1:7435");
	assert_int_equal(d->relays[1].key[0], 1);
	a_reach_test_names(b, d->relays, d->n_relays);
	(void)report(b, 1, 0, NULL, &p); /* no longer */
	assert_int_equal(probe_bench_document(b)->n_relays, 1);
}

static void one_that_nobody_reaches_is_not_listed(void **state) {
	struct probe_bench *b = *state;
	struct probe p;
	all_report(b, 7435);
	probe_both(b, 1, "11.0.0.1:7435", PROBE_SILENT, PROBE_OTHER_KEY);
	(void)report(b, 1, 7435, NULL, &p);
	assert_int_equal(probe_bench_document(b)->n_relays, 1);
}

static void a_member_that_is_gone_takes_its_relay_along(void **state) {
	struct probe_bench *b = *state;
	struct probe p;
	all_report(b, 7435);
	probe_both(b, 1, "11.0.0.1:7435", PROBE_OPEN, PROBE_OPEN);
	(void)report(b, 1, 7435, NULL, &p);
	assert_int_equal(probe_bench_document(b)->n_relays, 2);
	for (int i = 0; i < 60; i++) {
		service_tick(b->service, b->now_us += S);
		(void)report(b, 2, 0, NULL, &p);
	}
	assert_int_equal(probe_bench_document(b)->n_relays, 1);
	all_report(b, 7435);
	assert_int_equal(probe_bench_document(b)->n_relays, 2); /* and brings it back */
	assert_ok(service_ban(b->service, b->now_us, 0, true, &et));
	service_tick(b->service, b->now_us);
	assert_int_equal(probe_bench_document(b)->n_relays, 1);
}

/* Workers are in touch with a relay: their routers let its host in. */
static void the_host_of_a_listed_relay_tests_nobody(void **state) {
	struct probe_bench *b = *state;
	struct probe p;
	all_report(b, 7435);
	probe_both(b, 1, "11.0.0.1:7435", PROBE_OPEN, PROBE_OPEN);
	(void)report(b, 1, 7435, NULL, &p);
	assert_int_equal(probe_bench_document(b)->n_relays, 2);
	(void)report(b, 2, 7435, NULL, &p);
	assert_false(report(b, 1, 7435, NULL, &p));
	assert_true(report(b, 3, 0, NULL, &p));
	assert_string_equal(p.addrs[0].addr, "11.0.0.2:7435");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_offer_is_listed_once_it_was_reached),
		cmocka_unit_test(withdrawn_and_offered_in_turn_it_is_listed_at_a_pace),
		cmocka_unit_test(another_port_each_time_has_the_same_pace),
		cmocka_unit_test(one_that_is_offered_again_needs_no_test),
		cmocka_unit_test(one_that_is_no_longer_reached_leaves_the_list),
		cmocka_unit_test(there_are_no_more_than_a_document_lists),
		T(a_relay_that_another_member_reaches_is_listed),
		T(one_that_nobody_reaches_is_not_listed),
		T(a_member_that_is_gone_takes_its_relay_along),
		T(the_host_of_a_listed_relay_tests_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
