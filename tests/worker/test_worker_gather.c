/* test_worker_gather.c: all contributions to a round are fetched from three members, of which this
 * worker is one: what is asked of whom, and how it ends. */
#include "base/merkle.h"
#include "tests/common/check.h"
#include "worker/audit/gather.h"

#include <string.h>

enum { SELF = 1, MEMBERS = 3, CHUNKS = 4, BYTES = 100, TAG = 77, PATIENCE_US = 30 * 1000 * 1000 };

static struct {
	struct gather *g;
	int64_t now_us;
	uint8_t data[MEMBERS][CHUNKS][BYTES];
	struct rv_hash nodes[MEMBERS][2 * CHUNKS + MERKLE_LEVELS];
	bool linked[MEMBERS], busy[MEMBERS], own_is_there;
	struct auditor_roster roster;
	uint32_t taken; /* chunks, in their order */
	enum rv_err take_fails;
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

static bool linked(void *ctx, uint32_t member) {
	(void)ctx;
	return w.linked[member];
}

static bool is_busy(void *ctx, uint32_t member) {
	(void)ctx;
	return w.busy[member];
}

static enum rv_err take(void *ctx, const struct auditor_case *c, struct rv_errtext *et) {
	(void)ctx;
	assert_int_equal(c->chunk, w.taken++);
	assert_int_equal(c->n, MEMBERS);
	for (int i = 0; i < c->n; i++) {
		assert_int_equal(c->members[i]->member, i);
		assert_memory_equal(c->data[i], w.data[i][c->chunk], BYTES);
	}
	return w.take_fails == RV_OK ? RV_OK : rv_fail(et, w.take_fails, "it is not wanted");
}

static void open_world(void) {
	const struct gather_ops ops = {
		.chunk_bytes = chunk_bytes, .own = own, .linked = linked, .is_busy = is_busy, .take = take};
	memset(&w, 0, sizeof w);
	w.own_is_there = true;
	w.roster = (struct auditor_roster){.round = 7, .attempt = 2, .n_chunks = CHUNKS, .n = MEMBERS};
	for (uint32_t m = 0; m < MEMBERS; m++) {
		w.linked[m] = true;
		for (uint32_t c = 0; c < CHUNKS; c++) {
			memset(w.data[m][c], (int)(16 * m + c), BYTES);
			w.nodes[m][c] = merkle_leaf(c, w.data[m][c], BYTES);
		}
		merkle_build(w.nodes[m], CHUNKS);
		w.roster.members[m] =
			(struct auditor_member){.member = m, .weight = 1, .root = merkle_root(w.nodes[m], CHUNKS)};
	}
	assert_int_equal(gather_new(SELF, TAG, PATIENCE_US, &ops, &w.g, NULL), RV_OK);
}

static void begin(void) {
	open_world();
	assert_int_equal(gather_begin(w.g, w.now_us, &w.roster, NULL), RV_OK);
}

static int close_world(void **state) {
	(void)state;
	gather_free(w.g);
	return 0;
}

/* Takes the FETCH for a member, which is for that chunk. */
static void assert_asked(uint32_t member, uint32_t chunk) {
	struct peers_message m;
	struct frame_fetch f;
	assert_true(gather_send(w.g, w.now_us, member, &m));
	assert_int_equal(frame_fetch_decode(&m.header, m.part[0], &f, NULL), RV_OK);
	assert_int_equal(f.kind, FRAME_FETCH_CONTRIBUTION);
	assert_int_equal(f.round, 7);
	assert_int_equal(f.index, chunk);
	assert_false(gather_send(w.g, w.now_us, member, &m));
}

static bool is_asked(uint32_t member) {
	struct peers_message m;
	return gather_send(w.g, w.now_us, member, &m);
}

/* Gives what a member has of a chunk, in two slices; returns what receiving the last one says. */
static enum rv_err give(uint32_t member, uint32_t chunk) {
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)], body[FRAME_PIECE_BYTES + sizeof piece];
	const size_t bytes = piece_of(member, chunk, piece);
	enum rv_err e = RV_OK;
	for (size_t at = 0, n; at < bytes && e == RV_OK; at += n) {
		n = at == 0 ? 60 : bytes - at;
		const struct frame_piece p = {
			.of = {.kind = FRAME_FETCH_CONTRIBUTION, .part = FRAME_PART_PIECE, .round = 7, .index = chunk},
			.encoding = FRAME_RAW,
			.total = (uint32_t)bytes,
			.offset = (uint32_t)at,
			.data = piece + at,
			.data_bytes = (uint32_t)n};
		const struct frame_header h = frame_piece_encode(&p, TAG, body);
		memcpy(body + FRAME_PIECE_BYTES, piece + at, n);
		assert_true(gather_awaits(w.g, member, &h, body));
		e = gather_receive(w.g, w.now_us, member, &h, body, NULL);
	}
	return e;
}

static void give_none(uint32_t member, uint32_t chunk) {
	uint8_t body[FRAME_NONE_BYTES];
	const struct frame_fetch f = {
		.kind = FRAME_FETCH_CONTRIBUTION, .part = FRAME_PART_PIECE, .round = 7, .index = chunk};
	const struct frame_header h = frame_none_encode(&f, TAG, body);
	assert_true(gather_awaits(w.g, member, &h, body));
	assert_int_equal(gather_receive(w.g, w.now_us, member, &h, body, NULL), RV_OK);
}

