/* Which members own chunks and which are on the roster when some cannot be linked, as their reports
 * say (coordinator/core/pairs.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "tests/coordinator/core_rig.h"

/* Sends a report of member `i` of 0..n-1, which is linked with the set `linked`, and has tried the
 * others in vain. */
static void say_linked(struct rig *r, uint32_t i, enum worker_phase phase, int n, uint64_t linked) {
	struct report rep = rig_report(r, i, phase);
	for (uint32_t j = 0; j < (uint32_t)n; j++)
		if (j != i)
			report_add_path(&rep, j, linked >> j & 1 ? PATH_ACCEPTED : PATH_APART);
	rig_send(r, i, &rep);
}

/* Sends READY of members 0..n-1: linked[i] is the set that member i is linked with. */
static void ready_with(struct rig *r, int n, const uint64_t *linked) {
	rig_say_all(r, n, WORKER_TRAINING);
	for (uint32_t i = 0; i < (uint32_t)n; i++)
		say_linked(r, i, WORKER_READY, n, linked[i]);
}

static uint64_t owners(const struct rig *r) {
	const struct document *d = rig_doc(r);
	uint64_t set = 0;
	for (int i = 0; i < d->n_ranges; i++)
		set |= 1ull << d->members[d->ranges[i].owner].member;
	return set;
}

/* 2 and 3 are behind routers: they take part from the first attempt on, and own nothing. */
static void test_two_that_nobody_can_dial(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 4);
	ready_with(&r, 4, (const uint64_t[]){0xe, 0xd, 0x3, 0x3});
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3);
	assert_int_equal(owners(&r), 0x3);
	rig_say_all(&r, 4, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* All but 0 are behind routers. */
static void test_one_owner_for_all(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 5);
	ready_with(&r, 5, (const uint64_t[]){0x1e, 0x1, 0x1, 0x1, 0x1});
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3, 4);
	assert_int_equal(owners(&r), 0x1);
	rig_release(&r);
}

/* A link counts if one side reports it: the other's report may be older. */
static void test_one_side_suffices(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 3);
	ready_with(&r, 3, (const uint64_t[]){0x6, 0x4, 0x0});
	assert_int_equal(owners(&r), 0x7);
	rig_release(&r);
}

/* 0, 1 and 2 are linked with each other; 3 and 4 with 1 only. Without 1 there is no owner for
 * all. */
static void test_the_largest_group_with_an_owner(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 6);
	ready_with(&r, 6, (const uint64_t[]){0x6, 0x1d, 0x3, 0x2, 0x2, 0x0});
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3, 4); /* 5 reaches nobody */
	assert_int_equal(owners(&r), 0x2);
	uint64_t apart[CORE_HERE_WORDS];
	assert_int_equal(core_here(r.core), 6);
	assert_true(core_apart(r.core, 5, apart) && apart[0] == 0x1f);
	assert_true(!core_apart(r.core, 3, apart) && apart[0] == 0x35);
	rig_release(&r);
}

/* Sends READY of 0..n-1, which are all linked: the members in `relayed` with each other by a
 * relay. */
static void ready_by_relay(struct rig *r, int n, uint64_t relayed) {
	rig_say_all(r, n, WORKER_TRAINING);
	for (uint32_t i = 0; i < (uint32_t)n; i++) {
		struct report rep = rig_report(r, i, WORKER_READY);
		for (uint32_t j = 0; j < (uint32_t)n; j++)
			if (j != i)
				report_add_path(&rep, j, (relayed >> i & relayed >> j & 1) ? PATH_RELAYED : PATH_DIALED);
		rig_send(r, i, &rep);
	}
}

/* Those that need no relay own everything, if they are a quarter; else all do. */
static void test_who_needs_a_relay_owns_less(void **state) {
	(void)state;
	static const struct {
		int n;
		uint64_t relayed, owners;
	} cases[] = {{4, 0xc, 0x3}, {4, 0xe, 0x1}, {4, 0xf, 0xf}, {5, 0x1e, 0x1f}, {5, 0x1c, 0x3}};
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		struct rig r;
		rig_open(&r, 2, cases[k].n);
		ready_by_relay(&r, cases[k].n, cases[k].relayed);
		assert_int_equal(rig_doc(&r)->n_members, cases[k].n);
		assert_int_equal(owners(&r), cases[k].owners);
		rig_release(&r);
	}
}

/* One that needs no relay, of five: all own, the others half as much as it. */
static void test_relayed_owners_own_half_as_much(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 5);
	ready_by_relay(&r, 5, 0x1e);
	const struct document *d = rig_doc(&r);
	uint32_t owned[5] = {0};
	for (int i = 0; i < d->n_ranges; i++)
		owned[d->ranges[i].owner] += d->ranges[i].count;
	assert_int_equal(owned[0], RIG_CHUNKS * 2 / 6);
	for (int i = 1; i < 5; i++)
		assert_int_equal(owned[i], RIG_CHUNKS / 6);
	rig_release(&r);
}

