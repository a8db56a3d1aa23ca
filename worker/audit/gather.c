/* gather.c: see gather.h. */
#include "worker/audit/gather.h"

#include "base/assert.h"
#include "base/merkle.h"
#include "base/round_number.h"
#include "base/slow_lines.h"
#include "worker/audit/piece.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = NET_MAX_CHUNK_BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash) };

struct gather {
	struct gather_ops ops;
	uint32_t self;
	uint64_t run_tag;
	int64_t patience_us;
	enum gather_state state;
	enum rv_err err; /* FAILED */
	struct rv_errtext why;
	uint32_t blamed; /* NET_NO_MEMBER: nobody */
	const struct auditor_roster *roster;
	uint32_t chunk;
	int n;
	struct piece pieces[NET_MAX_ROW];
	uint8_t *memory;
	int64_t until_us, latest_us; /* for the next byte, for all of it */
	struct owed_answers owed;
	uint8_t body[FRAME_FETCH_BYTES];
};

enum rv_err gather_new(uint32_t self_member, uint64_t run_tag, int64_t patience_us, const struct gather_ops *ops,
					   struct gather **out, struct rv_errtext *et) {
	struct gather *g = calloc(1, sizeof *g);
	if (!g)
		return rv_fail(et, RV_E_NOMEM, "no memory to gather contributions");
	g->ops = *ops;
	g->self = self_member;
	g->run_tag = run_tag;
	g->patience_us = patience_us;
	g->blamed = NET_NO_MEMBER;
	*out = g;
	return RV_OK;
}

void gather_free(struct gather *g) {
	if (!g)
		return;
	free(g->memory);
	free(g);
}

size_t gather_bytes(int n) {
	return (size_t)n * PIECE_BYTES;
}

static struct frame_fetch fetch_of(const struct gather *g) {
	return (struct frame_fetch){
		.kind = FRAME_FETCH_CONTRIBUTION, .part = FRAME_PART_PIECE, .round = g->roster->round, .index = g->chunk};
}

/* Frees the pieces; answers that are still to come are void. */
static void leave(struct gather *g, enum gather_state state) {
	for (int i = 0; i < g->n; i++) {
		if (g->pieces[i].state != PIECE_ASKED)
			continue;
		owed_add(&g->owed, g->pieces[i].from->member, fetch_of(g));
	}
	free(g->memory);
	g->memory = NULL;
	g->n = 0;
	g->roster = NULL;
	g->state = state;
}

void gather_stop(struct gather *g) {
	leave(g, GATHER_IDLE);
}

enum gather_state gather_state(const struct gather *g, enum rv_err *err, struct rv_errtext *et) {
	if (g->state == GATHER_FAILED) {
		*err = g->err;
		*et = g->why;
	}
	return g->state;
}

uint32_t gather_blamed(const struct gather *g) {
	return g->state == GATHER_FAILED ? g->blamed : NET_NO_MEMBER;
}

uint32_t gather_chunks_done(const struct gather *g) {
	return g->chunk;
}

static void fail(struct gather *g, enum rv_err e) {
	RV_ASSERT(e != RV_OK);
	g->err = e;
	leave(g, GATHER_FAILED);
}

/* ---- a chunk ---- */

/* Lists the contributors to the chunk, and takes this worker's own piece. Returns false after a
 * fault. */
static bool begin_chunk(struct gather *g) {
	const struct auditor_roster *r = g->roster;
	const size_t proof_bytes = piece_proof_bytes(r->n_chunks, g->chunk);
	g->n = 0;
	for (int i = 0; i < r->n; i++) {
		const struct auditor_member *m = &r->members[i];
		if (!slow_contributes(m->part, m->member, r->round, g->chunk))
			continue;
		struct piece *p = &g->pieces[g->n];
		const size_t chunk_bytes = g->ops.chunk_bytes(g->ops.ctx, r->round, m->codec, g->chunk);
		*p = (struct piece){.from = m, .ready_us = INT64_MIN, .chunk_bytes = chunk_bytes};
		p->bytes = chunk_bytes + proof_bytes;
		p->at = g->memory + (size_t)g->n++ * PIECE_BYTES;
		RV_ASSERT(p->bytes <= PIECE_BYTES);
		if (m->member != g->self)
			continue;
		if (!g->ops.own(g->ops.ctx, r->round, g->chunk, p->at, p->bytes) ||
			!piece_is_proven(p, g->roster->n_chunks, g->chunk)) {
			fail(g, rv_fail(&g->why, RV_E_NOTFOUND,
							"this worker's own contribution to round %" PRIu64 " is no longer on its disk",
							round_number(r->round)));
			return false;
		}
		p->state = PIECE_HERE;
	}
	return true;
}

