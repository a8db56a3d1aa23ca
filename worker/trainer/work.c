/* work.c: what the trainer thread does: inner steps, encoding, the outer step. */
#include "worker/trainer/internal.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/hex.h"
#include "train/adopt.h"
#include "train/files/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- inner steps ---- */

static void count_step(struct trainer *t, bool ahead, const struct step_stats *s, int64_t us) {
	pthread_mutex_lock(&t->lock);
	struct trainer_progress *p = &t->progress;
	*(ahead ? &p->ahead : &p->steps_done) += 1;
	*(ahead ? &p->ahead_tokens : &p->tokens) += s->tokens;
	p->global_step = replica_global_step(t->replica);
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

static void count_compute(struct trainer *t, int64_t since_us) {
	pthread_mutex_lock(&t->lock);
	t->progress.compute_us += rv_clock_monotonic_us() - since_us;
	pthread_mutex_unlock(&t->lock);
}

static void begin_step(struct trainer *t, int64_t now_us) {
	pthread_mutex_lock(&t->lock);
	t->progress.step_since_us = now_us;
	pthread_mutex_unlock(&t->lock);
}

static enum rv_err one_step(struct trainer *t, bool ahead, struct rv_errtext *et) {
	struct step_stats stats;
	int64_t started_us = rv_clock_monotonic_us();
	begin_step(t, started_us);
	enum rv_err e = replica_step_over(t->replica, NULL, 0, &stats, et);
	if (e == RV_E_RANGE)
		return rv_fail_context(et, e,
							   "training cannot go on. Start again with the same directory: it goes back to the last "
							   "saved round. If that does not help, or it is the same elsewhere, lr is too high or "
							   "clip is missing: make a new run with other values. Why");
	RV_TRY(e);
	count_step(t, ahead, &stats, rv_clock_monotonic_us() - started_us);
	RV_FAILPOINT("train.step");
	return RV_OK;
}

/* The contribution has at least one step, and one more like these would end after the run's round_ms. */
static bool time_is_up(struct trainer *t) {
	pthread_mutex_lock(&t->lock);
	struct trainer_progress *p = &t->progress;
	int64_t steps = (int64_t)p->steps_done, most_us = t->run.round_ms * RV_US_PER_MS;
	p->time_up = most_us > 0 && steps > 0 && p->contribution_us + p->contribution_us / steps > most_us;
	bool up = p->time_up;
	pthread_mutex_unlock(&t->lock);
	return up;
}

/* Late outer steps: the contribution is encoded, and what comes next begins elsewhere (outer/eager.h). What is being
 * copied for the disk is as it was encoded. */
static void give_away(struct trainer *t) {
	if (!eager_is_on(&t->eager) || t->gave_away)
		return;
	trainer_settle(t);
	eager_turn(&t->eager, &t->global, replica_theta(t->replica));
	replica_set_theta(t->replica, t->eager.start);
	replica_set_anchor(t->replica, t->eager.start);
	t->gave_away = true;
}

static void work_train(struct request *rq) {
	struct trainer *t = rq->t;
	uint64_t h = (uint64_t)t->run.steps_per_round;
	bool ahead = rq->round != t->global.round;
	RV_ASSERT(!ahead || rq->round == t->global.round + 1);
	RV_FAILPOINT("train.begin");
	replica_set_global_step(t->replica, rq->round * h + rq->from);
	replica_set_anchor(t->replica, eager_reference(&t->eager, &t->global));
	for (uint64_t i = 0; i < rq->steps && rq->err == RV_OK && !atomic_load(&t->stop) && !time_is_up(t); i++) {
		if (ahead)
			give_away(t); /* never without a step behind it: the round core knows it by that */
		rq->err = one_step(t, ahead, &rq->text);
	}
	if (rq->err == RV_E_RANGE && !ahead)
		trainer_spoiled(t, &rq->text);
	struct trainer_progress p = trainer_progress(t);
	rq->steps_done = ahead ? p.ahead : p.steps_done;
	rq->tokens = ahead ? p.ahead_tokens : p.tokens;
}

/* ---- copies for the storage thread ---- */

/* Memory of the last copy, touched already, when the storage thread has done with it: fresh pages cost more than the
 * copying. NULL: there is none. */
static struct blob *copy_buffer(struct blob **spare, size_t bytes) {
	if (*spare && (blob_is_shared(*spare) || (*spare)->bytes != bytes)) {
		blob_unref(*spare);
		*spare = NULL;
	}
	if (!*spare)
		*spare = blob_new(bytes);
	return *spare ? blob_ref(*spare) : NULL;
}

static void no_memory(struct trainer_copy *s, uint64_t round, size_t bytes) {
	s->err = rv_fail(&s->text, RV_E_NOMEM, "no memory to copy the state of round %llu (%zu bytes)",
					 (unsigned long long)round, bytes);
}

/* Room for the snapshot, and what it is. */
static void begin_snapshot(struct trainer_copy *s, struct trainer *t) {
	const struct global_state *g = &t->global;
	s->snapshot_bytes = copy_buffer(&t->spare_snapshot, state_payload_bytes(&g->cfg, STATE_KIND_SNAPSHOT, g->round));
	s->has_snapshot = s->snapshot_bytes != NULL;
	if (!s->has_snapshot) {
		no_memory(s, g->round, state_payload_bytes(&g->cfg, STATE_KIND_SNAPSHOT, g->round));
		return;
	}
	float *to = (float *)(void *)s->snapshot_bytes->data;
	s->snapshot = (struct global_state){.cfg = g->cfg, .theta = to, .round = g->round, .chain = g->chain};
	for (int k = 0; k < g->cfg.optimizer->n_states; k++)
		s->snapshot.state[k] = to + (size_t)(k + 1) * g->cfg.n;
}

static void begin_replica(struct trainer_copy *s, struct trainer *t) {
	struct trainer_progress p = trainer_progress(t);
	s->replica_bytes = copy_buffer(&t->spare_replica, replica_state_bytes(t->replica));
	if (!s->replica_bytes) {
		no_memory(s, t->global.round, replica_state_bytes(t->replica));
		return;
	}
	replica_copy_head(t->replica, s->replica_bytes->data);
	s->replica = (struct state_replica_info){.round = t->global.round,
											 .chain = t->global.chain,
											 .steps_done = p.steps_done,
											 .tokens = p.tokens,
											 .payload_bytes = s->replica_bytes->bytes};
}

static bool is_on_a_device(struct trainer *t) {
	struct backend *be;
	return replica_device_theta(t->replica, &be) != NULL;
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
	for (int k = -1; s->has_snapshot && k < g->cfg.optimizer->n_states; k++)
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

static void count_standstill(struct trainer *t, int64_t since_us) {
	pthread_mutex_lock(&t->lock);
	t->progress.copy_us += rv_clock_monotonic_us() - since_us;
	pthread_mutex_unlock(&t->lock);
}

void trainer_settle(void *trainer) {
	struct trainer *t = trainer;
	int64_t started_us = rv_clock_monotonic_us();
	copier_wait(t->copier);
	count_standstill(t, started_us);
}

static struct trainer_copy *new_copy(void) {
	struct trainer_copy *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->is_copied, NULL);
	return s;
}

/* Vectors in the host's memory are copied while training goes on: until the first change of any of them. */
static void take_copy(struct request *rq, bool snapshot, bool replica) {
	struct trainer *t = rq->t;
	int64_t started_us = rv_clock_monotonic_us();
	struct trainer_copy *s = rq->copy = new_copy();
	if (s && snapshot)
		begin_snapshot(s, t);
	if (s && replica)
		begin_replica(s, t);
	if (s && s->replica_bytes && is_on_a_device(t))
		replica_copy_vectors(t->replica, s->replica_bytes->data);
	struct copy_part parts[COPIER_MAX_PARTS];
	if (s)
		copier_start(t->copier, parts, parts_of(t, s, parts), on_copied, s);
	count_standstill(t, started_us);
}

/* ---- the outer step ---- */

static void begin_contribution(struct trainer_progress *p, enum trainer_adopt adopt) {
	if (adopt != TRAINER_KEEP)
		p->steps_done = adopt == TRAINER_ADOPT ? p->ahead : 0;
	if (adopt != TRAINER_KEEP) {
		p->tokens = 0;
		p->contribution_us = 0;
	}
	p->time_up = false;
	if (adopt != TRAINER_DISCARD)
		p->tokens += p->ahead_tokens;
	p->ahead = p->ahead_tokens = 0;
}

void trainer_begin_round(struct trainer *t, uint64_t round, enum trainer_adopt adopt) {
	uint64_t h = (uint64_t)t->run.steps_per_round;
	pthread_mutex_lock(&t->lock);
	struct trainer_progress *p = &t->progress;
	p->round = round;
	begin_contribution(p, adopt);
	p->global_step = round * h + p->steps_done;
	p->last_round_loss = p->round_steps > 0 ? p->round_loss / (double)p->round_steps : NAN;
	p->round_loss = 0;
	p->round_steps = 0;
	uint64_t step = p->global_step;
	pthread_mutex_unlock(&t->lock);
	replica_set_global_step(t->replica, step);
}

/* A start of one's own lies on the host, and is measured from there. */
enum rv_err trainer_contribute(struct trainer *t, struct rv_errtext *et) {
	const struct global_state from = eager_view(&t->eager, &t->global);
	if (contribution_is_plain(&t->contribution) && !eager_is_on(&t->eager))
		RV_TRY(outer_device_encode(&t->outer, t->replica, &from, t->encoded, et));
	else
		RV_TRY(contribution_encode(&t->contribution, &from, from.round, replica_theta(t->replica), t->encoded, et));
	return global_check_sent(&from, t->encoded, et);
}

void trainer_start_over(struct trainer *t) {
	contribution_forget(&t->contribution, &t->global.cfg);
	eager_restart(&t->eager, &t->global.cfg, t->global.theta);
	replica_set_theta(t->replica, t->global.theta);
	t->gave_away = false;
}

static void work_encode(struct request *rq) {
	struct trainer *t = rq->t;
	int64_t started_us = rv_clock_monotonic_us();
	RV_ASSERT(!t->gave_away);
	RV_FAILPOINT("encode.before");
	rq->err = trainer_contribute(t, &rq->text);
	if (rq->err != RV_OK) {
		trainer_spoiled(t, &rq->text);
	} else if (rq->want_replica) {
		take_copy(rq, false, true);
	}
	RV_FAILPOINT("encode.after");
	count_compute(t, started_us);
}

/* What becomes of theta_local; `before`: theta before the outer step (KEEP). Where steps ahead began from a start of
 * their own they are the next round's already. */
static void adopt(struct trainer *t, const struct trainer_apply *a, const float *before) {
	bool late = eager_is_on(&t->eager);
	if (t->gave_away && a->adopt != TRAINER_DISCARD)
		return;
	if (a->adopt == TRAINER_KEEP) {
		replica_shift_theta(t->replica, before, t->global.theta);
		eager_shift(&t->eager, &t->global.cfg, before, t->global.theta);
	} else if (a->adopt == TRAINER_ADOPT && !late) {
		adopt_round(t->replica, &t->global, a->round, (float)t->run.mix);
	} else {
		replica_set_theta(t->replica, t->global.theta);
		eager_restart(&t->eager, &t->global.cfg, t->global.theta);
	}
}

static enum rv_err step_theta(struct trainer *t, const struct trainer_apply *a, const uint8_t *payload,
							  struct rv_errtext *et) {
	size_t bytes = t->global.cfg.n * sizeof(float);
	bool keep = a->adopt == TRAINER_KEEP;
	float *before = keep ? malloc(bytes) : NULL;
	if (keep && !before)
		return rv_fail(et, RV_E_NOMEM, "no memory to keep inner progress (%zu bytes)", bytes);
	if (before)
		memcpy(before, t->global.theta, bytes);
	enum rv_err e = outer_device_apply(&t->outer, t->replica, &t->global, payload, &a->digest, et);
	if (e == RV_OK)
		adopt(t, a, before);
	free(before);
	return e;
}

static enum rv_err check_reduced(const struct trainer *t, const struct trainer_apply *a, struct rv_errtext *et) {
	size_t bytes = state_payload_bytes(&t->global.cfg, STATE_KIND_LOG, a->round);
	RV_ASSERT(a->round == t->global.round && a->reduced->bytes == bytes);
	struct rv_hash digest = global_digest(&t->global, a->round, a->reduced->data);
	if (rv_hash_equal(&digest, &a->digest))
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "round %llu: the reduced bytes at hand have another digest than the committed one",
				   (unsigned long long)a->round);
}

