/* fetcher.c: takes pieces from the mesh to the disk, or files already there
 * (worker/transfer/fetcher.h). */
#include "worker/transfer/fetcher.h"

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/planted.h"

#include <string.h>

enum { PAUSE_US = 1000 * 1000 }; /* after a fault of the disk or memory */

/* A file that is being put together; its slot is that of the core. */
struct part {
	void *file; /* NULL: the slot is free */
	struct state_id id;
	bool opening; /* SNAPSHOT: a part may be on disk, and what is in it is not to be fetched */
	bool finishing, finished;
};

struct fetcher {
	struct fetcher_config cfg;
	struct fetch_core *core; /* NULL: nothing was ever wanted */
	struct part parts[FETCH_FILES];
	struct state_id waited; /* ids[0] */
	bool waits;
	int puts; /* pieces on their way to the disk */
	int64_t pause_until_us, now_us;
	struct member_set links, allowed;
	uint8_t body[FRAME_FETCH_BYTES];
};

size_t fetcher_size(void) {
	return sizeof(struct fetcher);
}

struct fetcher *fetcher_init(void *memory, const struct fetcher_config *cfg) {
	struct fetcher *f = memory;
	RV_ASSERT(cfg->ops.open && cfg->ops.post && cfg->owner.on_file);
	*f = (struct fetcher){.cfg = *cfg};
	return f;
}

void fetcher_release(struct fetcher *f) {
	for (int i = 0; i < FETCH_FILES; i++)
		if (f->parts[i].file)
			f->cfg.ops.drop(f->cfg.ops.ctx, f->parts[i].file);
	f->core = NULL;
}

static int slot_of(const struct fetcher *f, const struct part *p) {
	return (int)(p - f->parts);
}

static struct part *find_part(struct fetcher *f, const struct state_id *id) {
	for (int i = 0; i < FETCH_FILES; i++)
		if (f->parts[i].file && state_id_equal(&f->parts[i].id, id))
			return &f->parts[i];
	return NULL;
}

static bool is_waited_for(const struct fetcher *f, const struct part *p) {
	return f->waits && state_id_equal(&p->id, &f->waited);
}

static bool post(struct fetcher *f, const struct part *p, const struct fetcher_job *job) {
	RV_ASSERT(p->file);
	return f->cfg.ops.post(f->cfg.ops.ctx, p->file, job);
}

/* ---- what the core wants ---- */

/* Gives the core the files that have parts, the one that is waited for first. */
static void want_parts(struct fetcher *f) {
	struct state_id ids[FETCH_FILES];
	struct part parts[FETCH_FILES];
	int n = 0, slots[FETCH_FILES];
	for (int first = 1; first >= 0; first--)
		for (int i = 0; i < FETCH_FILES; i++) {
			const struct part *p = &f->parts[i];
			if (!p->file || is_waited_for(f, p) != (first == 1))
				continue;
			ids[n] = p->id;
			parts[n++] = *p;
		}
	fetch_core_want(f->core, f->now_us, ids, n, slots);
	memset(f->parts, 0, sizeof f->parts);
	for (int i = 0; i < n; i++) {
		RV_ASSERT(!f->parts[slots[i]].file);
		f->parts[slots[i]] = parts[i];
		fetch_core_look(f->core, slots[i], parts[i].opening);
	}
}

static void give_up(struct fetcher *f, struct part *p) {
	f->cfg.ops.drop(f->cfg.ops.ctx, p->file);
	*p = (struct part){.file = NULL};
}

static void fail_part(struct fetcher *f, struct part *p, enum rv_err e, const char *text) {
	const struct state_id id = p->id;
	RV_ASSERT(e != RV_OK);
	f->pause_until_us = RV_BUG("pause-fetching-for-ever") ? INT64_MAX : f->now_us + PAUSE_US;
	give_up(f, p);
	want_parts(f);
	f->cfg.owner.on_failed(f->cfg.owner.ctx, &id, e, text);
}

/* Hands over what is waited for. */
static void deliver(struct fetcher *f, struct part *p) {
	if (!p->finished || !is_waited_for(f, p))
		return;
	struct fetched what = {.snapshot = NULL};
	f->cfg.ops.take(f->cfg.ops.ctx, p->file, &what);
	f->waits = false;
	give_up(f, p);
	f->cfg.owner.on_file(f->cfg.owner.ctx, &what, false);
}

static void finish(struct fetcher *f, struct part *p) {
	if (p->opening || p->finishing || p->finished || !is_waited_for(f, p))
		return;
	p->finishing = post(f, p, &(struct fetcher_job){.step = FETCHER_FINISH}); /* else fetcher_tick tries again */
}

/* ---- the answers of a file's jobs ---- */

static void done_open(struct fetcher *f, struct part *p, const struct fetcher_job *j) {
	p->opening = RV_BUG("look-without-end") && p->opening;
	fetch_core_look(f->core, slot_of(f, p), p->opening);
	if (!j->manifest)
		return;
	bool whole = fetch_core_resume(f->core, slot_of(f, p), j->manifest, j->held);
	RV_ASSERT(whole || !j->own);
	p->finished = j->own;
	if (j->own)
		deliver(f, p);
	else if (whole)
		finish(f, p);
}