static enum rv_err take_chunk(struct gather *g) {
	struct auditor_case c = {.roster = g->roster, .chunk = g->chunk, .n = g->n};
	for (int i = 0; i < g->n; i++) {
		c.members[i] = g->pieces[i].from;
		c.data[i] = g->pieces[i].at;
	}
	return g->ops.take(g->ops.ctx, &c, &g->why);
}

/* The waiting begins anew, as long as all may still come in time. */
static void wait_on(struct gather *g, int64_t now_us) {
	g->until_us = now_us + g->patience_us < g->latest_us ? now_us + g->patience_us : g->latest_us;
}

/* Hands on each chunk that is whole. */
static void go_on(struct gather *g, int64_t now_us) {
	while (g->state == GATHER_FETCHING && pieces_are_here(g->pieces, g->n)) {
		const enum rv_err e = take_chunk(g);
		if (e != RV_OK)
			fail(g, e);
		else if (++g->chunk == g->roster->n_chunks)
			leave(g, GATHER_DONE);
		else if (begin_chunk(g))
			wait_on(g, now_us);
	}
}

static size_t all_bytes(const struct gather *g, const struct auditor_roster *r) {
	size_t bytes = 0;
	for (int i = 0; i < r->n; i++)
		for (uint32_t k = 0; k < r->n_chunks; k++)
			if (slow_contributes(r->members[i].part, r->members[i].member, r->round, k))
				bytes += g->ops.chunk_bytes(g->ops.ctx, r->round, r->members[i].codec, k);
	return bytes;
}

enum rv_err gather_begin(struct gather *g, int64_t now_us, const struct auditor_roster *roster, struct rv_errtext *et) {
	RV_ASSERT(roster->n > 0 && roster->n_chunks > 0 && g->state != GATHER_FETCHING);
	g->memory = malloc(gather_bytes(roster->n));
	if (!g->memory)
		return rv_fail(et, RV_E_NOMEM, "no memory for a chunk of %d contributions", roster->n);
	g->roster = roster;
	g->blamed = NET_NO_MEMBER;
	g->chunk = 0;
	g->state = GATHER_FETCHING;
	g->latest_us =
		now_us + 2 * g->patience_us + (int64_t)((uint64_t)all_bytes(g, roster) * 1000000 / GATHER_LEAST_BYTES_PER_S);
	wait_on(g, now_us);
	if (begin_chunk(g))
		go_on(g, now_us);
	return RV_OK;
}

/* ---- time ---- */

static const struct piece *missing_piece(const struct gather *g) {
	for (int i = 0; i < g->n; i++)
		if (g->pieces[i].state != PIECE_HERE)
			return &g->pieces[i];
	RV_UNREACHABLE("a chunk that is whole is handed on");
}

static void give_up(struct gather *g, int64_t now_us) {
	const uint32_t member = missing_piece(g)->from->member;
	const char *why = !g->ops.linked(g->ops.ctx, member) ? "it is not linked with this worker"
					  : now_us >= g->latest_us           ? "its line is too slow"
														 : "it is linked, and does not answer or has it no more";
	g->blamed = member;
	fail(g, rv_fail(&g->why, RV_E_TIMEOUT, "member %u does not give its contribution to round %" PRIu64 ": %s", member,
					round_number(g->roster->round), why));
}

void gather_tick(struct gather *g, int64_t now_us) {
	pieces_make_ready(g->pieces, g->n, now_us);
	if (g->state == GATHER_FETCHING && now_us >= g->until_us)
		give_up(g, now_us);
}

int64_t gather_deadline_us(const struct gather *g) {
	const int64_t at = g->state == GATHER_FETCHING ? g->until_us : INT64_MAX,
				  ready_us = pieces_ready_us(g->pieces, g->n);
	return ready_us < at ? ready_us : at;
}

/* ---- messages ---- */

