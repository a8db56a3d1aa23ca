/* core_store.c: jobs for the disk, and what their ends mean. */
#include "worker/session/core_state.h"

#include "base/assert.h"
#include "base/planted.h"
#include "worker/state/document_files.h"

#include <string.h>

/* ---- posting ---- */

/* Fails the job, for which there is no memory. */
static void refuse(struct session_core *c, struct store_job *j) {
	j->err = rv_fail(&j->text, RV_E_NOMEM, "no memory for a job of the storage thread");
	j->copy.has_snapshot = false; /* its hash was not computed */
	c->forget_lost |= j->kind == STORE_INSTALLED || j->kind == STORE_LOST;
	c->replica_ahead |= j->replica_ahead;
}

/* Returns true if the job was posted, and is answered later; false: *j is the answer. */
static bool post(struct session_core *c, struct store_job *j) {
	j->after_lost_forget = c->forget_lost;
	if (c->ops.disk.post(c->ops.ctx, j)) {
		c->forget_lost = false;
		return true;
	}
	refuse(c, j);
	return false;
}

static void post_or_answer(struct session_core *c, int64_t now_us, struct store_job *j) {
	if (!post(c, j))
		session_core_on_stored(c, now_us, j);
}

void session_post(struct session_core *c, int64_t now_us, enum store_kind kind) {
	RV_ASSERT(kind == STORE_EXPORT || kind == STORE_PROBE);
	RV_ASSERT(kind != STORE_EXPORT || c->phase == SESSION_EXPORTING);
	struct store_job j = {.kind = kind};
	post_or_answer(c, now_us, &j);
}

void session_post_lost(struct session_core *c, int64_t now_us, uint64_t round) {
	struct store_job j = {.kind = STORE_LOST, .round = round};
	post_or_answer(c, now_us, &j);
}

void session_post_installed(struct session_core *c, int64_t now_us, uint64_t round, bool ok) {
	struct store_job j = {.kind = ok ? STORE_INSTALLED : STORE_REFUSED, .round = round};
	const struct document *d = round_document(c->round);
	if (d) {
		j.committed_from = document_reaches_to(d);
		j.n_committed = document_committed(d, j.committed);
	}
	post_or_answer(c, now_us, &j);
}

void session_post_copy(struct session_core *c, int64_t now_us, const struct state_copy *copy) {
	const struct document *d = round_document(c->round);
	struct store_job j = {.kind = STORE_COPY,
						  .copy = *copy,
						  .named = d ? document_named_files(d) : (struct checkpoint_named){0},
						  .history = c->history,
						  .replica_ahead = c->replica_ahead};
	RV_ASSERT(copy->handle || (!copy->has_snapshot && !copy->has_replica));
	RV_ASSERT(!copy->has_snapshot || copy->snapshot_round <= round_round(c->round));
	c->replica_posted |= copy->has_replica;
	c->replica_ahead = false;
	post_or_answer(c, now_us, &j);
}

/* Copies the reduced bytes, and what encoding means left, as a later attempt may overwrite them
 * during the write. The storage
 * thread has one at a time. */
void session_persist(struct session_core *c, int64_t now_us) {
	RV_ASSERT(c->reduce.running && c->reduce.complete && c->reduce.round == round_round(c->round));
	if (c->persist != PERSIST_IDLE) {
		c->persist = PERSIST_AGAIN;
		return;
	}
	struct store_job j = {.kind = STORE_PERSIST,
						  .log = {.round = c->reduce.round, .attempt = c->reduce.attempt, .form = c->reduce.form},
						  .reduced = c->ops.links.result(c->ops.ctx)};
	const bool has_left = j.reduced && c->ops.links.means_left(c->ops.ctx, &j.left);
	c->persist = PERSIST_POSTED;
	if (!has_left) {
		refuse(c, &j);
		session_core_on_stored(c, now_us, &j);
		return;
	}
	post_or_answer(c, now_us, &j);
}

/* ---- answers ---- */

void session_keep_result(struct session_core *c, struct blob *bytes, const struct state_log_info *log) {
	RV_ASSERT(log->round == round_round(c->round) && !rv_hash_is_zero(&log->digest));
	struct blob *before = c->result.bytes;
	c->result = (struct session_result){blob_ref(bytes), *log};
	blob_unref(before);
}

