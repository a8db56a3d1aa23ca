/* An auditor that is to repeat an author's steps: what it asks for, and what it concludes. */
#include "base/merkle.h"
#include "tests/common/check.h"
#include "train/inner_state.h"
#include "worker/audit/auditor.h"

#include <stdlib.h>
#include <string.h>

enum {
	SELF = 1,
	AUTHOR = 2,
	ROUND = 7,
	TAG = 77,
	CHUNKS = 3,
	BYTES = 101,
	PARAMS = 20 * INNER_PIECE_BYTES / 8, /* 21 pieces, the last one of 8 bytes */
	PIECES = 21,
	PATIENCE_US = 30 * 1000 * 1000
};

/* What the author has committed to: a contribution, and inner states before and after its steps. */
struct committed {
	uint8_t *bytes;
	uint32_t n;
	struct rv_hash nodes[2 * PIECES + MERKLE_LEVELS];
};
static struct committed sent, before, after;

static struct {
	struct auditor *a;
	int64_t now_us;
	bool linked, busy, relayed;
	size_t inner_bytes; /* 0: this worker cannot repeat */
	int taken, given;   /* given: to be repeated */
	struct auditor_repeat what;
	uint32_t drawn;
	int dropped, scored;
} w;

static size_t bytes_of(const struct committed *c, uint32_t i) {
	return c == &sent ? BYTES : inner_piece_bytes(PARAMS, i);
}

static size_t at_of(const struct committed *c, uint32_t i) {
	return (size_t)i * (c == &sent ? (size_t)BYTES : (size_t)INNER_PIECE_BYTES);
}

static void commit(struct committed *c, uint32_t n, uint8_t fill) {
	c->n = n;
	c->bytes = malloc(at_of(c, n - 1) + bytes_of(c, n - 1));
	for (uint32_t i = 0; i < n; i++) {
		memset(c->bytes + at_of(c, i), fill + (int)i, bytes_of(c, i));
		c->nodes[i] = merkle_leaf(i, c->bytes + at_of(c, i), bytes_of(c, i));
	}
	merkle_build(c->nodes, n);
}

static size_t chunk_bytes(void *ctx, uint64_t round, uint8_t codec, uint32_t chunk) {
	(void)ctx, (void)round, (void)codec, (void)chunk;
	return BYTES;
}

static bool relayed(void *ctx, uint32_t member) {
	(void)ctx, (void)member;
	return w.relayed;
}

static bool linked(void *ctx, uint32_t member) {
	(void)ctx, (void)member;
	return w.linked;
}

static bool is_busy(void *ctx, uint32_t member) {
	(void)ctx, (void)member;
	return w.busy;
}

