/* test_net_relay_wire.c: frames and preambles of a relay: through bytes and back, cut anywhere, and
 * every bound. */
#include "net/relay/wire.h"

#include "tests/common/check.h"

#include <string.h>

static uint8_t buffer[2 * NET_MAX_RELAY_FRAME_BYTES];

static const struct relay_frame frames[] = {
	{.type = RELAY_HELLO,
	 .hello = {.version = RELAY_VERSION, .run_id = {1}, .member = 63, .ticket = {2}, .cert = {7, {8}, {9}}}},
	{.type = RELAY_PING, .number = UINT64_MAX},
	{.type = RELAY_CALL, .call = {.peer = 63, .way = WAY_FORWARD, .term = 2, .round = 3, .ticket = {4}}},
	{.type = RELAY_LEAVE},
	{.type = RELAY_SEEN, .seen = {.at = {"2001:db8::1", 65535}, .nonce = {5}, .second_port = 65534}},
	{.type = RELAY_PONG, .number = 6},
	{.type = RELAY_RING, .ring = {.peer = 7, .token = {8}}},
	{.type = RELAY_REFUSED,
	 .refused = {.peer = 9, .way = WAY_OPEN_V4, .reason = RELAY_REFUSE_DEPENDENT, .whose = 3, .wait_ms = 10}},
	{.type = RELAY_OPEN, .open = {.peer = 11, .delay_us = 3000000, .at = {"192.0.2.1", 1}}},
	{.type = RELAY_PROOF, .proof = {.at = {"192.0.2.2", 12}, .unix_s = UINT64_MAX, .signature = {13}}},
};
enum { FRAMES = sizeof frames / sizeof frames[0] };

static void every_frame_comes_back(void **state) {
	(void)state;
	for (int i = 0; i < FRAMES; i++) {
		struct relay_frame out;
		size_t used = 0, n = relay_frame_encode(&frames[i], buffer);
		assert_true(n <= NET_MAX_RELAY_FRAME_BYTES);
		assert_int_equal(relay_frame_decode(buffer, n + 1, &out, &used, NULL), RV_OK);
		assert_int_equal(used, n);
		assert_memory_equal(&out, &frames[i], sizeof out);
	}
}

static void a_frame_that_is_cut_waits_for_the_rest(void **state) {
	(void)state;
	for (int i = 0; i < FRAMES; i++) {
		struct relay_frame out;
		size_t used = 1, n = relay_frame_encode(&frames[i], buffer);
		for (size_t cut = 0; cut < n; cut++) {
			assert_int_equal(relay_frame_decode(buffer, cut, &out, &used, NULL), RV_OK);
			assert_int_equal(used, 0);
		}
	}
}

static void a_body_of_another_length_is_refused(void **state) {
	(void)state;
	for (int i = 0; i < FRAMES; i++) {
		for (int longer = -1; longer <= 1; longer += 2) {
			struct relay_frame out;
			size_t used, n = relay_frame_encode(&frames[i], buffer);
			if (n == RELAY_HEAD_BYTES && longer < 0)
				continue;
			buffer[1] = (uint8_t)(buffer[1] + longer);
			assert_int_equal(relay_frame_decode(buffer, n + 1, &out, &used, NULL), RV_E_INVALID);
			assert_int_equal(used, 0);
		}
	}
}

static void refused(struct relay_frame m, enum rv_err e, const char *text) {
	struct relay_frame out;
	struct rv_errtext et = {0};
	size_t used, n = relay_frame_encode(&m, buffer);
	assert_int_equal(relay_frame_decode(buffer, n, &out, &used, &et), e);
	if (strstr(et.text, text) == NULL)
		fail_msg("'%s' is not in '%s'", text, et.text);
}

#define REFUSED(i, change, e, text)                                                                                    \
	do {                                                                                                               \
		struct relay_frame m = frames[i];                                                                              \
		change;                                                                                                        \
		refused(m, e, text);                                                                                           \
	} while (0)