/* Nobody is linked, and all are needed: the round is tried with all. */
static void test_nobody_is_linked(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 3, 3);
	ready_with(&r, 3, (const uint64_t[]){0, 0, 0});
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2);
	assert_int_equal(owners(&r), 0x7);
	rig_release(&r);
}

/* An owner dies: its chunks go to the other one, not to those that own nothing; and a coordinator
 * that starts again finds the same map in its records. */
static void test_an_owner_dies(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 4);
	static const uint64_t linked[] = {0xe, 0xd, 0x3, 0x3};
	ready_with(&r, 4, linked);
	for (int s = 0; s < 30 && rig_doc(&r)->attempt == 1; s++) {
		for (uint32_t i = 1; i < 4; i++)
			say_linked(&r, i, WORKER_REDUCING, 4, linked[i]);
		rig_wait(&r, RIG_S);
	}
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 1, 2, 3);
	assert_int_equal(owners(&r), 0x2);
	struct document before = *rig_doc(&r);
	rig_restart(&r);
	assert_int_equal(rig_doc(&r)->n_ranges, before.n_ranges);
	assert_memory_equal(rig_doc(&r)->ranges, before.ranges, before.n_ranges * sizeof before.ranges[0]);
	rig_release(&r);
}

/* Nothing is known when the roster is frozen; then 2 and 3 accuse each other, and report that they
 * are apart. All are needed, and stay: the next attempt has other owners, and nobody is blamed. */
