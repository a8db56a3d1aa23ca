/* auditor_rig.c: see auditor_rig.h. */
#include "tests/worker/auditor_rig.h"

#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

struct auditor_world w;
struct document doc;

static size_t chunk_bytes(void *ctx, uint64_t round, uint8_t codec, uint32_t chunk) {
	(void)ctx, (void)round, (void)codec, (void)chunk;
	return BYTES;
}

size_t piece_of(uint32_t member, uint32_t chunk, uint8_t *out) {
	const struct merkle_range r = {CHUNKS, chunk, 1};
	struct rv_hash proof[MERKLE_MAX_PROOF];
	const uint32_t n = merkle_prove(w.nodes[member], &r, proof);
	memcpy(out, w.data[member][chunk], BYTES);
	memcpy(out + BYTES, proof, n * sizeof proof[0]);
	return BYTES + n * sizeof proof[0];
}

static size_t sum_bytes(void *ctx, uint64_t round, uint32_t chunk) {
	(void)ctx, (void)round, (void)chunk;
	return BYTES;
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
	assert_int_equal(c->kind, w.kind);
	for (int i = 0; i < c->n; i++) {
		if (c->kind != AUDIT_OF_MEAN)
			assert_int_equal(c->members[i]->member, i);
		assert_memory_equal(c->data[i], w.data[i][c->chunk], BYTES);
	}
	memset(found, 5, sizeof *found);
	return w.verdict;
}

static bool is_beyond(void *ctx, const struct auditor_case *c) {
	(void)ctx;
	w.looked++;
	w.had = 0;
	assert_int_equal(c->n, MEMBERS);
	for (int i = 0; i < c->n; i++) {
		assert_int_equal(c->members[i]->member, i);
		if (c->data[i] == NULL)
			continue;
		assert_memory_equal(c->data[i], w.data[i][c->chunk], BYTES);
		w.had |= 1u << i;
	}
	return w.beyond;
}

static bool linked(void *ctx, uint32_t member) {
	(void)ctx;
	return w.linked[member];
}

static bool relayed(void *ctx, uint32_t member) {
	(void)ctx, (void)member;
	return w.relayed;
}

static bool is_busy(void *ctx, uint32_t member) {
	(void)ctx, (void)member;
	return w.busy;
}

static void *take(void *ctx, size_t bytes) {
	(void)ctx;
	w.taken += !w.is_short;
	return w.is_short ? NULL : malloc(bytes);
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

static void drop(void *ctx) {
	(void)ctx;
	assert_true(w.scored != NULL);
}

void open_world(void) {
	static uint64_t memory[1 << 15];
	const struct auditor_ops ops = {.chunk_bytes = chunk_bytes,
									.sum_bytes = sum_bytes,
									.own = own,
									.judge = judge,
									.is_beyond = is_beyond,
									.linked = linked,
									.relayed = relayed,
									.is_busy = is_busy,
									.take = take,
									.give = give,
									.sent_bytes = sent_bytes,
									.score = score,
									.drop = drop};
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
			(struct member_ref){.member = m, .weight = 1, .contribution.root = merkle_root(w.nodes[m], CHUNKS)};
	}
}

int close_world(void **state) {
	(void)state;
	auditor_release(w.a);
	free(w.scored);
	assert_int_equal(w.taken, 0);
	return 0;
}

void order(uint32_t attempt) {
	doc.phase = RUN_OPEN;
	doc.round = 8;
	doc.n_audits = 1;
	doc.audits[0] = (struct audit_order){.round = 7, .attempt = attempt, .chunk = CHUNK};
	auditor_follow(w.a, w.now_us, &doc);
}

void begin(void) {
	open_world();
	auditor_note_roster(w.a, &doc);
	order(2);
}

bool is_asked(uint32_t member) {
	struct peers_message m;
	struct frame_fetch f;
	if (!auditor_send(w.a, w.now_us, member, &m))
		return false;
	assert_int_equal(frame_fetch_decode(&m.header, m.part[0], &f, NULL), RV_OK);
	assert_true(f.kind == FRAME_FETCH_CONTRIBUTION && f.round == 7 && f.index == w.chunk);
	return true;
}

enum rv_err answer_slice(uint32_t member, const uint8_t *piece, size_t n, size_t at, size_t slice) {
	uint8_t body[FRAME_PIECE_BYTES + NET_MAX_SLICE_BYTES];
	const size_t bytes = n - at < slice ? n - at : slice;
	const struct frame_piece p = {.of = {.kind = FRAME_FETCH_CONTRIBUTION, .round = 7, .index = w.chunk},
								  .offset = (uint32_t)at,
								  .total = (uint32_t)n,
								  .data = piece + at,
								  .data_bytes = (uint32_t)bytes};
	struct rv_errtext et;
	const struct frame_header h = frame_piece_encode(&p, TAG, body);
	memcpy(body + FRAME_PIECE_BYTES, piece + at, bytes);
	return auditor_receive(w.a, w.now_us, member, &h, body, &et);
}

enum rv_err answer_bytes(uint32_t member, const uint8_t *piece, size_t n, size_t slice) {
	enum rv_err e = RV_OK;
	for (size_t at = 0; at < n && e == RV_OK; at += slice)
		e = answer_slice(member, piece, n, at, slice);
	return e;
}

enum rv_err answer(uint32_t member) {
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	return answer_bytes(member, piece, piece_of(member, w.chunk, piece), 64);
}

enum rv_err answer_none(uint32_t member) {
	const struct frame_fetch f = {.kind = FRAME_FETCH_CONTRIBUTION, .round = 7, .index = w.chunk};
	uint8_t body[FRAME_NONE_BYTES];
	struct rv_errtext et;
	const struct frame_header h = frame_none_encode(&f, TAG, body);
	return auditor_receive(w.a, w.now_us, member, &h, body, &et);
}

const struct audit_result *result(void) {
	static struct report r;
	auditor_report(w.a, &r);
	assert_int_equal(r.n_verdicts, 1);
	assert_true(r.verdicts[0].round == 7 && r.verdicts[0].chunk == CHUNK);
	assert_int_equal(audit_results_check(r.verdicts, r.n_verdicts, NULL), RV_OK);
	return &r.verdicts[0];
}

void expect(enum audit_verdict verdict, uint32_t member) {
	assert_int_equal(result()->verdict, verdict);
	assert_int_equal(result()->member, member);
	assert_true(auditor_has_news(w.a));
	assert_false(auditor_has_news(w.a));
	assert_int_equal(w.taken, 0);
}

bool is_open(void) {
	struct report r;
	auditor_report(w.a, &r);
	return r.n_verdicts == 0;
}
