/* test_net_control.c: joins, reports and run documents: through bytes and back, cut anywhere, and
 * every rule inside. */
#include "net/control/control.h"

#include "base/chain.h"
#include "base/rng.h"
#include "tests/common/check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t buffer[NET_MAX_DOCUMENT_BYTES];
/* At the end of a report: with a commitment for two codecs. */
enum {
	LEASE_BYTES = 8 + 4,
	COMMITMENT_BYTES = 1 + 2 * (1 + RV_HASH_BYTES + NET_SIG_BYTES),
	TEXT_BYTES = 4 * 8 + RV_HASH_BYTES
};
enum {
	VERDICTS_BYTES = 1 + 2 * (8 + 4 + 1 + 4 + RV_HASH_BYTES) + 1 + 3 * (8 + 4 + 1 + 4 + 4) + 1,
	HELDOUT_BYTES = 8 + 4,
	INNER_BYTES = 2 * RV_HASH_BYTES,
	RECEIPTS_BYTES = 1 + 2 * (4 + 1) + 4 /* stands_out */
};

/* What was decoded, encoded again, is what was decoded: `buffer`, n bytes. (Structs have padding,
 * so bytes decide.) */
#define ASSERT_SAME_BYTES(encode, message, n)                                                                          \
	do {                                                                                                               \
		static uint8_t again_[NET_MAX_DOCUMENT_BYTES];                                                                 \
		struct rv_writer w_ = rv_writer_of(again_, sizeof again_);                                                     \
		encode(message, CONTROL_VERSION, &w_);                                                                         \
		assert_int_equal(rv_writer_len(&w_), n);                                                                       \
		assert_memory_equal(buffer, again_, n);                                                                        \
	} while (0)

static struct rv_hash hash_of_int(int i) {
	return rv_hash_of(&i, sizeof i);
}

/* ---- joins ---- */

static struct join_request a_request(void) {
	struct join_request m = {
		.protocol = CONTROL_VERSION, .has_token = true, .name = "Zoë", .software = "rivulet 0.1.0"};
	memset(m.run_id, 1, sizeof m.run_id);
	memset(m.token, 2, sizeof m.token);
	return m;
}

static enum rv_err request_through_bytes(const struct join_request *in, struct join_request *out) {
	struct rv_writer w = rv_writer_of(buffer, sizeof buffer);
	join_request_encode(in, &w);
	assert_false(w.failed);
	return join_request_decode(buffer, rv_writer_len(&w), out, NULL);
}

static void test_join_request(void **state) {
	(void)state;
	struct join_request in = a_request(), out;
	assert_int_equal(request_through_bytes(&in, &out), RV_OK);
	assert_true(out.has_token);
	assert_memory_equal(out.token, in.token, sizeof in.token);
	assert_memory_equal(out.run_id, in.run_id, sizeof in.run_id);
	assert_string_equal(out.name, in.name);
	assert_string_equal(out.software, in.software);
	in.has_token = false;
	assert_int_equal(request_through_bytes(&in, &out), RV_OK);
	for (size_t i = 0; i < sizeof out.token; i++)
		assert_int_equal(out.token[i], 0);
	in = a_request();
	static const char *const controls[] = {"\xc2\x9b"
										   "31m",
										   "\xe2\x80\xae"
										   "evil",
										   "\xe2\x81\xa6",
										   "\xe2\x80\xa8",
										   "\xd8\x9c",
										   "\xc2\x80"};
	for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
		strcpy(in.name, controls[i]);
		assert_int_equal(request_through_bytes(&in, &out), RV_E_INVALID);
	}
	strcpy(in.name, "\xc3(");
	assert_int_equal(request_through_bytes(&in, &out), RV_E_INVALID);
	in = a_request();
	strcpy(in.software, "a\nb");
	assert_int_equal(request_through_bytes(&in, &out), RV_E_INVALID);
}

static void test_a_request_of_another_version_is_readable_enough_to_refuse(void **state) {
	(void)state;
	struct join_request in = a_request(), out;
	in.protocol = CONTROL_VERSION + 2;
	in.protocol_min = CONTROL_VERSION;
	struct rv_writer w = rv_writer_of(buffer, sizeof buffer);
	join_request_encode(&in, &w);
	size_t n = rv_writer_len(&w);
	for (size_t more = 0; more < 9; more++) { /* whatever a later version adds */
		assert_int_equal(join_request_decode(buffer, n + more, &out, NULL), RV_OK);
		assert_int_equal(out.protocol, CONTROL_VERSION + 2);
		assert_int_equal(out.protocol_min, CONTROL_VERSION);
		assert_string_equal(out.software, in.software);
	}
	in.protocol = CONTROL_VERSION;
	in.protocol_min = CONTROL_VERSION + 1;
	assert_int_equal(request_through_bytes(&in, &out), RV_E_INVALID);
}

static void test_common_version(void **state) {
	(void)state;
	assert_int_equal(control_version(), CONTROL_VERSION);
	assert_int_equal(control_version_common(0, 0), 0);
	assert_int_equal(control_version_common(0, CONTROL_VERSION_MIN), CONTROL_VERSION_MIN);
	assert_int_equal(control_version_common(CONTROL_VERSION, CONTROL_VERSION + 1), CONTROL_VERSION);
	assert_int_equal(control_version_common(CONTROL_VERSION + 1, CONTROL_VERSION + 1), 0);
	assert_int_equal(control_version_common(0, UINT32_MAX), CONTROL_VERSION);
}

static void test_join_reply(void **state) {
	(void)state;
	static struct join_reply in, out;
	in = (struct join_reply){
		.member = 4000000000u, .config = "model = gpt2\nlr = 0.1\t# fine\n", .run_hash = hash_of_int(1)};
	memset(in.ticket, 5, sizeof in.ticket);
	struct rv_writer w = rv_writer_of(buffer, sizeof buffer);
	join_reply_encode(&in, CONTROL_VERSION, &w);
	size_t n = rv_writer_len(&w);
	assert_int_equal(join_reply_decode(buffer, n, &out, NULL), RV_OK);
	assert_int_equal(out.member, in.member);
	assert_string_equal(out.config, in.config);
	ASSERT_SAME_BYTES(join_reply_encode, &out, n);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(join_reply_decode(buffer, cut, &out, NULL), RV_E_INVALID);
	assert_int_equal(join_reply_decode(buffer, n + 1, &out, NULL), RV_E_INVALID);
	in.member = NET_NO_MEMBER;
	w = rv_writer_of(buffer, sizeof buffer);
	join_reply_encode(&in, CONTROL_VERSION, &w);
	assert_int_equal(join_reply_decode(buffer, n, &out, NULL), RV_E_INVALID);
	in.member = 0;
	in.config[3] = '\r';
	w = rv_writer_of(buffer, sizeof buffer);
	join_reply_encode(&in, CONTROL_VERSION, &w);
	assert_int_equal(join_reply_decode(buffer, n, &out, NULL), RV_E_INVALID);
}

