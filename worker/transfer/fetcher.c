/* fetcher.c: pieces from the mesh to the disk, or what is on the disk already (worker/transfer/fetcher.h). */
#include "worker/transfer/fetcher.h"

#include "base/assert.h"
#include "base/failpoint.h"
#include "worker/state/state_packing.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_US = 1000 * 1000 }; /* after the disk or memory failed us */

/* A file that comes together. While jobs are under way the storage thread alone has what it says there; a job that is
 * posted may be done long before it is reaped. */
struct part {
	struct fetcher *f;
	struct state_id id;
	int slot;     /* of the core; -1: it is not wanted any more */
	int jobs;     /* posted and not done */
	bool opening; /* SNAPSHOT: a part may be on disk, and what is in it is not to be fetched */
	bool finishing, finished;
	atomic_bool unwanted; /* slot is -1: what waits for the storage thread is not worth its time */
	/* The storage thread's, while jobs > 0. */
	struct state_assembly *assembly; /* NULL: not open yet, or used up */
	bool own;                        /* it is on our own disk: nothing to put together */
	/* finished */
	struct state_file *snapshot;
	struct blob *log;
	struct rv_errtext warning;
};

enum part_job_kind { PART_OPEN, PART_MANIFEST, PART_PUT, PART_FINISH };

struct part_job {
	struct job job;
	struct part *part;
	enum part_job_kind kind;
	enum rv_err err;
	struct rv_errtext text;
	bool incomplete; /* FINISH: a piece could not be kept */
	uint32_t index;
	struct state_stored stored;
	struct rv_hash *manifest; /* OPEN: what a former process had; NULL: nothing */
	uint8_t *held;            /* OPEN: 1 byte per piece, behind the manifest */
	bool own;                 /* OPEN: it is on our own disk */
	size_t bytes;
	uint8_t data[]; /* MANIFEST, PUT */
};

struct fetcher {
	struct fetcher_config cfg;
	struct fetch_core *core; /* NULL: nothing was ever wanted */
	struct state_packer *packer;
	struct part *parts[FETCH_FILES]; /* by slot of the core; NULL: none */
	struct state_id waited;          /* ids[0] */
	bool waits;
	int puts;
	int64_t pause_until_us, now_us;
	uint64_t links, allowed;
	uint8_t body[FRAME_FETCH_BYTES];
};

enum rv_err fetcher_new(const struct fetcher_config *cfg, struct fetcher **out, struct rv_errtext *et) {
	struct fetcher *f = calloc(1, sizeof *f);
	if (!f)
		return rv_fail(et, RV_E_NOMEM, "no memory for fetching state");
	f->cfg = *cfg;
	*out = f;
	return RV_OK;
}

static void part_free(struct part *p) {
	state_assembly_free(p->assembly);
	state_file_free(p->snapshot);
	blob_unref(p->log);
	free(p);
}

void fetcher_free(struct fetcher *f) {
	if (!f)
		return;
	for (int i = 0; i < FETCH_FILES; i++)
		if (f->parts[i])
			part_free(f->parts[i]);
	state_packer_free(f->packer);
	free(f->core);
	free(f);
}

/* ---- on the storage thread ---- */

/* A former process may have left it here, or a state that was given up: what the document names is right wherever it is
 * found. All of it is checked; what is damaged or another is fetched as if it were not there. */
static bool take_own(struct part *p) {
	const struct state_id *id = &p->id;
	struct state_file *file;
	if (rv_hash_is_zero(&id->expect) || statestore_open(p->f->cfg.store, id->kind, id->round, &file, NULL) != RV_OK)
		return false;
	const struct state_id *found = state_file_id(file);
	bool snapshot = id->kind == STATE_KIND_SNAPSHOT;
	bool named = rv_hash_equal(&found->expect, &id->expect) && (!snapshot || rv_hash_equal(&found->chain, &id->chain));
	if (named && snapshot && state_file_verify(file, NULL) == RV_OK) {
		p->snapshot = file;
		return true;
	}
	bool whole = named && !snapshot && state_file_load_log(file, &p->log, NULL) == RV_OK;
	state_file_free(file);
	return whole;
}

static size_t manifest_bytes_of(const struct part *p) {
	return (size_t)state_manifest_hashes(&p->f->cfg.store->cfg, p->id.kind, p->id.round) * RV_HASH_BYTES;
}

