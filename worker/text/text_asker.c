/* text_asker.c: see text_asker.h. */
#include "worker/text/text_asker.h"

#include "base/assert.h"
#include "worker/text/text_core.h"

#include <string.h>

enum { PIECES_OF_RANGE = TEXT_RANGE_BYTES / NET_MAX_PIECE_BYTES };
_Static_assert(TEXT_RANGE_BYTES % NET_MAX_PIECE_BYTES == 0, "a range is some pieces");
_Static_assert((int)TEXT_ASKER_MEMBERS == (int)TEXT_SOURCES_MAX, "every source has a place");
_Static_assert((int)NET_MAX_TEXT_FILES == (int)TEXT_FILES_MAX, "one question names all wanted files");

void text_asker_init(struct text_asker *a, uint64_t run_tag, const struct text_asker_owner *owner) {
	memset(a, 0, sizeof *a);
	a->run_tag = run_tag;
	a->owner = *owner;
}

/* ---- members ---- */

static struct text_asker_member *find(struct text_asker *a, uint32_t member) {
	for (int i = 0; i < TEXT_ASKER_MEMBERS; i++)
		if (a->members[i].used && a->members[i].member == member)
			return &a->members[i];
	return NULL;
}

/* Returns the place of a member, or a free one for it; NULL: there is none. */
static struct text_asker_member *place_of(struct text_asker *a, uint32_t member) {
	struct text_asker_member *m = find(a, member);
	for (int i = 0; i < TEXT_ASKER_MEMBERS && m == NULL; i++)
		if (!a->members[i].used) {
			m = &a->members[i];
			*m = (struct text_asker_member){.used = true, .member = member};
		}
	return m;
}

/* Frees the place of a member of which nothing is under way. */
static void release(struct text_asker_member *m) {
	m->used = m->n > 0 || m->n_files > 0;
}

void text_asker_link_down(struct text_asker *a, uint32_t member) {
	struct text_asker_member *m = find(a, member);
	if (m != NULL)
		m->used = false;
}

/* ---- what is asked ---- */

bool text_asker_has_room(const struct text_asker *a, uint32_t member) {
	bool is_free = false;
	for (int i = 0; i < TEXT_ASKER_MEMBERS; i++) {
		const struct text_asker_member *m = &a->members[i];
		if (m->used && m->member == member)
			return m->n + PIECES_OF_RANGE <= TEXT_ASKER_FETCHES;
		is_free = is_free || !m->used;
	}
	return is_free;
}

void text_asker_request(struct text_asker *a, uint32_t member, uint32_t ask, uint64_t file, uint32_t range,
						uint32_t bytes) {
	struct text_asker_member *m = place_of(a, member);
	RV_ASSERT(m != NULL && ask != 0 && bytes > 0 && bytes <= TEXT_RANGE_BYTES);
	for (uint32_t at = 0; at < bytes; at += NET_MAX_PIECE_BYTES) {
		RV_ASSERT(m->n < TEXT_ASKER_FETCHES);
		const uint32_t left = bytes - at;
		m->fetches[m->n++] =
			(struct text_asker_fetch){.ask = ask,
									  .file = file,
									  .index = range * PIECES_OF_RANGE + at / NET_MAX_PIECE_BYTES,
									  .at = at,
									  .bytes = left < NET_MAX_PIECE_BYTES ? left : NET_MAX_PIECE_BYTES};
	}
}

bool text_asker_question(struct text_asker *a, uint32_t member, const uint64_t *files, int n) {
	struct text_asker_member *m = place_of(a, member);
	RV_ASSERT(n > 0 && n <= NET_MAX_TEXT_FILES);
	if (m == NULL)
		return false;
	RV_ASSERT(m->n_files == 0);
	memcpy(m->files, files, (size_t)n * sizeof *files);
	m->n_files = n;
	m->asked = false;
	return true;
}

/* Takes an ask out of what was not sent, and marks what was as not needed. Returns true if it had
 * something under way. */
static bool withdraw(struct text_asker_member *m, uint32_t ask) {
	int n = 0;
	bool any = false;
	for (int i = 0; i < m->n; i++) {
		struct text_asker_fetch f = m->fetches[i];
		const bool is_it = f.ask == ask;
		any = any || is_it;
		if (is_it && !f.sent)
			continue;
		if (is_it)
			f.ask = 0;
		m->fetches[n++] = f;
	}
	m->n = n;
	return any;
}

static bool nothing_is_needed(const struct text_asker_member *m) {
	for (int i = 0; i < m->n; i++)
		if (m->fetches[i].sent && m->fetches[i].ask != 0)
			return false;
	return m->n > 0 && m->fetches[0].sent;
}

void text_asker_cancel(struct text_asker *a, uint32_t ask) {
	for (int i = 0; i < TEXT_ASKER_MEMBERS && ask != 0; i++) {
		struct text_asker_member *m = &a->members[i];
		if (!m->used || !withdraw(m, ask))
			continue;
		m->forgets = m->forgets || nothing_is_needed(m);
		release(m);
	}
}