/* ---- reports ---- */

static struct report a_report(void) {
	return (struct report){
		.boot = 1,
		.seq = 2,
		.phase = WORKER_VOTED,
		.round = 3,
		.attempt = 4,
		.tokens = 5,
		.n_chunks = 6,
		.n_suspects = 2,
		.suspects = {7, NET_MAX_ROSTER - 1},
		.n_paths = 1,
		.paths = {{4000000000u, PATH_RELAYED}},
		.digest = hash_of_int(8),
		.chain = hash_of_int(9),
		.full_round = 10,
		.full_hash = hash_of_int(11),
		.n_candidates = 4,
		.candidates = {{.addr = ":65535"},
					   {.kind = CANDIDATE_REFLECTED,
						.addr = "[2001:db8::1]:8080",
						.relay = NET_MAX_RELAYS,
						.unix_s = UINT64_MAX,
						.signature = {1, 2}},
					   {.kind = CANDIDATE_PRIVATE, .addr = "192.168.1.17:7434"},
					   {.kind = CANDIDATE_GIVEN, .addr = "198.51.100.7:1"}},
		.inner_step = 12,
		.loss = 13.5f,
		.tokens_per_s = 14,
		.tx_bytes = 15,
		.rx_bytes = 16,
		.compute_us = 17,
		.reduce_us = 18,
		.storage = REPORT_STORAGE_FETCHED | REPORT_STORAGE_FULL,
		.n_measured = 2,
		.measured = {{0.5f, -0.25f, 6}, {FLT_MAX, -FLT_MAX, 0}},
		.mean2 = 0.75f,
		.stands_out = 6,
		.relay = NET_MAX_RELAYS,
		.reach = REACH_RELAY,
		.offers_relay = 7435,
		.lease_first = 1ull << 40,
		.lease_count = 320,
		.commitment = {.n = 2, .roots = {{0, {{31}}}, {3, {{32}}}}, .inner_end = {{34}}, .inner_begin = {{35}}},
		.signatures = {{36, 1}, {37, 2}},
		.text_mirror_bytes = 21,
		.text_member_bytes = 22,
		.text_coordinator_bytes = 23,
		.text_stall_us = 24,
		.own_text = {{25, 26}},
		.heldout_round = 27,
		.heldout_loss = 28.5f,
		.n_verdicts = 2,
		.verdicts = {{2, NET_MAX_CHUNKS - 1, AUDIT_WRONG, NET_NO_MEMBER, {{33}}}, {1, 0, AUDIT_WITHHELD, 7, {{0}}}},
		.n_scores = 3,
		.scores = {{2, 5, SCORE_MEASURED, 0.25f, -0.5f},
				   {1, 6, SCORE_WITHHELD, 0, 0},
				   {1, 7, SCORE_REPEATED, 0.125f, 0.5f}},
		.appeals = true,
		.n_receipts = 2,
		.receipts = {{4, 1}, {4000000000u, 255}},
		.probed = {.n = 1, .list = {{.id = 19, .n = 2, .results = {PROBE_OPEN, PROBE_SILENT}}}}};
}

static enum rv_err report_through_bytes(const struct report *in, struct report *out, struct rv_errtext *et) {
	struct rv_writer w = rv_writer_of(buffer, NET_MAX_REPORT_BYTES);
	report_encode(in, CONTROL_VERSION, &w);
	assert_false(w.failed);
	return report_decode(buffer, rv_writer_len(&w), out, et);
}

static void report_refused(struct report m, const char *text) {
	struct report out;
	struct rv_errtext et = {0};
	assert_int_equal(report_through_bytes(&m, &out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, text));
}

static void test_report(void **state) {
	(void)state;
	struct report in = a_report(), out;
	assert_int_equal(report_through_bytes(&in, &out, NULL), RV_OK);
	assert_int_equal(out.seq, in.seq);
	assert_int_equal(out.n_suspects, 2);
	assert_memory_equal(out.suspects, in.suspects, sizeof in.suspects);
	assert_memory_equal(&out.full_hash, &in.full_hash, sizeof in.full_hash);
	assert_int_equal(out.n_candidates, in.n_candidates);
	assert_memory_equal(out.candidates, in.candidates, sizeof in.candidates);
	assert_int_equal(out.reduce_us, in.reduce_us);
	assert_true(out.lease_first == in.lease_first && out.lease_count == 320);
	assert_true(out.n_verdicts == 2 && out.verdicts[0].chunk == NET_MAX_CHUNKS - 1 && out.verdicts[0].found.b[0] == 33);
	assert_true(out.verdicts[1].verdict == AUDIT_WITHHELD && out.verdicts[1].member == 7);
	assert_true(out.n_scores == 3 && out.scores[0].member == 5 && out.scores[0].gain == 0.25f && out.appeals);
	assert_true(out.scores[0].own == -0.5f && out.scores[1].verdict == SCORE_WITHHELD && out.scores[1].round == 1);
	assert_true(out.scores[2].verdict == SCORE_REPEATED && out.scores[2].gain == 0.125f && out.scores[2].own == 0.5f);
	assert_true(out.n_receipts == 2 && out.receipts[0].member == 4 && out.receipts[0].band == 1);
	assert_true(out.receipts[1].member == 4000000000u && out.receipts[1].band == UINT8_MAX);
	assert_true(commitment_equal(&out.commitment, &in.commitment));
	assert_memory_equal(out.signatures, in.signatures, sizeof in.signatures);
	assert_true(out.commitment.inner_end.b[0] == 34 && out.commitment.inner_begin.b[0] == 35);
	assert_true(out.text_mirror_bytes == 21 && out.text_member_bytes == 22 && out.text_coordinator_bytes == 23);
	assert_int_equal(out.text_stall_us, 24);
	assert_memory_equal(&out.own_text, &in.own_text, sizeof in.own_text);
	assert_true(out.loss == in.loss && out.stands_out == 6);
	struct rv_writer w = rv_writer_of(buffer, sizeof buffer);
	report_encode(&in, CONTROL_VERSION, &w);
	size_t n = rv_writer_len(&w);
	ASSERT_SAME_BYTES(report_encode, &out, n);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(report_decode(buffer, cut, &out, NULL), RV_E_INVALID);
	assert_int_equal(report_decode(buffer, n + 1, &out, NULL), RV_E_INVALID);
}

