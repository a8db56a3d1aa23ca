/* fetch_core_answer.c: gathers slices into pieces and checks them
 * (worker/transfer/fetch_core.h). */
#include "worker/transfer/fetch_core_state.h"

#include "base/assert.h"
#include "base/planted.h"

#include <inttypes.h>
#include <string.h>

enum {
	LACKS_US = 500 * 1000, /* before a donor that sent NONE is asked again; doubles each time */
	LACKS_MAX_US = 16 * 1000 * 1000,
	SMOOTHING = 4 /* the latest value has one part in this many */
};

static bool same_request(const struct frame_fetch *a, const struct frame_fetch *b) {
	return a->kind == b->kind && a->part == b->part && a->round == b->round && a->index == b->index;
}

static const char *kind_name(const struct state_id *id) {
	return id->kind == STATE_KIND_SNAPSHOT ? "state" : "log";
}

/* ---- whole answers ---- */

static void bad_donor(uint32_t member, const struct state_id *id, struct fetch_event *out) {
	struct rv_errtext why = out->text;
	(void)rv_fail(&out->text, RV_E_CORRUPT, "member %u gave a wrong %s of round %" PRIu64 ": %s", member, kind_name(id),
				  id->round, why.text);
	out->type = FETCH_BAD_DONOR;
}

/* Stops asking this donor for this file for a while, unless it already is so: by the first answer
 * to what was asked together. */
static void note_lacking(struct fetch_core *c, struct fetch_donor *d, int slot) {
	if (c->now_us < d->lacks_until_us[slot])
		return;
	int64_t pause_us = d->lacks_pause_us[slot] * 2;
	pause_us = pause_us < LACKS_US ? LACKS_US : pause_us > LACKS_MAX_US ? LACKS_MAX_US : pause_us;
	d->lacks_pause_us[slot] = pause_us;
	d->lacks_until_us[slot] = c->now_us + pause_us;
}

static void measure(struct fetch_core *c, struct fetch_donor *d, const struct fetch_ask *a) {
	int64_t took_us = c->now_us - (d->head_us > a->asked_us ? d->head_us : a->asked_us);
	int64_t latency_us = c->now_us - a->asked_us;
	took_us = took_us > 0 ? took_us : 1;
	d->piece_us = d->piece_us == 0 ? took_us : (d->piece_us * (SMOOTHING - 1) + took_us) / SMOOTHING;
	if (latency_us < FETCH_LATENCY_US / 2 && d->window < FETCH_WINDOW_MAX - 1) /* one is left for a probe */
		d->window++;
	else if (latency_us > FETCH_LATENCY_US && d->window > 1)
		d->window--;
}

static enum rv_err check_manifest(const struct fetch_core *c, const struct fetch_file *f, struct rv_errtext *et) {
	if (rv_hash_is_zero(&f->id.expect))
		return c->cfg.check_initial(c->cfg.check_ctx, f->manifest, et);
	return state_manifest_check(c->cfg.global, &f->id, f->manifest, et);
}

static void manifest_part(struct fetch_core *c, struct fetch_donor *d, const struct fetch_ask *a, const uint8_t *data,
						  uint32_t bytes, struct fetch_event *out) {
	struct fetch_file *f = &c->files[a->slot];
	if (f->has_manifest || f->manifest_donor != fetch_index(c, d) || a->what.index != f->manifest_got)
		return; /* it was silent for a while, and another was asked */
	memcpy((uint8_t *)f->manifest + (size_t)a->what.index * NET_MANIFEST_PART_BYTES, data, bytes);
	f->manifest_got++;
	if (f->manifest_got < fetch_manifest_parts(c, f->id.kind, f->id.round))
		return;
	if (check_manifest(c, f, &out->text) != RV_OK) {
		bad_donor(d->member, &f->id, out); /* no ban: its own vote may have lost */
		note_lacking(c, d, a->slot);
		fetch_manifest_restart(f);
		return;
	}
	f->has_manifest = true;
	f->manifest_donor = FETCH_NOBODY;
	out->type = FETCH_MANIFEST;
}

/* Decodes a piece into *raw. RV_E_NOMEM: the donor's bytes may be right. */
static enum rv_err decode(struct fetch_core *c, const struct fetch_donor *d, const uint8_t *data, uint32_t bytes,
						  const uint8_t **raw, struct rv_errtext *et) {
	uint8_t *decoded = fetch_staging(c, FETCH_DONORS_MAX);
	*raw = d->encoding == FRAME_RAW ? data : decoded;
	if (d->encoding == FRAME_RAW)
		return RV_OK;
	if (!c->cfg.decode)
		return rv_fail(et, RV_E_UNSUPPORTED, "a piece of encoding %u", d->encoding);
	return c->cfg.decode(c->cfg.decode_ctx, d->encoding, data, d->total, decoded, bytes, et);
}

