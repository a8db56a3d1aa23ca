/* work.c: what the trainer thread does: inner steps, encoding, the outer step. */
#include "worker/trainer/internal.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/hex.h"
#include "train/files/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- inner steps ---- */

/* With the lock. */
static void show_counts(struct trainer *t) {
	const struct participant *from = &t->participant;
	struct trainer_progress *p = &t->progress;
	p->round = from->round;
	p->done = participant_progress(from);
	p->global_step = replica_global_step(t->replica);
}

static void count_step(struct trainer *t, const struct step_stats *s, int64_t us) {
	pthread_mutex_lock(&t->lock);
	struct trainer_progress *p = &t->progress;
	show_counts(t);
	p->loss = s->loss;
	p->lr = s->lr;
	p->grad_norm = s->grad_norm;
	p->round_loss += (double)s->loss;
	p->round_steps++;
	p->compute_us += us;
	p->step_since_us = 0;
	p->contribution_us += us;
	float rate = us > 0 ? (float)s->tokens * 1e6f / (float)us : 0;
	p->tokens_per_s = p->tokens_per_s == 0 ? rate : 0.8f * p->tokens_per_s + 0.2f * rate;
	pthread_mutex_unlock(&t->lock);
}

void trainer_count_time(struct trainer *t, int64_t *sum, int64_t since_us) {
	pthread_mutex_lock(&t->lock);
	*sum += rv_clock_monotonic_us() - since_us;
	pthread_mutex_unlock(&t->lock);
}

static void begin_step(struct trainer *t, int64_t now_us) {
	pthread_mutex_lock(&t->lock);
	t->progress.step_since_us = now_us;
	pthread_mutex_unlock(&t->lock);
}

static enum rv_err one_step(struct trainer *t, uint64_t round, struct rv_errtext *et) {
	struct step_stats stats;
	int64_t started_us = rv_clock_monotonic_us();
	begin_step(t, started_us);
	enum rv_err e = participant_step(&t->participant, &t->global, round, &stats, et);
	if (e == RV_E_CANCELLED) /* it waited for text: nothing of the step is done */
		begin_step(t, 0);
	if (e == RV_E_RANGE)
		return rv_fail_context(et, e,
							   "training cannot go on. Start again with the same directory: it goes back to the last "
							   "saved round. If that does not help, or it is the same elsewhere, lr is too high or "
							   "clip is missing: make a new run with other values. Why");
	RV_TRY(e);
	count_step(t, &stats, rv_clock_monotonic_us() - started_us);
	RV_FAILPOINT("train.step");
	return RV_OK;
}

/* The contribution has at least one step, and one more like these would end after the run's
 * round_ms. */
static bool time_is_up(struct trainer *t) {
	pthread_mutex_lock(&t->lock);
	struct trainer_progress *p = &t->progress;
	int64_t steps = (int64_t)p->done.steps_done, most_us = t->run.round_ms * RV_US_PER_MS;
	bool up = most_us > 0 && steps > 0 && p->contribution_us + p->contribution_us / steps > most_us;
	pthread_mutex_unlock(&t->lock);
	return up;
}

/* Theta_local cannot be used: theta takes its place, and no step of the round is done. */
static void spoil(struct trainer *t, struct rv_errtext *et) {
	participant_spoiled(&t->participant, &t->global, et);
	trainer_show_round(t, true);
}

/* Prepares the participant for what it may read. */
static void begin_train(struct request *rq) {
	struct trainer *t = rq->t;
	if (rq->asked.starts_over) {
		participant_start_over(&t->participant, &t->global);
		trainer_show_round(t, true);
	}
	if (rq->asked.has_leases)
		participant_read(&t->participant, &rq->asked.reading);
	participant_begin(&t->participant, &t->global, rq->asked.round);
}

/* Notes what was read since the sequence `before`, and whether the leases ended there. */
static void end_train(struct request *rq, uint64_t before) {
	struct trainer_answer *a = &rq->answer;
	if (!rq->asked.has_leases)
		return;
	const uint64_t n = replica_next(rq->t->replica) - before;
	if (n > 0)
		a->reads = reading_part(&rq->asked.reading, before, n);
	a->read_out = a->err == RV_E_BUSY;
	a->err = a->read_out ? RV_OK : a->err;
}

