/* sim_text_store.c: a worker's cache of the text, as worker/text/text_cache.h: shards, whole or in
 * parts, in files that outlive a process. The quota is an oracle. */
#include "sim.h"

#include "base/assert.h"

#include <string.h>

#define LOST_RANGES   0.5  /* share of a part's ranges that a power cut takes */
#define FAILED_WRITES 0.02 /* of ranges, until everything heals */

const struct sim_shard *corpus_store_find(const struct sim_text *t, uint64_t shard) {
	for (int i = 0; i < SIM_TEXT_FILES; i++)
		if (t->files[i].used && t->files[i].shard == shard)
			return &t->files[i];
	return NULL;
}

static struct sim_shard *find(struct sim_text *t, uint64_t shard) {
	for (int i = 0; i < SIM_TEXT_FILES; i++)
		if (t->files[i].used && t->files[i].shard == shard)
			return &t->files[i];
	return NULL;
}

bool corpus_store_is_right(const struct sim_shard *f) {
	for (uint32_t r = 0; r < SIM_TEXT_RANGES; r++)
		if (f->check[r] != corpus_bytes_of(f->shard, r))
			return false;
	return true;
}

static void check_quota(struct sim_text *t) {
	uint64_t bytes = 0;
	for (int i = 0; i < SIM_TEXT_FILES; i++)
		bytes += t->files[i].used ? SIM_TEXT_BYTES : 0;
	if (bytes > SIM_TEXT_QUOTA || bytes != t->shelf.used_bytes)
		sim_fail(t->worker->sim, "w%d: its cache has %llu bytes of text, counts %llu, and may have %d", t->worker->host,
				 (unsigned long long)bytes, (unsigned long long)t->shelf.used_bytes, (int)SIM_TEXT_QUOTA);
}

/* ---- shards that go ---- */

/* A shard whose next sequence is the next to be read must stay, unless it is damaged. */
static void evict(void *ctx, uint64_t shard) {
	struct sim_text *t = ctx;
	const struct replica *r = &t->worker->replica;
	struct sim_shard *f = find(t, shard);
	const uint64_t next = r->next + (uint64_t)t->n_read;
	const bool is_read = t->has_read && shard == t->read_shard && reading_has(&r->reading, next, 1) &&
						 reading_position(&r->reading, next) / SIM_SHARD_SEQUENCES % SIM_SHARDS == shard;
	if (f && is_read && f->whole && corpus_store_is_right(f))
		sim_fail(t->worker->sim, "w%d: gives up shard %llu, which it is reading", t->worker->host,
				 (unsigned long long)shard);
	if (f)
		*f = (struct sim_shard){.used = false};
}

/* ---- the planner's store ---- */

static bool lacks(void *ctx, uint64_t shard, struct text_file *next) {
	struct sim_text *t = ctx;
	const struct sim_shard *f = find(t, shard);
	*next = (struct text_file){.kind = TEXT_SHARD, .i = shard};
	return !text_shelf_has(&t->shelf, shard) || !f || !f->whole;
}

/* Index pages are not simulated: they are all here. */
static bool lacks_page(void *ctx, int level, uint64_t i, struct text_file *next) {
	(void)ctx, (void)level, (void)i, (void)next;
	return false;
}

static void prefer(void *ctx, const uint64_t *shards, int n) {
	text_shelf_prefer(&((struct sim_text *)ctx)->shelf, shards, n);
}

static void verify(void *ctx, uint64_t shard) {
	struct sim_text *t = ctx;
	const struct sim_shard *f = find(t, shard);
	if (f && !f->open && f->whole && !corpus_store_is_right(f))
		text_shelf_drop(&t->shelf, shard);
}

static uint64_t bytes_of(void *ctx, const struct text_file *f) {
	(void)ctx, (void)f;
	return SIM_TEXT_BYTES;
}

static bool is_full(const struct sim_text *t) {
	return t->worker->disk.full || t->worker->disk.read_only;
}

static struct sim_shard *new_file(struct sim_text *t, uint64_t shard) {
	for (int i = 0; i < SIM_TEXT_FILES; i++)
		if (!t->files[i].used) {
			t->files[i] = (struct sim_shard){.used = true, .shard = shard};
			return &t->files[i];
		}
	sim_fail(t->worker->sim, "w%d: its cache has %d files", t->worker->host, (int)SIM_TEXT_FILES);
	return &t->files[0];
}

