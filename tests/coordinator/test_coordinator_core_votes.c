/* REDUCE: commits, deaths, disagreement, restarts, and a run that falls below min_workers. */
#include <string.h>

#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

/* Time passes; worker `dead` and later ones are silent, all others repeat that they reduce. */
static void pass_without(struct rig *r, int n, uint32_t dead) {
	rig_wait(r, 6 * RIG_S);
	for (uint32_t i = 0; i < (uint32_t)n; i++)
		if (i != dead)
			rig_say(r, i, WORKER_REDUCING);
	rig_wait(r, 4 * RIG_S);
}

static void vote(struct rig *r, uint32_t who, uint8_t flavour) {
	struct report rep = rig_report(r, who, WORKER_VOTED);
	rep.digest.b[0] ^= flavour;
	rig_send(r, who, &rep);
}

static void say_as(struct rig *r, uint32_t who, enum worker_phase phase, uint64_t boot) {
	struct report rep = rig_report(r, who, phase);
	rep.boot = boot;
	rig_send(r, who, &rep);
}

static void test_commit_when_all_vote_alike(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 3);
	rig_say(&r, 0, WORKER_VOTED);
	rig_say(&r, 2, WORKER_VOTED);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_say(&r, 1, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	const struct core_record *rec = rig_last(&r, CORE_COMMIT);
	struct rv_hash digest = rig_digest(0);
	assert_memory_equal(&rec->digest, &digest, sizeof digest);
	assert_int_equal(rec->n_members, 3);
	assert_memory_equal(&rig_doc(&r)->log[0], &digest, sizeof digest);
	rig_release(&r);
}

static void test_votes_of_other_attempts_and_rounds_do_not_count(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 1, 2);
	rig_say(&r, 0, WORKER_VOTED);
	struct report rep = rig_report(&r, 1, WORKER_VOTED);
	rep.attempt = 2;
	rig_send(&r, 1, &rep);
	rep = rig_report(&r, 1, WORKER_REDUCING);
	rig_send(&r, 1, &rep);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_release(&r);
}

/* Otherwise a member could join the majority after a dispute has asked it for what it voted. */
static void test_the_first_vote_of_an_attempt_stands(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 3);
	vote(&r, 0, 1);
	vote(&r, 1, 0);
	vote(&r, 0, 0);
	rig_wait(&r, RIG_S); /* two of three that agree would commit within this time */
	assert_int_equal(rig_doc(&r)->round, 0);
	rig_release(&r);
}

/* The dead one delivered its part: the survivors hold the whole result, and its contribution
 * counts. */
static void test_death_after_the_gather_costs_no_attempt(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	for (uint32_t i = 0; i < 3; i++)
		rig_say(&r, i, WORKER_VOTED);
	rig_wait(&r, RIG_S - 1);
	rig_expect(&r, RUN_REDUCE, 0, 1); /* a quarter of withheld_us: it may vote yet */
	rig_wait(&r, 1);
	assert_int_equal(rig_last(&r, CORE_COMMIT)->n_members, 4);
	assert_true(rig_saw(&r, CORE_EVENT_MUTE, 3));
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* A majority waits as long again as it took. */
static void test_slow_votes_are_waited_for_longer(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	rig_wait(&r, 3 * RIG_S);
	for (uint32_t i = 0; i < 3; i++)
		rig_say(&r, i, WORKER_VOTED);
	rig_wait(&r, 3 * RIG_S - 1);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_say(&r, 3, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	assert_false(rig_saw(&r, CORE_EVENT_MUTE, 3));
	rig_release(&r);
}

/* It never votes: in 40 rounds the others wait for it a few times only. */
static void test_who_never_votes_is_waited_for_less_and_less(void **state) {
	enum { ROUNDS = 40, MUTE = 3 };
	(void)state;
	struct rig r;
	int waited = 0;
	rig_init(&r, 2);
	r.cfg.final_round = ROUNDS + 1;
	rig_start(&r);
	rig_join(&r, 4);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		rig_say_all(&r, 4, WORKER_TRAINING);
		rig_say_all(&r, 4, WORKER_READY);
		RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3); /* it takes part: it withholds nothing */
		for (uint32_t i = 0; i < MUTE; i++)
			rig_say(&r, i, WORKER_VOTED);
		waited += rig_doc(&r)->round == round;
		rig_wait(&r, RIG_S);
		assert_int_equal(rig_doc(&r)->round, round + 1);
		assert_int_equal(rig_blamed(&r, CORE_COMMIT), 0);
	}
	assert_int_equal(waited, 6); /* 1 + 2 + 4 + 8 + 16 rounds lie between */
	rig_release(&r);
}