static void done_persist(struct session_core *c, int64_t now_us, struct store_job *j) {
	bool of_this_round = j->log.round == round_round(c->round);
	bool again = c->persist == PERSIST_AGAIN;
	bool ok = j->err == RV_OK || RV_BUG("vote-unstored");
	RV_ASSERT(c->persist != PERSIST_IDLE && j->log.attempt > 0);
	c->persist = PERSIST_IDLE;
	if (ok && of_this_round)
		session_keep_result(c, j->reduced, &j->log);
	c->ops.links.forget(c->ops.ctx, STATE_KIND_LOG, j->log.round);
	round_on_persisted(c->round, now_us, j->log.round, j->log.attempt, &j->log.digest, ok);
	if (again && c->reduce.running && c->reduce.complete)
		session_persist(c, now_us);
}

/* Passes on the snapshot's hash, which is that of the copy even if the disk refused it. */
static void done_copy(struct session_core *c, struct store_job *j) {
	c->replica_posted = false;
	if (!j->copy.has_snapshot)
		return;
	if (j->err == RV_OK && storage_health_supersede_fetched(&c->health))
		session_log(c, &(struct session_event){.type = SESSION_LOGS_FETCHED_OVER});
	if (j->history == c->history) /* else it is of a state that was replaced */
		session_full_hash(c, j->copy.snapshot_round, &j->full_hash);
	c->ops.links.forget(c->ops.ctx, STATE_KIND_SNAPSHOT, j->copy.snapshot_round);
}

static void done_export(struct session_core *c, int64_t now_us, struct store_job *j) {
	if (c->why == WHY_ROLLED_BACK)
		return; /* of a state that was taken back meanwhile: not the run's end */
	if (j->err != RV_OK) {
		session_core_fail(c, j->err, j->text.text);
		return;
	}
	RV_ASSERT(!c->exported && round_round(c->round) == c->cfg.rounds);
	c->exported = true;
	session_log(c, &(struct session_event){.type = SESSION_LOGS_EXPORTED, .hash = &j->full_hash, .text = j->text.text});
	if (c->phase != SESSION_EXPORTING)
		return; /* asked to stop meanwhile */
	c->phase = SESSION_LINGERING;
	c->linger_until_us = now_us + c->cfg.linger_us;
}

static void note_health(struct session_core *c, enum store_kind kind, const struct store_job *j) {
	uint32_t times;
	if (j->err == RV_E_CANCELLED)
		return; /* the trainer gave its memory back: no fault of the disk */
	enum storage_change change = storage_health_note(&c->health, kind, j->err, &times);
	struct session_event e = {.kind = kind, .err = j->err, .text = j->text.text, .n = times};
	if (change == STORAGE_AS_BEFORE)
		return;
	e.type = change == STORAGE_BEGINS_TO_FAIL ? SESSION_LOGS_STORAGE_FAILS : SESSION_LOGS_STORAGE_WORKS;
	session_log(c, &e);
}

/* Logs that the disk works again, if the failure to store a round's result was logged. */
static void done_probe(struct session_core *c, int64_t now_us, const struct store_job *j) {
	if (j->err == RV_OK && c->health.failed[STORE_PERSIST] > 0)
		note_health(c, STORE_PERSIST, j);
	round_on_storage(c->round, now_us, j->err == RV_OK);
}

static void finish_job(struct session_core *c, int64_t now_us, struct store_job *j) {
	if (j->kind != STORE_PROBE && j->kind != STORE_LOST)
		note_health(c, j->kind, j);
	switch (j->kind) {
	case STORE_PERSIST:
		done_persist(c, now_us, j);
		break;
	case STORE_COPY:
		done_copy(c, j);
		break;
	case STORE_EXPORT:
		done_export(c, now_us, j);
		break;
	case STORE_PROBE:
		done_probe(c, now_us, j);
		break;
	default:
		break;
	}
}

void session_core_on_stored(struct session_core *c, int64_t now_us, struct store_job *j) {
	RV_ASSERT(j->kind < STORE_KINDS);
	session_check_invariants(c);
	if (c->phase != SESSION_ENDED)
		finish_job(c, now_us, j);
	c->ops.disk.release(c->ops.ctx, j);
}