static void *take(void *ctx, size_t bytes) {
	(void)ctx;
	w.taken++;
	return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void give(void *ctx, void *memory) {
	(void)ctx;
	w.taken--;
	free(memory);
}

static size_t sent_bytes(void *ctx, const struct score_order *o) {
	(void)ctx, (void)o;
	return (size_t)CHUNKS * BYTES;
}

static size_t inner_bytes(void *ctx, const struct score_order *o) {
	(void)ctx, (void)o;
	return w.inner_bytes;
}

/* The last ones, as far as it can be chosen. */
static uint32_t draw(void *ctx, uint32_t below) {
	(void)ctx;
	w.drawn++;
	return below - 1;
}

static void repeat(void *ctx, const struct score_order *o, const struct auditor_repeat *what) {
	(void)ctx;
	assert_true(o->round == ROUND && o->member == AUTHOR);
	w.given++;
	w.taken--;
	w.what = *what;
}

static void drop(void *ctx) {
	(void)ctx;
	w.dropped++;
}

static void score(void *ctx, const struct score_order *o, uint8_t *encoded) {
	(void)ctx;
	assert_false(o->repeat);
	w.scored++;
	w.taken--;
	free(encoded);
}

static struct score_order order_of(uint32_t member) {
	return (struct score_order){.round = ROUND,
								.member = member,
								.n_chunks = CHUNKS,
								.share = 1,
								.root = merkle_root(sent.nodes, CHUNKS),
								.n_pieces = 1,
								.pieces = {{0, 1}},
								.repeat = true,
								.inner_begin = merkle_root(before.nodes, PIECES),
								.inner_end = merkle_root(after.nodes, PIECES)};
}

static struct document doc;

static int open_world(void **state) {
	static uint64_t memory[1 << 16];
	const struct auditor_ops ops = {.chunk_bytes = chunk_bytes,
									.linked = linked,
									.relayed = relayed,
									.is_busy = is_busy,
									.take = take,
									.give = give,
									.sent_bytes = sent_bytes,
									.inner_bytes = inner_bytes,
									.draw = draw,
									.score = score,
									.repeat = repeat,
									.drop = drop};
	(void)state;
	assert_true(auditor_size() <= sizeof memory);
	memset(&w, 0, sizeof w);
	w.linked = true;
	w.inner_bytes = inner_state_bytes(PARAMS);
	w.a = auditor_init(memory, SELF, TAG, PATIENCE_US, &ops);
	commit(&sent, CHUNKS, 10);
	commit(&before, PIECES, 40);
	commit(&after, PIECES, 80);
	assert_int_equal(inner_state_pieces(PARAMS), PIECES);
	doc = (struct document){.phase = RUN_OPEN, .round = ROUND + 1, .n_scores = 1, .scores = {order_of(AUTHOR)}};
	auditor_follow(w.a, w.now_us, &doc);
	return 0;
}

static int close_world(void **state) {
	(void)state;
	auditor_release(w.a);
	free(w.what.encoded);
	assert_int_equal(w.taken, 0);
	free(sent.bytes);
	free(before.bytes);
	free(after.bytes);
	return 0;
}

static bool asks(uint32_t member, struct frame_fetch *f) {
	struct peers_message m;
	return auditor_send(w.a, w.now_us, member, &m) && frame_fetch_decode(&m.header, m.part[0], f, NULL) == RV_OK;
}

static const struct committed *committed_of(const struct frame_fetch *f) {
	if (f->kind == FRAME_FETCH_CONTRIBUTION)
		return &sent;
	assert_int_equal(f->kind, FRAME_FETCH_INNER);
	return f->round == ROUND - 1 ? &before : &after;
}

/* Answers with that piece; `damage`: with a bit of it changed. */
static void answer(const struct frame_fetch *f, bool damage) {
	static uint8_t piece[INNER_PIECE_BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)],
		body[FRAME_PIECE_BYTES + NET_MAX_SLICE_BYTES];
	const struct committed *c = committed_of(f);
	const struct merkle_range range = {c->n, f->index, 1};
	struct rv_hash proof[MERKLE_MAX_PROOF];
	const size_t n = bytes_of(c, f->index), hashes = merkle_prove(c->nodes, &range, proof),
				 all = n + hashes * sizeof proof[0];
	memcpy(piece, c->bytes + at_of(c, f->index), n);
	memcpy(piece + n, proof, hashes * sizeof proof[0]);
	piece[n / 2] ^= damage;
	for (size_t at = 0, part; at < all; at += part) {
		part = all - at < NET_MAX_SLICE_BYTES ? all - at : NET_MAX_SLICE_BYTES;
		const struct frame_piece p = {
			.of = *f, .offset = (uint32_t)at, .total = (uint32_t)all, .data = piece + at, .data_bytes = (uint32_t)part};
		const struct frame_header h = frame_piece_encode(&p, TAG, body);
		memcpy(body + FRAME_PIECE_BYTES, piece + at, part);
		assert_ok(auditor_receive(w.a, w.now_us, AUTHOR, &h, body, &et));
	}
}

/* Gives the first bytes of what it is asked for, or the next ones. */
static void give_slice(void) {
	enum { SLICE = 1, ALL = 101 };
	static uint8_t body[FRAME_PIECE_BYTES + SLICE];
	static struct frame_fetch of;
	static uint32_t at;
	if (asks(AUTHOR, &of))
		at = 0;
	const struct committed *c = committed_of(&of);
	const struct merkle_range range = {c->n, of.index, 1};
	struct rv_hash proof[MERKLE_MAX_PROOF];
	const size_t hashes = merkle_prove(c->nodes, &range, proof);
	const uint32_t total = (uint32_t)(bytes_of(c, of.index) + hashes * sizeof proof[0]);
	const struct frame_piece p = {.of = of, .offset = at, .total = total, .data = body, .data_bytes = SLICE};
	const struct frame_header h = frame_piece_encode(&p, TAG, body);
	at += SLICE;
	assert_ok(auditor_receive(w.a, w.now_us, AUTHOR, &h, body, &et));
}

