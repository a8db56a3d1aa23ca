/* weigh_job.c: the work of a weighing that takes its time, on a thread of its own: neither training
 * nor votes wait for it. */
#include "worker/session/weigh.h"

#include "base/assert.h"
#include "base/round_number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void weigh_release(struct session_weigh *w) {
	for (int i = 0; i < w->n; i++) {
		struct weigh_round *r = &w->rounds[i];
		blob_unref(r->committed);
		free(r->leaves);
		free(r->without);
		r->committed = NULL;
		r->leaves = NULL;
		r->without = NULL;
	}
	global_release(&w->with);
	global_release(&w->without);
	w->with = w->without = (struct global_state){0};
}

static enum rv_err log_faulted(enum rv_err e, uint64_t round, struct rv_errtext *et) {
	return rv_fail_context(et, e, "the result of round %" PRIu64, round_number(round));
}

/* ---- the state before the first round ---- */

/* Finds the newest state on the disk at or before the round. */
static enum rv_err find_start(const struct statestore *store, uint64_t round, struct checkpoint_start *out,
							  struct rv_errtext *et) {
	struct checkpoint_index *x = malloc(sizeof *x);
	if (!x)
		return rv_fail(et, RV_E_NOMEM, "no memory to list %s", store->dir);
	enum rv_err e = statestore_scan(store, x, et);
	if (e == RV_OK && !checkpoint_start_before(x, round, out))
		e = rv_fail(et, RV_E_NOTFOUND,
					"this worker's disk has no state at or before round %" PRIu64 ": start it with a larger "
					"--keep-snapshots, or weigh fewer rounds",
					round);
	if (e == RV_OK && !out->snapshot && store->theta0 != THETA0_OF_SEED)
		e = rv_fail(et, RV_E_NOTFOUND, "the initial weights are not on this worker's disk as a state");
	free(x);
	return e;
}

static enum rv_err load_snapshot(const struct statestore *store, uint64_t round, struct global_state *g,
								 struct rv_errtext *et) {
	struct state_file *f;
	RV_TRY(statestore_open(store, STATE_KIND_SNAPSHOT, round, &f, et));
	enum rv_err e = state_file_verify(f, et);
	if (e == RV_OK)
		e = state_file_load_snapshot(f, g, et);
	state_file_free(f);
	return e;
}

/* Draws the weights with which the run begins, without the trainer, which may end meanwhile. */
static enum rv_err draw_theta0(const struct session *s, float *theta0, struct rv_errtext *et) {
	const struct run_config *run = &s->member.config;
	const struct model_shape shape = model_shape_of(run);
	struct model_layout layout;
	RV_TRY(model_layout_init(&layout, model_family(run), &shape, NULL, et));
	model_init_host_params(&layout, theta0, (uint64_t)run->seed, 0);
	model_layout_release(&layout);
	return RV_OK;
}

/* Makes both states: as the run began, or to be loaded. */
static enum rv_err begin_states(struct session_weigh *w, bool draws, struct rv_errtext *et) {
	const struct session *s = w->s;
	const struct global_config *g = &s->store.cfg;
	float *theta0 = calloc(g->n, sizeof *theta0);
	if (!theta0)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu weights", g->n);
	enum rv_err e = draws ? draw_theta0(s, theta0, et) : RV_OK;
	if (e == RV_OK)
		e = global_init(&w->with, g, theta0, et);
	if (e == RV_OK)
		e = global_init(&w->without, g, theta0, et);
	free(theta0);
	return e;
}

static enum rv_err apply_log(const struct statestore *store, struct global_state *g, struct rv_errtext *et) {
	struct state_file *f;
	struct blob *payload;
	RV_TRY(statestore_open(store, STATE_KIND_LOG, g->round, &f, et));
	const struct rv_hash digest = state_file_id(f)->expect;
	enum rv_err e = state_file_load_log(f, &payload, et);
	state_file_free(f);
	RV_TRY(e);
	e = global_apply(g, payload->data, &digest, et);
	blob_unref(payload);
	return e;
}

static enum rv_err make_state(struct session_weigh *w, uint64_t round, struct rv_errtext *et) {
	const struct statestore *store = &w->s->store;
	struct checkpoint_start start;
	RV_TRY(find_start(store, round, &start, et));
	RV_TRY(begin_states(w, !start.snapshot, et));
	if (start.snapshot)
		RV_TRY(load_snapshot(store, start.round, &w->with, et));
	while (w->with.round < round) {
		if (atomic_load(&w->stop))
			return rv_fail(et, RV_E_CANCELLED, "this worker ends");
		const enum rv_err e = apply_log(store, &w->with, et);
		if (e != RV_OK)
			return log_faulted(e, w->with.round, et);
	}
	return RV_OK;
}

/* ---- the committed means ---- */

static enum rv_err take_means(const struct global_config *g, struct state_file *f, struct weigh_round *r,
							  struct rv_errtext *et) {
	const struct chunking chunks = global_round_chunks(g, r->round);
	const size_t hashes = chunks.n_chunks * sizeof(struct rv_hash);
	if (!rv_hash_equal(&state_file_id(f)->expect, &r->digest))
		return rv_fail(et, RV_E_NOTFOUND, "this worker has another one than the run has committed");
	if (chunks.n_chunks != r->roster.n_chunks)
		return rv_fail(et, RV_E_PROTOCOL, "%u chunks, the roster says %u", chunks.n_chunks, r->roster.n_chunks);
	const uint32_t attempt = state_file_attempt(f);
	if (attempt != 0 && attempt != r->roster.attempt) /* 0: it was fetched, and the digest is enough */
		return rv_fail(et, RV_E_NOTFOUND, "it is of attempt %u, whose roster this worker has not seen", attempt);
	r->leaves = malloc(hashes);
	r->without = malloc(chunking_total_bytes(&chunks, g->codec));
	if (!r->leaves || !r->without)
		return rv_fail(et, RV_E_NOMEM, "no memory for a mean");
	memcpy(r->leaves, state_file_manifest(f), hashes);
	return state_file_load_log(f, &r->committed, et);
}

static enum rv_err read_means(const struct session_weigh *w, struct weigh_round *r, struct rv_errtext *et) {
	const struct statestore *store = &w->s->store;
	struct state_file *f;
	enum rv_err e = statestore_open(store, STATE_KIND_LOG, r->round, &f, et);
	if (e != RV_OK)
		return log_faulted(e, r->round, et);
	e = take_means(&store->cfg, f, r, et);
	state_file_free(f);
	return e == RV_OK ? RV_OK : log_faulted(e, r->round, et);
}

static enum rv_err prepare(struct session_weigh *w, struct rv_errtext *et) {
	for (int i = 0; i < w->n; i++) {
		if (atomic_load(&w->stop))
			return rv_fail(et, RV_E_CANCELLED, "this worker ends");
		RV_TRY(read_means(w, &w->rounds[i], et));
	}
	return make_state(w, w->rounds[0].round, et);
}

void weigh_prepare(struct job *j) {
	struct session_weigh *w = JOB_OWNER(j, struct session_weigh, job);
	w->job_err = prepare(w, &w->job_why);
}

/* ---- the outer steps ---- */

void weigh_step(struct job *j) {
	struct session_weigh *w = JOB_OWNER(j, struct session_weigh, job);
	struct weigh_round *r = &w->rounds[w->at];
	RV_ASSERT(w->with.round == r->round);
	if (weigh_counts(r))
		w->job_err = weighing_step(&w->with, &w->without, r->committed->data, &r->digest, r->without, &w->job_why);
	else
		w->job_err = global_apply(&w->with, r->committed->data, &r->digest, &w->job_why);
}
