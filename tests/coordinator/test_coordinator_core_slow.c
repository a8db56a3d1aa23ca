/* Members with slow lines take part in every k-th round, and no round waits for them in between. */
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { FAST = 3, ALL = 4, SLOW = 3, EVERY = 7, LOOKS = SLOW_LINES_LOOKS };
static const uint64_t fast_line = 12000000, slow_line = 1200000;

static void open_slow(struct rig *r, uint32_t min_workers, bool skips) {
	rig_init(r, min_workers);
	r->cfg.slow_members = skips ? SLOW_SKIP : SLOW_WAIT;
	r->cfg.final_round = 40;
	r->cfg.chunk_bytes = 100000;
	rig_start(r);
	rig_join(r, ALL);
}

static void say(struct rig *r, uint32_t who, enum worker_phase phase) {
	struct report rep = rig_report(r, who, phase);
	rep.up_bytes_per_s = 2 * fast_line;
	rep.down_bytes_per_s = who == SLOW ? slow_line : fast_line + who;
	if (phase == WORKER_VOTED)
		rep.digest = rig_digest(rig_doc(r)->round);
	rig_send(r, who, &rep);
}

static void say_first(struct rig *r, int n, enum worker_phase phase) {
	for (int i = 0; i < n; i++)
		say(r, (uint32_t)i, phase);
}

/* All train and are ready, the slow one first, in time: does the roster have it? Then the roster
 * commits the round. */
static bool slow_takes_part(struct rig *r) {
	say_first(r, ALL, WORKER_TRAINING);
	say(r, SLOW, WORKER_READY);
	say_first(r, FAST, WORKER_READY);
	assert_int_equal(rig_doc(r)->phase, RUN_REDUCE);
	int n = rig_doc(r)->n_members;
	say_first(r, n, WORKER_REDUCING);
	say_first(r, n, WORKER_VOTED);
	assert_int_equal(rig_doc(r)->phase, RUN_OPEN);
	return n == ALL;
}

/* Its line looks slow after so many exchanges: the last of them is its turn. */
static void show_slow(struct rig *r) {
	for (int round = 0; round < LOOKS; round++)
		assert_true(slow_takes_part(r));
}

static void test_it_takes_part_in_every_kth_round(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	show_slow(&r);
	for (uint64_t round = 1; round < 3 * EVERY; round++)
		assert_int_equal(slow_takes_part(&r), round % EVERY == 0);
	rig_release(&r);
}

static void test_by_default_rounds_wait_for_it(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, false);
	for (int round = 0; round < 5; round++)
		assert_true(slow_takes_part(&r));
	rig_release(&r);
}

/* While it takes part in every round, the others show two or three times its rate: it rests every
 * other round, in which they show theirs. */
static void test_a_slow_line_cannot_hide_behind_what_others_show(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	for (int round = 0; round < LOOKS + 6; round++) {
		for (uint32_t i = 0; i < 2 * ALL; i++) {
			struct report rep = rig_report(&r, i % ALL, i < ALL ? WORKER_TRAINING : WORKER_READY);
			rep.up_bytes_per_s = rep.down_bytes_per_s = i % ALL == SLOW ? slow_line : slow_line / 10 * 19;
			rig_send(&r, i % ALL, &rep);
		}
		int n = rig_doc(&r)->n_members;
		assert_int_equal(n, round < LOOKS || round % 2 == 0 ? ALL : FAST);
		say_first(&r, n, WORKER_REDUCING);
		say_first(&r, n, WORKER_VOTED);
	}
	rig_release(&r);
}

/* The others are ready: the round begins at once, though it trains. At its turn it is waited
 * for. */
static void test_no_round_waits_for_one_that_rests(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	show_slow(&r);
	for (int round = 1; round <= EVERY; round++) {
		say_first(&r, ALL, WORKER_TRAINING);
		say_first(&r, FAST, WORKER_READY);
		assert_int_equal(rig_doc(&r)->phase, round < EVERY ? RUN_REDUCE : RUN_OPEN);
		if (round == 1)
			assert_true(rig_saw(&r, CORE_EVENT_RESTS, SLOW));
		if (round == EVERY)
			say(&r, SLOW, WORKER_READY);
		assert_int_equal(rig_doc(&r)->phase, RUN_REDUCE);
		int n = rig_doc(&r)->n_members;
		assert_int_equal(n, round < EVERY ? FAST : ALL);
		say_first(&r, n, WORKER_REDUCING);
		say_first(&r, n, WORKER_VOTED);
	}
	rig_release(&r);
}

