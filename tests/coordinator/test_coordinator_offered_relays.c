/* test_coordinator_offered_relays.c: relays that members run for others: which are listed and when
 * (coordinator/service/offered_relays.h), and at the service: an offer, the probe of another
 * member, the document. */
#include "coordinator/service/offered_relays.h"

#include "coordinator/service/service.h"
#include "net/control/reach_test.h"
#include "tests/common/check.h"
#include "tests/common/memory_store.h"
#include "tests/coordinator/run_chunks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { S = RV_US_PER_S };

/* ---- which are listed ---- */

static struct offered_relays table;

static struct relay_ref relay(uint8_t n, uint16_t port) {
	struct relay_ref r = {.key = {n}};
	(void)snprintf(r.addr, sizeof r.addr, "11.0.0.%d:%d", n, port);
	return r;
}

static void offer(int64_t now_us, uint8_t member, uint16_t port) {
	const struct relay_ref at = relay(member, port), none = {.key = {member}};
	offered_relays_take(&table, now_us, member, port != 0 ? &at : &none);
}

static void expect_list(int64_t now_us, uint64_t live, const uint8_t *keys, int n) {
	struct relay_ref out[NET_MAX_RELAYS];
	assert_int_equal(offered_relays_list(&table, now_us, live, out), n);
	for (int i = 0; i < n; i++)
		assert_int_equal(out[i].key[0], keys[i]);
}

#define EXPECT_LIST(now, live, ...)                                                                                    \
	expect_list(now, live, (const uint8_t[]){__VA_ARGS__}, (int)sizeof((const uint8_t[]){__VA_ARGS__}))
#define EXPECT_NONE(now, live) expect_list(now, live, NULL, 0)

static void an_offer_is_listed_once_it_was_reached(void **state) {
	(void)state;
	table = (struct offered_relays){0};
	assert_false(offered_relays_due(&table, 0, 3));
	offer(0, 3, 7435);
	offer(0, 2, 7435);
	assert_true(offered_relays_due(&table, 0, 3));
	EXPECT_NONE(0, UINT64_MAX);
	offered_relays_tested(&table, 1 * S, 3, OFFERED_NOBODY);
	EXPECT_NONE(1 * S, UINT64_MAX);
	assert_false(offered_relays_due(&table, 5 * S, 3)); /* not at every report */
	assert_true(offered_relays_due(&table, 6 * S, 3));
	offered_relays_tested(&table, 6 * S, 3, OFFERED_NOT_REACHED);
	assert_false(offered_relays_due(&table, 65 * S, 3));
	assert_true(offered_relays_due(&table, 66 * S, 3));
	offered_relays_tested(&table, 66 * S, 3, OFFERED_REACHED);
	offered_relays_tested(&table, 67 * S, 2, OFFERED_REACHED);
	EXPECT_LIST(67 * S, UINT64_MAX, 3, 2); /* the earliest first */
	EXPECT_LIST(67 * S, 1 << 2, 2);        /* of those that are there */
	offer(68 * S, 3, 7435);                /* nothing new */
	EXPECT_LIST(68 * S, UINT64_MAX, 3, 2);
	offer(69 * S, 3, 7436); /* another one */
	EXPECT_LIST(69 * S, UINT64_MAX, 2);
	offer(70 * S, 2, 0);
	EXPECT_NONE(70 * S, UINT64_MAX);
}

/* Each change is a document for every member. */
static void withdrawn_and_offered_in_turn_it_is_listed_at_a_pace(void **state) {
	(void)state;
	struct relay_ref out[NET_MAX_RELAYS];
	int listings = 0;
	table = (struct offered_relays){0};
	for (int64_t now_us = 0; now_us < 600 * S; now_us += S / 10) {
		offer(now_us, 1, 7435);
		if (offered_relays_due(&table, now_us, 1))
			offered_relays_tested(&table, now_us, 1, OFFERED_REACHED);
		listings += offered_relays_list(&table, now_us, UINT64_MAX, out);
		offer(now_us, 1, 0);
		EXPECT_NONE(now_us, UINT64_MAX);
	}
	assert_int_equal(listings, OFFERED_LISTINGS + 9);
}

