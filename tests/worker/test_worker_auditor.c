/* An auditor between three contributors: what it asks whom, and what it concludes. */
#include "base/merkle.h"
#include "tests/common/check.h"
#include "worker/audit/auditor.h"

#include <stdlib.h>
#include <string.h>

enum { SELF = 1, MEMBERS = 3, CHUNKS = 5, CHUNK = 3, BYTES = 100, TAG = 77, PATIENCE_US = 30 * 1000 * 1000 };

static struct {
	struct auditor *a;
	int64_t now_us;
	uint8_t data[MEMBERS][CHUNKS][BYTES];
	struct rv_hash nodes[MEMBERS][2 * CHUNKS + MERKLE_LEVELS];
	bool linked[MEMBERS], own_is_there;
	int taken, judged;
	enum audit_verdict verdict;
	size_t sent_bytes;  /* of a contribution to be scored; 0: this worker cannot */
	uint8_t *scored;    /* that was given to be scored; NULL: none */
	uint32_t scored_of; /* whose that is */
	uint32_t chunk;     /* that answers are for, and FETCH is expected for */
} w;

static size_t chunk_bytes(void *ctx, uint64_t round, uint8_t codec, uint32_t chunk) {
	(void)ctx, (void)round, (void)codec, (void)chunk;
	return BYTES;
}

static size_t piece_of(uint32_t member, uint32_t chunk, uint8_t *out) {
	const struct merkle_range r = {CHUNKS, chunk, 1};
	struct rv_hash proof[MERKLE_MAX_PROOF];
	const uint32_t n = merkle_prove(w.nodes[member], &r, proof);
	memcpy(out, w.data[member][chunk], BYTES);
	memcpy(out + BYTES, proof, n * sizeof proof[0]);
	return BYTES + n * sizeof proof[0];
}

static bool own(void *ctx, uint64_t round, uint32_t chunk, uint8_t *out, size_t bytes) {
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	(void)ctx, (void)round;
	assert_int_equal(piece_of(SELF, chunk, piece), bytes);
	memcpy(out, piece, bytes);
	return w.own_is_there;
}

static enum audit_verdict judge(void *ctx, const struct auditor_case *c, struct rv_hash *found) {
	(void)ctx;
	w.judged++;
	assert_int_equal(c->n, MEMBERS);
	for (int i = 0; i < c->n; i++) {
		assert_int_equal(c->members[i]->member, i);
		assert_memory_equal(c->data[i], w.data[i][c->chunk], BYTES);
	}
	memset(found, 5, sizeof *found);
	return w.verdict;
}

static bool linked(void *ctx, uint32_t member) {
	(void)ctx;
	return w.linked[member];
}

static void *take(void *ctx, size_t bytes) {
	(void)ctx;
	w.taken++;
	return malloc(bytes);
}

static void give(void *ctx, void *memory) {
	(void)ctx;
	w.taken--;
	free(memory);
}

static size_t sent_bytes(void *ctx, const struct score_order *o) {
	(void)ctx;
	assert_int_equal(o->round, 7);
	return w.sent_bytes;
}

static void score(void *ctx, const struct score_order *o, uint8_t *encoded) {
	(void)ctx;
	assert_true(w.scored == NULL);
	w.scored_of = o->member;
	w.scored = encoded;
	w.taken--;
}

static struct document doc;

static void open_world(void) {
	static uint64_t memory[1 << 15];
	const struct auditor_ops ops = {.chunk_bytes = chunk_bytes,
									.own = own,
									.judge = judge,
									.linked = linked,
									.take = take,
									.give = give,
									.sent_bytes = sent_bytes,
									.score = score};
	assert_true(auditor_size() <= sizeof memory);
	memset(&w, 0, sizeof w);
	w.verdict = AUDIT_RIGHT;
	w.own_is_there = true;
	w.chunk = CHUNK;
	w.a = auditor_init(memory, SELF, TAG, PATIENCE_US, &ops);
	doc = (struct document){.phase = RUN_REDUCE, .round = 7, .attempt = 2, .n_chunks = CHUNKS, .n_members = MEMBERS};
	for (uint32_t m = 0; m < MEMBERS; m++) {
		w.linked[m] = true;
		for (uint32_t c = 0; c < CHUNKS; c++) {
			memset(w.data[m][c], (int)(16 * m + c), BYTES);
			w.nodes[m][c] = merkle_leaf(c, w.data[m][c], BYTES);
		}
		merkle_build(w.nodes[m], CHUNKS);
		doc.members[m] =
			(struct member_ref){.member = m, .weight = 1, .contribution_root = merkle_root(w.nodes[m], CHUNKS)};
	}
}

