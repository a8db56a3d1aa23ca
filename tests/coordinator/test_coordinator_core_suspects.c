/* Accusations: gathered, weighed, and followed by a commit or by the next attempt. */
#include <string.h>

#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

static void accuse(struct rig *r, uint32_t who, enum worker_phase phase, uint64_t suspects) {
	struct report rep = rig_report(r, who, phase);
	rig_accuse(&rep, suspects);
	rig_send(r, who, &rep);
}

static void test_gathered_then_left_out(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	accuse(&r, 0, WORKER_REDUCING, 1 << 2);
	assert_int_equal(core_deadline_us(r.core), r.now_us + r.cfg.suspect_gather_us);
	rig_wait(&r, RIG_S / 2);
	accuse(&r, 1, WORKER_REDUCING, 1 << 2);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_wait(&r, RIG_S / 2);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 3);
	assert_true(rig_saw(&r, CORE_EVENT_SUSPECTED, 2));
	rig_release(&r);
}

static void test_agreed_by_all_others(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	accuse(&r, 0, WORKER_REDUCING, 1 << 2);
	accuse(&r, 1, WORKER_REDUCING, 1 << 2);
	assert_int_equal(core_deadline_us(r.core), r.now_us + r.cfg.suspect_gather_us);
	accuse(&r, 3, WORKER_REDUCING, 1 << 2);
	assert_int_equal(core_deadline_us(r.core), r.now_us + r.cfg.suspect_gather_us / 4);
	rig_wait(&r, RIG_S / 8);
	accuse(&r, 1, WORKER_REDUCING, 1 << 2 | 1 << 3); /* another one, of which the others have not heard yet */
	rig_wait(&r, RIG_S / 4);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	accuse(&r, 0, WORKER_REDUCING, 1 << 2 | 1 << 3);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 3); /* whom fewer accuse the next attempt will show */
	rig_release(&r);
}

static void test_withdrawn_in_time(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 3);
	accuse(&r, 0, WORKER_REDUCING, 1 << 2);
	rig_wait(&r, RIG_S / 2);
	accuse(&r, 0, WORKER_REDUCING, 0);
	rig_wait(&r, RIG_S);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_release(&r);
}

/* Killed between its gather and its vote: the others hold everything. */
static void test_accused_when_all_others_voted(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 3);
	rig_say(&r, 0, WORKER_VOTED);
	accuse(&r, 1, WORKER_VOTED, 1 << 2);
	rig_wait(&r, RIG_S);
	assert_int_equal(rig_last(&r, CORE_COMMIT)->n_members, 3);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

static void test_mutual_more_accusers_loses(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 1, 4);
	accuse(&r, 1, WORKER_REDUCING, 1 << 3);
	accuse(&r, 3, WORKER_REDUCING, 1 << 1);
	accuse(&r, 2, WORKER_REDUCING, 1 << 1);
	rig_wait(&r, RIG_S);
	RIG_EXPECT_MEMBERS(&r, 0, 2, 3);
	rig_release(&r);
}

static void test_mutual_tie_higher_index_loses(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 1, 4);
	accuse(&r, 1, WORKER_REDUCING, 1 << 3);
	accuse(&r, 3, WORKER_REDUCING, 1 << 1);
	rig_wait(&r, RIG_S);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2);
	rig_release(&r);
}

/* One sleeps; everybody stalls for want of its data and accuses everybody. Only the sleeper
 * goes. */
static void test_stalls_behind_the_dead_one_are_not_believed(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	accuse(&r, 0, WORKER_REDUCING, 0xe);
	accuse(&r, 1, WORKER_REDUCING, 0xd);
	accuse(&r, 3, WORKER_REDUCING, 0x7);
	rig_wait(&r, RIG_S);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 3);
	rig_release(&r);
}

static void test_two_dead_at_once(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	accuse(&r, 0, WORKER_REDUCING, 0xa);
	accuse(&r, 2, WORKER_REDUCING, 0xa);
	rig_wait(&r, RIG_S);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 2);
	rig_release(&r);
}

/* Indices beyond the roster, oneself, and old attempts are not accusations. */
static void test_nonsense_is_ignored(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 1, 2);
	accuse(&r, 0, WORKER_REDUCING, ~2ull);
	accuse(&r, 1, WORKER_READY, 1);
	struct report rep = rig_report(&r, 1, WORKER_REDUCING);
	rep.attempt = 7;
	rig_accuse(&rep, 1);
	rig_send(&r, 1, &rep);
	rig_wait(&r, 2 * RIG_S);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_release(&r);
}

/* Two that cannot reach each other, and both are needed: the attempt is held, without a record or a
 * document more. */
