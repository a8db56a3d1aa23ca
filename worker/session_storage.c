/* session_storage.c: what goes to disk, on the storage thread, and what the round core is told when it is there. */
#include "worker/session_internal.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "worker/document_files.h"
#include "worker/mean_dump.h"
#include "worker/train/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum store_kind { STORE_PERSIST, STORE_INSTALLED, STORE_REFUSED, STORE_SNAPSHOT, STORE_EXPORT, STORE_PROBE };
_Static_assert((int)STORE_PROBE < (int)SESSION_STORE_KINDS, "a count of failures per kind of job");

struct store_job {
	struct job job;
	struct session *s;
	enum store_kind kind;
	struct state_log_info log; /* PERSIST */
	struct blob *reduced;      /* PERSIST: the reduced bytes */
	uint64_t round;            /* INSTALLED, REFUSED */
	uint64_t committed_from;   /* INSTALLED: the digests in the document, from this round on */
	int n_committed;
	struct rv_hash committed[NET_MAX_LOG_DIGESTS];
	struct trainer_snapshot *snapshot;
	struct checkpoint_named named; /* SNAPSHOT: what joiners need */
	uint32_t history;              /* SNAPSHOT: how many states had been installed when it was taken */
	bool replica_ahead;            /* SNAPSHOT: the replica on disk must not stay */
	/* The answer. */
	enum rv_err err;
	struct rv_errtext text;
	struct rv_errtext warning; /* EXPORT: what is not as it might be, and no fault */
	struct rv_hash full_hash;
};

/* ---- on the storage thread ------------------------------------------------------------------------------------------
 */

static void run_persist(struct store_job *j) {
	j->err = statestore_write_log(&j->s->store, &j->log, j->reduced->data, &j->text);
}

static void run_installed(struct store_job *j) {
	const struct checkpoint_committed committed = {j->committed_from, j->n_committed, j->committed};
	j->err = statestore_forget_from(&j->s->store, j->round, &committed, &j->text);
	j->s->other_history_on_disk = j->err != RV_OK;
	if (j->err != RV_OK)
		return;
	RV_FAILPOINT("install.forgotten");
	j->err = statestore_adopt(&j->s->store, j->round, &j->text);
	if (j->err == RV_E_NOTFOUND) /* theta0, or the disk did not take it, which was told */
		j->err = RV_OK;
}

static void run_snapshot(struct store_job *j) {
	struct statestore *store = &j->s->store;
	struct trainer_snapshot *shot = j->snapshot;
	j->err = shot ? shot->err : rv_fail(&j->text, RV_E_NOMEM, "no memory for a copy of the state");
	if (shot)
		j->text = shot->text;
	if (j->replica_ahead && (!shot || !shot->replica_bytes))
		(void)statestore_remove(store, STATE_FILE_REPLICA, 0, &j->text);
	if (!shot)
		return;
	trainer_snapshot_wait(shot);
	if (j->s->other_history_on_disk) { /* what we store now would seem to prove it */
		if (shot->has_base)
			j->full_hash = global_full_hash(&shot->base);
		j->err = rv_fail(&j->text, RV_E_IO, "%s: files of another history could not be removed", store->dir);
		return;
	}
	if (shot->replica_bytes) {
		replica_seal(shot->replica_bytes->data, shot->replica_bytes->bytes);
		enum rv_err e = statestore_write_replica(store, &shot->replica, shot->replica_bytes->data, &j->text);
		if (e != RV_OK)
			j->err = e;
	}
	if (!shot->has_base)
		return;
	enum rv_err e = statestore_write_base(store, &shot->base, &j->full_hash, &j->text);
	if (e != RV_OK) {
		j->err = e;
		return;
	}
	RV_FAILPOINT("prune.before");
	e = statestore_prune(store, &j->named, &j->text);
	if (j->err == RV_OK)
		j->err = e;
	RV_FAILPOINT("prune.after");
}

