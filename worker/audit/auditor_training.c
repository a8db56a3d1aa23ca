/* auditor_training.c: an audit of training (auditor.h) in its lane: the author's contribution is
 * fetched, and its inner states if its steps are to be repeated; then the owner scores, or
 * repeats. */
#include "worker/audit/lane.h"

#include "base/assert.h"
#include "base/merkle.h"
#include "base/slow_lines.h"

#include <string.h>

/* ---- results ---- */

bool training_is_away(const struct score_result *r) {
	return r->verdict == SCORE_UNREACHED || r->verdict == SCORE_CUT;
}

/* Returns true if the verdict says more than the one before, of an author that was away. */
static bool is_better(enum score_verdict verdict, uint8_t before) {
	return verdict != SCORE_UNREACHED && verdict != before;
}

void training_conclude(struct auditor *a, struct lane *l, enum score_verdict verdict) {
	struct order *o = lane_order(a, l);
	RV_ASSERT(o->scores && (!o->done || training_is_away(&o->scored)));
	if (!o->done || is_better(verdict, o->scored.verdict)) {
		a->news = true;
		o->scored =
			(struct score_result){.round = o->score.round, .member = o->score.member, .verdict = (uint8_t)verdict};
	}
	o->done = true;
	lane_leave(a, l);
}

/* ---- of a whole contribution ---- */

static bool has_chunk(const struct score_order *o, uint32_t chunk) {
	return slow_contributes(o->part, o->member, o->round, chunk);
}

/* Asks for chunk l->chunk, or that piece of an inner state. */
static void ask_for(struct lane *l, size_t chunk_bytes) {
	l->interrupted = false;
	l->pieces[0] = (struct piece){.from = &l->author,
								  .ready_us = INT64_MIN,
								  .chunk_bytes = chunk_bytes,
								  .bytes = chunk_bytes + piece_proof_bytes(l->n_chunks, l->chunk),
								  .at = l->room};
}

/* Returns the parameters of an inner state of so many bytes. */
static size_t params_of(size_t bytes) {
	return (bytes - INNER_HEAD_BYTES) / (2 * sizeof(float));
}

/* Asks for the first chunk from l->chunk on that the author has contributed; returns false if there
 * is none. */
static bool ask_for_chunk(struct auditor *a, struct lane *l) {
	const struct score_order *o = &lane_order(a, l)->score;
	while (l->chunk < l->n_chunks && !has_chunk(o, l->chunk))
		l->chunk++;
	if (l->chunk == l->n_chunks)
		return false;
	ask_for(l, a->ops.chunk_bytes(a->ops.ctx, o->round, o->codec, l->chunk));
	return true;
}

/* ---- of an inner state ---- */

/* Asks for the next piece of the stage's state; returns false if there is none. */
static bool ask_for_state(struct auditor *a, struct lane *l) {
	const size_t bytes = a->ops.inner_bytes(a->ops.ctx, &lane_order(a, l)->score), n = params_of(bytes);
	if (l->stage == STAGE_END && l->n_ends < l->what.n_pieces)
		l->chunk = l->what.pieces[l->n_ends];
	else if (l->stage == STAGE_END || l->chunk == l->n_chunks)
		return false;
	ask_for(l, inner_piece_bytes(n, l->chunk));
	return true;
}

/* Draws pieces of the state at the end: the first one, which has the number of updates, and
 * others. */
static void draw_pieces(struct auditor *a, struct lane *l, uint32_t all) {
	const uint32_t most = all < REPEAT_PIECES ? all : REPEAT_PIECES;
	l->what.n_pieces = 1;
	l->what.pieces[0] = 0;
	for (uint32_t i = 1; i < all; i++)
		if (a->ops.draw(a->ops.ctx, all - i) < most - (uint32_t)l->what.n_pieces)
			l->what.pieces[l->what.n_pieces++] = i;
}