/* Worker 2 is silent and left out; then worker 1 restarts, so that the round opens again, and has
 * all three. */
static void left_out_and_back(struct rig *r) {
	rig_reducing(r, 2, 3);
	pass_without(r, 3, 2);
	rig_expect(r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(r, 0, 1);
	say_as(r, 1, WORKER_SYNCING, 2);
	rig_expect(r, RUN_OPEN, 0, 0);
	say_as(r, 1, WORKER_TRAINING, 2);
	rig_say(r, 0, WORKER_READY);
	rig_say(r, 2, WORKER_READY);
	say_as(r, 1, WORKER_READY, 2);
	rig_expect(r, RUN_REDUCE, 0, 4);
	RIG_EXPECT_MEMBERS(r, 0, 1, 2);
}

/* Workers 0 and 1 have voted, and worker 2 is not heard of any more. */
static void silence_after_the_votes(struct rig *r) {
	for (int i = 0; i < 2; i++) {
		rig_say(r, 0, WORKER_VOTED);
		say_as(r, 1, WORKER_VOTED, 2);
		rig_expect(r, RUN_REDUCE, 0, 4);
		rig_wait(r, i == 0 ? 6 * RIG_S : 4 * RIG_S);
	}
}

/* Peers still hold what it gave to the first attempt, but it was told since that it does not
 * count. */
static void test_who_was_left_out_does_not_count_unawares(void **state) {
	(void)state;
	for (int restarted = 0; restarted < 2; restarted++) {
		struct rig r;
		left_out_and_back(&r);
		if (restarted)
			rig_restart(&r);
		silence_after_the_votes(&r);
		rig_expect(&r, RUN_REDUCE, 0, 5);
		RIG_EXPECT_MEMBERS(&r, 0, 1);
		rig_release(&r);
	}
}

static void test_who_was_left_out_counts_when_it_takes_part_again(void **state) {
	(void)state;
	struct rig r;
	left_out_and_back(&r);
	rig_say(&r, 2, WORKER_REDUCING);
	rig_say(&r, 0, WORKER_VOTED);
	say_as(&r, 1, WORKER_VOTED, 2);
	rig_wait(&r, RIG_S);
	assert_int_equal(rig_last(&r, CORE_COMMIT)->n_members, 3);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

static void test_death_opens_the_next_attempt(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	rig_say(&r, 0, WORKER_VOTED);
	pass_without(&r, 4, 2);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 3);
	/* Survivors keep 0-2, 3-5 and 9-11; chunks 6-8 are dealt. */
	const struct document *d = rig_doc(&r);
	uint16_t owner[RIG_CHUNKS];
	for (int i = 0; i < d->n_ranges; i++)
		for (uint32_t k = 0; k < d->ranges[i].count; k++)
			owner[d->ranges[i].first + k] = d->ranges[i].owner;
	assert_memory_equal(owner, ((uint16_t[]){0, 0, 0, 1, 1, 1, 0, 1, 2, 2, 2, 2}), sizeof owner);
	/* Its votes of attempt 1, and the late one's, count for nothing now. */
	struct report late = rig_report(&r, 2, WORKER_VOTED);
	late.attempt = 1;
	rig_send(&r, 2, &late);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	for (uint32_t i = 0; i < 4; i += i == 1 ? 2 : 1)
		rig_say(&r, i, WORKER_VOTED);
	assert_int_equal(rig_last(&r, CORE_COMMIT)->attempt, 2);
	assert_int_equal(rig_last(&r, CORE_COMMIT)->n_members, 3);
	rig_release(&r);
}

static void test_leaver_is_not_waited_for(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 3);
	rig_say(&r, 1, WORKER_LEAVING);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 2);
	rig_release(&r);
}

