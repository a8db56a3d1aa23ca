/* Members that cost the others attempts or waiting: they stay out, or are not waited for, for
 * longer and longer; who is only slandered is not. And rounds whose rosters come to nothing. */

#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { WORKERS = 4, BAD = 3, ROUNDS = 40 };

static void accuse(struct rig *r, uint32_t who, uint64_t suspects) {
	struct report rep = rig_report(r, who, WORKER_REDUCING);
	rig_accuse(&rep, suspects);
	rig_send(r, who, &rep);
}

static bool in_roster(const struct rig *r, uint32_t member) {
	return document_find(rig_doc(r), member) >= 0;
}

static void open_run(struct rig *r, uint32_t min_workers, int n) {
	rig_init(r, min_workers);
	r->cfg.final_round = 60;
	rig_start(r);
	rig_join(r, n);
}

/* All are ready, and those who are not on the roster go on training. */
static void freeze(struct rig *r, int n) {
	rig_say_all(r, n, WORKER_TRAINING);
	rig_say_all(r, n, WORKER_READY);
	assert_int_equal(rig_doc(r)->phase, RUN_REDUCE);
	assert_int_equal(rig_doc(r)->attempt, 1);
}

static void vote_of_all_in_it(struct rig *r) {
	uint64_t round = rig_doc(r)->round;
	for (uint32_t i = 0; i < WORKERS && rig_doc(r)->round == round; i++)
		if (in_roster(r, i))
			rig_say(r, i, WORKER_VOTED);
	assert_int_equal(rig_doc(r)->round, round + 1);
}

/* A round; whenever BAD is on its roster, `accusers` of the others get nothing from it. Returns
 * whether it was. */
static bool spoiled_round(struct rig *r, int accusers) {
	freeze(r, WORKERS);
	bool is_in = in_roster(r, BAD);
	for (uint32_t i = 0; i < WORKERS && is_in; i++)
		rig_say(r, i, WORKER_REDUCING);
	uint64_t suspects = is_in ? 1ull << document_find(rig_doc(r), BAD) : 0;
	for (uint32_t i = 0; i < (uint32_t)accusers && is_in; i++)
		accuse(r, i, suspects);
	if (is_in)
		rig_wait(r, 6 * RIG_S);
	vote_of_all_in_it(r);
	return is_in;
}

static void test_who_spoils_attempts_stays_out_for_longer_and_longer(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 2, WORKERS);
	uint64_t spoiled = 0;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		spoiled |= (uint64_t)spoiled_round(&r, 2) << round;
		if (round == 9)
			rig_restart(&r);
	}
	assert_true(spoiled == (1ull << 0 | 1ull << 1 | 1ull << 3 | 1ull << 7 | 1ull << 15 | 1ull << 31));
	rig_release(&r);
}

static void test_it_is_said_when_somebody_stays_out(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 2, WORKERS);
	assert_true(spoiled_round(&r, 3));
	assert_false(rig_saw(&r, CORE_EVENT_EXCLUDED, BAD)); /* cut off once: it has lost this round only */
	assert_true(spoiled_round(&r, 3));
	assert_true(rig_saw(&r, CORE_EVENT_EXCLUDED, BAD));
	rig_release(&r);
}

/* Two rounds without a cost take a level back: one that spoils every other round stays out for
 * longer and longer all the same. */
static void test_clean_rounds_make_up_for_it(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 2, WORKERS);
	assert_true(spoiled_round(&r, 2));
	assert_true(spoiled_round(&r, 2));
	assert_false(spoiled_round(&r, 2));
	for (int clean = 0; clean < 4; clean++) {
		freeze(&r, WORKERS);
		assert_true(in_roster(&r, BAD));
		vote_of_all_in_it(&r);
		if (clean == 2)
			rig_restart(&r);
	}
	assert_true(spoiled_round(&r, 2));
	assert_true(spoiled_round(&r, 2)); /* as if it were the first time */
	rig_release(&r);
}

static void test_a_clean_round_between_is_not_enough(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 2, WORKERS);
	int spoiled = 0;
	bool clean = false;
	for (int round = 0; round < ROUNDS; round++) {
		if (!clean) {
			clean = spoiled_round(&r, 2);
			spoiled += clean;
			continue;
		}
		freeze(&r, WORKERS);
		clean = !in_roster(&r, BAD);
		vote_of_all_in_it(&r);
	}
	assert_int_equal(spoiled, 6); /* of 40 rounds; 20 if each clean round took a level back */
	rig_release(&r);
}

static void test_one_accuser_alone_excludes_nobody_for_longer(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 2, WORKERS);
	for (uint32_t liar = 0; liar < 2; liar++) {
		freeze(&r, WORKERS);
		accuse(&r, liar, 1 << BAD);
		rig_wait(&r, 6 * RIG_S);
		assert_false(in_roster(&r, BAD));
		assert_int_equal(rig_blamed(&r, CORE_ROSTER), 0);
		vote_of_all_in_it(&r);
	}
	freeze(&r, WORKERS);
	assert_true(in_roster(&r, BAD));
	rig_release(&r);
}