static size_t report_bytes(const struct report *in, uint32_t version) {
	struct rv_writer w = rv_writer_of(buffer, NET_MAX_REPORT_BYTES);
	report_encode(in, version, &w);
	assert_false(w.failed);
	return rv_writer_len(&w);
}

static void test_a_report_of_another_version_is_refused(void **state) {
	(void)state;
	const struct report in = a_report();
	struct report out;
	size_t n = report_bytes(&in, CONTROL_VERSION);
	assert_int_equal(report_decode(buffer, n, &out, NULL), RV_OK);
	assert_int_equal(out.version, CONTROL_VERSION);
	const uint8_t spoken_by_nobody[] = {0, CONTROL_VERSION + 1};
	for (size_t i = 0; i < sizeof spoken_by_nobody; i++) {
		struct rv_errtext et = {0};
		buffer[4] = spoken_by_nobody[i];
		assert_int_equal(report_decode(buffer, n, &out, &et), RV_E_PROTOCOL);
		assert_non_null(strstr(et.text, "speaks 1 to 1: update the older one"));
	}
}

/* The encoder takes no such list: its count is written into the bytes, of a report whose list is
 * empty. */
static void test_more_is_measured_than_there_can_be_members(void **state) {
	(void)state;
	enum { MEAN2_BYTES = 4, COUNT_BYTES = 2, RELAY_BYTES = 1, REACH_BYTES = 1, OFFER_BYTES = 2 };
	enum { CANDIDATE_BYTES = 1 + 1 + 2 + 6, PROBED_BYTES = 1 + 8 + 1 + 2 };
	enum {
		BEHIND = CANDIDATE_BYTES + PROBED_BYTES + LEASE_BYTES + COMMITMENT_BYTES + TEXT_BYTES + VERDICTS_BYTES +
				 HELDOUT_BYTES + INNER_BYTES + RECEIPTS_BYTES
	};
	struct report in = a_report(), out;
	struct rv_errtext et = {0};
	in.n_measured = 0;
	in.n_candidates = 1;
	size_t n = report_bytes(&in, CONTROL_VERSION);
	buffer[n - BEHIND - OFFER_BYTES - REACH_BYTES - RELAY_BYTES - MEAN2_BYTES - COUNT_BYTES] = NET_MAX_ROW + 1;
	assert_int_equal(report_decode(buffer, n + (NET_MAX_ROW + 1) * 12, &out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "n_measured = 65, at most 64"));
}

#define REPORT_REFUSED(change, text)                                                                                   \
	do {                                                                                                               \
		struct report m = a_report();                                                                                  \
		change;                                                                                                        \
		report_refused(m, text);                                                                                       \
	} while (0)

static void test_report_rules(void **state) {
	(void)state;
	REPORT_REFUSED(m.phase = 0, "phase = 0");
	REPORT_REFUSED(m.phase = WORKER_LEAVING + 1, "phase = 7");
	REPORT_REFUSED(m.attempt = 0, "attempt = 0");
	REPORT_REFUSED(m.phase = WORKER_READY, "attempt = 4");
	REPORT_REFUSED(m.n_chunks = 0, "n_chunks");
	REPORT_REFUSED(m.n_chunks = NET_MAX_CHUNKS + 1, "n_chunks");
	REPORT_REFUSED(m.loss = NAN, "finite");
	REPORT_REFUSED(m.tokens_per_s = INFINITY, "finite");
	REPORT_REFUSED(m.heldout_loss = -INFINITY, "finite");
	REPORT_REFUSED(m.storage = REPORT_STORAGE_FULL, "storage = 8");
	REPORT_REFUSED(m.storage = 16, "storage = 16");
	REPORT_REFUSED(m.relay = NET_MAX_RELAYS + 1, "relay = 9");
	REPORT_REFUSED(m.paths[0].path = PATH_NONE, "path to 4000000000 = 0");
	REPORT_REFUSED(m.paths[0].path = PATH_KINDS, "path to 4000000000 = 6");
	REPORT_REFUSED(m.paths[0].path = PATH_RELAYED | PATH_LAN, "path to 4000000000 = 21");
	REPORT_REFUSED(m.paths[0].path = PATH_APART | PATH_IPV6, "path to 4000000000 = 33");
	REPORT_REFUSED(m.paths[0].path = 0x40 | PATH_DIALED, "path to 4000000000 = 66");
	REPORT_REFUSED((m.n_paths = 2, m.paths[1] = m.paths[0]), "member 4000000000 after 4000000000: must ascend");
	REPORT_REFUSED(m.paths[0].member = NET_NO_MEMBER, "the number of none");
	REPORT_REFUSED(m.suspects[1] = 7, "suspects[1] = 7: must ascend");
	REPORT_REFUSED(m.suspects[1] = NET_MAX_ROSTER, "suspects[1] = 1024");
	REPORT_REFUSED(m.receipts[1].band = 0, "the band of 4000000000 is 0");
	REPORT_REFUSED(m.receipts[1].member = 4, "receipts");
	REPORT_REFUSED(m.receipts[1].member = NET_NO_MEMBER, "the number of none");
	REPORT_REFUSED(m.reach = REACH_KINDS, "reach = 5");
	REPORT_REFUSED(m.probed.list[0].results[1] = PROBE_RESULTS, "probed: result 6");
	REPORT_REFUSED((m.phase = WORKER_READY, m.attempt = 0, m.stands_out = 0), "without a vote");
	REPORT_REFUSED((m.phase = WORKER_REDUCING, m.n_measured = 0), "without a vote");
	REPORT_REFUSED(m.stands_out = m.n_chunks + 1, "stands out that there is not");
	REPORT_REFUSED(m.lease_count = 0, "lease_first = 1099511627776, lease_count = 0 in phase 5");
	REPORT_REFUSED((m.phase = WORKER_TRAINING, m.attempt = 0), "lease_count = 320 in phase 2");
	REPORT_REFUSED((m.phase = WORKER_TRAINING, m.attempt = 0, m.lease_first = m.lease_count = 0),
				   "a commitment to a contribution in phase 2");
	REPORT_REFUSED(m.commitment.roots[0].codec = 4, "roots[0] is for codec 4");
	REPORT_REFUSED(m.commitment.roots[1].codec = 0, "roots[1] is for codec 0");
	REPORT_REFUSED((m.commitment.n = 3, m.commitment.roots[2].codec = 3), "roots[2] is for codec 3");
	REPORT_REFUSED(m.verdicts[0].verdict = 0, "verdicts[0]: an unknown verdict");
	REPORT_REFUSED(m.verdicts[1].verdict = AUDIT_VERDICTS, "verdicts[1]: an unknown verdict");
	REPORT_REFUSED(m.verdicts[0].chunk = NET_MAX_CHUNKS, "verdicts[0]: a chunk past the limit");
	REPORT_REFUSED(m.verdicts[0].member = 3, "verdicts[0]: a member is named, or missing");
	REPORT_REFUSED(m.verdicts[1].member = NET_NO_MEMBER, "verdicts[1]: a member is named, or missing");
	REPORT_REFUSED(m.verdicts[0].found = (struct rv_hash){{0}}, "verdicts[0]: a hash is there, or missing");
	REPORT_REFUSED(m.verdicts[1].found.b[9] = 1, "verdicts[1]: a hash is there, or missing");
	REPORT_REFUSED(m.scores[0].verdict = 0, "scores[0]: an unknown verdict");
	REPORT_REFUSED(m.scores[1].verdict = SCORE_VERDICTS, "scores[1]: an unknown verdict");
	REPORT_REFUSED(m.scores[0].member = NET_NO_MEMBER, "scores[0]: no member");
	REPORT_REFUSED(m.scores[0].own = NAN, "scores[0]: a gain is not finite");
	REPORT_REFUSED(m.scores[1].gain = 1, "scores[1]: gains that were not measured");
	REPORT_REFUSED(m.scores[2].own = -1, "scores[2]: a negative distance");
	REPORT_REFUSED(m.commitment.inner_end = (struct rv_hash){{0}}, "an inner state without a contribution, or");
	REPORT_REFUSED(m.commitment.n = 0, "an inner state without a contribution, or");
	REPORT_REFUSED(m.lease_first = LEASE_MAX_POSITION - 319, "past 2^62");
	REPORT_REFUSED(m.mean2 = -1, "mean2");
	REPORT_REFUSED(m.mean2 = NAN, "mean2");
	REPORT_REFUSED(m.measured[1].norm2 = -1, "norm");
	REPORT_REFUSED(m.measured[0].norm2 = INFINITY, "norm");
	REPORT_REFUSED(m.measured[1].dot = NAN, "dot");
	REPORT_REFUSED(m.measured[0].clipped = m.n_chunks + 1, "clipped");
}

