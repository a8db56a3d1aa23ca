/* OPEN: when the run waits, when the roster is frozen, over whom and with what weights. */
#include <stdio.h>
#include <string.h>

#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

static void test_waits_for_min_workers(void **state) {
	(void)state;
	struct rig r;
	rig_init(&r, 2);
	rig_start(&r);
	rig_expect(&r, RUN_WAITING, 0, 0);
	rig_join(&r, 2);
	rig_say(&r, 0, WORKER_SYNCING);
	rig_expect(&r, RUN_WAITING, 0, 0);
	rig_say(&r, 1, WORKER_SYNCING);
	rig_expect(&r, RUN_OPEN, 0, 0);
	/* One dies: nothing more is started. It comes back: on. */
	rig_wait(&r, 6 * RIG_S);
	rig_say(&r, 0, WORKER_TRAINING);
	rig_wait(&r, 5 * RIG_S);
	rig_expect(&r, RUN_WAITING, 0, 0);
	assert_true(rig_saw(&r, CORE_EVENT_DEAD, 1));
	rig_say(&r, 1, WORKER_TRAINING);
	rig_expect(&r, RUN_OPEN, 0, 0);
	assert_true(rig_saw(&r, CORE_EVENT_ALIVE, 1));
	rig_release(&r);
}

static void test_frozen_when_all_are_ready(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 4);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_say(&r, 2, WORKER_READY);
	rig_say(&r, 0, WORKER_READY);
	rig_expect(&r, RUN_OPEN, 0, 0);
	rig_say(&r, 1, WORKER_READY); /* 3 has joined, but never reported */
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2);
	const struct document *d = rig_doc(&r);
	assert_int_equal(d->n_chunks, RIG_CHUNKS);
	assert_int_equal(d->n_ranges, 3);
	assert_int_equal(d->ranges[1].first, 4);
	assert_int_equal(d->ranges[1].count, 4);
	assert_string_equal(d->members[1].candidates[0].addr, "10.0.0.1:7001");
	assert_int_equal(d->members[1].weight, 1);
	rig_release(&r);
}

static void say_storage(struct rig *r, uint32_t who, enum worker_phase phase, uint8_t storage) {
	struct report rep = rig_report(r, who, phase);
	rep.storage = storage;
	rig_send(r, who, &rep);
}

/* Who cannot store the result is not waited for, in no roster, and back as soon as it can. */
static void test_a_disk_that_takes_nothing(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 3);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_say(&r, 0, WORKER_READY);
	say_storage(&r, 2, WORKER_READY, REPORT_STORAGE_ROUNDS | REPORT_STORAGE_FULL);
	rig_expect(&r, RUN_OPEN, 0, 0);
	rig_say(&r, 1, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1);
	rig_say(&r, 0, WORKER_VOTED);
	rig_say(&r, 1, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	/* Without it they are too few: the run waits, and says so. */
	rig_say(&r, 0, WORKER_TRAINING);
	rig_say(&r, 1, WORKER_LEAVING);
	say_storage(&r, 2, WORKER_TRAINING, REPORT_STORAGE_ROUNDS);
	rig_expect(&r, RUN_WAITING, 1, 0);
	say_storage(&r, 2, WORKER_TRAINING, REPORT_STORAGE_CHECKPOINTS); /* it votes all the same */
	rig_expect(&r, RUN_OPEN, 1, 0);
	say_storage(&r, 2, WORKER_READY, REPORT_STORAGE_CHECKPOINTS);
	rig_say(&r, 0, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 1, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 2);
	rig_release(&r);
}

static void test_grace(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 3);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_say(&r, 0, WORKER_READY);
	rig_wait(&r, 8 * RIG_S);
	rig_say(&r, 2, WORKER_TRAINING);
	rig_say(&r, 0, WORKER_READY);
	rig_say(&r, 1, WORKER_READY); /* from here on grace runs */
	rig_wait(&r, 5 * RIG_S - 1);
	rig_expect(&r, RUN_OPEN, 0, 0);
	assert_int_equal(core_deadline_us(r.core), r.now_us + 1);
	rig_wait(&r, 1);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1);
	/* The late one changes nothing. */
	rig_say(&r, 2, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_release(&r);
}

/* Frozen while it trains: not waited for as long as a dead one would be, and welcome in the next
 * round. */
