/* export_source.c: see export_source.h. */
#include "lab/worker_files/export_source.h"

#include "lab/model/weights_tokenizer.h"
#include "lab/worker_files/worker_rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum rv_err take_worker(struct export_source *s, const char *where, int64_t round, struct rv_events *events,
							   struct rv_errtext *et) {
	struct worker_rounds w;
	struct global_state g;
	RV_TRY(worker_rounds_open(where, &w, et));
	worker_rounds_tell(&w, events);
	enum rv_err e = worker_rounds_replay(&w, round, &g, et);
	if (e == RV_OK) {
		s->cfg = w.run;
		s->layout = w.layout;
		w.layout = (struct model_layout){.n_tensors = 0};
		s->origin = (struct weights_origin){
			.round = g.round, .step = g.round * (uint64_t)w.run.steps_per_round, .state = global_full_hash(&g)};
		s->params = g.theta;
		g.theta = NULL;
		global_release(&g);
	}
	worker_rounds_release(&w);
	return e;
}

/* Returns true for a run of the lab that has saved its state, but not yet its weights. */
static bool is_unfinished_run(const char *where) {
	char checkpoint[PATH_MAX], weights[PATH_MAX];
	snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.rvc", where);
	snprintf(weights, sizeof weights, "%s/" WEIGHTS_FILE, where);
	return access(checkpoint, F_OK) == 0 && access(weights, F_OK) != 0;
}

static enum rv_err take_file(struct export_source *s, const char *where, int64_t round, struct rv_errtext *et) {
	run_config_defaults(&s->cfg);
	if (is_unfinished_run(where))
		return rv_fail(
			et, RV_E_NOTFOUND,
			"%s: a checkpoint, but no weights yet: `rivulet train` writes them when the run ends, or when it is "
			"stopped with Ctrl-C",
			where);
	RV_TRY(weights_load_config(where, &s->cfg, et));
	RV_TRY(weights_load_origin(where, &s->origin, et));
	if (round >= 0 && (uint64_t)round != s->origin.round)
		return rv_fail(et, RV_E_NOTFOUND, "%s: holds round %" PRIu64 " only; a worker's directory has earlier rounds",
					   where, s->origin.round);
	return weights_load(where, &s->cfg, &s->layout, &s->params, et);
}

static enum rv_err take_tokenizer(struct export_source *s, const char *where, const char *given,
								  struct rv_errtext *et) {
	struct tokenizer *t;
	RV_TRY(weights_tokenizer_open(where, given, &s->cfg, s->tokenizer, &t, et));
	tokenizer_free(t);
	return RV_OK;
}

enum rv_err export_source_open(const char *where, int64_t round, const char *tokenizer, struct rv_events *events,
							   struct export_source *s, struct rv_errtext *et) {
	*s = (struct export_source){.params = NULL};
	enum rv_err e =
		worker_rounds_is_worker(where) ? take_worker(s, where, round, events, et) : take_file(s, where, round, et);
	if (e == RV_OK)
		e = take_tokenizer(s, where, tokenizer, et);
	if (e != RV_OK)
		export_source_release(s);
	return e;
}

void export_source_release(struct export_source *s) {
	model_layout_release(&s->layout);
	free(s->params);
	s->params = NULL;
}