static void test_report_paths(void **state) {
	(void)state;
	struct report in = a_report(), out;
	in.n_paths = 0;
	report_add_path(&in, 0, PATH_DIALED | PATH_LAN | PATH_IPV6);
	report_add_path(&in, 1, PATH_NONE);
	report_add_path(&in, 64, PATH_PUNCHED | PATH_IPV6);
	report_add_path(&in, NET_NO_MEMBER - 1, PATH_RELAYED);
	assert_int_equal(in.n_paths, 3);
	assert_int_equal(report_through_bytes(&in, &out, NULL), RV_OK);
	assert_int_equal(report_path(&out, 0), PATH_DIALED | PATH_LAN | PATH_IPV6);
	assert_int_equal(report_path(&out, 1), PATH_NONE);
	assert_int_equal(report_path(&out, 64), PATH_PUNCHED | PATH_IPV6);
	assert_int_equal(report_path(&out, 65), PATH_NONE);
	assert_int_equal(report_path(&out, NET_NO_MEMBER - 1), PATH_RELAYED);
	assert_true(path_is_open(PATH_DIALED | PATH_LAN) && !path_is_open(PATH_APART));
	assert_int_equal(path_kind_of(report_path(&out, 0)), PATH_DIALED);
	assert_string_equal(path_name(report_path(&out, 64)), "punched");
	assert_string_equal(path_name(0x40 | PATH_DIALED), "unknown");
}

/* Paths, suspects, measurements and candidates, as many and as long as there can be. */
static void test_the_largest_report_fits(void **state) {
	(void)state;
	struct report in = a_report(), out;
	in.n_paths = 0;
	for (uint32_t i = 0; i < NET_MAX_PEERS + 1; i++)
		report_add_path(&in, i, PATH_ACCEPTED);
	assert_int_equal(in.n_paths, NET_MAX_PEERS);
	in.n_suspects = in.n_measured = NET_MAX_ROW;
	for (uint16_t i = 0; i < NET_MAX_ROW; i++) {
		in.suspects[i] = i;
		in.measured[i] = (struct report_measured){1, 1, 1};
	}
	for (int i = 1; i < NET_MAX_CANDIDATES; i++) {
		in.candidates[i].kind = CANDIDATE_REFLECTED;
		in.candidates[i].relay = 1;
		strcpy(in.candidates[i].addr, "[2001:db80:1111:2222:3333:4444:198.151.100.107]:65535");
	}
	in.probed.n = PROBES_AT_ONCE;
	for (int i = 0; i < PROBES_AT_ONCE; i++)
		in.probed.list[i] =
			(struct probed){.id = 1, .n = PROBE_MAX_ADDRS, .results = {PROBE_OPEN, PROBE_OPEN, PROBE_OPEN, PROBE_OPEN}};
	in.n_scores = NET_MAX_SCORES;
	for (int i = 3; i < NET_MAX_SCORES; i++)
		in.scores[i] = in.scores[0];
	in.n_verdicts = NET_MAX_AUDITS;
	for (int i = 2; i < NET_MAX_AUDITS; i++)
		in.verdicts[i] = in.verdicts[0];
	in.n_receipts = NET_MAX_ROW;
	for (uint32_t i = 0; i < NET_MAX_ROW; i++)
		in.receipts[i] = (struct report_receipt){.member = i, .band = UINT8_MAX};
	assert_int_equal(report_through_bytes(&in, &out, NULL), RV_OK);
	assert_int_equal(out.paths[NET_MAX_PEERS - 1].member, NET_MAX_PEERS - 1);
}