static void work_train(struct request *rq) {
	struct trainer *t = rq->t;
	const struct participant *p = &t->participant;
	const bool ahead = rq->asked.round != p->round;
	RV_FAILPOINT("train.begin");
	begin_train(rq);
	const uint64_t before = replica_next(t->replica);
	RV_ASSERT(rq->asked.from == (ahead ? p->ahead : p->steps_done));
	atomic_store(&t->training, true);
	for (uint64_t i = 0; i < rq->asked.steps && rq->answer.err == RV_OK && !atomic_load(&t->stop) && !time_is_up(t);
		 i++)
		rq->answer.err = one_step(t, rq->asked.round, &rq->answer.text);
	if (rq->answer.err == RV_E_CANCELLED)
		rq->answer.err = RV_OK; /* another request came meanwhile */
	atomic_store(&t->training, false);
	end_train(rq, before);
	if (rq->answer.err == RV_E_RANGE && !ahead)
		spoil(t, &rq->answer.text);
	rq->answer.time_up = !ahead && p->steps_done > 0 && time_is_up(t);
}

/* ---- the outer step ---- */

void trainer_show_round(struct trainer *t, bool begins) {
	pthread_mutex_lock(&t->lock);
	struct trainer_progress *p = &t->progress;
	show_counts(t);
	if (begins)
		p->contribution_us = 0;
	p->last_round_loss = p->round_steps > 0 ? p->round_loss / (double)p->round_steps : NAN;
	p->round_loss = 0;
	p->round_steps = 0;
	pthread_mutex_unlock(&t->lock);
}

static void work_encode(struct request *rq) {
	struct trainer *t = rq->t;
	int64_t started_us = rv_clock_monotonic_us();
	RV_FAILPOINT("encode.before");
	rq->answer.err = participant_encode(&t->participant, &t->global, &rq->answer.text);
	if (rq->answer.err != RV_OK)
		spoil(t, &rq->answer.text);
	else
		committer_make(&t->committer, &t->global.cfg, t->global.round, t->participant.encoded, &rq->answer.commitment);
	if (rq->answer.err == RV_OK && rq->asked.want_replica)
		trainer_take_copy(rq, false, true);
	RV_FAILPOINT("encode.after");
	trainer_count_time(t, &t->progress.compute_us, started_us);
}

static void work_apply(struct request *rq) {
	struct trainer *t = rq->t;
	const struct trainer_request *a = &rq->asked;
	int64_t started_us = rv_clock_monotonic_us();
	bool begins;
	RV_FAILPOINT("apply.before");
	RV_ASSERT(a->round == t->global.round &&
			  a->reduced->bytes == state_payload_bytes(&t->global.cfg, STATE_KIND_LOG, a->round));
	trainer_settle_shared(t);
	participant_send_as(&t->participant, &a->form);
	rq->answer.err = participant_apply(&t->participant, &t->global, a->reduced->data, &a->expect, a->adopt, &begins,
									   &rq->answer.text);
	if (rq->answer.err == RV_OK) {
		rq->answer.chain = t->global.chain;
		trainer_show_round(t, begins);
		trainer_take_copy(rq, a->want_snapshot, a->want_replica);
		RV_FAILPOINT("apply.after");
	}
	trainer_count_time(t, &t->progress.compute_us, started_us);
}

/* ---- a fetched state ---- */

/* theta0 again: a fresh replica has it. */
static void install_theta0(struct trainer *t) {
	replica_draw_theta0(t->replica); /* work_install puts the installed state into the replica anyway */
	global_start_over(&t->global, replica_theta(t->replica));
}

/* No document can vouch for round 0: its snapshot is what the run's init_hash names, and nothing
 * else. */
static enum rv_err check_initial(const struct trainer *t, const struct state_file *snapshot, struct rv_errtext *et) {
	const struct global_config *c = &t->global.cfg;
	const struct state_id *id = state_file_id(snapshot);
	const struct rv_hash *pieces = state_file_manifest(snapshot), weights = weights_hash_of(c->n, pieces);
	char hex[2 * RV_HASH_BYTES + 1];
	bool begins = false;
	rv_hex_encode(weights.b, RV_HASH_BYTES, hex);
	RV_TRY(global_begins_with(c, &id->chain, pieces, &begins, et));
	if (strcmp(hex, t->run.init_hash) != 0 || id->round != 0 || !begins)
		return rv_fail(et, RV_E_CORRUPT, "the fetched initial weights are not those that the run starts from");
	return RV_OK;
}

