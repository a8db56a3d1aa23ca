/* How a worker finds out how others reach it: when it asks what, what it concludes, and what it
 * tells its person (worker/join/reach_check.h, reach_text.h). */
#include "worker/join/reach_check.h"

#include "tests/common/check.h"
#include "worker/join/reach_text.h"

#include <stdio.h>
#include <string.h>

enum { PORT = 7434, S = RV_US_PER_S };

struct scene {
	struct reach_check check;
	struct reach_test_request asked; /* the last one */
	int asks, reflects;
	int64_t now_us;
};

static void take_ask(void *ctx, const struct reach_test_request *rq) {
	struct scene *s = ctx;
	s->asked = *rq;
	s->asks++;
}

static void take_reflect(void *ctx, const struct reach_test_reply *reply) {
	(void)reply;
	((struct scene *)ctx)->reflects++;
}

static struct reach_check_config config_of(struct scene *s) {
	return (struct reach_check_config){
		.ops = {.ctx = s, .ask = take_ask, .reflect = take_reflect}, .port = PORT, .request = {.run_id = {5}}};
}

static struct scene a_scene(void) {
	return (struct scene){.now_us = 7 * S};
}

static void start(struct scene *s) {
	const struct reach_check_config cfg = config_of(s);
	reach_check_begin(&s->check, s->now_us, &cfg);
	reach_check_local(&s->check, "192.168.1.10");
}

static struct reach_test_reply reply_of(int n_probers, bool done, int n, const uint8_t *results) {
	struct reach_test_reply r = {.seen = "11.0.0.9",
								 .n_probers = (uint8_t)n_probers,
								 .done = done,
								 .n = (uint8_t)n,
								 .n_relays = 1,
								 .relays = {{.addr = "11.0.0.1:7435"}}};
	for (int i = 0; i < n; i++)
		r.results[i] = results[i];
	return r;
}

static void answer(struct scene *s, int n_probers, bool done, int n, const uint8_t *results) {
	const struct reach_test_reply r = reply_of(n_probers, done, n, results);
	reach_check_answer(&s->check, s->now_us, &r, false, "");
}

static void reflected(struct scene *s, uint16_t first, uint16_t second) {
	struct address a = {.host = "11.0.0.9", .port = first}, b = {.host = "11.0.0.9", .port = second};
	reach_check_reflected(&s->check, s->now_us, &a, &b);
}

static void router(struct scene *s, uint16_t mapped, bool behind_another) {
	const struct reach_router r = {.asked = true, .mapped = mapped, .behind_another = behind_another};
	reach_check_router(&s->check, s->now_us, &r);
}

static void concludes(const struct scene *s, enum reach_kind reach, const char *text) {
	char out[REACH_TEXT_BYTES];
	assert_false(reach_check_runs(&s->check));
	assert_int_equal(reach_check_deadline_us(&s->check), INT64_MAX);
	assert_int_equal(reach_of_facts(&s->check.facts), reach);
	reach_text(&s->check.facts, out);
	assert_string_equal(out, text);
}

/* A whole check of a worker behind a router, with one address. */
static void check(struct scene *s, uint16_t first, uint16_t second, uint16_t mapped, uint8_t result) {
	const uint8_t results[PROBE_MAX_ADDRS] = {result, result, result, result};
	start(s);
	answer(s, 2, true, 0, NULL);
	reflected(s, first, second);
	router(s, mapped, false);
	answer(s, 2, true, s->asked.n, results);
}

static void nobody_there_ends_it_at_once(void **state) {
	(void)state;
	struct scene s = a_scene();
	start(&s);
	assert_int_equal(s.asked.n, 0);
	answer(&s, 0, true, 0, NULL);
	concludes(&s, REACH_NOT_KNOWN,
			  "how others reach this worker is not known: no member at another address could test it");
	assert_int_equal(s.asks, 1);
	assert_int_equal(s.reflects, 0);
}

