/* OPEN: a round waits a little for who is catching up and nearly there, once everybody else is
 * ready, and for how long. */

#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { JOINER = 2, SILENT_S = 3, SHARE = 16 };

/* Workers 0 and 1 have done so many rounds when the third one begins to report. */
static void open_with_joiner(struct rig *r, int rounds) {
	rig_init(r, 2);
	r->cfg.silent_us = SILENT_S * RIG_S;
	r->cfg.grace_us = 100 * RIG_S;
	r->cfg.liveness_us = 1000 * RIG_S;
	r->cfg.final_round = 60;
	rig_start(r);
	rig_join(r, 3);
	for (int i = 0; i < rounds; i++)
		rig_round(r, 2);
}

/* It holds `round`, and fetches from `needs` on. */
static void joiner_syncs(struct rig *r, uint64_t round, uint64_t needs) {
	struct report rep = rig_report(r, JOINER, WORKER_SYNCING);
	rep.round = rep.proven_round = round;
	rep.needs_from = needs;
	rig_send(r, JOINER, &rep);
}

/* It has fetched its first round. */
static void joiner_moves(struct rig *r, uint64_t round) {
	joiner_syncs(r, round - 1, round - 1);
	joiner_syncs(r, round, round);
}

static void others_are_ready(struct rig *r) {
	rig_say_all(r, 2, WORKER_TRAINING);
	rig_say_all(r, 2, WORKER_READY);
}

static void others_commit(struct rig *r) {
	uint64_t round = rig_doc(r)->round;
	rig_say_all(r, 2, WORKER_VOTED);
	assert_int_equal(rig_doc(r)->round, round + 1);
}

static void test_it_gets_in(void **state) {
	(void)state;
	struct rig r;
	open_with_joiner(&r, 3);
	joiner_moves(&r, 1);
	others_are_ready(&r);
	rig_expect(&r, RUN_OPEN, 3, 0);
	rig_wait(&r, RIG_S);
	joiner_syncs(&r, 2, 2);
	rig_wait(&r, RIG_S);
	rig_say(&r, JOINER, WORKER_TRAINING); /* there: from now on waited for as anybody is */
	rig_say_all(&r, 2, WORKER_READY);
	rig_wait(&r, 2 * RIG_S);
	rig_expect(&r, RUN_OPEN, 3, 0);
	rig_say(&r, JOINER, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 3, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1, JOINER);
	rig_release(&r);
}

/* It does not come: one wait of silent_us, none for sixteen times as long, then another. */
static void test_others_wait_a_sixteenth_of_the_time(void **state) {
	(void)state;
	struct rig r;
	open_with_joiner(&r, 2);
	joiner_moves(&r, 1);
	others_are_ready(&r);
	rig_expect(&r, RUN_OPEN, 2, 0);
	assert_int_equal(core_deadline_us(r.core), r.now_us + SILENT_S * RIG_S);
	rig_wait(&r, SILENT_S * RIG_S - 1);
	joiner_syncs(&r, 1, 1);
	rig_expect(&r, RUN_OPEN, 2, 0);
	rig_wait(&r, 1);
	rig_expect(&r, RUN_REDUCE, 2, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1);
	others_commit(&r);
	for (int s = 0; s < SHARE * SILENT_S; s += 8) {
		joiner_moves(&r, 2);
		others_are_ready(&r); /* and the round begins */
		others_commit(&r);
		rig_wait(&r, 8 * RIG_S);
	}
	joiner_moves(&r, 2);
	others_are_ready(&r);
	rig_expect(&r, RUN_OPEN, rig_doc(&r)->round, 0);
	assert_int_equal(rig_doc(&r)->phase, RUN_OPEN);
	rig_release(&r);
}

static void joiner_leaves(struct rig *r) {
	struct report bye = rig_report(r, JOINER, WORKER_LEAVING);
	bye.round = bye.proven_round = bye.round - 1;
	rig_send(r, JOINER, &bye);
}

/* Short ones follow each other until there is no time left for them. */
static void test_waits_add_up(void **state) {
	(void)state;
	struct rig r;
	open_with_joiner(&r, 2);
	for (uint64_t round = 2; round <= SILENT_S + 1; round++) {
		joiner_moves(&r, round - 1);
		others_are_ready(&r);
		rig_expect(&r, RUN_OPEN, round, 0);
		rig_wait(&r, RIG_S);
		rig_expect(&r, RUN_OPEN, round, 0);
		joiner_leaves(&r);
		rig_expect(&r, RUN_REDUCE, round, 1);
		others_commit(&r);
	}
	joiner_moves(&r, SILENT_S + 1);
	others_are_ready(&r);
	rig_expect(&r, RUN_OPEN, SILENT_S + 2, 0);
	rig_wait(&r, SILENT_S * RIG_S / SHARE + 1); /* what has come back meanwhile */
	rig_expect(&r, RUN_REDUCE, SILENT_S + 2, 1);
	others_commit(&r);
	rig_wait(&r, RIG_S);
	joiner_moves(&r, SILENT_S + 2);
	others_are_ready(&r);
	rig_expect(&r, RUN_REDUCE, SILENT_S + 3, 1);
	rig_release(&r);
}

/* As long as the exchange took: a line that carries this may need as long for its result. Grace
 * ends it all the same. */
static void test_as_long_as_an_exchange(void **state) {
	(void)state;
	struct rig r;
	open_with_joiner(&r, 1);
	others_are_ready(&r);
	rig_expect(&r, RUN_REDUCE, 1, 1);
	rig_wait(&r, 20 * RIG_S);
	others_commit(&r);
	joiner_moves(&r, 1);
	rig_say_all(&r, 2, WORKER_TRAINING);
	for (int s = 0; s < 20; s++) {
		joiner_syncs(&r, 1, 1);
		rig_say_all(&r, 2, WORKER_READY);
		rig_expect(&r, RUN_OPEN, 2, 0);
		rig_wait(&r, RIG_S);
	}
	rig_expect(&r, RUN_REDUCE, 2, 1);
	rig_release(&r);
}