static void test_bands_of_rates(void **state) {
	(void)state;
	assert_int_equal(receipt_band(0), 1);
	assert_int_equal(receipt_band(7), 1);
	assert_int_equal(receipt_band(UINT64_MAX), UINT8_MAX);
	for (int band = 1; band < UINT8_MAX; band++) {
		assert_int_equal(receipt_band(receipt_rate((uint8_t)band)), band);
		assert_true(receipt_rate((uint8_t)band) < receipt_rate((uint8_t)(band + 1)));
	}
	for (uint64_t rate = 16; rate < UINT64_C(1) << 34; rate += rate / 3) /* 1/16 off at most */
		assert_in_range(16 * receipt_rate(receipt_band(rate)), 15 * rate, 17 * rate);
}

static void test_report_candidates(void **state) {
	static const char *const bad[] = {"",        "host",     "host:",      "host:0",     "host:65536", "host:123456",
									  "host:+1", "ho st:80", "http://h:1", "a\"b:80",    "[::1]",      "[]:80",
									  "::1:80",  "h:80x",    "[h/]:80",    "user@ho:80", "<b>:80"};
	static const char *const no_number[] = {":1", "localhost:80", "a-b.c_d.example:443", "[fe80::1%2]:80",
											"10.0.0.1:0"};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		REPORT_REFUSED(strcpy(m.candidates[0].addr, bad[i]), "candidates[0]");
		REPORT_REFUSED(strcpy(m.candidates[3].addr, bad[i]), "candidates[3]");
	}
	for (size_t i = 0; i < sizeof no_number / sizeof no_number[0]; i++)
		REPORT_REFUSED(strcpy(m.candidates[2].addr, no_number[i]), "candidates[2]");
	REPORT_REFUSED(strcpy(m.candidates[0].addr, "10.0.0.1:80"), "the coordinator fills in the host");
	REPORT_REFUSED(m.n_candidates = 0, "no candidate");
	REPORT_REFUSED(m.candidates[0].kind = CANDIDATE_PRIVATE, "candidates[0].kind = 2");
	REPORT_REFUSED(m.candidates[2].kind = CANDIDATE_SEEN, "candidates[2].kind = 0");
	REPORT_REFUSED(m.candidates[3].kind = CANDIDATE_KINDS, "candidates[3].kind = 4");
	REPORT_REFUSED(m.candidates[1].relay = 0, "candidates[1].relay = 0");
	REPORT_REFUSED(m.candidates[1].relay = NET_MAX_RELAYS + 1, "candidates[1].relay = 9");
}

static void test_more_candidates_than_fit_are_refused(void **state) {
	(void)state;
	struct report in = a_report(), out;
	struct rv_errtext et = {0};
	in.n_candidates = 1;
	in.probed.n = 0;
	struct rv_writer w = rv_writer_of(buffer, sizeof buffer);
	report_encode(&in, CONTROL_VERSION, &w);
	size_t n = rv_writer_len(&w), candidate_bytes = 1 + 1 + 2 + strlen(in.candidates[0].addr);
	size_t count_at = n - candidate_bytes - 1 - LEASE_BYTES - COMMITMENT_BYTES - TEXT_BYTES - VERDICTS_BYTES -
					  HELDOUT_BYTES - INNER_BYTES - RECEIPTS_BYTES;
	assert_int_equal(buffer[count_at], 1);
	buffer[count_at] = NET_MAX_CANDIDATES + 1;
	assert_int_equal(report_decode(buffer, n, &out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "5 candidates, at most 4"));
}

/* ---- documents ---- */

static struct document doc_in, doc_out;

static void add_audits(struct document *d) {
	static const struct score_order score = {.round = 1,
											 .member = 9,
											 .n_chunks = 10,
											 .share = 20000,
											 .codec = 3,
											 .part = 2,
											 .root = {{43}},
											 .repeat = true,
											 .inner_begin = {{44}},
											 .inner_end = {{45}},
											 .n_pieces = 2,
											 .pieces = {{77, 3}, {LEASE_MAX_POSITION - 5, 5}}};
	d->audit_promise = (struct rv_hash){{41}};
	d->audit_secret = (struct rv_hash){{42}};
	d->n_audits = 1;
	d->audits[0] = (struct audit_order){.round = 1, .attempt = 2, .chunk = NET_MAX_CHUNKS - 1};
	d->n_scores = 1;
	d->scores[0] = score;
}

static struct document *a_document(void) {
	struct document *d = &doc_in;
	*d = (struct document){
		.seq = 9,
		.term = 2,
		.term_round = 3,
		.phase = RUN_REDUCE,
		.round = 7,
		.attempt = 2,
		.former_attempt = 3,
		.deadline_ms = 61000,
		.slow_deadline_ms = 4100,
		.final_round = 30,
		.run_hash = hash_of_int(1),
		.chain = hash_of_int(2),
		.snapshot_round = 4,
		.snapshot_hash = hash_of_int(3),
		.snapshot_chain = hash_of_int(4),
		.n_log = 3,
		.log = {hash_of_int(5), hash_of_int(6), hash_of_int(7)},
		.n_older = 3,
		.older_chain = hash_of_int(8),
		.older = {hash_of_int(9), hash_of_int(10), hash_of_int(11)},
		.n_kept_rounds = 2,
		.n_kept_snapshots = 2,
		.kept_snapshots = {{2, hash_of_int(12)}, {3, hash_of_int(13)}},
		.banned = {2, {1, 4000000000u}},
		.n_members = 3,
		.n_chunks = 10,
		.n_ranges = 3,
		.ranges = {{0, 4, 2}, {4, 1, 0}, {5, 5, 2}},
		.n_syncing = 2,
		.syncing = {{.member = 3, .n_candidates = 1, .candidates = {{.addr = "[::1]:1"}}},
					{.member = 3000000000u,
					 .n_candidates = 2,
					 .candidates = {{.addr = "127.0.0.1:4001"}, {.kind = CANDIDATE_GIVEN, .addr = "[::2]:9"}},
					 .relay = 2}},
		.lease_first = 700,
		.n_leases = 3,
		.leases = {{1000, 64}, {LEASE_MAX_POSITION - UINT32_MAX, UINT32_MAX}, {936, 64}},
		.n_relays = 2,
		.relays = {{.key = {1}, .addr = "relay.example:7435"}, {.key = {2}, .addr = "[::1]:7435"}}};
	for (uint32_t i = 0; i < 3; i++) {
		d->members[i] = (struct member_ref){.member = 5 * i,
											.weight = i + 1,
											.boot = 100 + i,
											.n_candidates = 1,
											.candidates[0].addr = "127.0.0.1:4000"};
		memset(d->members[i].key, (int)i + 1, NET_KEY_BYTES);
		d->members[i].relay = (uint8_t)i;
		d->members[i].contribution = (struct seal){hash_of_int((int)(200 + i)), {(uint8_t)(50 + i)}};
	}
	d->members[1].codec = 3;
	d->members[2].part = 5;
	add_audits(d);
	return d;
}