static void run_export(struct store_job *j) {
	struct session *s = j->s;
	const struct global_state *g = trainer_global(s->trainer); /* the trainer is idle for good */
	const char *tokenizer = s->member.tokenizer;
	bool has_file = tokenizer[0] && strcmp(tokenizer, "bytes") != 0; /* else bytes, or it trained on token shards */
	RV_FAILPOINT("export.before");
	j->full_hash = global_full_hash(g);
	const struct weights_source source = {
		.cfg = &s->member.config,
		.layout = &replica_model(trainer_replica(s->trainer))->layout,
		.params = g->theta,
		.origin = {.round = g->round,
				   .step = g->round * (uint64_t)s->member.config.steps_per_round,
				   .tokens = s->sums.tokens,
				   .state = j->full_hash},
		.tokenizer_file = has_file ? tokenizer : NULL,
		.origin_dir = s->opt->init[0] ? s->opt->init : s->opt->dir,
		.warning = &j->warning,
	};
	j->err = weights_save_directory(s->opt->dir, &source, &j->text);
}

static void run_job(struct job *job) {
	struct store_job *j = JOB_OWNER(job, struct store_job, job);
	switch (j->kind) {
	case STORE_PERSIST:
		run_persist(j);
		break;
	case STORE_INSTALLED:
		run_installed(j);
		break;
	case STORE_REFUSED:
		j->err = statestore_remove(&j->s->store, STATE_FILE_PART, j->round, &j->text);
		break;
	case STORE_SNAPSHOT:
		run_snapshot(j);
		break;
	case STORE_EXPORT:
		run_export(j);
		break;
	case STORE_PROBE:
		j->err = statestore_probe(&j->s->store, &j->text);
		break;
	}
}

/* ---- back on the event loop -----------------------------------------------------------------------------------------
 */

void session_keep_reduced(struct session *s, struct blob *reduced, uint32_t attempt) {
	blob_unref(s->reduced);
	s->reduced = blob_ref(reduced);
	s->reduced_attempt = attempt;
}

static void done_persist(struct session *s, struct store_job *j) {
	bool of_this_round = j->log.round == round_round(s->round);
	s->persisting = false;
	RV_FAILPOINT("persist.done");
	if (j->err == RV_OK && of_this_round)
		session_keep_reduced(s, j->reduced, j->log.attempt);
	donor_forget(s->donor, STATE_KIND_LOG, j->log.round);
	round_on_persisted(s->round, rv_clock_monotonic_us(), j->log.round, j->log.attempt, &j->log.digest,
					   j->err == RV_OK);
	bool again = s->persist_again;
	s->persist_again = false;
	if (again && allreduce_running(s->reduce) && allreduce_done(s->reduce))
		session_persist(s);
}

/* What was fetched and not stored is no loss any more: a later state is on the disk. */
static void supersede_fetched(struct session *s) {
	uint32_t *installed = &s->writes_failed[STORE_INSTALLED], *refused = &s->writes_failed[STORE_REFUSED];
	if (*installed == 0 && *refused == 0 && !s->fetched_in_memory)
		return;
	*installed = *refused = 0;
	s->fetched_in_memory = false;
	rv_event(s->events, RV_INFO, "storage_back", RV_FIELDS(rv_field_str("what", "fetched")),
			 "a checkpoint is stored: what was fetched before is not needed after a restart");
}

static void done_snapshot(struct session *s, struct store_job *j) {
	s->replica_write = false;
	if (j->err == RV_OK && j->snapshot->has_base)
		supersede_fetched(s);
	if (j->snapshot && j->snapshot->has_base && j->history == s->history) /* else it is of a state that was replaced */
		session_full_hash(s, j->snapshot->base.round, &j->full_hash);
	if (j->snapshot && j->snapshot->has_base)
		donor_forget(s->donor, STATE_KIND_BASE, j->snapshot->base.round);
	trainer_snapshot_free(j->snapshot);
}

