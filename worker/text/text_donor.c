/* text_donor.c: see text_donor.h. */
#include "worker/text/text_donor.h"

#include "base/assert.h"

#include <stddef.h>
#include <string.h>

/* What a member is answered. */
struct answer {
	bool used;
	bool waits; /* a question has not been answered */
	uint32_t member;
	uint64_t held;
	int64_t due_us; /* not before; of the next one, too */
};

struct text_donor {
	uint64_t run_tag;
	struct text_donor_source source;
	int n; /* answers, from the first, that were ever in use */
	struct answer answers[NET_MAX_PEERS];
	uint8_t body[FRAME_TEXT_HELD_BYTES];
	uint64_t pieces[]; /* donor_size() bytes */
};

size_t text_donor_size(void) {
	return sizeof(struct text_donor) + donor_size();
}

struct donor *text_donor_pieces(struct text_donor *d) {
	return (struct donor *)(void *)d->pieces;
}

struct text_donor *text_donor_init(void *memory, const struct text_donor_config *cfg) {
	struct text_donor *d = memory;
	struct donor_config donor = cfg->donor;
	RV_ASSERT(cfg->source.holds);
	memset(d, 0, sizeof *d);
	d->run_tag = donor.run_tag;
	d->source = cfg->source;
	donor.source = cfg->source.pieces;
	(void)donor_init(d->pieces, &donor);
	return d;
}

/* ---- which files are here ---- */

static struct answer *find(struct text_donor *d, uint32_t member) {
	for (int i = 0; i < d->n; i++)
		if (d->answers[i].used && d->answers[i].member == member)
			return &d->answers[i];
	return NULL;
}

/* Returns NULL if all places are taken. */
static struct answer *add(struct text_donor *d, uint32_t member) {
	int at = 0;
	while (at < d->n && d->answers[at].used)
		at++;
	if (at == NET_MAX_PEERS)
		return NULL;
	d->n = at < d->n ? d->n : at + 1;
	d->answers[at] = (struct answer){.used = true, .member = member, .due_us = INT64_MIN};
	return &d->answers[at];
}

static enum rv_err take_question(struct text_donor *d, int64_t now_us, uint32_t member, const struct frame_header *h,
								 const uint8_t *body, struct rv_errtext *et) {
	uint64_t files[NET_MAX_TEXT_FILES];
	int n;
	RV_TRY(frame_text_ask_decode(h, body, files, &n, et));
	struct answer *a = find(d, member);
	if (a == NULL && (a = add(d, member)) == NULL)
		return rv_fail(et, RV_E_FULL, "%d other members ask this worker for text", (int)NET_MAX_PEERS);
	if (a->waits)
		return rv_fail(et, RV_E_PROTOCOL, "a text-ask before the last one was answered");
	a->waits = true;
	a->held = 0;
	for (int i = 0; i < n; i++)
		if (d->source.holds(d->source.ctx, files[i]))
			a->held |= (uint64_t)1 << i;
	if (a->due_us < now_us)
		a->due_us = now_us;
	return RV_OK;
}

bool text_donor_answer(struct text_donor *d, int64_t now_us, uint32_t member, struct peers_message *out) {
	struct answer *a = find(d, member);
	if (a == NULL || !a->waits || a->due_us > now_us)
		return false;
	a->waits = false;
	a->due_us = now_us + TEXT_ANSWER_US;
	*out = (struct peers_message){.header = frame_text_held_encode(a->held, d->run_tag, d->body),
								  .part = {d->body, NULL},
								  .part_bytes = {FRAME_TEXT_HELD_BYTES, 0}};
	return true;
}

/* ---- calls ---- */

enum rv_err text_donor_receive(struct text_donor *d, int64_t now_us, uint32_t member, const struct frame_header *h,
							   const uint8_t *body, struct rv_errtext *et) {
	if (h->type == FRAME_TEXT_ASK)
		return take_question(d, now_us, member, h, body, et);
	return donor_receive(text_donor_pieces(d), member, h, body, et);
}

bool text_donor_send(struct text_donor *d, int64_t now_us, uint32_t member, struct peers_message *out) {
	return text_donor_answer(d, now_us, member, out) || donor_send(text_donor_pieces(d), now_us, member, out);
}

void text_donor_link_down(struct text_donor *d, uint32_t member) {
	struct answer *a = find(d, member);
	if (a != NULL)
		a->used = false;
	donor_link_down(text_donor_pieces(d), member);
}

int64_t text_donor_deadline_us(struct text_donor *d, int64_t now_us) {
	int64_t first = donor_deadline_us(text_donor_pieces(d), now_us);
	for (int i = 0; i < d->n; i++) {
		const struct answer *a = &d->answers[i];
		if (a->used && a->waits && a->due_us > now_us && a->due_us < first)
			first = a->due_us;
	}
	return first;
}