static void test_silent(void **state) {
	(void)state;
	struct rig r;
	rig_init(&r, 2);
	r.cfg.silent_us = 4 * RIG_S;
	r.cfg.grace_us = 100 * RIG_S;
	rig_start(&r);
	rig_join(&r, 3);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_wait(&r, 2 * RIG_S);
	rig_say(&r, 0, WORKER_READY);
	rig_say(&r, 1, WORKER_READY);
	rig_wait(&r, 2 * RIG_S - 1);
	rig_expect(&r, RUN_OPEN, 0, 0);
	assert_int_equal(core_deadline_us(r.core), r.now_us + 1);
	rig_wait(&r, 1);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1);
	assert_false(rig_saw(&r, CORE_EVENT_DEAD, 2));
	rig_release(&r);
}

/* Its connection was closed from its end, and no other came: its process is gone. One that listens
 * again is waited for. */
static void test_hung_up(void **state) {
	(void)state;
	struct rig r;
	uint8_t key[NET_KEY_BYTES];
	rig_init(&r, 2);
	r.cfg.silent_us = 4 * RIG_S;
	r.cfg.grace_us = 100 * RIG_S;
	rig_start(&r);
	rig_join(&r, 4);
	rig_say_all(&r, 4, WORKER_TRAINING);
	for (uint32_t who = 2; who < 4; who++) {
		rig_key(who, key);
		core_listens(r.core, r.now_us, key, false);
	}
	rig_wait(&r, RIG_S / 2);
	core_listens(r.core, r.now_us, key, true);
	rig_say(&r, 0, WORKER_READY);
	rig_say(&r, 1, WORKER_READY);
	rig_wait(&r, RIG_S);
	rig_expect(&r, RUN_OPEN, 0, 0); /* 3 is waited for */
	rig_say(&r, 3, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 1); /* 2 is not */
	RIG_EXPECT_MEMBERS(&r, 0, 1, 3);
	rig_release(&r);
}

/* Dead, leaving, syncing, on another state or of another size: not waited for, not in. */
static void test_not_waited_for(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 6);
	rig_say_all(&r, 6, WORKER_TRAINING);
	rig_wait(&r, 9 * RIG_S);
	rig_say(&r, 1, WORKER_LEAVING);
	rig_say(&r, 2, WORKER_SYNCING);
	struct report other = rig_report(&r, 3, WORKER_READY);
	other.chain.b[0] ^= 1;
	rig_send(&r, 3, &other);
	rig_say(&r, 0, WORKER_TRAINING);
	rig_say(&r, 5, WORKER_READY);
	rig_wait(&r, 2 * RIG_S); /* 4 is dead */
	rig_expect(&r, RUN_OPEN, 0, 0);
	rig_say(&r, 0, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 5);
	assert_true(rig_saw(&r, CORE_EVENT_WRONG_CHAIN, 3));
	rig_release(&r);
}

/* Reports of round 0 after its commit: SYNCING while it applies the result that it holds, or
 * because it lacks it. */
static void say_after_commit(struct rig *r, uint32_t who, bool holds) {
	struct report rep = rig_report(r, who, WORKER_SYNCING);
	rep.round = 0;
	rep.proven_round = holds;
	rep.proven_chain = holds ? rig_doc(r)->chain : (struct rv_hash){0};
	rep.needs_from = holds ? 0 : UINT64_MAX; /* a snapshot: it is far from being there */
	rig_send(r, who, &rep);
}

/* Took part in the last commit, and has come back without its result: it is behind, as anybody is,
 * and named to those who have the state. Else two behind routers, whom it cannot dial, would never
 * dial it, and the run would wait for it for ever. (Simulator seed 7012011.) */
static void test_who_lost_the_last_result_is_behind(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 3);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_round(&r, 3);
	rig_say(&r, 1, WORKER_READY);
	rig_say(&r, 2, WORKER_READY);
	say_after_commit(&r, 0, true);
	rig_expect(&r, RUN_OPEN, 1, 0); /* it is waited for */
	assert_int_equal(rig_doc(&r)->n_syncing, 0);
	say_after_commit(&r, 0, false);
	rig_expect(&r, RUN_REDUCE, 1, 1);
	RIG_EXPECT_MEMBERS(&r, 1, 2);
	assert_int_equal(rig_doc(&r)->n_syncing, 1);
	assert_int_equal(rig_doc(&r)->syncing[0].member, 0);
	rig_release(&r);
}

