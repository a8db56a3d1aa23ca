/* donor.c: a queue per peer, a few open files, a few pieces in memory (worker/transfer/donor.h). */
#include "worker/transfer/donor.h"

#include "base/assert.h"
#include "net/mesh/rate.h"
#include "worker/state/state_file.h"
#include "worker/state/state_packing.h"

#include <stdlib.h>
#include <string.h>

enum {
	SNAPSHOT_SHARE = 10,           /* of so many bytes of the all-reduce, one of a snapshot */
	REDUCE_QUIET_US = 1000 * 1000, /* it has sent nothing for so long: the line is free */
	READY_US = 100 * 1000,         /* a link that was not asked for so long cannot take anything */
	CREDIT_MAX_BYTES = 4 * DONOR_SLICE_BYTES,
	RATE_RETRY_US = 10 * 1000,
	USELESS_US = 1000 * 1000, /* a file that cannot be used is not looked at again for so long */
	/* Opening a file reads and checks its manifest, on the event loop: whoever asks for another file each time gets so
	 * many at once, and then one in so long. */
	OPENS_AT_ONCE = 64,
	OPEN_EVERY_US = 10 * 1000
};

struct waiting {
	struct frame_fetch at[DONOR_MAX_WAITING];
	int first, n;
	int forgotten;    /* so many of the first are not wanted any more */
	uint32_t sent;    /* of the first one's bytes */
	uint64_t served;  /* number of the latest slice it got */
	int64_t ready_us; /* when its link last had room */
};

struct open_file {
	struct state_file *file; /* NULL: free, or it is of no use */
	int64_t useless_until_us;
	enum state_kind kind;
	uint64_t round, used;
};

struct cached_piece {
	uint8_t *data; /* NULL: none */
	bool valid;
	struct frame_fetch what;
	struct state_stored stored;
	uint64_t used;
};

struct donor {
	struct donor_config cfg;
	struct waiting waiting[NET_MAX_MEMBERS];
	struct open_file files[DONOR_FILES];
	struct cached_piece pieces[DONOR_PIECES];
	bool has_pieces;
	uint64_t clock;   /* counts uses and slices */
	int64_t opens_us; /* when all opens so far have been paid for */
	struct rate cap;
	struct donor_budget budget;
	uint64_t round; /* the open one */
	bool reducing;
	int64_t reduce_us;                   /* when the all-reduce last sent; INT64_MIN: never */
	int64_t snapshot_credit, log_credit; /* bytes that its shares allow */
	uint64_t askers;                     /* donor_askers() */
	uint64_t limited;                    /* donor_limited() */
	uint64_t served_bytes;
	uint8_t body[FRAME_PIECE_BYTES];
};

enum rv_err donor_new(const struct donor_config *cfg, struct donor **out, struct rv_errtext *et) {
	struct donor *d = calloc(1, sizeof *d);
	if (!d)
		return rv_fail(et, RV_E_NOMEM, "no memory for serving state to peers");
	d->cfg = *cfg;
	d->cap = rate_of(cfg->max_donate, 0);
	d->budget = cfg->budget;
	d->reduce_us = INT64_MIN;
	*out = d;
	return RV_OK;
}

static void forget_pieces(struct donor *d) {
	for (int i = 0; i < DONOR_PIECES; i++) {
		free(d->pieces[i].data);
		d->pieces[i] = (struct cached_piece){0};
	}
	d->has_pieces = false;
}

static void close_file(struct open_file *f) {
	state_file_free(f->file);
	*f = (struct open_file){0};
}

void donor_free(struct donor *d) {
	if (!d)
		return;
	donor_forget_all(d);
	free(d);
}

enum rv_err donor_receive(struct donor *d, uint32_t member, const struct frame_header *h, const uint8_t *body,
						  struct rv_errtext *et) {
	struct frame_fetch f;
	RV_ASSERT(member < NET_MAX_MEMBERS);
	RV_TRY(frame_fetch_decode(h, body, &f, et));
	struct waiting *w = &d->waiting[member];
	if (f.part == FRAME_PART_FORGET) {
		w->forgotten = w->n;
		return RV_OK;
	}
	if (w->n == DONOR_MAX_WAITING)
		return rv_fail(et, RV_E_PROTOCOL, "more than %d FETCHes before the first was answered", DONOR_MAX_WAITING);
	w->at[(w->first + w->n++) % DONOR_MAX_WAITING] = f;
	d->askers |= UINT64_C(1) << member;
	return RV_OK;
}

