/* Joins, tokens, bans, stale reports, durability before announcement, and replay's refusals. */
#include <stdlib.h>
#include <string.h>

#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

static struct join_request request(const struct rig *r, uint8_t token) {
	struct join_request rq = {.protocol = CONTROL_VERSION, .has_token = token != 0, .name = "w"};
	memcpy(rq.run_id, r->cfg.run_id, sizeof rq.run_id);
	rq.token[0] = token;
	return rq;
}

static enum rv_err join(struct rig *r, uint32_t who, const struct join_request *rq, bool token_ok, uint32_t *member) {
	uint8_t key[NET_KEY_BYTES];
	struct rv_errtext et = {0};
	rig_key(who, key);
	*member = 99;
	enum rv_err e = core_join(r->core, r->now_us, key, rq, token_ok, member, &et);
	assert_int_equal(e != RV_OK, et.text[0] != '\0');
	rig_pump(r);
	return e;
}

static void test_join_needs_a_token_at_first(void **state) {
	(void)state;
	struct rig r;
	uint32_t member;
	rig_init(&r, 1);
	rig_start(&r);
	struct join_request with = request(&r, 5), without = request(&r, 0);
	assert_int_equal(join(&r, 0, &without, true, &member), RV_E_AUTH);
	assert_int_equal(join(&r, 0, &with, false, &member), RV_E_AUTH);
	assert_int_equal(r.n_records, 0);
	assert_int_equal(join(&r, 0, &with, true, &member), RV_OK);
	assert_int_equal(member, 0);
	const struct core_record *rec = rig_last(&r, CORE_MEMBER);
	struct rv_hash hash = core_token_hash(r.cfg.run_id, with.token);
	assert_memory_equal(&rec->token_hash, &hash, sizeof hash);
	/* The same key comes back without a token. The platform knows how many a token admits. */
	assert_int_equal(join(&r, 0, &without, false, &member), RV_OK);
	assert_int_equal(member, 0);
	assert_int_equal(join(&r, 1, &with, false, &member), RV_E_AUTH);
	struct join_request other = request(&r, 6);
	assert_int_equal(join(&r, 1, &other, true, &member), RV_OK);
	assert_int_equal(member, 1);
	rig_release(&r);
}

static void test_join_retried_while_pending(void **state) {
	(void)state;
	struct rig r;
	uint32_t a, b, again;
	rig_init(&r, 1);
	rig_start(&r);
	r.hold = true;
	struct join_request rq = request(&r, 5), rq2 = request(&r, 6);
	assert_int_equal(join(&r, 0, &rq, true, &a), RV_OK);
	assert_int_equal(join(&r, 1, &rq2, true, &b), RV_OK);
	assert_int_equal(join(&r, 0, &rq, true, &again), RV_OK);
	assert_int_equal(join(&r, 0, &rq, true, &again), RV_OK);
	assert_int_equal(a, again);
	assert_int_equal(b, 1);
	r.hold = false;
	rig_pump(&r);
	assert_int_equal(r.n_records, 2);
	rig_release(&r);
}

static void test_join_refusals(void **state) {
	(void)state;
	struct rig r;
	uint32_t member;
	rig_init(&r, 1);
	rig_start(&r);
	struct join_request rq = request(&r, 5);
	rq.protocol = rq.protocol_min = CONTROL_VERSION + 1;
	assert_int_equal(join(&r, 0, &rq, true, &member), RV_E_PROTOCOL);
	rq.protocol = rq.protocol_min = CONTROL_VERSION_MIN - 1;
	assert_int_equal(join(&r, 0, &rq, true, &member), RV_E_PROTOCOL);
	rq = request(&r, 5);
	rq.run_id[0] ^= 1;
	assert_int_equal(join(&r, 0, &rq, true, &member), RV_E_PROTOCOL);
	rig_join(&r, NET_MAX_ROW);
	rq = request(&r, 200);
	assert_int_equal(join(&r, 100, &rq, true, &member), RV_E_FULL);
	rig_release(&r);
}

