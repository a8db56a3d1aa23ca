/* session_storage.c: what goes to disk, on the storage thread, and what the round core is told when it is there. */
#include "worker/session_internal.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "worker/mean_dump.h"
#include "worker/train/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum store_kind { STORE_PERSIST, STORE_FETCHED_LOG, STORE_FETCHED_BASE, STORE_SNAPSHOT, STORE_EXPORT };

struct store_job {
	struct job job;
	struct session *s;
	enum store_kind kind;
	struct state_log_info log; /* PERSIST, FETCHED_LOG */
	uint64_t round;
	struct blob *file;
	struct rv_hash expect;
	struct trainer_snapshot *snapshot;
	uint64_t vouched_round; /* SNAPSHOT: what joiners start from */
	uint32_t history;       /* SNAPSHOT: how many states had been installed when it was taken */
	/* The answer. */
	enum rv_err err;
	struct rv_errtext text;
	struct rv_errtext warning; /* EXPORT: what is not as it might be, and no fault */
	bool usable;               /* FETCHED_LOG: it is what was expected, even if the disk did not take it */
	struct rv_hash full_hash;
};

/* ---- on the storage thread ------------------------------------------------------------------------------------------
 */

static uint8_t *payload_of(struct store_job *j) {
	return j->file->data + STATE_LOG_HEADER_BYTES;
}

static void write_log(struct store_job *j) {
	const struct statestore *store = &j->s->store;
	state_log_header(&store->cfg, &j->log, j->file->data);
	j->err = statestore_write_file(store, STATE_FILE_LOG, j->log.round, j->file, &j->text);
}

static void run_persist(struct store_job *j) {
	struct global_state names = {.cfg = j->s->store.cfg};
	j->log.digest = global_digest(&names, j->log.round, payload_of(j));
	write_log(j);
}

static void run_fetched_log(struct store_job *j) {
	const struct global_config *c = &j->s->store.cfg;
	const uint8_t *payload;
	j->err = state_log_load(c, j->file->data, j->file->bytes, &j->log, &payload, &j->text);
	if (j->err == RV_OK && (j->log.round != j->round || !rv_hash_equal(&j->log.digest, &j->expect)))
		j->err =
			rv_fail(&j->text, RV_E_CORRUPT, "a peer's log of round %" PRIu64 " is not the committed one", j->round);
	if (j->err != RV_OK)
		return;
	j->usable = true;
	j->log.attempt = 0; /* on the word of the signed document */
	write_log(j);
	RV_FAILPOINT("fetch.stored");
}

static void run_snapshot(struct store_job *j) {
	struct statestore *store = &j->s->store;
	struct trainer_snapshot *shot = j->snapshot;
	if (shot->replica_bytes) {
		replica_seal(shot->replica_bytes->data, shot->replica_bytes->bytes);
		j->err = statestore_write_replica(store, &shot->replica, shot->replica_bytes->data, &j->text);
	}
	if (!shot->has_base)
		return;
	j->full_hash = global_full_hash(&shot->base);
	enum rv_err e = statestore_write_base(store, &shot->base, &j->full_hash, &j->text);
	if (e != RV_OK) {
		j->err = e;
		return;
	}
	RV_FAILPOINT("prune.before");
	statestore_prune(store, j->vouched_round);
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
	case STORE_FETCHED_LOG:
		run_fetched_log(j);
		break;
	case STORE_FETCHED_BASE:
		statestore_forget_from(&j->s->store, j->round);
		RV_FAILPOINT("install.forgotten");
		if (j->file)
			j->err = statestore_write_file(&j->s->store, STATE_FILE_BASE, j->round, j->file, &j->text);
		break;
	case STORE_SNAPSHOT:
		run_snapshot(j);
		break;
	case STORE_EXPORT:
		run_export(j);
		break;
	}
}

/* ---- back on the event loop -----------------------------------------------------------------------------------------
 */

static void keep_log_file(struct session *s, struct blob *file) {
	blob_unref(s->log_file);
	s->log_file = blob_ref(file);
}

