/* POST /v1/reach-test and the probes in replies to reports, at the service: who may ask, whom the
 * coordinator sends where, and what comes back (coordinator/service/reach_test.c). */
#include "net/control/reach_test.h"

#include "coordinator/service/service.h"
#include "tests/common/check.h"
#include "tests/common/memory_store.h"
#include "tests/coordinator/run_chunks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEWCOMER = 9, S = 1000000 };

struct bench {
	struct memory_store store;
	struct identity run;
	struct service *service;
	int64_t now_us;
	uint64_t seq;
	uint8_t token[NET_TOKEN_BYTES]; /* of the newcomer's invite */
	const char *given;              /* that the first member reports; NULL: none */
	struct document doc;
};

/* Makes an invite's token. */
static void invite(struct bench *b, uint8_t token[NET_TOKEN_BYTES]) {
	char links[1][INVITE_MAX_BYTES];
	struct invite in;
	assert_ok(service_invite(b->service, 1, links, &et));
	assert_ok(invite_parse(links[0], &in, &et));
	memcpy(token, in.token, NET_TOKEN_BYTES);
}

static void join(struct bench *b, uint8_t who) {
	uint8_t key[NET_KEY_BYTES] = {who}, body[256], reply[NET_MAX_CONFIG_BYTES + 256];
	struct join_request rq = {.protocol = CONTROL_VERSION, .run_id = {5}, .has_token = true};
	invite(b, rq.token);
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(reply, sizeof reply);
	join_request_encode(&rq, &w);
	assert_ok(service_join(b->service, b->now_us, key, body, rv_writer_len(&w), &r, &et));
}

static struct member_sight sight_of(const char *host) {
	struct member_sight s = {.own = "11.0.0.254"};
	(void)snprintf(s.host, sizeof s.host, "%s", host);
	return s;
}

/* A member's report, with its answer to a probe; returns the probe in the reply, if there is
 * one. */
static bool report(struct bench *b, uint8_t who, const char *host, const struct probed *probed, struct probe *out) {
	uint8_t key[NET_KEY_BYTES] = {who}, body[NET_MAX_REPORT_BYTES], bytes[SERVICE_REPORT_REPLY_BYTES];
	const struct member_sight sight = sight_of(host);
	struct report rep = {.boot = 1,
						 .seq = ++b->seq,
						 .phase = WORKER_SYNCING,
						 .n_chunks = run_chunks("", 0),
						 .n_candidates = 1,
						 .candidates[0].addr = ":7434"};
	struct probes all;
	if (b->given != NULL && who == 1) {
		rep.n_candidates = 2;
		rep.candidates[1] = (struct candidate){.kind = CANDIDATE_GIVEN};
		(void)snprintf(rep.candidates[1].addr, NET_ADDR_BYTES, "%s", b->given);
	}
	if (probed != NULL)
		rep.probed = (struct probed_list){.n = 1, .list = {*probed}};
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(bytes, sizeof bytes);
	report_encode(&rep, CONTROL_VERSION, &w);
	assert_ok(service_report(b->service, b->now_us, key, &sight, body, rv_writer_len(&w), &et));
	if (!service_report_reply(b->service, b->now_us, key, &r) || !probes_are(bytes, rv_writer_len(&r)))
		return false;
	assert_ok(probes_decode(bytes, rv_writer_len(&r), &all, &et));
	*out = all.list[0];
	return true;
}

static int set_up(void **state) {
	struct bench *b = calloc(1, sizeof *b);
	uint8_t seed[IDENTITY_SEED_BYTES] = {3};
	*state = b;
	identity_of_seed(seed, &b->run);
	memory_store_init(&b->store);
	b->now_us = S;
	struct service_config cfg = {.run = &b->run,
								 .run_id = {5},
								 .config = "rounds = 4\nmin-workers = 2\nsilence-ms = 4000\n",
								 .store = &b->store.store,
								 .site = "11.0.0.254",
								 .advertise = {.host = "train.example.org", .port = 7433},
								 .n_relays = 2,
								 .relays = {{.addr = "train.example.org:7435"}, {.addr = "11.0.0.253:7435"}}};
	assert_ok(service_new(&cfg, b->now_us, &b->service, &et));
	for (uint8_t who = 1; who <= 2; who++)
		join(b, who);
	invite(b, b->token);
	return 0;
}

static int tear_down(void **state) {
	struct bench *b = *state;
	service_free(b->service);
	memory_store_release(&b->store);
	free(b);
	return 0;
}

