/* test_net_frame.c: the peer link's header and bodies: bytes, and every way in which they can be
 * wrong. */
#include "net/mesh/frame.h"

#include "base/hex.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t TAG = 0x0807060504030201;

static struct frame_header scatter(void) {
	uint8_t data[100] = {0};
	struct reduce_msg m = {
		.type = REDUCE_SCATTER, .round = 0x1111, .attempt = 2, .chunk = 7, .data = data, .data_bytes = sizeof data};
	return frame_reduce_encode(&m, TAG);
}

/* Through the bytes and back, so that the check is right. */
static const char *judge(struct frame_header h, enum frame_link link) {
	uint8_t bytes[FRAME_HEADER_BYTES];
	frame_header_encode(&h, bytes);
	frame_header_decode(bytes, &h);
	return frame_header_invalid(&h, TAG, link);
}

static void test_header_bytes(void **state) {
	(void)state;
	struct frame_header h = scatter();
	uint8_t bytes[FRAME_HEADER_BYTES];
	char hex[2 * FRAME_HEADER_BYTES + 1];
	frame_header_encode(&h, bytes);
	rv_hex_encode(bytes, 56, hex);
	assert_string_equal(hex, "52564c31"                   /* magic */
							 "01000200"                   /* version, type, flags */
							 "64000000"                   /* body bytes */
							 "07000000"                   /* chunk */
							 "1111000000000000"           /* round */
							 "0102030405060708"           /* run tag */
							 "02000000"                   /* attempt */
							 "0000000000000000"           /* slice, whole */
							 "000000000000000000000000"); /* reserved */
	struct rv_hash check = rv_hash_of(bytes, 56);
	assert_memory_equal(bytes + 56, check.b, 8);
}