bool donor_busy(const struct donor *d) {
	for (int m = 0; m < NET_MAX_MEMBERS; m++)
		if (d->waiting[m].n > 0)
			return true;
	return false;
}

void donor_link_down(struct donor *d, uint32_t member) {
	d->waiting[member] = (struct waiting){0};
	d->askers &= ~(UINT64_C(1) << member);
}

uint64_t donor_askers(const struct donor *d) {
	return d->askers;
}

void donor_forget(struct donor *d, enum state_kind kind, uint64_t round) {
	for (int i = 0; i < DONOR_FILES; i++)
		if (d->files[i].kind == kind && d->files[i].round == round)
			close_file(&d->files[i]);
	for (int i = 0; i < DONOR_PIECES; i++)
		if (d->pieces[i].what.kind == kind && d->pieces[i].what.round == round)
			d->pieces[i].valid = false;
}

void donor_forget_all(struct donor *d) {
	for (int i = 0; i < DONOR_FILES; i++)
		close_file(&d->files[i]);
	forget_pieces(d);
}

/* ---- files and pieces ---- */

static bool is_known(const struct open_file *o, int64_t now_us, const struct frame_fetch *f) {
	return o->kind == (enum state_kind)f->kind && o->round == f->round && (o->file || now_us < o->useless_until_us);
}

static bool may_open(const struct donor *d, int64_t now_us, const struct frame_fetch *f) {
	for (int i = 0; i < DONOR_FILES; i++)
		if (is_known(&d->files[i], now_us, f))
			return true;
	return d->opens_us <= now_us + (OPENS_AT_ONCE - 1) * OPEN_EVERY_US;
}

static struct state_file *open_into(struct donor *d, int64_t now_us, const struct frame_fetch *f,
									struct open_file *place) {
	char path[STATESTORE_PATH_BYTES];
	struct state_file *file;
	enum state_kind kind = (enum state_kind)f->kind;
	statestore_path(d->cfg.store, kind == STATE_KIND_SNAPSHOT ? STATE_FILE_SNAPSHOT : STATE_FILE_LOG, f->round, path);
	enum rv_err e = state_file_open(&d->cfg.store->cfg, kind, path, &file, NULL);
	if (e == RV_E_NOTFOUND)
		return NULL;
	d->opens_us = (d->opens_us > now_us ? d->opens_us : now_us) + OPEN_EVERY_US;
	close_file(place);
	*place = (struct open_file){.kind = kind, .round = f->round, .used = ++d->clock};
	if (e == RV_OK)
		place->file = file;
	else
		place->useless_until_us = now_us + USELESS_US;
	return place->file;
}

/* NULL: there is none, or it is damaged (which recovery and `checkpoint verify` tell people). */
static struct state_file *file_of(struct donor *d, int64_t now_us, const struct frame_fetch *f) {
	struct open_file *oldest = &d->files[0];
	for (int i = 0; i < DONOR_FILES; i++) {
		struct open_file *o = &d->files[i];
		if (is_known(o, now_us, f)) {
			o->used = ++d->clock;
			return o->file;
		}
		if (o->used < oldest->used)
			oldest = o;
	}
	return open_into(d, now_us, f, oldest);
}

static bool same(const struct frame_fetch *a, const struct frame_fetch *b) {
	return a->kind == b->kind && a->part == b->part && a->round == b->round && a->index == b->index;
}

/* The piece in memory: as it was, or read now in place of the one not used for longest. NULL: it cannot be had. */
static struct cached_piece *piece_of(struct donor *d, struct state_file *file, const struct frame_fetch *f) {
	struct cached_piece *oldest = &d->pieces[0];
	for (int i = 0; i < DONOR_PIECES; i++) {
		struct cached_piece *p = &d->pieces[i];
		if (p->valid && same(&p->what, f)) {
			p->used = ++d->clock;
			return p;
		}
		if (p->used < oldest->used)
			oldest = p;
	}
	if (f->index >= state_pieces(&d->cfg.store->cfg, (enum state_kind)f->kind, f->round))
		return NULL;
	if (!oldest->data)
		oldest->data = malloc(STATE_PIECE_MAX_BYTES);
	if (!oldest->data)
		return NULL;
	d->has_pieces = true;
	oldest->valid = state_file_read_stored(file, f->index, oldest->data, NULL) == RV_OK;
	oldest->what = *f;
	oldest->stored = state_file_stored(file, f->index);
	oldest->used = ++d->clock;
	return oldest->valid ? oldest : NULL;
}