static enum rv_err ask_as(struct bench *b, uint8_t who, const char *host, const uint8_t *token, const char *addr,
						  struct reach_test_reply *out, struct rv_errtext *et) {
	uint8_t key[NET_KEY_BYTES] = {who}, body[512], bytes[REACH_TEST_REPLY_MAX_BYTES];
	const struct member_sight sight = sight_of(host);
	struct reach_test_request rq = {.run_id = {5}, .has_token = token != NULL, .n = addr != NULL};
	if (token != NULL)
		memcpy(rq.token, token, sizeof rq.token);
	(void)snprintf(rq.addrs[0].addr, NET_ADDR_BYTES, "%s", addr != NULL ? addr : "");
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(bytes, sizeof bytes);
	reach_test_request_encode(&rq, CONTROL_VERSION, &w);
	RV_TRY(service_reach_test(b->service, b->now_us, key, &sight, body, rv_writer_len(&w), &r, et));
	return reach_test_reply_decode(bytes, rv_writer_len(&r), out, et);
}

static struct reach_test_reply ask(struct bench *b, const char *addr) {
	struct reach_test_reply r;
	assert_ok(ask_as(b, NEWCOMER, "11.0.0.9", b->token, addr, &r, &et));
	return r;
}

static void refused(struct bench *b, const char *addr, enum rv_err e, const char *text) {
	struct reach_test_reply r;
	struct rv_errtext et = {0};
	assert_int_equal(ask_as(b, NEWCOMER, "11.0.0.9", b->token, addr, &r, &et), e);
	assert_non_null(strstr(et.text, text));
}

static void two_members_at(struct bench *b, const char *one, const char *two) {
	struct probe p;
	(void)report(b, 1, one, NULL, &p);
	(void)report(b, 2, two, NULL, &p);
}

static void members_dial_the_newcomer_where_it_is_seen(void **state) {
	struct bench *b = *state;
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
	struct bench *b = *state;
	uint8_t key[NET_KEY_BYTES] = {NEWCOMER}, body[256], reply[NET_MAX_CONFIG_BYTES + 256];
	struct join_request rq = {.protocol = CONTROL_VERSION, .run_id = {5}, .has_token = true};
	(void)ask(b, ":7434");
	memcpy(rq.token, b->token, sizeof rq.token);
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(reply, sizeof reply);
	join_request_encode(&rq, &w);
	assert_ok(service_join(b->service, b->now_us, key, body, rv_writer_len(&w), &r, &et));
	struct reach_test_reply out; /* and now it needs none */
	assert_ok(ask_as(b, NEWCOMER, "11.0.0.9", NULL, ":7434", &out, &et));
}

static void strangers_and_the_banned_get_none(void **state) {
	struct bench *b = *state;
	const uint8_t wrong[NET_TOKEN_BYTES] = {1};
	struct reach_test_reply r;
	assert_int_equal(ask_as(b, NEWCOMER, "11.0.0.9", NULL, ":1", &r, NULL), RV_E_AUTH);
	assert_int_equal(ask_as(b, NEWCOMER, "11.0.0.9", wrong, ":1", &r, NULL), RV_E_AUTH);
	assert_ok(ask_as(b, 1, "11.0.0.1", NULL, ":1", &r, &et));
	assert_ok(service_ban(b->service, b->now_us, 0, true, &et));
	assert_int_equal(ask_as(b, 1, "11.0.0.1", b->token, ":1", &r, NULL), RV_E_AUTH);
}

static void a_contacted_host_or_the_own_house_proves_nothing(void **state) {
	struct bench *b = *state;
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
	struct bench *b = *state;
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
	struct bench *b = *state;
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
	struct bench *b = *state;
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
static int count_announced(struct bench *b) {
	const uint8_t *bytes, *p = NULL;
	size_t n, bytes_n;
	assert_ok(service_document(b->service, CONTROL_VERSION, &p, &n, &et));
	assert_ok(signed_open(b->run.key, IDENTITY_DOCUMENT_DOMAIN, p, n, &bytes, &bytes_n, &et));
	assert_ok(document_decode(bytes, bytes_n, &b->doc, &et));
	assert_int_equal(b->doc.syncing[0].member, 0);
	return b->doc.syncing[0].n_candidates;
}

/* What another member finds at the given address of the first one. */
static void find_given(struct bench *b, uint8_t result) {
	struct probe p;
	assert_true(report(b, 2, "11.0.0.2", NULL, &p));
	assert_int_equal(p.key[0], 1);
	assert_string_equal(p.addrs[0].addr, "13.0.0.1:7434");
	const struct probed answer = {.id = p.id, .n = 1, .results = {result}};
	assert_false(report(b, 2, "11.0.0.2", &answer, &p));
}

static void a_given_address_is_announced_when_a_member_got_through(void **state) {
	struct bench *b = *state;
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
	struct bench *b = *state;
	uint8_t key[NET_KEY_BYTES] = {1}, body[512], bytes[64];
	const struct member_sight sight = sight_of("11.0.0.1");
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