static size_t encode_document(const struct document *d) {
	struct rv_writer w = rv_writer_of(buffer, sizeof buffer);
	document_encode(d, CONTROL_VERSION, &w);
	assert_false(w.failed);
	return rv_writer_len(&w);
}

static void test_document(void **state) {
	(void)state;
	size_t n = encode_document(a_document());
	assert_int_equal(document_decode(buffer, n, &doc_out, NULL), RV_OK);
	ASSERT_SAME_BYTES(document_encode, &doc_out, n);
	assert_int_equal(doc_out.members[2].member, 10);
	assert_int_equal(doc_out.former_attempt, 3);
	assert_int_equal(doc_out.n_syncing, 2);
	assert_int_equal(doc_out.syncing[1].member, 3000000000u);
	assert_true(candidates_equal(doc_out.syncing[1].candidates, doc_out.syncing[1].n_candidates,
								 doc_in.syncing[1].candidates, doc_in.syncing[1].n_candidates));
	assert_string_equal(candidates_seen(doc_out.syncing[1].candidates, 2), "127.0.0.1:4001");
	assert_int_equal(doc_out.syncing[1].relay, 2);
	assert_int_equal(doc_out.members[1].relay, 1);
	assert_true(doc_out.members[1].codec == 3 && doc_out.members[2].part == 5 && doc_out.slow_deadline_ms == 4100);
	assert_true(memcmp(&doc_out.members[2].contribution, &doc_in.members[2].contribution, SEAL_BYTES) == 0);
	assert_int_equal(doc_out.n_relays, 2);
	assert_string_equal(doc_out.relays[0].addr, "relay.example:7435");
	assert_int_equal(doc_out.relays[1].key[0], 2);
	assert_int_equal(doc_out.ranges[2].owner, 2);
	assert_true(doc_out.n_audits == 1 && doc_out.audits[0].round == 1 && doc_out.audits[0].attempt == 2 &&
				doc_out.audits[0].chunk == NET_MAX_CHUNKS - 1);
	assert_true(doc_out.n_scores == 1 && doc_out.scores[0].member == 9 && doc_out.scores[0].share == 20000 &&
				doc_out.scores[0].root.b[0] == 43 && doc_out.scores[0].n_pieces == 2);
	assert_true(doc_out.scores[0].repeat && doc_out.scores[0].inner_begin.b[0] == 44 &&
				doc_out.scores[0].inner_end.b[0] == 45);
	assert_true(doc_out.scores[0].pieces[0].begin == 77 && doc_out.scores[0].pieces[1].count == 5);
	assert_true(doc_out.audit_promise.b[0] == 41 && doc_out.audit_secret.b[0] == 42);
	assert_true(doc_out.n_leases == 3 && doc_out.lease_first == 700);
	assert_true(doc_out.leases[1].begin == LEASE_MAX_POSITION - UINT32_MAX && doc_out.leases[1].count == UINT32_MAX);
	assert_true(banned_equal(&doc_out.banned, &(struct banned){2, {1, 4000000000u}}));
	assert_true(doc_out.n_rows == 1 && doc_out.n_roster == 3 && doc_out.members[2].place == 2);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(document_decode(buffer, cut, &doc_out, NULL), RV_E_INVALID);
	assert_int_equal(document_decode(buffer, n + 1, &doc_out, NULL), RV_E_INVALID);
	assert_int_equal(document_find(&doc_in, 10), 2);
	assert_int_equal(document_find(&doc_in, 9), -1);
}

static void test_a_document_of_another_version_is_refused(void **state) {
	(void)state;
	size_t n = encode_document(a_document());
	assert_int_equal(document_decode(buffer, n, &doc_out, NULL), RV_OK);
	assert_int_equal(doc_out.version, CONTROL_VERSION);
	buffer[4] = CONTROL_VERSION + 1;
	assert_int_equal(document_decode(buffer, n, &doc_out, NULL), RV_E_PROTOCOL);
}

static void test_document_digests(void **state) {
	(void)state;
	const struct document *d = a_document();
	assert_int_equal(document_reaches_to(d), 1);
	assert_null(document_digest(d, 0));
	assert_ptr_equal(document_digest(d, 1), &d->older[0]);
	assert_ptr_equal(document_digest(d, 3), &d->older[2]);
	assert_ptr_equal(document_digest(d, 4), &d->log[0]);
	assert_ptr_equal(document_digest(d, 6), &d->log[2]);
	assert_null(document_digest(d, 7));
}

static void test_the_largest_document_fits(void **state) {
	(void)state;
	struct document *d = a_document();
	d->snapshot_round = 7 - 7;
	d->round = NET_MAX_LOG_DIGESTS;
	d->final_round = 1000;
	d->n_log = NET_MAX_LOG_DIGESTS;
	d->n_older = d->n_kept_rounds = d->n_kept_snapshots = 0;
	d->n_members = NET_MAX_ROW;
	d->n_syncing = 0; /* all are in members */
	d->n_relays = NET_MAX_RELAYS;
	for (int i = 0; i < NET_MAX_RELAYS; i++) {
		memset(d->relays[i].addr, 'a', NET_ADDR_BYTES - 1);
		memcpy(d->relays[i].addr + NET_ADDR_BYTES - 7, ":65535", 7);
	}
	for (uint32_t i = 0; i < NET_MAX_ROW; i++) {
		d->members[i] = (struct member_ref){.member = i, .weight = 1, .n_candidates = NET_MAX_CANDIDATES};
		for (int k = 0; k < NET_MAX_CANDIDATES; k++)
			strcpy(d->members[i].candidates[k].addr, "[2001:db80:1111:2222:3333:4444:198.151.100.107]:65535");
	}
	d->n_chunks = NET_MAX_RANGES;
	d->n_ranges = NET_MAX_RANGES;
	for (uint32_t i = 0; i < NET_MAX_RANGES; i++)
		d->ranges[i] = (struct owner_range){i, 1, (uint16_t)(i % NET_MAX_ROW)};
	d->n_audits = NET_MAX_AUDITS;
	for (int i = 0; i < NET_MAX_AUDITS; i++)
		d->audits[i] = d->audits[0];
	d->n_scores = NET_MAX_SCORES;
	d->scores[0].n_pieces = SCORE_PIECES;
	for (int i = 0; i < SCORE_PIECES; i++)
		d->scores[0].pieces[i] = (struct lease_piece){7, 1};
	for (int i = 1; i < NET_MAX_SCORES; i++)
		d->scores[i] = d->scores[0];
	d->n_leases = NET_MAX_LEASES;
	for (uint32_t i = 0; i < NET_MAX_LEASES; i++)
		d->leases[i] = (struct lease_piece){2 * i, 1};
	size_t n = encode_document(d);
	assert_int_equal(document_decode(buffer, n, &doc_out, NULL), RV_OK);
	ASSERT_SAME_BYTES(document_encode, &doc_out, n);
}