static int close_world(void **state) {
	(void)state;
	auditor_release(w.a);
	free(w.scored);
	assert_int_equal(w.taken, 0);
	return 0;
}

/* The round is committed, and this worker is to audit CHUNK of it. */
static void order(uint32_t attempt) {
	doc.phase = RUN_OPEN;
	doc.round = 8;
	doc.n_audits = 1;
	doc.audits[0] = (struct audit_order){.round = 7, .attempt = attempt, .chunk = CHUNK};
	auditor_follow(w.a, w.now_us, &doc);
}

static void begin(void) {
	open_world();
	auditor_note_roster(w.a, &doc);
	order(2);
}

static bool is_asked(uint32_t member) {
	struct peers_message m;
	struct frame_fetch f;
	if (!auditor_send(w.a, w.now_us, member, &m))
		return false;
	assert_int_equal(frame_fetch_decode(&m.header, m.part[0], &f, NULL), RV_OK);
	assert_true(f.kind == FRAME_FETCH_CONTRIBUTION && f.round == 7 && f.index == w.chunk);
	return true;
}

static enum rv_err answer_bytes(uint32_t member, const uint8_t *piece, size_t n, size_t slice) {
	uint8_t body[FRAME_PIECE_BYTES + NET_MAX_SLICE_BYTES];
	enum rv_err e = RV_OK;
	for (size_t at = 0; at < n && e == RV_OK; at += slice) {
		const size_t bytes = n - at < slice ? n - at : slice;
		const struct frame_piece p = {.of = {.kind = FRAME_FETCH_CONTRIBUTION, .round = 7, .index = w.chunk},
									  .offset = (uint32_t)at,
									  .total = (uint32_t)n,
									  .data = piece + at,
									  .data_bytes = (uint32_t)bytes};
		struct rv_errtext et;
		const struct frame_header h = frame_piece_encode(&p, TAG, body);
		memcpy(body + FRAME_PIECE_BYTES, piece + at, bytes);
		e = auditor_receive(w.a, w.now_us, member, &h, body, &et);
	}
	return e;
}

static enum rv_err answer(uint32_t member) {
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	return answer_bytes(member, piece, piece_of(member, w.chunk, piece), 64);
}

static enum rv_err answer_none(uint32_t member) {
	const struct frame_fetch f = {.kind = FRAME_FETCH_CONTRIBUTION, .round = 7, .index = w.chunk};
	uint8_t body[FRAME_NONE_BYTES];
	struct rv_errtext et;
	const struct frame_header h = frame_none_encode(&f, TAG, body);
	return auditor_receive(w.a, w.now_us, member, &h, body, &et);
}

/* Returns the only result that a report has. */
static const struct audit_result *result(void) {
	static struct report r;
	auditor_report(w.a, &r);
	assert_int_equal(r.n_verdicts, 1);
	assert_true(r.verdicts[0].round == 7 && r.verdicts[0].chunk == CHUNK);
	assert_int_equal(audit_results_check(r.verdicts, r.n_verdicts, NULL), RV_OK);
	return &r.verdicts[0];
}

static void expect(enum audit_verdict verdict, uint32_t member) {
	assert_int_equal(result()->verdict, verdict);
	assert_int_equal(result()->member, member);
	assert_true(auditor_has_news(w.a));
	assert_false(auditor_has_news(w.a));
	assert_int_equal(w.taken, 0);
}

static bool is_open(void) {
	struct report r;
	auditor_report(w.a, &r);
	return r.n_verdicts == 0;
}