static bool manifest_part(struct donor *d, struct state_file *file, const struct frame_fetch *f,
						  struct frame_piece *out) {
	uint64_t bytes =
		state_manifest_hashes(&d->cfg.store->cfg, (enum state_kind)f->kind, f->round) * (uint64_t)RV_HASH_BYTES;
	uint64_t at = (uint64_t)f->index * NET_MANIFEST_PART_BYTES;
	if (at >= bytes)
		return false;
	out->total = (uint32_t)(bytes - at < NET_MANIFEST_PART_BYTES ? bytes - at : NET_MANIFEST_PART_BYTES);
	out->data = (const uint8_t *)state_file_manifest(file) + at;
	return true;
}

/* All of what was asked for, its first byte at out->data. */
static bool find(struct donor *d, int64_t now_us, const struct frame_fetch *f, struct frame_piece *out) {
	*out = (struct frame_piece){.of = *f, .encoding = FRAME_RAW};
	struct state_file *file = file_of(d, now_us, f);
	if (!file)
		return false;
	if (f->part == FRAME_PART_MANIFEST)
		return manifest_part(d, file, f, out);
	const struct cached_piece *p = piece_of(d, file, f);
	if (!p)
		return false;
	_Static_assert((int)STATE_RAW == (int)FRAME_RAW && (int)STATE_ZSTD == (int)FRAME_ZSTD, "as stored, so sent");
	out->encoding = (uint8_t)p->stored.encoding;
	out->total = p->stored.bytes;
	out->data = p->data;
	return true;
}

/* ---- how much, and whose turn ---- */

void donor_set_round(struct donor *d, uint64_t round, bool reducing) {
	d->round = round;
	d->reducing = reducing;
}

static void add_credit(int64_t *credit, size_t bytes) {
	*credit += (int64_t)bytes;
	if (*credit > CREDIT_MAX_BYTES)
		*credit = CREDIT_MAX_BYTES;
}

void donor_reduce_sent(struct donor *d, int64_t now_us, size_t bytes) {
	if (now_us - REDUCE_QUIET_US > d->reduce_us)
		d->snapshot_credit = d->log_credit = 0; /* it begins */
	d->reduce_us = now_us;
	add_credit(&d->snapshot_credit, bytes / SNAPSHOT_SHARE);
	add_credit(&d->log_credit, bytes);
}

static bool reduce_sends(const struct donor *d, int64_t now_us) {
	return d->reducing && d->reduce_us != INT64_MIN && now_us - d->reduce_us < REDUCE_QUIET_US;
}

static bool is_limited(const struct donor *d, int64_t now_us) {
	return rate_is_capped(&d->cap) || reduce_sends(d, now_us);
}

/* Of what the oldest request of `w` asks for. */
static int64_t *credit_of(struct donor *d, const struct waiting *w) {
	return w->at[w->first].kind == FRAME_FETCH_LOG ? &d->log_credit : &d->snapshot_credit;
}

static bool line_is_free(struct donor *d, int64_t now_us, const struct waiting *w) {
	return rate_allowed(&d->cap, now_us) > 0 && (!reduce_sends(d, now_us) || *credit_of(d, w) > 0);
}

/* Somebody whose link has room too, and who draws on the same credit, has waited longer. */
static bool is_passed_over(struct donor *d, int64_t now_us, uint32_t member) {
	struct waiting *self = &d->waiting[member];
	for (uint32_t m = 0; m < NET_MAX_MEMBERS; m++) {
		const struct waiting *w = &d->waiting[m];
		bool rivals = w->n > 0 && (!reduce_sends(d, now_us) || credit_of(d, w) == credit_of(d, self));
		if (rivals && w->served < self->served && now_us - w->ready_us < READY_US)
			return true;
	}
	return false;
}

static int64_t later(int64_t a, int64_t b) {
	return a > b ? a : b;
}

