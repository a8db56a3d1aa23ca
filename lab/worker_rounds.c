/* worker_rounds.c: which rounds there are, and their replay. */
#include "lab/worker_rounds.h"

#include "base/assert.h"
#include "base/chain.h"
#include "base/file.h"
#include "net/invite.h"
#include "net/limits.h"

#include <errno.h>
#include <fcntl.h>
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

static int ascending(const void *a, const void *b) {
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static bool has(const uint64_t *rounds, int n, uint64_t round) {
	return bsearch(&round, rounds, (size_t)n, sizeof round, ascending) != NULL;
}

static enum rv_err read_header(const struct statestore *s, enum statestore_file kind, uint64_t round, void *out,
							   size_t n, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, kind, round, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot open for reading", path);
	ssize_t got = pread(fd, out, n, 0);
	(void)close(fd);
	return got == (ssize_t)n ? RV_OK : rv_fail(et, RV_E_CORRUPT, "%s: cut short", path);
}

/* The round that the worker has trained in last; 0: not known. */
static uint64_t round_of_replica(const struct statestore *s) {
	uint8_t header[STATE_REPLICA_HEADER_BYTES];
	struct state_replica_info info;
	bool known = read_header(s, STATE_FILE_REPLICA, 0, header, sizeof header, NULL) == RV_OK &&
				 state_replica_header_load(&s->cfg, header, &info, NULL) == RV_OK;
	return known ? info.round : 0;
}

static enum rv_err chain_of_base(const struct statestore *s, uint64_t round, struct rv_hash *chain,
								 struct rv_errtext *et) {
	uint8_t header[STATE_BASE_HEADER_BYTES];
	struct state_base_info info;
	RV_TRY(read_header(s, STATE_FILE_BASE, round, header, sizeof header, et));
	enum rv_err e = state_base_header_load(&s->cfg, header, &info, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s/base-%" PRIu64 ".rvs", s->dir, round);
	*chain = info.chain;
	return RV_OK;
}

/* A log entry, checked; the text names it. */
static enum rv_err load_log(const struct statestore *s, uint64_t round, struct blob **file, struct state_log_info *info,
							const uint8_t **payload, struct rv_errtext *et) {
	enum rv_err e = statestore_read_log(s, round, file, info, payload, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s/log-%" PRIu64 ".rvl", s->dir, round);
}

/* The log goes no further than `round`: was its result committed? */
static bool last_is_proved(const struct worker_rounds *w, const struct statestore_listing *f, uint64_t round) {
	if ((f->n_bases > 0 && f->bases[f->n_bases - 1] > round) || round_of_replica(&w->store) > round)
		return true;
	struct blob *file;
	struct state_log_info info;
	const uint8_t *payload;
	if (load_log(&w->store, round, &file, &info, &payload, NULL) != RV_OK)
		return false;
	blob_unref(file);
	return info.attempt == 0;
}

static uint64_t last_from(const struct worker_rounds *w, const struct statestore_listing *f, uint64_t round) {
	uint64_t last = round;
	while (has(f->logs, f->n_logs, last))
		last++;
	return last > round && !last_is_proved(w, f, last - 1) ? last - 1 : last;
}

static enum rv_err find_spans(struct worker_rounds *w, const struct statestore_listing *f, struct rv_errtext *et) {
	w->spans = calloc((size_t)f->n_bases + 1, sizeof *w->spans);
	w->logs = calloc((size_t)f->n_logs + 1, sizeof *w->logs);
	if (!w->spans || !w->logs)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory to list its files", w->store.dir);
	memcpy(w->logs, f->logs, (size_t)f->n_logs * sizeof *w->logs);
	w->n_logs = f->n_logs;
	if (!has(f->bases, f->n_bases, 0) && !w->run.init_hash[0])
		w->spans[w->n_spans++] = (struct worker_span){0, last_from(w, f, 0), false};
	for (int i = 0; i < f->n_bases; i++)
		w->spans[w->n_spans++] = (struct worker_span){f->bases[i], last_from(w, f, f->bases[i]), true};
	return RV_OK;
}

static enum rv_err open_parts(struct worker_rounds *w, struct rv_errtext *et) {
	struct rv_hash run_hash;
	RV_TRY(read_run(w, &run_hash, et));
	RV_TRY(configure(w, &run_hash, et));
	struct statestore_listing *f = malloc(sizeof *f);
	if (!f)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory to list its files", w->store.dir);
	enum rv_err e = statestore_list(&w->store, f, et);
	if (e == RV_OK)
		e = find_spans(w, f, et);
	free(f);
	return e;
}

enum rv_err worker_rounds_open(const char *dir, struct worker_rounds *w, struct rv_errtext *et) {
	*w = (struct worker_rounds){.n_spans = 0};
	if (snprintf(w->store.dir, sizeof w->store.dir, "%s", dir) >= (int)sizeof w->store.dir)
		return rv_fail(et, RV_E_RANGE, "%.100s...: path is longer than %zu bytes", dir, sizeof w->store.dir - 1);
	enum rv_err e = open_parts(w, et);
	if (e != RV_OK)
		worker_rounds_release(w);
	return e;
}

void worker_rounds_release(struct worker_rounds *w) {
	model_layout_release(&w->layout);
	free(w->spans);
	free(w->logs);
	*w = (struct worker_rounds){.n_spans = 0};
}

void worker_rounds_print(const struct worker_rounds *w, char *out, size_t cap) {
	size_t used = 0;
	RV_ASSERT(w->spans);
	snprintf(out, cap, "none");
	for (int i = 0; i < w->n_spans && used < cap; i++) {
		uint64_t first = w->spans[i].first, last = w->spans[i].last;
		for (; i + 1 < w->n_spans && w->spans[i + 1].first <= last + 1; i++) /* spans overlap where a base is within */
			last = w->spans[i + 1].last > last ? w->spans[i + 1].last : last;
		used += (size_t)snprintf(out + used, cap - used, "%s%" PRIu64, used ? ", " : "", first);
		if (last > first && used < cap)
			used += (size_t)snprintf(out + used, cap - used, "-%" PRIu64, last);
	}
}

/* ---- replay ---------------------------------------------------------------------------------------------------------
 */

/* The nearest start before `round`; negative: the one that leads to the newest. NULL: none. */
static const struct worker_span *find_span(const struct worker_rounds *w, int64_t round) {
	const struct worker_span *best = NULL;
	for (int i = 0; i < w->n_spans; i++) {
		const struct worker_span *s = &w->spans[i];
		bool fits =
			round < 0 ? !best || s->last >= best->last : s->first <= (uint64_t)round && (uint64_t)round <= s->last;
		if (fits)
			best = s;
	}
	return best;
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
	const struct global_config *c = &w->store.cfg;
	char path[STATESTORE_PATH_BYTES];
	struct blob *file;
	statestore_path(&w->store, STATE_FILE_BASE, round, path);
	RV_TRY(statestore_read(&w->store, STATE_FILE_BASE, round, state_base_bytes(c), &file, et));
	enum rv_err e = state_base_load(c, file->data, file->bytes, g, NULL, et);
	if (e == RV_OK && g->round != round)
		e = rv_fail(et, RV_E_CORRUPT, "it holds round %" PRIu64, g->round);
	blob_unref(file);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", path);
}

static enum rv_err begin(const struct worker_rounds *w, const struct worker_span *from, struct global_state *g,
						 struct rv_errtext *et) {
	float *zero = calloc(w->store.cfg.n, sizeof *zero);
	enum rv_err e =
		zero ? global_init(g, &w->store.cfg, zero, et) : rv_fail(et, RV_E_NOMEM, "no memory for the weights");
	free(zero);
	RV_TRY(e);
	return from->base ? load_base(w, from->first, g, et) : init_from_seed(w, g->theta, et);
}

static enum rv_err apply_log(const struct worker_rounds *w, struct global_state *g, struct rv_errtext *et) {
	struct blob *file;
	struct state_log_info info;
	const uint8_t *payload;
	RV_TRY(load_log(&w->store, g->round, &file, &info, &payload, et));
	enum rv_err e = global_apply(g, payload, &info.digest, et);
	blob_unref(file);
	return e;
}

/* The digest of a log entry; false: gone, or damaged. */
static bool digest_of_log(const struct worker_rounds *w, uint64_t round, struct rv_hash *digest) {
	struct blob *file;
	struct state_log_info info;
	const uint8_t *payload;
	if (!has(w->logs, w->n_logs, round) || load_log(&w->store, round, &file, &info, &payload, NULL) != RV_OK)
		return false;
	blob_unref(file);
	*digest = info.digest;
	return true;
}

/* The chain goes on from *g's to that of the next base, over the digests of the entries between. What cannot be read
 * cannot speak against *g, which was made without it. */
static enum rv_err check_next_base(const struct worker_rounds *w, const struct global_state *g, struct rv_errtext *et) {
	const struct worker_span *next = NULL;
	for (int i = w->n_spans - 1; i >= 0 && w->spans[i].first >= g->round; i--)
		next = &w->spans[i];
	if (!next || !next->base)
		return RV_OK;
	struct rv_hash chain = g->chain, digest, want;
	for (uint64_t round = g->round; round < next->first; round++) {
		if (!digest_of_log(w, round, &digest))
			return RV_OK;
		chain = rv_chain_next(&chain, &digest);
	}
	if (chain_of_base(&w->store, next->first, &want, NULL) != RV_OK || rv_hash_equal(&chain, &want))
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT,
				   "%s: the log from round %" PRIu64 " does not lead to base-%" PRIu64 ".rvs: of another history",
				   w->store.dir, g->round, next->first);
}

static enum rv_err replay(const struct worker_rounds *w, const struct worker_span *from, uint64_t round,
						  struct global_state *g, struct rv_errtext *et) {
	RV_TRY(begin(w, from, g, et));
	while (g->round < round)
		RV_TRY(apply_log(w, g, et));
	return check_next_base(w, g, et);
}

enum rv_err worker_rounds_replay(const struct worker_rounds *w, int64_t round, struct global_state *g,
								 struct rv_errtext *et) {
	*g = (struct global_state){.round = 0};
	const struct worker_span *from = find_span(w, round);
	if (!from) {
		char there[256];
		worker_rounds_print(w, there, sizeof there);
		return rv_fail(et, RV_E_NOTFOUND, "%s: round %" PRId64 " cannot be made from its files; rounds there are: %s",
					   w->store.dir, round, there);
	}
	enum rv_err e = replay(w, from, round < 0 ? from->last : (uint64_t)round, g, et);
	if (e != RV_OK)
		global_release(g);
	return e;
}