static void work_apply(struct request *rq) {
	struct trainer *t = rq->t;
	const struct trainer_apply *a = &rq->apply;
	int64_t started_us = rv_clock_monotonic_us();
	RV_FAILPOINT("apply.before");
	rq->err = check_reduced(t, a, &rq->text);
	if (rq->err == RV_OK)
		rq->err = step_theta(t, a, a->reduced->data, &rq->text);
	if (rq->err == RV_OK) {
		if (a->adopt == TRAINER_ADOPT)
			contribution_commit(&t->contribution, &t->global.cfg, a->round);
		bool moved_on = t->gave_away && a->adopt == TRAINER_KEEP; /* as worker/round/round.c counts */
		t->gave_away = false;
		trainer_begin_round(t, t->global.round, moved_on ? TRAINER_ADOPT : a->adopt);
		take_copy(rq, a->want_snapshot, a->want_replica);
		RV_FAILPOINT("apply.after");
	}
	count_compute(t, started_us);
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

/* No document can vouch for round 0: its snapshot is what the run's init_hash says, and nothing else. */
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
static enum rv_err install_snapshot(struct trainer *t, const struct request *rq, struct rv_errtext *et) {
	RV_TRY(state_file_verify(rq->snapshot, et));
	if (rv_hash_is_zero(&rq->expect))
		RV_TRY(check_initial(t, rq->snapshot, et));
	else if (!rv_hash_equal(&state_file_id(rq->snapshot)->expect, &rq->expect))
		return rv_fail(et, RV_E_CORRUPT, "the fetched state is whole, but not the one the run vouches for");
	return state_file_load_snapshot(rq->snapshot, &t->global, et);
}

static void work_install(struct request *rq) {
	struct trainer *t = rq->t;
	outer_device_unpin(&t->outer); /* the shared state may get other memory */
	RV_FAILPOINT("install.before");
	rq->err = rq->snapshot ? install_snapshot(t, rq, &rq->text) : install_theta0(t, &rq->text);
	if (rq->err != RV_OK)
		return;
	trainer_start_over(t);
	trainer_begin_round(t, t->global.round, TRAINER_DISCARD);
	RV_FAILPOINT("install.after");
}

/* These change nothing that may still be being copied; an inner step waits by itself, when its gradient is there. */
static bool leaves_the_state(enum request_kind kind) {
	return kind == REQ_TRAIN || kind == REQ_EVALUATE;
}

void trainer_work(struct request *rq) {
	int64_t started_us = rv_clock_monotonic_us();
	if (!leaves_the_state(rq->kind)) {
		trainer_settle(rq->t);
		count_compute(rq->t, started_us);
	}
	switch (rq->kind) {
	case REQ_TRAIN:
		work_train(rq);
		break;
	case REQ_ENCODE:
		work_encode(rq);
		break;
	case REQ_APPLY:
		work_apply(rq);
		break;
	case REQ_INSTALL:
		work_install(rq);
		break;
	case REQ_EVALUATE:
		rq->err = replica_eval(rq->t->replica, rq->t->global.theta, rq->max_tokens, &rq->loss, &rq->text);
		break;
	case REQ_SAVE:
		take_copy(rq, false, trainer_progress(rq->t).ahead == 0 && !rq->t->gave_away);
		break;
	case REQ_COPY_SNAPSHOT:
		take_copy(rq, true, false);
		break;
	}
}