static void done_persist(struct session *s, struct store_job *j) {
	bool of_this_round = j->log.round == round_round(s->round);
	s->persisting = false;
	RV_FAILPOINT("persist.done");
	if (j->err == RV_OK && of_this_round)
		keep_log_file(s, j->file);
	round_on_persisted(s->round, rv_clock_monotonic_us(), j->log.round, j->log.attempt, &j->log.digest,
					   j->err == RV_OK);
	if (s->persist_again && allreduce_running(s->reduce) && allreduce_done(s->reduce))
		session_persist(s);
	s->persist_again = false;
}

static void done_fetched_log(struct session *s, struct store_job *j) {
	if (j->usable && j->round == round_round(s->round))
		keep_log_file(s, j->file);
	round_on_fetched(s->round, rv_clock_monotonic_us(), ROUND_FETCH_LOG, j->round, j->usable);
}

static void done_snapshot(struct session *s, struct store_job *j) {
	s->replica_write = false;
	if (j->snapshot->has_base && j->history == s->history) /* else it is of a state that was replaced */
		session_full_hash(s, j->snapshot->base.round, &j->full_hash);
	trainer_snapshot_free(j->snapshot);
}

static void done_export(struct session *s, struct store_job *j) {
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

static void job_done(struct job *job) {
	struct store_job *j = JOB_OWNER(job, struct store_job, job);
	struct session *s = j->s;
	if (j->err != RV_OK)
		rv_event(s->events, RV_ERROR, "storage", RV_FIELDS(rv_field_str("error", rv_err_name(j->err))), "%s%s",
				 j->text.text, j->err == RV_E_FULL ? ": make room; training goes on where it can" : "");
	switch (j->kind) {
	case STORE_PERSIST:
		done_persist(s, j);
		break;
	case STORE_FETCHED_LOG:
		done_fetched_log(s, j);
		break;
	case STORE_FETCHED_BASE:
		break;
	case STORE_SNAPSHOT:
		done_snapshot(s, j);
		break;
	case STORE_EXPORT:
		done_export(s, j);
		break;
	}
	blob_unref(j->file);
	free(j);
}

static void post(struct session *s, const struct store_job *j) {
	struct store_job *copy = malloc(sizeof *copy);
	RV_ASSERT(copy != NULL); /* some hundred bytes */
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
	struct blob *file = blob_new(state_log_bytes(&s->store.cfg));
	if (!file) {
		round_on_persisted(s->round, rv_clock_monotonic_us(), round, attempt, &(struct rv_hash){0}, false);
		return;
	}
	memcpy(file->data + STATE_LOG_HEADER_BYTES, allreduce_reduced(s->reduce), file->bytes - STATE_LOG_HEADER_BYTES);
	s->persisting = true;
	MEAN_DUMP_REDUCED(s, round, attempt);
	RV_FAILPOINT("persist.before");
	post(s, &(struct store_job){.kind = STORE_PERSIST, .log = {.round = round, .attempt = attempt}, .file = file});
}

void session_save_log(struct session *s, uint64_t round, struct blob *file, const struct rv_hash *expect) {
	post(s, &(struct store_job){.kind = STORE_FETCHED_LOG, .round = round, .file = file, .expect = *expect});
}

void session_save_base(struct session *s, uint64_t round, struct blob *file) {
	post(s, &(struct store_job){.kind = STORE_FETCHED_BASE, .round = round, .file = file});
}

void session_save_snapshot(struct session *s, struct trainer_snapshot *snapshot) {
	if (!snapshot)
		return;
	const struct document *d = round_document(s->round);
	snapshot->replica.run_tokens = s->sums.tokens;
	snapshot->replica.bytes_sent = session_bytes_sent(s);
	snapshot->replica.formula_bytes = s->sums.formula_bytes;
	s->replica_write = s->replica_write || snapshot->replica_bytes;
	post(s, &(struct store_job){.kind = STORE_SNAPSHOT,
								.snapshot = snapshot,
								.vouched_round = d ? d->base_round : 0,
								.history = s->history});
}

void session_export(struct session *s) {
	post(s, &(struct store_job){.kind = STORE_EXPORT});
}