/* An owner may have sent this one another mean. */
static void test_another_digest_excludes_nobody_for_longer(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 2, WORKERS);
	for (int round = 0; round < 5; round++) {
		freeze(&r, WORKERS);
		assert_true(in_roster(&r, BAD));
		for (uint32_t i = 0; i < WORKERS; i++) {
			struct report rep = rig_report(&r, i, WORKER_VOTED);
			rep.digest.b[0] ^= i == BAD;
			rig_send(&r, i, &rep);
		}
		assert_int_equal(rig_blamed(&r, CORE_COMMIT), 0);
	}
	rig_release(&r);
}

static void test_who_is_needed_takes_part_all_the_same(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, WORKERS, WORKERS);
	for (int round = 0; round < 3; round++) {
		freeze(&r, WORKERS);
		assert_true(in_roster(&r, BAD));
		rig_say_all(&r, WORKERS, WORKER_REDUCING);
		accuse(&r, 0, 1 << BAD);
		accuse(&r, 1, 1 << BAD);
		rig_wait(&r, 2 * RIG_S);
		rig_say(&r, BAD, WORKER_REDUCING); /* it was only cut off, and is not to blame for what is committed */
		rig_say_all(&r, WORKERS, WORKER_VOTED);
		assert_int_equal(rig_blamed(&r, CORE_COMMIT), 0);
	}
	rig_release(&r);
}

/* It trains the round again: its contribution was unusable. */
static void say_spoiled(struct rig *r, uint32_t who) {
	struct report rep = rig_report(r, who, WORKER_SYNCING);
	rep.proven_round = rig_doc(r)->round;
	rep.proven_chain = rig_doc(r)->chain;
	rig_send(r, who, &rep);
}

/* BAD is excluded, and of the three that are needed one trains the round again: that one is waited
 * for, not longer than grace, and no longer once that was in vain. */
static void test_a_round_waits_for_another_rather_than_take_who_is_excluded(void **state) {
	(void)state;
	for (int comes = 0; comes < 2; comes++) {
		struct rig r;
		open_run(&r, 3, WORKERS);
		assert_true(spoiled_round(&r, 2));
		assert_true(spoiled_round(&r, 2)); /* out of rounds 1 and 2 */
		rig_say_all(&r, WORKERS, WORKER_TRAINING);
		say_spoiled(&r, 2);
		rig_say(&r, 0, WORKER_READY);
		rig_say(&r, 1, WORKER_READY);
		rig_say(&r, BAD, WORKER_READY);
		rig_wait(&r, 4 * RIG_S);
		assert_int_not_equal(rig_doc(&r)->phase, RUN_REDUCE);
		if (comes)
			rig_say(&r, 2, WORKER_READY);
		else
			rig_wait(&r, 2 * RIG_S);
		assert_int_equal(rig_doc(&r)->phase, RUN_REDUCE);
		assert_int_equal(in_roster(&r, BAD), !comes);
		assert_int_equal(rig_saw(&r, CORE_EVENT_IN_VAIN, 2), !comes);
		rig_release(&r);
	}
}

static void test_of_two_that_accuse_each_other_neither_is_to_blame(void **state) {
	(void)state;
	for (int mutual = 0; mutual < 2; mutual++) {
		struct rig r;
		open_run(&r, 1, 2);
		freeze(&r, 2);
		rig_say_all(&r, 2, WORKER_REDUCING);
		accuse(&r, 0, 1 << 1);
		if (mutual)
			accuse(&r, 1, 1 << 0);
		rig_wait(&r, 6 * RIG_S);
		assert_int_equal(rig_blamed(&r, CORE_ROSTER), mutual ? 0 : 1 << 1);
		rig_release(&r);
	}
}

/* A round that has come to nothing opens again after a while. */
static void open_again(struct rig *r, int n) {
	rig_say_all(r, n, WORKER_READY);
	for (int s = 0; s < 60 && rig_doc(r)->phase != RUN_REDUCE; s++) {
		rig_wait(r, RIG_S);
		rig_say_all(r, n, WORKER_READY);
	}
	assert_int_equal(rig_doc(r)->phase, RUN_REDUCE);
}

/* Neither can be left out, and nothing says which one lies: once a third member is there, a round
 * has both. */
static void test_of_two_that_are_needed_neither_is_to_blame(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 2, 2);
	for (int k = 0; k < 3; k++) {
		open_again(&r, 2);
		rig_say_all(&r, 2, WORKER_REDUCING);
		accuse(&r, 0, 1 << 1);
		rig_wait(&r, 2 * RIG_S);
		assert_true(rig_saw(&r, CORE_EVENT_AT_ODDS, 0));
		say_spoiled(&r, 0);
		assert_int_not_equal(rig_doc(&r)->phase, RUN_REDUCE);
		assert_int_equal(rig_blamed(&r, CORE_ROSTER), 0);
		assert_false(rig_saw(&r, CORE_EVENT_SUSPECTED, 1));
		assert_false(rig_saw(&r, CORE_EVENT_EXCLUDED, 1));
	}
	rig_join(&r, 3);
	open_again(&r, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(in_roster(&r, i));
	rig_release(&r);
}