static void test_it_takes_part_where_too_few_are_left(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, ALL, true);
	for (int round = 0; round < 5; round++)
		assert_true(slow_takes_part(&r));
	rig_release(&r);
}

/* Turns are in the records; lines are reported anew. */
static void test_a_restart_keeps_turns(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	show_slow(&r);
	(void)slow_takes_part(&r);
	for (int turn = 0; turn < 2; turn++) { /* in the middle of its rest, and after its turn */
		rig_restart(&r);
		for (int round = 2 - turn; round < EVERY; round++)
			assert_false(slow_takes_part(&r));
		assert_true(slow_takes_part(&r));
	}
	rig_release(&r);
}

/* After a rollback each takes part at once: rosters of rounds that are gone say nothing. */
static void test_a_rollback_forgets_turns(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	show_slow(&r);
	for (int round = 0; round < 2; round++)
		assert_false(slow_takes_part(&r));
	assert_int_equal(core_rollback(r.core, r.now_us, 0, true, NULL), RV_OK);
	rig_pump(&r);
	assert_int_equal(rig_doc(&r)->round, 0);
	assert_true(slow_takes_part(&r));
	rig_release(&r);
}

/* A line with three quarters of the others' rate is waited for. */
static void test_a_line_that_makes_the_deadline_is_not_skipped(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	for (int round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < 2 * ALL; i++) {
			struct report rep = rig_report(&r, i % ALL, i < ALL ? WORKER_TRAINING : WORKER_READY);
			rep.up_bytes_per_s = rep.down_bytes_per_s = i % ALL == SLOW ? fast_line / 4 * 3 : fast_line;
			rig_send(&r, i % ALL, &rep);
		}
		assert_int_equal(rig_doc(&r)->n_members, ALL);
		say_first(&r, ALL, WORKER_REDUCING);
		say_first(&r, ALL, WORKER_VOTED);
	}
	rig_release(&r);
}

/* An exchange in which a line had little to do is not the line: three in a row are, by a seventh
 * and more; then it is slow until it makes it. */
static void test_one_exchange_makes_nobody_slow(void **state) {
	(void)state;
	struct rig r;
	/* Shares of the others' rate, in eighths: the deadline is at 16/3. */
	static const int eighths[] = {8, 1, 1, 8, 1, 1, 5, 1, 1, 5, 5, 5, 1, 1, 1, 5, 5, 6, 1};
	static const uint8_t takes_part[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 1};
	open_slow(&r, 2, true);
	for (size_t round = 0; round < sizeof takes_part; round++) {
		for (uint32_t i = 0; i < 2 * ALL; i++) {
			struct report rep = rig_report(&r, i % ALL, i < ALL ? WORKER_TRAINING : WORKER_READY);
			rep.up_bytes_per_s = rep.down_bytes_per_s =
				i % ALL == SLOW ? fast_line / 8 * (uint64_t)eighths[round] : fast_line;
			rig_send(&r, i % ALL, &rep);
		}
		const int n = rig_doc(&r)->n_members;
		assert_int_equal(n, takes_part[round] ? ALL : FAST);
		say_first(&r, n, WORKER_REDUCING);
		say_first(&r, n, WORKER_VOTED);
	}
	rig_release(&r);
}

/* What people read is what the decision was made by, whatever the line shows since. */
static void test_the_figures_are_those_of_the_decision(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	show_slow(&r);
	assert_false(slow_takes_part(&r));
	struct report rep = rig_report(&r, SLOW, WORKER_TRAINING);
	rep.up_bytes_per_s = rep.down_bytes_per_s = slow_line / 2;
	rig_send(&r, SLOW, &rep);
	const struct core_slow slow = rig_view(&r, SLOW).slow;
	assert_true(slow.why.rate == slow_line && slow.why.needs_ms == 1000 && slow.why.deadline_ms == 150);
	rig_release(&r);
}

/* ---- coarser, part ---- */

enum { INT4 = 3, TOPK = 8 };

static void open_sending(struct rig *r, int policy, uint32_t row_size, int64_t deadline_us, int n) {
	rig_init(r, 2);
	r->cfg.slow_members = policy;
	r->cfg.final_round = 40;
	r->cfg.row_size = row_size;
	r->cfg.chunk_bytes = r->cfg.sent_chunk_bytes = 100000;
	r->cfg.mean_chunk_bytes = deadline_us > 0 ? 1 : 100000;
	r->cfg.slow_deadline_us = deadline_us;
	if (policy == SLOW_COARSER) {
		r->cfg.n_slow_codecs = 2;
		r->cfg.slow_codecs[0] = INT4;
		r->cfg.slow_codecs[1] = TOPK;
		r->cfg.slow_chunk_bytes[0] = 50000;
		r->cfg.slow_chunk_bytes[1] = 3000;
	}
	rig_start(r);
	rig_join(r, n);
}

