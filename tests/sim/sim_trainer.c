/* sim_trainer.c: the trainer thread: requests in the order in which they are made, each taking its
 * time; a TRAIN stops at a step boundary when another request wants the trainer. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static struct sim *sim_of(void *ctx) {
	return ((struct sim_worker *)ctx)->sim;
}

/* ---- requests ---- */

typedef void answer(struct sim *s, int host, const struct sim_request *rq);

static sim_fire step_ends, request_ends;

static void work_until(struct sim *s, int host, int64_t at_us, sim_fire *fire) {
	struct sim_worker *w = &s->workers[host];
	uint64_t *number = sim_alloc(sizeof *number);
	*number = ++w->working;
	sim_at(s, at_us, host, w->life, fire, number);
}

static bool is_current(struct sim *s, int host, void *arg) {
	uint64_t number = *(uint64_t *)arg;
	free(arg);
	return number == s->workers[host].working;
}

static int64_t step_us(const struct sim *s, const struct sim_worker *w) {
	return (int64_t)((double)s->opt.step_us / w->speed);
}

static void begin_train(struct sim *s, int host, const struct sim_request *rq) {
	struct sim_worker *w = &s->workers[host];
	const struct participant *p = &w->participant;
	bool ahead = rq->round == w->global.round + 1;
	uint64_t most = ahead ? training_overlap(s, w->global.round) : s->opt.steps_per_round;
	RV_ASSERT(rq->steps > 0);
	if ((rq->round != w->global.round && !ahead) || rq->from != (ahead ? p->ahead : p->steps_done) ||
		rq->from + rq->steps > most)
		sim_fail(s, "w%d: asked for %llu steps of round %llu from step %llu on, after %llu, and %llu ahead", host,
				 (unsigned long long)rq->steps, (unsigned long long)rq->round, (unsigned long long)rq->from,
				 (unsigned long long)p->steps_done, (unsigned long long)p->ahead);
	if (s->failed)
		return;
	participant_begin(&w->participant, &w->global, rq->round);
	w->steps_left = rq->steps;
	work_until(s, host, s->now_us + step_us(s, w), step_ends);
}

static void pump(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct sim_request *rq = &w->requests[0];
	if (w->n_requests == 0 || rq->begun)
		return;
	rq->begun = true;
	if (rq->kind == WORK_TRAIN && !rq->stopped)
		begin_train(s, host, rq);
	else if (rq->kind == WORK_TRAIN || rq->kind == WORK_SAVE || rq->kind == WORK_COPY_SNAPSHOT)
		work_until(s, host, s->now_us, request_ends);
	else
		work_until(s, host, s->now_us + sim_between(s, host, LUCK_WORK, SIM_MS, 20 * SIM_MS), request_ends);
}

/* The step under way is lost: it is done again. */
static void stop_training(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	for (int i = 0; i < w->n_requests; i++)
		w->requests[i].stopped = true;
	if (w->n_requests > 0 && w->requests[0].kind == WORK_TRAIN)
		work_until(s, host, s->now_us, request_ends);
}

static void push(void *ctx, const struct sim_request *rq) {
	struct sim_worker *w = ctx;
	RV_ASSERT(w->n_requests < SIM_MAX_REQUESTS);
	w->requests[w->n_requests++] = *rq;
	pump(w->sim, w->host);
}

/* ---- their ends ---- */

static struct state_copy copy_of(const struct sim *s, const struct sim_worker *w, bool snapshot, bool replica) {
	struct sim_copy *copy = sim_alloc(sizeof *copy);
	if (snapshot) {
		copy->snapshot = files_snapshot(s, &w->global, &copy->n_snapshot);
		copy->full_hash = oracle_full_hash_of(s, &w->global);
	}
	if (replica)
		copy->replica = files_replica(s, w, &copy->n_replica);
	return (struct state_copy){
		.handle = copy, .has_snapshot = snapshot, .has_replica = replica, .snapshot_round = w->global.round};
}

