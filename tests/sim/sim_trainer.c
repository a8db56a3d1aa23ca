/* sim_trainer.c: the trainer thread: requests in the order in which they are made, each taking its
 * time; a TRAIN stops at a step boundary when another request wants the trainer. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_TICK_US = 100 * SIM_MS }; /* a reader looks again for what it waits for */

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
	bool ahead = rq->asked.round == w->global.round + 1;
	if (rq->asked.starts_over) {
		participant_start_over(&w->participant, &w->global);
		oracle_loses_residual(s, host);
	}
	uint64_t most = ahead ? training_overlap(s, w->global.round) : s->opt.steps_per_round;
	RV_ASSERT(rq->asked.steps > 0);
	if ((rq->asked.round != w->global.round && !ahead) || rq->asked.from != (ahead ? p->ahead : p->steps_done) ||
		rq->asked.from + rq->asked.steps > most)
		sim_fail(s, "w%d: asked for %llu steps of round %llu from step %llu on, after %llu, and %llu ahead", host,
				 (unsigned long long)rq->asked.steps, (unsigned long long)rq->asked.round,
				 (unsigned long long)rq->asked.from, (unsigned long long)p->steps_done, (unsigned long long)p->ahead);
	if (s->failed)
		return;
	if (rq->asked.has_leases) {
		participant_read(&w->participant, &rq->asked.reading);
		corpus_wants(s, host, &rq->asked.reading);
	}
	w->read_out = false;
	participant_begin(&w->participant, &w->global, rq->asked.round);
	w->steps_left = rq->asked.steps;
	work_until(s, host, s->now_us + step_us(s, w), step_ends);
}

static void pump(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct sim_request *rq = &w->requests[0];
	if (w->n_requests == 0 || rq->begun)
		return;
	rq->begun = true;
	if (rq->asked.work == TRAINER_TRAIN && !rq->stopped)
		begin_train(s, host, rq);
	else if (rq->asked.work == TRAINER_TRAIN || rq->asked.work == TRAINER_SAVE || rq->asked.work == TRAINER_END ||
			 rq->asked.work == TRAINER_COPY_SNAPSHOT)
		work_until(s, host, s->now_us, request_ends);
	else
		work_until(s, host, s->now_us + sim_between(s, host, LUCK_WORK, SIM_MS, 20 * SIM_MS), request_ends);
}