/* All are ready with uplinks of that rate (bytes/s) in the slow one; its downlink is fast. */
static void ready_as(struct rig *r, uint32_t n, uint64_t slow_up, uint32_t slow) {
	for (uint32_t i = 0; i < 2 * n; i++) {
		struct report rep = rig_report(r, i % n, i < n ? WORKER_TRAINING : WORKER_READY);
		rep.up_bytes_per_s = i % n == slow ? slow_up : fast_line;
		rep.down_bytes_per_s = fast_line;
		rig_send(r, i % n, &rep);
	}
	assert_int_equal(rig_doc(r)->phase, RUN_REDUCE);
}

static void ready_of(struct rig *r, uint32_t n, uint64_t slow_up, uint32_t slow) {
	ready_as(r, n, slow_up, slow);
	assert_int_equal(document_participants(rig_doc(r)), n);
}

static void ready_with(struct rig *r, uint64_t slow_up, uint32_t slow) {
	ready_of(r, ALL, slow_up, slow);
}

static void commit_of(struct rig *r, int n) {
	rig_say_all(r, n, WORKER_REDUCING);
	rig_say_all(r, n, WORKER_VOTED);
	assert_int_equal(rig_doc(r)->phase, RUN_OPEN);
}

static void commit(struct rig *r) {
	commit_of(r, ALL);
}

/* The line of one of n looks slow after so many exchanges. */
static void make_slow(struct rig *r, uint32_t n, uint64_t slow_up, uint32_t slow) {
	for (uint64_t round = rig_doc(r)->round; round < LOOKS; round++) {
		ready_of(r, n, slow_up, slow);
		assert_true(rig_doc(r)->n_rows > 1 || (rig_doc(r)->members[slow].codec | rig_doc(r)->members[slow].part) == 0);
		assert_false(rig_saw(r, CORE_EVENT_SENDS_LESS, slow));
		commit_of(r, (int)n);
	}
}

/* A restarted coordinator knows what was committed to; a member that did not commit to a coarser
 * form sends the run's. */
static void test_roots_are_durable(void **state) {
	(void)state;
	struct rig r;
	open_sending(&r, SLOW_COARSER, 0, 0, ALL);
	make_slow(&r, ALL, 3000000, SLOW);
	ready_with(&r, 3999999, SLOW);
	rig_restart(&r);
	const struct document *d = rig_doc(&r);
	assert_int_equal(d->members[SLOW].codec, TOPK);
	const struct rv_hash root = rig_root(SLOW, 1, d->round, TOPK);
	assert_true(rv_hash_equal(&d->members[SLOW].contribution.root, &root));
	commit(&r);
	for (uint32_t i = 0; i < ALL; i++) {
		struct report rep = rig_report(&r, i, WORKER_READY);
		rep.up_bytes_per_s = i == SLOW ? 3999999 : fast_line;
		rep.down_bytes_per_s = fast_line;
		rep.commitment.n = 1;
		rig_send(&r, i, &rep);
	}
	assert_int_equal(rig_doc(&r)->phase, RUN_REDUCE);
	assert_int_equal(rig_doc(&r)->members[SLOW].codec, 0);
	rig_release(&r);
}

/* 12 chunks: 1.2 MB, 0.1 s at 12 MB/s; the deadline is 0.15 s, and a mean takes 0.1 s. */
static void test_a_slow_uplink_sends_a_coarser_codec(void **state) {
	(void)state;
	struct rig r;
	open_sending(&r, SLOW_COARSER, 0, 0, ALL);
	const struct {
		uint64_t up;
		uint8_t codec;
	} cases[] = {{3999999, TOPK}, {7999999, INT4}, {4000000, INT4}, {1000, TOPK}, {8000000, 0}, {3999999, 0}};
	make_slow(&r, ALL, 3000000, SLOW);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		ready_with(&r, cases[i].up, SLOW);
		const struct document *d = rig_doc(&r);
		assert_int_equal(d->slow_deadline_ms, 150);
		assert_int_equal(d->members[SLOW].codec, cases[i].codec);
		for (int k = 0; k < FAST; k++)
			assert_true(d->members[k].codec == 0 && d->members[k].part == 0);
		for (uint32_t k = 0; k < ALL; k++) {
			const struct rv_hash root = rig_root(k, 1, d->round, d->members[k].codec);
			assert_true(rv_hash_equal(&d->members[k].contribution.root, &root));
		}
		if (i == 0)
			assert_true(rig_saw(&r, CORE_EVENT_SENDS_LESS, SLOW));
		const struct core_slow slow = rig_view(&r, SLOW).slow;
		assert_true(slow.codec == cases[i].codec && slow.why.rate == cases[i].up && slow.rests_until == 0);
		assert_int_equal(slow.why.needs_ms, (1200000 * UINT64_C(1000) + cases[i].up - 1) / cases[i].up);
		commit(&r);
	}
	rig_release(&r);
}