/* ---- members that go in the middle of attempts ---- */

/* Ways to go: its last report in the attempt, after all have entered it. */
enum way { RESTARTS, SYNCS, LEAVES, WAYS };

static void go(struct rig *r, enum way way) {
	struct report rep = rig_report(r, BAD, way == LEAVES ? WORKER_LEAVING : WORKER_SYNCING);
	rep.boot += way == RESTARTS ? rig_doc(r)->round + 1 : 0;
	rig_send(r, BAD, &rep);
}

static void say_of_process(struct rig *r, uint32_t who, enum worker_phase phase, uint64_t boot) {
	struct report rep = rig_report(r, who, phase);
	const struct rv_hash root = rig_root(who, boot, rep.round, 0);
	rep.boot = boot;
	for (int i = 0; i < rep.commitment.n; i++)
		rep.commitment.roots[i].root = root;
	rig_send(r, who, &rep);
}

/* A round; whenever BAD is on its roster, it goes. Returns whether it was. */
static bool round_with_one_that_goes(struct rig *r, enum way way, uint64_t *boot) {
	const uint64_t round = rig_doc(r)->round;
	rig_say_all(r, BAD, WORKER_TRAINING);
	say_of_process(r, BAD, WORKER_TRAINING, *boot);
	say_of_process(r, BAD, WORKER_READY, *boot);
	rig_say_all(r, BAD, WORKER_READY);
	rig_expect(r, RUN_REDUCE, round, 1);
	const bool is_in = in_roster(r, BAD);
	for (uint32_t i = 0; i < BAD; i++)
		rig_say(r, i, WORKER_REDUCING);
	if (is_in) {
		go(r, way);
		*boot = way == RESTARTS ? round + 2 : *boot;
		rig_expect(r, RUN_REDUCE, round, 2);
		assert_false(in_roster(r, BAD));
	}
	vote_of_all_in_it(r);
	return is_in;
}

static void test_who_goes_in_each_attempt_stays_out_for_longer_and_longer(void **state) {
	(void)state;
	for (enum way way = RESTARTS; way < WAYS; way++) {
		struct rig r;
		uint64_t went = 0, boot = 1;
		open_run(&r, 2, WORKERS);
		for (uint32_t round = 0; round < ROUNDS; round++) {
			went |= (uint64_t)round_with_one_that_goes(&r, way, &boot) << round;
			assert_int_equal(rig_saw(&r, CORE_EVENT_UNSTEADY, BAD), went >> round & (round > 0));
			assert_int_equal(rig_blamed(&r, CORE_COMMIT), 0); /* nobody is called a liar */
		}
		assert_true(went == (1ull << 0 | 1ull << 1 | 1ull << 3 | 1ull << 7 | 1ull << 15 | 1ull << 31));
		rig_release(&r);
	}
}

enum { MANY = 6 }; /* of these two are few */

static void say_others(struct rig *r, enum worker_phase phase) {
	for (uint32_t i = 0; i < MANY; i++)
		if (i != BAD)
			rig_say(r, i, phase);
}

/* A round; whenever BAD is on its roster, its process ends, and two others accuse it. It is back as
 * another one before the commit, or after it. Returns whether it was on it. */
static bool round_with_one_that_falls(struct rig *r, bool late, uint64_t *boot) {
	say_others(r, WORKER_TRAINING);
	say_of_process(r, BAD, WORKER_READY, *boot);
	say_others(r, WORKER_READY);
	const bool is_in = in_roster(r, BAD);
	say_others(r, WORKER_REDUCING);
	if (is_in) {
		accuse(r, 0, 1 << BAD);
		accuse(r, 1, 1 << BAD);
		rig_wait(r, RIG_S);
		assert_false(in_roster(r, BAD));
		assert_int_equal(rig_blamed(r, CORE_ROSTER), 0);
		*boot += 10000; /* as a clock gives it, and not counted up */
	}
	if (is_in && !late)
		say_of_process(r, BAD, WORKER_SYNCING, *boot);
	say_others(r, WORKER_VOTED);
	if (is_in && late)
		say_of_process(r, BAD, WORKER_SYNCING, *boot);
	return is_in;
}

static void test_who_is_accused_before_it_is_back_has_gone(void **state) {
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct rig r;
		uint64_t went = 0, boot = 1;
		open_run(&r, 2, MANY);
		for (int round = 0; round < 20; round++)
			went |= (uint64_t)round_with_one_that_falls(&r, late == 1, &boot) << round;
		const uint64_t in_it = 1ull << 0 | 1ull << 1 | 1ull << 3 | 1ull << 7 | 1ull << 15;
		const uint64_t after_it = 1ull << 0 | 1ull << 1 | 1ull << 4 | 1ull << 9 | 1ull << 18;
		assert_true(went == (late == 1 ? after_it : in_it));
		rig_release(&r);
	}
}