/* ---- */

static void all_pieces_are_judged(void **state) {
	(void)state;
	begin();
	assert_false(is_asked(SELF));
	assert_true(is_asked(0) && is_asked(2));
	assert_false(is_asked(0) || is_asked(2)); /* once */
	assert_int_equal(answer(2), RV_OK);
	assert_true(is_open());
	assert_int_equal(answer(0), RV_OK);
	assert_int_equal(w.judged, 1);
	expect(AUDIT_RIGHT, NET_NO_MEMBER);
	/* The result is repeated until the order is over. */
	auditor_follow(w.a, w.now_us, &doc);
	assert_int_equal(result()->verdict, AUDIT_RIGHT);
	doc.n_audits = 0;
	auditor_follow(w.a, w.now_us, &doc);
	assert_true(is_open());
}

static void a_wrong_average_is_reported_with_the_right_one(void **state) {
	(void)state;
	begin();
	w.verdict = AUDIT_WRONG;
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	assert_int_equal(answer(2), RV_OK);
	struct rv_hash five;
	memset(&five, 5, sizeof five);
	assert_true(rv_hash_equal(&result()->found, &five));
	expect(AUDIT_WRONG, NET_NO_MEMBER);
}

static void what_was_not_committed_to_is_withheld(void **state) {
	(void)state;
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	begin();
	assert_true(is_asked(0) && is_asked(2));
	const size_t n = piece_of(0, CHUNK, piece);
	piece[BYTES / 2] ^= 1;
	assert_int_equal(answer_bytes(0, piece, n, 64), RV_OK);
	expect(AUDIT_WITHHELD, 0);
	assert_int_equal(w.judged, 0);
	/* The other answer, which was on its way, does no harm. */
	assert_int_equal(answer(2), RV_OK);
	assert_int_equal(answer(2), RV_E_PROTOCOL);
}

static void a_piece_of_another_chunk_or_length_is_withheld(void **state) {
	(void)state;
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	begin();
	assert_true(is_asked(0));
	(void)piece_of(0, CHUNK - 1, piece);
	assert_int_equal(answer_bytes(0, piece, piece_of(0, CHUNK - 1, piece), 64), RV_OK);
	expect(AUDIT_WITHHELD, 0);
	assert_int_equal(close_world(NULL), 0);
	begin();
	assert_true(is_asked(2));
	assert_int_equal(answer_bytes(2, piece, BYTES, BYTES), RV_OK);
	expect(AUDIT_WITHHELD, 2);
}

/* The sender may be slow to store it: NONE is as if it said nothing. */
static void none_is_asked_again_until_patience_is_over(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	while (w.now_us < PATIENCE_US) {
		assert_true(is_open() && is_asked(0));
		assert_int_equal(answer_none(0), RV_OK);
		assert_false(is_asked(0));
		assert_int_equal(auditor_deadline_us(w.a), w.now_us + AUDITOR_AGAIN_US);
		w.now_us += AUDITOR_AGAIN_US;
		auditor_tick(w.a, w.now_us);
	}
	expect(AUDIT_WITHHELD, 0);
}

static void patience_ends(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	assert_int_equal(auditor_deadline_us(w.a), PATIENCE_US);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	expect(AUDIT_WITHHELD, 2);
	assert_int_equal(close_world(NULL), 0);
	/* One that is not linked withholds nothing. */
	begin();
	w.linked[2] = false;
	assert_true(is_asked(0));
	assert_int_equal(answer(0), RV_OK);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	expect(AUDIT_UNABLE, 2);
}

static void a_new_link_is_asked_again(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	auditor_link_down(w.a, w.now_us, 2);
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	expect(AUDIT_RIGHT, NET_NO_MEMBER);
}