static void a_coordinator_that_cannot_test_ends_it_at_once(void **state) {
	(void)state;
	struct scene s = a_scene();
	start(&s);
	reach_check_answer(&s.check, s.now_us, NULL, true, "the coordinator answers 404: not found");
	concludes(&s, REACH_NOT_KNOWN, "how others reach this worker is not known: the coordinator answers 404: not found");
}

static void it_asks_when_the_relay_and_the_router_have_answered(void **state) {
	(void)state;
	struct scene s = a_scene();
	start(&s);
	answer(&s, 2, true, 0, NULL);
	assert_int_equal(s.reflects, 1);
	assert_int_equal(s.asks, 1);
	reflected(&s, 40001, 40001);
	assert_int_equal(s.asks, 1);
	router(&s, 5000, false);
	assert_int_equal(s.asks, 2);
	assert_int_equal(s.asked.n, 3);
	assert_string_equal(s.asked.addrs[0].addr, ":5000");
	assert_string_equal(s.asked.addrs[1].addr, ":7434");
	assert_string_equal(s.asked.addrs[2].addr, ":40001");
}

static void it_waits_for_neither_longer_than_five_seconds(void **state) {
	(void)state;
	struct scene s = a_scene();
	start(&s);
	answer(&s, 2, true, 0, NULL);
	assert_int_equal(reach_check_deadline_us(&s.check), s.now_us + REACH_GATHER_US);
	s.now_us += REACH_GATHER_US - 1;
	reach_check_tick(&s.check, s.now_us);
	assert_int_equal(s.asks, 1);
	reach_check_tick(&s.check, ++s.now_us);
	assert_int_equal(s.asks, 2);
	assert_int_equal(s.asked.n, 1);
}

static void without_a_router_it_does_not_wait_for_one(void **state) {
	(void)state;
	struct scene s = a_scene();
	start(&s);
	reach_check_local(&s.check, "11.0.0.9");
	answer(&s, 2, true, 0, NULL);
	reflected(&s, PORT, PORT);
	assert_int_equal(s.asks, 2);
	answer(&s, 2, true, 1, (uint8_t[]){PROBE_SILENT});
	concludes(&s, REACH_PUNCH,
			  "others cannot dial this worker, but punching works: both dial at one moment. To be reachable, let TCP "
			  "port 7434 in through the firewall of this machine or its router (11.0.0.9)");
}

static void it_asks_again_until_it_is_done_and_no_longer_than_fifteen_seconds(void **state) {
	(void)state;
	struct scene s = a_scene();
	start(&s);
	int64_t begun_us = s.now_us;
	answer(&s, 2, true, 0, NULL);
	reflected(&s, PORT, PORT);
	router(&s, 0, false);
	while (reach_check_runs(&s.check)) {
		answer(&s, 2, false, 1, (uint8_t[]){PROBE_NOT_KNOWN});
		int64_t at = reach_check_deadline_us(&s.check);
		assert_in_range(at, s.now_us + 1, begun_us + REACH_CHECK_US);
		reach_check_tick(&s.check, s.now_us = at);
	}
	assert_int_equal(s.now_us, begun_us + REACH_CHECK_US);
	assert_in_range(s.asks, 20, 40);
	concludes(&s, REACH_NOT_KNOWN, "how others reach this worker is not known: the test did not end in time");
}

static void a_failed_question_is_asked_again_and_a_refusal_ends_it(void **state) {
	(void)state;
	struct scene s = a_scene();
	start(&s);
	answer(&s, 2, true, 0, NULL);
	reflected(&s, PORT, PORT);
	router(&s, 0, false);
	reach_check_answer(&s.check, s.now_us, NULL, false, "timeout");
	assert_true(reach_check_runs(&s.check));
	reach_check_tick(&s.check, s.now_us += S);
	assert_int_equal(s.asks, 3);
	reach_check_answer(&s.check, s.now_us, NULL, true, "too many reachability tests from this address");
	concludes(&s, REACH_NOT_KNOWN,
			  "how others reach this worker is not known: too many reachability tests from this address");
}