static void test_every_bit_of_a_header_matters(void **state) {
	(void)state;
	struct frame_header h = scatter();
	uint8_t bytes[FRAME_HEADER_BYTES];
	frame_header_encode(&h, bytes);
	frame_header_decode(bytes, &h);
	assert_null(frame_header_invalid(&h, TAG, FRAME_LINK_OPEN));
	for (unsigned bit = 0; bit < 8 * FRAME_HEADER_BYTES; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		frame_header_decode(bytes, &h);
		assert_non_null(frame_header_invalid(&h, TAG, FRAME_LINK_OPEN));
		bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
}

#define EXPECT(change, link, text)                                                                                     \
	do {                                                                                                               \
		struct frame_header h = scatter();                                                                             \
		change;                                                                                                        \
		const char *why = judge(h, link);                                                                              \
		assert_non_null(why);                                                                                          \
		assert_non_null(strstr(why, text));                                                                            \
	} while (0)

static void test_each_condition_has_its_text(void **state) {
	(void)state;
	EXPECT(h.magic++, FRAME_LINK_OPEN, "magic");
	EXPECT(h.version = 2, FRAME_LINK_OPEN,
		   "version is not 1: the peer speaks another protocol version: update the older");
	EXPECT(h.reserved[7] = 1, FRAME_LINK_OPEN, "reserved");
	EXPECT(h.section = 1, FRAME_LINK_OPEN, "section is not zero");
	EXPECT((h.type = FRAME_COLUMN_SCATTER, h.section = NET_MAX_CHUNKS), FRAME_LINK_OPEN, "section is above");
	EXPECT(h.run_tag++, FRAME_LINK_OPEN, "another run");
	EXPECT(h.type = 0, FRAME_LINK_OPEN, "unknown type");
	EXPECT(h.type = 200, FRAME_LINK_OPEN, "unknown type");
	EXPECT((void)0, FRAME_LINK_GREETING, "before the hello");
	EXPECT(h = frame_header_of(FRAME_HELLO, TAG, FRAME_HELLO_BYTES), FRAME_LINK_OPEN, "second hello");
	EXPECT(h.body_bytes = 0, FRAME_LINK_OPEN, "minimum");
	EXPECT(h.body_bytes = NET_MAX_CHUNK_BYTES + 1, FRAME_LINK_OPEN, "limit");
	EXPECT(h.attempt = 0, FRAME_LINK_OPEN, "attempt is zero");
	EXPECT(h.chunk = NET_MAX_CHUNKS + 1, FRAME_LINK_OPEN, "chunk is above");
	EXPECT(h.flags = 1, FRAME_LINK_OPEN, "flags");
	EXPECT((h.type = FRAME_RESUME, h.chunk = 0, h.flags = 4), FRAME_LINK_OPEN, "unknown flags");
	EXPECT((h.type = FRAME_FETCH, h.body_bytes = FRAME_FETCH_BYTES), FRAME_LINK_OPEN, "attempt is not zero");
	EXPECT((h.type = FRAME_FETCH, h.body_bytes = FRAME_FETCH_BYTES, h.attempt = 0), FRAME_LINK_OPEN,
		   "chunk is not zero");
	EXPECT((h = frame_header_of(FRAME_BYE, TAG, 0), h.round = 1), FRAME_LINK_OPEN, "round is not zero");
}

static struct frame_header slice(void) {
	struct frame_header h = scatter();
	h.slice_at = 200;
	h.whole_bytes = 300;
	return h;
}

#define EXPECT_SLICE(change, link, text)                                                                               \
	do {                                                                                                               \
		struct frame_header h = slice();                                                                               \
		change;                                                                                                        \
		const char *why = judge(h, link);                                                                              \
		assert_non_null(why);                                                                                          \
		assert_non_null(strstr(why, text));                                                                            \
	} while (0)

static void test_slices(void **state) {
	(void)state;
	assert_null(judge(slice(), FRAME_LINK_OPEN));
	assert_null(judge(scatter(), FRAME_LINK_OPEN));
	EXPECT_SLICE((void)0, FRAME_LINK_GREETING, "before the hello");
	EXPECT_SLICE(h.whole_bytes = 0, FRAME_LINK_OPEN, "limits");
	EXPECT_SLICE(h.whole_bytes = NET_MAX_CHUNK_BYTES + 1, FRAME_LINK_OPEN, "limits");
	EXPECT_SLICE(h.body_bytes = 0, FRAME_LINK_OPEN, "some of the whole");
	EXPECT_SLICE(h.body_bytes = 300, FRAME_LINK_OPEN, "some of the whole");
	EXPECT_SLICE(h.slice_at = 201, FRAME_LINK_OPEN, "past the end");
	EXPECT_SLICE(h.slice_at = UINT32_MAX, FRAME_LINK_OPEN, "past the end");
	EXPECT_SLICE((h.type = FRAME_RESUME, h.chunk = 0), FRAME_LINK_OPEN, "where none may come");
	EXPECT_SLICE((h = frame_header_of(FRAME_HELLO, TAG, FRAME_HELLO_BYTES), h.slice_at = 1), FRAME_LINK_GREETING,
				 "where none may come");
	EXPECT_SLICE(h = frame_header_of(FRAME_HELLO, TAG, FRAME_HELLO_BYTES), FRAME_LINK_OPEN, "second hello");
	/* A slice may be shorter than the shortest whole. */
	struct frame_header piece = frame_header_of(FRAME_PIECE, TAG, 1);
	piece.whole_bytes = FRAME_PIECE_BYTES + 1;
	assert_null(judge(piece, FRAME_LINK_OPEN));
	piece.whole_bytes = FRAME_PIECE_BYTES;
	assert_non_null(judge(piece, FRAME_LINK_OPEN));
	for (uint8_t type = 0; type < 20; type++)
		assert_int_equal(frame_is_bulk(type), type == FRAME_SCATTER || type == FRAME_GATHER || type == FRAME_LEAVES ||
												  type == FRAME_PIECE || type == FRAME_COLUMN_SCATTER ||
												  type == FRAME_COLUMN_GATHER);
}

static void test_names_and_states(void **state) {
	(void)state;
	assert_string_equal(frame_type_name(FRAME_GATHER), "gather");
	assert_string_equal(frame_type_name(0), "unknown");
	assert_string_equal(frame_type_name(255), "unknown");
	assert_null(judge(frame_header_of(FRAME_HELLO, TAG, FRAME_HELLO_BYTES), FRAME_LINK_GREETING));
	assert_null(judge(frame_header_of(FRAME_BYE, TAG, 10), FRAME_LINK_GREETING));
	assert_null(judge(frame_header_of(FRAME_BYE, TAG, 10), FRAME_LINK_OPEN));
	assert_in_range(FRAME_HELLO_BYTES, 1, NET_MAX_FRAME_UNAUTHENTICATED);
}

static void test_reduce_messages_round_trip(void **state) {
	(void)state;
	static const uint8_t body[SEAL_BYTES] = {1, 2, 3};
	for (uint8_t type = REDUCE_SCATTER; type <= REDUCE_SUMS; type++) {
		struct reduce_msg in = {.type = type, .round = 77, .attempt = 3, .column = type == REDUCE_SUMS}, out;
		if (type == REDUCE_PING)
			in.waiting = 12;
		else {
			in.data = body;
			in.data_bytes = sizeof body;
		}
		if (type == REDUCE_RESUME)
			in.flags = REDUCE_RESUME_ACK | REDUCE_RESUME_ASK;
		else if (type != REDUCE_PING && type < REDUCE_SEAL)
			in.chunk = 9;
		struct frame_header h = frame_reduce_encode(&in, TAG);
		assert_null(judge(h, FRAME_LINK_OPEN));
		assert_true(frame_is_reduce(h.type));
		frame_reduce_decode(&h, body, &out);
		assert_int_equal(out.type, in.type);
		assert_int_equal(out.round, in.round);
		assert_int_equal(out.attempt, in.attempt);
		assert_int_equal(out.chunk, in.chunk);
		assert_int_equal(out.waiting, in.waiting);
		assert_int_equal(out.flags, in.flags);
		assert_int_equal(out.data_bytes, in.data_bytes);
		assert_int_equal(out.column, in.column);
		assert_ptr_equal(out.data, in.data);
	}
	assert_false(frame_is_reduce(FRAME_HELLO));
	assert_false(frame_is_reduce(FRAME_FETCH));
}

static void test_hello(void **state) {
	(void)state;
	struct frame_hello in, out;
	memset(&in, 0, sizeof in); /* padding too: the structs are compared as bytes */
	memset(&out, 0, sizeof out);
	in.protocol = FRAME_VERSION;
	in.role = FRAME_LISTENER;
	in.member = 63;
	memset(in.run_id, 1, sizeof in.run_id);
	memset(in.ticket, 2, sizeof in.ticket);
	memset(in.signature, 3, sizeof in.signature);
	uint8_t body[FRAME_HELLO_BYTES + 1] = {0};
	struct rv_errtext et = {0};
	frame_hello_encode(&in, body);
	assert_int_equal(frame_hello_decode(body, FRAME_HELLO_BYTES, &out, &et), RV_OK);
	assert_memory_equal(&in, &out, sizeof in);
	for (size_t n = 0; n <= sizeof body; n++)
		if (n != FRAME_HELLO_BYTES)
			assert_int_equal(frame_hello_decode(body, n, &out, &et), RV_E_INVALID);
	body[20] = 3; /* role */
	assert_int_equal(frame_hello_decode(body, FRAME_HELLO_BYTES, &out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "role = 3"));
	body[20] = 1;
	body[23] = 1; /* padding */
	assert_int_equal(frame_hello_decode(body, FRAME_HELLO_BYTES, &out, &et), RV_E_INVALID);
	body[23] = 0;
	memset(body + 24, 0xff, 4); /* NET_NO_MEMBER */
	assert_int_equal(frame_hello_decode(body, FRAME_HELLO_BYTES, &out, &et), RV_E_INVALID);
}

static void test_the_two_ends_sign_different_bytes(void **state) {
	(void)state;
	uint8_t exporter[FRAME_EXPORTER_BYTES] = {9}, run_id[NET_RUN_ID_BYTES] = {8};
	uint8_t dialer[FRAME_HELLO_SIGNED_BYTES], listener[FRAME_HELLO_SIGNED_BYTES];
	frame_hello_signed(exporter, run_id, FRAME_DIALER, dialer);
	frame_hello_signed(exporter, run_id, FRAME_LISTENER, listener);
	assert_memory_equal(dialer, "rivulet hello", 14);
	assert_memory_equal(dialer + 14, exporter, sizeof exporter);
	assert_memory_equal(dialer, listener, sizeof dialer - 1);
	assert_int_not_equal(dialer[sizeof dialer - 1], listener[sizeof listener - 1]);
}

static void test_fetch_and_none(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	struct frame_fetch fetch = {.kind = FRAME_FETCH_LOG, .part = FRAME_PART_MANIFEST, .round = 12, .index = 1 << 20},
					   out;
	uint8_t body[FRAME_FETCH_BYTES];
	for (int i = 0; i < 2; i++) {
		struct frame_header h = i == 0 ? frame_fetch_encode(&fetch, TAG, body) : frame_none_encode(&fetch, TAG, body);
		assert_null(judge(h, FRAME_LINK_OPEN));
		assert_int_equal(h.type, i == 0 ? FRAME_FETCH : FRAME_NONE);
		assert_int_equal(frame_fetch_decode(&h, body, &out, &et), RV_OK);
		assert_int_equal(out.kind, fetch.kind);
		assert_int_equal(out.part, fetch.part);
		assert_int_equal(out.round, fetch.round);
		assert_int_equal(out.index, fetch.index);
		for (int at = 0; at < 4; at++) { /* kind, part, encoding, padding */
			uint8_t before = body[at];
			body[at] = 3;
			assert_int_equal(frame_fetch_decode(&h, body, &out, &et), RV_E_INVALID);
			body[at] = before;
		}
	}
}

static void test_text(void **state) {
	struct rv_errtext et = {0};
	uint64_t files[NET_MAX_TEXT_FILES], out[NET_MAX_TEXT_FILES];
	uint8_t body[sizeof files];
	int n;
	(void)state;
	for (uint64_t i = 0; i < NET_MAX_TEXT_FILES; i++)
		files[i] = i << 40 | 7;
	struct frame_header h = frame_text_ask_encode(files, NET_MAX_TEXT_FILES, TAG, body);
	assert_null(judge(h, FRAME_LINK_OPEN));
	assert_non_null(judge(h, FRAME_LINK_GREETING));
	assert_int_equal(frame_text_ask_decode(&h, body, out, &n, &et), RV_OK);
	assert_int_equal(n, NET_MAX_TEXT_FILES);
	assert_memory_equal(files, out, sizeof files);
	h.body_bytes++;
	assert_non_null(judge(h, FRAME_LINK_OPEN));
	h.body_bytes = 12;
	assert_null(judge(h, FRAME_LINK_OPEN));
	assert_int_equal(frame_text_ask_decode(&h, body, out, &n, &et), RV_E_INVALID);
	h = frame_text_held_encode(0x8000000000000001, TAG, body);
	assert_null(judge(h, FRAME_LINK_OPEN));
	assert_true(frame_text_held_decode(body) == 0x8000000000000001);
	/* Text comes in pieces, raw. */
	struct frame_fetch fetch = {.kind = FRAME_FETCH_SUM, .round = 9, .index = 3}, got;
	h = frame_fetch_encode(&fetch, TAG, body);
	assert_int_equal(frame_fetch_decode(&h, body, &got, &et), RV_OK);
	assert_true(got.kind == FRAME_FETCH_SUM && got.round == 9 && got.index == 3);
	body[0] = FRAME_FETCH_SUM + 1;
	assert_int_equal(frame_fetch_decode(&h, body, &got, &et), RV_E_INVALID);
	fetch = (struct frame_fetch){.kind = FRAME_FETCH_TEXT, .round = (uint64_t)1 << 48, .index = 3};
	h = frame_fetch_encode(&fetch, TAG, body);
	assert_int_equal(frame_kind_of(&h, body), FRAME_FETCH_TEXT);
	assert_int_equal(frame_fetch_decode(&h, body, &got, &et), RV_OK);
	assert_true(got.kind == FRAME_FETCH_TEXT && got.round == fetch.round);
	body[1] = FRAME_PART_FORGET;
	assert_int_equal(frame_fetch_decode(&h, body, &got, &et), RV_OK);
	body[1] = FRAME_PART_MANIFEST;
	assert_int_equal(frame_fetch_decode(&h, body, &got, &et), RV_E_INVALID);
	struct frame_piece piece = {.of = fetch, .encoding = FRAME_ZSTD, .total = 1, .data = body, .data_bytes = 1};
	uint8_t head[FRAME_PIECE_BYTES + 1] = {0};
	h = frame_piece_encode(&piece, TAG, head);
	assert_int_equal(frame_piece_decode(&h, head, &piece, &et), RV_E_INVALID);
}

static struct frame_piece some_piece(const uint8_t *data) {
	return (struct frame_piece){.of = {.kind = FRAME_FETCH_SNAPSHOT, .round = 4, .index = 7},
								.encoding = FRAME_ZSTD,
								.offset = 90,
								.total = 100,
								.data = data,
								.data_bytes = 10};
}

static void refuse_piece(const struct frame_piece *in, uint8_t *body, const char *why) {
	struct rv_errtext et = {0};
	struct frame_piece out;
	struct frame_header h = frame_piece_encode(in, TAG, body);
	assert_int_equal(frame_piece_decode(&h, body, &out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, why));
}

static void test_piece(void **state) {
	(void)state;
	uint8_t body[FRAME_PIECE_BYTES + 10] = {0};
	struct frame_piece in = some_piece(body + FRAME_PIECE_BYTES), out;
	struct frame_header h = frame_piece_encode(&in, TAG, body);
	assert_null(judge(h, FRAME_LINK_OPEN));
	assert_int_equal(h.body_bytes, sizeof body);
	assert_int_equal(frame_piece_decode(&h, body, &out, NULL), RV_OK);
	assert_int_equal(out.of.index, 7);
	assert_int_equal(out.encoding, FRAME_ZSTD);
	assert_int_equal(out.offset, 90);
	assert_int_equal(out.total, 100);
	assert_int_equal(out.data_bytes, 10);
	assert_ptr_equal(out.data, body + FRAME_PIECE_BYTES);
	in.offset = 91;
	refuse_piece(&in, body, "run past the total");
	in.offset = UINT32_MAX;
	refuse_piece(&in, body, "run past the total");
	in = some_piece(in.data);
	in.total = NET_MAX_PIECE_BYTES + 1;
	refuse_piece(&in, body, "total");
	in = some_piece(in.data);
	in.encoding = 2;
	refuse_piece(&in, body, "encoding");
	h.body_bytes = FRAME_PIECE_BYTES;
	assert_int_equal(frame_piece_decode(&h, body, &out, NULL), RV_E_INVALID); /* no data */
	assert_non_null(judge(frame_header_of(FRAME_PIECE, TAG, FRAME_PIECE_BYTES), FRAME_LINK_OPEN));
	assert_non_null(
		judge(frame_header_of(FRAME_PIECE, TAG, FRAME_PIECE_BYTES + NET_MAX_SLICE_BYTES + 1), FRAME_LINK_OPEN));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header_bytes),
		cmocka_unit_test(test_every_bit_of_a_header_matters),
		cmocka_unit_test(test_each_condition_has_its_text),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_names_and_states),
		cmocka_unit_test(test_reduce_messages_round_trip),
		cmocka_unit_test(test_hello),
		cmocka_unit_test(test_the_two_ends_sign_different_bytes),
		cmocka_unit_test(test_fetch_and_none),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_piece),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