static void test_ban(void **state) {
	(void)state;
	struct rig r;
	uint32_t member;
	uint8_t key[NET_KEY_BYTES];
	struct rv_errtext et = {0};
	rig_open(&r, 2, 3);
	rig_say_all(&r, 3, WORKER_TRAINING);
	assert_int_equal(core_ban(r.core, r.now_us, 7, true, &et), RV_E_NOTFOUND);
	assert_int_equal(core_ban(r.core, r.now_us, 1, true, &et), RV_OK);
	rig_pump(&r);
	RIG_EXPECT_MEMBERS(&r, 0, 2);
	assert_true(banned_equal(&rig_doc(&r)->banned, &(struct banned){1, {1}})); /* its peers are told */
	struct report rep = rig_report(&r, 1, WORKER_READY);
	rig_key(1, key);
	assert_int_equal(core_report(r.core, r.now_us, key, &rep, &et), RV_E_AUTH);
	struct join_request rq = request(&r, 0);
	assert_int_equal(join(&r, 1, &rq, false, &member), RV_E_AUTH);
	/* Not waited for. */
	rig_say(&r, 0, WORKER_READY);
	rig_say(&r, 2, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 2);
	/* Durable, and taken back. */
	rig_restart(&r);
	assert_true(banned_equal(&rig_doc(&r)->banned, &(struct banned){1, {1}}));
	assert_int_equal(core_report(r.core, r.now_us, key, &rep, &et), RV_E_AUTH);
	assert_int_equal(core_ban(r.core, r.now_us, 1, false, &et), RV_OK);
	rig_pump(&r);
	assert_int_equal(rig_doc(&r)->banned.n, 0);
	assert_int_equal(core_report(r.core, r.now_us, key, &rep, &et), RV_OK);
	rig_release(&r);
}

/* A ban in the middle of an all-reduce: the others go on without it, and its vote does not
 * count. */
static void test_ban_of_a_participant(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 3);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_say_all(&r, 3, WORKER_READY);
	rig_say(&r, 1, WORKER_VOTED);
	assert_ok(core_ban(r.core, r.now_us, 1, true, &et));
	rig_pump(&r);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 2);
	rig_release(&r);
}

static void test_stale_reports_are_ignored(void **state) {
	(void)state;
	struct rig r;
	uint8_t key[NET_KEY_BYTES];
	rig_open(&r, 1, 1);
	rig_key(0, key);
	struct report rep = rig_report(&r, 0, WORKER_TRAINING);
	rep.boot = 50;
	rep.seq = 10;
	rep.inner_step = 1;
	assert_ok(core_report(r.core, r.now_us, key, &rep, &et));
	struct report older = rep;
	older.seq = 10;
	older.inner_step = 2;
	assert_ok(core_report(r.core, r.now_us, key, &older, &et));
	older.seq = 9;
	assert_ok(core_report(r.core, r.now_us, key, &older, &et));
	older.boot = 49;
	older.seq = 1000;
	assert_ok(core_report(r.core, r.now_us, key, &older, &et));
	assert_int_equal(core_here(r.core), 1);
	assert_int_equal(rig_view(&r, 0).last->inner_step, 1);
	struct report newer = rep;
	newer.boot = 51;
	newer.seq = 1;
	newer.inner_step = 3;
	assert_ok(core_report(r.core, r.now_us, key, &newer, &et));
	assert_int_equal(rig_view(&r, 0).last->inner_step, 3);
	/* The machine's clock was set back, and the member had been silent: it is believed. */
	rig_pump(&r);
	rig_wait(&r, 11 * RIG_S);
	older.boot = 3;
	older.inner_step = 4;
	assert_ok(core_report(r.core, r.now_us, key, &older, &et));
	assert_int_equal(rig_view(&r, 0).last->inner_step, 4);
	rig_release(&r);
}

/* ---- two processes with one key ---- */

/* Two boots that cannot be one process that has installed snapshots. */
enum { FORMER = 50 * RIG_S, LATTER = 60 * RIG_S };