static void run_open(struct part_job *j) {
	struct part *p = j->part;
	const struct global_config *g = &p->f->cfg.store->cfg;
	j->own = p->own = take_own(p);
	if (p->own)
		return;
	j->err = state_assembly_new(p->f->cfg.store, &p->id, &p->assembly, &j->text);
	if (j->err != RV_OK || !state_assembly_manifest(p->assembly))
		return;
	uint32_t n = state_pieces(g, p->id.kind, p->id.round);
	size_t manifest_bytes = manifest_bytes_of(p);
	struct rv_hash *manifest = malloc(manifest_bytes + n); /* and behind it, what is held */
	if (!manifest)
		return;
	memcpy(manifest, state_assembly_manifest(p->assembly), manifest_bytes);
	j->manifest = manifest;
	j->held = (uint8_t *)manifest + manifest_bytes;
	for (uint32_t i = 0; i < n; i++)
		j->held[i] = state_assembly_has(p->assembly, i);
}

static void run_finish(struct part_job *j) {
	struct part *p = j->part;
	struct state_file *file;
	j->incomplete = state_assembly_left(p->assembly) > 0;
	if (j->incomplete)
		return;
	j->err = state_assembly_finish(p->assembly, &file, &p->warning, &j->text);
	if (j->err != RV_OK)
		return;
	state_assembly_free(p->assembly);
	p->assembly = NULL;
	if (p->id.kind == STATE_KIND_SNAPSHOT) {
		RV_FAILPOINT("fetch.stored");
		p->snapshot = file;
		return;
	}
	j->err = state_file_load_log(file, &p->log, &j->text);
	state_file_free(file);
	RV_FAILPOINT("fetch.stored");
}

static void run_job(struct job *job) {
	struct part_job *j = JOB_OWNER(job, struct part_job, job);
	struct part *p = j->part;
	if (p->unwanted)
		return;
	if (j->kind == PART_OPEN) {
		run_open(j);
		return;
	}
	if (p->own)
		return;
	if (!p->assembly) {
		j->err = rv_fail(&j->text, RV_E_CANCELLED, "there is no file to put it in");
		return;
	}
	if (j->kind == PART_FINISH)
		run_finish(j);
	else if (j->kind == PART_PUT)
		j->err = state_assembly_put(p->assembly, j->index, &j->stored, j->data, &j->text);
	else if (!state_assembly_manifest(p->assembly))
		j->err = state_assembly_set_manifest(p->assembly, (const struct rv_hash *)(const void *)j->data, &j->text);
}

/* ---- back on the event loop ---- */

static bool same_id(const struct state_id *a, const struct state_id *b) {
	return a->kind == b->kind && a->round == b->round && rv_hash_equal(&a->expect, &b->expect);
}

static void tell_wanted(struct fetcher *f);

/* Not wanted any more, or of no use: it goes as soon as the storage thread is done with it. */
static void give_up(struct part *p) {
	if (p->slot >= 0)
		p->f->parts[p->slot] = NULL;
	p->slot = -1;
	p->unwanted = true;
	if (p->jobs == 0)
		part_free(p);
}

static void fail_part(struct part *p, enum rv_err e, const char *text) {
	struct fetcher *f = p->f;
	struct state_id id = p->id;
	f->pause_until_us = f->now_us + PAUSE_US;
	if (p->slot < 0)
		return;
	give_up(p);
	tell_wanted(f);
	f->cfg.owner.on_failed(f->cfg.owner.ctx, &id, e, text);
}

/* Hands over what is waited for. */
static void deliver(struct part *p) {
	struct fetcher *f = p->f;
	if (!p->finished || !f->waits || !same_id(&p->id, &f->waited))
		return;
	struct state_file *snapshot = p->snapshot;
	struct blob *log = p->log;
	struct state_id id = p->id;
	struct rv_errtext warning = p->warning;
	p->snapshot = NULL;
	p->log = NULL;
	f->waits = false;
	give_up(p);
	f->cfg.owner.on_file(f->cfg.owner.ctx, &id, snapshot, log, warning.text);
}

static bool post(struct part *p, const struct part_job *like, const void *data);

/* What is fetched ahead waits in memory: a log entry is written after the snapshot before it has been installed, for that
 * makes room for another history. */