static void answer_train(struct sim *s, int host, const struct sim_request *rq) {
	struct sim_worker *w = &s->workers[host];
	const struct participant *p = &w->participant;
	bool ahead = rq->round != w->global.round;
	const struct session_trained t = {.round = rq->round,
									  .steps_done = ahead ? p->ahead : p->steps_done,
									  .tokens = ahead ? p->ahead_tokens : p->tokens,
									  .time_up = !ahead && p->steps_done > 0 && training_time_is_up(s, w),
									  .text = ""};
	session_core_on_trained(w->session, s->now_us, &t);
}

static void answer_encode(struct sim *s, int host, const struct sim_request *rq) {
	struct sim_worker *w = &s->workers[host];
	bool ok = training_encode(s, host);
	struct state_copy copy = {.handle = NULL};
	bool copied = ok && rq->want_replica;
	if (copied)
		copy = copy_of(s, w, false, true);
	session_core_on_encoded(w->session, s->now_us, rq->round, ok ? RV_OK : RV_E_RANGE, "spoiled",
							copied ? &copy : NULL);
}

static void answer_apply(struct sim *s, int host, const struct sim_request *rq) {
	struct sim_worker *w = &s->workers[host];
	training_apply(s, host, &rq->apply);
	if (s->failed)
		return;
	const struct state_copy copy = copy_of(s, w, rq->apply.want_snapshot, rq->apply.want_replica);
	session_core_on_applied(w->session, s->now_us, rq->round, RV_OK, &w->global.chain, &copy);
}

static void answer_install(struct sim *s, int host, const struct sim_request *rq) {
	struct sim_worker *w = &s->workers[host];
	if (rq->snapshot != NULL) {
		files_read_snapshot(s, rq->snapshot, &w->global);
	} else {
		global_release(&w->global);
		RV_ASSERT(global_init(&w->global, &s->global_config, s->theta0, NULL) == RV_OK);
	}
	participant_start_over(&w->participant, &w->global);
	oracle_loses_residual(s, host);
	oracle_installed(s, host);
	session_core_on_installed(w->session, s->now_us, rq->round, RV_OK);
}

static void answer_evaluate(struct sim *s, int host, const struct sim_request *rq) {
	session_core_on_evaluated(s->workers[host].session, s->now_us, rq->last);
}

/* What was copied at the encoding is what to save where steps ahead are in theta_local. */
static void answer_save(struct sim *s, int host, const struct sim_request *rq) {
	struct sim_worker *w = &s->workers[host];
	(void)rq;
	const struct state_copy copy = copy_of(s, w, false, participant_can_be_saved(&w->participant));
	session_core_on_saved(w->session, s->now_us, &copy);
}

static void answer_copy_snapshot(struct sim *s, int host, const struct sim_request *rq) {
	struct sim_worker *w = &s->workers[host];
	(void)rq;
	const struct state_copy copy = copy_of(s, w, true, false);
	session_core_on_snapshot(w->session, s->now_us, &copy);
}

static void release(struct sim_request *rq) {
	blob_unref(rq->apply.reduced);
	free(rq->snapshot);
}

static void request_ends(struct sim *s, int host, void *arg) {
	static answer *const answers[] = {[WORK_TRAIN] = answer_train,
									  [WORK_ENCODE] = answer_encode,
									  [WORK_APPLY] = answer_apply,
									  [WORK_INSTALL] = answer_install,
									  [WORK_EVALUATE] = answer_evaluate,
									  [WORK_SAVE] = answer_save,
									  [WORK_COPY_SNAPSHOT] = answer_copy_snapshot};
	struct sim_worker *w = &s->workers[host];
	if (!is_current(s, host, arg))
		return;
	struct sim_request rq = w->requests[0];
	RV_ASSERT(w->n_requests > 0 && rq.begun);
	memmove(w->requests, w->requests + 1, (size_t)--w->n_requests * sizeof rq);
	answers[rq.kind](s, host, &rq);
	release(&rq);
	pump(s, host);
	worker_turn(s, host);
}