static enum rv_err report_of(struct rig *r, uint64_t boot, uint64_t seq, struct rv_errtext *et) {
	uint8_t key[NET_KEY_BYTES];
	struct report rep = rig_report(r, 0, WORKER_TRAINING);
	rig_key(0, key);
	rep.boot = boot;
	rep.seq = seq;
	enum rv_err e = core_report(r->core, r->now_us, key, &rep, et);
	rig_pump(r);
	return e;
}

static uint64_t followed_boot(const struct rig *r) {
	return rig_view(r, 0).last->boot;
}

static int count_twice(struct rig *r) {
	struct core_event ev;
	int n = 0;
	while (core_next_event(r->core, &ev))
		n += ev.type == CORE_EVENT_TWICE && ev.member == 0;
	return n;
}

/* Both report in turn: the earlier one is told which one is followed, as often as it goes on; the
 * operator once. */
static void test_two_processes_with_one_key(void **state) {
	(void)state;
	struct rig r;
	struct rv_errtext et = {0};
	int refused = 0;
	rig_open(&r, 1, 1);
	for (uint64_t seq = 1; seq <= 8; seq++) {
		rig_wait(&r, RIG_S);
		refused += report_of(&r, FORMER, seq, &et) == RV_E_AUTH;
		assert_int_equal(report_of(&r, LATTER, seq, &et), RV_OK);
		assert_int_equal(followed_boot(&r), LATTER);
	}
	assert_int_equal(refused, 4); /* the first was alone, the next three prove that it lives */
	assert_non_null(strstr(et.text, "another process runs as member 0 since 1970-01-01 00:01:00 UTC"));
	assert_int_equal(count_twice(&r), 1);
	rig_release(&r);
}

/* A boot is whatever a member says: 0 too, first, later and in turn with another. */
static void test_a_boot_of_zero(void **state) {
	(void)state;
	struct rig r;
	struct rv_errtext et = {0};
	rig_open(&r, 1, 1);
	for (uint64_t seq = 1; seq <= 12; seq++) {
		rig_wait(&r, RIG_S);
		(void)report_of(&r, 0, seq, &et);
		(void)report_of(&r, seq % 3 == 0 ? LATTER : FORMER, seq, &et);
	}
	assert_int_equal(followed_boot(&r), LATTER);
	rig_release(&r);
}

/* A worker was killed and is back at once. What its former process had sent may come late, and in
 * bits. */
static void test_former_process_is_heard_late(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 1);
	assert_ok(report_of(&r, FORMER, 1, &et));
	for (uint64_t seq = 1; seq <= 20; seq++) {
		rig_wait(&r, RIG_S);
		assert_ok(report_of(&r, LATTER, seq, &et));
		assert_ok(report_of(&r, FORMER, seq < 4 ? seq : 3, &et)); /* three, of which one again and again */
		assert_int_equal(followed_boot(&r), LATTER);
	}
	assert_int_equal(count_twice(&r), 0);
	rig_release(&r);
}

/* It is back with a clock that was set back: never told to end, whatever of its former process
 * still comes; and where that has hung up it is believed at once. */
static void test_clock_set_back(void **state) {
	(void)state;
	struct rig r;
	uint8_t key[NET_KEY_BYTES];
	rig_key(0, key);
	rig_open(&r, 1, 1);
	assert_ok(report_of(&r, LATTER, 1, &et));
	for (uint64_t seq = 1; seq <= 8; seq++) {
		rig_wait(&r, RIG_S);
		assert_ok(report_of(&r, FORMER, seq, &et));
		if (seq < 3)
			assert_ok(report_of(&r, LATTER, seq + 1, &et)); /* was under way when it died */
	}
	assert_int_equal(followed_boot(&r), LATTER);
	rig_wait(&r, RIG_S);
	core_listens(r.core, r.now_us, key, false);
	core_listens(r.core, r.now_us, key, true);
	assert_ok(report_of(&r, FORMER, 9, &et));
	assert_int_equal(followed_boot(&r), FORMER);
	assert_int_equal(count_twice(&r), 0);
	rig_release(&r);
}