static void finish(struct part *p) {
	if (p->finishing || p->finished || !p->f->waits || !same_id(&p->id, &p->f->waited))
		return;
	p->finishing = true;
	if (!post(p, &(struct part_job){.kind = PART_FINISH}, NULL))
		p->finishing = false; /* fetcher_tick tries again */
}

static void done_open(struct part_job *j) {
	struct part *p = j->part;
	p->opening = false;
	if (p->slot >= 0)
		fetch_core_look(p->f->core, p->slot, false);
	if (j->err != RV_OK) {
		fail_part(p, j->err, j->text.text);
		return;
	}
	if (j->own && p->slot >= 0) {
		p->finished = true;
		tell_wanted(p->f);
		deliver(p);
		return;
	}
	if (j->manifest && p->slot >= 0 && fetch_core_resume(p->f->core, p->slot, j->manifest, j->held))
		finish(p);
}

static void done_put(struct part_job *j) {
	struct part *p = j->part;
	p->f->puts--;
	if (j->err == RV_OK || p->slot < 0)
		return;
	fetch_core_lost(p->f->core, p->slot, j->index);
	fail_part(p, j->err, j->text.text);
}

static void done_finish(struct part_job *j) {
	struct part *p = j->part;
	p->finishing = false;
	if (p->slot < 0)
		return;
	if (j->err != RV_OK) {
		fail_part(p, j->err, j->text.text);
		return;
	}
	p->finished = !j->incomplete;
	deliver(p);
}

static void job_done(struct job *job) {
	struct part_job *j = JOB_OWNER(job, struct part_job, job);
	struct part *p = j->part;
	switch (j->kind) {
	case PART_OPEN:
		done_open(j);
		break;
	case PART_MANIFEST:
		if (j->err != RV_OK)
			fail_part(p, j->err, j->text.text);
		break;
	case PART_PUT:
		done_put(j);
		break;
	case PART_FINISH:
		done_finish(j);
		break;
	}
	if (--p->jobs == 0 && p->slot < 0)
		part_free(p);
	free(j->manifest);
	free(j);
}

static bool post(struct part *p, const struct part_job *like, const void *data) {
	struct part_job *j = malloc(sizeof *j + like->bytes);
	if (!j)
		return false;
	memcpy(j, like, sizeof *j);
	if (like->bytes > 0)
		memcpy(j->data, data, like->bytes);
	j->part = p;
	j->job = (struct job){.run = run_job, .done = job_done};
	p->jobs++;
	jobs_post(p->f->cfg.storage, &j->job);
	return true;
}

/* ---- what is wanted ---- */

static enum rv_err decode(void *ctx, uint8_t encoding, const void *in, size_t in_bytes, void *out, size_t out_bytes,
						  struct rv_errtext *et) {
	struct fetcher *f = ctx;
	RV_TRY(state_stored_check(encoding, (uint32_t)in_bytes, out_bytes, et));
	struct state_stored what = {.encoding = (enum state_encoding)encoding, .bytes = (uint32_t)in_bytes};
	return state_unpack(f->packer, &what, in, out, out_bytes, et);
}

static enum rv_err check_manifest(void *ctx, const struct state_id *id, const struct rv_hash *manifest,
								  struct rv_errtext *et) {
	struct fetcher *f = ctx;
	if (rv_hash_is_zero(&id->expect)) /* the first state of a run from given weights: its owner knows */
		return f->cfg.check_initial(f->cfg.owner.ctx, manifest, et);
	return state_manifest_check(&f->cfg.store->cfg, id, manifest, et);
}

static enum rv_err open_core(struct fetcher *f, int64_t now_us, struct rv_errtext *et) {
	struct fetch_core_config cfg = {.global = &f->cfg.store->cfg,
									.self_member = f->cfg.self_member,
									.stall_us = f->cfg.stall_us,
									.check_manifest = check_manifest,
									.decode = decode,
									.ctx = f};
	if (f->core)
		return RV_OK;
	size_t bytes = fetch_core_bytes(&cfg);
	void *memory = malloc(bytes);
	if (!f->packer)
		f->packer = state_packer_new();
	if (!memory || !f->packer) {
		free(memory);
		return rv_fail(et, RV_E_NOMEM, "no memory to fetch state from peers (%zu bytes)", bytes);
	}
	f->core = fetch_core_init(memory, &cfg, now_us);
	fetch_core_allow(f->core, now_us, f->allowed);
	for (uint32_t m = 0; m < NET_MAX_MEMBERS; m++)
		if (f->links >> m & 1)
			fetch_core_link_up(f->core, now_us, m);
	return RV_OK;
}