/* Answers the next n questions. */
static void answer_next(int n) {
	struct frame_fetch f;
	for (int i = 0; i < n; i++) {
		assert_true(asks(AUTHOR, &f));
		answer(&f, false);
	}
}

static const struct score_result *result(void) {
	static struct report r;
	auditor_report(w.a, &r);
	return r.n_scores > 0 ? &r.scores[0] : NULL;
}

/* ---- */

static void all_that_is_needed_is_fetched(void **state) {
	struct frame_fetch f;
	(void)state;
	answer_next(CHUNKS + PIECES);
	assert_true(w.given == 0 && w.drawn == PIECES - 1);
	answer_next(REPEAT_PIECES);
	assert_int_equal(w.given, 1);
	assert_false(asks(AUTHOR, &f));
	assert_memory_equal(w.what.encoded, sent.bytes, (size_t)CHUNKS * BYTES);
	assert_int_equal((uintptr_t)w.what.inner % sizeof(uint64_t), 0);
	assert_memory_equal(w.what.inner, before.bytes, inner_state_bytes(PARAMS));
	/* The first piece, and those that were drawn. */
	assert_true(w.what.n_pieces == REPEAT_PIECES && w.what.pieces[0] == 0);
	for (int i = 1; i < REPEAT_PIECES; i++)
		assert_int_equal(w.what.pieces[i], PIECES - REPEAT_PIECES + i);
	for (int i = 0; i < REPEAT_PIECES; i++)
		assert_memory_equal(w.what.ends + (size_t)i * INNER_PIECE_BYTES, after.bytes + at_of(&after, w.what.pieces[i]),
							bytes_of(&after, w.what.pieces[i]));
	const struct score_result r = {.round = ROUND, .member = AUTHOR, .verdict = SCORE_REPEATED, .gain = 0.1f};
	assert_null(result());
	auditor_scored(w.a, &r);
	assert_true(result()->verdict == SCORE_REPEATED && result()->gain == 0.1f);
	assert_true(auditor_has_news(w.a));
}

/* In each stage: the contribution, the state before the steps, that after them. */
static const int stages[] = {1, CHUNKS + 3, CHUNKS + PIECES + 2};

static void what_was_not_committed_to_is_withheld(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
		struct frame_fetch f;
		answer_next(stages[i]);
		assert_true(asks(AUTHOR, &f));
		answer(&f, true);
		assert_int_equal(result()->verdict, SCORE_WITHHELD);
		assert_int_equal(w.taken, 0);
		(void)close_world(NULL);
		(void)open_world(NULL);
	}
}

static void links_that_end_are_cut_in_each_stage(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
		answer_next(stages[i]);
		for (int cut = 0; cut < AUDITOR_CUTS; cut++) {
			struct frame_fetch f;
			assert_true(result() == NULL && asks(AUTHOR, &f));
			auditor_link_down(w.a, w.now_us, AUTHOR, true);
			w.now_us += AUDITOR_AFTER_CUT_US;
			auditor_tick(w.a, w.now_us);
		}
		assert_int_equal(result()->verdict, SCORE_CUT);
		assert_int_equal(w.taken, 0);
		(void)close_world(NULL);
		(void)open_world(NULL);
	}
}

static void silence_in_the_middle_is_withheld(void **state) {
	struct frame_fetch f;
	(void)state;
	answer_next(CHUNKS + 2);
	assert_true(asks(AUTHOR, &f));
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_int_equal(result()->verdict, SCORE_WITHHELD);
}

static void one_that_cannot_repeat_says_so(void **state) {
	(void)state;
	(void)close_world(NULL);
	(void)open_world(NULL);
	doc.n_scores = 0;
	auditor_follow(w.a, w.now_us, &doc);
	w.inner_bytes = 0;
	doc.n_scores = 1;
	auditor_follow(w.a, w.now_us, &doc);
	assert_int_equal(result()->verdict, SCORE_UNABLE);
}