/* Begins the next stage; returns false after the last one. */
static bool begin_stage(struct auditor *a, struct lane *l) {
	const struct score_order *o = &lane_order(a, l)->score;
	if (!l->repeats || l->stage == STAGE_END)
		return false;
	l->stage = l->stage == STAGE_SENT ? STAGE_BEGIN : STAGE_END;
	l->author.root = l->stage == STAGE_BEGIN ? o->inner_begin : o->inner_end;
	l->n_chunks = inner_state_pieces(params_of(a->ops.inner_bytes(a->ops.ctx, o)));
	l->chunk = 0;
	l->next = l->stage == STAGE_BEGIN ? l->what.inner : l->what.ends;
	if (l->stage == STAGE_END)
		draw_pieces(a, l, l->n_chunks);
	return true;
}

/* Asks for what comes next; returns false if all is here. */
static bool ask_for_next(struct auditor *a, struct lane *l) {
	while (!(l->stage == STAGE_SENT ? ask_for_chunk(a, l) : ask_for_state(a, l)))
		if (!begin_stage(a, l))
			return false;
	return true;
}

/* ---- begin and end ---- */

/* Sets the time that so many bytes have: a drip must not hold an audit up. */
static void give_time(const struct auditor *a, struct lane *l, size_t bytes) {
	enum { US = 1000000 };
	const int64_t most_us = (int64_t)SCORE_REPEAT_MOST_S * US;
	l->most_us = (int64_t)((uint64_t)bytes * US / SCORE_LEAST_BYTES_PER_S);
	if (l->repeats && l->most_us > most_us)
		l->most_us = most_us;
	l->all_bytes = bytes;
	l->got_bytes = 0;
	l->paced_us = l->latest_us + a->patience_us;
	l->latest_us = l->paced_us + l->most_us;
}

/* Takes memory for the contribution, for inner states if its steps are repeated, and for a piece.
 * Returns false if there is none, or this worker cannot do what is ordered. */
static bool take_room(struct auditor *a, struct lane *l, const struct score_order *o) {
	enum { PIECE_BYTES = NET_MAX_CHUNK_BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash), ALIGN = 64 };
	const size_t inner = l->repeats ? a->ops.inner_bytes(a->ops.ctx, o) : 0;
	const size_t at = (l->sent_bytes + ALIGN - 1) / ALIGN * ALIGN;
	const size_t ends = at + (inner + ALIGN - 1) / ALIGN * ALIGN;
	const size_t room = l->repeats ? ends + (size_t)REPEAT_PIECES * INNER_PIECE_BYTES : l->sent_bytes;
	if (l->sent_bytes == 0 || (l->repeats && inner == 0))
		return false;
	l->memory = a->ops.take(a->ops.ctx, room + PIECE_BYTES);
	if (l->memory == NULL)
		return false;
	uint8_t *memory = l->memory;
	l->what = (struct auditor_repeat){.encoded = memory, .inner = memory + at, .ends = memory + ends};
	l->room = memory + room;
	l->next = memory;
	give_time(a, l, l->sent_bytes + inner);
	return true;
}

void training_begin(struct auditor *a, int64_t now_us, struct lane *l) {
	const struct score_order *o = &lane_order(a, l)->score;
	l->roster = NULL;
	l->author = (struct auditor_member){.member = o->member, .codec = o->codec, .part = o->part, .root = o->root};
	l->n_chunks = o->n_chunks;
	l->chunk = 0;
	l->repeats = o->repeat;
	l->n_ends = 0;
	l->sent_bytes = o->member != a->self ? a->ops.sent_bytes(a->ops.ctx, o) : 0;
	l->latest_us = now_us;
	l->n = 1;
	if (!take_room(a, l, o) || !ask_for_next(a, l)) {
		l->n = 0;
		training_conclude(a, l, SCORE_UNABLE);
	}
}