/* The size is the run's, whatever anybody reports, from the first round on. */
static void test_sizes_are_the_runs(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 3);
	struct report odd = rig_report(&r, 0, WORKER_READY);
	odd.n_chunks = 7;
	rig_send(&r, 0, &odd); /* alone, and before anybody else: it is not believed */
	assert_true(rig_saw(&r, CORE_EVENT_WRONG_SIZE, 0));
	rig_wait(&r, 6 * RIG_S);
	rig_expect(&r, RUN_OPEN, 0, 0);
	rig_say(&r, 1, WORKER_TRAINING);
	odd = rig_report(&r, 0, WORKER_READY);
	odd.n_chunks = 7;
	rig_send(&r, 0, &odd);
	rig_say(&r, 1, WORKER_READY); /* the odd one is not waited for */
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 1);
	assert_int_equal(rig_doc(&r)->n_chunks, RIG_CHUNKS);
	rig_say(&r, 1, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* Two liars of three are no majority over the configuration. */
static void test_a_majority_cannot_change_the_size(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 3);
	for (uint32_t who = 0; who < 2; who++) {
		struct report odd = rig_report(&r, who, WORKER_READY);
		odd.n_chunks = 7;
		rig_send(&r, who, &odd);
	}
	rig_say(&r, 2, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 2);
	assert_true(rig_saw(&r, CORE_EVENT_WRONG_SIZE, 1));
	rig_release(&r);
}

/* More than a contribution can stand for counts as the most: in the records, and so in weights and
 * totals. */
static void test_tokens_are_bounded(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 2);
	struct report liar = rig_report(&r, 1, WORKER_READY);
	liar.tokens = UINT64_C(1) << 62;
	rig_say(&r, 0, WORKER_READY);
	rig_send(&r, 1, &liar);
	const struct core_record *rec = rig_last(&r, CORE_ROSTER);
	assert_int_equal(rec->tokens[0], 1000);
	assert_int_equal(rec->tokens[1], RIG_MOST_TOKENS + CORE_MISSED_MAX * RIG_MISSED_TOKENS);
	assert_true(rig_saw(&r, CORE_EVENT_TOKENS, 1));
	rig_release(&r);
}

/* What a worker may have kept of rounds that it missed counts, up to a limit; beyond what all
 * rounds give it is named. */
static void test_missed_rounds_add_tokens(void **state) {
	(void)state;
	struct rig r;
	rig_init(&r, 1);
	r.cfg.final_round = 20;
	rig_start(&r);
	rig_join(&r, 2);
	for (uint64_t round = 0; round < 12; round++) {
		struct report rep = rig_report(&r, 1, WORKER_SYNCING);
		rep.tokens = RIG_MOST_TOKENS + (round + 1) * RIG_MISSED_TOKENS;
		rig_send(&r, 1, &rep);
		assert_false(rig_saw(&r, CORE_EVENT_TOKENS, 1));
		rep.tokens++;
		rig_send(&r, 1, &rep);
		assert_true(rig_saw(&r, CORE_EVENT_TOKENS, 1));
		rig_round(&r, 1);
	}
	assert_int_equal(core_most_tokens(r.core), RIG_MOST_TOKENS + CORE_MISSED_MAX * RIG_MISSED_TOKENS);
	rig_release(&r);
}

static void say_with(struct rig *r, int n, enum worker_phase phase, uint32_t n_chunks) {
	for (uint32_t who = 0; who < (uint32_t)n; who++) {
		struct report rep = rig_report(r, who, phase);
		rep.n_chunks = n_chunks;
		rig_send(r, who, &rep);
	}
}

