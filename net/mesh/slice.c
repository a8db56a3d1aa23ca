/* slice.c: a long frame in slices, so that PING need not wait for all of it (net/mesh/link.h). */
#include "net/mesh/link.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* ---- outgoing ---- */

bool link_is_cut(const struct link *l) {
	return l->cut_at < l->cut.body_bytes;
}

enum rv_err link_cut(struct link *l, const struct peers_message *m, struct rv_errtext *et) {
	size_t n = m->header.body_bytes;
	RV_ASSERT(!link_is_cut(l) && frame_is_bulk(m->header.type) && n == m->part_bytes[0] + m->part_bytes[1]);
	if (n > l->cut_cap) {
		free(l->cut_body);
		l->cut_cap = 0;
		l->cut_body = malloc(n);
		if (l->cut_body == NULL)
			return rv_fail(et, RV_E_NOMEM, "no memory for a frame of %zu bytes", n);
		l->cut_cap = n;
	}
	if (m->part_bytes[0] > 0)
		memcpy(l->cut_body, m->part[0], m->part_bytes[0]);
	if (m->part_bytes[1] > 0)
		memcpy(l->cut_body + m->part_bytes[0], m->part[1], m->part_bytes[1]);
	l->cut = m->header;
	l->cut_at = 0;
	return RV_OK;
}

enum rv_err link_put_slice(struct link *l, size_t bytes, struct rv_errtext *et) {
	RV_ASSERT(link_is_cut(l) && bytes > 0);
	size_t left = l->cut.body_bytes - l->cut_at;
	size_t n = left - left / 3 <= bytes ? left : bytes;
	struct peers_message m = {.header = l->cut, .part = {l->cut_body + l->cut_at}, .part_bytes = {n}};
	m.header.body_bytes = (uint32_t)n;
	if (n < l->cut.body_bytes) {
		m.header.slice_at = (uint32_t)l->cut_at;
		m.header.whole_bytes = l->cut.body_bytes;
	}
	l->cut_at += n;
	return link_put(l, &m, et);
}

/* ---- incoming ---- */

static bool goes_on(const struct frame_header *whole, const struct frame_header *h, size_t got) {
	return h->type == whole->type && h->chunk == whole->chunk && h->round == whole->round &&
		   h->attempt == whole->attempt && h->section == whole->section && h->whole_bytes == whole->whole_bytes &&
		   h->slice_at == got;
}

const char *link_slice_misplaced(const struct link *l) {
	const struct frame_header *h = &l->header;
	if (l->whole_got == 0)
		return h->slice_at == 0 ? NULL : "a slice whose frame was not begun";
	if (frame_is_ping(h->type) || h->type == FRAME_BYE || goes_on(&l->whole, h, l->whole_got))
		return NULL;
	return h->whole_bytes != 0 ? "a slice that does not follow the one before"
							   : "only a ping may come between the slices of a frame";
}

size_t link_body_at(const struct link *l) {
	return l->header.slice_at;
}

size_t link_body_room(const struct link *l) {
	return l->header.whole_bytes != 0 ? l->header.whole_bytes : l->header.body_bytes;
}

bool link_slice_joined(struct link *l) {
	struct frame_header *h = &l->header;
	if (h->whole_bytes == 0)
		return true;
	l->whole = *h;
	l->whole_got += h->body_bytes;
	if (l->whole_got < h->whole_bytes)
		return false;
	h->body_bytes = h->whole_bytes;
	h->slice_at = h->whole_bytes = 0;
	l->whole_got = 0;
	return true;
}