static void done_export(struct session *s, struct store_job *j) {
	if (s->next_epoch != 0)
		return; /* of a state that was taken back meanwhile: not the run's end */
	if (j->err != RV_OK) {
		session_fail(s, j->err, j->text.text);
		return;
	}
	if (j->warning.text[0])
		rv_event(s->events, RV_WARN, "no_tokenizer", RV_NO_FIELDS, "%s", j->warning.text);
	RV_FAILPOINT("export.after");
	s->exported = true;
	session_write_end(s, &j->full_hash);
	if (s->state != SESSION_EXPORTING)
		return; /* told to stop meanwhile */
	s->state = SESSION_LINGERING;
	s->linger_until_us = rv_clock_monotonic_us() + SESSION_LINGER_US;
}

/* What is not on disk now. */
static const char *consequence(enum store_kind kind) {
	switch (kind) {
	case STORE_PERSIST:
		return "the result of a round cannot be stored: this worker votes when it can; its training is kept";
	case STORE_SNAPSHOT:
		return "a checkpoint cannot be stored, or old files not removed: training goes on, the last good one stays";
	case STORE_INSTALLED:
		return "fetched state is in use, but not on disk: after a restart it is fetched again";
	default:
		return "storing failed";
	}
}

/* Once when it begins to fail, and when it is over: a full disk fails at every heartbeat. */
static void tell_storage(struct session *s, const struct store_job *j) {
	uint32_t *failed = &s->writes_failed[j->kind];
	if (j->err == RV_OK && *failed > 0)
		rv_event(s->events, RV_INFO, "storage_back", RV_FIELDS(rv_field_int("failed", *failed)),
				 "storing works again, after %u time%s that it did not", *failed, *failed == 1 ? "" : "s");
	if (j->err != RV_OK && *failed == 0)
		rv_event(s->events, RV_ERROR, "storage", RV_FIELDS(rv_field_str("error", rv_err_name(j->err))), "%s (%s%s)",
				 consequence(j->kind), j->text.text, j->err == RV_E_FULL ? ": make room" : "");
	*failed = j->err == RV_OK ? 0 : *failed + 1;
	s->disk_full[j->kind] = j->err == RV_E_FULL;
}

bool session_storage_fails(const struct session *s) {
	for (int kind = 0; kind < SESSION_STORE_KINDS; kind++)
		if (s->writes_failed[kind] > 0)
			return true;
	return false;
}

uint8_t session_storage_report(const struct session *s, uint8_t rounds) {
	static const uint8_t said[SESSION_STORE_KINDS] = {[STORE_SNAPSHOT] = REPORT_STORAGE_CHECKPOINTS,
													  [STORE_INSTALLED] = REPORT_STORAGE_FETCHED,
													  [STORE_REFUSED] = REPORT_STORAGE_FETCHED,
													  [STORE_EXPORT] = REPORT_STORAGE_CHECKPOINTS};
	uint8_t set = rounds | (s->fetched_in_memory ? REPORT_STORAGE_FETCHED : 0);
	bool full = false;
	for (int kind = 0; kind < SESSION_STORE_KINDS; kind++) {
		set |= s->writes_failed[kind] > 0 ? said[kind] : 0;
		full = full || (s->writes_failed[kind] > 0 && s->disk_full[kind]);
	}
	return set != 0 && full ? set | REPORT_STORAGE_FULL : set;
}

/* That a round's result could not be stored was told; that the next one can be is told now. */
static void done_probe(struct session *s, struct store_job *j) {
	if (j->err == RV_OK && s->writes_failed[STORE_PERSIST] > 0) {
		j->kind = STORE_PERSIST;
		tell_storage(s, j);
	}
	round_on_storage(s->round, rv_clock_monotonic_us(), j->err == RV_OK);
}