static void test_owners_that_turn_out_to_be_apart(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 4, 4);
	rig_say_all(&r, 4, WORKER_TRAINING);
	rig_say_all(&r, 4, WORKER_READY);
	assert_int_equal(owners(&r), 0xf);
	for (uint32_t i = 0; i < 4; i++) {
		struct report rep = rig_report(&r, i, WORKER_REDUCING);
		for (uint32_t j = 0; j < 4; j++)
			report_add_path(&rep, j, i >= 2 && j >= 2 ? PATH_APART : PATH_DIALED);
		rig_accuse(&rep, i == 2 ? 8 : i == 3 ? 4 : 0);
		rig_send(&r, i, &rep);
	}
	rig_wait(&r, 2 * RIG_S);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3);
	assert_int_equal(owners(&r), 0x3);
	assert_false(rig_saw(&r, CORE_EVENT_SUSPECTED, 2) || rig_saw(&r, CORE_EVENT_SUSPECTED, 3));
	rig_say_all(&r, 4, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* ---- relays of members ---- */

static struct relay_ref relay(uint8_t n) {
	struct relay_ref r = {.key = {n}};
	snprintf(r.addr, sizeof r.addr, "10.0.0.%d:7435", n);
	return r;
}

static void expect_relays(const struct rig *r, const uint8_t *keys, int n) {
	assert_int_equal(rig_doc(r)->n_relays, n);
	for (int i = 0; i < n; i++)
		assert_int_equal(rig_doc(r)->relays[i].key[0], keys[i]);
}

static uint8_t station_of(const struct rig *r, uint32_t who) {
	for (int i = 0; i < rig_doc(r)->n_members; i++)
		if (rig_doc(r)->members[i].member == who)
			return rig_doc(r)->members[i].relay;
	for (int i = 0; i < rig_doc(r)->n_syncing; i++)
		if (rig_doc(r)->syncing[i].member == who)
			return rig_doc(r)->syncing[i].relay;
	fail_msg("member %u is not in the document", who);
	return 0;
}

static void list(struct rig *r, const struct relay_ref *relays, int n) {
	core_list_relays(r->core, relays, n);
	rig_pump(r);
}

static void test_relays_of_members_follow_the_operators(void **state) {
	(void)state;
	struct rig r;
	const struct relay_ref offered[] = {relay(7), relay(8)};
	rig_init(&r, 1);
	r.cfg.n_relays = 1;
	r.cfg.relays[0] = relay(1);
	rig_start(&r);
	rig_join(&r, 3);
	list(&r, offered, 2);
	expect_relays(&r, (const uint8_t[]){1, 7, 8}, 3);
	uint64_t seq = rig_doc(&r)->seq;
	list(&r, offered, 2);
	assert_int_equal(rig_doc(&r)->seq, seq); /* nothing is new */
	for (uint8_t i = 0; i < 3; i++) {
		struct report rep = rig_report(&r, i, WORKER_TRAINING);
		rep.relay = i + 1;
		rig_send(&r, i, &rep);
		assert_int_equal(station_of(&r, i), i + 1);
	}
	seq = rig_doc(&r)->seq;
	list(&r, offered + 1, 1); /* the one between goes: stations keep their relay */
	expect_relays(&r, (const uint8_t[]){1, 8}, 2);
	assert_true(rig_doc(&r)->seq > seq);
	assert_int_equal(station_of(&r, 0), 1);
	assert_int_equal(station_of(&r, 1), 0);
	assert_int_equal(station_of(&r, 2), 2);
	list(&r, NULL, 0);
	expect_relays(&r, (const uint8_t[]){1}, 1);
	assert_int_equal(station_of(&r, 0), 1);
	assert_int_equal(station_of(&r, 2), 0);
	rig_restart(&r); /* it knows the operator's */
	expect_relays(&r, (const uint8_t[]){1}, 1);
	rig_release(&r);
}

/* Each change of a member's relay is a document for everybody: of one that names two in turn few
 * are, and the last one in the end. */
static void test_a_relay_named_in_turn_makes_few_documents(void **state) {
	(void)state;
	struct rig r;
	rig_init(&r, 1);
	r.cfg.n_relays = 2;
	r.cfg.relays[0] = relay(1);
	r.cfg.relays[1] = relay(2);
	rig_start(&r);
	rig_join(&r, 2);
	rig_say_all(&r, 2, WORKER_TRAINING);
	uint64_t seq = rig_doc(&r)->seq;
	struct report rep = rig_report(&r, 0, WORKER_TRAINING);
	for (int i = 0; i < 200; i++) {
		rep.relay = (uint8_t)(1 + i % 2);
		rig_send(&r, 0, &rep);
		if (i == 0)
			assert_int_equal(station_of(&r, 0), 1); /* a change is announced at once */
		rig_wait(&r, RIG_S / 10);
	}
	assert_in_range(rig_doc(&r)->seq - seq, 2, 8); /* in 20 s */
	for (int s = 0; s < 40; s++) {
		rig_send(&r, 0, &rep);
		rig_wait(&r, RIG_S);
	}
	assert_int_equal(station_of(&r, 0), 2);
	rig_release(&r);
}

/* Of many reports all are taken before the core looks at them; a relay may be confirmed between. */
static void test_relays_are_listed_between_a_report_and_its_step(void **state) {
	(void)state;
	struct rig r;
	uint8_t key[NET_KEY_BYTES];
	const struct relay_ref offered = relay(7);
	rig_init(&r, 1);
	rig_start(&r);
	rig_join(&r, 2);
	struct report rep = rig_report(&r, 1, WORKER_TRAINING);
	rig_key(1, key);
	rep.seq = ++r.report_seq;
	assert_int_equal(core_take_report(r.core, r.now_us += 1000, key, &rep, NULL), RV_OK);
	list(&r, &offered, 1);
	expect_relays(&r, (const uint8_t[]){7}, 1);
	rig_release(&r);
}

static void test_a_document_lists_no_more_relays_than_it_may(void **state) {
	(void)state;
	struct rig r;
	struct relay_ref offered[NET_MAX_RELAYS];
	rig_init(&r, 1);
	r.cfg.n_relays = NET_MAX_RELAYS - 1;
	for (uint8_t i = 0; i < NET_MAX_RELAYS; i++) {
		r.cfg.relays[i] = i < NET_MAX_RELAYS - 1 ? relay(i + 1) : (struct relay_ref){.addr = ""};
		offered[i] = relay(100 + i);
	}
	rig_start(&r);
	list(&r, offered, NET_MAX_RELAYS);
	assert_int_equal(rig_doc(&r)->n_relays, NET_MAX_RELAYS);
	assert_int_equal(rig_doc(&r)->relays[NET_MAX_RELAYS - 2].key[0], NET_MAX_RELAYS - 1);
	assert_int_equal(rig_doc(&r)->relays[NET_MAX_RELAYS - 1].key[0], 100);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_that_nobody_can_dial),
		cmocka_unit_test(test_one_owner_for_all),
		cmocka_unit_test(test_one_side_suffices),
		cmocka_unit_test(test_the_largest_group_with_an_owner),
		cmocka_unit_test(test_relayed_owners_own_half_as_much),
		cmocka_unit_test(test_nobody_is_linked),
		cmocka_unit_test(test_an_owner_dies),
		cmocka_unit_test(test_owners_that_turn_out_to_be_apart),
		cmocka_unit_test(test_who_needs_a_relay_owns_less),
		cmocka_unit_test(test_relays_of_members_follow_the_operators),
		cmocka_unit_test(test_a_relay_named_in_turn_makes_few_documents),
		cmocka_unit_test(test_relays_are_listed_between_a_report_and_its_step),
		cmocka_unit_test(test_a_document_lists_no_more_relays_than_it_may),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