static void what_this_worker_lacks_makes_it_unable(void **state) {
	(void)state;
	open_world();
	order(2); /* it knows no roster */
	expect(AUDIT_UNABLE, NET_NO_MEMBER);
	assert_int_equal(close_world(NULL), 0);
	open_world();
	auditor_note_roster(w.a, &doc);
	order(3); /* of another attempt */
	expect(AUDIT_UNABLE, NET_NO_MEMBER);
	assert_int_equal(close_world(NULL), 0);
	open_world();
	w.own_is_there = false;
	auditor_note_roster(w.a, &doc);
	order(2);
	expect(AUDIT_UNABLE, NET_NO_MEMBER);
}

static void an_order_that_is_gone_is_left(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(0) && is_asked(2));
	doc.n_audits = 0;
	auditor_follow(w.a, w.now_us, &doc);
	assert_int_equal(w.taken, 0);
	assert_int_equal(answer(0), RV_OK); /* it was on its way */
	assert_int_equal(answer_none(2), RV_OK);
	assert_int_equal(answer_none(2), RV_E_PROTOCOL);
	assert_true(is_open());
}

static void what_was_not_asked_for_is_a_breach(void **state) {
	(void)state;
	begin();
	assert_int_equal(answer(0), RV_E_PROTOCOL);
	assert_true(is_asked(0));
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)], body[FRAME_PIECE_BYTES + 10];
	struct frame_piece p = {.of = {.kind = FRAME_FETCH_CONTRIBUTION, .round = 7, .index = CHUNK},
							.offset = 10,
							.total = (uint32_t)piece_of(0, CHUNK, piece),
							.data = piece,
							.data_bytes = 10};
	struct frame_header h = frame_piece_encode(&p, TAG, body);
	memcpy(body + FRAME_PIECE_BYTES, piece, 10);
	struct rv_errtext et;
	assert_int_equal(auditor_receive(w.a, 0, 0, &h, body, &et), RV_E_PROTOCOL); /* not from the beginning */
}

/* ---- of training ---- */

/* Member 2's contribution to round 7 is to be scored: of all chunks, or of every second one. */
static void order_score(uint32_t member, uint8_t part) {
	open_world();
	w.sent_bytes = (part ? (CHUNKS + 1) / 2 : CHUNKS) * BYTES;
	w.chunk = 0;
	doc.phase = RUN_OPEN;
	doc.round = 8;
	doc.n_scores = 1;
	doc.scores[0] = (struct score_order){.round = 7,
										 .member = member,
										 .n_chunks = CHUNKS,
										 .share = 1,
										 .part = part,
										 .root = merkle_root(w.nodes[2], CHUNKS),
										 .n_pieces = 1,
										 .pieces = {{0, 1}}};
	auditor_follow(w.a, w.now_us, &doc);
}

static void expect_score(enum score_verdict verdict, float gain) {
	static struct report r;
	auditor_report(w.a, &r);
	assert_true(r.n_verdicts == 0 && r.n_scores == 1);
	assert_int_equal(score_results_check(r.scores, r.n_scores, NULL), RV_OK);
	assert_true(r.scores[0].round == 7 && r.scores[0].verdict == verdict && r.scores[0].gain == gain);
	assert_true(auditor_has_news(w.a));
	assert_int_equal(w.taken, 0);
}

static void fetch_all(uint8_t part) {
	for (w.chunk = 0; w.chunk < CHUNKS; w.chunk++) {
		if (part && (7 + 2 + w.chunk) % part != 0)
			continue;
		assert_true(w.scored == NULL && is_asked(2) && !is_asked(0));
		assert_int_equal(answer(2), RV_OK);
	}
	assert_true(w.scored != NULL && !is_asked(2));
}

