/* From a report's candidates to the addresses in the document: their order, what is dropped, and
 * what that costs the coordinator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "coordinator/service/service.h"
#include "tests/common/check.h"
#include "tests/common/memory_store.h"
#include "tests/coordinator/joining.h"
#include "tests/coordinator/run_chunks.h"

struct bench {
	struct memory_store store;
	struct identity run, relay;
	struct service *service;
	struct member_sight sight;
	int64_t now_us;
	uint64_t seq;
	struct document doc;
};

static int set_up(void **state) {
	struct bench *b = calloc(1, sizeof *b);
	uint8_t seed[IDENTITY_SEED_BYTES] = {3};
	identity_of_seed(seed, &b->run);
	seed[0] = 4;
	identity_of_seed(seed, &b->relay);
	memory_store_init(&b->store);
	b->now_us = 1000000;
	b->sight = (struct member_sight){.host = "198.51.100.9", .own = "192.0.2.1"};
	struct service_config cfg = {.serving = &b->run,
								 .root = b->run.key,
								 .run_id = {5},
								 .config = "rounds = 4\nmin-workers = 1\nsilence-ms = 4000\n",
								 .store = &b->store.store,
								 .advertise = {.host = "train.example.org", .port = 7433},
								 .site = "192.0.2.1",
								 .n_relays = 1,
								 .relays = {{.addr = "relay.example.org:7435"}}};
	memcpy(cfg.relays[0].key, b->relay.key, NET_KEY_BYTES);
	assert_ok(service_new(&cfg, b->now_us, &b->service, &et));
	*state = b;
	return 0;
}

static int tear_down(void **state) {
	struct bench *b = *state;
	service_free(b->service);
	memory_store_release(&b->store);
	free(b);
	return 0;
}

static void join(struct bench *b, uint8_t who) {
	const uint8_t key[NET_KEY_BYTES] = {who};
	struct invite in;
	joining_invite(b->service, NULL, &in);
	assert_ok(joining_join(b->service, b->now_us, key, &in, "", NULL, &et));
}

static void read_document(struct bench *b, uint8_t who) {
	joining_document(b->service, &b->run, (const uint8_t[NET_KEY_BYTES]){who}, &b->doc);
}

/* Sends a report of `who` with :7434 and these candidates; then reads the document. */
static enum rv_err report(struct bench *b, uint8_t who, const struct candidate *list, int n) {
	uint8_t key[NET_KEY_BYTES] = {who}, body[NET_MAX_REPORT_BYTES];
	struct report rep = {.boot = 1,
						 .seq = ++b->seq,
						 .phase = WORKER_TRAINING,
						 .n_chunks = run_chunks("", 0),
						 .n_candidates = (uint8_t)(1 + n),
						 .candidates = {{.addr = ":7434"}}};
	read_document(b, who);
	rep.chain = b->doc.chain;
	for (int i = 0; i < n; i++)
		rep.candidates[1 + i] = list[i];
	struct rv_writer w = rv_writer_of(body, sizeof body);
	report_encode(&rep, CONTROL_VERSION, &w);
	assert_false(w.failed);
	struct rv_errtext et = {0};
	enum rv_err e = service_report(b->service, b->now_us, key, &b->sight, body, rv_writer_len(&w), &et);
	read_document(b, who);
	return e;
}

static struct candidate reflected(const struct bench *b, uint8_t who, const char *addr) {
	const uint8_t key[NET_KEY_BYTES] = {who};
	struct candidate c = {
		.kind = CANDIDATE_REFLECTED, .relay = 1, .unix_s = (uint64_t)(rv_clock_wall_us() / RV_US_PER_S)};
	(void)snprintf(c.addr, sizeof c.addr, "%s", addr);
	seen_sign(&b->relay, (uint8_t[NET_RUN_ID_BYTES]){5}, key, addr, c.unix_s, c.signature);
	return c;
}