static struct part *find_part(const struct fetcher *f, const struct state_id *id) {
	for (int i = 0; i < FETCH_FILES; i++)
		if (f->parts[i] && same_id(&f->parts[i]->id, id))
			return f->parts[i];
	return NULL;
}

/* Finished parts wait where the core has no file. */
static void keep_finished(struct fetcher *f, struct part *const *finished, int n) {
	for (int i = 0, slot = 0; i < n; i++) {
		while (f->parts[slot])
			slot++;
		finished[i]->slot = slot;
		f->parts[slot] = finished[i];
	}
}

/* The core wants what there are parts for and is not here yet, the one that is waited for first. */
static void tell_wanted(struct fetcher *f) {
	struct state_id ids[FETCH_FILES];
	struct part *parts[FETCH_FILES], *finished[FETCH_FILES];
	int n = 0, n_finished = 0, slots[FETCH_FILES];
	for (int i = 0; i < FETCH_FILES; i++)
		if (f->parts[i] && f->parts[i]->finished) {
			finished[n_finished++] = f->parts[i];
			f->parts[i] = NULL;
		}
	for (int first = 1; first >= 0; first--)
		for (int i = 0; i < FETCH_FILES; i++) {
			struct part *p = f->parts[i];
			if (!p || (f->waits && same_id(&p->id, &f->waited)) != (first == 1))
				continue;
			parts[n] = p;
			ids[n++] = p->id;
		}
	fetch_core_want(f->core, f->now_us, ids, n, slots);
	memset(f->parts, 0, sizeof f->parts);
	for (int i = 0; i < n; i++) {
		parts[i]->slot = slots[i];
		f->parts[slots[i]] = parts[i];
		fetch_core_look(f->core, slots[i], parts[i]->opening);
	}
	keep_finished(f, finished, n_finished);
}

static enum rv_err add_part(struct fetcher *f, const struct state_id *id, struct rv_errtext *et) {
	int at = f->parts[0] ? 1 : 0;
	struct part *p = calloc(1, sizeof *p);
	RV_ASSERT(!f->parts[at]);
	if (!p)
		return rv_fail(et, RV_E_NOMEM, "no memory to fetch round %llu", (unsigned long long)id->round);
	p->f = f;
	p->id = *id;
	p->slot = at; /* tell_wanted says which */
	p->opening = id->kind == STATE_KIND_SNAPSHOT;
	if (!post(p, &(struct part_job){.kind = PART_OPEN}, NULL)) {
		free(p);
		return rv_fail(et, RV_E_NOMEM, "no memory to fetch round %llu", (unsigned long long)id->round);
	}
	f->parts[at] = p;
	return RV_OK;
}

static bool is_in(const struct state_id *ids, int n, const struct state_id *id) {
	for (int i = 0; i < n; i++)
		if (same_id(&ids[i], id))
			return true;
	return false;
}

enum rv_err fetcher_want(struct fetcher *f, int64_t now_us, const struct state_id *ids, int n, struct rv_errtext *et) {
	RV_ASSERT(n <= FETCH_FILES);
	f->now_us = now_us;
	f->waits = n > 0;
	if (n == 0 && !f->core)
		return RV_OK;
	if (n > 0)
		f->waited = ids[0];
	RV_TRY(open_core(f, now_us, et));
	for (int i = 0; i < FETCH_FILES; i++)
		if (f->parts[i] && !is_in(ids, n, &f->parts[i]->id))
			give_up(f->parts[i]);
	enum rv_err e = RV_OK;
	for (int i = 0; i < n && e == RV_OK; i++)
		if (!find_part(f, &ids[i]))
			e = add_part(f, &ids[i], et);
	tell_wanted(f);
	struct part *first = n > 0 ? find_part(f, &ids[0]) : NULL;
	if (first && first->finished)
		deliver(first);
	else if (first && fetch_core_complete(f->core, first->slot))
		finish(first);
	return e;
}

