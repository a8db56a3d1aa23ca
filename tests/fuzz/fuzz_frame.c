/* fuzz_frame.c: a peer's byte stream: headers, then bodies by type. The header's check is made
 * right before it is judged, since no search finds a BLAKE2b value; the header as it came is judged
 * too. */
#include "net/mesh/frame.h"

#include "base/bytes.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const uint8_t run_id[NET_RUN_ID_BYTES] = "a run of rivule";

static void check_hello(const uint8_t *body, size_t n) {
	struct frame_hello m;
	uint8_t again[FRAME_HELLO_BYTES];
	if (frame_hello_decode(body, n, &m, NULL) != RV_OK)
		return;
	frame_hello_encode(&m, again);
	RV_ASSERT(n == sizeof again && memcmp(again, body, n) == 0);
}

static void check_fetch(const struct frame_header *h, const uint8_t *body) {
	struct frame_fetch m;
	uint8_t again[FRAME_FETCH_BYTES];
	if (frame_fetch_decode(h, body, &m, NULL) != RV_OK)
		return;
	RV_ASSERT(m.part <= FRAME_PART_FORGET);
	(void)frame_fetch_encode(&m, h->run_tag, again);
	RV_ASSERT(memcmp(again, body, sizeof again) == 0);
}

static void check_piece(const struct frame_header *h, const uint8_t *body) {
	struct frame_piece m;
	uint8_t again[FRAME_PIECE_BYTES];
	if (frame_piece_decode(h, body, &m, NULL) != RV_OK)
		return;
	RV_ASSERT(m.data_bytes == h->body_bytes - FRAME_PIECE_BYTES && m.data == body + FRAME_PIECE_BYTES);
	RV_ASSERT(m.total <= NET_MAX_PIECE_BYTES && m.offset <= m.total && m.data_bytes <= m.total - m.offset);
	(void)frame_piece_encode(&m, h->run_tag, again);
	RV_ASSERT(memcmp(again, body, sizeof again) == 0);
}

static void check_text_ask(const struct frame_header *h, const uint8_t *body) {
	uint64_t files[NET_MAX_TEXT_FILES];
	uint8_t again[FRAME_TEXT_FILE_BYTES * NET_MAX_TEXT_FILES];
	int n;
	if (frame_text_ask_decode(h, body, files, &n, NULL) != RV_OK)
		return;
	RV_ASSERT(n > 0 && n <= NET_MAX_TEXT_FILES);
	RV_ASSERT(frame_text_ask_encode(files, n, h->run_tag, again).body_bytes == h->body_bytes);
	RV_ASSERT(memcmp(again, body, h->body_bytes) == 0);
}

static void check_text_held(const struct frame_header *h, const uint8_t *body) {
	uint8_t again[FRAME_TEXT_HELD_BYTES];
	(void)frame_text_held_encode(frame_text_held_decode(body), h->run_tag, again);
	RV_ASSERT(memcmp(again, body, sizeof again) == 0);
}

static void check_none(const struct frame_header *h, const uint8_t *body) {
	struct frame_fetch m;
	uint8_t again[FRAME_NONE_BYTES];
	if (frame_fetch_decode(h, body, &m, NULL) != RV_OK)
		return;
	(void)frame_none_encode(&m, h->run_tag, again);
	RV_ASSERT(memcmp(again, body, sizeof again) == 0);
}

static void check_body(const struct frame_header *h, const uint8_t *body) {
	struct reduce_msg m;
	if (frame_is_reduce(h->type)) {
		frame_reduce_decode(h, body, &m);
		RV_ASSERT(m.data_bytes == h->body_bytes && (m.data_bytes == 0 || m.data == body));
	} else if (h->type == FRAME_HELLO) {
		check_hello(body, h->body_bytes);
	} else if (h->type == FRAME_FETCH) {
		check_fetch(h, body);
	} else if (h->type == FRAME_PIECE) {
		check_piece(h, body);
	} else if (h->type == FRAME_NONE) {
		check_none(h, body);
	} else if (h->type == FRAME_TEXT_ASK) {
		check_text_ask(h, body);
	} else if (h->type == FRAME_TEXT_HELD) {
		check_text_held(h, body);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct rv_reader r = rv_reader_of(data, size);
	uint64_t run_tag = frame_run_tag(run_id);
	uint8_t kind = rv_read_u8(&r);
	enum frame_link link = kind & 1 ? FRAME_LINK_GREETING : FRAME_LINK_OPEN;
	for (;;) {
		struct frame_header h;
		uint8_t bytes[FRAME_HEADER_BYTES];
		const uint8_t *head = rv_read_span(&r, FRAME_HEADER_BYTES);
		if (!head)
			return 0;
		frame_header_decode(head, &h);
		(void)frame_header_invalid(&h, run_tag, link);
		frame_header_encode(&h, bytes);
		RV_ASSERT(memcmp(bytes, head, offsetof(struct frame_header, check)) == 0);
		frame_header_decode(bytes, &h);
		if (frame_header_invalid(&h, run_tag, link))
			return 0;
		RV_ASSERT(link != FRAME_LINK_GREETING || h.body_bytes <= NET_MAX_FRAME_UNAUTHENTICATED);
		const uint8_t *body = rv_read_span(&r, h.body_bytes);
		if (!body)
			return 0;
		RV_ASSERT(h.whole_bytes == 0 || (h.slice_at < h.whole_bytes && h.body_bytes <= h.whole_bytes - h.slice_at));
		if (h.whole_bytes == 0)
			check_body(&h, body);
		link = FRAME_LINK_OPEN;
	}
}
