/* export_source.c: see export_source.h. */
#include "lab/export_source.h"

#include "base/hex.h"
#include "lab/worker_rounds.h"
#include "worker/train/hf_tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTE_TOKENS = 256 };

/* ---- weights --------------------------------------------------------------------------------------------------------
 */

static enum rv_err take_round(struct export_source *s, const char *where, int64_t round, struct rv_errtext *et) {
	struct worker_rounds w;
	struct global_state g;
	RV_TRY(worker_rounds_open(where, &w, et));
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

/* A worker that runs prunes its files: what was listed may be gone when it is read. */
static enum rv_err take_worker(struct export_source *s, const char *where, int64_t round, struct rv_errtext *et) {
	enum { TRIES = 5 };
	enum rv_err e = RV_E_NOTFOUND;
	for (int i = 0; e == RV_E_NOTFOUND && i < TRIES; i++)
		e = take_round(s, where, round, et);
	return e;
}

/* A run of the lab that has saved its state, but not yet its weights. */
static bool is_unfinished_run(const char *where) {
	char checkpoint[PATH_MAX], weights[PATH_MAX];
	snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.rvc", where);
	snprintf(weights, sizeof weights, "%s/" WEIGHTS_FILE, where);
	return access(checkpoint, F_OK) == 0 && access(weights, F_OK) != 0;
}

static enum rv_err take_file(struct export_source *s, const char *where, int64_t round, struct rv_errtext *et) {
	const struct model_ops *family;
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
	const struct model_shape shape = model_shape_of(&s->cfg);
	RV_TRY(model_family_find(s->cfg.model, &family, et));
	RV_TRY(model_layout_init(&s->layout, family, &shape, NULL, et));
	s->params = malloc(s->layout.n_params * sizeof *s->params);
	if (!s->params)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu parameters", s->layout.n_params);
	return weights_load(where, family, &s->layout, s->params, et);
}

/* ---- tokenizer ------------------------------------------------------------------------------------------------------
 */

/* The one in the directory of the weights, or "". */
static void find_tokenizer(const char *where, char out[static PATH_MAX]) {
	struct stat st;
	bool directory = stat(where, &st) == 0 && S_ISDIR(st.st_mode);
	const char *slash = strrchr(where, '/');
	if (directory)
		snprintf(out, PATH_MAX, "%s/%s", where, HF_TOKENIZER_FILE);
	else
		snprintf(out, PATH_MAX, "%.*s%s", slash ? (int)(slash + 1 - where) : 0, where, HF_TOKENIZER_FILE);
	if (access(out, F_OK) != 0)
		out[0] = '\0';
}

static enum rv_err check_hash(const struct export_source *s, struct rv_errtext *et) {
	struct rv_hash hash;
	char hex[2 * RV_HASH_BYTES + 1];
	RV_TRY(rv_hash_file(s->tokenizer, &hash, et));
	rv_hex_encode(hash.b, sizeof hash.b, hex);
	if (strcasecmp(hex, s->cfg.tokenizer_hash) != 0)
		return rv_fail(et, RV_E_INVALID,
					   "%s: another tokenizer than the run's (hash %.16s..., the run's is %.16s...): --tokenizer FILE",
					   s->tokenizer, hex, s->cfg.tokenizer_hash);
	return RV_OK;
}

static enum rv_err take_tokenizer(struct export_source *s, const char *where, const char *given,
								  struct rv_errtext *et) {
	if (given[0])
		snprintf(s->tokenizer, sizeof s->tokenizer, "%s", given);
	else
		find_tokenizer(where, s->tokenizer);
	if (s->tokenizer[0])
		return s->cfg.tokenizer_hash[0] ? check_hash(s, et) : RV_OK;
	if (s->cfg.tokenizer_hash[0])
		return rv_fail(et, RV_E_INVALID,
					   "%s: the run's tokenizer is not beside the weights: --tokenizer FILE (its hash is %.64s)", where,
					   s->cfg.tokenizer_hash);
	if (s->cfg.vocab != BYTE_TOKENS)
		return rv_fail(et, RV_E_INVALID,
					   "%s: a vocabulary of %" PRId64 " tokens, and no tokenizer.json beside it: --tokenizer FILE",
					   where, s->cfg.vocab);
	return RV_OK;
}

enum rv_err export_source_open(const char *where, int64_t round, const char *tokenizer, struct export_source *s,
							   struct rv_errtext *et) {
	*s = (struct export_source){.params = NULL};
	enum rv_err e = worker_rounds_is_worker(where) ? take_worker(s, where, round, et) : take_file(s, where, round, et);
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
