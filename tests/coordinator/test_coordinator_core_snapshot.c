/* Snapshots: a majority of the last participants vouches; the log never outgrows the document. */
#include <string.h>

#include "base/chain.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

static struct rv_hash full_hash(uint64_t round, uint8_t flavour) {
	uint64_t v[2] = {round, flavour};
	return rv_hash_of(v, sizeof v);
}

static void vouch(struct rig *r, uint32_t who, uint64_t round, uint8_t flavour) {
	struct report rep = rig_report(r, who, WORKER_TRAINING);
	rep.full_round = round;
	rep.full_hash = full_hash(round, flavour);
	rig_send(r, who, &rep);
}

static void after_rounds(struct rig *r, int n, int rounds) {
	rig_init(r, 2);
	r->cfg.final_round = 1000;
	rig_start(r);
	rig_join(r, n);
	for (int i = 0; i < rounds; i++)
		rig_round(r, n);
}

static void test_majority_makes_a_snapshot(void **state) {
	(void)state;
	struct rig r;
	after_rounds(&r, 4, 3);
	vouch(&r, 0, 2, 0);
	vouch(&r, 1, 2, 1);
	vouch(&r, 2, 2, 0);
	assert_int_equal(rig_doc(&r)->snapshot_round, 0);
	vouch(&r, 3, 2, 0);
	const struct document *d = rig_doc(&r);
	struct rv_hash hash = full_hash(2, 0), digest = rig_digest(2);
	assert_int_equal(d->snapshot_round, 2);
	assert_memory_equal(&d->snapshot_hash, &hash, sizeof hash);
	assert_int_equal(d->n_log, 1);
	assert_memory_equal(&d->log[0], &digest, sizeof digest);
	assert_int_equal(d->seq, r.last_seq);
	assert_true(rig_saw(&r, CORE_EVENT_DIVERGED, 1));
	vouch(&r, 1, 2, 1);
	assert_false(rig_saw(&r, CORE_EVENT_DIVERGED, 1)); /* said once */
	rig_restart(&r);
	assert_int_equal(rig_doc(&r)->snapshot_round, 2);
	rig_release(&r);
}

static void sync_from(struct rig *r, uint32_t who, uint64_t round) {
	struct report rep = rig_report(r, who, WORKER_SYNCING);
	rep.version = CONTROL_VERSION;
	rep.round = rep.proven_round = 0;
	rep.needs_from = round;
	rig_send(r, who, &rep);
}

/* The earlier digests are listed as records tell them; what is to be kept of them, as the members
 * that fetch say. */
static void test_documents_reach_back_before_the_snapshot(void **state) {
	(void)state;
	struct rig r;
	after_rounds(&r, 2, 2);
	for (uint64_t round = 2; round <= 70; round++) {
		for (uint32_t i = 0; round % 2 == 0 && i < 2; i++)
			vouch(&r, i, round, 0);
		const struct document *d = rig_doc(&r);
		uint64_t reach = document_reaches_to(d);
		assert_int_equal(d->snapshot_round, round - round % 2);
		assert_int_equal(reach, round > NET_MAX_LOG_DIGESTS ? round - NET_MAX_LOG_DIGESTS : 0);
		struct rv_hash chain = d->older_chain, digest = rig_digest(reach);
		assert_memory_equal(document_digest(d, reach), &digest, sizeof digest);
		for (uint64_t i = reach; i < d->snapshot_round; i++)
			chain = rv_chain_next(&chain, document_digest(d, i));
		assert_memory_equal(&chain, &d->snapshot_chain, sizeof chain);
		rig_round(&r, 2);
	}
	rig_release(&r);
}

static void test_what_members_still_fetch_is_named(void **state) {
	(void)state;
	struct rig r;
	after_rounds(&r, 4, 2);
	for (uint64_t round = 2; round < 12; round++) {
		for (uint32_t i = 0; round % 2 == 0 && i < 4; i++)
			vouch(&r, i, round, 0);
		rig_round(&r, 4);
	}
	assert_int_equal(rig_doc(&r)->snapshot_round, 10);
	assert_int_equal(rig_doc(&r)->n_kept_rounds, 0);
	sync_from(&r, 2, 4);
	sync_from(&r, 3, 7);
	const struct document *d = rig_doc(&r);
	struct rv_hash hash = full_hash(4, 0);
	assert_int_equal(d->n_kept_rounds, 6);
	assert_int_equal(d->n_kept_snapshots, 1);
	assert_int_equal(d->kept_snapshots[0].round, 4);
	assert_memory_equal(&d->kept_snapshots[0].hash, &hash, sizeof hash);
	sync_from(&r, 2, 5); /* installed; what is kept goes by snapshots */
	assert_int_equal(rig_doc(&r)->n_kept_rounds, 6);
	assert_int_equal(rig_doc(&r)->n_kept_snapshots, 0);
	uint64_t seq = rig_doc(&r)->seq;
	sync_from(&r, 3, 8);
	assert_int_equal(rig_doc(&r)->n_kept_snapshots, 1);
	sync_from(&r, 3, 9);
	sync_from(&r, 2, 6);
	assert_int_equal(rig_doc(&r)->n_kept_rounds, 4);
	assert_true(rig_doc(&r)->seq > seq);
	sync_from(&r, 2, 10); /* of the snapshot itself: nothing before it */
	sync_from(&r, 3, 11);
	assert_int_equal(rig_doc(&r)->n_kept_rounds, 0);
	rig_release(&r);
}