/* ---- the mesh ---- */

void fetcher_allow(struct fetcher *f, int64_t now_us, uint64_t members) {
	f->allowed = members;
	f->now_us = now_us;
	if (f->core)
		fetch_core_allow(f->core, now_us, members);
}

void fetcher_link_up(struct fetcher *f, int64_t now_us, uint32_t member) {
	f->links |= UINT64_C(1) << member;
	f->now_us = now_us;
	if (f->core)
		fetch_core_link_up(f->core, now_us, member);
}

void fetcher_link_down(struct fetcher *f, int64_t now_us, uint32_t member) {
	f->links &= ~(UINT64_C(1) << member);
	f->now_us = now_us;
	if (f->core)
		fetch_core_link_down(f->core, now_us, member);
}

static void keep_manifest(struct part *p) {
	if (!post(p, &(struct part_job){.kind = PART_MANIFEST, .bytes = manifest_bytes_of(p)},
			  fetch_core_manifest(p->f->core, p->slot)))
		fail_part(p, RV_E_NOMEM, "no memory for a manifest");
}

static void keep_piece(struct part *p, const struct fetch_event *e) {
	struct fetcher *f = p->f;
	RV_FAILPOINT("fetch.piece");
	struct part_job j = {.kind = PART_PUT,
						 .index = e->index,
						 .stored = {.encoding = (enum state_encoding)e->encoding, .bytes = e->stored_bytes},
						 .bytes = e->stored_bytes};
	if (f->puts >= FETCHER_PUTS_MAX || !post(p, &j, e->stored)) {
		fetch_core_lost(f->core, e->slot, e->index);
		return;
	}
	f->puts++;
	if (e->complete)
		finish(p);
}

static void on_event(struct fetcher *f, uint32_t member, const struct state_id *id, const struct fetch_event *e) {
	struct part *p = e->slot >= 0 ? f->parts[e->slot] : NULL;
	if (p && p->finished)
		p = NULL;
	if (e->type == FETCH_BAD_DONOR)
		f->cfg.owner.on_bad_donor(f->cfg.owner.ctx, member, id, e->text.text);
	else if (p && e->type == FETCH_MANIFEST)
		keep_manifest(p);
	else if (p && e->type == FETCH_PIECE)
		keep_piece(p, e);
}

enum rv_err fetcher_receive(struct fetcher *f, int64_t now_us, uint32_t member, const struct frame_header *h,
							const uint8_t *body, struct rv_errtext *et) {
	struct frame_piece piece;
	struct frame_fetch none;
	struct fetch_event event;
	f->now_us = now_us;
	if (!f->core)
		return rv_fail(et, RV_E_PROTOCOL, "a %s that was not asked for", frame_type_name(h->type));
	if (h->type == FRAME_PIECE) {
		RV_TRY(frame_piece_decode(h, body, &piece, et));
		RV_TRY(fetch_core_piece(f->core, now_us, member, &piece, &event, et));
	} else {
		RV_TRY(frame_none_decode(h, body, &none, et));
		RV_TRY(fetch_core_none(f->core, now_us, member, &none, &event, et));
	}
	struct state_id id = {0};
	if (event.slot >= 0 && f->parts[event.slot])
		id = f->parts[event.slot]->id;
	on_event(f, member, &id, &event);
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
		if (f->parts[i] && fetch_core_complete(f->core, i))
			finish(f->parts[i]);
}

int64_t fetcher_deadline_us(const struct fetcher *f) {
	if (!f->core)
		return INT64_MAX;
	int64_t at_us = fetch_core_deadline_us(f->core);
	return f->pause_until_us > f->now_us && f->pause_until_us < at_us ? f->pause_until_us : at_us;
}

void fetcher_progress(const struct fetcher *f, uint64_t *done, uint64_t *total) {
	const struct part *p = f->waits ? find_part(f, &f->waited) : NULL;
	*done = *total = 0;
	if (p)
		fetch_core_progress(f->core, p->slot, done, total);
}

bool fetcher_nowhere(const struct fetcher *f) {
	const struct part *p = f->waits ? find_part(f, &f->waited) : NULL;
	return p && !p->finished && !fetch_core_complete(f->core, p->slot) && fetch_core_nowhere(f->core, p->slot);
}