static void an_answer_that_is_not_awaited_changes_nothing(void **state) {
	(void)state;
	struct scene s = a_scene();
	check(&s, PORT, PORT, 0, PROBE_OPEN);
	answer(&s, 2, true, 1, (uint8_t[]){PROBE_SILENT});
	reflected(&s, 1, 2);
	concludes(&s, REACH_DIRECT, "others reach this worker directly, at 11.0.0.9:7434");
}

static void each_router_gets_its_word(void **state) {
	(void)state;
	struct scene s = a_scene();
	check(&s, 40001, 40001, 0, PROBE_OPEN);
	concludes(&s, REACH_DIRECT, "others reach this worker directly, at 11.0.0.9:7434");
	check(&s, PORT, PORT, PORT, PROBE_OPEN);
	concludes(&s, REACH_MAPPED, "others reach this worker by the port that your router mapped, 11.0.0.9:7434");
	check(&s, 40001, 40001, 0, PROBE_SILENT);
	concludes(&s, REACH_PUNCH,
			  "others cannot dial this worker, but punching works: both dial at one moment. To be reachable, forward "
			  "TCP port 7434 in your router to this machine (192.168.1.10)");
	check(&s, 40001, 40002, 0, PROBE_REFUSED);
	concludes(&s, REACH_RELAY,
			  "others reach this worker through a relay only: your router is symmetric, it uses another port for each "
			  "destination. To be reachable, forward TCP port 7434 in your router to this machine (192.168.1.10)");
	check(&s, PORT, PORT, 7434, PROBE_SILENT);
	assert_true(reach_mapping_refuted(&s.check.facts));
	concludes(&s, REACH_PUNCH,
			  "others cannot dial this worker, but punching works: both dial at one moment. Your router says that it "
			  "forwards a port, but another router, most likely your provider's, is before it: ask the provider for a "
			  "public IPv4 address, or for IPv6");
	check(&s, PORT, PORT, 0, PROBE_UNABLE);
	concludes(&s, REACH_NOT_KNOWN,
			  "how others reach this worker is not known: those who tested it have no way to its address");
}

static void the_reflected_port_of_a_full_cone_is_direct(void **state) {
	(void)state;
	struct scene s = a_scene();
	start(&s);
	answer(&s, 2, true, 0, NULL);
	reflected(&s, 40001, 40001);
	router(&s, 0, false);
	answer(&s, 2, true, 2, (uint8_t[]){PROBE_SILENT, PROBE_OPEN});
	concludes(&s, REACH_DIRECT, "others reach this worker directly, at 11.0.0.9:40001");
}

static void a_relay_that_sees_another_host_names_no_port_of_this_one(void **state) {
	(void)state;
	struct scene s = a_scene();
	const struct address elsewhere = {.host = "12.0.0.1", .port = 40001};
	start(&s);
	answer(&s, 2, true, 0, NULL);
	reach_check_reflected(&s.check, s.now_us, &elsewhere, &elsewhere);
	router(&s, 0, false);
	assert_int_equal(s.asked.n, 1);
	assert_string_equal(s.asked.addrs[0].addr, ":7434");
}

/* As a member: its station has learnt it. */
static void what_is_known_already_is_not_asked_of_a_relay(void **state) {
	(void)state;
	struct scene s = a_scene();
	struct reach_check_config cfg = config_of(&s);
	cfg.ops.reflect = NULL;
	cfg.router.asked = true;
	cfg.mapping = CHECK_MAPPING_INDEPENDENT;
	cfg.reflected = (struct address){.host = "11.0.0.9", .port = 40001};
	reach_check_begin(&s.check, s.now_us, &cfg);
	answer(&s, 2, true, 0, NULL);
	assert_int_equal(s.asked.n, 2);
	assert_string_equal(s.asked.addrs[1].addr, ":40001");
	answer(&s, 2, true, 2, (uint8_t[]){PROBE_SILENT, PROBE_SILENT});
	assert_int_equal(reach_of_facts(&s.check.facts), REACH_PUNCH);
}