static void test_leaver_after_all_others_voted(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 3);
	rig_say(&r, 0, WORKER_VOTED);
	rig_say(&r, 2, WORKER_VOTED);
	rig_say(&r, 1, WORKER_LEAVING);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

static void test_restarted_participant_has_lost_its_reduce(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 3);
	struct report rep = rig_report(&r, 1, WORKER_SYNCING);
	rep.boot = 2;
	rig_send(&r, 1, &rep);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 2);
	assert_true(rig_saw(&r, CORE_EVENT_LOST, 1));
	rig_release(&r);
}

/* It had its vote on disk. */
static void test_restarted_participant_may_vote(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 3);
	struct report rep = rig_report(&r, 1, WORKER_VOTED);
	rep.boot = 2;
	rig_send(&r, 1, &rep);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_say(&r, 0, WORKER_VOTED);
	rig_say(&r, 2, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* It has the result on its disk, but died before it had given its part of it: nobody else can
 * finish. */
static void test_a_vote_of_another_process_does_not_hold_the_run(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 2);
	for (int i = 0; i < 8 && rig_doc(&r)->phase == RUN_REDUCE; i++) {
		say_as(&r, 1, WORKER_VOTED, 2);
		struct report rep = rig_report(&r, 0, WORKER_REDUCING);
		rig_accuse(&rep, 1u << 1);
		rig_send(&r, 0, &rep);
		rig_wait(&r, 1 * RIG_S);
	}
	say_as(&r, 1, WORKER_READY, 2);
	rig_say(&r, 0, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 3); /* 2 was the reopening */
	rig_release(&r);
}

static void test_minority_is_named_and_outvoted(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	vote(&r, 0, 0);
	vote(&r, 1, 1);
	vote(&r, 2, 0);
	rig_expect(&r, RUN_REDUCE, 0, 1); /* 3 may decide */
	vote(&r, 3, 0);
	assert_int_equal(rig_last(&r, CORE_COMMIT)->n_members, 4); /* its contribution is in what the others hold */
	assert_int_equal(rig_blamed(&r, CORE_COMMIT), 0);          /* an owner may have lied to it */
	assert_true(rig_saw(&r, CORE_EVENT_DISAGREED, 1));
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* Two and two: neither pair goes on alone, and the next roster is without one of the four. */
static void test_a_tie_is_no_majority(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	for (uint8_t i = 0; i < 4; i++)
		vote(&r, i, i == 0 || i == 3);
	assert_true(rig_saw(&r, CORE_EVENT_UNLIKE, NET_NO_MEMBER));
	assert_false(rig_saw(&r, CORE_EVENT_DISAGREED, 1));
	rig_say_all(&r, 4, WORKER_READY);
	rig_wait(&r, RIG_S);
	assert_int_equal(rig_doc(&r)->phase, RUN_REDUCE);
	assert_int_equal(rig_doc(&r)->n_members, 3);
	rig_release(&r);
}

/* Too few agree: the round is open again, and everyone may try once more under a new attempt
 * number. */
static void test_disagreement_below_min_workers_reopens(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 2);
	vote(&r, 0, 0);
	vote(&r, 1, 1);
	assert_true(rig_saw(&r, CORE_EVENT_UNLIKE, NET_NO_MEMBER)); /* nothing says which of the two lies */
	/* Both still hold their gradients, so the next roster follows at once. */
	rig_expect(&r, RUN_REDUCE, 0, 3);
	RIG_EXPECT_MEMBERS(&r, 0, 1);
	vote(&r, 0, 0);
	vote(&r, 1, 0);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* Cut off, not dead: the attempt is held, and finished when the missing one is back. */
static void test_held_below_min_workers(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 2);
	pass_without(&r, 2, 1);
	pass_without(&r, 2, 1);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_say(&r, 1, WORKER_VOTED);
	rig_say(&r, 0, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* One vote of four is not enough of a disk to put a round on, when the operator wants three
 * workers. */
static void test_quorum(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 3, 4);
	rig_say(&r, 0, WORKER_VOTED);
	rig_wait(&r, 6 * RIG_S);
	rig_say(&r, 0, WORKER_VOTED);
	rig_wait(&r, 4 * RIG_S);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_say(&r, 3, WORKER_VOTED);
	rig_expect(&r, RUN_WAITING, 1, 0);
	rig_release(&r);
}

static void test_reopened_when_a_contribution_is_lost(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 2);
	struct report rep = rig_report(&r, 1, WORKER_SYNCING);
	rep.boot = 2;
	rig_send(&r, 1, &rep);
	assert_int_equal(rig_last(&r, CORE_ROSTER)->n_members, 0);
	rig_expect(&r, RUN_OPEN, 0, 0);
	rig_restart(&r);
	rig_expect(&r, RUN_OPEN, 0, 0);
	rig_say(&r, 0, WORKER_READY);
	rep = rig_report(&r, 1, WORKER_READY);
	rep.boot = 2;
	rig_send(&r, 1, &rep);
	rig_expect(&r, RUN_REDUCE, 0, 3); /* 2 was the reopening */
	rig_release(&r);
}