static void test_a_slow_uplink_sends_a_part(void **state) {
	(void)state;
	struct rig r;
	open_sending(&r, SLOW_PART, 0, 0, ALL);
	make_slow(&r, ALL, 4000000, SLOW);
	ready_with(&r, 4000000, SLOW);
	assert_int_equal(rig_doc(&r)->members[SLOW].part, 2);
	commit(&r);
	ready_with(&r, 1000000, SLOW);
	assert_int_equal(rig_doc(&r)->members[SLOW].part, 8);
	/* Another attempt, also after a restart: it is the same contribution. */
	rig_restart(&r);
	assert_int_equal(rig_doc(&r)->members[SLOW].part, 8);
	rig_say_all(&r, ALL, WORKER_REDUCING);
	for (uint32_t i = 1; i < ALL; i++) {
		struct report rep = rig_report(&r, i, WORKER_REDUCING);
		rig_accuse(&rep, 1);
		rig_send(&r, i, &rep);
	}
	rig_wait(&r, 2 * RIG_S);
	RIG_EXPECT_MEMBERS(&r, 1, 2, 3);
	assert_int_equal(rig_doc(&r)->members[2].part, 8);
	assert_int_equal(rig_doc(&r)->slow_deadline_ms, 150);
	rig_release(&r);
}

/* The attempt's deadline follows from what is sent: over an uplink of 1 MB/s all of it takes 1.2 s,
 * and a part 0.15 s. A slow downlink still gets a whole mean. */
static void test_the_attempt_is_shorter_for_one_that_sends_less(void **state) {
	(void)state;
	for (int policy = SLOW_COARSER; policy <= SLOW_PART; policy++) {
		struct rig r;
		open_sending(&r, policy, 0, 0, ALL);
		ready_with(&r, 1000000, SLOW);
		const uint32_t waits_ms = (uint32_t)(4 * r.cfg.withheld_us / 1000);
		const uint32_t whole = rig_doc(&r)->deadline_ms;
		commit(&r);
		make_slow(&r, ALL, 1000000, SLOW);
		ready_with(&r, 1000000, SLOW);
		const uint32_t less = rig_doc(&r)->deadline_ms;
		assert_int_equal(whole, waits_ms + 10800); /* three times three payloads at 1 MB/s */
		assert_int_equal(less, waits_ms + 900);    /* those of the others, at 12 MB/s */
		rig_restart(&r);
		assert_int_equal(rig_doc(&r)->deadline_ms, less);
		rig_release(&r);
	}
}

/* With a deadline that no line makes each would send a part: the one with the best line sends
 * all. */
static void test_one_always_sends_all_chunks(void **state) {
	(void)state;
	struct rig r;
	open_sending(&r, SLOW_PART, 0, 1, ALL);
	make_slow(&r, ALL, 1000000, 0);
	ready_with(&r, 1000000, 0);
	const struct document *d = rig_doc(&r);
	int whole = 0;
	for (int i = 0; i < ALL; i++)
		whole += d->members[i].part == 0;
	assert_true(whole == 1 && d->members[1].part == 0 && d->members[0].part == 8);
	rig_say_all(&r, ALL, WORKER_REDUCING);
	for (uint32_t i = 0; i < ALL; i++) { /* it dies */
		struct report rep = rig_report(&r, i, WORKER_REDUCING);
		rig_accuse(&rep, 2);
		if (i != 1)
			rig_send(&r, i, &rep);
	}
	rig_wait(&r, 2 * RIG_S);
	RIG_EXPECT_MEMBERS(&r, 0, 2, 3);
	assert_true(rig_doc(&r)->members[0].part == 8 && rig_doc(&r)->members[1].part == 0);
	rig_release(&r);
}