/* Half is not a majority; rounds in the future or behind the snapshot, and those who took part in
 * nothing, do not count. */
static void test_what_does_not_count(void **state) {
	(void)state;
	struct rig r;
	after_rounds(&r, 2, 2);
	vouch(&r, 0, 1, 0);
	vouch(&r, 1, 1, 1);
	vouch(&r, 0, 3, 0);
	vouch(&r, 1, 3, 0);
	assert_int_equal(rig_doc(&r)->snapshot_round, 0);
	vouch(&r, 0, 2, 0);
	vouch(&r, 1, 2, 0);
	assert_int_equal(rig_doc(&r)->snapshot_round, 2);
	vouch(&r, 0, 1, 0);
	vouch(&r, 1, 1, 0);
	assert_int_equal(rig_doc(&r)->snapshot_round, 2);
	rig_release(&r);
}

static void test_a_fresh_worker_is_no_witness(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 5);
	rig_round(&r, 2);
	for (uint32_t i = 2; i < 5; i++)
		vouch(&r, i, 1, 9);
	assert_int_equal(rig_doc(&r)->snapshot_round, 0);
	vouch(&r, 0, 1, 0);
	vouch(&r, 1, 1, 0);
	struct rv_hash hash = full_hash(1, 0);
	assert_memory_equal(&rig_doc(&r)->snapshot_hash, &hash, sizeof hash);
	rig_release(&r);
}

static void test_round_waits_for_a_snapshot_at_the_limit(void **state) {
	(void)state;
	struct rig r;
	after_rounds(&r, 3, NET_MAX_LOG_DIGESTS);
	assert_int_equal(rig_doc(&r)->n_log, NET_MAX_LOG_DIGESTS);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_say_all(&r, 3, WORKER_READY);
	rig_wait(&r, 6 * RIG_S);
	rig_expect(&r, RUN_OPEN, NET_MAX_LOG_DIGESTS, 0);
	assert_true(rig_saw(&r, CORE_EVENT_NO_SNAPSHOT, NET_NO_MEMBER));
	/* Here the word of those that are there suffices: two of three are gone for good. */
	for (int i = 0; i < 2; i++) {
		rig_wait(&r, 5 * RIG_S);
		rig_say(&r, 1, WORKER_READY);
		rig_say(&r, 2, WORKER_READY);
	}
	struct report rep = rig_report(&r, 1, WORKER_READY);
	rep.full_round = 60;
	rep.full_hash = full_hash(60, 0);
	rig_send(&r, 1, &rep);
	assert_int_equal(rig_doc(&r)->snapshot_round, 0);
	rig_send(&r, 2, &rep);
	assert_int_equal(rig_doc(&r)->snapshot_round, 60);
	rig_expect(&r, RUN_REDUCE, NET_MAX_LOG_DIGESTS, 1);
	assert_int_equal(rig_doc(&r)->n_log, 4);
	rig_release(&r);
}

/* Two workers, one flipped bit: nobody can tell whose. */
static void test_a_split_is_told_once(void **state) {
	(void)state;
	struct rig r;
	after_rounds(&r, 2, 2);
	vouch(&r, 0, 2, 0);
	assert_false(rig_saw(&r, CORE_EVENT_SPLIT, NET_NO_MEMBER));
	vouch(&r, 1, 2, 1);
	assert_true(rig_saw(&r, CORE_EVENT_SPLIT, NET_NO_MEMBER));
	vouch(&r, 1, 2, 1);
	assert_false(rig_saw(&r, CORE_EVENT_SPLIT, NET_NO_MEMBER));
	rig_release(&r);
}

/* Until it says otherwise, whoever holds other weights than the majority is in no roster and no
 * donor. */