static void another_port_each_time_has_the_same_pace(void **state) {
	(void)state;
	struct relay_ref out[NET_MAX_RELAYS];
	int listings = 0;
	table = (struct offered_relays){0};
	for (uint16_t i = 0; i < 100; i++) {
		offer(S, 1, 7435 + i % 2);
		offered_relays_tested(&table, S, 1, OFFERED_REACHED);
		listings += offered_relays_list(&table, S, UINT64_MAX, out);
	}
	assert_int_equal(listings, OFFERED_LISTINGS);
}

static void one_that_is_offered_again_needs_no_test(void **state) {
	(void)state;
	table = (struct offered_relays){0};
	offer(0, 1, 7435);
	offered_relays_tested(&table, 0, 1, OFFERED_REACHED);
	offer(10 * S, 1, 0);
	assert_false(offered_relays_due(&table, OFFERED_RENEW_US, 1));
	offer(20 * S, 1, 7435);
	assert_false(offered_relays_due(&table, 20 * S, 1));
	EXPECT_LIST(20 * S, UINT64_MAX, 1);
	offer(30 * S, 1, 0);
	offer(OFFERED_LISTED_US, 1, 7435); /* its hour is over */
	EXPECT_NONE(OFFERED_LISTED_US, UINT64_MAX);
}

static void one_that_is_no_longer_reached_leaves_the_list(void **state) {
	(void)state;
	table = (struct offered_relays){0};
	offer(0, 1, 7435);
	offer(0, 2, 7435);
	offered_relays_tested(&table, 0, 1, OFFERED_REACHED);
	offered_relays_tested(&table, 0, 2, OFFERED_REACHED);
	assert_false(offered_relays_due(&table, OFFERED_RENEW_US - 1, 1));
	assert_true(offered_relays_due(&table, OFFERED_RENEW_US, 1));
	offered_relays_tested(&table, OFFERED_RENEW_US, 1, OFFERED_NOBODY);
	EXPECT_LIST(OFFERED_LISTED_US - 1, UINT64_MAX, 1, 2);
	offered_relays_tested(&table, OFFERED_RENEW_US, 2, OFFERED_NOT_REACHED);
	EXPECT_LIST(OFFERED_LISTED_US - 1, UINT64_MAX, 1);
	EXPECT_NONE(OFFERED_LISTED_US, UINT64_MAX); /* its hour is over */
	offered_relays_tested(&table, OFFERED_LISTED_US, 2, OFFERED_REACHED);
	offered_relays_tested(&table, OFFERED_LISTED_US, 1, OFFERED_REACHED);
	EXPECT_LIST(OFFERED_LISTED_US, UINT64_MAX, 1, 2); /* an hour that went on keeps its turn */
}