/* Started again once, it loses that attempt only; and four clean rounds later it is as if it had
 * not been. */
static void test_who_is_started_again_once_loses_nothing_more(void **state) {
	(void)state;
	struct rig r;
	uint64_t boot = 1;
	open_run(&r, 2, WORKERS);
	for (int again = 0; again < 3; again++) {
		assert_true(round_with_one_that_goes(&r, RESTARTS, &boot));
		assert_false(rig_saw(&r, CORE_EVENT_UNSTEADY, BAD));
		for (int clean = 0; clean < 4; clean++) {
			const uint64_t round = rig_doc(&r)->round;
			rig_say_all(&r, BAD, WORKER_TRAINING);
			say_of_process(&r, BAD, WORKER_READY, boot);
			rig_say_all(&r, BAD, WORKER_READY);
			rig_expect(&r, RUN_REDUCE, round, 1);
			assert_true(in_roster(&r, BAD));
			say_of_process(&r, BAD, WORKER_VOTED, boot);
			rig_say_all(&r, BAD, WORKER_VOTED);
			assert_int_equal(rig_doc(&r)->round, round + 1);
		}
	}
	rig_release(&r);
}

/* Three of four are started again in each round, as when the power fails: all take part in each. */
static void test_most_that_go_in_a_round_have_a_common_cause(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 1, WORKERS);
	for (uint64_t boot = 1; boot <= 4; boot++) {
		for (uint32_t i = 0; i < WORKERS; i++)
			say_of_process(&r, i, WORKER_TRAINING, i == 0 ? 1 : boot);
		for (uint32_t i = 0; i < WORKERS; i++)
			say_of_process(&r, i, WORKER_READY, i == 0 ? 1 : boot);
		rig_expect(&r, RUN_REDUCE, boot - 1, 1);
		assert_int_equal(rig_doc(&r)->n_members, WORKERS);
		for (uint32_t i = 1; i < WORKERS; i++)
			say_of_process(&r, i, WORKER_SYNCING, boot + 1);
		rig_say(&r, 0, WORKER_VOTED);
		assert_int_equal(rig_doc(&r)->round, boot);
		assert_false(rig_saw(&r, CORE_EVENT_UNSTEADY, BAD));
	}
	rig_release(&r);
}

/* ---- deadlines ---- */

static void say_ready_with_lines(struct rig *r, const uint64_t rates[WORKERS]) {
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct report rep = rig_report(r, i, WORKER_READY);
		rep.up_bytes_per_s = rep.down_bytes_per_s = rates[i];
		rig_send(r, i, &rep);
	}
}

/* 12 chunks of 1 MB; a participant that withholds is accused after 1 s. */
static void open_with_deadline(struct rig *r, uint32_t min_workers, const uint64_t rates[WORKERS]) {
	rig_init(r, min_workers);
	r->cfg.withheld_us = RIG_S;
	r->cfg.chunk_bytes = 1000000;
	rig_start(r);
	rig_join(r, WORKERS);
	rig_say_all(r, WORKERS, WORKER_TRAINING);
	say_ready_with_lines(r, rates);
	rig_expect(r, RUN_REDUCE, 0, 1);
}

