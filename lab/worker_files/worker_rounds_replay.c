/* worker_rounds_replay.c: the state at a round, from whatever files make it. */
#include "lab/worker_files/worker_rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKS = 5, TRIED_BYTES = 256 };

/* ---- one step ---- */

/* theta at round 0, drawn from the run's seed as every worker draws it. */
static enum rv_err init_from_seed(const struct worker_rounds *w, float *theta, struct rv_errtext *et) {
	const struct backend_options device = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	const struct model_options one = {.max_batch = 1, .forward_only = true};
	const struct model_shape shape = model_shape_of(&w->run);
	struct backend *be = NULL;
	struct model *m = NULL;
	enum rv_err e = backend_open("ref", &device, &be, et);
	if (e == RV_OK)
		e = model_new(model_family(&w->run), &shape, &one, be, &m, et);
	if (e == RV_OK)
		model_init_params(m, theta, (uint64_t)w->run.seed);
	model_free(m);
	backend_close(be);
	return e;
}

static enum rv_err load_snapshot(const struct worker_rounds *w, uint64_t round, struct global_state *g,
								 struct rv_errtext *et) {
	struct state_file *f;
	RV_TRY(statestore_open(&w->store, STATE_KIND_SNAPSHOT, round, &f, et));
	enum rv_err e = state_file_load_snapshot(f, g, et);
	state_file_free(f);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s/snapshot-%" PRIu64 ".rvs", w->store.dir, round);
}

enum rv_err worker_rounds_begin(const struct worker_rounds *w, const struct checkpoint_start *from,
								struct global_state *g, struct rv_errtext *et) {
	float *zero = calloc(w->store.cfg.n, sizeof *zero);
	enum rv_err e =
		zero ? global_init(g, &w->store.cfg, zero, et) : rv_fail(et, RV_E_NOMEM, "no memory for the weights");
	free(zero);
	RV_TRY(e);
	e = from->snapshot ? load_snapshot(w, from->round, g, et) : init_from_seed(w, g->theta, et);
	if (e != RV_OK)
		global_release(g);
	return e;
}

enum rv_err worker_rounds_apply(const struct worker_rounds *w, struct global_state *g, struct rv_errtext *et) {
	struct state_file *f;
	struct blob *reduced = NULL;
	uint64_t round = g->round;
	RV_TRY(statestore_open(&w->store, STATE_KIND_LOG, round, &f, et));
	enum rv_err e = state_file_load_log(f, &reduced, et);
	if (e == RV_OK)
		e = global_apply(g, reduced->data, &state_file_id(f)->expect, et);
	blob_unref(reduced);
	state_file_free(f);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s/log-%" PRIu64 ".rvl", w->store.dir, round);
}

/* ---- what was tried ---- */

struct state_name {
	enum state_kind kind;
	uint64_t round;
};

/* A search for the state at one round. */
struct search {
	struct worker_rounds *w;
	int64_t round;                /* negative: the newest */
	struct checkpoint_start from; /* the start that is tried */
	uint64_t goal;                /* the round that it leads to */
	uint64_t told_from;           /* damage found by the listing is logged from this round on */
	char tried[TRIED_BYTES];      /* unusable files, as "FILE: why; FILE: why" */
};

/* The nearest start before the round from which it is reached; for the newest, the start that leads
 * furthest. false: none. */
static bool find_start(struct search *s) {
	const struct worker_rounds *w = s->w;
	struct checkpoint_start start;
	bool found = false, newest = s->round < 0;
	for (bool more = worker_rounds_first_start(w, &start); more;
		 more = worker_rounds_next_start(w, start.round, &start)) {
		uint64_t reach = checkpoint_reach(w->index, &start), goal = newest ? reach : (uint64_t)s->round;
		if (start.round > goal || reach < goal || (found && goal < s->goal))
			continue;
		s->from = start;
		s->goal = goal;
		found = true;
	}
	return found;
}

/* What was read is not what was written, or cannot be used here. A fault of the machine
 * (RV_E_NOMEM, RV_E_IO, ...) says nothing of the file: the same command may find it whole. */
static bool is_of_no_use(enum rv_err e) {
	return e == RV_E_CORRUPT || e == RV_E_UNSUPPORTED || e == RV_E_RANGE || e == RV_E_INVALID;
}

/* Without the directory, where the text begins with it. */
static const char *short_text(const struct statestore *store, const char *text) {
	size_t n = strlen(store->dir);
	return strncmp(text, store->dir, n) == 0 && text[n] == '/' ? text + n + 1 : text;
}

