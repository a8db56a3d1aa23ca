/* fuzz_text_members.c: members that ask each other for text. Whatever a stranger sends, the asker
 * takes bytes in order, of what it asked for, and no more; the donor answers what is asked, once.
 * An honest pair never breaks a rule, whatever is cancelled meanwhile. */
#include "base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "worker/text/text_asker.h"
#include "worker/text/text_core.h"
#include "worker/text/text_donor.h"

#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 3, FILES = 8, ASKS = 32, TAG = 77, SIZE = TEXT_RANGE_BYTES + NET_MAX_PIECE_BYTES + 5 };

struct world {
	struct text_asker asker;
	struct text_donor *donor;
	int64_t now_us;
	uint32_t last_ask;
	struct {
		uint32_t ask, member, bytes, got; /* ask 0: free */
	} asks[ASKS];
	bool questioned[MEMBERS];
	uint64_t lacks; /* files that the donor does not hold */
};

static uint8_t data[NET_MAX_PIECE_BYTES];

static int find(const struct world *w, uint32_t ask) {
	int at = 0;
	while (at < ASKS && w->asks[at].ask != ask)
		at++;
	return at;
}

static void on_bytes(void *ctx, uint32_t ask, uint32_t at, const uint8_t *bytes, uint32_t n) {
	struct world *w = ctx;
	const int i = find(w, ask);
	RV_ASSERT(i < ASKS && at == w->asks[i].got && n > 0 && n <= w->asks[i].bytes - at && bytes);
	w->asks[i].got += n;
	if (w->asks[i].got == w->asks[i].bytes)
		w->asks[i].ask = 0;
}

static void on_none(void *ctx, uint32_t ask) {
	struct world *w = ctx;
	const int i = find(w, ask);
	RV_ASSERT(i < ASKS);
	w->asks[i].ask = 0;
}

static void on_held(void *ctx, uint32_t member, const uint64_t *files, int n, uint64_t held) {
	struct world *w = ctx;
	RV_ASSERT(w->questioned[member] && n == FILES && files[0] == member && held < 1 << FILES);
	w->questioned[member] = false;
}

/* ---- what the donor gives of ---- */

static bool may_look(void *ctx, int64_t now_us, const struct frame_fetch *what) {
	(void)ctx;
	(void)now_us;
	(void)what;
	return true;
}

static int64_t ready_us(void *ctx) {
	(void)ctx;
	return INT64_MIN;
}

static bool holds(void *ctx, uint64_t file) {
	const struct world *w = ctx;
	return file < FILES && !(w->lacks >> file & 1);
}

static bool find_piece(void *ctx, int64_t now_us, struct frame_piece *out) {
	const uint64_t at = (uint64_t)out->of.index * NET_MAX_PIECE_BYTES;
	(void)now_us;
	if (!holds(ctx, out->of.round) || at >= SIZE)
		return false;
	out->total = (uint32_t)(SIZE - at < NET_MAX_PIECE_BYTES ? SIZE - at : NET_MAX_PIECE_BYTES);
	out->data = data;
	return true;
}

static void idle(void *ctx) {
	(void)ctx;
}

/* ---- frames ---- */

static void unlink_member(struct world *w, uint32_t member) {
	text_asker_link_down(&w->asker, member);
	text_donor_link_down(w->donor, member);
	w->questioned[member] = false;
	for (int i = 0; i < ASKS; i++)
		if (w->asks[i].member == member)
			w->asks[i].ask = 0;
}

static void body_of(const struct peers_message *m, uint8_t *out) {
	RV_ASSERT(m->header.body_bytes == m->part_bytes[0] + m->part_bytes[1]);
	memcpy(out, m->part[0], m->part_bytes[0]);
	if (m->part_bytes[1] > 0)
		memcpy(out + m->part_bytes[0], m->part[1], m->part_bytes[1]);
}

/* The header is one that a link lets through. */
static void check_header(const struct frame_header *h) {
	uint8_t bytes[FRAME_HEADER_BYTES];
	struct frame_header checked;
	frame_header_encode(h, bytes);
	frame_header_decode(bytes, &checked);
	RV_ASSERT(frame_header_invalid(&checked, TAG, FRAME_LINK_OPEN) == NULL);
}

static void to_donor(struct world *w, uint32_t member) {
	struct peers_message m;
	uint8_t body[FRAME_TEXT_FILE_BYTES * NET_MAX_TEXT_FILES];
	if (!text_asker_send(&w->asker, member, &m))
		return;
	check_header(&m.header);
	body_of(&m, body);
	RV_ASSERT(text_donor_receive(w->donor, w->now_us, member, &m.header, body, NULL) == RV_OK);
}