static void finish_job(struct session *s, struct store_job *j) {
	if (j->kind == STORE_PROBE) {
		done_probe(s, j);
		return;
	}
	tell_storage(s, j);
	switch (j->kind) {
	case STORE_PERSIST:
		done_persist(s, j);
		break;
	case STORE_INSTALLED:
	case STORE_REFUSED:
		break;
	case STORE_SNAPSHOT:
		done_snapshot(s, j);
		break;
	case STORE_EXPORT:
		done_export(s, j);
		break;
	case STORE_PROBE:
		break;
	}
	blob_unref(j->reduced);
}

static void job_done(struct job *job) {
	struct store_job *j = JOB_OWNER(job, struct store_job, job);
	finish_job(j->s, j);
	free(j);
}

/* No memory for the job: as if it had failed. */
static void refuse(struct session *s, const struct store_job *like) {
	struct store_job j = *like;
	j.s = s;
	j.err = rv_fail(&j.text, RV_E_NOMEM, "no memory for a job of the storage thread");
	if (j.kind == STORE_SNAPSHOT && j.snapshot) {
		trainer_snapshot_wait(j.snapshot);
		j.snapshot->has_base = false; /* its hash was not computed */
	}
	if (j.kind == STORE_INSTALLED)
		s->other_history_on_disk = true;
	s->replica_ahead |= j.replica_ahead;
	finish_job(s, &j);
}

static void post(struct session *s, const struct store_job *j) {
	struct store_job *copy = malloc(sizeof *copy);
	if (!copy) {
		refuse(s, j);
		return;
	}
	*copy = *j;
	copy->s = s;
	copy->job = (struct job){.run = run_job, .done = job_done};
	jobs_post(s->storage, &copy->job);
}

/* ---- requests -------------------------------------------------------------------------------------------------------
 */

/* The reduced bytes are copied: a later attempt may overwrite them while they are being written. */
void session_persist(struct session *s) {
	uint64_t round = allreduce_round(s->reduce);
	uint32_t attempt = allreduce_attempt(s->reduce);
	if (s->persisting) {
		s->persist_again = true;
		return;
	}
	struct blob *reduced = blob_new(state_payload_bytes(&s->store.cfg, STATE_KIND_LOG, round));
	const struct store_job j = {.kind = STORE_PERSIST, .log = {.round = round, .attempt = attempt}, .reduced = reduced};
	if (!reduced) {
		refuse(s, &j);
		return;
	}
	memcpy(reduced->data, allreduce_reduced(s->reduce), reduced->bytes);
	s->persisting = true;
	session_trace_vote(s);
	MEAN_DUMP_REDUCED(s, round, attempt);
	RV_FAILPOINT("persist.before");
	post(s, &j);
}

void session_probe_storage(struct session *s) {
	post(s, &(struct store_job){.kind = STORE_PROBE});
}

void session_installed(struct session *s, uint64_t round, bool ok) {
	struct store_job j = {.kind = ok ? STORE_INSTALLED : STORE_REFUSED, .round = round};
	const struct document *d = round_document(s->round);
	if (d) {
		j.committed_from = document_reaches_to(d);
		j.n_committed = document_committed(d, j.committed);
	}
	post(s, &j);
}

void session_save_snapshot(struct session *s, struct trainer_snapshot *snapshot) {
	const struct document *d = round_document(s->round);
	if (snapshot) {
		snapshot->replica.run_tokens = s->sums.tokens;
		snapshot->replica.bytes_sent = session_bytes_sent(s);
		snapshot->replica.formula_bytes = s->sums.formula_bytes;
		s->replica_write = s->replica_write || snapshot->replica_bytes;
	}
	bool replica_ahead = s->replica_ahead;
	s->replica_ahead = false;
	post(s, &(struct store_job){.kind = STORE_SNAPSHOT,
								.snapshot = snapshot,
								.named = d ? document_named_files(d) : (struct checkpoint_named){0},
								.history = s->history,
								.replica_ahead = replica_ahead});
}

void session_export(struct session *s) {
	post(s, &(struct store_job){.kind = STORE_EXPORT});
}
