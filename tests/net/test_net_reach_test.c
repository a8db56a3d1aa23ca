/* The messages of a reachability test: probes, their answers, the question and its reply
 * (net/control/probe.h, net/control/reach_test.h). */
#include "net/control/reach_test.h"

#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>

static uint8_t bytes[4096];

static const struct probe a_probe = {.id = 7, .key = {1, 2}, .n = 2, .addrs = {{"11.0.0.1:7434"}, {"[2a11::1]:65535"}}};

static size_t write_probes(const struct probes *m) {
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	probes_encode(m, &w);
	assert_false(w.failed);
	return rv_writer_len(&w);
}

static void probes_come_back_as_they_were(void **state) {
	(void)state;
	const struct probes in = {.n = 2, .list = {a_probe, {.id = 8, .n = 1, .addrs = {{"11.0.0.2:1"}}}}};
	struct probes out;
	size_t n = write_probes(&in);
	assert_true(probes_are(bytes, n));
	assert_false(probes_are(bytes, 3));
	assert_ok(probes_decode(bytes, n, &out, &et));
	assert_memory_equal(&in, &out, sizeof in);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(probes_decode(bytes, cut, &out, NULL), RV_E_INVALID);
	assert_int_equal(probes_decode(bytes, n + 1, &out, NULL), RV_E_INVALID);
	bytes[8] = PROBES_AT_ONCE + 1;
	assert_int_equal(probes_decode(bytes, n, &out, NULL), RV_E_INVALID);
	bytes[8] = 0;
	assert_int_equal(probes_decode(bytes, 9, &out, NULL), RV_E_INVALID);
	bytes[4]++;
	assert_int_equal(probes_decode(bytes, n, &out, NULL), RV_E_PROTOCOL);
}

static void the_longest_probes_fit(void **state) {
	(void)state;
	struct probes m = {.n = PROBES_AT_ONCE};
	for (int i = 0; i < m.n; i++) {
		m.list[i].n = PROBE_MAX_ADDRS;
		for (int k = 0; k < PROBE_MAX_ADDRS; k++)
			memset(m.list[i].addrs[k].addr, '1', NET_ADDR_BYTES - 1);
	}
	assert_in_range(write_probes(&m), 2000, PROBES_MAX_BYTES);
}

static void probe_refused(struct probe m, const char *text) {
	const struct probes in = {.n = 2, .list = {a_probe, m}};
	struct probes out;
	struct rv_errtext et = {0};
	assert_int_equal(probes_decode(bytes, write_probes(&in), &out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, text));
}

static void a_probe_names_what_can_be_dialed(void **state) {
	(void)state;
	static const char *const bad[] = {"",           "11.0.0.1",     ":80",     "localhost:80", "11.0.0.1:0",
									  "0.0.0.0:80", "224.0.0.1:80", "[::]:80", "[ff02::1]:80", "255.255.255.255:80"};
	struct probe m = a_probe;
	m.id = 0;
	probe_refused(m, "number is 0");
	m = a_probe;
	m.n = 0;
	probe_refused(m, "no address");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		m = a_probe;
		(void)snprintf(m.addrs[1].addr, NET_ADDR_BYTES, "%s", bad[i]);
		probe_refused(m, "not a numeric one");
	}
}

static enum rv_err probed_through_bytes(size_t n, struct probed_list *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(bytes, n);
	RV_TRY(probed_read(&r, out, et));
	return rv_reader_done(&r) ? RV_OK : rv_fail(et, RV_E_INVALID, "length");
}

static size_t write_probed(const struct probed_list *m) {
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	probed_write(m, &w);
	assert_false(w.failed);
	return rv_writer_len(&w);
}

static void answers_are_of_probes_and_name_known_results(void **state) {
	(void)state;
	struct probed_list in = {.n = 2,
							 .list = {{.id = 9, .n = 2, .results = {PROBE_OPEN, PROBE_UNABLE}},
									  {.id = 8, .n = 1, .results = {PROBE_SILENT}}}};
	struct probed_list out;
	size_t n = write_probed(&in);
	assert_ok(probed_through_bytes(n, &out, &et));
	assert_memory_equal(&in, &out, sizeof in);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(probed_through_bytes(cut, &out, NULL), RV_E_INVALID);
	for (int value = 0; value < 256; value++) {
		bytes[n - 1] = (uint8_t)value;
		bool known = value >= PROBE_OPEN && value <= PROBE_UNABLE;
		assert_int_equal(probed_through_bytes(n, &out, NULL), known ? RV_OK : RV_E_INVALID);
	}
	bytes[0] = PROBES_AT_ONCE + 1;
	assert_int_equal(probed_through_bytes(sizeof bytes, &out, NULL), RV_E_INVALID);
	in.list[1].id = 0;
	assert_int_equal(probed_through_bytes(write_probed(&in), &out, NULL), RV_E_INVALID);
	in.n = 0;
	assert_ok(probed_through_bytes(write_probed(&in), &out, &et));
}