/* Two would take twice the memory. */
static void one_at_a_time_is_repeated(void **state) {
	struct frame_fetch f;
	(void)state;
	doc.n_scores = 2;
	doc.scores[1] = order_of(AUTHOR + 1);
	auditor_follow(w.a, w.now_us, &doc);
	assert_int_equal(w.taken, 1);
	assert_false(asks(AUTHOR + 1, &f));
	answer_next(CHUNKS + PIECES + REPEAT_PIECES);
	assert_false(asks(AUTHOR + 1, &f));
	const struct score_result r = {.round = ROUND, .member = AUTHOR, .verdict = SCORE_REPEATED};
	auditor_scored(w.a, &r);
	auditor_tick(w.a, w.now_us);
	assert_true(asks(AUTHOR + 1, &f) && f.kind == FRAME_FETCH_CONTRIBUTION && f.index == 0);
}

/* ---- authors that drip ---- */

/* The author answers, so that patience never ends, by a piece now and then. */
static void drip(int64_t until_us) {
	while (w.now_us < until_us && result() == NULL) {
		answer_next(1);
		w.now_us = w.now_us + PATIENCE_US / 2 < until_us ? w.now_us + PATIENCE_US / 2 : until_us;
		auditor_tick(w.a, w.now_us);
	}
}

static int64_t most_us(void) {
	return (int64_t)((CHUNKS * BYTES + inner_state_bytes(PARAMS)) * 1000000 / SCORE_LEAST_BYTES_PER_S);
}

static void a_drip_is_slow(void **state) {
	(void)state;
	drip(PATIENCE_US + most_us() - 1);
	assert_null(result());
	w.now_us = PATIENCE_US + most_us();
	auditor_tick(w.a, w.now_us);
	assert_int_equal(result()->verdict, SCORE_SLOW);
	assert_int_equal(w.taken, 0);
	w.now_us += 10 * PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_int_equal(w.taken, 0); /* it is not asked again */
}

/* As the size grows, the time does no longer. */
static void a_large_state_has_only_so_much_time(void **state) {
	enum { LARGE_PARAMS = 40 << 20 };
	(void)state;
	doc.n_scores = 0;
	auditor_follow(w.a, w.now_us, &doc);
	w.inner_bytes = inner_state_bytes(LARGE_PARAMS);
	doc.n_scores = 1;
	auditor_follow(w.a, w.now_us, &doc);
	const int64_t end_us = PATIENCE_US + (int64_t)SCORE_REPEAT_MOST_S * 1000000;
	assert_true(auditor_deadline_us(w.a) == PATIENCE_US);
	while (w.now_us < end_us - 1) { /* a byte now and then */
		w.now_us = w.now_us + PATIENCE_US / 2 < end_us - 1 ? w.now_us + PATIENCE_US / 2 : end_us - 1;
		give_slice();
		auditor_tick(w.a, w.now_us);
		assert_null(result());
	}
	w.now_us = end_us;
	auditor_tick(w.a, w.now_us);
	assert_int_equal(result()->verdict, SCORE_SLOW);
}

/* Both lines carry something else then. */
static void an_exchange_takes_no_time_of_it(void **state) {
	(void)state;
	auditor_note_exchange(w.a, w.now_us, true);
	w.now_us += 2 * most_us();
	auditor_tick(w.a, w.now_us);
	auditor_note_exchange(w.a, w.now_us, false);
	auditor_tick(w.a, w.now_us);
	assert_null(result());
	drip(2 * most_us() + PATIENCE_US + most_us() - 1);
	assert_null(result());
	w.now_us = 2 * most_us() + PATIENCE_US + most_us();
	auditor_tick(w.a, w.now_us);
	assert_int_equal(result()->verdict, SCORE_SLOW);
}

static void a_drip_gives_up_its_place(void **state) {
	struct frame_fetch f;
	(void)state;
	doc.n_scores = 2;
	doc.scores[1] = order_of(AUTHOR + 1);
	auditor_follow(w.a, w.now_us, &doc);
	w.now_us = PATIENCE_US / 2;
	answer_next(1);
	w.now_us = PATIENCE_US + most_us() / 4 - 1;
	give_slice();
	auditor_tick(w.a, w.now_us);
	assert_true(result() == NULL && !asks(AUTHOR + 1, &f));
	w.now_us++;
	auditor_tick(w.a, w.now_us);
	assert_int_equal(result()->verdict, SCORE_SLOW);
	assert_true(asks(AUTHOR + 1, &f));
	assert_int_equal(w.taken, 1);
}