static void done_finish(struct fetcher *f, struct part *p, const struct fetcher_job *j) {
	RV_ASSERT(p->finishing && !p->finished);
	p->finishing = false;
	p->finished = !j->incomplete;
	deliver(f, p);
}

/* Hands over a file that was dropped during its write, and is on the disk now. */
static void deliver_late(struct fetcher *f, void *file) {
	struct fetched what = {.snapshot = NULL};
	f->cfg.ops.take(f->cfg.ops.ctx, file, &what);
	f->cfg.owner.on_file(f->cfg.owner.ctx, &what, true);
}

void fetcher_on_done(struct fetcher *f, void *file, const struct fetcher_job *j) {
	struct part *p = NULL;
	for (int i = 0; i < FETCH_FILES; i++)
		if (f->parts[i].file == file)
			p = &f->parts[i];
	f->puts -= j->step == FETCHER_PIECE;
	RV_ASSERT(file && f->puts >= 0);
	if (!p && j->step == FETCHER_FINISH && j->err == RV_OK && !j->incomplete)
		deliver_late(f, file);
	if (!p)
		return; /* it was dropped */
	if (j->err != RV_OK)
		fail_part(f, p, j->err, j->text);
	else if (j->step == FETCHER_OPEN)
		done_open(f, p, j);
	else if (j->step == FETCHER_FINISH)
		done_finish(f, p, j);
}

/* ---- what is wanted ---- */

static enum rv_err open_core(struct fetcher *f, int64_t now_us, struct rv_errtext *et) {
	const struct fetch_core_config cfg = {.global = f->cfg.global,
										  .self_member = f->cfg.self_member,
										  .stall_us = f->cfg.stall_us,
										  .check_initial = f->cfg.check_initial,
										  .check_ctx = f->cfg.owner.ctx,
										  .decode = f->cfg.ops.decode,
										  .decode_ctx = f->cfg.ops.ctx};
	if (f->core)
		return RV_OK;
	void *memory = f->cfg.ops.memory(f->cfg.ops.ctx, fetch_core_bytes(&cfg));
	if (!memory)
		return rv_fail(et, RV_E_NOMEM, "no memory to fetch state from peers (%zu bytes)", fetch_core_bytes(&cfg));
	f->core = fetch_core_init(memory, &cfg, now_us);
	fetch_core_allow(f->core, now_us, &f->allowed);
	for (int i = 0; i < f->links.n; i++)
		fetch_core_link_up(f->core, now_us, f->links.members[i]);
	return RV_OK;
}

static enum rv_err add_part(struct fetcher *f, const struct state_id *id, struct rv_errtext *et) {
	struct part *p = &f->parts[f->parts[0].file ? 1 : 0]; /* want_parts decides which */
	RV_ASSERT(!p->file);
	void *file = f->cfg.ops.open(f->cfg.ops.ctx, id);
	if (!file)
		return rv_fail(et, RV_E_NOMEM, "no memory to fetch round %llu", (unsigned long long)id->round);
	*p = (struct part){.file = file, .id = *id, .opening = id->kind == STATE_KIND_SNAPSHOT};
	return RV_OK;
}

enum rv_err fetcher_want(struct fetcher *f, int64_t now_us, const struct state_id *ids, int n, struct rv_errtext *et) {
	RV_ASSERT(n >= 0 && n <= FETCH_FILES);
	f->now_us = now_us;
	f->waits = n > 0;
	if (n == 0 && !f->core)
		return RV_OK;
	if (n > 0)
		f->waited = ids[0];
	RV_TRY(open_core(f, now_us, et));
	for (int i = 0; i < FETCH_FILES; i++)
		if (f->parts[i].file && !state_id_is_in(ids, n, &f->parts[i].id))
			give_up(f, &f->parts[i]);
	enum rv_err e = RV_OK;
	for (int i = 0; i < n && e == RV_OK; i++)
		if (!find_part(f, &ids[i]))
			e = add_part(f, &ids[i], i == 0 ? et : NULL);
	f->waits = n > 0 && find_part(f, &ids[0]); /* the file ahead may fail for lack of memory */
	want_parts(f);
	struct part *first = f->waits ? find_part(f, &ids[0]) : NULL;
	if (first && first->finished)
		deliver(f, first);
	else if (first && fetch_core_complete(f->core, slot_of(f, first)))
		finish(f, first);
	return n == 0 || first ? RV_OK : e;
}

/* ---- the mesh ---- */

void fetcher_allow(struct fetcher *f, int64_t now_us, const struct member_set *members) {
	f->allowed = *members;
	f->now_us = now_us;
	if (f->core)
		fetch_core_allow(f->core, now_us, members);
}