/* When nothing but its link keeps `member` from its next answer. */
static int64_t allowed_us(struct donor *d, int64_t now_us, uint32_t member) {
	int64_t at = later(rate_ready_us(&d->cap), donor_budget_ready_us(&d->budget, member));
	at = later(at, d->opens_us - (OPENS_AT_ONCE - 1) * OPEN_EVERY_US);
	if (reduce_sends(d, now_us) && *credit_of(d, &d->waiting[member]) <= 0)
		at = later(at, d->reduce_us + REDUCE_QUIET_US);
	return at;
}

int64_t donor_deadline_us(struct donor *d, int64_t now_us) {
	int64_t first = INT64_MAX;
	for (uint32_t m = 0; m < NET_MAX_MEMBERS; m++)
		if (d->waiting[m].n > 0 && allowed_us(d, now_us, m) < first)
			first = allowed_us(d, now_us, m);
	if (first > now_us) /* or nobody waits */
		return first;
	return is_limited(d, now_us) ? now_us + RATE_RETRY_US
								 : INT64_MAX; /* a link was not ready, or it was not its turn */
}

/* ---- answers ---- */

static void pop(struct waiting *w) {
	w->first = (w->first + 1) % DONOR_MAX_WAITING;
	w->n--;
	w->forgotten -= w->forgotten > 0;
	w->sent = 0;
}

static void put_slice(struct donor *d, struct waiting *w, struct frame_piece *p, struct peers_message *out) {
	uint32_t left = p->total - w->sent;
	p->offset = w->sent;
	p->data += w->sent;
	p->data_bytes = left < DONOR_SLICE_BYTES ? left : DONOR_SLICE_BYTES;
	*out = (struct peers_message){.header = frame_piece_encode(p, d->cfg.run_tag, d->body),
								  .part = {d->body, p->data},
								  .part_bytes = {FRAME_PIECE_BYTES, p->data_bytes}};
	w->sent += p->data_bytes;
	if (w->sent == p->total)
		pop(w);
}

static void put_none(struct donor *d, struct waiting *w, const struct frame_fetch *f, struct peers_message *out) {
	*out = (struct peers_message){.header = frame_none_encode(f, d->cfg.run_tag, d->body),
								  .part = {d->body, NULL},
								  .part_bytes = {FRAME_NONE_BYTES, 0}};
	pop(w);
}

/* Returns true if something is left of the member's budget. */
static bool may_be_given(struct donor *d, int64_t now_us, uint32_t member) {
	int64_t left = donor_budget_left(&d->budget, now_us, d->round, member);
	if (left <= 0)
		d->limited |= UINT64_C(1) << member;
	else if (left >= d->budget.whole_bytes / 4)
		d->limited &= ~(UINT64_C(1) << member);
	return left > 0;
}

bool donor_send(struct donor *d, int64_t now_us, uint32_t member, struct peers_message *out) {
	RV_ASSERT(member < NET_MAX_MEMBERS);
	struct waiting *w = &d->waiting[member];
	if (w->n == 0) {
		if (d->has_pieces && !donor_busy(d))
			forget_pieces(d); /* buffers are for those who ask */
		return false;
	}
	struct frame_fetch f = w->at[w->first];
	if (w->forgotten == 0 && !may_open(d, now_us, &f))
		return false;
	if (!may_be_given(d, now_us, member))
		return false;
	w->ready_us = now_us;
	if (!line_is_free(d, now_us, w))
		return false;
	if (is_limited(d, now_us) && is_passed_over(d, now_us, member))
		return false;
	int64_t *credit = credit_of(d, w);
	struct frame_piece p;
	if (w->forgotten == 0 && find(d, now_us, &f, &p) && w->sent < p.total)
		put_slice(d, w, &p, out);
	else
		put_none(d, w, &f, out);
	size_t bytes = FRAME_HEADER_BYTES + out->part_bytes[0] + out->part_bytes[1];
	rate_charge(&d->cap, bytes);
	*credit -= (int64_t)bytes;
	donor_budget_charge(&d->budget, member, bytes);
	d->served_bytes += bytes;
	w->served = ++d->clock;
	return true;
}

uint64_t donor_limited(const struct donor *d) {
	return d->limited;
}

uint64_t donor_bytes(const struct donor *d) {
	return d->served_bytes;
}