/* Asserts that the document names these addresses of its first member, "" after the last. */
static void expect(const struct bench *b, const char *const *addrs) {
	const struct member_ref *m = &b->doc.members[0];
	assert_true(b->doc.n_members >= 1);
	for (int i = 0; i < m->n_candidates; i++)
		assert_string_equal(m->candidates[i].addr, addrs[i]);
	assert_string_equal(addrs[m->n_candidates], "");
}
#define EXPECT(b, ...) expect((b), (const char *const[]){__VA_ARGS__, ""})

static int count_events(struct bench *b, const char *what) {
	json_t *s = service_status(b->service, b->now_us, false), *event;
	int n = 0;
	size_t i;
	json_array_foreach(json_object_get(s, "events"), i, event) {
		n += strstr(json_string_value(json_object_get(event, "text")), what) != NULL;
	}
	json_decref(s);
	return n;
}

static void test_confirmed_ones_in_the_order_to_dial(void **state) {
	struct bench *b = *state;
	join(b, 1);
	join(b, 2);
	const struct candidate list[] = {reflected(b, 1, "[2001:db8::9]:7434"),
									 {.kind = CANDIDATE_GIVEN, .addr = "198.51.100.9:9000"},
									 {.kind = CANDIDATE_PRIVATE, .addr = "192.168.1.17:7434"}};
	assert_ok(report(b, 1, list, 3));
	EXPECT(b, "198.51.100.9:7434", "198.51.100.9:9000", "[2001:db8::9]:7434");
	assert_ok(report(b, 2, NULL, 0)); /* seen at the same host */
	EXPECT(b, "192.168.1.17:7434", "198.51.100.9:7434", "198.51.100.9:9000", "[2001:db8::9]:7434");
	assert_int_equal(count_events(b, "not announced"), 0);
}

static void test_the_same_address_is_named_once(void **state) {
	struct bench *b = *state;
	join(b, 1);
	const struct candidate list[] = {reflected(b, 1, "198.51.100.9:7434"),
									 {.kind = CANDIDATE_GIVEN, .addr = "[::ffff:198.51.100.9]:7434"}};
	assert_ok(report(b, 1, list, 2));
	EXPECT(b, "198.51.100.9:7434");
}

static void test_a_lie_is_dropped_and_told_once(void **state) {
	struct bench *b = *state;
	join(b, 1);
	const struct candidate list[] = {reflected(b, 2, "203.0.113.66:7434"), /* another member's */
									 {.kind = CANDIDATE_GIVEN, .addr = "203.0.113.77:80"},
									 {.kind = CANDIDATE_PRIVATE, .addr = "127.0.0.1:7434"}};
	for (int i = 0; i < 5; i++) {
		assert_ok(report(b, 1, list, 3));
		EXPECT(b, "198.51.100.9:7434");
	}
	assert_int_equal(count_events(b, "member 0 reports a reflected address that is not announced: the relay's proof"),
					 1);
	assert_int_equal(count_events(b, "member 0 reports a private address that is not announced"), 1);
	assert_int_equal(count_events(b, "not announced"), 2); /* the given one waits for its probe */
	assert_int_equal(count_events(b, "203.0.113"), 0);     /* addresses are for the operator */
}

/* What honest members report is not told, and what comes before hides no lie. */
static void test_a_volunteers_relay_hides_no_lie(void **state) {
	struct bench *b = *state;
	struct candidate c = reflected(b, 1, "198.51.100.9:40001"), old = c;
	join(b, 1);
	c.relay = 2; /* a volunteer's */
	assert_ok(report(b, 1, &c, 1));
	EXPECT(b, "198.51.100.9:7434");
	assert_int_equal(count_events(b, "not announced"), 0);
	old.unix_s -= 2 * 86400; /* a clock is wrong */
	assert_ok(report(b, 1, &old, 1));
	assert_int_equal(count_events(b, "its proof is older than a day"), 1);
	c = reflected(b, 2, "203.0.113.66:7434"); /* another member's */
	assert_ok(report(b, 1, &c, 1));
	assert_int_equal(count_events(b, "the relay's proof is not for this member"), 1);
}

