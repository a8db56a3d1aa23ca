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

/* Adds the time since then to `sum` of t->progress. */
static void count_time(struct trainer *t, int64_t *sum, int64_t since_us) {
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

/* ---- copies for the storage thread ---- */

/* Memory of the last copy, touched already, when the storage thread has done with it: fresh pages
 * cost more than the copying. NULL: there is none. */
static struct blob *copy_buffer(struct blob **spare, size_t bytes) {
	if (*spare && (blob_is_shared(*spare) || (*spare)->bytes != bytes)) {
		blob_unref(*spare);
		*spare = NULL;
	}
	if (!*spare)
		*spare = blob_new(bytes);
	return *spare ? blob_ref(*spare) : NULL;
}

static void no_memory(struct state_copy *copy, uint64_t round, size_t bytes) {
	copy->err = rv_fail(&copy->text, RV_E_NOMEM, "no memory to copy the state of round %llu (%zu bytes)",
						(unsigned long long)round, bytes);
}

static bool is_on_a_device(struct trainer *t) {
	struct backend *be;
	return replica_device_theta(t->replica, &be) != NULL;
}

/* Room for the snapshot, and what it is. */
static void begin_snapshot(struct trainer *t, struct trainer_copy *s, struct state_copy *copy) {
	const struct global_state *g = &t->global;
	const size_t bytes = state_payload_bytes(&g->cfg, STATE_KIND_SNAPSHOT, g->round);
	s->snapshot_bytes = copy_buffer(&t->spare_snapshot, bytes);
	if (!s->snapshot_bytes) {
		no_memory(copy, g->round, bytes);
		return;
	}
	float *to = (float *)(void *)s->snapshot_bytes->data;
	s->snapshot = (struct global_state){.cfg = g->cfg, .theta = to, .round = g->round, .chain = g->chain};
	for (int k = 0; k < global_states(&g->cfg); k++)
		s->snapshot.state[k] = to + (size_t)(k + 1) * g->cfg.n;
	copy->has_snapshot = true;
	copy->snapshot_round = g->round;
}

static void begin_replica(struct trainer *t, struct trainer_copy *s, struct state_copy *copy) {
	const struct participant *p = &t->participant;
	s->replica_bytes = copy_buffer(&t->spare_replica, replica_state_bytes(t->replica));
	if (!s->replica_bytes) {
		no_memory(copy, t->global.round, replica_state_bytes(t->replica));
		return;
	}
	replica_copy_head(t->replica, s->replica_bytes->data);
	if (is_on_a_device(t))
		replica_copy_vectors(t->replica, s->replica_bytes->data);
	s->replica = (struct state_replica_info){.round = t->global.round,
											 .chain = t->global.chain,
											 .steps_done = p->steps_done,
											 .tokens = p->tokens,
											 .first = p->first,
											 .sequences = p->sequences,
											 .payload_bytes = s->replica_bytes->bytes};
	copy->has_replica = true;
}

/* The replica first: an inner step waits for it, and an outer step for the snapshot. */
static int parts_of(struct trainer *t, const struct trainer_copy *s, struct copy_part *parts) {
	const struct global_state *g = &t->global;
	struct replica_vector list[REPLICA_MAX_VECTORS];
	int n = 0, n_list = 0;
	if (s->replica_bytes && !is_on_a_device(t))
		n_list = replica_vectors(t->replica, s->replica_bytes->data, list);
	for (int i = 0; i < n_list; i++)
		parts[n++] = (struct copy_part){list[i].to, list[i].from, list[i].bytes};
	for (int k = -1; s->snapshot_bytes && k < global_states(&g->cfg); k++)
		parts[n++] = (struct copy_part){k < 0 ? s->snapshot.theta : s->snapshot.state[k],
										k < 0 ? g->theta : g->state[k], g->cfg.n * sizeof(float)};
	return n;
}

static void on_copied(void *copy) {
	struct trainer_copy *s = copy;
	pthread_mutex_lock(&s->lock);
	s->copied = true;
	pthread_cond_broadcast(&s->is_copied);
	pthread_mutex_unlock(&s->lock); /* it may be freed from here on */
}

void trainer_settle(void *trainer) {
	struct trainer *t = trainer;
	int64_t started_us = rv_clock_monotonic_us();
	copier_wait(t->copier);
	count_time(t, &t->progress.copy_us, started_us);
}

static struct trainer_copy *new_copy(struct state_copy *out) {
	struct trainer_copy *s = calloc(1, sizeof *s);
	*out = (struct state_copy){.handle = s};
	if (!s) {
		out->err = rv_fail(&out->text, RV_E_NOMEM, "no memory for a copy of the state");
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->is_copied, NULL);
	return s;
}

/* Vectors in the host's memory are copied while training goes on: until the first change of any of
 * them. */
static void take_copy(struct request *rq, bool snapshot, bool replica) {
	struct trainer *t = rq->t;
	struct state_copy *copy = &rq->answer.copy;
	struct copy_part parts[COPIER_MAX_PARTS];
	int64_t started_us = rv_clock_monotonic_us();
	struct trainer_copy *s = new_copy(copy);
	rq->answer.has_copy = true;
	if (s && snapshot)
		begin_snapshot(t, s, copy);
	if (s && replica)
		begin_replica(t, s, copy);
	if (s)
		copier_start(t->copier, parts, parts_of(t, s, parts), on_copied, s);
	count_time(t, &t->progress.copy_us, started_us);
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
		take_copy(rq, false, true);
	RV_FAILPOINT("encode.after");
	count_time(t, &t->progress.compute_us, started_us);
}

static void work_apply(struct request *rq) {
	struct trainer *t = rq->t;
	const struct trainer_request *a = &rq->asked;
	int64_t started_us = rv_clock_monotonic_us();
	bool begins;
	RV_FAILPOINT("apply.before");
	RV_ASSERT(a->round == t->global.round &&
			  a->reduced->bytes == state_payload_bytes(&t->global.cfg, STATE_KIND_LOG, a->round));
	participant_send_as(&t->participant, &a->form);
	rq->answer.err = participant_apply(&t->participant, &t->global, a->reduced->data, &a->expect, a->adopt, &begins,
									   &rq->answer.text);
	if (rq->answer.err == RV_OK) {
		rq->answer.chain = t->global.chain;
		trainer_show_round(t, begins);
		take_copy(rq, a->want_snapshot, a->want_replica);
		RV_FAILPOINT("apply.after");
	}
	count_time(t, &t->progress.compute_us, started_us);
}

/* ---- a fetched state ---- */

/* theta0 again: a fresh replica has it. */
static enum rv_err install_theta0(struct trainer *t, struct rv_errtext *et) {
	struct global_state g;
	replica_draw_theta0(t->replica); /* work_install puts the installed state into the replica anyway */
	RV_TRY(global_init(&g, &t->global.cfg, replica_theta(t->replica), et));
	global_release(&t->global);
	t->global = g;
	return RV_OK;
}

/* No document can vouch for round 0: its snapshot is what the run's init_hash names, and nothing
 * else. */
static enum rv_err check_initial(const struct trainer *t, struct state_file *snapshot, struct rv_errtext *et) {
	struct global_state read, made = {.round = 0};
	char hex[2 * RV_HASH_BYTES + 1] = "";
	struct rv_hash full = {{0}};
	RV_TRY(global_init(&read, &t->global.cfg, t->global.theta, et));
	enum rv_err e = state_file_load_snapshot(snapshot, &read, et);
	if (e == RV_OK)
		e = global_init(&made, &t->global.cfg, read.theta, et);
	if (e == RV_OK) {
		struct rv_hash weights = weights_hash(made.theta, made.cfg.n);
		rv_hex_encode(weights.b, RV_HASH_BYTES, hex);
		full = global_full_hash(&made);
	}
	global_release(&read);
	global_release(&made);
	RV_TRY(e);
	if (strcmp(hex, t->run.init_hash) != 0 || !rv_hash_equal(&full, &state_file_id(snapshot)->expect))
		return rv_fail(et, RV_E_CORRUPT, "the fetched initial weights are not those that the run starts from");
	return RV_OK;
}

/* Looked at as a whole before anything is changed. */
static enum rv_err install_snapshot(struct trainer *t, struct state_file *snapshot, const struct rv_hash *expect,
									struct rv_errtext *et) {
	RV_TRY(state_file_verify(snapshot, et));
	if (rv_hash_is_zero(expect))
		RV_TRY(check_initial(t, snapshot, et));
	else if (!rv_hash_equal(&state_file_id(snapshot)->expect, expect))
		return rv_fail(et, RV_E_CORRUPT, "the fetched state is whole, but not the one the run vouches for");
	return state_file_load_snapshot(snapshot, &t->global, et);
}

static void work_install(struct request *rq) {
	struct trainer *t = rq->t;
	const struct trainer_request *a = &rq->asked;
	trainer_settle(t);
	outer_device_unpin(&t->participant.device); /* the shared state may get other memory */
	RV_FAILPOINT("install.before");
	rq->answer.err = a->snapshot ? install_snapshot(t, a->snapshot, &a->expect, &rq->answer.text)
								 : install_theta0(t, &rq->answer.text);
	if (rq->answer.err != RV_OK)
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
	take_copy(rq, false, participant_can_be_saved(&rq->t->participant));
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
	take_copy(rq, true, false);
}

static void work_score(struct request *rq) {
	struct trainer *t = rq->t;
	const int64_t started_us = rv_clock_monotonic_us();
	atomic_store(&t->scoring, true);
	rq->answer.round = t->global.round;
	rq->answer.err = score_run(t->replica, &t->global.cfg, t->global.theta, rq->asked.score, &rq->answer.text);
	atomic_store(&t->scoring, false);
	count_time(t, &t->progress.score_us, started_us);
}

void trainer_work(struct request *rq) {
	static void (*const work[TRAINER_WORKS])(struct request * rq) = {
		[TRAINER_TRAIN] = work_train,       [TRAINER_ENCODE] = work_encode,
		[TRAINER_APPLY] = work_apply,       [TRAINER_INSTALL] = work_install,
		[TRAINER_EVALUATE] = work_evaluate, [TRAINER_SAVE] = work_save,
		[TRAINER_END] = work_end,           [TRAINER_COPY_SNAPSHOT] = work_copy_snapshot,
		[TRAINER_SCORE] = work_score};
	atomic_fetch_sub(&rq->t->behind, 1);
	work[rq->asked.work](rq);
	rq->answer.progress = participant_progress(&rq->t->participant);
}