/* The clock was set back, and what the former process said comes once more: neither its later boot,
 * nor that the present one is silent, nor a process in between makes it news. */
static void test_repeated_reports_of_a_former_process(void **state) {
	(void)state;
	struct rig r;
	const uint64_t third = FORMER + RIG_S;
	rig_open(&r, 1, 1);
	for (uint64_t seq = 1; seq <= 5; seq++)
		assert_ok(report_of(&r, LATTER, seq, &et));
	rig_wait(&r, 11 * RIG_S);
	assert_ok(report_of(&r, FORMER, 1, &et));
	assert_int_equal(followed_boot(&r), FORMER);
	for (uint64_t seq = 1; seq <= 5; seq++) {
		assert_ok(report_of(&r, LATTER, seq, &et));
		assert_ok(report_of(&r, FORMER, 1 + seq, &et));
		assert_int_equal(followed_boot(&r), FORMER);
	}
	assert_ok(report_of(&r, third, 1, &et));
	assert_int_equal(followed_boot(&r), third);
	rig_wait(&r, 11 * RIG_S);
	assert_ok(report_of(&r, LATTER, 4, &et));
	assert_ok(report_of(&r, FORMER, 6, &et));
	assert_int_equal(followed_boot(&r), third);
	assert_int_equal(count_twice(&r), 0);
	assert_ok(report_of(&r, LATTER, 6, &et)); /* it lives */
	assert_int_equal(followed_boot(&r), LATTER);
	rig_release(&r);
}

/* Which of two was there first is known: a connection that drops does not bring the former one
 * back. */
static void test_hung_up_does_not_bring_back(void **state) {
	(void)state;
	struct rig r;
	uint8_t key[NET_KEY_BYTES];
	rig_key(0, key);
	rig_open(&r, 1, 1);
	assert_ok(report_of(&r, FORMER, 1, &et));
	assert_ok(report_of(&r, LATTER, 1, &et));
	rig_wait(&r, RIG_S);
	core_listens(r.core, r.now_us, key, false);
	assert_ok(report_of(&r, FORMER, 2, &et));
	assert_int_equal(followed_boot(&r), LATTER);
	rig_release(&r);
}

static void test_report_refusals(void **state) {
	(void)state;
	struct rig r;
	uint8_t key[NET_KEY_BYTES];
	struct rv_errtext et = {0};
	rig_open(&r, 1, 1);
	struct report rep = rig_report(&r, 0, WORKER_TRAINING);
	rig_key(1, key);
	assert_int_equal(core_report(r.core, r.now_us, key, &rep, &et), RV_E_AUTH);
	rig_release(&r);
}

/* While a record is not durable, nothing of it can be seen, and numbers run out rather than being
 * used unsaved. */
static void test_persist_before_announce(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 1);
	rig_say(&r, 0, WORKER_TRAINING);
	rig_expect(&r, RUN_OPEN, 0, 0);
	r.hold = true;
	rig_say(&r, 0, WORKER_READY);
	rig_expect(&r, RUN_OPEN, 0, 0);
	uint64_t seq = rig_doc(&r)->seq;
	/* What is decided does not change while it waits. */
	struct core_record first = {0}, later = {0};
	assert_true(core_next_record(r.core, &first));
	rig_say(&r, 0, WORKER_TRAINING);
	assert_true(core_next_record(r.core, &later));
	assert_memory_equal(&first, &later, sizeof first);
	/* Liveness goes on being announced, as far as the numbers reach. */
	for (int i = 0; i < 5000; i++) {
		rig_say(&r, 0, i % 2 ? WORKER_TRAINING : WORKER_SYNCING);
		assert_true(rig_doc(&r)->phase == RUN_OPEN);
	}
	assert_true(rig_doc(&r)->seq > seq);
	assert_true(rig_doc(&r)->seq < first.doc_seq);
	rig_say(&r, 0, WORKER_READY);
	r.hold = false;
	rig_pump(&r);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_release(&r);
}

