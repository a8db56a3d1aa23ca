/* The service over a store that fails on demand: nothing undurable is ever said; a full disk
 * passes; other faults are final. */
#include <stdlib.h>
#include <string.h>

#include "tests/common/check.h"
#include "tests/coordinator/service_bench.h"

static void test_join_reply(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	uint8_t key[NET_KEY_BYTES] = {1};
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(reply.member, 0);
	assert_non_null(strstr(reply.config, "min-workers = 2"));
	assert_true(ticket_verify(b->run.key, reply.run_id, reply.member, key, reply.ticket));
	assert_true(service_find_member(b->service, key) >= 0);
	assert_int_equal(memory_store_last(&b->store).type, CORE_MEMBER);
}

/* What the documents have promised holds after a restart, and after `rotate-key`. */
static void test_audits_outlive_the_serving_key(void **state) {
	struct service_bench *b = *state;
	static struct document before, after;
	struct join_reply reply;
	const uint8_t seed[IDENTITY_SEED_BYTES] = {4};
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	bench_document(b, &before);
	assert_false(rv_hash_is_zero(&before.audit_promise));
	identity_of_seed(seed, &b->run);
	bench_restart(b);
	bench_document(b, &after);
	assert_true(rv_hash_equal(&before.audit_promise, &after.audit_promise));
	for (int i = 0; i < b->store.n_settings; i++) /* another store: another secret */
		b->store.settings[i].value[0] ^= 1;
	bench_restart(b);
	bench_document(b, &after);
	assert_false(rv_hash_equal(&before.audit_promise, &after.audit_promise));
}

/* min-workers = 2: a half of four may go on alone, two of three may not. */
static void test_a_low_minimum_is_told(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	for (uint8_t who = 1; who <= 4; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	for (uint8_t n = 3; n <= 4; n++) {
		for (int phase = WORKER_TRAINING; phase <= WORKER_VOTED; phase++)
			for (uint8_t who = 1; who <= n && phase != WORKER_REDUCING; who++)
				assert_int_equal(bench_report(b, who, (enum worker_phase)phase, ":70"), RV_OK);
		assert_int_equal(b->store.stats[b->store.n_commits - 1].participants, n);
		assert_int_equal(bench_was_told(b, "lets a half of them go on alone"), n == 4);
	}
}

/* Three join, and the first n take part in a round. */
static void play_audited_round(struct service_bench *b, uint8_t n) {
	struct join_reply reply;
	for (uint8_t who = 1; who <= 3; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	for (int phase = WORKER_TRAINING; phase <= WORKER_VOTED; phase++)
		for (uint8_t who = 1; who <= n && phase != WORKER_REDUCING; who++)
			assert_int_equal(bench_report(b, who, (enum worker_phase)phase, ":70"), RV_OK);
	assert_int_equal(b->store.stats[b->store.n_commits - 1].participants, n);
}

static void test_a_round_that_nobody_audits_is_told(void **state) {
	play_audited_round(*state, 2);
	assert_true(bench_was_told(*state, "2 workers take part: nobody audits a round of fewer than 3"));
}

static void test_a_round_that_is_audited_is_not(void **state) {
	play_audited_round(*state, 3);
	assert_false(bench_was_told(*state, "nobody audits"));
}

static void test_full_disk_passes(void **state) {
	struct service_bench *b = *state;
	static struct document d;
	struct join_reply reply;
	uint8_t key[NET_KEY_BYTES] = {3};
	struct rv_errtext et = {0};
	char links[1][INVITE_MAX_BYTES];
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(bench_join(b, 2, &reply), RV_OK);
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	assert_int_equal(bench_report(b, 2, WORKER_TRAINING, ":70"), RV_OK);
	b->store.failing = RV_E_FULL;
	int before = b->store.n_records;
	assert_int_equal(bench_join(b, 3, &reply), RV_E_BUSY);
	assert_true(service_find_member(b->service, key) < 0);
	assert_int_equal(service_invite(b->service, NULL, 1, links, &et), RV_E_BUSY);
	/* Everyone is ready, but no roster is announced that is not on the disk. */
	assert_int_equal(bench_report(b, 1, WORKER_READY, ":70"), RV_OK);
	assert_int_equal(bench_report(b, 2, WORKER_READY, ":70"), RV_OK);
	bench_document(b, &d);
	assert_int_equal(d.phase, RUN_OPEN);
	assert_int_equal(b->store.n_records, before);
	assert_true(service_deadline_us(b->service) < INT64_MAX);
	assert_int_equal(service_fault(b->service, &et), RV_OK);
	/* Space again: the next tick writes what was waiting. */
	b->store.failing = RV_OK;
	service_tick(b->service, b->now_us += 1000000);
	assert_true(service_find_member(b->service, key) >= 0);
	bench_document(b, &d);
	assert_int_equal(d.phase, RUN_REDUCE);
}

static void test_other_faults_are_final(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	struct rv_errtext et = {0};
	b->store.failing = RV_E_IO;
	assert_int_equal(bench_join(b, 1, &reply), RV_E_IO);
	b->store.failing = RV_OK;
	assert_int_equal(service_fault(b->service, &et), RV_E_IO);
	assert_string_equal(et.text, "the store says no");
	uint8_t key[NET_KEY_BYTES] = {1};
	struct rv_writer w = {0};
	assert_int_equal(service_join(b->service, b->now_us, key, "", 0, &w, &et), RV_E_IO);
	service_tick(b->service, b->now_us += 1000000);
	assert_int_equal(b->store.n_records, 0);
}

/* Addresses that wait for the disk at the same moment take one transaction, and are announced when
 * it is durable; so do a member that gives up its slot and the one that gets it. */
static void test_what_waits_together_is_written_together(void **state) {
	struct service_bench *b = *state;
	enum { N = 20 };
	struct join_reply reply;
	for (uint8_t who = 1; who <= N; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	b->store.failing = RV_E_FULL;
	for (uint8_t who = 1; who <= N; who++)
		(void)bench_report(b, who, WORKER_TRAINING, ":7000");
	const int records = b->store.n_records, transactions = b->store.n_transactions;
	const uint64_t seq = service_document_seq(b->service);
	b->store.failing = RV_OK;
	service_tick(b->service, b->now_us += 2000000);
	assert_int_equal(b->store.n_records, records + N);
	assert_in_range(b->store.n_transactions - transactions, 1, 3);
	assert_true(service_document_seq(b->service) > seq);
	json_t *status = service_status(b->service, b->now_us, true);
	for (size_t i = 0; i < N; i++) {
		const json_t *m = json_array_get(json_object_get(status, "members"), i);
		assert_string_not_equal(json_string_value(json_object_get(m, "addr")), "");
	}
	json_decref(status);
}

static void test_report_fills_the_host(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	assert_string_equal(memory_store_last(&b->store).candidates[0].addr, "10.1.1.1:70");
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, "198.51.100.7:71"), RV_OK); /* not believed */
	assert_string_equal(memory_store_last(&b->store).candidates[0].addr, "10.1.1.1:71");
	assert_false(bench_was_told(b, "given address")); /* a member may yet get through to it */
	assert_int_equal(bench_report(b, 9, WORKER_TRAINING, "198.51.100.7:71"), RV_E_AUTH);
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, "host:71"), RV_E_INVALID);
}