static void without_relays_there_is_no_way_around(void **state) {
	(void)state;
	struct scene s = a_scene();
	struct reach_test_reply r = reply_of(1, true, 0, NULL);
	start(&s);
	r.n_relays = 0;
	reach_check_answer(&s.check, s.now_us, &r, false, "");
	assert_int_equal(s.reflects, 0);
	router(&s, 0, true);
	answer(&s, 1, true, 1, (uint8_t[]){PROBE_SILENT});
	concludes(&s, REACH_RELAY,
			  "others cannot dial this worker, and the run has no relay: it meets only those that it can dial. Your "
			  "router would forward a port, but another router, most likely your provider's, is before it: ask the "
			  "provider for a public IPv4 address, or for IPv6");
}

static void a_relay_that_does_not_answer_leaves_the_mapping_open(void **state) {
	(void)state;
	struct scene s = a_scene();
	const struct address none = {.port = 0};
	start(&s);
	answer(&s, 2, true, 0, NULL);
	reach_check_reflected(&s.check, s.now_us, &none, &none);
	router(&s, 0, false);
	answer(&s, 2, true, 1, (uint8_t[]){PROBE_SILENT});
	concludes(&s, REACH_RELAY,
			  "others reach this worker through a relay only, as far as is known. To be reachable, forward TCP port "
			  "7434 in your router to this machine (192.168.1.10)");
}

static void given(struct scene *s, const char *host, uint16_t port) {
	struct reach_check_config cfg = config_of(s);
	(void)snprintf(cfg.given.host, sizeof cfg.given.host, "%s", host);
	cfg.given.port = port;
	cfg.router.asked = true;
	reach_check_begin(&s->check, s->now_us, &cfg);
	reach_check_local(&s->check, "192.168.1.10");
	answer(s, 2, true, 0, NULL);
	reflected(s, PORT, PORT);
}

static void what_a_person_gives_is_tested_first(void **state) {
	(void)state;
	struct scene s = a_scene();
	given(&s, "", 7000);
	assert_int_equal(s.asked.n, 2);
	assert_string_equal(s.asked.addrs[0].addr, ":7000");
	given(&s, "11.0.0.9", 7000);
	assert_string_equal(s.asked.addrs[0].addr, ":7000");
	given(&s, "13.0.0.1", 7000); /* another host: it alone */
	assert_int_equal(s.asked.n, 1);
	assert_string_equal(s.asked.addrs[0].addr, "13.0.0.1:7000");
	answer(&s, 2, true, 1, (uint8_t[]){PROBE_OPEN});
	concludes(&s, REACH_DIRECT, "others reach this worker directly, at 13.0.0.1:7000");
	given(&s, "13.0.0.1", 7000);
	answer(&s, 2, true, 1, (uint8_t[]){PROBE_OTHER_KEY});
	concludes(&s, REACH_PUNCH,
			  "others cannot dial this worker, but punching works: both dial at one moment. Nobody gets through to "
			  "13.0.0.1:7000, which --advertise names (another program answers there): have it forwarded to TCP port "
			  "7434 of this machine (192.168.1.10)");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_there_ends_it_at_once),
		cmocka_unit_test(a_coordinator_that_cannot_test_ends_it_at_once),
		cmocka_unit_test(it_asks_when_the_relay_and_the_router_have_answered),
		cmocka_unit_test(it_waits_for_neither_longer_than_five_seconds),
		cmocka_unit_test(without_a_router_it_does_not_wait_for_one),
		cmocka_unit_test(it_asks_again_until_it_is_done_and_no_longer_than_fifteen_seconds),
		cmocka_unit_test(a_failed_question_is_asked_again_and_a_refusal_ends_it),
		cmocka_unit_test(an_answer_that_is_not_awaited_changes_nothing),
		cmocka_unit_test(each_router_gets_its_word),
		cmocka_unit_test(the_reflected_port_of_a_full_cone_is_direct),
		cmocka_unit_test(a_relay_that_sees_another_host_names_no_port_of_this_one),
		cmocka_unit_test(what_is_known_already_is_not_asked_of_a_relay),
		cmocka_unit_test(without_relays_there_is_no_way_around),
		cmocka_unit_test(a_relay_that_does_not_answer_leaves_the_mapping_open),
		cmocka_unit_test(what_a_person_gives_is_tested_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