/* Rounds exchange fragments in turn: each has its own size. */
static void test_each_fragment_has_a_size(void **state) {
	static const uint32_t sizes[] = {4, 7, 2};
	(void)state;
	struct rig r;
	rig_init(&r, 2);
	r.cfg.fragments = 3;
	memcpy(r.cfg.n_chunks, sizes, sizeof sizes);
	rig_start(&r);
	rig_join(&r, 3);
	for (uint64_t round = 0; round < 7; round++) {
		bool odd = round >= 4; /* the third says another size than it did a cycle before */
		say_with(&r, 3, WORKER_TRAINING, sizes[round % 3]);
		if (odd) {
			struct report rep = rig_report(&r, 2, WORKER_READY);
			rep.n_chunks = sizes[round % 3] + 1;
			rig_send(&r, 2, &rep);
		}
		say_with(&r, odd ? 2 : 3, WORKER_READY, sizes[round % 3]);
		rig_expect(&r, RUN_REDUCE, round, 1);
		assert_int_equal(rig_doc(&r)->n_chunks, sizes[round % 3]);
		assert_int_equal(rig_doc(&r)->n_members, odd ? 2 : 3);
		assert_int_equal(rig_saw(&r, CORE_EVENT_WRONG_SIZE, 2), odd);
		say_with(&r, odd ? 2 : 3, WORKER_VOTED, sizes[round % 3]);
		rig_expect(&r, RUN_OPEN, round + 1, 0);
		rig_restart(&r);
	}
	rig_release(&r);
}

/* A quick worker may be ready for round 1 before a slow one has said that it took over round 0. */
static void test_participants_of_the_last_round_are_waited_for(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 3);
	rig_say_all(&r, 2, WORKER_TRAINING);
	rig_say_all(&r, 2, WORKER_READY);
	rig_say_all(&r, 2, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	RIG_EXPECT_MEMBERS(&r, 0, 1); /* they hold the result: donors at once */
	rig_say(&r, 0, WORKER_READY);
	rig_expect(&r, RUN_OPEN, 1, 0);
	struct report applying = rig_report(&r, 1, WORKER_SYNCING);
	applying.round = 0;
	rig_send(&r, 1, &applying);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_say(&r, 1, WORKER_TRAINING);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_say(&r, 1, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 1, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1);
	rig_release(&r);
}

/* After a restart the first one to report must not be alone in the roster. */
static void test_known_members_are_awaited_after_a_restart(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 2);
	rig_say_all(&r, 2, WORKER_TRAINING);
	rig_restart(&r);
	rig_expect(&r, RUN_OPEN, 0, 0);
	rig_say(&r, 0, WORKER_READY);
	rig_expect(&r, RUN_OPEN, 0, 0);
	rig_say(&r, 1, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1);
	rig_release(&r);
}

static void check_weights(const uint64_t tokens[3], const uint32_t weights[3]) {
	struct rig r;
	rig_init(&r, 3);
	r.cfg.weight_by_tokens = true;
	r.cfg.round_tokens = UINT64_MAX;
	rig_start(&r);
	rig_join(&r, 3);
	for (uint32_t i = 0; i < 3; i++) {
		struct report rep = rig_report(&r, i, WORKER_READY);
		rep.tokens = tokens[i];
		rig_send(&r, i, &rep);
	}
	rig_expect(&r, RUN_REDUCE, 0, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_doc(&r)->members[i].weight, weights[i]);
	rig_release(&r);
}

/* The coordinator was stopped for long: nobody is dead for that, until it has listened again for
 * liveness_us. */
static void test_own_absence_is_forgiven(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 3, 3);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_wait(&r, 1 * RIG_S);
	r.now_us += 60 * RIG_S; /* no tick in between */
	rig_say(&r, 0, WORKER_TRAINING);
	rig_expect(&r, RUN_OPEN, 0, 0);
	assert_false(rig_saw(&r, CORE_EVENT_DEAD, 1));
	rig_wait(&r, 9 * RIG_S);
	rig_say(&r, 0, WORKER_TRAINING);
	rig_say(&r, 1, WORKER_TRAINING);
	rig_expect(&r, RUN_OPEN, 0, 0);
	rig_wait(&r, 1 * RIG_S); /* 2 never came back; the dead stay dead over another absence */
	rig_expect(&r, RUN_WAITING, 0, 0);
	assert_true(rig_saw(&r, CORE_EVENT_DEAD, 2));
	r.now_us += 60 * RIG_S;
	rig_say(&r, 0, WORKER_TRAINING);
	rig_expect(&r, RUN_WAITING, 0, 0);
	assert_false(rig_saw(&r, CORE_EVENT_DEAD, 1));
	assert_false(rig_saw(&r, CORE_EVENT_ALIVE, 2));
	rig_release(&r);
}