/* Gives the owner a contribution to score, if one is here and it has none. */
static void score_next(struct auditor *a) {
	for (int i = LANE_TRAINING; i < LANES && !a->scoring; i++) {
		struct lane *l = &a->lanes[i];
		uint8_t *encoded = l->memory;
		if (!l->whole || encoded == NULL)
			continue;
		const struct score_order *o = &lane_order(a, l)->score;
		a->scoring = true;
		l->memory = NULL;
		if (l->repeats)
			a->ops.repeat(a->ops.ctx, o, &l->what);
		else
			a->ops.score(a->ops.ctx, o, encoded);
	}
}

void training_keep(struct auditor *a, int64_t now_us, struct lane *l) {
	const struct piece p = l->pieces[0];
	memcpy(l->next, p.at, p.chunk_bytes);
	l->next += l->stage == STAGE_END ? (size_t)INNER_PIECE_BYTES : p.chunk_bytes;
	l->got_bytes += p.chunk_bytes;
	l->n_ends += l->stage == STAGE_END;
	l->chunk++;
	auditor_wait_on(a, now_us, l);
	if (ask_for_next(a, l))
		return;
	RV_ASSERT(l->repeats || l->next == (uint8_t *)l->memory + l->sent_bytes);
	l->whole = true;
	l->n = 0;
	l->until_us = INT64_MAX;
	score_next(a);
}

void auditor_scored(struct auditor *a, const struct score_result *result) {
	RV_ASSERT(a->scoring);
	a->scoring = false;
	for (int i = LANE_TRAINING; i < LANES; i++) {
		struct lane *l = &a->lanes[i];
		struct order *o = l->whole && l->memory == NULL ? lane_order(a, l) : NULL;
		if (o == NULL || o->score.round != result->round || o->score.member != result->member)
			continue; /* or it is ordered no more */
		o->done = true;
		o->scored = *result;
		a->news = true;
		lane_leave(a, l);
	}
	score_next(a);
}

/* ---- time ---- */

/* An author that still owes another answer could not be asked for this one, nor could one whose
 * link has ended, and that has a new one. */
static bool is_not_asked(struct auditor *a, const struct lane *l) {
	const struct piece *p = &l->pieces[0];
	const bool anew = l->interrupted && auditor_is_linked(a, p);
	return p->state == PIECE_WANTED &&
		   (anew || auditor_waits_for_another(a, l, p) || owed_find(&a->owed, p->from->member) >= 0);
}

enum score_verdict training_late(const struct auditor *a, const struct lane *l, enum score_verdict verdict) {
	const struct piece *p = &l->pieces[0];
	if (!auditor_is_linked(a, p))
		return SCORE_UNREACHED;
	return auditor_hears_a_relay(a, p) ? SCORE_UNABLE : verdict;
}

void training_give_up(struct auditor *a, int64_t now_us, struct lane *l) {
	if (now_us < l->latest_us && is_not_asked(a, l))
		auditor_wait_on(a, now_us, l);
	else
		training_conclude(a, l,
						  training_late(a, l, l->repeats && now_us >= l->latest_us ? SCORE_SLOW : SCORE_WITHHELD));
}

void training_count_cut(struct auditor *a, int64_t now_us, struct lane *l) {
	struct piece *p = &l->pieces[0];
	p->ready_us = now_us + AUDITOR_AFTER_CUT_US;
	if (++p->cuts < AUDITOR_CUTS)
		return;
	lane_order(a, l)->again_us = now_us + a->patience_us;
	training_conclude(a, l, p->relayed ? SCORE_UNABLE : SCORE_CUT);
}

bool training_is_behind(const struct lane *l, int64_t now_us) {
	enum { LOOKS_AFTER = 4 };
	const int64_t since_us = now_us - l->paced_us;
	return since_us >= l->most_us / LOOKS_AFTER &&
		   (double)l->got_bytes * (double)l->most_us < (double)l->all_bytes * (double)since_us;
}