static void test_deadline_follows_the_slowest_line(void **state) {
	(void)state;
	static const struct {
		uint64_t rates[WORKERS];
		uint32_t ms;
	} cases[] = {
		{{0, 0, 0, 0}, 868000},                              /* 9 x 12 MB at 1 Mbit/s each, and 4 s */
		{{1000000, 2000000, 3000000, 4000000}, 112000},      /* at 1 MB/s */
		{{1, 1600000, 1600000, 1600000}, 1084000},           /* a sixteenth of the median counts at least */
		{{100000000, 100000000, 100000000, 1000000}, 21280}, /* ... as here */
		{{1, 1, 1, 1}, 13504000},                            /* 8 kB/s at least */
		{{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, 4000},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rig r;
		open_with_deadline(&r, 2, cases[i].rates);
		assert_int_equal(rig_doc(&r)->deadline_ms, cases[i].ms);
		rig_restart(&r);
		assert_int_equal(rig_doc(&r)->deadline_ms, cases[i].ms);
		rig_release(&r);
	}
}

static const uint64_t fast[WORKERS] = {1000000000, 1000000000, 1000000000, 1000000000}; /* 4.108 s */

/* Two accuse one after so many seconds. */
static void fail_attempt(struct rig *r, int seconds) {
	open_with_deadline(r, 2, fast);
	assert_int_equal(rig_doc(r)->deadline_ms, 4108);
	for (int s = 0; s <= seconds; s++) {
		rig_say_all(r, WORKERS, WORKER_REDUCING);
		if (s == seconds) {
			accuse(r, 0, 1 << BAD);
			accuse(r, 1, 1 << BAD);
		}
		rig_wait(r, RIG_S);
	}
	rig_expect(r, RUN_REDUCE, 0, 2);
}

static void test_an_attempt_after_a_deadline_has_twice_the_time(void **state) {
	(void)state;
	struct rig r;
	fail_attempt(&r, 4);
	assert_int_equal(rig_doc(&r)->deadline_ms, 8216);
	rig_restart(&r);
	assert_int_equal(rig_doc(&r)->deadline_ms, 8216);
	rig_release(&r);
}

/* Nobody was slow. A record of an earlier release does not say so. */
static void test_an_attempt_after_one_that_ended_at_once_has_the_same_time(void **state) {
	(void)state;
	struct rig r;
	fail_attempt(&r, 0);
	assert_int_equal(rig_doc(&r)->deadline_ms, 4108);
	rig_restart(&r);
	assert_int_equal(rig_doc(&r)->deadline_ms, 4108);
	r.last[rig_last(&r, CORE_ROSTER)->id % RIG_RECORDS_KEPT].overran = CORE_OVERRAN_UNKNOWN;
	rig_restart(&r);
	assert_int_equal(rig_doc(&r)->deadline_ms, 8216);
	rig_release(&r);
}

/* They have all that they need, for they accuse nobody; and they do not vote. The others are no
 * majority. */
static void test_who_is_overdue_is_left_behind(void **state) {
	(void)state;
	struct rig r;
	open_with_deadline(&r, 2, fast);
	rig_say_all(&r, WORKERS, WORKER_REDUCING);
	rig_say(&r, 0, WORKER_VOTED);
	rig_say(&r, 1, WORKER_VOTED);
	rig_wait(&r, 6 * RIG_S);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	assert_int_equal(core_deadline_us(r.core), r.now_us + 108000);
	rig_wait(&r, RIG_S);
	assert_int_equal(rig_blamed(&r, CORE_COMMIT), 1 << BAD | 1 << 2);
	assert_int_equal(rig_last(&r, CORE_COMMIT)->n_members, WORKERS); /* their contributions are in what was voted for */
	assert_true(rig_saw(&r, CORE_EVENT_OVERDUE, BAD));
	rig_release(&r);
}

static void test_who_accuses_is_not_overdue(void **state) {
	(void)state;
	struct rig r;
	open_with_deadline(&r, 2, fast);
	rig_say_all(&r, WORKERS, WORKER_REDUCING);
	rig_say(&r, 0, WORKER_VOTED);
	rig_say(&r, 1, WORKER_VOTED);
	rig_wait(&r, 6 * RIG_S);
	accuse(&r, 2, 1 << BAD);
	rig_wait(&r, RIG_S / 2); /* the accusation is still being weighed */
	assert_false(rig_saw(&r, CORE_EVENT_OVERDUE, 2));
	assert_int_equal(rig_blamed(&r, CORE_ROSTER), 1 << BAD);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2);
	rig_release(&r);
}

/* It has what the others gave it, and gives nothing: they accuse it, and are too few without it.
 * Those that wait for one that is put away are not to blame when the attempt ends. */
static void test_who_accuses_one_that_is_put_away_is_not_overdue(void **state) {
	(void)state;
	struct rig r;
	open_with_deadline(&r, WORKERS, fast);
	rig_say_all(&r, WORKERS, WORKER_REDUCING);
	rig_wait(&r, 5 * RIG_S);
	rig_say(&r, BAD, WORKER_VOTED);
	for (uint32_t i = 0; i < BAD; i++)
		accuse(&r, i, 1 << BAD);
	rig_wait(&r, RIG_S / 2);
	assert_true(rig_saw(&r, CORE_EVENT_SUSPECTED, BAD));
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_wait(&r, 2 * RIG_S);
	assert_int_equal(rig_last(&r, CORE_ROSTER)->n_members, 0);
	assert_int_equal(rig_blamed(&r, CORE_ROSTER), 1 << BAD);
	for (uint32_t i = 0; i < BAD; i++)
		assert_false(rig_saw(&r, CORE_EVENT_OVERDUE, i));
	rig_release(&r);
}

/* What it delivers is whole, and it never votes: the others do not wait for one that says it lacks
 * what they have. */
static void test_who_accuses_itself_is_outvoted(void **state) {
	static const uint64_t nobody_else[] = {1 << BAD, 1ull << 63};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rig r;
		open_with_deadline(&r, 2, fast);
		rig_say_all(&r, WORKERS, WORKER_REDUCING);
		for (uint32_t k = 0; k < BAD; k++)
			rig_say(&r, k, WORKER_VOTED);
		accuse(&r, BAD, nobody_else[i]);
		assert_int_equal(rig_last(&r, CORE_COMMIT)->n_members, WORKERS);
		assert_int_equal(rig_blamed(&r, CORE_COMMIT), 0);
		rig_release(&r);
	}
}

/* Nobody has voted: all have had the time to accuse somebody when the round is opened again. A liar
 * that is alone in a roster, and never votes, would else stop the run. */
