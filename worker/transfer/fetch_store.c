/* fetch_store.c: see fetch_store.h. */
#include "worker/transfer/fetch_store.h"

#include "base/assert.h"
#include "base/failpoint.h"
#include "worker/state/state_assembly.h"
#include "worker/state/state_packing.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A file that is being put together. While jobs are under way only the storage thread uses the
 * fields marked so; a posted job may be done long before it is reaped. */
struct part {
	struct fetch_store *s;
	struct state_id id;
	int jobs; /* posted and not done */
	bool dropped;
	atomic_bool unwanted; /* dropped: the storage thread skips its jobs */
	/* The storage thread's, while jobs > 0. */
	struct state_assembly *assembly; /* NULL: not open yet, or used up */
	bool own;                        /* the whole file is on this worker's disk */
	struct fetched whole;
};

struct part_job {
	struct job job;
	struct part *part;
	struct fetcher_job what;
	struct rv_errtext text;
	struct rv_hash *manifest; /* OPEN: what is here, then flags of held pieces; NULL: nothing */
	uint8_t data[];
};

struct fetch_store {
	const struct statestore *store;
	struct jobs *storage;
	struct state_packer *packer;
	void *core;         /* the fetch core's memory */
	uint64_t fetcher[]; /* fetcher_size() bytes */
};

static struct fetcher *fetcher_of(struct fetch_store *s) {
	return (struct fetcher *)(void *)s->fetcher;
}

static void part_free(struct part *p) {
	state_assembly_free(p->assembly);
	state_file_free(p->whole.snapshot);
	blob_unref(p->whole.log);
	free(p);
}

/* ---- on the storage thread ---- */

static size_t manifest_bytes_of(const struct part *p) {
	return (size_t)state_manifest_hashes(&p->s->store->cfg, p->id.kind, p->id.round) * RV_HASH_BYTES;
}

/* Answers with a copy of the manifest and, behind it, a flag for each piece. */
static bool answer_manifest(struct part_job *j, const struct rv_hash *manifest) {
	const struct part *p = j->part;
	uint32_t n = state_pieces(&p->s->store->cfg, p->id.kind, p->id.round);
	size_t bytes = manifest_bytes_of(p);
	j->manifest = malloc(bytes + n);
	if (!j->manifest)
		return false;
	memcpy(j->manifest, manifest, bytes);
	uint8_t *held = (uint8_t *)j->manifest + bytes;
	for (uint32_t i = 0; i < n; i++)
		held[i] = p->own || state_assembly_has(p->assembly, i);
	j->what.manifest = j->manifest;
	j->what.held = held;
	return true;
}

/* Takes *file over if it is what is wanted, and whole. */
static bool take_whole(struct part *p, struct state_file *file) {
	const struct state_id *id = &p->id, *found = state_file_id(file);
	bool snapshot = id->kind == STATE_KIND_SNAPSHOT;
	bool named = rv_hash_equal(&found->expect, &id->expect) && (!snapshot || rv_hash_equal(&found->chain, &id->chain));
	if (!named)
		return false;
	if (!snapshot)
		return state_file_load_log(file, &p->whole.log, NULL) == RV_OK;
	if (state_file_verify(file, NULL) != RV_OK)
		return false;
	p->whole.snapshot = file;
	return true;
}

/* Takes the file from this worker's disk: an earlier process may have left it, or a state that was
 * given up. All of it is checked against the wanted hashes; a damaged or different file is fetched
 * as if it were not there. */
static void take_own(struct part_job *j) {
	struct part *p = j->part;
	struct state_file *file;
	if (rv_hash_is_zero(&p->id.expect) || statestore_open(p->s->store, p->id.kind, p->id.round, &file, NULL) != RV_OK)
		return;
	p->own = j->what.own = take_whole(p, file);
	if (p->own && !answer_manifest(j, state_file_manifest(file)))
		j->what.err = rv_fail(&j->text, RV_E_NOMEM, "no memory for a manifest");
	if (!p->whole.snapshot)
		state_file_free(file);
}

static void run_open(struct part_job *j) {
	struct part *p = j->part;
	take_own(j);
	if (p->own)
		return;
	j->what.err = state_assembly_new(p->s->store, &p->id, &p->assembly, &j->text);
	if (j->what.err == RV_OK && state_assembly_manifest(p->assembly))
		(void)answer_manifest(j, state_assembly_manifest(p->assembly)); /* else it is fetched anew */
}

static void run_finish(struct part_job *j) {
	struct part *p = j->part;
	struct fetched *whole = &p->whole;
	struct state_file *snapshot;
	j->what.incomplete = state_assembly_left(p->assembly) > 0;
	if (j->what.incomplete)
		return;
	j->what.err = state_assembly_finish(p->assembly, &snapshot, &whole->log, &whole->warning, &j->text);
	if (j->what.err != RV_OK)
		return;
	state_assembly_free(p->assembly);
	p->assembly = NULL;
	whole->snapshot = snapshot;
	RV_FAILPOINT("fetch.stored");
}

