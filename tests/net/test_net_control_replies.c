/* test_net_control_replies.c: the small messages of the control plane: notices, pair tickets. */
#include <string.h>

#include "net/control/control.h"
#include "tests/common/check.h"

static uint8_t buffer[PAIR_REPLY_MAX_BYTES + 1];

/* ---- notices ---- */

static enum rv_err notice_through_bytes(const struct notice *in, struct notice *out, size_t *n) {
	struct rv_writer w = rv_writer_of(buffer, NOTICE_MAX_BYTES);
	notice_encode(in, &w);
	assert_false(w.failed);
	*n = rv_writer_len(&w);
	return notice_decode(buffer, *n, out, NULL);
}

static void test_notice(void **state) {
	(void)state;
	struct notice in = {.kind = NOTICE_APART, .left_out = true, .round = 1ull << 40, .until_round = 99, .n_others = 8};
	struct notice out;
	size_t n;
	for (uint32_t i = 0; i < NOTICE_MAX_OTHERS; i++)
		in.others[i] = NET_NO_MEMBER - 1 - i;
	assert_int_equal(notice_through_bytes(&in, &out, &n), RV_OK);
	assert_true(out.left_out && out.round == in.round && out.until_round == 99);
	assert_memory_equal(out.others, in.others, sizeof in.others);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(notice_decode(buffer, cut, &out, NULL), RV_E_INVALID);
	assert_int_equal(notice_decode(buffer, n + 1, &out, NULL), RV_E_INVALID);
	in = (struct notice){.kind = NOTICE_NOT_COUNTED, .reason = NOTICE_WRONG_SIZE};
	assert_int_equal(notice_through_bytes(&in, &out, &n), RV_OK);
	assert_int_equal(out.reason, NOTICE_WRONG_SIZE);
	in = (struct notice){
		.kind = NOTICE_RESTS, .until_round = 12, .rate = UINT64_MAX, .needs_ms = UINT32_MAX, .deadline_ms = 600};
	assert_int_equal(notice_through_bytes(&in, &out, &n), RV_OK);
	assert_true(out.until_round == 12 && out.rate == in.rate && out.needs_ms == in.needs_ms && out.deadline_ms == 600);
}

/* Builds that do not know whether a strike is final read a notice that is not. */
static void test_only_a_final_notice_says_so(void **state) {
	(void)state;
	struct notice in = {.kind = NOTICE_STRUCK, .reason = NOTICE_STRUCK_TRAINING, .until_round = 9}, out;
	size_t n, longer;
	assert_int_equal(notice_through_bytes(&in, &out, &n), RV_OK);
	assert_false(out.final);
	in.final = true;
	assert_int_equal(notice_through_bytes(&in, &out, &longer), RV_OK);
	assert_true(out.final && longer == n + 1);
	assert_int_equal(notice_decode(buffer, n, &out, NULL), RV_OK);
	assert_false(out.final);
	for (int last = 0; last < 256; last++) {
		buffer[n] = (uint8_t)last;
		assert_int_equal(notice_decode(buffer, longer, &out, NULL), last == 1 ? RV_OK : RV_E_INVALID);
	}
}

/* A worker passes over what a later release says; nothing of it is believed. */
static void test_notices_that_are_not_known(void **state) {
	(void)state;
	static const struct {
		struct notice n;
		enum rv_err want;
	} cases[] = {{{.kind = NOTICE_NOT_COUNTED, .reason = NOTICE_WRONG_SIZE + 1}, RV_E_PROTOCOL},
				 {{.kind = NOTICE_NOT_COUNTED}, RV_E_PROTOCOL},
				 {{.kind = NOTICE_STRUCK + 1}, RV_E_PROTOCOL},
				 {{.kind = NOTICE_STRUCK}, RV_E_PROTOCOL},
				 {{.kind = NOTICE_STRUCK, .reason = NOTICE_STRUCK_EVADED + 1}, RV_E_PROTOCOL},
				 {{.kind = NOTICE_RESTS, .final = true}, RV_E_INVALID},
				 {{.kind = NOTICE_STRUCK, .reason = NOTICE_STRUCK_WITHHELD, .until_round = 9, .final = true}, RV_OK},
				 {{.kind = NOTICE_RESTS, .reason = 1}, RV_E_PROTOCOL},
				 {{.kind = NOTICE_APART, .n_others = 1, .rate = 1}, RV_E_INVALID},
				 {{.kind = NOTICE_APART}, RV_E_INVALID},
				 {{.kind = NOTICE_NOT_COUNTED, .reason = 1, .n_others = 1}, RV_E_INVALID},
				 {{.kind = NOTICE_APART, .n_others = 1, .others = {NET_NO_MEMBER}}, RV_E_INVALID}};
	struct notice out;
	size_t n;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(notice_through_bytes(&cases[i].n, &out, &n), cases[i].want);
	const struct notice fine = {.kind = NOTICE_NOT_COUNTED, .reason = 1};
	assert_int_equal(notice_through_bytes(&fine, &out, &n), RV_OK);
	buffer[4]++; /* the version */
	assert_int_equal(notice_decode(buffer, n, &out, NULL), RV_E_PROTOCOL);
	memset(buffer, 0xff, NOTICE_MAX_BYTES);
	assert_int_equal(notice_decode(buffer, NOTICE_MAX_BYTES, &out, NULL), RV_E_INVALID);
}

