/* disk.c: the session core's disk: the steps of a job (worker/state/store_job.h), on the storage
 * thread. */
#include "worker/session/internal.h"

#include "base/assert.h"
#include "base/failpoint.h"
#include "train/files/weights.h"

#include <stdlib.h>
#include <string.h>

struct posted {
	struct job job;
	struct session *s;
	struct store_job store;
	struct blob *sent; /* PERSIST, in a run with audits: this worker's contribution; NULL: it is not kept */
	struct blob *sums; /* the same, of the sums that it was given as a final owner */
};

/* ---- on the storage thread ---- */

static enum rv_err forget(const struct statestore *store, const struct store_job *j, struct rv_errtext *et) {
	const struct checkpoint_committed committed = {j->committed_from, j->n_committed, j->committed};
	RV_TRY(statestore_forget_from(store, j->round, &committed, et));
	RV_FAILPOINT("install.forgotten");
	return RV_OK;
}

static enum rv_err write_replica(const struct statestore *store, const struct store_job *j, struct rv_errtext *et) {
	struct trainer_copy *shot = j->copy.handle;
	const struct state_pieces_of payload = trainer_copy_replica(shot);
	return statestore_write_replica(store, &shot->replica, &payload, et);
}

static enum rv_err prune(const struct statestore *store, const struct store_job *j, struct rv_errtext *et) {
	RV_FAILPOINT("prune.before");
	enum rv_err e = statestore_prune(store, &j->named, et);
	RV_FAILPOINT("prune.after");
	return e;
}

/* A warning of what is not as it might be, and no fault, is left in j->text. */
static enum rv_err export(struct session *s, struct store_job *j, struct rv_errtext *et) {
	const struct global_state *g = trainer_global(s->trainer); /* the trainer is idle for good */
	const char *tokenizer = s->member.tokenizer;
	bool has_file = tokenizer[0] && strcmp(tokenizer, "bytes") != 0; /* else bytes, or it trained on token shards */
	RV_FAILPOINT("export.before");
	j->full_hash = global_full_hash(g);
	const struct weights_source source =
		{
			.cfg = &s->member.config,
			.layout = &replica_model(trainer_replica(s->trainer))->layout,
			.params = g->theta,
			.origin = {.round = g->round,
					   .step = g->round * (uint64_t)s->member.config.steps_per_round,
					   .tokens = s->sums.tokens,
					   .state = j->full_hash},
			.tokenizer_file = has_file ? tokenizer : NULL,
			.origin_dir = s->opt->init[0] ? s->opt->init : s->opt->dir,
			.warning = &j->text,
		};
	return weights_save_directory(s->opt->dir, &source, et);
}

static enum rv_err carry_out(struct session *s, struct store_job *j, struct rv_errtext *et) {
	const struct statestore *store = &s->store;
	const struct trainer_copy *shot = j->copy.handle;
	switch (j->step) {
	case STORE_STEP_REMOVE_LOG:
		return statestore_remove(store, STATE_FILE_LOG, s->store_thread.stale, et);
	case STORE_STEP_MEANS:
		return statestore_write_means(store, j->log.round, j->left->data, j->left->bytes, et);
	case STORE_STEP_LOG:
		return statestore_write_log(store, &j->log, j->reduced->data, et);
	case STORE_STEP_FORGET:
		return forget(store, j, et);
	case STORE_STEP_ADOPT:
		return statestore_adopt(store, j->round, et);
	case STORE_STEP_REMOVE_PART:
		return statestore_remove(store, STATE_FILE_PART, j->round, et);
	case STORE_STEP_REMOVE_REPLICA:
		return statestore_remove(store, STATE_FILE_REPLICA, 0, et);
	case STORE_STEP_REPLICA:
		return write_replica(store, j, et);
	case STORE_STEP_SNAPSHOT:
		return statestore_write_snapshot(store, &shot->snapshot, &j->full_hash, et);
	case STORE_STEP_HASH:
		j->full_hash = global_full_hash(&shot->snapshot);
		return RV_OK;
	case STORE_STEP_PRUNE:
		return prune(store, j, et);
	case STORE_STEP_EXPORT:
		return export(s, j, et);
	case STORE_STEP_PROBE:
		return statestore_probe(store, et);
	case STORE_STEP_END:
		break;
	}
	RV_UNREACHABLE("a step of no job");
}