static void there_are_no_more_than_a_document_lists(void **state) {
	(void)state;
	table = (struct offered_relays){0};
	for (uint8_t i = 0; i < NET_MAX_MEMBERS; i++) {
		offer(0, i, 7435);
		offered_relays_tested(&table, 0, i, OFFERED_REACHED);
	}
	EXPECT_LIST(0, UINT64_MAX, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* ---- at the service ---- */

struct bench {
	struct memory_store store;
	struct identity run;
	struct service *service;
	int64_t now_us;
	uint64_t seq;
};

static void join(struct bench *b, uint8_t who) {
	char links[1][INVITE_MAX_BYTES];
	struct invite in;
	uint8_t key[NET_KEY_BYTES] = {who}, body[256], reply[NET_MAX_CONFIG_BYTES + 256];
	struct join_request rq = {.protocol = CONTROL_VERSION, .run_id = {5}, .has_token = true};
	assert_ok(service_invite(b->service, 1, links, &et));
	assert_ok(invite_parse(links[0], &in, &et));
	memcpy(rq.token, in.token, NET_TOKEN_BYTES);
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(reply, sizeof reply);
	join_request_encode(&rq, &w);
	assert_ok(service_join(b->service, b->now_us, key, body, rv_writer_len(&w), &r, &et));
}

static int set_up(void **state) {
	struct bench *b = calloc(1, sizeof *b);
	const uint8_t seed[IDENTITY_SEED_BYTES] = {3};
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
								 .n_relays = 1,
								 .relays = {{.addr = "train.example.org:7435"}}};
	assert_ok(service_new(&cfg, b->now_us, &b->service, &et));
	for (uint8_t who = 1; who <= 3; who++)
		join(b, who);
	return 0;
}

static int tear_down(void **state) {
	struct bench *b = *state;
	service_free(b->service);
	memory_store_release(&b->store);
	free(b);
	return 0;
}

/* A report of `who`, seen at 11.0.0.WHO, that offers a relay at this port. Returns true if it is
 * asked to probe. */
static bool report(struct bench *b, uint8_t who, uint16_t offers, const struct probed *probed, struct probe *out) {
	uint8_t key[NET_KEY_BYTES] = {who}, body[NET_MAX_REPORT_BYTES], bytes[SERVICE_REPORT_REPLY_BYTES];
	struct member_sight sight = {.own = "11.0.0.254"};
	struct report rep = {.boot = 1,
						 .seq = ++b->seq,
						 .phase = WORKER_SYNCING,
						 .n_chunks = run_chunks("", 0),
						 .n_candidates = 1,
						 .candidates[0].addr = ":7434",
						 .offers_relay = offers};
	(void)snprintf(sight.host, sizeof sight.host, "11.0.0.%d", who);
	if (probed != NULL)
		rep.probed = (struct probed_list){.n = 1, .list = {*probed}};
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(bytes, sizeof bytes);
	report_encode(&rep, CONTROL_VERSION, &w);
	assert_ok(service_report(b->service, b->now_us, key, &sight, body, rv_writer_len(&w), &et));
	struct probes probes;
	if (!service_report_reply(b->service, b->now_us, key, &r) || !probes_are(bytes, rv_writer_len(&r)))
		return false;
	assert_ok(probes_decode(bytes, rv_writer_len(&r), &probes, &et));
	assert_int_equal(probes.n, 1);
	*out = probes.list[0];
	return true;
}

static const struct document *document_of(struct bench *b) {
	static struct document d;
	const uint8_t *bytes;
	size_t n;
	assert_ok(service_document(b->service, CONTROL_VERSION, &bytes, &n, &et));
	assert_ok(document_decode(bytes + NET_SIG_BYTES, n - NET_SIG_BYTES, &d, &et));
	return &d;
}

/* Both others dial what `who` offers, with these results. */
static void probe_both(struct bench *b, uint8_t who, const char *addr, uint8_t one, uint8_t two) {
	uint8_t results[] = {one, two};
	for (uint8_t other = 1, i = 0; other <= 3; other++) {
		struct probe p;
		if (other == who)
			continue;
		assert_true(report(b, other, 0, NULL, &p));
		assert_int_equal(p.key[0], who); /* the relay has the member's own key */
		assert_int_equal(p.n, 1);
		assert_string_equal(p.addrs[0].addr, addr);
		const struct probed answer = {.id = p.id, .n = 1, .results = {results[i++]}};
		assert_false(report(b, other, 0, &answer, &p));
	}
}

static void all_report(struct bench *b, uint16_t offer_of_1) {
	struct probe p;
	for (uint8_t who = 2; who <= 3; who++)
		(void)report(b, who, 0, NULL, &p);
	(void)report(b, 1, offer_of_1, NULL, &p);
}

/* A worker that tests how others reach it reflects at the relays that the document lists. */
static void a_reach_test_names(struct bench *b, const struct relay_ref *relays, int n) {
	const uint8_t key[NET_KEY_BYTES] = {2};
	const struct member_sight sight = {.own = "11.0.0.254", .host = "11.0.0.2"};
	const struct reach_test_request rq = {.run_id = {5}};
	struct reach_test_reply got;
	uint8_t body[512], bytes[REACH_TEST_REPLY_MAX_BYTES];
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(bytes, sizeof bytes);
	reach_test_request_encode(&rq, CONTROL_VERSION, &w);
	assert_ok(service_reach_test(b->service, b->now_us, key, &sight, body, rv_writer_len(&w), &r, &et));
	assert_ok(reach_test_reply_decode(bytes, rv_writer_len(&r), &got, &et));
	assert_int_equal(got.n_relays, n);
	for (int i = 0; i < n; i++)
		assert_string_equal(got.relays[i].addr, relays[i].addr);
}

static void a_relay_that_another_member_reaches_is_listed(void **state) {
	struct bench *b = *state;
	struct probe p;
	all_report(b, 7435);
	assert_int_equal(document_of(b)->n_relays, 1);
	probe_both(b, 1, "11.0.0.1:7435", PROBE_SILENT, PROBE_OPEN); /* one of two lies, or is cut off */
	(void)report(b, 1, 7435, NULL, &p);
	const struct document *d = document_of(b);
	assert_int_equal(d->n_relays, 2);
	assert_string_equal(d->relays[0].addr, "train.example.org:7435");
	assert_string_equal(d->relays[1].addr, "11.0.0.1:7435");
	assert_int_equal(d->relays[1].key[0], 1);
	a_reach_test_names(b, d->relays, d->n_relays);
	(void)report(b, 1, 0, NULL, &p); /* no longer */
	assert_int_equal(document_of(b)->n_relays, 1);
}

static void one_that_nobody_reaches_is_not_listed(void **state) {
	struct bench *b = *state;
	struct probe p;
	all_report(b, 7435);
	probe_both(b, 1, "11.0.0.1:7435", PROBE_SILENT, PROBE_OTHER_KEY);
	(void)report(b, 1, 7435, NULL, &p);
	assert_int_equal(document_of(b)->n_relays, 1);
}

static void a_member_that_is_gone_takes_its_relay_along(void **state) {
	struct bench *b = *state;
	struct probe p;
	all_report(b, 7435);
	probe_both(b, 1, "11.0.0.1:7435", PROBE_OPEN, PROBE_OPEN);
	(void)report(b, 1, 7435, NULL, &p);
	assert_int_equal(document_of(b)->n_relays, 2);
	for (int i = 0; i < 60; i++) {
		service_tick(b->service, b->now_us += S);
		(void)report(b, 2, 0, NULL, &p);
	}
	assert_int_equal(document_of(b)->n_relays, 1);
	all_report(b, 7435);
	assert_int_equal(document_of(b)->n_relays, 2); /* and brings it back */
	assert_ok(service_ban(b->service, b->now_us, 0, true, &et));
	service_tick(b->service, b->now_us);
	assert_int_equal(document_of(b)->n_relays, 1);
}

/* Workers are in touch with a relay: their routers let its host in. */
static void the_host_of_a_listed_relay_tests_nobody(void **state) {
	struct bench *b = *state;
	struct probe p;
	all_report(b, 7435);
	probe_both(b, 1, "11.0.0.1:7435", PROBE_OPEN, PROBE_OPEN);
	(void)report(b, 1, 7435, NULL, &p);
	assert_int_equal(document_of(b)->n_relays, 2);
	(void)report(b, 2, 7435, NULL, &p);
	assert_false(report(b, 1, 7435, NULL, &p));
	assert_true(report(b, 3, 0, NULL, &p));
	assert_string_equal(p.addrs[0].addr, "11.0.0.2:7435");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_offer_is_listed_once_it_was_reached),
		cmocka_unit_test(withdrawn_and_offered_in_turn_it_is_listed_at_a_pace),
		cmocka_unit_test(another_port_each_time_has_the_same_pace),
		cmocka_unit_test(one_that_is_offered_again_needs_no_test),
		cmocka_unit_test(one_that_is_no_longer_reached_leaves_the_list),
		cmocka_unit_test(there_are_no_more_than_a_document_lists),
		T(a_relay_that_another_member_reaches_is_listed),
		T(one_that_nobody_reaches_is_not_listed),
		T(a_member_that_is_gone_takes_its_relay_along),
		T(the_host_of_a_listed_relay_tests_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
