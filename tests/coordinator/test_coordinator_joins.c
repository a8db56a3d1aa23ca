/* Joins that come together: one transaction, durable before any of them is answered, each use of an
 * invite spent once; and a death between the two loses nobody. */
#include <string.h>

#include "tests/common/check.h"
#include "tests/coordinator/joining.h"
#include "tests/coordinator/service_bench.h"

enum { MANY = 20, BATCH = 32 /* joins of a transaction at most */ };

struct joiner {
	uint8_t key[NET_KEY_BYTES], body[JOINING_BYTES];
	size_t n;
};

static struct joiner joiner_of(uint8_t who, const struct invite *in) {
	struct joiner j = {.key = {who}};
	j.n = joining_request(in, "", j.body);
	return j;
}

static struct joiner joiner_with_invite(struct service_bench *b, uint8_t who) {
	struct invite in;
	joining_invite(b->service, NULL, &in);
	return joiner_of(who, &in);
}

static enum rv_err begin(struct service_bench *b, const struct joiner *j, bool *waits, struct rv_errtext *et) {
	return service_begin_join(b->service, b->now_us, j->key, j->body, j->n, waits, et);
}

static void begin_waits(struct service_bench *b, const struct joiner *j) {
	bool waits = false;
	assert_ok(begin(b, j, &waits, &et));
	assert_true(waits && service_find_member(b->service, j->key) < 0);
}

static enum rv_err finish(struct service_bench *b, const struct joiner *j, struct join_reply *out,
						  struct rv_errtext *et) {
	uint8_t reply[NET_MAX_CONFIG_BYTES + 256];
	struct rv_writer w = rv_writer_of(reply, sizeof reply);
	RV_TRY(service_join(b->service, b->now_us, j->key, j->body, j->n, &w, et));
	return join_reply_decode(reply, rv_writer_len(&w), out, et);
}

static void expect_member(struct service_bench *b, const struct joiner *j, uint32_t member) {
	static struct join_reply reply;
	const int transactions = b->store.n_transactions;
	assert_ok(finish(b, j, &reply, &et));
	assert_int_equal(reply.member, member);
	assert_int_equal(b->store.n_transactions, transactions); /* it was durable before */
}

static void test_many_are_one_transaction(void **state) {
	struct service_bench *b = *state;
	struct joiner all[MANY];
	for (uint8_t i = 0; i < MANY; i++)
		all[i] = joiner_with_invite(b, (uint8_t)(i + 1));
	for (int i = 0; i < MANY; i++)
		begin_waits(b, &all[i]);
	assert_true(b->store.n_records == 0 && service_joins_gather(b->service));
	service_write_joins(b->service, b->now_us);
	assert_false(service_joins_gather(b->service));
	assert_int_equal(b->store.n_transactions, 1);
	for (uint32_t i = 0; i < MANY; i++)
		expect_member(b, &all[i], i);
}

/* Those that would not find room among the records that wait are not refused: they wait for the
 * first of them. */
static void test_more_than_wait_at_once(void **state) {
	struct service_bench *b = *state;
	struct joiner all[2 * BATCH + 1];
	enum { N = sizeof all / sizeof all[0] };
	for (uint8_t i = 0; i < N; i++) {
		all[i] = joiner_with_invite(b, (uint8_t)(i + 1));
		begin_waits(b, &all[i]);
	}
	assert_int_equal(b->store.n_transactions, 2);
	service_tick(b->service, b->now_us);
	assert_false(service_joins_gather(b->service));
	assert_int_equal(b->store.n_transactions, 3);
	for (uint32_t i = 0; i < N; i++)
		expect_member(b, &all[i], i);
}