/* Numbers grow across restarts, also when nothing but liveness was announced in between. */
static void test_seq_grows_across_restarts(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 2);
	uint64_t seq = 0;
	for (int i = 0; i < 10; i++) {
		rig_say(&r, 0, WORKER_TRAINING);
		assert_true(rig_doc(&r)->seq > seq);
		seq = rig_doc(&r)->seq;
		rig_restart(&r);
		assert_true(rig_doc(&r)->seq > seq);
		/* Killed again before anything new: the same number, the same document. */
		struct document before = *rig_doc(&r);
		rig_restart(&r);
		assert_int_equal(rig_doc(&r)->seq, before.seq);
		assert_int_equal(rig_doc(&r)->n_members, before.n_members);
		seq = before.seq;
	}
	rig_release(&r);
}

static void test_replay_refuses_what_cannot_be(void **state) {
	(void)state;
	struct rig r;
	struct rv_errtext et = {0};
	rig_open(&r, 2, 2);
	rig_say_all(&r, 2, WORKER_READY);
	const struct core_record roster = *rig_last(&r, CORE_ROSTER);
	rig_say_all(&r, 2, WORKER_VOTED);
	struct core_record commit = *rig_last(&r, CORE_COMMIT);
	struct core_record bad[12];
	for (int i = 0; i < 12; i++)
		bad[i] = commit;
	bad[0].id++;                 /* a gap */
	bad[1].round = 1;            /* a round skipped */
	bad[2].attempt = 2;          /* not the attempt under way */
	bad[3].chain.b[0] ^= 1;      /* does not follow */
	bad[4].members[1] = 5;       /* not the roster */
	bad[5].type = 77;            /* unknown */
	bad[6].type = CORE_ROSTER;   /* attempt 1 again */
	bad[7].type = CORE_SNAPSHOT; /* a snapshot at the start */
	bad[8].type = CORE_MEMBER;   /* a member number skipped */
	bad[8].member = 40;
	bad[9] = roster; /* of another size than the run's */
	bad[9].id = commit.id;
	bad[9].attempt = 2;
	bad[9].n_chunks = 7;
	bad[10] = bad[9]; /* blames a number that no member has */
	bad[10].n_chunks = RIG_CHUNKS;
	bad[10].n_blamed = bad[11].n_blamed = 1;
	bad[10].blamed[0] = bad[11].blamed[0] = 40;
	for (int i = 0; i < 12; i++) {
		struct core *c = core_init(malloc(core_size(&r.cfg)), &r.cfg, 0);
		for (uint64_t id = 1; id < commit.id; id++)
			assert_int_equal(core_replay(c, &r.last[id], &et), RV_OK);
		et.text[0] = '\0';
		assert_int_equal(core_replay(c, &bad[i], &et), RV_E_CORRUPT);
		assert_non_null(strstr(et.text, "record "));
		free(c);
	}
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join_needs_a_token_at_first),
		cmocka_unit_test(test_join_retried_while_pending),
		cmocka_unit_test(test_join_refusals),
		cmocka_unit_test(test_ban),
		cmocka_unit_test(test_ban_of_a_participant),
		cmocka_unit_test(test_stale_reports_are_ignored),
		cmocka_unit_test(test_two_processes_with_one_key),
		cmocka_unit_test(test_a_boot_of_zero),
		cmocka_unit_test(test_former_process_is_heard_late),
		cmocka_unit_test(test_repeated_reports_of_a_former_process),
		cmocka_unit_test(test_clock_set_back),
		cmocka_unit_test(test_hung_up_does_not_bring_back),
		cmocka_unit_test(test_report_refusals),
		cmocka_unit_test(test_persist_before_announce),
		cmocka_unit_test(test_seq_grows_across_restarts),
		cmocka_unit_test(test_replay_refuses_what_cannot_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