/* The run waits below min_workers; another worker becomes ready, and the round goes on with it. */
static void test_reopened_when_others_stand_ready(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 2);
	uint8_t key[NET_KEY_BYTES];
	uint32_t member;
	struct join_request rq = {.protocol = CONTROL_VERSION, .has_token = true, .token = {77}};
	memcpy(rq.run_id, r.cfg.run_id, sizeof rq.run_id);
	rig_key(2, key);
	assert_ok(core_join(r.core, r.now_us, key, &rq, true, &member, &et));
	rig_pump(&r);
	pass_without(&r, 2, 1);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_say(&r, 2, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 3);
	RIG_EXPECT_MEMBERS(&r, 0, 2);
	assert_int_equal(rig_doc(&r)->n_ranges, 2);
	rig_release(&r);
}

static void test_restart_in_the_middle_of_votes(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 4);
	pass_without(&r, 4, 3);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	rig_say(&r, 0, WORKER_VOTED);
	struct document before = *rig_doc(&r);
	rig_restart(&r);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	assert_int_equal(rig_doc(&r)->n_ranges, before.n_ranges);
	/* Reports repeat what was not durable. */
	rig_say(&r, 1, WORKER_VOTED);
	rig_say(&r, 2, WORKER_VOTED);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	rig_say(&r, 0, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* A participant restarted while the coordinator was down: its boot is not the roster's. */
static void test_restart_of_both(void **state) {
	(void)state;
	struct rig r;
	rig_reducing(&r, 2, 3);
	rig_restart(&r);
	struct report rep = rig_report(&r, 1, WORKER_REDUCING);
	rep.boot = 2;
	rig_send(&r, 1, &rep);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 2);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commit_when_all_vote_alike),
		cmocka_unit_test(test_votes_of_other_attempts_and_rounds_do_not_count),
		cmocka_unit_test(test_the_first_vote_of_an_attempt_stands),
		cmocka_unit_test(test_death_after_the_gather_costs_no_attempt),
		cmocka_unit_test(test_slow_votes_are_waited_for_longer),
		cmocka_unit_test(test_who_never_votes_is_waited_for_less_and_less),
		cmocka_unit_test(test_death_opens_the_next_attempt),
		cmocka_unit_test(test_leaver_is_not_waited_for),
		cmocka_unit_test(test_leaver_after_all_others_voted),
		cmocka_unit_test(test_restarted_participant_has_lost_its_reduce),
		cmocka_unit_test(test_restarted_participant_may_vote),
		cmocka_unit_test(test_a_vote_of_another_process_does_not_hold_the_run),
		cmocka_unit_test(test_minority_is_named_and_outvoted),
		cmocka_unit_test(test_a_tie_is_no_majority),
		cmocka_unit_test(test_disagreement_below_min_workers_reopens),
		cmocka_unit_test(test_who_was_left_out_does_not_count_unawares),
		cmocka_unit_test(test_who_was_left_out_counts_when_it_takes_part_again),
		cmocka_unit_test(test_held_below_min_workers),
		cmocka_unit_test(test_quorum),
		cmocka_unit_test(test_reopened_when_a_contribution_is_lost),
		cmocka_unit_test(test_reopened_when_others_stand_ready),
		cmocka_unit_test(test_restart_in_the_middle_of_votes),
		cmocka_unit_test(test_restart_of_both),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