static void test_ban(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	uint8_t key[NET_KEY_BYTES] = {1};
	struct rv_errtext et = {0};
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(service_ban(b->service, b->now_us, 4, true, &et), RV_E_NOTFOUND);
	assert_int_equal(service_ban(b->service, b->now_us, 0, true, &et), RV_OK);
	assert_true(service_find_member(b->service, key) < 0);
	assert_int_equal(service_ban(b->service, b->now_us, 0, false, &et), RV_OK);
	assert_true(service_find_member(b->service, key) >= 0);
}

/* It was refused for want of room, and is made durable as soon as there is some: before a join is
 * answered. */
static void test_ban_on_a_full_disk(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	struct rv_errtext et = {0};
	uint8_t key[NET_KEY_BYTES] = {1};
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	b->store.failing = RV_E_FULL;
	assert_int_equal(service_ban(b->service, b->now_us, 0, true, &et), RV_E_BUSY);
	assert_true(service_find_member(b->service, key) >= 0);
	b->store.failing = RV_OK;
	assert_int_equal(bench_join(b, 1, &reply), RV_E_AUTH);
	assert_true(service_find_member(b->service, key) < 0);
}

static void test_invites(void **state) {
	struct service_bench *b = *state;
	char links[3][INVITE_MAX_BYTES];
	struct invite in;
	struct rv_errtext et = {0};
	assert_int_equal(service_invite(b->service, NULL, 0, links, &et), RV_E_RANGE);
	assert_int_equal(service_invite(b->service, NULL, SERVICE_INVITES_MAX + 1, links, &et), RV_E_RANGE);
	assert_int_equal(service_invite(b->service, NULL, 3, links, &et), RV_OK);
	assert_string_not_equal(links[0], links[1]);
	assert_int_equal(invite_parse(links[2], &in, &et), RV_OK);
	assert_string_equal(in.coordinator.host, "train.example.org");
	assert_memory_equal(in.key, b->run.key, sizeof in.key);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_join_reply, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_audits_outlive_the_serving_key, bench_set_up_audited, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_audits_outlive_the_serving_key, bench_set_up_scored, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_low_minimum_is_told, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_round_that_nobody_audits_is_told, bench_set_up_audited, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_round_that_is_audited_is_not, bench_set_up_audited, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_full_disk_passes, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_other_faults_are_final, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_what_waits_together_is_written_together, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_report_fills_the_host, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_ban, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_ban_on_a_full_disk, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_invites, bench_set_up, bench_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