static void test_held_below_min_workers(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 2);
	int records = r.n_records;
	uint64_t seq = rig_doc(&r)->seq;
	for (int i = 0; i < 20; i++) {
		accuse(&r, 0, WORKER_REDUCING, 2);
		accuse(&r, 1, WORKER_REDUCING, 1);
		rig_wait(&r, RIG_S);
	}
	rig_expect(&r, RUN_REDUCE, 0, 1);
	assert_int_equal(r.n_records, records);
	assert_int_equal(rig_doc(&r)->seq, seq);
	rig_say(&r, 0, WORKER_VOTED);
	rig_say(&r, 1, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* Accused in this round, it is a member like any other in the next, once it reports. */
static void test_back_in_the_next_round(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 1, 3);
	accuse(&r, 0, WORKER_REDUCING, 4);
	rig_wait(&r, 4 * RIG_S); /* the others do not vote: it may be what they wait for */
	rig_say(&r, 0, WORKER_VOTED);
	rig_say(&r, 1, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_say_all(&r, 3, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 1, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2);
	rig_release(&r);
}

static void commit_with(struct rig *r, int n) {
	const struct document *d = rig_doc(r);
	for (int i = 0; i < d->n_members; i++)
		rig_say(r, d->members[i].member, WORKER_VOTED);
	rig_say_all(r, n, WORKER_TRAINING);
	rig_say_all(r, n, WORKER_READY);
}

/* 1 and 3 do not reach each other; the others, which wait for what these owe each other, accuse
 *   them later or not. */
static void part(struct rig *r) {
	const struct document *d = rig_doc(r);
	int one = document_find(d, 1), three = document_find(d, 3);
	assert_true(one >= 0 && three >= 0);
	accuse(r, 1, WORKER_REDUCING, 1ull << three);
	accuse(r, 3, WORKER_REDUCING, 1ull << one);
	rig_wait(r, RIG_S);
}

/* Returns the set of members that own chunks. */
static uint64_t owners(const struct rig *r) {
	const struct document *d = rig_doc(r);
	uint64_t set = 0;
	for (int i = 0; i < d->n_ranges; i++)
		set |= 1ull << d->members[d->ranges[i].owner].member;
	return set;
}

/* Two attempts are lost to it; then neither of them owns chunks, until that is tried again rounds
 * later. */
static void test_a_pair_that_is_apart(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	part(&r);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2);
	assert_false(rig_saw(&r, CORE_EVENT_APART, 3));
	commit_with(&r, 4);
	part(&r);
	assert_true(rig_saw(&r, CORE_EVENT_APART, 3));
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3);
	assert_int_equal(owners(&r), 1 << 0 | 1 << 2);
	for (uint64_t round = 2; round < 9; round++) {
		commit_with(&r, 4);
		rig_expect(&r, RUN_REDUCE, round, 1);
		RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3);
		assert_int_equal(owners(&r), 1 << 0 | 1 << 2);
	}
	commit_with(&r, 4);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3);
	assert_int_equal(owners(&r), 0xf); /* perhaps they reach each other now */
	part(&r);
	assert_int_equal(owners(&r), 1 << 0 | 1 << 2);
	rig_release(&r);
}

static struct notice notice_of(const struct rig *r, uint32_t who) {
	uint8_t key[NET_KEY_BYTES];
	struct notice n;
	rig_key(who, key);
	bool any = core_notice(r->core, key, &n);
	assert_int_equal(any, n.kind != NOTICE_NONE);
	return n;
}

/* Both hear of it, with the other's number; nobody else does. When they have met it is over. */
static void test_a_pair_that_is_apart_hears_of_it(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	part(&r);
	struct notice n = notice_of(&r, 3);
	assert_int_equal(n.kind, NOTICE_NOT_COUNTED); /* once is no proof */
	assert_int_equal(n.reason, NOTICE_UNREACHED);
	commit_with(&r, 4);
	part(&r);
	n = notice_of(&r, 3);
	assert_int_equal(n.kind, NOTICE_APART);
	assert_true(!n.left_out && n.n_others == 1 && n.until_round == n.round + 8);
	uint32_t other = n.others[0];
	n = notice_of(&r, other);
	assert_int_equal(n.kind, NOTICE_APART);
	assert_false(n.left_out);
	assert_int_equal(n.others[0], 3);
	assert_int_equal(notice_of(&r, 1 - other).kind, NOTICE_NONE);
	uint64_t apart[CORE_HERE_WORDS];
	assert_int_equal(core_here(r.core), 4);
	assert_true(!core_apart(r.core, 3, apart) && apart[0] == 1ull << other);
	assert_true(!core_apart(r.core, 2, apart) && apart[0] == 0);
	for (int round = 2; round < 10; round++)
		commit_with(&r, 4);
	assert_int_equal(owners(&r), 0xf); /* tried again, not known yet */
	assert_int_equal(notice_of(&r, 3).kind, NOTICE_APART);
	rig_say_all(&r, 4, WORKER_VOTED);
	assert_int_equal(notice_of(&r, 3).kind, NOTICE_NONE);
	rig_release(&r);
}

/* One of the pair has closed its connection since, and says nothing: it has ended, and nobody is
 * told of routers. */
static void test_a_pair_of_which_one_ends(void **state) {
	(void)state;
	uint8_t key[NET_KEY_BYTES];
	struct rig r;
	rig_reducing(&r, 2, 4);
	part(&r);
	commit_with(&r, 4);
	part(&r);
	const uint32_t other = notice_of(&r, 3).others[0];
	rig_key(3, key);
	core_listens(r.core, r.now_us, key, false);
	assert_int_equal(notice_of(&r, other).kind, NOTICE_NONE);
	core_listens(r.core, r.now_us, key, true);
	assert_int_equal(notice_of(&r, other).kind, NOTICE_APART);
	rig_release(&r);
}