static void a_whole_contribution_is_fetched_and_scored(void **state) {
	(void)state;
	order_score(2, 0);
	fetch_all(0);
	assert_int_equal(w.scored_of, 2);
	assert_memory_equal(w.scored, w.data[2], CHUNKS * BYTES);
	assert_int_equal(auditor_deadline_us(w.a), INT64_MAX);
	const struct score_result r = {.round = 7, .member = 2, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	auditor_scored(w.a, &r);
	expect_score(SCORE_MEASURED, 0.5f);
}

static void of_a_slow_member_what_it_sent(void **state) {
	(void)state;
	order_score(2, 2);
	w.sent_bytes = 2 * BYTES; /* chunks 1 and 3: 7 + 2 + chunk is even */
	auditor_release(w.a);
	doc.n_scores = 0;
	auditor_follow(w.a, w.now_us, &doc);
	doc.n_scores = 1;
	auditor_follow(w.a, w.now_us, &doc);
	fetch_all(2);
	assert_memory_equal(w.scored, w.data[2][1], BYTES);
	assert_memory_equal(w.scored + BYTES, w.data[2][3], BYTES);
}

static void one_that_gives_another_contribution_withholds(void **state) {
	(void)state;
	order_score(2, 0);
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	w.chunk = 1;
	w.data[2][1][0] ^= 1;
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	expect_score(SCORE_WITHHELD, 0);
}

static void silence_withholds_and_no_link_is_said(void **state) {
	(void)state;
	for (int is_linked = 0; is_linked < 2; is_linked++) {
		order_score(2, 0);
		w.linked[2] = is_linked;
		assert_true(is_asked(2));
		assert_int_equal(answer(2), RV_OK);
		w.now_us += PATIENCE_US; /* since the last chunk */
		auditor_tick(w.a, w.now_us);
		expect_score(is_linked ? SCORE_WITHHELD : SCORE_UNREACHED, 0);
	}
}

/* What was said before is repeated until there is something better. */
static void one_that_was_not_reached_is_asked_when_it_is_linked(void **state) {
	(void)state;
	order_score(2, 0);
	w.linked[2] = false;
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	expect_score(SCORE_UNREACHED, 0);
	auditor_tick(w.a, w.now_us);
	assert_false(is_asked(2));
	w.linked[2] = true;
	auditor_tick(w.a, w.now_us);
	assert_true(is_asked(2));
	w.linked[2] = false;
	auditor_link_down(w.a, w.now_us, 2);
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_false(auditor_has_news(w.a)); /* the same again */
	w.linked[2] = true;
	auditor_tick(w.a, w.now_us);
	fetch_all(0);
	const struct score_result r = {.round = 7, .member = 2, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	auditor_scored(w.a, &r);
	expect_score(SCORE_MEASURED, 0.5f);
}

/* The link of an author that owes a chunk ends, and there is a new one at once. */
static void cut(void) {
	assert_true(is_asked(2));
	auditor_link_down(w.a, w.now_us, 2);
	auditor_tick(w.a, w.now_us);
	assert_false(is_asked(2)); /* not yet */
	w.now_us += AUDITOR_AFTER_CUT_US;
	auditor_tick(w.a, w.now_us);
}

static void links_that_end_when_the_author_is_asked_are_said(void **state) {
	(void)state;
	order_score(2, 0);
	for (int i = 0; i < AUDITOR_CUTS; i++) {
		assert_false(auditor_has_news(w.a));
		cut();
	}
	expect_score(SCORE_CUT, 0);
	assert_false(is_asked(2));
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_true(is_asked(2));
	w.linked[2] = false; /* worse than CUT: that is said on */
	auditor_link_down(w.a, w.now_us, 2);
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_false(auditor_has_news(w.a));
	w.linked[2] = true;
	auditor_tick(w.a, w.now_us);
	fetch_all(0);
	const struct score_result r = {.round = 7, .member = 2, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	auditor_scored(w.a, &r);
	expect_score(SCORE_MEASURED, 0.5f);
}

/* A line that ends now and then gives chunks in between. */
static void a_chunk_that_came_begins_the_count_anew(void **state) {
	(void)state;
	order_score(2, 0);
	for (w.chunk = 0; w.chunk < CHUNKS; w.chunk++) {
		for (int i = 0; i + 1 < AUDITOR_CUTS; i++)
			cut();
		assert_true(is_asked(2));
		assert_int_equal(answer(2), RV_OK);
	}
	assert_true(w.scored != NULL);
	const struct score_result r = {.round = 7, .member = 2, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	auditor_scored(w.a, &r);
	expect_score(SCORE_MEASURED, 0.5f);
}

/* The author was cut off once, and patience ends before it can be asked again. */
static void one_that_is_linked_anew_is_asked_before_it_withholds(void **state) {
	(void)state;
	order_score(2, 0);
	w.sent_bytes = CHUNKS * BYTES;
	assert_true(is_asked(2));
	w.now_us = PATIENCE_US - 1;
	auditor_link_down(w.a, w.now_us, 2);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_false(auditor_has_news(w.a));
	w.now_us = auditor_deadline_us(w.a);
	auditor_tick(w.a, w.now_us);
	expect_score(SCORE_WITHHELD, 0);
}

/* Each chunk comes in time, and all of them too late. */
static void a_drip_of_chunks_ends(void **state) {
	(void)state;
	const int64_t latest_us = PATIENCE_US + (int64_t)CHUNKS * BYTES * 1000000 / AUDITOR_LEAST_BYTES_PER_S;
	order_score(2, 0);
	assert_true(is_asked(2));
	w.now_us = PATIENCE_US - 1;
	auditor_tick(w.a, w.now_us);
	assert_int_equal(answer(2), RV_OK);
	w.chunk = 1;
	assert_true(is_asked(2));
	assert_int_equal(auditor_deadline_us(w.a), latest_us);
	w.now_us = latest_us;
	auditor_tick(w.a, w.now_us);
	expect_score(SCORE_WITHHELD, 0);
}

/* Member 2 takes its time with its contribution, of which a chunk is on its way. */
static void a_slow_author_holds_no_average_up(void **state) {
	static struct report r;
	(void)state;
	order_score(2, 0);
	assert_true(is_asked(2));
	doc.phase = RUN_REDUCE;
	doc.round = 7;
	auditor_note_roster(w.a, &doc);
	order(2);
	w.chunk = CHUNK;
	assert_true(is_asked(0) && !is_asked(2)); /* one chunk of a member at a time */
	assert_int_equal(answer(0), RV_OK);
	w.chunk = 0;
	assert_int_equal(answer(2), RV_OK);
	w.chunk = CHUNK;
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	auditor_report(w.a, &r);
	assert_true(w.judged == 1 && r.n_verdicts == 1 && r.n_scores == 0);
	w.chunk = 1;
	assert_true(is_asked(2)); /* and its contribution goes on */
}

/* A piece that was not asked for, as one of the contribution was on its way, is not withheld. */
static void one_that_still_gives_another_chunk_withholds_nothing(void **state) {
	(void)state;
	order_score(2, 0);
	w.now_us = PATIENCE_US / 2;
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	w.chunk = 1;
	assert_true(is_asked(2));
	doc.phase = RUN_REDUCE;
	doc.round = 7;
	auditor_note_roster(w.a, &doc);
	w.now_us = 0;
	order(2);
	w.chunk = CHUNK;
	assert_true(is_asked(0));
	assert_int_equal(answer(0), RV_OK);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_true(result()->verdict == AUDIT_UNABLE && result()->member == NET_NO_MEMBER);
}

static void give_score(uint32_t member) {
	const struct score_result r = {.round = 7, .member = member, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	assert_int_equal(w.scored_of, member);
	assert_memory_equal(w.scored, w.data[member], CHUNKS * BYTES);
	free(w.scored);
	w.scored = NULL;
	auditor_scored(w.a, &r);
}

static void authors_give_side_by_side_and_are_scored_in_turn(void **state) {
	static struct report r;
	(void)state;
	order_score(2, 0);
	doc.n_scores = 2;
	doc.scores[1] = doc.scores[0];
	doc.scores[1].member = 0;
	doc.scores[1].root = merkle_root(w.nodes[0], CHUNKS);
	auditor_follow(w.a, w.now_us, &doc);
	for (w.chunk = 0; w.chunk < CHUNKS; w.chunk++) {
		assert_true(is_asked(0) && is_asked(2));
		assert_int_equal(answer(0), RV_OK);
		assert_int_equal(answer(2), RV_OK);
	}
	give_score(0);
	give_score(2);
	assert_true(w.scored == NULL);
	auditor_report(w.a, &r);
	assert_int_equal(r.n_scores, 2);
}

/* The first one is ordered no more, and its score is still being measured. */
static void a_score_that_nobody_wants_is_waited_for(void **state) {
	(void)state;
	order_score(2, 0);
	fetch_all(0);
	const struct score_order second = {.round = 7,
									   .member = 0,
									   .n_chunks = CHUNKS,
									   .share = 1,
									   .root = merkle_root(w.nodes[0], CHUNKS),
									   .n_pieces = 1,
									   .pieces = {{0, 1}}};
	doc.scores[0] = second;
	auditor_follow(w.a, w.now_us, &doc);
	for (w.chunk = 0; w.chunk < CHUNKS; w.chunk++) {
		assert_true(is_asked(0));
		assert_int_equal(answer(0), RV_OK);
	}
	give_score(2);
	give_score(0);
	expect_score(SCORE_MEASURED, 0.5f);
}

static void what_cannot_be_scored_makes_it_unable(void **state) {
	(void)state;
	order_score(SELF, 0);
	expect_score(SCORE_UNABLE, 0);
	order_score(2, 0);
	auditor_release(w.a);
	w.sent_bytes = 0;
	doc.scores[0].root.b[0] ^= 1; /* another order */
	auditor_follow(w.a, w.now_us, &doc);
	expect_score(SCORE_UNABLE, 0);
}

static void a_score_that_comes_late_is_dropped(void **state) {
	(void)state;
	order_score(2, 0);
	fetch_all(0);
	doc.n_scores = 0;
	auditor_follow(w.a, w.now_us, &doc);
	const struct score_result r = {.round = 7, .member = 2, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	auditor_scored(w.a, &r);
	assert_false(auditor_has_news(w.a));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(all_pieces_are_judged, close_world),
		cmocka_unit_test_teardown(a_wrong_average_is_reported_with_the_right_one, close_world),
		cmocka_unit_test_teardown(what_was_not_committed_to_is_withheld, close_world),
		cmocka_unit_test_teardown(a_piece_of_another_chunk_or_length_is_withheld, close_world),
		cmocka_unit_test_teardown(none_is_asked_again_until_patience_is_over, close_world),
		cmocka_unit_test_teardown(patience_ends, close_world),
		cmocka_unit_test_teardown(a_new_link_is_asked_again, close_world),
		cmocka_unit_test_teardown(what_this_worker_lacks_makes_it_unable, close_world),
		cmocka_unit_test_teardown(an_order_that_is_gone_is_left, close_world),
		cmocka_unit_test_teardown(what_was_not_asked_for_is_a_breach, close_world),
		cmocka_unit_test_teardown(a_whole_contribution_is_fetched_and_scored, close_world),
		cmocka_unit_test_teardown(of_a_slow_member_what_it_sent, close_world),
		cmocka_unit_test_teardown(one_that_gives_another_contribution_withholds, close_world),
		cmocka_unit_test_teardown(silence_withholds_and_no_link_is_said, close_world),
		cmocka_unit_test_teardown(one_that_was_not_reached_is_asked_when_it_is_linked, close_world),
		cmocka_unit_test_teardown(links_that_end_when_the_author_is_asked_are_said, close_world),
		cmocka_unit_test_teardown(a_chunk_that_came_begins_the_count_anew, close_world),
		cmocka_unit_test_teardown(one_that_is_linked_anew_is_asked_before_it_withholds, close_world),
		cmocka_unit_test_teardown(a_drip_of_chunks_ends, close_world),
		cmocka_unit_test_teardown(a_slow_author_holds_no_average_up, close_world),
		cmocka_unit_test_teardown(one_that_still_gives_another_chunk_withholds_nothing, close_world),
		cmocka_unit_test_teardown(authors_give_side_by_side_and_are_scored_in_turn, close_world),
		cmocka_unit_test_teardown(a_score_that_nobody_wants_is_waited_for, close_world),
		cmocka_unit_test_teardown(what_cannot_be_scored_makes_it_unable, close_world),
		cmocka_unit_test_teardown(a_score_that_comes_late_is_dropped, close_world),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