/* A proof that holds is computed once; wrong ones are computed eight at once, then one in 5 s, and
 * a right one that comes meanwhile waits. */
static void test_proofs_cost_a_bounded_time(void **state) {
	struct bench *b = *state;
	struct candidate right = reflected(b, 1, "198.51.100.9:40001"), wrong = right, next;
	join(b, 1);
	assert_ok(report(b, 1, &right, 1));
	EXPECT(b, "198.51.100.9:7434", "198.51.100.9:40001");
	for (uint8_t i = 0; i < 20; i++) {
		wrong.signature[0] = (uint8_t)(right.signature[0] + 1 + i);
		assert_ok(report(b, 1, &wrong, 1));
	}
	next = reflected(b, 1, "198.51.100.9:40002");
	assert_ok(report(b, 1, &right, 1)); /* remembered */
	b->now_us += 60 * 1000000;
	assert_ok(report(b, 1, &right, 1));
	EXPECT(b, "198.51.100.9:7434", "198.51.100.9:40001");
	for (uint8_t i = 0; i < 20; i++) {
		wrong.signature[1] = (uint8_t)(right.signature[1] + 1 + i);
		assert_ok(report(b, 1, &wrong, 1));
	}
	b->now_us += 1000000;
	assert_ok(report(b, 1, &next, 1));
	assert_true(b->doc.members[0].n_candidates == 1 || strcmp(b->doc.members[0].candidates[1].addr, next.addr) != 0);
	b->now_us += 60 * 1000000;
	assert_ok(report(b, 1, &next, 1));
	EXPECT(b, "198.51.100.9:7434", "198.51.100.9:40002");
}

/* Seen at a private host, announced at the site's public one: those in that network dial it
 * there. */
static void test_beside_the_coordinator_the_private_host_is_known(void **state) {
	struct bench *b = *state;
	join(b, 1);
	join(b, 2);
	b->sight = (struct member_sight){.host = "192.168.0.5", .own = "192.0.2.1"};
	assert_ok(report(b, 1, NULL, 0));
	EXPECT(b, "192.0.2.1:7434");
	b->sight = (struct member_sight){.host = "192.168.0.6", .own = "192.0.2.1"};
	assert_ok(report(b, 2, NULL, 0));
	EXPECT(b, "192.168.0.5:7434", "192.0.2.1:7434");
}

static void test_the_coordinators_own_port_is_refused(void **state) {
	struct bench *b = *state;
	const struct candidate itself = {.kind = CANDIDATE_GIVEN, .addr = "192.0.2.1:7433"};
	join(b, 1);
	assert_ok(report(b, 1, &itself, 1));
	EXPECT(b, "198.51.100.9:7434");
	assert_int_equal(count_events(b, "it is the coordinator itself"), 1);
}

static void test_people_see_kinds_and_addresses(void **state) {
	struct bench *b = *state;
	const struct candidate list[] = {reflected(b, 1, "[2001:db8::9]:7434")};
	join(b, 1);
	assert_ok(report(b, 1, list, 1));
	json_t *s = service_status(b->service, b->now_us, true);
	const json_t *m = json_array_get(json_object_get(s, "members"), 0), *all = json_object_get(m, "candidates");
	assert_string_equal(json_string_value(json_object_get(m, "addr")), "198.51.100.9:7434");
	assert_int_equal(json_array_size(all), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(all, 1), "kind")), "reflected");
	assert_string_equal(json_string_value(json_object_get(json_array_get(all, 1), "addr")), "[2001:db8::9]:7434");
	json_decref(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_confirmed_ones_in_the_order_to_dial, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_same_address_is_named_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_lie_is_dropped_and_told_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_volunteers_relay_hides_no_lie, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_proofs_cost_a_bounded_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_beside_the_coordinator_the_private_host_is_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_coordinators_own_port_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_people_see_kinds_and_addresses, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