/* Looked at as a whole before anything is changed. *lost: the disk failed afterwards. */
static enum rv_err install_snapshot(struct trainer *t, struct state_file *snapshot, const struct rv_hash *expect,
									bool *lost, struct rv_errtext *et) {
	RV_TRY(state_file_verify(snapshot, et));
	if (rv_hash_is_zero(expect))
		RV_TRY(check_initial(t, snapshot, et));
	else if (!rv_hash_equal(&state_file_id(snapshot)->expect, expect))
		return rv_fail(et, RV_E_CORRUPT, "the fetched state is whole, but not the one the run vouches for");
	const enum rv_err e = state_file_load_snapshot(snapshot, &t->global, et);
	*lost = e != RV_OK;
	if (*lost)
		return rv_fail_context(et, e,
							   "the disk failed while the fetched state was read. Start again with the same directory: "
							   "it goes back to the last saved round. Why");
	return RV_OK;
}

static void work_install(struct request *rq) {
	struct trainer *t = rq->t;
	const struct trainer_request *a = &rq->asked;
	struct trainer_answer *answer = &rq->answer;
	trainer_settle(t);
	trainer_settle_shared(t);
	outer_device_unpin(&t->participant.device); /* it is written by the host alone */
	RV_FAILPOINT("install.before");
	if (a->snapshot)
		answer->err = install_snapshot(t, a->snapshot, &a->expect, &answer->lost, &answer->text);
	else
		install_theta0(t);
	if (answer->err != RV_OK)
		return;
	participant_start_over(&t->participant, &t->global);
	trainer_show_round(t, true);
	RV_FAILPOINT("install.after");
}

static void work_evaluate(struct request *rq) {
	struct trainer *t = rq->t;
	rq->answer.round = t->global.round;
	rq->answer.err =
		replica_eval(t->replica, t->global.theta, rq->asked.max_tokens, &rq->answer.loss, &rq->answer.text);
}

static void work_save(struct request *rq) {
	trainer_take_copy(rq, false, participant_can_be_saved(&rq->t->participant));
}

/* The last save may have to wait for the disk, which has the one before: it does not take memory
 * for another copy meanwhile, unless that takes long. */
static void work_end(struct request *rq) {
	enum { LOOK_MS = 20, MOST_LOOKS = 250 };
	const struct blob *last = rq->t->spare_replica;
	for (int i = 0; last && blob_is_shared(last) && i < MOST_LOOKS; i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * RV_US_PER_MS * 1000}, NULL);
	work_save(rq);
}

static void work_copy_snapshot(struct request *rq) {
	trainer_take_copy(rq, true, false);
}

static enum rv_err score(struct trainer *t, const struct trainer_request *asked, struct rv_errtext *et) {
	RV_TRY(asked->read_own(asked->read_ctx, asked->score, et));
	return score_run(t->replica, &t->global.cfg, t->global.theta, asked->score, et);
}

static void work_score(struct request *rq) {
	struct trainer *t = rq->t;
	const int64_t started_us = rv_clock_monotonic_us();
	atomic_store(&t->scoring, true);
	rq->answer.round = t->global.round;
	rq->answer.err = score(t, &rq->asked, &rq->answer.text);
	atomic_store(&t->scoring, false);
	trainer_count_time(t, &t->progress.score_us, started_us);
}

/* Leaves a device to the storage thread until it has read the replica from its memory: only one
 * thread at a time uses a device. */
static void leave_device(struct trainer *t) {
	const int64_t started_us = rv_clock_monotonic_us();
	if (!t->streams || !replica_is_on_device(t->replica))
		return;
	trainer_settle(t);
	trainer_count_time(t, &t->progress.compute_us, started_us);
}

void trainer_work(struct request *rq) {
	static void (*const work[TRAINER_WORKS])(struct request * rq) = {
		[TRAINER_TRAIN] = work_train,       [TRAINER_ENCODE] = work_encode,
		[TRAINER_APPLY] = work_apply,       [TRAINER_INSTALL] = work_install,
		[TRAINER_EVALUATE] = work_evaluate, [TRAINER_SAVE] = work_save,
		[TRAINER_END] = work_end,           [TRAINER_COPY_SNAPSHOT] = work_copy_snapshot,
		[TRAINER_SCORE] = work_score};
	atomic_fetch_sub(&rq->t->behind, 1);
	leave_device(rq->t);
	work[rq->asked.work](rq);
	rq->answer.progress = participant_progress(&rq->t->participant);
}