/* A column would have to know the weight of each chunk of a row. Coarser codecs are for rows too;
 * instead of a part, a slow member rests. */
static void test_in_rows_all_send_all_chunks(void **state) {
	(void)state;
	struct rig r;
	struct document d;
	open_sending(&r, SLOW_COARSER, 2, 0, ALL);
	make_slow(&r, ALL, 1000, SLOW);
	ready_with(&r, 1000, SLOW);
	assert_true(core_document_of(r.core, SLOW, &d));
	assert_true(d.n_rows == 2 && d.members[document_find(&d, SLOW)].codec == TOPK);
	rig_release(&r);
	open_sending(&r, SLOW_PART, 2, 0, ALL);
	make_slow(&r, ALL, 1000000, SLOW);
	ready_as(&r, ALL, 1000000, SLOW);
	assert_true(core_document_of(r.core, 0, &d));
	assert_true(d.n_rows == 2 && document_participants(&d) == FAST);
	const struct core_slow slow = rig_view(&r, SLOW).slow;
	assert_true(slow.rests_until == LOOKS - 1 + 8 && slow.why.rate == 1000000 && slow.why.needs_ms == 1200);
	rig_release(&r);
}

/* A roster of one row, whose slow member sends a part, would grow to rows: now it rests, also after
 * a restart. */
static void test_a_run_that_grows_to_rows(void **state) {
	(void)state;
	struct rig r;
	open_sending(&r, SLOW_PART, FAST, 0, FAST);
	make_slow(&r, FAST, 1000000, FAST - 1);
	ready_of(&r, FAST, 1000000, FAST - 1);
	assert_true(rig_doc(&r)->members[FAST - 1].part > 0);
	commit_of(&r, FAST);
	rig_join_one(&r, SLOW);
	for (int round = 0; round < 2; round++) {
		ready_as(&r, ALL, 1000000, FAST - 1);
		assert_int_equal(document_participants(rig_doc(&r)), FAST);
		assert_true(document_find(rig_doc(&r), FAST - 1) < 0);
		for (int i = 0; i < FAST; i++)
			assert_int_equal(rig_doc(&r)->members[i].part, 0);
		commit_of(&r, ALL);
		rig_restart(&r);
	}
	rig_release(&r);
}

/* The volunteer reads that its worker rests, until when, and why. */
static void test_one_that_rests_is_given_notice(void **state) {
	(void)state;
	struct rig r;
	struct notice n;
	uint8_t key[NET_KEY_BYTES];
	open_slow(&r, 2, true);
	rig_key(SLOW, key);
	say_first(&r, ALL, WORKER_TRAINING);
	assert_false(core_notice(r.core, key, &n));
	show_slow(&r);
	say_first(&r, ALL, WORKER_TRAINING);
	assert_true(core_notice(r.core, key, &n));
	assert_true(n.kind == NOTICE_RESTS && n.until_round == LOOKS - 1 + EVERY && n.rate == slow_line);
	assert_true(n.needs_ms == 1000 && n.deadline_ms == 150);
	rig_key(0, key);
	assert_false(core_notice(r.core, key, &n));
	assert_int_equal(rig_view(&r, SLOW).slow.rests_until, LOOKS - 1 + EVERY);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_takes_part_in_every_kth_round),
		cmocka_unit_test(test_by_default_rounds_wait_for_it),
		cmocka_unit_test(test_a_slow_line_cannot_hide_behind_what_others_show),
		cmocka_unit_test(test_no_round_waits_for_one_that_rests),
		cmocka_unit_test(test_it_takes_part_where_too_few_are_left),
		cmocka_unit_test(test_a_restart_keeps_turns),
		cmocka_unit_test(test_a_rollback_forgets_turns),
		cmocka_unit_test(test_a_line_that_makes_the_deadline_is_not_skipped),
		cmocka_unit_test(test_one_exchange_makes_nobody_slow),
		cmocka_unit_test(test_the_figures_are_those_of_the_decision),
		cmocka_unit_test(test_a_slow_uplink_sends_a_coarser_codec),
		cmocka_unit_test(test_roots_are_durable),
		cmocka_unit_test(test_a_slow_uplink_sends_a_part),
		cmocka_unit_test(test_the_attempt_is_shorter_for_one_that_sends_less),
		cmocka_unit_test(test_one_always_sends_all_chunks),
		cmocka_unit_test(test_in_rows_all_send_all_chunks),
		cmocka_unit_test(test_a_run_that_grows_to_rows),
		cmocka_unit_test(test_one_that_rests_is_given_notice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