static void document_refused(const struct document *d, const char *text) {
	struct rv_errtext et = {0};
	size_t n = encode_document(d);
	assert_int_equal(document_decode(buffer, n, &doc_out, &et), RV_E_INVALID);
	if (strstr(et.text, text) == NULL)
		fail_msg("'%s' is not in '%s'", text, et.text);
}

#define DOCUMENT_REFUSED(change, text)                                                                                 \
	do {                                                                                                               \
		struct document *d = a_document();                                                                             \
		change;                                                                                                        \
		document_refused(d, text);                                                                                     \
	} while (0)

static void test_document_rules(void **state) {
	(void)state;
	DOCUMENT_REFUSED(d->phase = 0, "phase = 0");
	DOCUMENT_REFUSED(d->phase = RUN_DONE + 1, "phase = 5");
	DOCUMENT_REFUSED(d->attempt = 0, "attempt = 0");
	DOCUMENT_REFUSED(d->phase = RUN_OPEN, "attempt = 2");
	DOCUMENT_REFUSED(d->deadline_ms = NET_MAX_DEADLINE_MS + 1, "deadline_ms = 604800001 in phase 3");
	DOCUMENT_REFUSED((d->phase = RUN_OPEN, d->attempt = 0), "deadline_ms = 61000 in phase 2");
	DOCUMENT_REFUSED(d->slow_deadline_ms = NET_MAX_DEADLINE_MS + 1, "slow_deadline_ms = 604800001 in phase 3");
	DOCUMENT_REFUSED((d->phase = RUN_OPEN, d->attempt = d->deadline_ms = 0), "slow_deadline_ms = 4100 in phase 2");
	DOCUMENT_REFUSED(d->members[1].part = 1, "members[1].part = 1, must be 0 or 2..16");
	DOCUMENT_REFUSED(d->members[1].part = NET_MAX_PART + 1, "members[1].part = 17, must be 0 or 2..16");
	DOCUMENT_REFUSED(d->members[0].part = d->members[1].part = d->members[2].part = 2, "0 of 3 members contribute");
	DOCUMENT_REFUSED(d->final_round = 7, "round 7 of 7");
	DOCUMENT_REFUSED(d->final_round = 3, "round 7 of 3");
	DOCUMENT_REFUSED((d->phase = RUN_DONE, d->attempt = d->deadline_ms = d->slow_deadline_ms = 0), "round 7 of 30");
	DOCUMENT_REFUSED(d->term_round = 8, "term 2 since round 8, in round 7");
	DOCUMENT_REFUSED(d->term = 0, "term 0 since round 3");
	DOCUMENT_REFUSED(d->snapshot_round = 8, "n_log");
	DOCUMENT_REFUSED(d->snapshot_round = 3, "n_log");
	DOCUMENT_REFUSED(d->n_older = 5, "n_older = 5");
	DOCUMENT_REFUSED(d->n_kept_rounds = 4, "n_kept_rounds = 4");
	DOCUMENT_REFUSED(d->kept_snapshots[0].round = 1, "kept_snapshots[0]");
	DOCUMENT_REFUSED(d->kept_snapshots[1].round = 2, "kept_snapshots[1]");
	DOCUMENT_REFUSED(d->kept_snapshots[1].round = 4, "kept_snapshots[1]");
	DOCUMENT_REFUSED((d->n_members = 0, d->n_ranges = 0), "without members");
	DOCUMENT_REFUSED(d->members[1].member = 0, "members: member 0 after 0");
	DOCUMENT_REFUSED(d->members[2].member = 5, "members: member 5 after 5");
	DOCUMENT_REFUSED(d->members[2].member = NET_NO_MEMBER, "members: member 4294967295 is the number of none");
	DOCUMENT_REFUSED(d->banned.members[1] = 1, "banned: member 1 after 1");
	DOCUMENT_REFUSED(d->banned.members[1] = NET_NO_MEMBER, "banned: member 4294967295");
	DOCUMENT_REFUSED(d->members[0].weight = 0, "weight = 0");
	DOCUMENT_REFUSED(d->members[2].weight = NET_MAX_WEIGHT_SUM, "weights add up");
	DOCUMENT_REFUSED(strcpy(d->members[0].candidates[0].addr, ":4000"), "members[0]: candidates[0]");
	DOCUMENT_REFUSED(strcpy(d->members[0].candidates[0].addr, "localhost:4000"), "the host must be a number");
	DOCUMENT_REFUSED(d->members[2].n_candidates = 0, "members[2]: no candidate");
	DOCUMENT_REFUSED(d->syncing[1].candidates[1].kind = CANDIDATE_KINDS, "syncing[1]: candidates[1].kind = 4");
	DOCUMENT_REFUSED(d->syncing[1].member = 3, "syncing: member 3 after 3: must ascend");
	DOCUMENT_REFUSED(d->syncing[1].member = NET_NO_MEMBER, "syncing: member 4294967295");
	DOCUMENT_REFUSED(d->syncing[0].member = 5, "syncing[0] = 5 is in members");
	DOCUMENT_REFUSED(strcpy(d->syncing[0].candidates[0].addr, "nowhere"), "syncing[0]: candidates[0]");
	DOCUMENT_REFUSED(strcpy(d->relays[1].addr, ":7435"), "relays[1].addr");
	DOCUMENT_REFUSED(d->n_relays = 1, "members[2].relay = 2 of 1");
	DOCUMENT_REFUSED(d->syncing[0].relay = 3, "syncing[0].relay = 3 of 2");
}

