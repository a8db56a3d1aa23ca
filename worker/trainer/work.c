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
	t->inner = (struct inner_roots){0};
	trainer_show_round(t, true);
}

/* Prepares the participant for what it may read. */
static void begin_train(struct request *rq) {
	struct trainer *t = rq->t;
	if (rq->asked.starts_over) {
		participant_start_over(&t->participant, &t->global);
		t->inner = (struct inner_roots){0};
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

/* ---- slices ---- */

static void measure_slice(struct trainer *t, struct trainer_slice *s) {
	s->all = replica_eval_tokens(t->replica, s->max_tokens) / (uint64_t)t->run.context;
	s->err = RV_E_CANCELLED;
	if (t->gave_back)
		return;
	const uint64_t left = s->all > s->next ? s->all - s->next : 0;
	s->n = left < TRAINER_SLICE_MOST ? left : TRAINER_SLICE_MOST;
	s->err = RV_OK;
	if (s->n > 0)
		s->err = replica_heldout_losses(t->replica, s->theta, s->max_tokens, s->next, s->n, s->losses, &s->text);
}

void trainer_do_slice(struct trainer *t) {
	struct trainer_slice *s = atomic_exchange(&t->offered, NULL);
	const int64_t started_us = rv_clock_monotonic_us();
	if (s == NULL)
		return;
	atomic_store(&t->slicing, true);
	measure_slice(t, s);
	atomic_store(&t->slicing, false);
	trainer_count_time(t, &t->progress.score_us, started_us);
	atomic_store(&t->sliced, s);
	t->owner.wake(t->owner.ctx);
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
		 i++) {
		trainer_do_slice(t);
		rq->answer.err = one_step(t, rq->asked.round, &rq->answer.text);
	}
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

/* Returns true if the contribution has exactly a round's steps, none of them refused. */
static bool is_plain_round(const struct trainer *t) {
	const struct participant *p = &t->participant;
	const uint64_t steps = (uint64_t)t->run.steps_per_round;
	return p->steps_done == steps && p->sequences == steps * (uint64_t)t->run.batch * (uint64_t)t->run.grad_accum;
}

/* Commits to the inner state as the steps have left it. */
static void keep_inner(struct request *rq) {
	struct trainer *t = rq->t;
	const struct trainer_request *a = &rq->asked;
	struct commitment *c = &rq->answer.commitment;
	t->inner.end = (struct rv_hash){{0}};
	if (a->keep_inner == NULL)
		return;
	rq->answer.kept =
		a->keep_inner(a->keep_ctx, t->global.round, t->replica, t->global.theta, &t->inner.end, &rq->answer.text);
	if (rq->answer.kept != RV_OK)
		return;
	c->inner_end = t->inner.end;
	if (is_plain_round(t))
		c->inner_begin = t->inner.begin;
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
	if (rq->answer.err == RV_OK)
		keep_inner(rq);
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
		t->inner = (struct inner_roots){.begin = a->adopt == PARTICIPANT_ADOPT ? t->inner.end : (struct rv_hash){{0}}};
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

/* Waits a second, in parts. Returns false if the trainer is to end. */
static bool may_read_again(const struct trainer *t) {
	enum { PARTS = 50 };
	for (int i = 0; i < PARTS && !atomic_load(&t->ending); i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = RV_US_PER_S * 1000 / PARTS}, NULL);
	return !atomic_load(&t->ending);
}

/* Loads a state that was found whole over the one that is there. A disk that fails meanwhile leaves
 * neither, so it is read again, from its beginning, until the disk works. */
static enum rv_err load_snapshot(struct trainer *t, struct state_file *snapshot, int *reads_again,
								 struct rv_errtext *et) {
	enum rv_err e = state_file_load_snapshot(snapshot, &t->global, et);
	if (e == RV_E_IO && t->reads_again > 0)
		t->owner.reads_again(t->owner.ctx, state_file_id(snapshot)->round, et->text);
	for (*reads_again = 0; e == RV_E_IO && *reads_again < t->reads_again && may_read_again(t); ++*reads_again)
		e = state_file_load_snapshot(snapshot, &t->global, et);
	return e;
}

/* Looked at as a whole before anything is changed. */
static enum rv_err install_snapshot(struct trainer *t, struct state_file *snapshot, const struct rv_hash *expect,
									struct trainer_answer *answer) {
	struct rv_errtext *et = &answer->text;
	RV_TRY(state_file_verify(snapshot, et));
	if (rv_hash_is_zero(expect))
		RV_TRY(check_initial(t, snapshot, et));
	else if (!rv_hash_equal(&state_file_id(snapshot)->expect, expect))
		return rv_fail(et, RV_E_CORRUPT, "the fetched state is whole, but not the one the run vouches for");
	const enum rv_err e = load_snapshot(t, snapshot, &answer->reads_again, et);
	answer->lost = e != RV_OK;
	if (answer->lost)
		return rv_fail_context(et, e,
							   "the fetched state was found whole, and could not be read then (tries: %d). Start "
							   "again with the same directory: it goes back to the last saved round. Why",
							   answer->reads_again + 1);
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
		answer->err = install_snapshot(t, a->snapshot, &a->expect, answer);
	else
		install_theta0(t);
	if (answer->err != RV_OK)
		return;
	participant_start_over(&t->participant, &t->global);
	t->inner = (struct inner_roots){0};
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
 * for another copy meanwhile, unless that takes long. Where a person waits for a card, it is left
 * out instead: the copy before it is at most a round older. */
static void work_end(struct request *rq) {
	enum { LOOK_MS = 20, MOST_LOOKS = 250 };
	const struct blob *last = rq->t->spare_replica;
	const bool waits = atomic_load(&rq->t->rests_by_us) == 0;
	if (!waits && !trainer_may_save_at_rest(rq->t)) {
		trainer_take_copy(rq, false, false);
		return;
	}
	for (int i = 0; last && blob_is_shared(last) && i < MOST_LOOKS; i++) /* at rest: none is */
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

/* Makes other work wait for a quarter of the steps, as in a round that is never idle an audit must
 * end within its window; an end waits for none. */
static bool stops_repeating(void *trainer, uint64_t made) {
	enum { SLICES = 4 };
	struct trainer *t = trainer;
	const uint64_t least = ((uint64_t)t->run.steps_per_round + SLICES - 1) / SLICES;
	return atomic_load(&t->ending) || (made >= least && atomic_load(&t->behind) > 0);
}

/* Makes some steps of another member's round. */
static enum rv_err repeat(struct trainer *t, const struct trainer_request *asked, struct rv_errtext *et) {
	struct repeat_job *job = asked->repeat;
	if (!job->begun) {
		RV_TRY(asked->read_before(asked->read_ctx, job, et));
		repeat_begin(t->replica, job, &asked->text);
	}
	RV_TRY(repeat_steps(t->replica, job, stops_repeating, t, et));
	return job->done == job->steps ? repeat_judge(&t->global.cfg, job, et) : RV_E_CANCELLED;
}

static void work_repeat(struct request *rq) {
	struct trainer *t = rq->t;
	const int64_t started_us = rv_clock_monotonic_us();
	atomic_store(&t->scoring, true);
	rq->answer.err = repeat(t, &rq->asked, &rq->answer.text);
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

void trainer_slice_alone(struct job *j) {
	struct trainer *t = JOB_OWNER(j, struct trainer, slice_job);
	leave_device(t);
	trainer_do_slice(t);
}

void trainer_work(struct request *rq) {
	static void (*const work[TRAINER_WORKS])(struct request * rq) = {
		[TRAINER_TRAIN] = work_train,       [TRAINER_ENCODE] = work_encode,
		[TRAINER_APPLY] = work_apply,       [TRAINER_INSTALL] = work_install,
		[TRAINER_EVALUATE] = work_evaluate, [TRAINER_SAVE] = work_save,
		[TRAINER_END] = work_end,           [TRAINER_COPY_SNAPSHOT] = work_copy_snapshot,
		[TRAINER_SCORE] = work_score,       [TRAINER_REPEAT] = work_repeat};
	atomic_fetch_sub(&rq->t->behind, 1);
	if (rq->t->gave_back) {
		rq->answer.err = RV_E_CANCELLED;
		return;
	}
	leave_device(rq->t);
	work[rq->asked.work](rq);
	rq->answer.progress = participant_progress(&rq->t->participant);
}