static void test_a_roster_that_says_nothing_ends(void **state) {
	(void)state;
	struct rig r;
	open_with_deadline(&r, 2, fast);
	for (int s = 0; s < 16; s++) { /* 4.1 s, 2 s in which the late are accused, 10 s */
		rig_expect(&r, RUN_REDUCE, 0, 1);
		rig_say_all(&r, WORKERS, WORKER_REDUCING);
		rig_wait(&r, RIG_S);
	}
	rig_wait(&r, RIG_S);
	assert_int_equal(rig_last(&r, CORE_ROSTER)->n_members, 0);
	rig_release(&r);
}

/* A roster of none was no attempt: it adds no time to the next one's. */
static void test_time_grows_with_rosters_that_had_participants(void **state) {
	(void)state;
	struct rig r;
	open_with_deadline(&r, 2, fast);
	for (int s = 0; s < 16; s++) {
		rig_say_all(&r, WORKERS, WORKER_REDUCING);
		rig_wait(&r, RIG_S);
	}
	rig_wait(&r, RIG_S);
	say_ready_with_lines(&r, fast);
	rig_expect(&r, RUN_REDUCE, 0, 3);
	assert_int_equal(rig_doc(&r)->deadline_ms, 8216);
	rig_restart(&r);
	assert_int_equal(rig_doc(&r)->deadline_ms, 8216);
	rig_release(&r);
}

/* Without it there are too few: it gets another attempt, with more time. */
static void test_an_overdue_one_that_is_needed_opens_the_round_again(void **state) {
	(void)state;
	struct rig r;
	open_with_deadline(&r, WORKERS, fast);
	rig_say_all(&r, WORKERS, WORKER_REDUCING);
	for (uint32_t i = 0; i < BAD; i++) {
		struct report rep = rig_report(&r, i, WORKER_VOTED);
		rep.digest.b[0] = (uint8_t)i; /* so that it is no commit */
		rig_send(&r, i, &rep);
	}
	for (int s = 0; s < 7; s++) {
		rig_say(&r, BAD, WORKER_REDUCING);
		rig_wait(&r, RIG_S);
	}
	assert_int_not_equal(rig_doc(&r)->phase, RUN_REDUCE);
	assert_true(rig_saw(&r, CORE_EVENT_OVERDUE, BAD));
	rig_release(&r);
}

/* ---- rounds that are opened again ---- */

/* An owner sends everybody else another mean, when it is in the roster, but for `favoured`, which
 * gets its own. Returns the rosters until the commit, or until `seconds` are over. */
static int rosters_with_a_favourite(struct rig *r, uint32_t liar, uint32_t favoured, int seconds) {
	int rosters = 0;
	uint32_t attempt = 0;
	uint64_t round = rig_doc(r)->round;
	rig_say_all(r, WORKERS, WORKER_TRAINING);
	for (int tenth = 0; tenth < 10 * seconds && rig_doc(r)->round == round; tenth++) {
		bool reduces = rig_doc(r)->phase == RUN_REDUCE;
		rosters += reduces && rig_doc(r)->attempt != attempt;
		attempt = rig_doc(r)->attempt;
		bool lies = reduces && in_roster(r, liar);
		for (uint32_t i = 0; i < WORKERS && rig_doc(r)->round == round; i++) {
			bool votes = reduces && in_roster(r, i) && rig_doc(r)->attempt == attempt;
			struct report rep = rig_report(r, i, votes ? WORKER_VOTED : WORKER_READY);
			rep.digest.b[0] ^= (uint8_t)(!lies ? 0 : i == favoured ? liar + 1 : i + 1);
			rig_send(r, i, &rep);
		}
		r->now_us += RIG_S / 10;
		core_tick(r->core, r->now_us);
		rig_pump(r);
	}
	return rosters;
}

static int rosters_with_a_lying_owner(struct rig *r, uint32_t liar, int seconds) {
	return rosters_with_a_favourite(r, liar, NET_MAX_ROW, seconds);
}

/* Two equal votes of four would leave a roster of two, where no contribution is limited. */
static void test_a_liar_and_its_favourite_do_not_have_the_run_to_themselves(void **state) {
	(void)state;
	for (uint32_t liar = 0; liar < WORKERS; liar++) {
		struct rig r;
		open_run(&r, 1, WORKERS);
		assert_in_range(rosters_with_a_favourite(&r, liar, (liar + 1) % WORKERS, 60), 2, 1 + WORKERS);
		assert_int_equal(rig_doc(&r)->round, 1);
		assert_int_equal(rig_last(&r, CORE_COMMIT)->n_members, WORKERS - 1);
		for (int i = 0; i < WORKERS - 1; i++)
			assert_int_not_equal(rig_last(&r, CORE_COMMIT)->members[i], liar);
		rig_release(&r);
	}
}

static void test_rosters_are_not_opened_again_all_the_time(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, WORKERS, WORKERS); /* nobody can be left out */
	assert_in_range(rosters_with_a_lying_owner(&r, 1, 45), 3, 8);
	assert_int_equal(rig_doc(&r)->round, 0);
	assert_true(rig_saw(&r, CORE_EVENT_UNLIKE, NET_NO_MEMBER));
	rig_release(&r);
}