static void values_are_bounded(void **state) {
	(void)state;
	REFUSED(0, m.hello.version = 2, RV_E_PROTOCOL, "version 2");
	REFUSED(0, m.hello.member = NET_NO_MEMBER, RV_E_INVALID, "hello: the member's number");
	REFUSED(2, m.call.peer = NET_NO_MEMBER, RV_E_INVALID, "call: the peer's number");
	REFUSED(4, m.seen.at.port = 0, RV_E_INVALID, "seen");
	REFUSED(4, strcpy(m.seen.at.host, "localhost"), RV_E_INVALID, "seen");
	REFUSED(4, strcpy(m.seen.at.host, ""), RV_E_INVALID, "seen");
	REFUSED(2, m.call.way = 0, RV_E_INVALID, "call: the way");
	REFUSED(2, m.call.way = WAY_FORWARD + 1, RV_E_INVALID, "call: the way");
	REFUSED(6, m.ring.peer = NET_NO_MEMBER, RV_E_INVALID, "ring: the peer's number");
	REFUSED(7, m.refused.way = 0, RV_E_INVALID, "refused: the way");
	REFUSED(7, m.refused.way = WAY_FORWARD + 1, RV_E_INVALID, "refused: the way");
	REFUSED(7, m.refused.whose = 4, RV_E_INVALID, "refused: it is of neither");
	REFUSED(7, m.refused.reason = 0, RV_E_INVALID, "refused: the reason");
	REFUSED(7, m.refused.reason = RELAY_REFUSALS, RV_E_INVALID, "refused: the reason");
	REFUSED(7, m.refused.peer = NET_NO_MEMBER, RV_E_INVALID, "refused: the peer's number");
	REFUSED(8, m.open.peer = NET_NO_MEMBER, RV_E_INVALID, "open: the peer's number");
	REFUSED(8, m.open.delay_us = 3000001, RV_E_INVALID, "open: the delay");
	REFUSED(8, m.open.at.port = 0, RV_E_INVALID, "open: not a numeric");
	REFUSED(8, strcpy(m.open.at.host, "a.example"), RV_E_INVALID, "open: not a numeric");
	REFUSED(9, m.proof.at.port = 0, RV_E_INVALID, "proof: not a numeric");
	REFUSED(9, strcpy(m.proof.at.host, "a.example"), RV_E_INVALID, "proof: not a numeric");
}

static void heads_are_bounded(void **state) {
	(void)state;
	struct relay_frame out;
	size_t used;
	const uint8_t too_long[] = {RELAY_PING, 0xfe, 0x01}; /* 510: 513 with the head */
	assert_int_equal(relay_frame_decode(too_long, sizeof too_long, &out, &used, NULL), RV_E_INVALID);
	for (int type = 0; type < 256; type++) {
		const uint8_t head[] = {(uint8_t)type, 0, 0};
		bool known = type == RELAY_LEAVE;
		assert_int_equal(relay_frame_decode(head, sizeof head, &out, &used, NULL), known ? RV_OK : RV_E_INVALID);
	}
}

static void every_refusal_has_a_name(void **state) {
	(void)state;
	for (uint8_t a = RELAY_REFUSE_TICKET; a < RELAY_REFUSALS; a++)
		for (uint8_t b = 0; b < a; b++) {
			assert_string_not_equal(relay_refusal_name(a), relay_refusal_name(b));
			assert_string_not_equal(relay_refusal_text(a), relay_refusal_text(b));
		}
	assert_string_equal(relay_refusal_name(RELAY_REFUSALS), "unknown");
}

static void preambles(void **state) {
	(void)state;
	const struct relay_preamble in = {.kind = RELAY_DATA, .token = {1, 2, 3}};
	struct relay_preamble out;
	relay_preamble_encode(&in, buffer);
	assert_memory_equal(buffer, "RVLRELAY\2\1\2\3", 12);
	assert_int_equal(relay_preamble_decode(buffer, &out, NULL), RV_OK);
	assert_memory_equal(&in, &out, sizeof in);
	for (int at = 0; at < 9; at++) {
		relay_preamble_encode(&in, buffer);
		buffer[at] ^= 0x10;
		assert_int_equal(relay_preamble_decode(buffer, &out, NULL), RV_E_INVALID);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_comes_back),
		cmocka_unit_test(a_frame_that_is_cut_waits_for_the_rest),
		cmocka_unit_test(a_body_of_another_length_is_refused),
		cmocka_unit_test(values_are_bounded),
		cmocka_unit_test(heads_are_bounded),
		cmocka_unit_test(every_refusal_has_a_name),
		cmocka_unit_test(preambles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
