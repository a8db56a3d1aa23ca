/* POST /v1/reach-test and the probes in replies to reports, at the service: who may ask, whom the
 * coordinator sends where, and what comes back (coordinator/service/reach_test.c). */
#include "net/control/reach_test.h"

#include "tests/common/check.h"
#include "tests/coordinator/probe_bench.h"

#include <stdio.h>
#include <string.h>

enum { NEWCOMER = 9 };

/* A member's report, with its answer to a probe; the first member's names b->given, too. Returns
 * true if the reply brings a probe. */
static bool report(struct probe_bench *b, uint8_t who, const char *host, const struct probed *probed,
				   struct probe *out) {
	struct report rep = probe_bench_next_report(b);
	if (b->given != NULL && who == 1) {
		rep.n_candidates = 2;
		rep.candidates[1] = (struct candidate){.kind = CANDIDATE_GIVEN};
		(void)snprintf(rep.candidates[1].addr, NET_ADDR_BYTES, "%s", b->given);
	}
	return probe_bench_report(b, who, host, &rep, probed, out);
}

static int set_up(void **state) {
	const struct relay_ref relays[] = {{.addr = "train.example.org:7435"}, {.addr = "11.0.0.253:7435"}};
	struct probe_bench *b = probe_bench_open(relays, 2, 2);
	*state = b;
	probe_bench_invite(b, b->token);
	return 0;
}

static int tear_down(void **state) {
	probe_bench_close(*state);
	return 0;
}

static struct reach_test_reply ask(struct probe_bench *b, const char *addr) {
	struct reach_test_reply r;
	assert_ok(probe_bench_ask(b, NEWCOMER, "11.0.0.9", b->token, addr, &r, &et));
	return r;
}

static void refused(struct probe_bench *b, const char *addr, enum rv_err e, const char *text) {
	struct reach_test_reply r;
	struct rv_errtext et = {0};
	assert_int_equal(probe_bench_ask(b, NEWCOMER, "11.0.0.9", b->token, addr, &r, &et), e);
	assert_non_null(strstr(et.text, text));
}

static void two_members_at(struct probe_bench *b, const char *one, const char *two) {
	struct probe p;
	(void)report(b, 1, one, NULL, &p);
	(void)report(b, 2, two, NULL, &p);
}

static void members_dial_the_newcomer_where_it_is_seen(void **state) {
	struct probe_bench *b = *state;
	struct probe p;
	two_members_at(b, "11.0.0.1", "11.0.0.2");
	struct reach_test_reply r = ask(b, ":7434");
	assert_string_equal(r.seen, "11.0.0.9");
	assert_int_equal(r.n_probers, 2);
	assert_false(r.done);
	assert_int_equal(r.n_relays, 2);
	assert_string_equal(r.relays[0].addr, "train.example.org:7435");
	for (uint8_t who = 1; who <= 2; who++) {
		assert_true(report(b, who, who == 1 ? "11.0.0.1" : "11.0.0.2", NULL, &p));
		assert_int_equal(p.key[0], NEWCOMER);
		assert_string_equal(p.addrs[0].addr, "11.0.0.9:7434");
		const struct probed answer = {.id = p.id, .n = 1, .results = {who == 1 ? PROBE_SILENT : PROBE_OPEN}};
		assert_false(report(b, who, who == 1 ? "11.0.0.1" : "11.0.0.2", &answer, &p));
	}
	r = ask(b, ":7434");
	assert_true(r.done);
	assert_int_equal(r.results[0], PROBE_OPEN);
}

static void the_token_is_not_spent(void **state) {
	struct probe_bench *b = *state;
	(void)ask(b, ":7434");
	probe_bench_join(b, NEWCOMER, b->token);
	struct reach_test_reply out; /* and now it needs none */
	assert_ok(probe_bench_ask(b, NEWCOMER, "11.0.0.9", NULL, ":7434", &out, &et));
}

static void strangers_and_the_banned_get_none(void **state) {
	struct probe_bench *b = *state;
	const uint8_t wrong[NET_TOKEN_BYTES] = {1};
	struct reach_test_reply r;
	assert_int_equal(probe_bench_ask(b, NEWCOMER, "11.0.0.9", NULL, ":1", &r, NULL), RV_E_AUTH);
	assert_int_equal(probe_bench_ask(b, NEWCOMER, "11.0.0.9", wrong, ":1", &r, NULL), RV_E_AUTH);
	assert_ok(probe_bench_ask(b, 1, "11.0.0.1", NULL, ":1", &r, &et));
	assert_ok(service_ban(b->service, b->now_us, 0, true, &et));
	assert_int_equal(probe_bench_ask(b, 1, "11.0.0.1", b->token, ":1", &r, NULL), RV_E_AUTH);
}

static void a_contacted_host_or_the_own_house_proves_nothing(void **state) {
	struct probe_bench *b = *state;
	static const char *const hosts[] = {"11.0.0.254", "11.0.0.253", "11.0.0.9"};
	for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
		two_members_at(b, hosts[i], hosts[i]);
		struct reach_test_reply r = ask(b, ":7434");
		assert_int_equal(r.n_probers, 0);
		assert_true(r.done);
	}
	two_members_at(b, "11.0.0.254", "11.0.0.2");
	assert_int_equal(ask(b, ":7434").n_probers, 1);
}