static void step_ends(struct sim *s, int host, void *arg) {
	struct sim_worker *w = &s->workers[host];
	if (!is_current(s, host, arg))
		return;
	const struct sim_request *rq = &w->requests[0];
	if (host == s->ghost) {
		work_until(s, host, s->now_us + s->opt.step_us, step_ends);
		return;
	}
	training_step(s, host, rq->round);
	bool time_up = rq->round == w->global.round && training_time_is_up(s, w);
	if (--w->steps_left > 0 && !time_up)
		work_until(s, host, s->now_us + step_us(s, w), step_ends);
	else
		work_until(s, host, s->now_us, request_ends);
}

/* ---- the session core's trainer ---- */

static void train(void *ctx, uint64_t round, uint64_t from, uint64_t steps) {
	push(ctx, &(struct sim_request){.kind = WORK_TRAIN, .round = round, .from = from, .steps = steps});
}

static void encode(void *ctx, uint64_t round, bool want_replica) {
	push(ctx, &(struct sim_request){.kind = WORK_ENCODE, .round = round, .want_replica = want_replica});
}

static void apply(void *ctx, const struct trainer_apply *rq) {
	struct sim_request copy = {.kind = WORK_APPLY, .round = rq->round, .apply = *rq};
	stop_training(sim_of(ctx), ((struct sim_worker *)ctx)->host);
	blob_ref(copy.apply.reduced);
	push(ctx, &copy);
}

static void install(void *ctx, uint64_t round, void *snapshot, const struct rv_hash *expect) {
	(void)expect; /* every piece of it was checked */
	stop_training(sim_of(ctx), ((struct sim_worker *)ctx)->host);
	push(ctx, &(struct sim_request){.kind = WORK_INSTALL, .round = round, .snapshot = snapshot});
}

static void copy_snapshot(void *ctx) {
	push(ctx, &(struct sim_request){.kind = WORK_COPY_SNAPSHOT});
}

static void evaluate(void *ctx, bool last) {
	push(ctx, &(struct sim_request){.kind = WORK_EVALUATE, .last = last});
}

static void save(void *ctx) {
	stop_training(sim_of(ctx), ((struct sim_worker *)ctx)->host);
	push(ctx, &(struct sim_request){.kind = WORK_SAVE});
}

static bool idle(void *ctx) {
	return ((struct sim_worker *)ctx)->n_requests == 0;
}

const struct session_trainer_ops sim_trainer_ops = {.train = train,
													.encode = encode,
													.apply = apply,
													.install = install,
													.copy_snapshot = copy_snapshot,
													.evaluate = evaluate,
													.save = save,
													.end = save,
													.idle = idle};

/* ---- a process' memory ---- */

void trainer_load(struct sim *s, int host, struct recovered *found) {
	struct sim_worker *w = &s->workers[host];
	RV_ASSERT(global_init(&w->global, &s->global_config, s->theta0, NULL) == RV_OK);
	training_init(s, host);
	w->reduced = sim_alloc(s->max_payload);
	w->flags = sim_alloc(reduce_flags_bytes(s->global_config.chunks.n_chunks));
	for (int i = 0; i < s->opt.n_workers; i++)
		w->held[i] = sim_alloc(s->max_payload);
	w->n_requests = 0;
	recovery_load(s, host, found);
	training_resume(s, host, found);
	oracle_applied(s, host);
}

void trainer_unload(struct sim_worker *w) {
	if (w->replica.local == NULL)
		return;
	for (int i = 0; i < w->n_requests; i++)
		release(&w->requests[i]);
	w->n_requests = 0;
	training_release(w);
	global_release(&w->global);
	free(w->reduced);
	free(w->flags);
	for (int i = 0; i < SIM_MAX_WORKERS; i++)
		free(w->held[i]);
	memset(w->held, 0, sizeof w->held);
}