static enum rv_err put(struct part_job *j) {
	const struct state_stored stored = {.encoding = (enum state_encoding)j->what.encoding,
										.bytes = (uint32_t)j->what.bytes};
	return state_assembly_put(j->part->assembly, j->what.index, &stored, j->data, &j->text);
}

static enum rv_err set_manifest(struct part_job *j) {
	if (state_assembly_manifest(j->part->assembly))
		return RV_OK;
	return state_assembly_set_manifest(j->part->assembly, (const struct rv_hash *)(const void *)j->data, &j->text);
}

static void run_job(struct job *job) {
	struct part_job *j = JOB_OWNER(job, struct part_job, job);
	const struct part *p = j->part;
	j->what.incomplete = p->unwanted || p->own;
	if (p->unwanted)
		return;
	if (j->what.step == FETCHER_OPEN)
		run_open(j);
	else if (p->own)
		return;
	else if (!p->assembly)
		j->what.err = rv_fail(&j->text, RV_E_CANCELLED, "there is no file to put it in");
	else if (j->what.step == FETCHER_FINISH)
		run_finish(j);
	else
		j->what.err = j->what.step == FETCHER_PIECE ? put(j) : set_manifest(j);
}

/* ---- back on the event loop ---- */

static void job_free(struct part_job *j) {
	struct part *p = j->part;
	if (--p->jobs == 0 && p->dropped)
		part_free(p);
	free(j->manifest);
	free(j);
}

static void job_done(struct job *job) {
	struct part_job *j = JOB_OWNER(job, struct part_job, job);
	j->what.text = j->text.text;
	fetcher_on_done(fetcher_of(j->part->s), j->part, &j->what);
	job_free(j);
}

/* Frees a job whose storage thread ended before its answer was taken. */
static void job_dropped(struct job *job) {
	job_free(JOB_OWNER(job, struct part_job, job));
}

static bool post(void *ctx, void *file, const struct fetcher_job *what) {
	struct fetch_store *s = ctx;
	struct part *p = file;
	struct part_job *j = malloc(sizeof *j + what->bytes);
	if (!j)
		return false;
	*j = (struct part_job){.job = {.run = run_job, .done = job_done, .dropped = job_dropped}, .part = p, .what = *what};
	if (what->bytes > 0)
		memcpy(j->data, what->data, what->bytes);
	p->jobs++;
	jobs_post(s->storage, &j->job);
	return true;
}

static void *open_part(void *ctx, const struct state_id *id) {
	struct part *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->s = ctx;
	p->id = *id;
	if (post(ctx, p, &(struct fetcher_job){.step = FETCHER_OPEN}))
		return p;
	free(p);
	return NULL;
}

static void take(void *ctx, void *file, struct fetched *out) {
	struct part *p = file;
	(void)ctx;
	*out = p->whole;
	out->id = p->id;
	p->whole = (struct fetched){.snapshot = NULL};
}

/* Frees the file as soon as the storage thread is done with it. */
static void drop(void *ctx, void *file) {
	struct part *p = file;
	(void)ctx;
	RV_ASSERT(!p->dropped);
	p->dropped = true;
	p->unwanted = true;
	if (p->jobs == 0)
		part_free(p);
}

static void *memory(void *ctx, size_t bytes) {
	struct fetch_store *s = ctx;
	if (!s->packer)
		s->packer = state_packer_new();
	if (s->packer && !s->core)
		s->core = malloc(bytes);
	return s->core;
}

static enum rv_err decode(void *ctx, uint8_t encoding, const void *in, size_t in_bytes, void *out, size_t out_bytes,
						  struct rv_errtext *et) {
	const struct fetch_store *s = ctx;
	const struct state_stored what = {.encoding = (enum state_encoding)encoding, .bytes = (uint32_t)in_bytes};
	return state_unpack(s->packer, &what, in, out, out_bytes, et);
}

enum rv_err fetcher_new(const struct fetcher_config *cfg, const struct statestore *store, struct jobs *storage,
						struct fetcher **out, struct rv_errtext *et) {
	struct fetch_store *s = calloc(1, sizeof *s + fetcher_size());
	struct fetcher_config own = *cfg;
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory for fetching state");
	s->store = store;
	s->storage = storage;
	own.global = &store->cfg;
	own.ops = (struct fetcher_ops){
		.ctx = s, .memory = memory, .open = open_part, .post = post, .take = take, .drop = drop, .decode = decode};
	*out = fetcher_init(s->fetcher, &own);
	return RV_OK;
}

void fetcher_free(struct fetcher *f) {
	if (!f)
		return;
	struct fetch_store *s = (struct fetch_store *)(void *)((uint8_t *)f - offsetof(struct fetch_store, fetcher));
	fetcher_release(f);
	state_packer_free(s->packer);
	free(s->core);
	free(s);
}