static bool owns(const struct document *d, int index) {
	for (int i = 0; i < d->n_ranges; i++)
		if (d->ranges[i].owner == index)
			return true;
	return false;
}

/* Two indices of the members in `apart` that are on the roster, other ones in each attempt; false:
 * there are no two, or they need not reach each other. */
static bool two_of(const struct document *d, uint64_t apart, int of[2]) {
	uint32_t at[NET_MAX_ROW], n = 0;
	for (uint32_t i = 0; i < d->n_members; i++)
		if (apart & 1ull << d->members[i].member)
			at[n++] = i;
	if (d->phase != RUN_REDUCE || n < 2)
		return false;
	for (uint32_t k = d->attempt; k < d->attempt + n * (n - 1); k++) {
		uint32_t first = k % n;
		of[0] = (int)at[first];
		of[1] = (int)at[(first + 1 + k / n % (n - 1)) % n];
		if (owns(d, of[0]) || owns(d, of[1]))
			return true;
	}
	return false;
}

/* Reports of all `n`, in this second. Of the members in `apart` no two reach each other: two of a
 * roster accuse each other, and then nobody has a result. */
static void report_with_some_apart(struct rig *r, int n, uint64_t apart) {
	struct document d = *rig_doc(r);
	int of[2] = {-1, -1};
	bool parted = two_of(&d, apart, of);
	for (uint32_t i = 0; i < (uint32_t)n && rig_doc(r)->round == d.round; i++) {
		int at = d.phase == RUN_REDUCE ? document_find(&d, i) : -1;
		struct report rep = rig_report(r, i, at < 0 ? WORKER_READY : parted ? WORKER_REDUCING : WORKER_VOTED);
		if (parted && at >= 0 && (at == of[0] || at == of[1]))
			rig_accuse(&rep, 1ull << of[at == of[0]]);
		rig_send(r, i, &rep);
	}
	rig_wait(r, RIG_S);
}

/* Returns the rosters until the commit, or until `seconds` are over. */
static int rosters_with_some_apart(struct rig *r, int n, uint64_t apart, int seconds) {
	int rosters = 0;
	uint32_t attempt = 0;
	uint64_t round = rig_doc(r)->round;
	rig_say_all(r, n, WORKER_TRAINING);
	for (int s = 0; s < seconds && rig_doc(r)->round == round; s++) {
		report_with_some_apart(r, n, apart);
		rosters += rig_doc(r)->phase == RUN_REDUCE && rig_doc(r)->attempt != attempt;
		attempt = rig_doc(r)->attempt;
	}
	return rosters;
}

/* 0, 1 and 2 come to be behind routers, after 5 and 6 did not reach each other for a while: of five
 * that are needed one may be among the first three, and it must be 5 and 6 that come back. Which
 * rosters are in vain is learned at once. */
static void test_who_is_behind_a_router_is_soon_known(void **state) {
	(void)state;
	enum { N = 7, ROUTERS = 1 << 0 | 1 << 1 | 1 << 2, FOR_A_WHILE = 1 << 5 | 1 << 6 };
	struct rig r;
	open_run(&r, 5, N);
	for (int round = 0; round < 2; round++)
		(void)rosters_with_some_apart(&r, N, FOR_A_WHILE, 10);
	assert_int_equal(rig_doc(&r)->round, 2);
	int64_t since_us = r.now_us;
	assert_in_range(rosters_with_some_apart(&r, N, ROUTERS, 100), 2, 12);
	assert_int_equal(rig_doc(&r)->round, 3);
	assert_in_range(r.now_us - since_us, 0, 40 * RIG_S);
	rig_release(&r);
}

/* Two of more pairs than are remembered, each time others: that is learned from until it has been
 * enough. */
static void test_who_is_apart_and_needed_is_not_tried_all_the_time(void **state) {
	(void)state;
	enum { N = 13, PAIRS = N * (N - 1) / 2, LESSONS = 64 };
	_Static_assert(PAIRS > LESSONS, "each is forgotten before it comes again");
	struct rig r;
	open_run(&r, N - 1, N);
	assert_in_range(rosters_with_some_apart(&r, N, (1 << N) - 1, 1000), LESSONS / 2, 3 * LESSONS);
	assert_in_range(rosters_with_some_apart(&r, N, (1 << N) - 1, 1000), 2, 16);
	assert_int_equal(rig_doc(&r)->round, 0);
	rig_release(&r);
}

static void test_rosters_leave_one_out_in_turn(void **state) {
	(void)state;
	for (uint32_t liar = 0; liar < WORKERS; liar++) {
		struct rig r;
		open_run(&r, 3, WORKERS);
		assert_in_range(rosters_with_a_lying_owner(&r, liar, 60), 2, 1 + WORKERS);
		assert_int_equal(rig_doc(&r)->round, 1);
		assert_false(rig_last(&r, CORE_COMMIT)->members[liar] == liar);
		assert_int_equal(rig_blamed(&r, CORE_COMMIT), 0);
		assert_int_equal(rosters_with_a_lying_owner(&r, liar, 60), 2); /* that one first, the next time */
		rig_release(&r);
	}
}