/* Logs an unusable file, which is not tried again. */
static void pass_over(struct search *s, const struct state_name *file, enum rv_err why, const char *text) {
	const struct statestore *store = &s->w->store;
	size_t used = strlen(s->tried);
	char notice[RV_ERRTEXT_BYTES + 16];
	checkpoint_index_damaged(s->w->index, file->kind, file->round);
	snprintf(s->tried + used, sizeof s->tried - used, "%s%s", used > 0 ? "; " : "", short_text(store, text));
	snprintf(notice, sizeof notice, "%s: passed over", text);
	if (store->notice)
		store->notice(store->notice_ctx, why, notice);
}

/* Those that the listing found to be damaged, from `first` on, as far as they would have been of
 * use. */
static enum rv_err pass_over_listed(struct search *s, enum state_kind kind, uint64_t first, struct rv_errtext *et) {
	const struct checkpoint_list *l = kind == STATE_KIND_SNAPSHOT ? &s->w->index->snapshots : &s->w->index->logs;
	for (int i = 0; i < l->n; i++) {
		const struct state_name file = {kind, l->at[i].round};
		uint64_t makes = kind == STATE_KIND_LOG ? file.round + 1 : file.round;
		bool is_new = file.round >= first && file.round < s->told_from;
		struct rv_errtext why = {0};
		struct state_file *f = NULL;
		if (!l->at[i].damaged || !is_new || (s->round >= 0 && makes > (uint64_t)s->round))
			continue;
		enum rv_err e = statestore_open(&s->w->store, kind, file.round, &f, &why);
		if (e == RV_OK)
			state_file_free(f);
		else if (is_of_no_use(e))
			pass_over(s, &file, e, why.text);
		else if (e != RV_E_NOTFOUND)
			return rv_fail(et, e, "%s", why.text);
	}
	return RV_OK;
}

/* Sets s->from to the next start to try, and logs damaged nearer ones. *found: there is one. */
static enum rv_err next_try(struct search *s, bool *found, struct rv_errtext *et) {
	*found = find_start(s);
	uint64_t first = *found ? s->from.round : 0;
	RV_TRY(pass_over_listed(s, STATE_KIND_SNAPSHOT, first, et));
	RV_TRY(pass_over_listed(s, STATE_KIND_LOG, first, et));
	s->told_from = first < s->told_from ? first : s->told_from;
	return RV_OK;
}

static enum rv_err nothing_serves(const struct search *s, struct rv_errtext *et) {
	char there[TRIED_BYTES / 2], which[32] = "no round";
	worker_rounds_print(s->w, there, sizeof there);
	if (s->round >= 0)
		snprintf(which, sizeof which, "round %" PRId64, s->round);
	return rv_fail(et, s->tried[0] ? RV_E_CORRUPT : RV_E_NOTFOUND,
				   "%s: %s can%s be made from its files%s%s; rounds there are: %s%s", s->w->store.dir, which,
				   s->round >= 0 ? "not" : "", s->tried[0] ? ": " : "", s->tried, there,
				   s->tried[0] ? "; other workers of the run have their own copies" : "");
}

/* ---- the search ---- */

/* From s->from to s->goal; on a fault of a file *bad is that file. */
static enum rv_err try_start(const struct search *s, struct global_state *g, struct state_name *bad,
							 struct rv_errtext *et) {
	*bad = (struct state_name){STATE_KIND_SNAPSHOT, s->from.round};
	RV_TRY(worker_rounds_begin(s->w, &s->from, g, et));
	enum rv_err e = RV_OK;
	while (e == RV_OK && g->round < s->goal)
		e = worker_rounds_apply(s->w, g, et);
	if (e != RV_OK) {
		*bad = (struct state_name){STATE_KIND_LOG, g->round};
		global_release(g);
	}
	return e;
}

static enum rv_err search(struct search *s, struct global_state *g, struct rv_errtext *et) {
	for (int looks = 1;;) {
		struct state_name bad;
		bool found;
		RV_TRY(next_try(s, &found, et));
		if (!found)
			return nothing_serves(s, et);
		enum rv_err e = try_start(s, g, &bad, et);
		bool of_a_file = bad.kind == STATE_KIND_LOG || s->from.snapshot, gone = e == RV_E_NOTFOUND && looks < LOOKS;
		if (!of_a_file || !(is_of_no_use(e) || gone))
			return e;
		if (gone) {
			looks++;
			RV_TRY(worker_rounds_look_again(s->w, et));
		} else {
			pass_over(s, &bad, e, et->text);
		}
	}
}

enum rv_err worker_rounds_replay(struct worker_rounds *w, int64_t round, struct global_state *g,
								 struct rv_errtext *et) {
	struct search s = {.w = w, .round = round, .told_from = UINT64_MAX};
	struct rv_errtext why = {0};
	*g = (struct global_state){.round = 0};
	enum rv_err e = search(&s, g, &why);
	return e == RV_OK ? RV_OK : rv_fail(et, e, "%s", why.text);
}