static size_t write_request(const struct reach_test_request *m) {
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	reach_test_request_encode(m, CONTROL_VERSION, &w);
	assert_false(w.failed);
	return rv_writer_len(&w);
}

static struct reach_test_request a_request(int n, const char *first, const char *second) {
	struct reach_test_request m = {.run_id = {5}, .has_token = true, .token = {6}, .n = (uint8_t)n};
	(void)snprintf(m.addrs[0].addr, NET_ADDR_BYTES, "%s", first);
	(void)snprintf(m.addrs[1].addr, NET_ADDR_BYTES, "%s", second);
	return m;
}

static void a_request_is_about_own_ports_or_one_given_address(void **state) {
	(void)state;
	static const struct {
		int n;
		const char *first, *second;
		enum rv_err e;
	} cases[] = {{0, "", "", RV_OK},
				 {1, ":7434", "", RV_OK},
				 {2, ":7434", ":40001", RV_OK},
				 {1, "11.0.0.1:7434", "", RV_OK},
				 {2, ":7434", "11.0.0.1:7434", RV_E_INVALID},
				 {2, "11.0.0.1:7434", ":7434", RV_E_INVALID},
				 {1, "home.example:7434", "", RV_E_INVALID},
				 {1, ":0", "", RV_E_INVALID},
				 {1, "", "", RV_E_INVALID}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct reach_test_request in = a_request(cases[i].n, cases[i].first, cases[i].second), out;
		struct rv_errtext et = {0};
		size_t n = write_request(&in);
		assert_int_equal(reach_test_request_decode(bytes, n, &out, &et), cases[i].e);
		assert_true((cases[i].e == RV_OK) == (et.text[0] == '\0'));
	}
	const struct reach_test_request in = a_request(2, ":7434", ":40001");
	struct reach_test_request out;
	size_t n = write_request(&in);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(reach_test_request_decode(bytes, cut, &out, NULL), RV_E_INVALID);
	bytes[4] = CONTROL_VERSION + 1;
	assert_int_equal(reach_test_request_decode(bytes, n, &out, NULL), RV_E_PROTOCOL);
}

static size_t write_reply(const struct reach_test_reply *m) {
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	reach_test_reply_encode(m, CONTROL_VERSION, &w);
	assert_false(w.failed);
	return rv_writer_len(&w);
}

static void a_reply_comes_back_as_it_was(void **state) {
	(void)state;
	struct reach_test_reply in = {.seen = "11.0.0.9",
								  .n_probers = 2,
								  .done = true,
								  .n = 2,
								  .results = {PROBE_NOT_KNOWN, PROBE_OPEN},
								  .n_relays = 1,
								  .relays = {{.key = {3}, .addr = "relay.example:7435"}}};
	struct reach_test_reply out;
	size_t n = write_reply(&in);
	assert_ok(reach_test_reply_decode(bytes, n, &out, &et));
	assert_memory_equal(&in, &out, sizeof in);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(reach_test_reply_decode(bytes, cut, &out, NULL), RV_E_INVALID);
	in.results[0] = PROBE_RESULTS;
	assert_int_equal(reach_test_reply_decode(bytes, write_reply(&in), &out, NULL), RV_E_INVALID);
	in.results[0] = PROBE_SILENT;
	strcpy(in.seen, "a.name");
	assert_int_equal(reach_test_reply_decode(bytes, write_reply(&in), &out, NULL), RV_E_INVALID);
	strcpy(in.seen, "11.0.0.9");
	strcpy(in.relays[0].addr, "no port");
	assert_int_equal(reach_test_reply_decode(bytes, write_reply(&in), &out, NULL), RV_E_INVALID);
}

static void the_longest_reply_fits(void **state) {
	(void)state;
	struct reach_test_reply m = {.n = PROBE_MAX_ADDRS, .n_relays = NET_MAX_RELAYS};
	memset(m.seen, '1', sizeof m.seen - 1);
	for (int i = 0; i < m.n_relays; i++)
		memset(m.relays[i].addr, 'a', sizeof m.relays[i].addr - 1);
	assert_in_range(write_reply(&m), 1000, REACH_TEST_REPLY_MAX_BYTES);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_come_back_as_they_were),
		cmocka_unit_test(the_longest_probes_fit),
		cmocka_unit_test(a_probe_names_what_can_be_dialed),
		cmocka_unit_test(answers_are_of_probes_and_name_known_results),
		cmocka_unit_test(a_request_is_about_own_ports_or_one_given_address),
		cmocka_unit_test(a_reply_comes_back_as_it_was),
		cmocka_unit_test(the_longest_reply_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