static enum rv_err begin(void *ctx, const struct text_file *file, uint8_t *held, bool *waits, struct rv_errtext *et) {
	struct sim_text *t = ctx;
	const bool was_here = text_shelf_has(&t->shelf, file->i);
	*waits = false;
	if (is_full(t) && !was_here)
		return rv_fail(et, RV_E_FULL, "the disk is full");
	if (text_shelf_take(&t->shelf, file->i, SIM_TEXT_BYTES) != TEXT_SHELF_TAKEN) {
		*waits = true;
		return rv_fail(et, RV_E_FULL, "the cache is full of what is needed before");
	}
	struct sim_shard *f = find(t, file->i);
	f = f ? f : new_file(t, file->i);
	RV_ASSERT(!f->whole || t->worker->sim->failed);
	f->open = true;
	for (uint32_t r = 0; r < SIM_TEXT_RANGES; r++)
		held[r] = f->check[r] != 0;
	check_quota(t);
	return RV_OK;
}

static enum rv_err write_range(void *ctx, const struct text_file *file, uint32_t range, const void *bytes, size_t n,
							   uint64_t check, struct rv_errtext *et) {
	struct sim_text *t = ctx;
	struct sim_shard *f = find(t, file->i);
	(void)bytes;
	RV_ASSERT(f && f->open && range < SIM_TEXT_RANGES && n == text_core_range_bytes(SIM_TEXT_BYTES, range));
	if (is_full(t))
		return rv_fail(et, RV_E_FULL, "the disk is full");
	if (!t->worker->sim->healed && sim_chance(t->worker->sim, t->worker->host, LUCK_DISK, FAILED_WRITES))
		return rv_fail(et, RV_E_IO, "the disk fails");
	f->check[range] = check;
	return RV_OK;
}

static enum rv_err finish(void *ctx, const struct text_file *file, struct rv_errtext *et) {
	struct sim_text *t = ctx;
	struct sim_shard *f = find(t, file->i);
	RV_ASSERT(f && f->open);
	f->open = false;
	if (!corpus_store_is_right(f)) {
		text_shelf_drop(&t->shelf, file->i);
		return rv_fail(et, RV_E_CORRUPT, "its hash is wrong");
	}
	f->whole = true;
	t->worker->sim->stats.text_shards++;
	return RV_OK;
}

static void leave(void *ctx, const struct text_file *file) {
	struct sim_shard *f = find(ctx, file->i);
	if (f)
		f->open = false;
}

const struct text_planner_ops sim_text_store = {.lacks = lacks,
												.lacks_page = lacks_page,
												.prefer = prefer,
												.verify = verify,
												.bytes_of = bytes_of,
												.begin = begin,
												.write = write_range,
												.finish = finish,
												.leave = leave};

/* ---- processes and disks ---- */

void corpus_store_open(struct sim_worker *w) {
	struct sim_text *t = w->text;
	text_shelf_init(&t->shelf, SIM_TEXT_QUOTA, evict, t);
	for (int i = 0; i < SIM_TEXT_FILES; i++)
		if (t->files[i].used)
			RV_ASSERT(text_shelf_found(&t->shelf, t->files[i].shard, SIM_TEXT_BYTES, (uint64_t)i));
	text_shelf_fit(&t->shelf);
	check_quota(t);
}

void corpus_store_close(struct sim *s, int host, bool power) {
	struct sim_text *t = s->workers[host].text;
	for (int i = 0; i < SIM_TEXT_FILES; i++) {
		struct sim_shard *f = &t->files[i];
		f->open = false;
		for (uint32_t r = 0; power && f->used && !f->whole && r < SIM_TEXT_RANGES; r++)
			if (sim_chance(s, host, LUCK_DISK, LOST_RANGES))
				f->check[r] = 0;
	}
	text_shelf_release(&t->shelf);
}

void corpus_store_wipe(struct sim_worker *w) {
	if (w->text)
		memset(w->text->files, 0, sizeof w->text->files);
}

void corpus_store_rot(struct sim_worker *w, uint32_t which) {
	struct sim_shard *f = w->text ? &w->text->files[which % SIM_TEXT_FILES] : NULL;
	for (int i = 0; w->text && i < SIM_TEXT_FILES && !f->whole; i++)
		f = &w->text->files[i];
	if (f && f->whole)
		f->check[which % SIM_TEXT_RANGES] ^= 2;
}