bool gather_send(struct gather *g, int64_t now_us, uint32_t member, struct peers_message *out) {
	struct piece *p = pieces_find(g->pieces, g->n, member);
	if (p == NULL || p->state != PIECE_WANTED || now_us < p->ready_us)
		return false;
	if (owed_find(&g->owed, member) >= 0 || g->ops.is_busy(g->ops.ctx, member))
		return false;
	const struct frame_fetch f = fetch_of(g);
	p->state = PIECE_ASKED;
	p->got = 0;
	*out = (struct peers_message){.header = frame_fetch_encode(&f, g->run_tag, g->body),
								  .part = {g->body, NULL},
								  .part_bytes = {FRAME_FETCH_BYTES, 0}};
	return true;
}

static bool decode(const struct frame_header *h, const uint8_t *body, struct frame_piece *out, struct rv_errtext *et) {
	*out = (struct frame_piece){.offset = 0};
	return (h->type == FRAME_PIECE ? frame_piece_decode(h, body, out, et)
								   : frame_fetch_decode(h, body, &out->of, et)) == RV_OK;
}

/* Returns what the member was asked for; kind 0: nothing. */
static struct frame_fetch asked_of(const struct gather *g, uint32_t member) {
	const int at = owed_find(&g->owed, member);
	if (at >= 0)
		return g->owed.of[at].of;
	for (int i = 0; i < g->n; i++)
		if (g->pieces[i].from->member == member && g->pieces[i].state == PIECE_ASKED)
			return fetch_of(g);
	return (struct frame_fetch){.kind = 0};
}

bool gather_owes(const struct gather *g, uint32_t member) {
	return asked_of(g, member).kind != 0;
}

bool gather_awaits(const struct gather *g, uint32_t member, const struct frame_header *h, const uint8_t *body) {
	const struct frame_fetch asked = asked_of(g, member);
	struct frame_piece f;
	return asked.kind != 0 && decode(h, body, &f, NULL) && frame_fetch_equal(&asked, &f.of);
}

static void refuse(struct gather *g, const struct piece *p) {
	g->blamed = p->from->member;
	fail(g, rv_fail(&g->why, RV_E_CORRUPT,
					"member %u gives a contribution to round %" PRIu64 " that is not the one that it has committed to",
					p->from->member, round_number(g->roster->round)));
}

static enum rv_err take_slice(struct gather *g, int64_t now_us, struct piece *p, const struct frame_piece *f,
							  struct rv_errtext *et) {
	if (f->offset != p->got)
		return rv_fail(et, RV_E_PROTOCOL, "a slice of a contribution at %u, must be at %zu", f->offset, p->got);
	const bool last = f->offset + f->data_bytes == f->total;
	if (last)
		p->state = PIECE_HERE;
	if (f->total != p->bytes) {
		refuse(g, p);
		return RV_OK;
	}
	memcpy(p->at + p->got, f->data, f->data_bytes);
	p->got += f->data_bytes;
	wait_on(g, now_us);
	if (last && !piece_is_proven(p, g->roster->n_chunks, g->chunk))
		refuse(g, p);
	else if (last)
		go_on(g, now_us);
	return RV_OK;
}

enum rv_err gather_receive(struct gather *g, int64_t now_us, uint32_t member, const struct frame_header *h,
						   const uint8_t *body, struct rv_errtext *et) {
	struct frame_piece f;
	const int at = owed_find(&g->owed, member);
	const bool whole = decode(h, body, &f, et);
	RV_ASSERT(whole); /* it is awaited */
	const bool ends = h->type == FRAME_NONE || f.offset + f.data_bytes == f.total;
	if (at >= 0) {
		if (ends)
			owed_drop(&g->owed, at);
		return RV_OK;
	}
	struct piece *p = pieces_find(g->pieces, g->n, member);
	RV_ASSERT(p != NULL && p->state == PIECE_ASKED);
	if (h->type == FRAME_PIECE)
		return take_slice(g, now_us, p, &f, et);
	p->state = PIECE_WANTED; /* it may just be storing it */
	p->ready_us = now_us + AUDITOR_AGAIN_US;
	return RV_OK;
}

void gather_link_down(struct gather *g, uint32_t member) {
	struct piece *p = pieces_find(g->pieces, g->n, member);
	const int at = owed_find(&g->owed, member);
	if (at >= 0)
		owed_drop(&g->owed, at);
	if (p != NULL && p->state == PIECE_ASKED)
		p->state = PIECE_WANTED;
}
