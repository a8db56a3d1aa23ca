/* store_job.c: see store_job.h. */
#include "worker/state/store_job.h"

#include "base/assert.h"

/* ---- a copy: the replica, the snapshot, then retention ---- */

static enum store_step after_replica(const struct store_job *j) {
	return j->copy.has_snapshot ? STORE_STEP_SNAPSHOT : STORE_STEP_END;
}

static enum store_step write_copies(const struct store_job *j) {
	RV_ASSERT(j->copy.handle);
	return j->copy.has_replica ? STORE_STEP_REPLICA : after_replica(j);
}

/* What is stored beside files of another history would seem to prove them. */
static enum store_step begin_copies(const struct store_thread *t, struct store_job *j) {
	if (!j->copy.handle)
		return STORE_STEP_END;
	if (!t->other_history)
		return write_copies(j);
	j->err = rv_fail(&j->text, RV_E_IO, "files of another history could not be removed");
	return j->copy.has_snapshot ? STORE_STEP_HASH : STORE_STEP_END;
}

static enum store_step begin_copy(const struct store_thread *t, struct store_job *j) {
	j->err = j->copy.handle ? j->copy.err : RV_E_NOMEM;
	j->text = j->copy.text;
	bool must_go = j->replica_ahead && !j->copy.has_replica;
	return must_go ? STORE_STEP_REMOVE_REPLICA : begin_copies(t, j);
}

/* ---- all kinds ---- */

static void note_stale(struct store_thread *t, uint64_t round) {
	uint64_t end = t->n_stale > 0 ? t->stale + t->n_stale : 0;
	t->stale = t->n_stale > 0 && t->stale < round ? t->stale : round;
	t->n_stale = (end > round + 1 ? end : round + 1) - t->stale;
}

/* The first step of the job itself, once no entry is stale. */
static enum store_step next(const struct store_thread *t, struct store_job *j) {
	static const enum store_step first[STORE_KINDS] = {
		[STORE_PERSIST] = STORE_STEP_LOG,         [STORE_INSTALLED] = STORE_STEP_FORGET,
		[STORE_REFUSED] = STORE_STEP_REMOVE_PART, [STORE_EXPORT] = STORE_STEP_EXPORT,
		[STORE_PROBE] = STORE_STEP_PROBE,         [STORE_LOST] = STORE_STEP_END};
	bool proves = j->kind == STORE_PERSIST || j->kind == STORE_COPY || j->kind == STORE_LOST;
	if (proves && t->n_stale > 0)
		return STORE_STEP_REMOVE_LOG;
	if (j->kind == STORE_PERSIST && j->left)
		return STORE_STEP_MEANS;
	return j->kind == STORE_COPY ? begin_copy(t, j) : first[j->kind];
}

static enum store_step after_remove_log(struct store_thread *t, struct store_job *j, enum rv_err e) {
	if (e != RV_OK)
		return j->kind == STORE_COPY && j->copy.has_snapshot ? STORE_STEP_HASH : STORE_STEP_END;
	RV_ASSERT(t->n_stale > 0);
	t->stale++;
	t->n_stale--;
	return next(t, j);
}

void store_job_begin(struct store_thread *t, struct store_job *j) {
	RV_ASSERT(j->kind < STORE_KINDS);
	RV_ASSERT((j->kind == STORE_PERSIST) == (j->reduced != NULL));
	RV_ASSERT(j->kind == STORE_PERSIST || !j->left);
	t->other_history |= j->after_lost_forget;
	if (j->kind == STORE_LOST)
		note_stale(t, j->round);
	j->err = RV_OK;
	j->step = next(t, j);
}

static void note(struct store_job *j, enum rv_err e, const struct rv_errtext *text) {
	if (e == RV_OK)
		return;
	j->err = e;
	j->text = *text;
}

static enum store_step after_forget(struct store_thread *t, const struct store_job *j) {
	t->other_history = j->err != RV_OK;
	return j->err == RV_OK ? STORE_STEP_ADOPT : STORE_STEP_END;
}

/* Accepts RV_E_NOTFOUND: it is theta0, or the disk failed to store it, which was logged. */
static enum store_step after_adopt(struct store_job *j) {
	if (j->err == RV_E_NOTFOUND)
		j->err = RV_OK;
	return STORE_STEP_END;
}

static enum store_step after(struct store_thread *t, struct store_job *j, enum rv_err e) {
	switch (j->step) {
	case STORE_STEP_REMOVE_LOG:
		return after_remove_log(t, j, e);
	case STORE_STEP_MEANS:
		return e == RV_OK ? STORE_STEP_LOG : STORE_STEP_END;
	case STORE_STEP_FORGET:
		return after_forget(t, j);
	case STORE_STEP_ADOPT:
		return after_adopt(j);
	case STORE_STEP_REMOVE_REPLICA:
		return begin_copies(t, j);
	case STORE_STEP_REPLICA:
		return after_replica(j);
	case STORE_STEP_SNAPSHOT:
		return e == RV_OK ? STORE_STEP_PRUNE : STORE_STEP_END;
	default:
		return STORE_STEP_END;
	}
}

void store_job_did(struct store_thread *t, struct store_job *j, enum rv_err e, const struct rv_errtext *text) {
	RV_ASSERT(j->step < STORE_STEP_END);
	RV_ASSERT(j->step != STORE_STEP_LOG || t->n_stale == 0); /* it would seem to prove them */
	RV_ASSERT((j->step != STORE_STEP_REPLICA && j->step != STORE_STEP_SNAPSHOT) || !t->other_history);
	bool counts = j->step != STORE_STEP_REMOVE_REPLICA && !(j->step == STORE_STEP_PRUNE && j->err != RV_OK);
	if (counts)
		note(j, e, text);
	j->step = after(t, j, e);
	RV_ASSERT(j->kind != STORE_PERSIST || j->step <= STORE_STEP_LOG || j->step == STORE_STEP_END);
}