/* One that moves is tried at once. */
static void test_a_pair_of_which_one_moves(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	part(&r);
	commit_with(&r, 4);
	part(&r);
	commit_with(&r, 4);
	assert_int_equal(owners(&r), 1 << 0 | 1 << 2);
	for (uint32_t i = 0; i < 4; i++)
		rig_say(&r, i, WORKER_VOTED);
	struct report moved = rig_report(&r, 3, WORKER_TRAINING);
	(void)strcpy(moved.candidates[0].addr, "10.9.9.9:1");
	rig_send(&r, 3, &moved);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_say_all(&r, 3, WORKER_READY);
	moved = rig_report(&r, 3, WORKER_READY);
	(void)strcpy(moved.candidates[0].addr, "10.9.9.9:1");
	rig_send(&r, 3, &moved);
	assert_int_equal(owners(&r), 0xf);
	rig_release(&r);
}

/* One accuses everybody else, all the time; the others reduce, slowly, and vote. */
static void hold_up(uint32_t n, uint32_t liar, int seconds) {
	struct rig r;
	rig_reducing(&r, 2, (int)n);
	uint64_t others = ((1ull << n) - 1) & ~(1ull << liar);
	for (int s = 0; s < seconds; s++) {
		for (uint32_t i = 0; i < n; i++)
			accuse(&r, i, WORKER_REDUCING, i == liar ? others : 0);
		rig_wait(&r, RIG_S);
	}
	rig_expect(&r, RUN_REDUCE, 0, 2);
	assert_int_equal(rig_doc(&r)->n_members, n - 1);
	for (uint32_t i = 0; i < n - 1; i++)
		assert_int_not_equal(rig_doc(&r)->members[i].member, liar);
	for (uint32_t i = 0; i < n; i++)
		if (i != liar)
			rig_say(&r, i, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	assert_true(rig_saw(&r, CORE_EVENT_SUSPECTED, liar));
	rig_release(&r);
}

static void test_one_liar_holds_nobody_up(void **state) {
	(void)state;
	for (uint32_t n = 3; n <= 6; n++)
		for (uint32_t liar = 0; liar < n; liar++)
			hold_up(n, liar, 15);
}

/* It accuses one after the other: whom it put away is heard of again, and it is not believed
 * twice. */
static void test_a_liar_is_not_believed_twice_in_a_round(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 5);
	accuse(&r, 4, WORKER_REDUCING, 1 << 0);
	rig_wait(&r, 4 * RIG_S);
	RIG_EXPECT_MEMBERS(&r, 1, 2, 3, 4);
	rig_say(&r, 0, WORKER_READY);
	accuse(&r, 4, WORKER_REDUCING, 1 << 0); /* index 0 is member 1 now */
	rig_wait(&r, 4 * RIG_S);
	rig_expect(&r, RUN_REDUCE, 0, 2); /* it is not believed so fast any more */
	rig_say(&r, 1, WORKER_REDUCING);
	rig_expect(&r, RUN_REDUCE, 0, 2); /* the liar may have had its data since, and say so */
	rig_wait(&r, RIG_S);
	rig_say(&r, 1, WORKER_REDUCING);
	rig_expect(&r, RUN_REDUCE, 0, 3);
	RIG_EXPECT_MEMBERS(&r, 1, 2, 3);
	rig_release(&r);
}

/* Two of three die at once: their silence bears the third one out. */
static void test_who_accuses_the_silent_is_believed(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 1, 3);
	rig_wait(&r, RIG_S);
	for (int s = 0; s < 5; s++) {
		rig_expect(&r, RUN_REDUCE, 0, 1);
		accuse(&r, 0, WORKER_REDUCING, 6);
		rig_wait(&r, RIG_S);
	}
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gathered_then_left_out),
		cmocka_unit_test(test_agreed_by_all_others),
		cmocka_unit_test(test_withdrawn_in_time),
		cmocka_unit_test(test_accused_when_all_others_voted),
		cmocka_unit_test(test_mutual_more_accusers_loses),
		cmocka_unit_test(test_mutual_tie_higher_index_loses),
		cmocka_unit_test(test_stalls_behind_the_dead_one_are_not_believed),
		cmocka_unit_test(test_two_dead_at_once),
		cmocka_unit_test(test_nonsense_is_ignored),
		cmocka_unit_test(test_held_below_min_workers),
		cmocka_unit_test(test_back_in_the_next_round),
		cmocka_unit_test(test_a_pair_that_is_apart),
		cmocka_unit_test(test_a_pair_that_is_apart_hears_of_it),
		cmocka_unit_test(test_a_pair_of_which_one_ends),
		cmocka_unit_test(test_a_pair_of_which_one_moves),
		cmocka_unit_test(test_one_liar_holds_nobody_up),
		cmocka_unit_test(test_a_liar_is_not_believed_twice_in_a_round),
		cmocka_unit_test(test_who_accuses_the_silent_is_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