/* ---- waiting ---- */

enum { GHOST = 3, GRACE_S = 5 };

/* All are ready at once, but GHOST after so many seconds (-1: never). Returns how long the round
 * waited. */
static int wait_for(struct rig *r, int ready_after_s) {
	rig_say_all(r, WORKERS, WORKER_TRAINING);
	uint64_t round = rig_doc(r)->round;
	int waited = 0;
	for (uint32_t i = 0; i < GHOST; i++)
		rig_say(r, i, WORKER_READY);
	for (; rig_doc(r)->phase != RUN_REDUCE; waited++) {
		rig_say(r, GHOST, waited == ready_after_s ? WORKER_READY : WORKER_TRAINING);
		if (rig_doc(r)->phase != RUN_REDUCE)
			rig_wait(r, RIG_S);
		assert_true(waited <= GRACE_S);
	}
	vote_of_all_in_it(r);
	assert_int_equal(rig_doc(r)->round, round + 1);
	return waited;
}

/* It reports that it trains, for ever. */
static void test_a_ghost_costs_a_bounded_time(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 2, WORKERS);
	int waited_s = 0;
	for (int round = 0; round < ROUNDS; round++)
		waited_s += wait_for(&r, -1) >= GRACE_S ? GRACE_S : 0;
	assert_int_equal(waited_s, 6 * GRACE_S); /* rounds 0, 2, 5, 10, 19, 36 */
	rig_release(&r);
}

static void test_a_ghost_is_named(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 2, WORKERS);
	(void)wait_for(&r, -1);
	assert_true(rig_saw(&r, CORE_EVENT_IN_VAIN, GHOST));
	rig_release(&r);
}

/* Slower than the others, and in time: waited for in every round. */
static void test_who_is_ready_in_time_is_waited_for(void **state) {
	(void)state;
	struct rig r;
	open_run(&r, 2, WORKERS);
	for (int round = 0; round < ROUNDS; round++)
		assert_int_equal(wait_for(&r, GRACE_S - 1), GRACE_S);
	assert_false(rig_saw(&r, CORE_EVENT_IN_VAIN, GHOST));
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_spoils_attempts_stays_out_for_longer_and_longer),
		cmocka_unit_test(test_it_is_said_when_somebody_stays_out),
		cmocka_unit_test(test_clean_rounds_make_up_for_it),
		cmocka_unit_test(test_a_clean_round_between_is_not_enough),
		cmocka_unit_test(test_one_accuser_alone_excludes_nobody_for_longer),
		cmocka_unit_test(test_another_digest_excludes_nobody_for_longer),
		cmocka_unit_test(test_who_is_needed_takes_part_all_the_same),
		cmocka_unit_test(test_a_round_waits_for_another_rather_than_take_who_is_excluded),
		cmocka_unit_test(test_of_two_that_accuse_each_other_neither_is_to_blame),
		cmocka_unit_test(test_of_two_that_are_needed_neither_is_to_blame),
		cmocka_unit_test(test_who_goes_in_each_attempt_stays_out_for_longer_and_longer),
		cmocka_unit_test(test_who_is_accused_before_it_is_back_has_gone),
		cmocka_unit_test(test_who_is_started_again_once_loses_nothing_more),
		cmocka_unit_test(test_most_that_go_in_a_round_have_a_common_cause),
		cmocka_unit_test(test_deadline_follows_the_slowest_line),
		cmocka_unit_test(test_an_attempt_after_a_deadline_has_twice_the_time),
		cmocka_unit_test(test_an_attempt_after_one_that_ended_at_once_has_the_same_time),
		cmocka_unit_test(test_who_is_overdue_is_left_behind),
		cmocka_unit_test(test_who_accuses_is_not_overdue),
		cmocka_unit_test(test_who_accuses_one_that_is_put_away_is_not_overdue),
		cmocka_unit_test(test_who_accuses_itself_is_outvoted),
		cmocka_unit_test(test_a_roster_that_says_nothing_ends),
		cmocka_unit_test(test_time_grows_with_rosters_that_had_participants),
		cmocka_unit_test(test_an_overdue_one_that_is_needed_opens_the_round_again),
		cmocka_unit_test(test_rosters_are_not_opened_again_all_the_time),
		cmocka_unit_test(test_a_liar_and_its_favourite_do_not_have_the_run_to_themselves),
		cmocka_unit_test(test_who_is_behind_a_router_is_soon_known),
		cmocka_unit_test(test_who_is_apart_and_needed_is_not_tried_all_the_time),
		cmocka_unit_test(test_rosters_leave_one_out_in_turn),
		cmocka_unit_test(test_a_ghost_costs_a_bounded_time),
		cmocka_unit_test(test_a_ghost_is_named),
		cmocka_unit_test(test_who_is_ready_in_time_is_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