static void only_live_members_are_sent(void **state) {
	struct probe_bench *b = *state;
	assert_int_equal(ask(b, NULL).n_probers, 0); /* they have not reported yet */
	two_members_at(b, "11.0.0.1", "11.0.0.2");
	assert_int_equal(ask(b, NULL).n_probers, 2);
	assert_ok(service_ban(b->service, b->now_us, 1, true, &et));
	assert_int_equal(ask(b, NULL).n_probers, 1);
	for (int i = 0; i < 60; i++)
		service_tick(b->service, b->now_us += S);
	assert_int_equal(ask(b, NULL).n_probers, 0);
}

static void a_given_address_is_nobodys_lan_and_not_the_coordinator(void **state) {
	struct probe_bench *b = *state;
	two_members_at(b, "11.0.0.1", "11.0.0.2");
	refused(b, "192.168.1.1:80", RV_E_INVALID, "private");
	refused(b, "127.0.0.1:80", RV_E_INVALID, "loopback");
	refused(b, "169.254.169.254:80", RV_E_INVALID, "link-local");
	refused(b, "224.0.0.1:80", RV_E_INVALID, "unusable");
	refused(b, "11.0.0.254:7433", RV_E_INVALID, "coordinator's own");
	refused(b, "[::ffff:11.0.0.254]:7433", RV_E_INVALID, "coordinator's own");
	refused(b, "11.0.0.253:7435", RV_E_INVALID, "operator's relays");
	refused(b, "[::ffff:11.0.0.253]:22", RV_E_INVALID, "operator's relays");
	assert_int_equal(ask(b, "13.0.0.1:7434").n_probers, 2);
}

static void a_host_that_is_seen_may_be_named_too(void **state) {
	struct probe_bench *b = *state;
	struct probe p;
	two_members_at(b, "11.0.0.1", "11.0.0.2");
	for (int i = 0; i < 8; i++) { /* far more than a given address gets */
		(void)ask(b, "[::ffff:11.0.0.9]:7434");
		for (uint8_t who = 1; who <= 2; who++) {
			const char *host = who == 1 ? "11.0.0.1" : "11.0.0.2";
			assert_true(report(b, who, host, NULL, &p));
			assert_string_equal(p.addrs[0].addr, "11.0.0.9:7434");
			const struct probed answer = {.id = p.id, .n = 1, .results = {PROBE_SILENT}};
			assert_false(report(b, who, host, &answer, &p));
		}
		b->now_us += 31 * S;
		two_members_at(b, "11.0.0.1", "11.0.0.2");
	}
}

/* Returns how many addresses the document names of the first member. */
static int count_announced(struct probe_bench *b) {
	(void)probe_bench_document(b);
	assert_int_equal(b->doc.syncing[0].member, 0);
	return b->doc.syncing[0].n_candidates;
}

/* What another member finds at the given address of the first one. */
static void find_given(struct probe_bench *b, uint8_t result) {
	struct probe p;
	assert_true(report(b, 2, "11.0.0.2", NULL, &p));
	assert_int_equal(p.key[0], 1);
	assert_string_equal(p.addrs[0].addr, "13.0.0.1:7434");
	const struct probed answer = {.id = p.id, .n = 1, .results = {result}};
	assert_false(report(b, 2, "11.0.0.2", &answer, &p));
}

static void a_given_address_is_announced_when_a_member_got_through(void **state) {
	struct probe_bench *b = *state;
	two_members_at(b, "11.0.0.1", "11.0.0.2");
	b->given = "13.0.0.1:7434";
	two_members_at(b, "11.0.0.1", "11.0.0.1"); /* nobody elsewhere: nobody is sent */
	assert_int_equal(count_announced(b), 1);
	two_members_at(b, "11.0.0.1", "11.0.0.2");
	two_members_at(b, "11.0.0.1", "11.0.0.2");
	find_given(b, PROBE_SILENT);
	two_members_at(b, "11.0.0.1", "11.0.0.2");
	assert_int_equal(count_announced(b), 1);
	for (int i = 0; i < 3600; i++)
		two_members_at(b, "11.0.0.1", (b->now_us += S, "11.0.0.2"));
	find_given(b, PROBE_OPEN);
	two_members_at(b, "11.0.0.1", "11.0.0.2");
	assert_int_equal(count_announced(b), 2);
	assert_string_equal(b->doc.syncing[0].candidates[1].addr, "13.0.0.1:7434");
}

static void a_question_of_another_run_is_refused(void **state) {
	struct probe_bench *b = *state;
	uint8_t key[NET_KEY_BYTES] = {1}, body[512], bytes[64];
	const struct member_sight sight = {.own = "11.0.0.254", .host = "11.0.0.1"};
	const struct reach_test_request rq = {.run_id = {6}};
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(bytes, sizeof bytes);
	struct rv_errtext et = {0};
	reach_test_request_encode(&rq, CONTROL_VERSION, &w);
	assert_int_equal(service_reach_test(b->service, b->now_us, key, &sight, body, rv_writer_len(&w), &r, &et),
					 RV_E_INVALID);
	assert_non_null(strstr(et.text, "another run"));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(members_dial_the_newcomer_where_it_is_seen),
		T(the_token_is_not_spent),
		T(strangers_and_the_banned_get_none),
		T(a_contacted_host_or_the_own_house_proves_nothing),
		T(only_live_members_are_sent),
		T(a_given_address_is_nobodys_lan_and_not_the_coordinator),
		T(a_host_that_is_seen_may_be_named_too),
		T(a_given_address_is_announced_when_a_member_got_through),
		T(a_question_of_another_run_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
