/* donor_store.c: a few open files, a few pieces in memory (worker/transfer/donor_store.h). */
#include "worker/transfer/donor_store.h"

#include "worker/state/state_file.h"
#include "worker/state/state_packing.h"

#include <stdlib.h>

enum {
	USELESS_US = 1000 * 1000, /* an unusable file is not opened again for this long */
	/* Opening a file reads and checks its manifest, on the event loop: peers that ask for another
	 * file each time get this many at once, and then one per period. */
	OPENS_AT_ONCE = 64,
	OPEN_EVERY_US = 10 * 1000
};

struct open_file {
	struct state_file *file; /* NULL: free, or unusable */
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

struct donor_store {
	const struct statestore *store;
	struct open_file files[DONOR_FILES];
	struct cached_piece pieces[DONOR_PIECES];
	uint64_t clock;   /* counts uses */
	int64_t opens_us; /* when all opens so far have been paid for */
	uint64_t donor[]; /* donor_size() bytes */
};

static struct donor_store *store_of(struct donor *d) {
	return (struct donor_store *)(void *)((uint8_t *)d - offsetof(struct donor_store, donor));
}

static void forget_pieces(struct donor_store *d) {
	for (int i = 0; i < DONOR_PIECES; i++) {
		free(d->pieces[i].data);
		d->pieces[i] = (struct cached_piece){0};
	}
}

static void close_file(struct open_file *f) {
	state_file_free(f->file);
	*f = (struct open_file){0};
}

void donor_forget(struct donor *donor, enum state_kind kind, uint64_t round) {
	struct donor_store *d = store_of(donor);
	for (int i = 0; i < DONOR_FILES; i++)
		if (d->files[i].kind == kind && d->files[i].round == round)
			close_file(&d->files[i]);
	for (int i = 0; i < DONOR_PIECES; i++)
		if (d->pieces[i].what.kind == kind && d->pieces[i].what.round == round)
			d->pieces[i].valid = false;
}

void donor_forget_all(struct donor *donor) {
	struct donor_store *d = store_of(donor);
	for (int i = 0; i < DONOR_FILES; i++)
		close_file(&d->files[i]);
	forget_pieces(d);
}

/* ---- what the donor asks for ---- */

static bool is_known(const struct open_file *o, int64_t now_us, const struct frame_fetch *f) {
	return o->kind == (enum state_kind)f->kind && o->round == f->round && (o->file || now_us < o->useless_until_us);
}

static bool may_look(void *ctx, int64_t now_us, const struct frame_fetch *f) {
	const struct donor_store *d = ctx;
	for (int i = 0; i < DONOR_FILES; i++)
		if (is_known(&d->files[i], now_us, f))
			return true;
	return d->opens_us <= now_us + (OPENS_AT_ONCE - 1) * OPEN_EVERY_US;
}

static struct state_file *open_into(struct donor_store *d, int64_t now_us, const struct frame_fetch *f,
									struct open_file *place) {
	char path[STATESTORE_PATH_BYTES];
	struct state_file *file;
	enum state_kind kind = (enum state_kind)f->kind;
	statestore_path(d->store, kind == STATE_KIND_SNAPSHOT ? STATE_FILE_SNAPSHOT : STATE_FILE_LOG, f->round, path);
	enum rv_err e = state_file_open(&d->store->cfg, kind, path, &file, NULL);
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

/* Returns the open file; NULL: none, or damaged (which recovery and `checkpoint verify` report). */
static struct state_file *file_of(struct donor_store *d, int64_t now_us, const struct frame_fetch *f) {
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

/* Returns the piece from memory, or reads it in place of the least recently used one; NULL: not
 * possible. */
static struct cached_piece *piece_of(struct donor_store *d, struct state_file *file, const struct frame_fetch *f) {
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
	if (f->index >= state_pieces(&d->store->cfg, (enum state_kind)f->kind, f->round))
		return NULL;
	if (!oldest->data)
		oldest->data = malloc(STATE_PIECE_MAX_BYTES);
	if (!oldest->data)
		return NULL;
	oldest->valid = state_file_read_stored(file, f->index, oldest->data, NULL) == RV_OK;
	oldest->what = *f;
	oldest->stored = state_file_stored(file, f->index);
	oldest->used = ++d->clock;
	return oldest->valid ? oldest : NULL;
}

static bool manifest_part(struct donor_store *d, struct state_file *file, const struct frame_fetch *f,
						  struct frame_piece *out) {
	uint64_t bytes =
		state_manifest_hashes(&d->store->cfg, (enum state_kind)f->kind, f->round) * (uint64_t)RV_HASH_BYTES;
	uint64_t at = (uint64_t)f->index * NET_MANIFEST_PART_BYTES;
	if (at >= bytes)
		return false;
	out->total = (uint32_t)(bytes - at < NET_MANIFEST_PART_BYTES ? bytes - at : NET_MANIFEST_PART_BYTES);
	out->data = (const uint8_t *)state_file_manifest(file) + at;
	return true;
}

static bool find(void *ctx, int64_t now_us, struct frame_piece *out) {
	struct donor_store *d = ctx;
	struct state_file *file = file_of(d, now_us, &out->of);
	if (!file)
		return false;
	if (out->of.part == FRAME_PART_MANIFEST)
		return manifest_part(d, file, &out->of, out);
	const struct cached_piece *p = piece_of(d, file, &out->of);
	if (!p)
		return false;
	_Static_assert((int)STATE_RAW == (int)FRAME_RAW && (int)STATE_ZSTD == (int)FRAME_ZSTD, "as stored, so sent");
	out->encoding = (uint8_t)p->stored.encoding;
	out->total = p->stored.bytes;
	out->data = p->data;
	return true;
}

static int64_t ready_us(void *ctx) {
	return ((struct donor_store *)ctx)->opens_us - (OPENS_AT_ONCE - 1) * OPEN_EVERY_US;
}

/* Frees the buffers while no peer asks. */
static void idle(void *ctx) {
	forget_pieces(ctx);
}

enum rv_err donor_new(const struct donor_config *cfg, const struct statestore *store, struct donor **out,
					  struct rv_errtext *et) {
	struct donor_store *d = calloc(1, sizeof *d + donor_size());
	struct donor_config own = *cfg;
	if (!d)
		return rv_fail(et, RV_E_NOMEM, "no memory for serving state to peers");
	d->store = store;
	own.source =
		(struct donor_source){.ctx = d, .may_look = may_look, .find = find, .ready_us = ready_us, .idle = idle};
	*out = donor_init(d->donor, &own);
	return RV_OK;
}

void donor_free(struct donor *d) {
	if (!d)
		return;
	donor_forget_all(d);
	free(store_of(d));
}