/* ---- pair tickets ---- */

static enum rv_err pair_request_through_bytes(const struct pair_request *in, struct pair_request *out) {
	struct rv_writer w = rv_writer_of(buffer, sizeof buffer);
	pair_request_encode(in, CONTROL_VERSION, &w);
	return pair_request_decode(buffer, rv_writer_len(&w), out, NULL);
}

static void test_pair_request(void **state) {
	(void)state;
	const struct pair_request in = {.n = 2, .peers = {6, 4000000000u}};
	struct pair_request out;
	assert_int_equal(pair_request_through_bytes(&in, &out), RV_OK);
	assert_true(out.n == 2 && out.peers[0] == 6 && out.peers[1] == 4000000000u);
	assert_int_equal(pair_request_decode(buffer, 16, &out, NULL), RV_E_INVALID);
	assert_int_equal(pair_request_decode(buffer, 18, &out, NULL), RV_E_INVALID);
	buffer[8] = NET_MAX_ROW + 1;
	assert_int_equal(pair_request_decode(buffer, sizeof buffer, &out, NULL), RV_E_INVALID);
	assert_int_equal(pair_request_through_bytes(&(struct pair_request){.n = 2, .peers = {6, 6}}, &out), RV_E_INVALID);
	assert_int_equal(pair_request_through_bytes(&(struct pair_request){.n = 1, .peers = {NET_NO_MEMBER}}, &out),
					 RV_E_INVALID);
}

static void test_pair_tickets(void **state) {
	(void)state;
	struct pair_reply in = {.term = 1, .round = 2, .n = 2, .tickets = {{.peer = 1}, {.peer = 4000000000u}}}, out;
	memset(in.tickets[1].signature, 7, NET_SIG_BYTES);
	struct rv_writer w = rv_writer_of(buffer, PAIR_REPLY_MAX_BYTES);
	pair_reply_encode(&in, CONTROL_VERSION, &w);
	size_t n = rv_writer_len(&w);
	assert_int_equal(pair_reply_decode(buffer, n, &out, NULL), RV_OK);
	assert_memory_equal(&in, &out, sizeof in);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(pair_reply_decode(buffer, cut, &out, NULL), RV_E_INVALID);
	assert_int_equal(pair_reply_decode(buffer, n + 1, &out, NULL), RV_E_INVALID);
	buffer[24] = NET_MAX_ROW + 1;
	assert_int_equal(pair_reply_decode(buffer, sizeof buffer, &out, NULL), RV_E_INVALID);
}

/* Encodes a reply with these two peers; returns what the decoder finds. */
static enum rv_err decode_peers(uint32_t first, uint32_t second) {
	const struct pair_reply in = {.n = 2, .tickets = {{.peer = first}, {.peer = second}}};
	struct pair_reply out;
	struct rv_writer w = rv_writer_of(buffer, PAIR_REPLY_MAX_BYTES);
	pair_reply_encode(&in, CONTROL_VERSION, &w);
	return pair_reply_decode(buffer, rv_writer_len(&w), &out, NULL);
}

static void test_peers_of_tickets_ascend(void **state) {
	(void)state;
	assert_int_equal(decode_peers(0, 1), RV_OK);
	assert_int_equal(decode_peers(1, 1), RV_E_INVALID);
	assert_int_equal(decode_peers(2, 1), RV_E_INVALID);
	assert_int_equal(decode_peers(0, NET_NO_MEMBER), RV_E_INVALID);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notice),
		cmocka_unit_test(test_only_a_final_notice_says_so),
		cmocka_unit_test(test_notices_that_are_not_known),
		cmocka_unit_test(test_pair_request),
		cmocka_unit_test(test_pair_tickets),
		cmocka_unit_test(test_peers_of_tickets_ascend),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