static void to_asker(struct world *w, uint32_t member) {
	static uint8_t body[FRAME_PIECE_BYTES + NET_MAX_SLICE_BYTES];
	struct peers_message m;
	if (!text_donor_send(w->donor, w->now_us, member, &m))
		return;
	check_header(&m.header);
	body_of(&m, body);
	RV_ASSERT(text_asker_receive(&w->asker, member, &m.header, body, NULL) == RV_OK);
}

/* Makes a frame of the input's making that a link would let through. */
static void hostile(struct rv_reader *r, enum frame_type type, uint32_t n, struct frame_header *h, uint8_t *body) {
	for (uint32_t i = 0; i < n; i++)
		body[i] = rv_read_u8(r);
	if (type != FRAME_TEXT_ASK && type != FRAME_TEXT_HELD)
		body[0] = FRAME_FETCH_TEXT;
	*h = frame_header_of(type, TAG, n);
	if (type != FRAME_TEXT_ASK && type != FRAME_TEXT_HELD)
		h->round = rv_read_u8(r);
}

static void attack(struct world *w, struct rv_reader *r, uint32_t member, uint8_t how) {
	struct frame_header h;
	uint8_t body[64];
	switch (how % 5) {
	case 0:
		hostile(r, FRAME_PIECE, FRAME_PIECE_BYTES + 1 + how % 32, &h, body);
		(void)text_asker_receive(&w->asker, member, &h, body, NULL);
		break;
	case 1:
		hostile(r, FRAME_NONE, FRAME_NONE_BYTES, &h, body);
		(void)text_asker_receive(&w->asker, member, &h, body, NULL);
		break;
	case 2:
		hostile(r, FRAME_TEXT_HELD, FRAME_TEXT_HELD_BYTES, &h, body);
		(void)text_asker_receive(&w->asker, member, &h, body, NULL);
		break;
	case 3:
		hostile(r, FRAME_FETCH, FRAME_FETCH_BYTES, &h, body);
		(void)text_donor_receive(w->donor, w->now_us, member, &h, body, NULL);
		break;
	default:
		hostile(r, FRAME_TEXT_ASK, FRAME_TEXT_FILE_BYTES + how % 16, &h, body);
		(void)text_donor_receive(w->donor, w->now_us, member, &h, body, NULL);
	}
	/* One that was let through is of no honest pair: begin anew. */
	unlink_member(w, member);
}

/* ---- steps ---- */

static void request(struct world *w, uint32_t member, uint8_t value) {
	const int at = find(w, 0);
	const uint32_t range = value >> 4 & 1, bytes = text_core_range_bytes(SIZE, range);
	if (at == ASKS || !text_asker_has_room(&w->asker, member))
		return;
	w->asks[at].ask = ++w->last_ask;
	w->asks[at].member = member;
	w->asks[at].bytes = bytes;
	w->asks[at].got = 0;
	text_asker_request(&w->asker, member, w->last_ask, value % (FILES + 1), range, bytes);
}

static void question(struct world *w, uint32_t member) {
	const uint64_t files[FILES] = {member, 1, 2, 3, 4, 5, 6, UINT64_MAX};
	if (w->questioned[member])
		return;
	w->questioned[member] = true;
	RV_ASSERT(text_asker_question(&w->asker, member, files, FILES));
}

static void step(struct world *w, struct rv_reader *r) {
	const uint8_t what = rv_read_u8(r), value = rv_read_u8(r);
	const uint32_t member = (uint32_t)(what >> 4) % MEMBERS;
	w->now_us += value * INT64_C(1000);
	switch (what % 8) {
	case 0:
		request(w, member, value);
		break;
	case 1:
		text_asker_cancel(&w->asker, w->asks[value % ASKS].ask);
		w->asks[value % ASKS].ask = 0;
		break;
	case 2:
		question(w, member);
		break;
	case 3:
		w->lacks = value;
		break;
	case 4:
		attack(w, r, member, value);
		break;
	case 5:
		unlink_member(w, member);
		break;
	default:
		for (int i = 0; i < 1 + value % 64; i++)
			what % 8 == 6 ? to_donor(w, member) : to_asker(w, member);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
	struct world *w = calloc(1, sizeof *w);
	void *memory = malloc(text_donor_size());
	RV_ASSERT(w && memory);
	const struct text_asker_owner owner = {.ctx = w, .on_bytes = on_bytes, .on_none = on_none, .on_held = on_held};
	const struct text_donor_config cfg = {
		.donor = {.run_tag = TAG},
		.source = {.pieces = {.ctx = w, .may_look = may_look, .ready_us = ready_us, .find = find_piece, .idle = idle},
				   .holds = holds,
				   .ctx = w}};
	text_asker_init(&w->asker, TAG, &owner);
	w->donor = text_donor_init(memory, &cfg);
	struct rv_reader r = rv_reader_of(input, size);
	while (rv_reader_left(&r) >= 2)
		step(w, &r);
	free(memory);
	free(w);
	return 0;
}