/* The step under way is lost: it is done again. */
static void stop_training(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	for (int i = 0; i < w->n_requests; i++)
		w->requests[i].stopped = true;
	if (w->n_requests > 0 && w->requests[0].asked.work == TRAINER_TRAIN)
		work_until(s, host, s->now_us, request_ends);
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

static struct trainer_answer answer_to(const struct sim_request *rq) {
	return (struct trainer_answer){.work = rq->asked.work, .round = rq->asked.round, .last = rq->asked.last};
}

static void give(struct sim *s, int host, struct trainer_answer *a) {
	struct sim_worker *w = &s->workers[host];
	a->progress = participant_progress(&w->participant);
	a->chain = w->global.chain;
	session_core_on_answer(w->session, s->now_us, a);
}

static void answer_train(struct sim *s, int host, const struct sim_request *rq) {
	struct sim_worker *w = &s->workers[host];
	struct trainer_answer a = answer_to(rq);
	bool ahead = rq->asked.round != w->global.round;
	a.time_up = !ahead && w->participant.steps_done > 0 && training_time_is_up(s, w);
	a.read_out = w->read_out;
	give(s, host, &a);
}

static void answer_encode(struct sim *s, int host, const struct sim_request *rq) {
	struct trainer_answer a = answer_to(rq);
	a.err = training_encode(s, host, &a.commitment) ? RV_OK : RV_E_RANGE;
	a.has_copy = a.err == RV_OK && rq->asked.want_replica;
	if (a.has_copy)
		a.copy = copy_of(s, &s->workers[host], false, true);
	give(s, host, &a);
}

static void answer_apply(struct sim *s, int host, const struct sim_request *rq) {
	struct trainer_answer a = answer_to(rq);
	training_apply(s, host, &rq->asked);
	if (s->failed)
		return;
	a.has_copy = true;
	a.copy = copy_of(s, &s->workers[host], rq->asked.want_snapshot, rq->asked.want_replica);
	give(s, host, &a);
}

static void answer_install(struct sim *s, int host, const struct sim_request *rq) {
	struct sim_worker *w = &s->workers[host];
	struct trainer_answer a = answer_to(rq);
	if (rq->asked.snapshot != NULL) {
		files_read_snapshot(s, rq->asked.snapshot, &w->global);
	} else {
		global_release(&w->global);
		RV_ASSERT(global_init(&w->global, &s->global_config, s->theta0, NULL) == RV_OK);
	}
	participant_start_over(&w->participant, &w->global);
	oracle_loses_residual(s, host);
	oracle_installed(s, host);
	give(s, host, &a);
}

static void answer_evaluate(struct sim *s, int host, const struct sim_request *rq) {
	struct trainer_answer a = answer_to(rq);
	give(s, host, &a);
}

/* What was copied at the encoding is what to save where steps ahead are in theta_local. */
static void answer_copy(struct sim *s, int host, const struct sim_request *rq) {
	struct sim_worker *w = &s->workers[host];
	struct trainer_answer a = answer_to(rq);
	bool snapshot = rq->asked.work == TRAINER_COPY_SNAPSHOT;
	a.has_copy = true;
	a.copy = copy_of(s, w, snapshot, !snapshot && participant_can_be_saved(&w->participant));
	give(s, host, &a);
}

static void release(struct sim_request *rq) {
	blob_unref(rq->asked.reduced);
	free(rq->asked.snapshot);
}

static void request_ends(struct sim *s, int host, void *arg) {
	static answer *const answers[TRAINER_WORKS] = {
		[TRAINER_TRAIN] = answer_train,     [TRAINER_ENCODE] = answer_encode,     [TRAINER_APPLY] = answer_apply,
		[TRAINER_INSTALL] = answer_install, [TRAINER_EVALUATE] = answer_evaluate, [TRAINER_SAVE] = answer_copy,
		[TRAINER_END] = answer_copy,        [TRAINER_COPY_SNAPSHOT] = answer_copy};
	struct sim_worker *w = &s->workers[host];
	if (!is_current(s, host, arg))
		return;
	struct sim_request rq = w->requests[0];
	RV_ASSERT(w->n_requests > 0 && rq.begun);
	memmove(w->requests, w->requests + 1, (size_t)--w->n_requests * sizeof rq);
	answers[rq.asked.work](s, host, &rq);
	release(&rq);
	pump(s, host);
	worker_turn(s, host);
}

static void step_ends(struct sim *s, int host, void *arg) {
	struct sim_worker *w = &s->workers[host];
	if (!is_current(s, host, arg))
		return;
	const struct sim_request *rq = &w->requests[0];
	if (host == s->ghost || w->paused) {
		work_until(s, host, s->now_us + s->opt.step_us, step_ends);
		return;
	}
	if (!corpus_reads_step(s, host)) {
		work_until(s, host, s->now_us + TEXT_TICK_US, step_ends);
		return;
	}
	w->read_out = !training_step(s, host, rq->asked.round);
	bool time_up = rq->asked.round == w->global.round && training_time_is_up(s, w);
	if (--w->steps_left > 0 && !time_up && !w->read_out)
		work_until(s, host, s->now_us + step_us(s, w), step_ends);
	else
		work_until(s, host, s->now_us, request_ends);
}

/* ---- the session core's trainer ---- */

/* The `expect` of an INSTALL is not looked at: every piece of the snapshot was checked. */
static void request(void *ctx, const struct trainer_request *asked) {
	struct sim_worker *w = ctx;
	const enum trainer_work work = asked->work;
	if (work == TRAINER_APPLY || work == TRAINER_INSTALL || work == TRAINER_SAVE || work == TRAINER_END)
		stop_training(w->sim, w->host);
	if (work == TRAINER_APPLY)
		blob_ref(asked->reduced);
	RV_ASSERT(w->n_requests < SIM_MAX_REQUESTS);
	w->requests[w->n_requests++] = (struct sim_request){.asked = *asked};
	pump(w->sim, w->host);
}

static bool idle(void *ctx) {
	return ((struct sim_worker *)ctx)->n_requests == 0;
}

static bool may_evaluate(void *ctx) {
	(void)ctx;
	return true;
}

const struct session_trainer_ops sim_trainer_ops = {.request = request, .idle = idle, .may_evaluate = may_evaluate};

/* ---- a process' memory ---- */

void trainer_load(struct sim *s, int host, struct recovered *found) {
	struct sim_worker *w = &s->workers[host];
	RV_ASSERT(global_init(&w->global, &s->global_config, s->theta0, NULL) == RV_OK);
	training_init(s, host);
	w->reduced = sim_alloc(s->max_payload);
	w->flags = sim_alloc(grid_flags_bytes(s->global_config.chunks.n_chunks));
	w->n_requests = 0;
	recovery_load(s, host, found);
	means_open(s, host);
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
	mean_residual_release(&w->means);
	global_release(&w->global);
	free(w->reduced);
	free(w->flags);
	free(w->recoded);
	w->recoded = NULL;
	free(w->recoded_nodes);
	w->recoded_nodes = NULL;
	free(w->leaves);
	w->leaves = NULL;
	free(w->sums);
	w->sums = NULL;
	free(w->held);
	w->held = NULL;
}