static void test_the_diverged_take_no_part(void **state) {
	(void)state;
	struct rig r;
	after_rounds(&r, 4, 2);
	for (uint32_t i = 0; i < 4; i++)
		vouch(&r, i, 2, i == 3);
	assert_int_equal(rig_doc(&r)->snapshot_round, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2);
	struct report rep = rig_report(&r, 3, WORKER_READY);
	rep.full_round = 2;
	rep.full_hash = full_hash(2, 1);
	for (uint32_t i = 0; i < 3; i++)
		rig_say(&r, i, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 2, 1); /* it is not waited for */
	rig_send(&r, 3, &rep);
	rig_expect(&r, RUN_REDUCE, 2, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2);
	for (uint32_t i = 0; i < 3; i++)
		rig_say(&r, i, WORKER_VOTED);
	rep = rig_report(&r, 3, WORKER_READY); /* it resynced */
	rep.full_round = 2;
	rep.full_hash = full_hash(2, 0);
	rig_send(&r, 3, &rep);
	for (uint32_t i = 0; i < 3; i++)
		rig_say(&r, i, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 3, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3);
	rig_release(&r);
}

/* It has come back with an empty disk, and gets what it lacks from nobody. */
static void say_empty(struct rig *r, uint32_t who) {
	struct report rep = rig_report(r, who, WORKER_SYNCING);
	rep.boot = 2;
	rep.round = 0;
	rig_send(r, who, &rep);
}

/* The run stands still at round 3: one holds its state, the other, of the last two, has lost it and
 * does not get it. At first both count as ever; after a while the word of the one that has the
 * state is enough. */
static void test_who_lost_the_state_is_no_elector_for_ever(void **state) {
	(void)state;
	struct rig r;
	after_rounds(&r, 2, 3);
	say_empty(&r, 1);
	vouch(&r, 0, 3, 0);
	const struct document *d = rig_doc(&r);
	RIG_EXPECT_MEMBERS(&r, 0);
	assert_int_equal(d->n_syncing, 1);
	assert_int_equal(d->syncing[0].member, 1);
	for (int s = 0; s < 35; s += 5) {
		rig_wait(&r, 5 * RIG_S);
		say_empty(&r, 1);
		vouch(&r, 0, 3, 0);
		assert_int_equal(rig_doc(&r)->snapshot_round, 0);
	}
	rig_wait(&r, 5 * RIG_S);
	assert_int_equal(rig_doc(&r)->snapshot_round, 3);
	rig_release(&r);
}

/* It trains the round again for minutes: the run waits for it, but its state is there, and one word
 * is not enough. */
static void test_who_trains_again_holds_the_state(void **state) {
	(void)state;
	struct rig r;
	after_rounds(&r, 2, 3);
	for (int s = 0; s < 100; s += 5) {
		struct report again = rig_report(&r, 1, WORKER_SYNCING);
		again.proven_chain = rig_doc(&r)->chain;
		again.needs_from = again.round;
		rig_send(&r, 1, &again);
		vouch(&r, 0, 3, 0);
		RIG_EXPECT_MEMBERS(&r, 0, 1);
		assert_int_equal(rig_doc(&r)->n_syncing, 0);
		assert_int_equal(rig_doc(&r)->snapshot_round, 0);
		rig_wait(&r, 5 * RIG_S);
	}
	vouch(&r, 1, 3, 0);
	assert_int_equal(rig_doc(&r)->snapshot_round, 3);
	rig_release(&r);
}

/* Who is merely away may come back with the state: it is waited for. */
static void test_the_absent_stays_an_elector(void **state) {
	(void)state;
	struct rig r;
	after_rounds(&r, 3, 3);
	say_empty(&r, 1);
	vouch(&r, 0, 3, 0);
	for (int s = 0; s < 100; s += 5) {
		rig_wait(&r, 5 * RIG_S);
		say_empty(&r, 1);
		vouch(&r, 0, 3, 0);
	}
	assert_int_equal(rig_doc(&r)->snapshot_round, 0);
	vouch(&r, 2, 3, 0);
	assert_int_equal(rig_doc(&r)->snapshot_round, 3);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents_reach_back_before_the_snapshot),
		cmocka_unit_test(test_what_members_still_fetch_is_named),
		cmocka_unit_test(test_majority_makes_a_snapshot),
		cmocka_unit_test(test_who_lost_the_state_is_no_elector_for_ever),
		cmocka_unit_test(test_who_trains_again_holds_the_state),
		cmocka_unit_test(test_the_absent_stays_an_elector),
		cmocka_unit_test(test_what_does_not_count),
		cmocka_unit_test(test_a_fresh_worker_is_no_witness),
		cmocka_unit_test(test_round_waits_for_a_snapshot_at_the_limit),
		cmocka_unit_test(test_a_split_is_told_once),
		cmocka_unit_test(test_the_diverged_take_no_part),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