/* One that gives its part of the time goes on. */
static void one_that_keeps_pace_keeps_its_place(void **state) {
	struct frame_fetch f;
	(void)state;
	doc.n_scores = 2;
	doc.scores[1] = order_of(AUTHOR + 1);
	auditor_follow(w.a, w.now_us, &doc);
	answer_next(CHUNKS + PIECES / 4 + 1);
	w.now_us = PATIENCE_US + most_us() / 4;
	give_slice();
	auditor_tick(w.a, w.now_us);
	assert_true(result() == NULL && !asks(AUTHOR + 1, &f));
	w.now_us += PATIENCE_US - 1;
	auditor_tick(w.a, w.now_us); /* by now a third */
	assert_int_equal(result()->verdict, SCORE_SLOW);
}

/* ---- other orders ---- */

/* The coordinator was restarted, and knows no roots any more. */
static void a_score_of_the_same_is_another_order(void **state) {
	(void)state;
	answer_next(CHUNKS + PIECES + REPEAT_PIECES);
	assert_int_equal(w.given, 1);
	doc.scores[0].repeat = false;
	doc.scores[0].inner_begin = doc.scores[0].inner_end = (struct rv_hash){{0}};
	auditor_follow(w.a, w.now_us, &doc);
	assert_int_equal(w.dropped, 1);
	answer_next(CHUNKS);
	assert_int_equal(w.scored, 0); /* until the owner has ended the other one */
	const struct score_result late = {.round = ROUND, .member = AUTHOR, .verdict = SCORE_REPEATED};
	auditor_scored(w.a, &late);
	assert_null(result());
	assert_int_equal(w.scored, 1);
	const struct score_result r = {.round = ROUND, .member = AUTHOR, .verdict = SCORE_MEASURED, .gain = 1, .own = 1};
	auditor_scored(w.a, &r);
	assert_int_equal(result()->verdict, SCORE_MEASURED);
}

static void what_is_ordered_no_more_is_dropped(void **state) {
	(void)state;
	answer_next(CHUNKS + PIECES + REPEAT_PIECES);
	auditor_follow(w.a, w.now_us, &doc);
	assert_int_equal(w.dropped, 0);
	doc.n_scores = 0;
	auditor_follow(w.a, w.now_us, &doc);
	auditor_follow(w.a, w.now_us, &doc);
	assert_int_equal(w.dropped, 1);
	const struct score_result r = {.round = ROUND, .member = AUTHOR, .verdict = SCORE_UNABLE};
	auditor_scored(w.a, &r);
	assert_int_equal(w.dropped, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_drip_gives_up_its_place, open_world, close_world),
		cmocka_unit_test_setup_teardown(a_drip_is_slow, open_world, close_world),
		cmocka_unit_test_setup_teardown(a_large_state_has_only_so_much_time, open_world, close_world),
		cmocka_unit_test_setup_teardown(a_score_of_the_same_is_another_order, open_world, close_world),
		cmocka_unit_test_setup_teardown(all_that_is_needed_is_fetched, open_world, close_world),
		cmocka_unit_test_setup_teardown(an_exchange_takes_no_time_of_it, open_world, close_world),
		cmocka_unit_test_setup_teardown(one_that_keeps_pace_keeps_its_place, open_world, close_world),
		cmocka_unit_test_setup_teardown(what_is_ordered_no_more_is_dropped, open_world, close_world),
		cmocka_unit_test_setup_teardown(links_that_end_are_cut_in_each_stage, open_world, close_world),
		cmocka_unit_test_setup_teardown(one_at_a_time_is_repeated, open_world, close_world),
		cmocka_unit_test_setup_teardown(one_that_cannot_repeat_says_so, open_world, close_world),
		cmocka_unit_test_setup_teardown(silence_in_the_middle_is_withheld, open_world, close_world),
		cmocka_unit_test_setup_teardown(what_was_not_committed_to_is_withheld, open_world, close_world),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
