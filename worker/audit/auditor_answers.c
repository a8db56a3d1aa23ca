/* auditor_answers.c: what the auditor (auditor.h) asks members, and what they answer. */
#include "worker/audit/lane.h"

#include "base/assert.h"

#include <string.h>

struct lane *auditor_asked_lane(struct auditor *a, uint32_t member) {
	for (int i = 0; i < LANES; i++) {
		const struct piece *p = pieces_find(a->lanes[i].pieces, a->lanes[i].n, member);
		if (p != NULL && p->state == PIECE_ASKED)
			return &a->lanes[i];
	}
	return NULL;
}

bool auditor_is_linked(const struct auditor *a, const struct piece *p) {
	return a->ops.linked(a->ops.ctx, p->from->member);
}

/* The link is sealed from end to end: NONE is the member's own. */
bool auditor_hears_a_relay(const struct auditor *a, const struct piece *p) {
	return !p->refused && (p->relayed || a->ops.relayed(a->ops.ctx, p->from->member));
}

bool auditor_waits_for_another(struct auditor *a, const struct lane *l, const struct piece *p) {
	const struct lane *other = auditor_asked_lane(a, p->from->member);
	return (other != NULL && other != l) || a->ops.is_busy(a->ops.ctx, p->from->member);
}

/* One FETCH of a member at a time, as its answers come in their order; of averages first. */
bool auditor_send(struct auditor *a, int64_t now_us, uint32_t member, struct peers_message *out) {
	if (owed_find(&a->owed, member) >= 0 || auditor_asked_lane(a, member) != NULL || a->ops.is_busy(a->ops.ctx, member))
		return false;
	for (int i = 0; i < LANES; i++) {
		struct lane *l = &a->lanes[i];
		struct piece *p = pieces_find(l->pieces, l->n, member);
		if (p == NULL || p->state != PIECE_WANTED || now_us < p->ready_us || lane_stands_still(a, l))
			continue;
		const struct frame_fetch f = lane_fetch(a, l);
		p->state = PIECE_ASKED;
		p->got = 0;
		p->refused = false;
		p->relayed = (p->relayed && p->cuts > 0) || a->ops.relayed(a->ops.ctx, member);
		*out = (struct peers_message){.header = frame_fetch_encode(&f, a->run_tag, a->body),
									  .part = {a->body, NULL},
									  .part_bytes = {FRAME_FETCH_BYTES, 0}};
		return true;
	}
	return false;
}

/* The member gives nothing, or not what it has committed to. */
static void conclude_withheld(struct auditor *a, struct lane *l, struct piece *p) {
	const uint32_t member = p->from->member;
	if (p->state == PIECE_HERE) /* something is, and not that */
		p->state = PIECE_WANTED;
	if (lane_order(a, l)->scores)
		training_conclude(a, l, SCORE_WITHHELD);
	else
		average_lack(a, l, AUDIT_WITHHELD, member);
}

/* The sender may just be storing it, on a slow disk: it has as long as one that says nothing. */
static void take_none(int64_t now_us, struct piece *p) {
	p->state = PIECE_WANTED;
	p->refused = true;
	p->ready_us = now_us + AUDITOR_AGAIN_US;
}

static void take_piece(struct auditor *a, int64_t now_us, struct lane *l, struct piece *p) {
	if (lane_has_sums(a, l))
		mean_keep(a, now_us, l);
	else if (!piece_is_proven(p, l->n_chunks, l->chunk))
		conclude_withheld(a, l, p);
	else if (lane_order(a, l)->scores)
		training_keep(a, now_us, l);
	else if (pieces_are_here(l->pieces, l->n))
		average_judge(a, l);
}

/* Cut links are counted anew only after bytes that had not come before: one that gives the first
 * slice and cuts, again and again, gives nothing. */
static void note_progress(struct piece *p) {
	if (p->got <= p->most)
		return;
	p->most = p->got;
	p->cuts = 0;
}

/* Takes a slice of a piece; a piece of another length is not what was committed to. */
static enum rv_err take_slice(struct auditor *a, int64_t now_us, struct lane *l, struct piece *p,
							  const struct frame_piece *f, struct rv_errtext *et) {
	if (f->offset != p->got)
		return rv_fail(et, RV_E_PROTOCOL, "a slice of a contribution at %u, must be at %zu", f->offset, p->got);
	if (f->offset + f->data_bytes == f->total)
		p->state = PIECE_HERE;
	if (f->total != p->bytes) {
		conclude_withheld(a, l, p);
		return RV_OK;
	}
	memcpy(p->at + p->got, f->data, f->data_bytes);
	p->got += f->data_bytes;
	note_progress(p);
	auditor_wait_on(a, now_us, l);
	if (p->state == PIECE_HERE)
		take_piece(a, now_us, l, p);
	return RV_OK;
}

/* Takes a part of an answer that is void. */
static enum rv_err take_void(struct auditor *a, int at, const struct frame_header *h, const struct frame_piece *f,
							 struct rv_errtext *et) {
	if (!frame_fetch_equal(&a->owed.of[at].of, &f->of))
		return rv_fail(et, RV_E_PROTOCOL, "a contribution that was not asked for");
	if (h->type == FRAME_NONE || f->offset + f->data_bytes == f->total)
		owed_drop(&a->owed, at);
	return RV_OK;
}

enum rv_err auditor_receive(struct auditor *a, int64_t now_us, uint32_t member, const struct frame_header *h,
							const uint8_t *body, struct rv_errtext *et) {
	struct frame_piece f = {.offset = 0};
	if (h->type == FRAME_PIECE)
		RV_TRY(frame_piece_decode(h, body, &f, et));
	else
		RV_TRY(frame_fetch_decode(h, body, &f.of, et));
	const int at = owed_find(&a->owed, member);
	if (at >= 0)
		return take_void(a, at, h, &f, et);
	struct lane *l = auditor_asked_lane(a, member);
	const struct frame_fetch asked = l != NULL ? lane_fetch(a, l) : (struct frame_fetch){.kind = 0};
	if (l == NULL || !frame_fetch_equal(&asked, &f.of))
		return rv_fail(et, RV_E_PROTOCOL, "a contribution that was not asked for");
	if (h->type == FRAME_PIECE)
		return take_slice(a, now_us, l, pieces_find(l->pieces, l->n, member), &f, et);
	take_none(now_us, pieces_find(l->pieces, l->n, member));
	return RV_OK;
}

void auditor_link_down(struct auditor *a, int64_t now_us, uint32_t member, bool by_member) {
	struct lane *l = auditor_asked_lane(a, member);
	for (int at = owed_find(&a->owed, member); at >= 0; at = owed_find(&a->owed, member))
		owed_drop(&a->owed, at);
	if (l == NULL)
		return;
	pieces_find(l->pieces, l->n, member)->state = PIECE_WANTED;
	l->interrupted = true;
	if (!by_member)
		return;
	if (lane_order(a, l)->scores)
		training_count_cut(a, now_us, l);
	else
		average_count_cut(a, now_us, l, pieces_find(l->pieces, l->n, member));
}

bool auditor_awaits(struct auditor *a, uint32_t member) {
	return auditor_asked_lane(a, member) != NULL || owed_find(&a->owed, member) >= 0;
}