/* Polls and reports of members leave them together; what these decide follows at once. */
static void test_others_do_not_part_them(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	const uint8_t first[NET_KEY_BYTES] = {1};
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_report(b, who, WORKER_TRAINING, ":70"), RV_OK);
	const int before = b->store.n_transactions;
	const struct joiner third = joiner_with_invite(b, 3), fourth = joiner_with_invite(b, 4);
	begin_waits(b, &third);
	service_listens(b->service, b->now_us, first, true);
	assert_int_equal(bench_report(b, 1, WORKER_READY, ":70"), RV_OK);
	begin_waits(b, &fourth);
	assert_int_equal(bench_report(b, 2, WORKER_READY, ":70"), RV_OK);
	assert_int_equal(b->store.n_transactions, before);
	service_write_joins(b->service, b->now_us);
	assert_int_equal(memory_store_last(&b->store).type, CORE_ROSTER); /* which waits for no tick */
	assert_int_equal(b->store.n_transactions, before + 2);
	expect_member(b, &third, 2);
	expect_member(b, &fourth, 3);
}

static void test_a_full_disk_answers_nobody(void **state) {
	struct service_bench *b = *state;
	static struct join_reply reply;
	struct joiner all[2];
	struct rv_errtext et = {0};
	bool waits = false;
	for (uint8_t i = 0; i < 2; i++) {
		all[i] = joiner_with_invite(b, (uint8_t)(i + 1));
		begin_waits(b, &all[i]);
	}
	b->store.failing = RV_E_FULL;
	service_write_joins(b->service, b->now_us);
	assert_false(service_joins_gather(b->service));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(finish(b, &all[i], &reply, &et), RV_E_BUSY);
		assert_int_equal(begin(b, &all[i], &waits, &et), RV_E_BUSY);
	}
	assert_true(b->store.n_records == 0 && service_fault(b->service, &et) == RV_OK);
	b->store.failing = RV_OK;
	service_tick(b->service, b->now_us);
	for (uint32_t i = 0; i < 2; i++)
		expect_member(b, &all[i], i);
}

static void test_a_store_that_fails_answers_nobody(void **state) {
	struct service_bench *b = *state;
	static struct join_reply reply;
	struct rv_errtext et = {0};
	const struct joiner j = joiner_with_invite(b, 1);
	begin_waits(b, &j);
	b->store.failing = RV_E_IO;
	service_write_joins(b->service, b->now_us);
	assert_int_equal(service_fault(b->service, &et), RV_E_IO);
	assert_int_equal(finish(b, &j, &reply, &et), RV_E_IO);
}

/* Five come at once by a link for three, one of them twice: on two connections. */
static void test_a_use_is_spent_once(void **state) {
	struct service_bench *b = *state;
	const struct invite_terms three = {.uses = 3};
	static struct join_reply reply;
	struct rv_errtext et = {0};
	struct invite in;
	struct joiner all[5];
	bool waits = false;
	joining_invite(b->service, &three, &in);
	for (uint8_t i = 0; i < 5; i++)
		all[i] = joiner_of((uint8_t)(i + 1), &in);
	begin_waits(b, &all[0]);
	begin_waits(b, &all[0]);
	begin_waits(b, &all[1]);
	begin_waits(b, &all[2]);
	assert_int_equal(b->store.n_records, 0);
	for (int i = 3; i < 5; i++) {
		assert_int_equal(begin(b, &all[i], &waits, &et), RV_E_AUTH);
		assert_non_null(strstr(et.text, "was for 3 computers, and is spent"));
		assert_int_equal(b->store.n_records, 3); /* nobody is refused for what is not durable */
	}
	for (uint32_t i = 0; i < 3; i++)
		expect_member(b, &all[i], i);
	assert_int_equal(finish(b, &all[3], &reply, &et), RV_E_AUTH);
}

/* The disk is full: nobody reads that the link is spent while its uses are not. */
static void test_a_use_that_is_not_durable_refuses_nobody(void **state) {
	struct service_bench *b = *state;
	struct rv_errtext et = {0};
	struct invite in;
	bool waits = false;
	joining_invite(b->service, NULL, &in);
	const struct joiner first = joiner_of(1, &in), second = joiner_of(2, &in);
	begin_waits(b, &first);
	b->store.failing = RV_E_FULL;
	assert_int_equal(begin(b, &second, &waits, &et), RV_E_BUSY);
	b->store.failing = RV_OK;
	assert_int_equal(begin(b, &second, &waits, &et), RV_E_AUTH);
	expect_member(b, &first, 0);
}