static void run(struct job *job) {
	struct posted *p = JOB_OWNER(job, struct posted, job);
	if (p->store.kind == STORE_PERSIST)
		session_keep_contribution(p->s, &p->store.log, p->sent);
	if (p->store.kind == STORE_PERSIST)
		session_keep_sums(p->s, &p->store.log, p->sums);
	store_job_begin(&p->s->store_thread, &p->store);
	if (p->store.kind == STORE_COPY && p->store.copy.handle)
		trainer_copy_wait(p->store.copy.handle);
	while (p->store.step != STORE_STEP_END) {
		struct rv_errtext et = {0};
		enum rv_err e = carry_out(p->s, &p->store, &et);
		store_job_did(&p->s->store_thread, &p->store, e, &et);
	}
	if (p->store.kind == STORE_COPY && p->store.copy.handle)
		trainer_copy_read(p->store.copy.handle);
}

/* ---- on the event loop ---- */

static void release(void *ctx, struct store_job *j) {
	(void)ctx;
	trainer_copy_free(j->copy.handle);
	blob_unref(j->reduced);
	blob_unref(j->left);
}

static void done(struct job *job) {
	struct posted *p = JOB_OWNER(job, struct posted, job);
	if (p->store.kind == STORE_PERSIST)
		RV_FAILPOINT("persist.done");
	if (p->store.kind == STORE_EXPORT && p->store.err == RV_OK)
		RV_FAILPOINT("export.after");
	if (p->sent)
		kept_contributions_forget(p->s->audit.kept);
	if (p->sums)
		kept_sums_forget(p->s->audit.sums);
	session_core_on_stored(p->s->core, rv_clock_monotonic_us(), &p->store);
	blob_unref(p->sent);
	blob_unref(p->sums);
	free(p);
}

/* Frees a job whose session ends before its answer. */
static void dropped(struct job *job) {
	struct posted *p = JOB_OWNER(job, struct posted, job);
	release(p->s, &p->store);
	blob_unref(p->sent);
	blob_unref(p->sums);
	free(p);
}

/* Returns a copy of what this worker sends in the all-reduce: the next round's replaces it. NULL:
 * it is not kept, or there is no memory. */
static struct blob *copy_sent(const struct session *s) {
	size_t bytes = 0;
	const uint8_t *sent = s->audit.kept && allreduce_running(s->reduce) ? allreduce_own(s->reduce, &bytes) : NULL;
	struct blob *b = sent ? blob_new(bytes) : NULL;
	if (b)
		memcpy(b->data, sent, bytes);
	return b;
}

/* Returns the sums that this worker was given as a final owner; NULL: none, they are not kept, or
 * there is no memory. */
static struct blob *copy_sums(const struct session *s) {
	const struct grid *g = s->audit.sums ? allreduce_grid(s->reduce) : NULL;
	return g ? sums_image_new(g, allreduce_round(s->reduce), allreduce_attempt(s->reduce)) : NULL;
}

static bool post(void *ctx, const struct store_job *j) {
	struct session *s = ctx;
	struct posted *p = malloc(sizeof *p);
	if (!p)
		return false;
	*p = (struct posted){.job = {.run = run, .done = done, .dropped = dropped}, .s = s, .store = *j};
	if (j->kind == STORE_PERSIST) {
		p->sent = copy_sent(s);
		p->sums = copy_sums(s);
		session_trace_vote(s);
		RV_FAILPOINT("persist.before");
	}
	jobs_post(s->storage, &p->job);
	return true;
}

static bool idle(void *ctx) {
	return jobs_idle(((struct session *)ctx)->storage);
}

const struct session_disk_ops session_disk_ops = {.post = post, .release = release, .idle = idle};