static void test_grace_ends_it(void **state) {
	(void)state;
	struct rig r;
	rig_init(&r, 2);
	r.cfg.grace_us = 1 * RIG_S;
	rig_start(&r);
	rig_join(&r, 3);
	rig_round(&r, 2);
	rig_round(&r, 2);
	joiner_moves(&r, 1);
	others_are_ready(&r);
	rig_expect(&r, RUN_OPEN, 2, 0);
	rig_wait(&r, 1 * RIG_S);
	rig_expect(&r, RUN_REDUCE, 2, 1);
	rig_release(&r);
}

static void expect_no_wait(struct rig *r) {
	others_are_ready(r);
	assert_int_equal(rig_doc(r)->phase, RUN_REDUCE);
	RIG_EXPECT_MEMBERS(r, 0, 1);
	others_commit(r);
}

/* Far behind, fetching a snapshot, of another size or term, without an address that others know, or
 * silent. */
static void test_who_is_not_nearly_there(void **state) {
	(void)state;
	struct rig r;
	open_with_joiner(&r, 10);
	joiner_moves(&r, 1);
	expect_no_wait(&r);
	joiner_syncs(&r, 9, 8);
	expect_no_wait(&r);
	struct report odd = rig_report(&r, JOINER, WORKER_SYNCING);
	odd.round = odd.needs_from = odd.proven_round = rig_doc(&r)->round - 1;
	odd.n_chunks = RIG_CHUNKS + 1;
	rig_send(&r, JOINER, &odd);
	expect_no_wait(&r);
	joiner_syncs(&r, 12, 12);
	rig_wait(&r, SILENT_S * RIG_S);
	expect_no_wait(&r);
	struct report bye = rig_report(&r, JOINER, WORKER_LEAVING);
	bye.round = bye.proven_round = 12;
	rig_send(&r, JOINER, &bye);
	expect_no_wait(&r);
	rig_release(&r);
}

/* The line of a worker was cut, or its process killed: until the first round has come over its
 * links they may be dead, and the time for such waits would be used up before its first byte. */
static void test_who_has_just_come_back(void **state) {
	(void)state;
	struct rig r;
	open_with_joiner(&r, 2);
	joiner_moves(&r, 1);
	rig_wait(&r, SILENT_S * RIG_S); /* it is cut off, and comes back */
	joiner_syncs(&r, 1, 1);
	joiner_syncs(&r, 1, 1);
	expect_no_wait(&r);
	joiner_syncs(&r, 2, 2);
	others_are_ready(&r);
	rig_expect(&r, RUN_OPEN, 3, 0); /* it moves */
	struct report again = rig_report(&r, JOINER, WORKER_SYNCING);
	again.boot++;
	again.round = again.needs_from = again.proven_round = 2;
	rig_send(&r, JOINER, &again);
	rig_expect(&r, RUN_REDUCE, 3, 1); /* another process does not, yet */
	rig_release(&r);
}

/* It was in time for no roster, and holds the state of the round before: nearly there as well. */
static void test_who_was_left_out(void **state) {
	(void)state;
	struct rig r;
	open_with_joiner(&r, 2);
	others_are_ready(&r);
	rig_expect(&r, RUN_REDUCE, 2, 1);
	rig_say(&r, JOINER, WORKER_TRAINING);
	others_commit(&r);
	others_are_ready(&r);
	rig_expect(&r, RUN_OPEN, 3, 0);
	rig_say(&r, JOINER, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 3, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1, JOINER);
	rig_release(&r);
}

/* It has the state, and trains the round again: people hear of it, nobody waits, and it is welcome
 * as soon as it is ready. */
static void test_who_has_nothing_to_give(void **state) {
	(void)state;
	struct rig r;
	open_with_joiner(&r, 2);
	rig_say_all(&r, 3, WORKER_TRAINING);
	struct report again = rig_report(&r, JOINER, WORKER_SYNCING);
	again.proven_chain = rig_doc(&r)->chain;
	again.needs_from = again.round;
	rig_send(&r, JOINER, &again);
	assert_true(rig_saw(&r, CORE_EVENT_SPOILED, JOINER));
	rig_say(&r, 0, WORKER_READY);
	rig_expect(&r, RUN_OPEN, 2, 0);
	rig_say(&r, 1, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 2, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1);
	others_commit(&r);
	rig_say_all(&r, 3, WORKER_TRAINING);
	again = rig_report(&r, JOINER, WORKER_SYNCING);
	again.proven_chain = rig_doc(&r)->chain;
	rig_send(&r, JOINER, &again);
	rig_say(&r, 0, WORKER_READY);
	rig_say(&r, JOINER, WORKER_READY);
	rig_expect(&r, RUN_OPEN, 3, 0);
	rig_say(&r, 1, WORKER_READY);
	RIG_EXPECT_MEMBERS(&r, 0, 1, JOINER);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_gets_in),
		cmocka_unit_test(test_others_wait_a_sixteenth_of_the_time),
		cmocka_unit_test(test_waits_add_up),
		cmocka_unit_test(test_as_long_as_an_exchange),
		cmocka_unit_test(test_grace_ends_it),
		cmocka_unit_test(test_who_is_not_nearly_there),
		cmocka_unit_test(test_who_was_left_out),
		cmocka_unit_test(test_who_has_nothing_to_give),
		cmocka_unit_test(test_who_has_just_come_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