static void test_weights(void **state) {
	(void)state;
	check_weights((uint64_t[]){3000, 6000, 4500}, (uint32_t[]){2, 4, 3});
	check_weights((uint64_t[]){0, 6000, 3000}, (uint32_t[]){1, 2, 1});
	check_weights((uint64_t[]){0, 0, 0}, (uint32_t[]){1, 1, 1});
	check_weights((uint64_t[]){UINT64_MAX, 1, UINT64_MAX - 1}, (uint32_t[]){(1 << 23) - 1, 1, (1 << 23) - 1});
}

/* A worker restarts on another port: the new address is durable before it is announced. */
static void test_addresses_follow(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 2);
	rig_say_all(&r, 2, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	struct report moved = rig_report(&r, 1, WORKER_REDUCING);
	strcpy(moved.candidates[0].addr, "10.0.0.1:9999");
	rig_send(&r, 1, &moved);
	assert_string_equal(rig_last(&r, CORE_MEMBER)->candidates[0].addr, "10.0.0.1:9999");
	rig_expect(&r, RUN_REDUCE, 0, 1);
	assert_string_equal(rig_doc(&r)->members[1].candidates[0].addr, "10.0.0.1:9999");
	rig_restart(&r);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	assert_string_equal(rig_doc(&r)->members[1].candidates[0].addr, "10.0.0.1:9999");
	rig_release(&r);
}

/* A worker that moves all the time, or says so, is recorded at a pace that is not its own; the last
 * place counts. */
static void test_moves_are_paced(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 2);
	rig_say_all(&r, 2, WORKER_TRAINING);
	int before = r.n_records;
	for (int i = 0; i < 1000; i++) {
		struct report moved = rig_report(&r, 1, WORKER_TRAINING);
		(void)snprintf(moved.candidates[0].addr, sizeof moved.candidates[0].addr, "10.0.0.1:%d", 8000 + i % 2);
		rig_send(&r, 1, &moved);
	}
	assert_true(r.n_records - before <= 4);
	struct report last = rig_report(&r, 1, WORKER_TRAINING);
	strcpy(last.candidates[0].addr, "10.0.0.1:9999");
	before = r.n_records;
	rig_send(&r, 1, &last);
	assert_int_equal(r.n_records, before);
	rig_wait(&r, 9 * RIG_S);
	assert_int_equal(r.n_records, before);
	rig_wait(&r, 2 * RIG_S); /* by itself: no report is needed */
	assert_int_equal(r.n_records, before + 1);
	assert_string_equal(rig_last(&r, CORE_MEMBER)->candidates[0].addr, "10.0.0.1:9999");
	rig_release(&r);
}

static void test_runs_to_the_end(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 2);
	for (uint64_t round = 0; round < r.cfg.final_round; round++) {
		rig_round(&r, 2);
		const struct core_record *rec = rig_last(&r, CORE_COMMIT);
		assert_int_equal(rec->tokens[0] + rec->tokens[1], 2000);
	}
	rig_expect(&r, RUN_DONE, 10, 0);
	rig_say_all(&r, 2, WORKER_READY);
	rig_wait(&r, 100 * RIG_S);
	rig_expect(&r, RUN_DONE, 10, 0);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_min_workers),
		cmocka_unit_test(test_frozen_when_all_are_ready),
		cmocka_unit_test(test_a_disk_that_takes_nothing),
		cmocka_unit_test(test_grace),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_hung_up),
		cmocka_unit_test(test_not_waited_for),
		cmocka_unit_test(test_who_lost_the_last_result_is_behind),
		cmocka_unit_test(test_sizes_are_the_runs),
		cmocka_unit_test(test_a_majority_cannot_change_the_size),
		cmocka_unit_test(test_tokens_are_bounded),
		cmocka_unit_test(test_missed_rounds_add_tokens),
		cmocka_unit_test(test_each_fragment_has_a_size),
		cmocka_unit_test(test_participants_of_the_last_round_are_waited_for),
		cmocka_unit_test(test_known_members_are_awaited_after_a_restart),
		cmocka_unit_test(test_own_absence_is_forgiven),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_addresses_follow),
		cmocka_unit_test(test_moves_are_paced),
		cmocka_unit_test(test_runs_to_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