/* Of what is leased, audited and scored, and of the ownership of chunks. */
static void test_document_rules_of_lists(void **state) {
	(void)state;
	DOCUMENT_REFUSED(d->n_leases = 0, "lease_first = 700 of 0 leases");
	DOCUMENT_REFUSED(d->audits[0].round = d->round, "audits[0] of round");
	DOCUMENT_REFUSED(d->audits[0].attempt = 0, "audits[0] of round 1, attempt 0");
	DOCUMENT_REFUSED(d->audits[0].chunk = NET_MAX_CHUNKS, "audits[0] of round 1, attempt 2, chunk 1048576");
	DOCUMENT_REFUSED(d->scores[0].round = d->round, "scores[0]: a round that is not committed");
	DOCUMENT_REFUSED(d->scores[0].member = NET_NO_MEMBER, "scores[0]: no member");
	DOCUMENT_REFUSED(d->scores[0].part = NET_MAX_PART + 1, "scores[0]: no member, or a part");
	DOCUMENT_REFUSED(d->scores[0].n_chunks = 0, "scores[0]: a number of chunks");
	DOCUMENT_REFUSED(d->scores[0].share = 0, "scores[0]: a share");
	DOCUMENT_REFUSED(d->scores[0].share = SCORE_SHARE_ONE + 1, "scores[0]: a share");
	DOCUMENT_REFUSED(d->scores[0].n_pieces = 0, "scores[0]: no sequences");
	DOCUMENT_REFUSED(d->scores[0].repeat = false, "scores[0]: steps to repeat without");
	DOCUMENT_REFUSED(d->scores[0].inner_end = (struct rv_hash){{0}}, "scores[0]: steps to repeat without");
	DOCUMENT_REFUSED(d->scores[0].pieces[1].count = 6, "scores[0]: a piece");
	DOCUMENT_REFUSED(d->leases[1].count = 0, "leases[1]");
	DOCUMENT_REFUSED(d->leases[1].begin++, "leases[1] = 4611686014132420610+4294967295, number 764: empty, or past");
	DOCUMENT_REFUSED(d->lease_first = LEASE_MAX_POSITION - 100, "leases[1]");
	DOCUMENT_REFUSED(d->leases[2].begin++, "leases[2] = 937+64 has sequences of leases[0]");
	DOCUMENT_REFUSED(d->n_chunks = 0, "n_chunks = 0");
	DOCUMENT_REFUSED(d->n_chunks = NET_MAX_CHUNKS + 1, "n_chunks");
	DOCUMENT_REFUSED(d->n_chunks = 11, "ranges end at 10 of 11");
	DOCUMENT_REFUSED(d->n_chunks = 9, "ranges[2]");
	DOCUMENT_REFUSED(d->ranges[1].first = 5, "ranges[1]");
	DOCUMENT_REFUSED(d->ranges[1].count = 0, "ranges[1]");
	DOCUMENT_REFUSED(d->ranges[2].count = UINT32_MAX, "ranges[2]");
	DOCUMENT_REFUSED(d->ranges[0].owner = 3, "owner = 3");
}

static void test_an_open_document_has_no_ownership_map(void **state) {
	(void)state;
	struct document *d = a_document();
	d->slow_deadline_ms = d->members[1].codec = d->members[2].part = 0;
	d->phase = RUN_OPEN;
	d->attempt = d->deadline_ms = 0;
	for (int i = 0; i < 3; i++)
		d->members[i].weight = 0;
	size_t n = encode_document(d);
	assert_int_equal(document_decode(buffer, n, &doc_out, NULL), RV_OK);
	assert_int_equal(doc_out.n_chunks, 0);
	assert_int_equal(doc_out.n_ranges, 0);
	d->members[1].weight = 1;
	document_refused(d, "weight = 1");
}

/* Counts are judged before anything is read behind them. */
static void test_counts_above_the_limits(void **state) {
	(void)state;
	struct document *d = a_document();
	(void)encode_document(d);
	size_t at_n_log = 8 + NET_RUN_ID_BYTES + 8 + 1 + 8 + 4 + 8 + 32 + 32 + 8 + 32 + 32;
	size_t n = encode_document(d);
	assert_int_equal(buffer[at_n_log], 3);
	buffer[at_n_log] = 255;
	struct rv_errtext et = {0};
	assert_int_equal(document_decode(buffer, n, &doc_out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "n_log = 255"));
	n = encode_document(d);
	size_t at_n_members = at_n_log + 2 + 3 * 32 + 2 + 2 * 4;
	assert_int_equal(buffer[at_n_members], 3);
	buffer[at_n_members + 1] = 255;
	assert_int_equal(document_decode(buffer, n, &doc_out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "n_members"));
}

/* Any bytes: a verdict, never a crash; and what is accepted encodes to the same bytes again. */
static void test_mutated_bytes(void **state) {
	(void)state;
	static uint8_t mutant[NET_MAX_DOCUMENT_BYTES], again[NET_MAX_DOCUMENT_BYTES];
	struct rv_rng rng = rv_rng_of(1, 1);
	size_t n = encode_document(a_document());
	int accepted = 0;
	for (int k = 0; k < 20000; k++) {
		memcpy(mutant, buffer, n);
		for (uint64_t flips = 1 + rv_rng_below(&rng, 3); flips > 0; flips--)
			mutant[rv_rng_below(&rng, n)] ^= (uint8_t)(1 + rv_rng_below(&rng, 255));
		if (document_decode(mutant, n, &doc_out, NULL) != RV_OK)
			continue;
		accepted++;
		struct rv_writer w = rv_writer_of(again, sizeof again);
		document_encode(&doc_out, CONTROL_VERSION, &w);
		assert_int_equal(rv_writer_len(&w), n);
		assert_memory_equal(mutant, again, n);
	}
	assert_true(accepted > 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join_request),
		cmocka_unit_test(test_a_request_of_another_version_is_readable_enough_to_refuse),
		cmocka_unit_test(test_common_version),
		cmocka_unit_test(test_join_reply),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_a_report_of_another_version_is_refused),
		cmocka_unit_test(test_report_rules),
		cmocka_unit_test(test_more_is_measured_than_there_can_be_members),
		cmocka_unit_test(test_report_paths),
		cmocka_unit_test(test_the_largest_report_fits),
		cmocka_unit_test(test_bands_of_rates),
		cmocka_unit_test(test_report_candidates),
		cmocka_unit_test(test_more_candidates_than_fit_are_refused),
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_a_document_of_another_version_is_refused),
		cmocka_unit_test(test_document_digests),
		cmocka_unit_test(test_the_largest_document_fits),
		cmocka_unit_test(test_document_rules),
		cmocka_unit_test(test_document_rules_of_lists),
		cmocka_unit_test(test_an_open_document_has_no_ownership_map),
		cmocka_unit_test(test_counts_above_the_limits),
		cmocka_unit_test(test_mutated_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