static void assert_state(enum gather_state want) {
	enum rv_err e;
	struct rv_errtext et = {0};
	const enum gather_state is = gather_state(w.g, &e, &et);
	if (is != want)
		fail_msg("state %d, must be %d: %s", (int)is, (int)want, et.text);
}

static void assert_failed(enum rv_err want, const char *text) {
	enum rv_err e = RV_OK;
	struct rv_errtext et = {0};
	assert_int_equal(gather_state(w.g, &e, &et), GATHER_FAILED);
	assert_int_equal(e, want);
	assert_string_equal(et.text, text);
}

static void all_chunks_come_in_their_order(void **state) {
	(void)state;
	begin();
	for (uint32_t c = 0; c < CHUNKS; c++) {
		assert_false(is_asked(SELF));
		assert_asked(2, c);
		assert_asked(0, c);
		assert_int_equal(give(2, c), RV_OK);
		assert_int_equal(w.taken, c);
		assert_int_equal(give(0, c), RV_OK);
		assert_int_equal(w.taken, c + 1);
	}
	assert_state(GATHER_DONE);
	assert_true(gather_deadline_us(w.g) == INT64_MAX);
}

/* One that owes an answer to an audit is asked afterwards: answers come in the order of what was
 * asked. */
static void audits_come_first(void **state) {
	(void)state;
	begin();
	w.busy[0] = true;
	assert_false(is_asked(0));
	w.busy[0] = false;
	assert_asked(0, 0);
}

static void one_without_a_link_is_named(void **state) {
	(void)state;
	begin();
	assert_asked(0, 0);
	assert_int_equal(give(0, 0), RV_OK);
	w.linked[2] = false;
	w.now_us += PATIENCE_US - 1;
	gather_tick(w.g, w.now_us);
	assert_state(GATHER_FETCHING);
	w.now_us = gather_deadline_us(w.g);
	gather_tick(w.g, w.now_us);
	assert_failed(RV_E_TIMEOUT,
				  "member 2 does not give its contribution to round 8: it is not linked with this worker");
}

/* It may just be storing it, and is asked again after a while; then not for ever. */
static void one_that_has_nothing_is_asked_again_for_a_while(void **state) {
	(void)state;
	begin();
	assert_asked(2, 0);
	give_none(2, 0);
	assert_false(is_asked(2));
	w.now_us = gather_deadline_us(w.g);
	assert_true(w.now_us <= AUDITOR_AGAIN_US);
	gather_tick(w.g, w.now_us);
	assert_asked(2, 0);
	assert_asked(0, 0);
	assert_int_equal(give(0, 0), RV_OK);
	give_none(2, 0);
	w.now_us += PATIENCE_US;
	gather_tick(w.g, w.now_us);
	assert_failed(
		RV_E_TIMEOUT,
		"member 2 does not give its contribution to round 8: it is linked, and does not answer or has it no more");
}

static void another_contribution_than_committed_to_ends_it(void **state) {
	(void)state;
	begin();
	assert_asked(2, 0);
	w.data[2][0][5] ^= 1;
	assert_int_equal(give(2, 0), RV_OK); /* the link stays: what it gave is no breach of the protocol */
	assert_failed(RV_E_CORRUPT,
				  "member 2 gives a contribution to round 8 that is not the one that it has committed to");
	assert_int_equal(w.taken, 0);
}

static void a_chunk_that_is_not_taken_ends_it(void **state) {
	(void)state;
	begin();
	w.take_fails = RV_E_CORRUPT;
	assert_asked(2, 0);
	assert_asked(0, 0);
	assert_int_equal(give(2, 0), RV_OK);
	assert_int_equal(give(0, 0), RV_OK);
	assert_failed(RV_E_CORRUPT, "it is not wanted");
}

static void an_own_one_that_is_lost_is_said(void **state) {
	(void)state;
	open_world();
	w.own_is_there = false;
	assert_int_equal(gather_begin(w.g, w.now_us, &w.roster, NULL), RV_OK);
	assert_failed(RV_E_NOTFOUND, "this worker's own contribution to round 8 is no longer on its disk");
}

/* After it was stopped an answer is still to come: the member is asked for nothing before, and the
 * answer is no breach of the protocol. */
static void answers_to_what_is_not_wanted_are_dropped(void **state) {
	(void)state;
	begin();
	assert_asked(2, 0);
	gather_stop(w.g);
	assert_state(GATHER_IDLE);
	assert_int_equal(gather_begin(w.g, w.now_us, &w.roster, NULL), RV_OK);
	assert_false(is_asked(2));
	assert_int_equal(give(2, 0), RV_OK);
	assert_int_equal(w.taken, 0);
	assert_asked(2, 0);
	gather_link_down(w.g, 2); /* it is asked again over the next link */
	assert_asked(2, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(all_chunks_come_in_their_order, close_world),
		cmocka_unit_test_teardown(audits_come_first, close_world),
		cmocka_unit_test_teardown(one_without_a_link_is_named, close_world),
		cmocka_unit_test_teardown(one_that_has_nothing_is_asked_again_for_a_while, close_world),
		cmocka_unit_test_teardown(another_contribution_than_committed_to_ends_it, close_world),
		cmocka_unit_test_teardown(a_chunk_that_is_not_taken_ends_it, close_world),
		cmocka_unit_test_teardown(an_own_one_that_is_lost_is_said, close_world),
		cmocka_unit_test_teardown(answers_to_what_is_not_wanted_are_dropped, close_world),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
