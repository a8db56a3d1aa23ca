/* worker_rounds.c: which rounds there are, and their replay. */
#include "lab/worker_rounds.h"

#include "base/assert.h"
#include "base/chain.h"
#include "base/file.h"
#include "net/invite.h"
#include "net/limits.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the run --------------------------------------------------------------------------------------------------------
 */

static enum rv_err read_text(const char *dir, const char *name, size_t max, char **out, struct rv_errtext *et) {
	char path[PATH_MAX];
	size_t n;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return rv_file_read(path, max, (uint8_t **)out, &n, et);
}

bool worker_rounds_is_worker(const char *dir) {
	char conf[PATH_MAX], link[PATH_MAX];
	snprintf(conf, sizeof conf, "%s/run.conf", dir);
	snprintf(link, sizeof link, "%s/run.link", dir);
	return access(conf, F_OK) == 0 && access(link, F_OK) == 0;
}

/* The value of `key = ` in a text of options, or "". */
static void value_of(const char *text, const char *key, char *out, size_t cap) {
	size_t n = strlen(key);
	out[0] = '\0';
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0 && strncmp(line + n, " = ", 3) == 0) {
			snprintf(out, cap, "%.*s", (int)strcspn(line + n + 3, "\n"), line + n + 3);
			return;
		}
	}
}

bool worker_rounds_member(const char *dir, struct worker_member *out) {
	enum { MEMBER_FILE_MAX = 16384 };
	char *text, number[24];
	if (read_text(dir, "member.conf", MEMBER_FILE_MAX, &text, NULL) != RV_OK)
		return false;
	value_of(text, "member", number, sizeof number);
	value_of(text, "name", out->name, sizeof out->name);
	free(text);
	out->number = strtoll(number, NULL, 10);
	return number[0] != '\0';
}

static enum rv_err read_run_id(const char *dir, uint8_t out[static NET_RUN_ID_BYTES], struct rv_errtext *et) {
	char *text;
	struct invite invite;
	RV_TRY(read_text(dir, "run.link", INVITE_MAX_BYTES, &text, et));
	text[strcspn(text, "\n")] = '\0';
	enum rv_err e = invite_parse(text, &invite, et);
	free(text);
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s/run.link", dir);
	memcpy(out, invite.run_id, NET_RUN_ID_BYTES);
	return RV_OK;
}

static enum rv_err read_run(struct worker_rounds *w, struct rv_hash *run_hash, struct rv_errtext *et) {
	uint8_t run_id[NET_RUN_ID_BYTES];
	char *text, path[PATH_MAX];
	snprintf(path, sizeof path, "%s/run.conf", w->store.dir);
	RV_TRY(read_run_id(w->store.dir, run_id, et));
	RV_TRY(read_text(w->store.dir, "run.conf", NET_MAX_CONFIG_BYTES - 1, &text, et));
	enum rv_err e = run_config_parse(&w->run, path, text, et);
	*run_hash = rv_run_hash(run_id, text);
	free(text);
	return e;
}

static enum rv_err configure(struct worker_rounds *w, const struct rv_hash *run_hash, struct rv_errtext *et) {
	const struct run_config *run = &w->run;
	const struct model_shape shape = model_shape_of(run);
	const struct model_ops *family;
	RV_TRY(model_family_find(run->model, &family, et));
	RV_TRY(model_layout_init(&w->layout, family, &shape, NULL, et));
	return global_config_of(run, w->layout.n_params, &w->layout.layers, run_hash, &w->store.cfg, et);
}

/* ---- which rounds there are -----------------------------------------------------------------------------------------
 */

static enum rv_err open_parts(struct worker_rounds *w, struct rv_errtext *et) {
	struct rv_hash run_hash;
	RV_TRY(read_run(w, &run_hash, et));
	RV_TRY(configure(w, &run_hash, et));
	w->store.theta0 = w->run.init_hash[0] ? THETA0_IS_LACKED : THETA0_OF_SEED;
	w->index = malloc(sizeof *w->index);
	if (!w->index)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory to list its files", w->store.dir);
	return statestore_scan(&w->store, w->index, et);
}

enum rv_err worker_rounds_open(const char *dir, struct worker_rounds *w, struct rv_errtext *et) {
	*w = (struct worker_rounds){.index = NULL};
	if (snprintf(w->store.dir, sizeof w->store.dir, "%s", dir) >= (int)sizeof w->store.dir)
		return rv_fail(et, RV_E_RANGE, "%.100s...: path is longer than %zu bytes", dir, sizeof w->store.dir - 1);
	enum rv_err e = open_parts(w, et);
	if (e != RV_OK)
		worker_rounds_release(w);
	return e;
}

void worker_rounds_release(struct worker_rounds *w) {
	model_layout_release(&w->layout);
	free(w->index);
	*w = (struct worker_rounds){.index = NULL};
}