static void piece(struct fetch_core *c, struct fetch_donor *d, const struct fetch_ask *a, const uint8_t *data,
				  uint32_t bytes, struct fetch_event *out) {
	struct fetch_file *f = &c->files[a->slot];
	const uint8_t *raw;
	if (f->copies[a->what.index] == FETCH_HELD)
		return; /* another was faster */
	enum rv_err e = decode(c, d, data, bytes, &raw, &out->text);
	if (e == RV_E_NOMEM)
		return; /* not the donor's fault: it is requested again */
	if (e == RV_OK && !RV_BUG("piece-unverified"))
		e = state_piece_check(c->cfg.global, &f->id, f->manifest, a->what.index, raw, bytes, &out->text);
	if (e != RV_OK) {
		bad_donor(d->member, &f->id, out);
		fetch_ban(c, d);
		return;
	}
	fetch_hold(c, f, a->what.index);
	out->type = FETCH_PIECE;
	out->index = a->what.index;
	out->encoding = d->encoding;
	out->stored = data;
	out->stored_bytes = d->total;
	out->complete = f->n_held == f->n_pieces;
}

static void answered(struct fetch_core *c, struct fetch_donor *d, struct fetch_event *out) {
	struct fetch_ask a = *fetch_ask_at(d, 0);
	const uint8_t *data = fetch_staging(c, d->staging);
	uint32_t bytes = fetch_bytes_of(c, &a.what);
	if (a.what.part == FRAME_PART_PIECE)
		measure(c, d, &a);
	out->slot = a.slot;
	if (a.slot >= 0 && a.what.part == FRAME_PART_MANIFEST)
		manifest_part(c, d, &a, data, bytes, out);
	else if (a.slot >= 0)
		piece(c, d, &a, data, bytes, out);
	fetch_pop(c, d);
}

/* ---- slices ---- */

static enum rv_err check_head(const struct fetch_donor *d, const struct frame_fetch *what, const char *name,
							  struct rv_errtext *et) {
	if (d == NULL || d->n == 0)
		return rv_fail(et, RV_E_PROTOCOL, "a %s that was not asked for", name);
	if (!same_request(&d->asks[d->first].what, what))
		return rv_fail(et, RV_E_PROTOCOL, "a %s out of order: of %u, asked was %u", name, what->index,
					   d->asks[d->first].what.index);
	return RV_OK;
}

/* Checks the first slice: the request determines the raw size; encoded it is smaller. */
static enum rv_err check_first(const struct fetch_core *c, const struct frame_piece *p, struct rv_errtext *et) {
	uint32_t bytes = fetch_bytes_of(c, &p->of);
	bool raw = p->encoding == FRAME_RAW;
	if (p->offset != 0)
		return rv_fail(et, RV_E_PROTOCOL, "a piece that begins at %u", p->offset);
	if (!raw && p->of.part == FRAME_PART_MANIFEST)
		return rv_fail(et, RV_E_PROTOCOL, "a manifest of encoding %u", p->encoding);
	if (raw ? p->total != bytes : p->total >= bytes)
		return rv_fail(et, RV_E_PROTOCOL, "a piece of %u bytes (encoding %u), it has %u", p->total, p->encoding, bytes);
	return RV_OK;
}

enum rv_err fetch_core_piece(struct fetch_core *c, int64_t now_us, uint32_t member, const struct frame_piece *p,
							 struct fetch_event *out, struct rv_errtext *et) {
	fetch_core_check_invariants(c);
	struct fetch_donor *d = fetch_find(c, member);
	*out = (struct fetch_event){.slot = FETCH_NOBODY};
	c->now_us = now_us;
	RV_TRY(check_head(d, &p->of, "piece", et));
	if (d->got == 0) {
		RV_TRY(check_first(c, p, et));
		d->total = p->total;
		d->encoding = p->encoding;
	}
	if (p->offset != d->got || p->total != d->total || p->encoding != d->encoding)
		return rv_fail(et, RV_E_PROTOCOL, "a slice at %u of %u, the one at %u of %u was due", p->offset, p->total,
					   d->got, d->total);
	RV_ASSERT(d->staging >= 0 && d->total <= c->piece_bytes && p->data_bytes <= d->total - d->got);
	memcpy(fetch_staging(c, d->staging) + d->got, p->data, p->data_bytes);
	d->got += p->data_bytes;
	d->heard_us = now_us;
	d->silent = false;
	if (d->got == d->total)
		answered(c, d, out);
	return RV_OK;
}

enum rv_err fetch_core_none(struct fetch_core *c, int64_t now_us, uint32_t member, const struct frame_fetch *m,
							struct rv_errtext *et) {
	fetch_core_check_invariants(c);
	struct fetch_donor *d = fetch_find(c, member);
	c->now_us = now_us;
	RV_TRY(check_head(d, m, "NONE", et));
	d->heard_us = now_us;
	d->silent = false;
	int slot = d->asks[d->first].slot;
	if (slot >= 0)
		note_lacking(c, d, slot);
	for (int k = 0; slot >= 0 && k < d->n; k++)
		if (fetch_ask_at(d, k)->slot == slot)
			fetch_release(c, d, fetch_ask_at(d, k));
	fetch_pop(c, d);
	return RV_OK;
}
