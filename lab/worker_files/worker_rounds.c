/* worker_rounds.c: the available rounds. */
#include "lab/worker_files/worker_rounds.h"

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

/* ---- the run ---- */

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
	RV_TRY(model_layout_init(&w->layout, model_family(run), &shape, NULL, et));
	return global_config_of(run, w->layout.n_params, &w->layout.layers, run_hash, &w->store.cfg, et);
}

/* ---- available rounds ---- */

/* Keeps the damage that was found in files that still exist. */
static void keep_damage(const struct checkpoint_index *before, enum state_kind kind, struct checkpoint_index *now) {
	const struct checkpoint_list *l = kind == STATE_KIND_SNAPSHOT ? &before->snapshots : &before->logs;
	for (int i = 0; i < l->n; i++)
		if (l->at[i].damaged)
			checkpoint_index_damaged(now, kind, l->at[i].round);
}

enum rv_err worker_rounds_look_again(struct worker_rounds *w, struct rv_errtext *et) {
	struct checkpoint_index *now = malloc(sizeof *now);
	if (!now)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory to list its files", w->store.dir);
	enum rv_err e = statestore_scan(&w->store, now, et);
	if (e != RV_OK) {
		free(now);
		return e;
	}
	if (w->index) {
		keep_damage(w->index, STATE_KIND_SNAPSHOT, now);
		keep_damage(w->index, STATE_KIND_LOG, now);
	}
	free(w->index);
	w->index = now;
	return RV_OK;
}

static enum rv_err open_parts(struct worker_rounds *w, struct rv_errtext *et) {
	struct rv_hash run_hash;
	RV_TRY(read_run(w, &run_hash, et));
	RV_TRY(configure(w, &run_hash, et));
	w->store.theta0 = w->run.init_hash[0] ? THETA0_IS_LACKED : THETA0_OF_SEED;
	return worker_rounds_look_again(w, et);
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

static void damage_event(void *events, enum rv_err why, const char *text) {
	rv_event(events, RV_WARN, "damaged", RV_FIELDS(rv_field_str("error", rv_err_name(why))), "%s", text);
}

void worker_rounds_tell(struct worker_rounds *w, struct rv_events *events) {
	w->store.notice = damage_event;
	w->store.notice_ctx = events;
}

void worker_rounds_release(struct worker_rounds *w) {
	model_layout_release(&w->layout);
	free(w->index);
	*w = (struct worker_rounds){.index = NULL};
}

bool worker_rounds_next_start(const struct worker_rounds *w, uint64_t round, struct checkpoint_start *out) {
	for (int i = 0; i < w->index->snapshots.n; i++)
		if (w->index->snapshots.at[i].round > round && !w->index->snapshots.at[i].damaged)
			return checkpoint_start_before(w->index, w->index->snapshots.at[i].round, out);
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
			   s.round <= last + 1) /* ranges overlap if a snapshot is in both */
			last = (reach = checkpoint_reach(w->index, &s)) > last ? reach : last;
		used += (size_t)snprintf(out + used, cap - used, "%s%" PRIu64, used ? ", " : "", first);
		if (last > first && used < cap)
			used += (size_t)snprintf(out + used, cap - used, "-%" PRIu64, last);
	}
}