/* It dies after the commit and before the answers: who asks again has its membership, by the same
 * key and a link that is spent by now. Before the commit nothing was. */
static void test_a_death_loses_nobody(void **state) {
	struct service_bench *b = *state;
	struct joiner all[3];
	for (uint8_t i = 0; i < 3; i++)
		all[i] = joiner_with_invite(b, (uint8_t)(i + 1));
	begin_waits(b, &all[0]);
	begin_waits(b, &all[1]);
	service_write_joins(b->service, b->now_us);
	begin_waits(b, &all[2]);
	bench_restart(b);
	assert_int_equal(b->store.n_records, 2);
	expect_member(b, &all[1], 1);
	expect_member(b, &all[0], 0);
	begin_waits(b, &all[2]);
	service_write_joins(b->service, b->now_us);
	expect_member(b, &all[2], 2);
}

/* Who has joined before the operator's word is a member. */
static void test_the_operators_word_comes_after(void **state) {
	struct service_bench *b = *state;
	const struct invite_terms two = {.uses = 2}, asked = {.uses = 2, .approve = true};
	char text[SERVICE_DECISION_BYTES];
	struct invite open, asks;
	bool waits = false;
	struct rv_errtext et = {0};
	joining_invite(b->service, &two, &open);
	joining_invite(b->service, &asked, &asks);
	const struct joiner first = joiner_of(1, &open), second = joiner_of(2, &asks);
	begin_waits(b, &first);
	assert_int_equal(service_revoke(b->service, b->now_us, "1", text, &et), RV_OK);
	expect_member(b, &first, 0);
	assert_int_equal(begin(b, &second, &waits, &et), RV_E_WAITING);
	assert_int_equal(service_decide(b->service, b->now_us, "020000", true, text, &et), RV_OK);
	begin_waits(b, &second);
	assert_int_equal(service_decide(b->service, b->now_us, "020000", false, text, &et), RV_E_NOTFOUND);
	expect_member(b, &second, 1);
}

static enum rv_err look(struct service_bench *b, const struct joiner *j, struct rv_errtext *et) {
	return service_check_invite(b->service, b->now_us, j->key, j->body, j->n, et);
}

/* A run that has ended says so before it looks at the invite, which is not spent, and where its
 * weights are; its members are welcome. */
static void test_a_run_that_has_ended_takes_nobody(void **state) {
	enum { LATE = 9 };
	struct service_bench *b = *state;
	struct join_reply reply;
	struct rv_errtext why;
	bool waits;
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	struct joiner late = joiner_with_invite(b, LATE), member = late;
	member.key[0] = 1;
	for (int round = 0; round < 4; round++) {
		assert_ok(look(b, &late, &et));
		bench_commit_round(b);
	}
	assert_int_equal(look(b, &late, &why), RV_E_OVER);
	assert_string_equal(why.text, "join: the run has ended: all 4 rounds are done, and it takes no more computers. For "
								  "its weights ask the run's operator, who gave you the link");
	assert_int_equal(service_set_model_at(b->service, "two\nlines", &why), RV_E_INVALID);
	assert_ok(service_set_model_at(b->service, "https://example.org/model", &et));
	bench_restart(b);
	assert_int_equal(begin(b, &late, &waits, &why), RV_E_OVER);
	assert_non_null(strstr(why.text, ". Its weights: https://example.org/model"));
	assert_int_equal(service_find_member(b->service, late.key), -1);
	assert_ok(look(b, &member, &et));
	expect_member(b, &member, 0);
	char text[SERVICE_ROLLBACK_BYTES];
	assert_ok(service_rollback(b->service, b->now_us, 3, true, text, &et));
	assert_ok(look(b, &late, &et)); /* the run goes on: its link is as good as before */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many_are_one_transaction, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_more_than_wait_at_once, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_others_do_not_part_them, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_full_disk_answers_nobody, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_store_that_fails_answers_nobody, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_use_is_spent_once, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_use_that_is_not_durable_refuses_nobody, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_death_loses_nobody, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_the_operators_word_comes_after, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_run_that_has_ended_takes_nobody, bench_set_up, bench_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
