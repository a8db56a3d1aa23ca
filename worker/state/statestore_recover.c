/* statestore_recover.c: the files in --dir, as worker/state/recovery.h reads them. */
#include "worker/state/statestore_internal.h"

#include <stdlib.h>

struct directory {
	const struct statestore *store;
	struct recovery_config cfg;
	enum rv_err fault; /* that made theta0 lacked */
	struct rv_errtext text;
};

/* Loads over *g, as there may be no memory for another. If the disk fails in the middle, *g is
 * neither, and theta0 is lacked: without an older snapshot, recovery fails. */
static enum rv_err load_snapshot(void *ctx, uint64_t round, struct global_state *g, struct rv_hash *full_hash,
								 struct rv_errtext *et) {
	struct directory *d = ctx;
	struct state_file *f;
	RV_TRY(statestore_open(d->store, STATE_KIND_SNAPSHOT, round, &f, et));
	enum rv_err e = state_file_verify(f, et);
	if (e == RV_OK) {
		e = state_file_load_snapshot(f, g, &d->text);
		d->cfg.theta0 = e == RV_OK ? d->cfg.theta0 : THETA0_IS_LACKED;
		d->fault = e;
		if (e != RV_OK && et)
			*et = d->text;
	}
	*full_hash = state_file_id(f)->expect;
	state_file_free(f);
	return e;
}

static enum rv_err load_log(void *ctx, uint64_t round, struct state_log_info *info, struct blob **reduced,
							struct rv_errtext *et) {
	const struct directory *d = ctx;
	struct state_file *f;
	RV_TRY(statestore_open(d->store, STATE_KIND_LOG, round, &f, et));
	*info = (struct state_log_info){.round = round,
									.attempt = state_file_attempt(f),
									.digest = state_file_id(f)->expect,
									.form = state_file_form(f)};
	enum rv_err e = state_file_load_log(f, reduced, et);
	state_file_free(f);
	return e;
}

static void load_replica(void *ctx, struct recovered *out) {
	const struct directory *d = ctx;
	struct rv_errtext et = {0};
	enum rv_err e = statestore_open_replica(d->store, &out->replica_file, &et);
	out->has_replica = e == RV_OK;
	if (e == RV_OK) {
		out->replica = *replica_file_info(out->replica_file);
		out->replica_payload = replica_file_payload(out->replica_file);
	}
	if (e != RV_OK && e != RV_E_NOTFOUND)
		statestore_set_aside(d->store, STATE_FILE_REPLICA, 0, e, &et);
}

static enum rv_err write_snapshot(void *ctx, const struct global_state *g, struct rv_errtext *et) {
	return statestore_write_snapshot(((const struct directory *)ctx)->store, g, NULL, et);
}

static void set_aside(void *ctx, enum state_kind kind, uint64_t round, enum rv_err why, const struct rv_errtext *text) {
	const struct directory *d = ctx;
	statestore_set_aside(d->store, kind == STATE_KIND_SNAPSHOT ? STATE_FILE_SNAPSHOT : STATE_FILE_LOG, round, why,
						 text);
}

static void not_written(void *ctx, enum rv_err why, const struct rv_errtext *text) {
	const struct statestore *s = ((const struct directory *)ctx)->store;
	if (s->notice)
		s->notice(s->notice_ctx, why, text->text);
}

/* Syncs the directory first: a power cut may still undo the rename of a process that was killed
 * before its sync, and what is found here is reported, above all as a vote. */
static enum rv_err recover(const struct statestore *s, struct checkpoint_index *x, struct global_state *g,
						   struct recovered *out, struct rv_errtext *et) {
	struct directory d = {.store = s, .cfg = {.theta0 = s->theta0, .schedule = s->schedule}};
	const struct recovery_files files = {.ctx = &d,
										 .load_snapshot = load_snapshot,
										 .load_log = load_log,
										 .load_replica = load_replica,
										 .write_snapshot = write_snapshot,
										 .set_aside = set_aside,
										 .not_written = not_written};
	RV_TRY(statestore_sync(s, et));
	RV_TRY(statestore_scan_with(s, x, statestore_set_aside, et));
	RV_TRY(recovery_run(&files, &d.cfg, x, g, out, et));
	if (!out->lacks_state || d.fault == RV_OK)
		return RV_OK;
	return rv_fail(et, d.fault, "%s: the disk failed while the state was read, start again: %s", s->dir, d.text.text);
}

enum rv_err statestore_recover(const struct statestore *s, struct global_state *g, struct recovered *out,
							   struct rv_errtext *et) {
	*out = (struct recovered){0};
	struct checkpoint_index *x = statestore_new_index(s, et);
	if (!x)
		return RV_E_NOMEM;
	statestore_remove_leftovers(s);
	enum rv_err e = recover(s, x, g, out, et);
	free(x);
	return e;
}