bool worker_rounds_next_start(const struct worker_rounds *w, uint64_t round, struct checkpoint_start *out) {
	for (int i = 0; i < w->index->bases.n; i++)
		if (w->index->bases.at[i].round > round && !w->index->bases.at[i].damaged)
			return checkpoint_start_before(w->index, w->index->bases.at[i].round, out);
	return false;
}

bool worker_rounds_first_start(const struct worker_rounds *w, struct checkpoint_start *out) {
	return checkpoint_start_before(w->index, 0, out) || worker_rounds_next_start(w, 0, out);
}

void worker_rounds_print(const struct worker_rounds *w, char *out, size_t cap) {
	size_t used = 0;
	struct checkpoint_start s;
	bool more = worker_rounds_first_start(w, &s);
	snprintf(out, cap, "none");
	while (more && used < cap) {
		uint64_t first = s.round, last = checkpoint_reach(w->index, &s), reach;
		while ((more = worker_rounds_next_start(w, s.round, &s)) &&
			   s.round <= last + 1) /* ranges overlap where a base is within */
			last = (reach = checkpoint_reach(w->index, &s)) > last ? reach : last;
		used += (size_t)snprintf(out + used, cap - used, "%s%" PRIu64, used ? ", " : "", first);
		if (last > first && used < cap)
			used += (size_t)snprintf(out + used, cap - used, "-%" PRIu64, last);
	}
}

/* ---- replay ---------------------------------------------------------------------------------------------------------
 */

/* The nearest start before `round` from which it is reached; negative: the start that leads furthest, and *round is how
 * far. false: none. */
static bool find_start(const struct worker_rounds *w, int64_t *round, struct checkpoint_start *out) {
	struct checkpoint_start s;
	bool found = false;
	uint64_t best = 0;
	for (bool more = worker_rounds_first_start(w, &s); more; more = worker_rounds_next_start(w, s.round, &s)) {
		uint64_t reach = checkpoint_reach(w->index, &s);
		bool fits = *round < 0 ? !found || reach >= best : s.round <= (uint64_t)*round && (uint64_t)*round <= reach;
		if (!fits)
			continue;
		*out = s;
		best = reach;
		found = true;
	}
	if (found && *round < 0)
		*round = (int64_t)best;
	return found;
}

/* theta at round 0, drawn from the run's seed as every worker draws it. */
static enum rv_err init_from_seed(const struct worker_rounds *w, float *theta, struct rv_errtext *et) {
	const struct backend_options device = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	const struct model_options one = {.max_batch = 1, .forward_only = true};
	const struct model_shape shape = model_shape_of(&w->run);
	struct backend *be = NULL;
	struct model *m = NULL;
	enum rv_err e = backend_open("ref", &device, &be, et);
	if (e == RV_OK)
		e = model_new(w->run.model, &shape, &one, be, &m, et);
	if (e == RV_OK)
		model_init_params(m, theta, (uint64_t)w->run.seed);
	model_free(m);
	backend_close(be);
	return e;
}

static enum rv_err load_base(const struct worker_rounds *w, uint64_t round, struct global_state *g,
							 struct rv_errtext *et) {
	struct state_file *f;
	RV_TRY(statestore_open(&w->store, STATE_KIND_BASE, round, &f, et));
	enum rv_err e = state_file_load_base(f, g, et);
	state_file_free(f);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s/base-%" PRIu64 ".rvs", w->store.dir, round);
}

enum rv_err worker_rounds_begin(const struct worker_rounds *w, const struct checkpoint_start *from,
								struct global_state *g, struct rv_errtext *et) {
	float *zero = calloc(w->store.cfg.n, sizeof *zero);
	enum rv_err e =
		zero ? global_init(g, &w->store.cfg, zero, et) : rv_fail(et, RV_E_NOMEM, "no memory for the weights");
	free(zero);
	RV_TRY(e);
	e = from->base ? load_base(w, from->round, g, et) : init_from_seed(w, g->theta, et);
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

static enum rv_err replay(const struct worker_rounds *w, const struct checkpoint_start *from, uint64_t round,
						  struct global_state *g, struct rv_errtext *et) {
	RV_TRY(worker_rounds_begin(w, from, g, et));
	enum rv_err e = RV_OK;
	while (e == RV_OK && g->round < round)
		e = worker_rounds_apply(w, g, et);
	if (e != RV_OK)
		global_release(g);
	return e;
}

enum rv_err worker_rounds_replay(const struct worker_rounds *w, int64_t round, struct global_state *g,
								 struct rv_errtext *et) {
	struct checkpoint_start from;
	*g = (struct global_state){.round = 0};
	if (find_start(w, &round, &from))
		return replay(w, &from, (uint64_t)round, g, et);
	char there[256];
	worker_rounds_print(w, there, sizeof there);
	return rv_fail(et, RV_E_NOTFOUND, "%s: round %" PRId64 " cannot be made from its files; rounds there are: %s",
				   w->store.dir, round, there);
}