/* ---- frames out ---- */

static bool put(struct text_asker *a, struct frame_header h, struct peers_message *out) {
	*out = (struct peers_message){.header = h, .part = {a->body, NULL}, .part_bytes = {h.body_bytes, 0}};
	return true;
}

static struct text_asker_fetch *first_unsent(struct text_asker_member *m) {
	for (int i = 0; i < m->n; i++)
		if (!m->fetches[i].sent)
			return &m->fetches[i];
	return NULL;
}

bool text_asker_send(struct text_asker *a, uint32_t member, struct peers_message *out) {
	struct text_asker_member *m = find(a, member);
	struct frame_fetch f = {.kind = FRAME_FETCH_TEXT};
	if (m == NULL)
		return false;
	if (m->forgets) {
		m->forgets = false;
		f.part = FRAME_PART_FORGET;
		return put(a, frame_fetch_encode(&f, a->run_tag, a->body), out);
	}
	if (m->n_files > 0 && !m->asked) {
		m->asked = true;
		return put(a, frame_text_ask_encode(m->files, m->n_files, a->run_tag, a->body), out);
	}
	struct text_asker_fetch *next = first_unsent(m);
	if (next == NULL)
		return false;
	next->sent = true;
	f.round = next->file;
	f.index = next->index;
	return put(a, frame_fetch_encode(&f, a->run_tag, a->body), out);
}

/* ---- frames in ---- */

static void pop(struct text_asker_member *m) {
	m->n--;
	m->got = 0;
	memmove(m->fetches, m->fetches + 1, (size_t)m->n * sizeof *m->fetches);
	release(m);
}

static bool answers(const struct text_asker_member *m, const struct frame_fetch *of) {
	return m != NULL && m->n > 0 && m->fetches[0].sent && of->round == m->fetches[0].file &&
		   of->index == m->fetches[0].index && of->part == FRAME_PART_PIECE;
}

static enum rv_err not_due(const struct frame_header *h, struct rv_errtext *et) {
	return rv_fail(et, RV_E_PROTOCOL, "a %s of text that is not the answer to the oldest request",
				   frame_type_name(h->type));
}

static enum rv_err take_piece(struct text_asker *a, struct text_asker_member *m, const struct frame_header *h,
							  const uint8_t *body, struct rv_errtext *et) {
	struct frame_piece p;
	RV_TRY(frame_piece_decode(h, body, &p, et));
	if (!answers(m, &p.of))
		return not_due(h, et);
	const struct text_asker_fetch f = m->fetches[0];
	if (p.total != f.bytes || p.offset != m->got)
		return rv_fail(et, RV_E_PROTOCOL, "a piece of text of %u bytes at %u: must be %u at %u", p.total, p.offset,
					   f.bytes, m->got);
	m->got += p.data_bytes;
	if (m->got == f.bytes)
		pop(m);
	if (f.ask != 0)
		a->owner.on_bytes(a->owner.ctx, f.ask, f.at + p.offset, p.data, p.data_bytes);
	return RV_OK;
}

static enum rv_err take_none(struct text_asker *a, struct text_asker_member *m, const struct frame_header *h,
							 const uint8_t *body, struct rv_errtext *et) {
	struct frame_fetch of;
	RV_TRY(frame_fetch_decode(h, body, &of, et));
	if (!answers(m, &of))
		return not_due(h, et);
	const uint32_t ask = m->fetches[0].ask;
	if (ask != 0)
		(void)withdraw(m, ask);
	pop(m);
	if (ask != 0)
		a->owner.on_none(a->owner.ctx, ask);
	return RV_OK;
}

static enum rv_err take_held(struct text_asker *a, struct text_asker_member *m, const uint8_t *body,
							 struct rv_errtext *et) {
	const uint64_t held = frame_text_held_decode(body);
	uint64_t files[NET_MAX_TEXT_FILES];
	if (m == NULL || m->n_files == 0 || !m->asked)
		return rv_fail(et, RV_E_PROTOCOL, "a text-held that was not asked for");
	const int n = m->n_files;
	if (n < 64 && held >> n != 0)
		return rv_fail(et, RV_E_PROTOCOL, "a text-held with more files than the %d of the question", n);
	memcpy(files, m->files, (size_t)n * sizeof *files);
	m->n_files = 0;
	release(m);
	a->owner.on_held(a->owner.ctx, m->member, files, n, held);
	return RV_OK;
}

enum rv_err text_asker_receive(struct text_asker *a, uint32_t member, const struct frame_header *h, const uint8_t *body,
							   struct rv_errtext *et) {
	struct text_asker_member *m = find(a, member);
	if (h->type == FRAME_TEXT_HELD)
		return take_held(a, m, body, et);
	return h->type == FRAME_PIECE ? take_piece(a, m, h, body, et) : take_none(a, m, h, body, et);
}