void fetcher_link_up(struct fetcher *f, int64_t now_us, uint32_t member) {
	(void)member_set_add(&f->links, member);
	f->now_us = now_us;
	if (f->core)
		fetch_core_link_up(f->core, now_us, member);
}

void fetcher_link_down(struct fetcher *f, int64_t now_us, uint32_t member) {
	member_set_remove(&f->links, member);
	f->now_us = now_us;
	if (f->core)
		fetch_core_link_down(f->core, now_us, member);
}

static void keep_manifest(struct fetcher *f, struct part *p) {
	const struct fetcher_job j = {.step = FETCHER_MANIFEST,
								  .data = fetch_core_manifest(f->core, slot_of(f, p)),
								  .bytes = (size_t)state_manifest_hashes(f->cfg.global, p->id.kind, p->id.round) *
										   RV_HASH_BYTES};
	if (!post(f, p, &j))
		fail_part(f, p, RV_E_NOMEM, "no memory for a manifest");
}

static void keep_piece(struct fetcher *f, struct part *p, const struct fetch_event *e) {
	RV_FAILPOINT("fetch.piece");
	const struct fetcher_job j = {
		.step = FETCHER_PIECE, .index = e->index, .encoding = e->encoding, .data = e->stored, .bytes = e->stored_bytes};
	if (f->puts >= FETCHER_PUTS_MAX || !post(f, p, &j)) {
		if (!RV_BUG("forget-a-lost-piece"))
			fetch_core_lost(f->core, e->slot, e->index);
		return;
	}
	f->puts++;
	if (e->complete)
		finish(f, p);
}

static void on_event(struct fetcher *f, uint32_t member, const struct fetch_event *e) {
	struct part *p = e->slot >= 0 && f->parts[e->slot].file ? &f->parts[e->slot] : NULL;
	if (e->type == FETCH_BAD_DONOR)
		f->cfg.owner.on_bad_donor(f->cfg.owner.ctx, member, p ? &p->id : &(struct state_id){0}, e->text.text);
	else if (p && e->type == FETCH_MANIFEST)
		keep_manifest(f, p);
	else if (p && e->type == FETCH_PIECE)
		keep_piece(f, p, e);
}

enum rv_err fetcher_receive(struct fetcher *f, int64_t now_us, uint32_t member, const struct frame_header *h,
							const uint8_t *body, struct rv_errtext *et) {
	struct frame_piece piece;
	struct frame_fetch none;
	struct fetch_event event;
	f->now_us = now_us;
	if (!f->core)
		return rv_fail(et, RV_E_PROTOCOL, "a %s that was not asked for", frame_type_name(h->type));
	if (h->type == FRAME_NONE) {
		RV_TRY(frame_fetch_decode(h, body, &none, et));
		return fetch_core_none(f->core, now_us, member, &none, et);
	}
	RV_TRY(frame_piece_decode(h, body, &piece, et));
	RV_TRY(fetch_core_piece(f->core, now_us, member, &piece, &event, et));
	on_event(f, member, &event);
	return RV_OK;
}

bool fetcher_send(struct fetcher *f, int64_t now_us, uint32_t member, struct peers_message *out) {
	struct frame_fetch m;
	f->now_us = now_us;
	if (!f->core || f->puts >= FETCHER_PUTS_MAX / 2 || now_us < f->pause_until_us ||
		!fetch_core_send(f->core, now_us, member, &m))
		return false;
	*out = (struct peers_message){.header = frame_fetch_encode(&m, f->cfg.run_tag, f->body)};
	out->part[0] = f->body;
	out->part_bytes[0] = FRAME_FETCH_BYTES;
	return true;
}

void fetcher_tick(struct fetcher *f, int64_t now_us) {
	f->now_us = now_us;
	if (!f->core)
		return;
	fetch_core_tick(f->core, now_us);
	for (int i = 0; i < FETCH_FILES; i++)
		if (f->parts[i].file && fetch_core_complete(f->core, i))
			finish(f, &f->parts[i]);
}

int64_t fetcher_deadline_us(const struct fetcher *f) {
	if (!f->core)
		return INT64_MAX;
	int64_t at_us = fetch_core_deadline_us(f->core);
	return f->pause_until_us > f->now_us && f->pause_until_us < at_us ? f->pause_until_us : at_us;
}

/* Returns the file that is waited for; NULL: none. */
static const struct part *waited_for(const struct fetcher *f) {
	for (int i = 0; i < FETCH_FILES; i++)
		if (f->parts[i].file && is_waited_for(f, &f->parts[i]))
			return &f->parts[i];
	return NULL;
}

void fetcher_progress(const struct fetcher *f, uint64_t *done, uint64_t *total) {
	const struct part *p = waited_for(f);
	*done = *total = 0;
	if (p)
		fetch_core_progress(f->core, slot_of(f, p), done, total);
}

bool fetcher_nowhere(const struct fetcher *f) {
	const struct part *p = waited_for(f);
	return p && !fetch_core_complete(f->core, slot_of(f, p)) && fetch_core_nowhere(f->core, slot_of(f, p));
}
