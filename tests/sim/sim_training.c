/* sim_training.c: the tiny replica of the participant (train/participant/participant.h):
 * parameters, and which steps they contain. A step is a pure function of the worker, its process
 * and the step. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define SPOILED_SHARE 0.02 /* of contributions, as of a machine that computes wrongly: they are thrown away */

static size_t vector_bytes(const struct sim *s) {
	return s->opt.n_params * sizeof(float);
}

uint64_t training_overlap(const struct sim *s, uint64_t round) {
	return round + 1 < s->opt.rounds ? s->opt.overlap_steps : 0;
}

/* ---- the replica ---- */

static const float *theta(struct replica *r) {
	return r->local;
}

static bool is_chunk_of(const struct global_config *c, uint32_t fragment, size_t at) {
	const struct chunking chunks = global_round_chunks(c, fragment);
	for (uint32_t i = 0; i < chunks.n_chunks; i++)
		if (global_round_chunk_at(c, fragment, i) == at)
			return true;
	return false;
}

/* New values contain no step: all of them, or a chunk. */
static void set_part(struct replica *r, size_t at, size_t n, const float *values) {
	const bool all = n == r->sim->opt.n_params;
	memcpy(r->local + at, values, n * sizeof *values);
	if (all)
		memcpy(r->began, values, n * sizeof *values);
	for (uint32_t fragment = 0; fragment < r->sim->opt.fragments; fragment++)
		if (all || is_chunk_of(&r->sim->global_config, fragment, at))
			r->progress[fragment].n = 0;
}

static void get_part(struct replica *r, size_t at, size_t n, float *values) {
	memcpy(values, r->local + at, n * sizeof *values);
}

static void shift(struct replica *r, size_t at, size_t n, const float *from, const float *to) {
	for (size_t i = 0; i < n; i++) {
		r->local[at + i] += to[i] - from[i];
		r->began[at + i] += to[i] - from[i];
	}
}

static void lay_by(struct replica *r, const float *values) {
	memcpy(r->laid_by, values, vector_bytes(r->sim));
}

static void laid_by(struct replica *r, size_t at, size_t n, float *values) {
	memcpy(values, r->laid_by + at, n * sizeof *values);
}

static void set_step(struct replica *r, uint64_t global_step) {
	r->step = global_step;
}

/* In a universe of loud members one round of four is up to eight times as loud as it should be. */
static float loudness(const struct sim *s, int host, uint64_t round) {
	const float luck = sim_noise(s->opt.seed ^ 0x6c6f7564, (uint64_t)host, round);
	return s->opt.loud && luck >= 0.5f ? 1 + 14 * (luck - 0.5f) : 1;
}

/* Returns by what a liar multiplies what it sends. */
static float falsehood(const struct sim *s, int host, uint64_t round) {
	const float loud = 100, flipped = -4;
	if (lies_so(s, host, LIE_LOUD) || (lies_so(s, host, LIE_LATE) && round == s->opt.rounds / 2))
		return loud;
	return lies_so(s, host, LIE_FLIPS) ? flipped : 1;
}

/* In a universe where contributions are to agree, one round of eight of a member points against
 * what all others go after. */
static float direction(const struct sim *s, int host, uint64_t round) {
	return s->opt.agrees && sim_noise(s->opt.seed ^ 0x61677265, (uint64_t)host, round) >= 0.75f ? -1 : 1;
}

/* Returns what all members go after in a round, of parameter i. */
static float common_aim(const struct sim *s, uint64_t round, size_t i) {
	return s->opt.agrees ? 2 * sim_noise(s->opt.seed ^ 0x61696d, round, i) : 0;
}

static enum rv_err step(struct replica *r, struct step_stats *out, struct rv_errtext *et) {
	const struct sim *s = r->sim;
	const int host = r->worker->host;
	const uint64_t h = s->opt.steps_per_round, round = r->step / h, done = r->step % h;
	const float times = 0.01f * loudness(s, host, round) * direction(s, host, round) * falsehood(s, host, round);
	/* A step that is done again, by another process, does not come out the same: so what a former
	 * one sent is never taken for its successor's unnoticed. */
	if (s->opt.leases && !reading_has(&r->reading, r->next, SIM_SEQUENCES))
		return RV_E_BUSY;
	const uint64_t what = (uint64_t)host << 48 ^ r->worker->life << 32 ^ round << 16 ^ done;
	(void)et;
	for (size_t i = 0; i < s->opt.n_params; i++)
		r->local[i] -= times * (sim_noise(s->opt.seed, what, i) + 0.1f * r->local[i] + common_aim(s, round, i));
	for (uint32_t fragment = 0; fragment < s->opt.fragments; fragment++) {
		struct sim_progress *p = &r->progress[fragment];
		RV_ASSERT(p->n < SIM_MAX_STEPS);
		p->ids[p->n++] = (uint32_t)(round * SIM_MAX_H + done); /* the same when it is done again */
	}
	r->step++;
	for (int i = 0; i < SIM_SEQUENCES; i++, r->next++)
		if (s->opt.leases)
			oracle_reads(r->worker->sim, host, r->next, reading_position(&r->reading, r->next));
	*out = (struct step_stats){.tokens = SIM_TOKENS_PER_STEP};
	return RV_OK;
}

static void read_by(struct replica *r, const struct reading *reading, uint64_t next) {
	r->reading = *reading;
	r->next = next;
}

static uint64_t next_of(const struct replica *r) {
	return r->next;
}

static void keep(struct replica *r, float *vector) {
	RV_ASSERT(vector == NULL || r->n_kept < REPLICA_MAX_KEPT);
	if (vector != NULL)
		r->kept[r->n_kept++] = vector;
}

static bool heal(struct replica *r) {
	(void)r;
	return false;
}

static void nothing(struct replica *r) {
	(void)r;
}

static void no_anchor(struct replica *r, const float *theta_of_round) {
	(void)r, (void)theta_of_round;
}

static void explain(struct replica *r, const struct run_config *run, const float *reference, struct rv_errtext *et) {
	(void)r, (void)run, (void)reference, (void)et;
}

static enum rv_err encode(struct outer_device *d, struct replica *r, const struct global_state *g, uint8_t *out,
						  struct rv_errtext *et) {
	(void)d;
	return global_encode_delta(g, r->local, out, et);
}

static enum rv_err apply(struct outer_device *d, struct replica *r, struct global_state *g, const uint8_t *reduced,
						 const struct rv_hash *digest, struct rv_errtext *et) {
	(void)d, (void)r;
	return global_apply(g, reduced, digest, et);
}

static void unpin(struct outer_device *d) {
	(void)d;
}

static const struct participant_ops tiny_replica = {.theta = theta,
													.set_part = set_part,
													.get_part = get_part,
													.shift = shift,
													.lay_by = lay_by,
													.laid_by = laid_by,
													.set_anchor = no_anchor,
													.set_step = set_step,
													.step = step,
													.read = read_by,
													.next = next_of,
													.keep = keep,
													.heal = heal,
													.settle = nothing,
													.explain = explain,
													.encode = encode,
													.apply = apply,
													.unpin = unpin};

/* ---- a process' memory ---- */

void training_init(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	w->replica = (struct replica){.sim = s,
								  .worker = w,
								  .local = sim_alloc(vector_bytes(s)),
								  .began = sim_alloc(vector_bytes(s)),
								  .laid_by = sim_alloc(vector_bytes(s))};
	set_part(&w->replica, 0, s->opt.n_params, w->global.theta);
	RV_ASSERT(participant_init(&w->participant, &tiny_replica, &w->replica, &s->run, &w->global, NULL) == RV_OK);
	RV_ASSERT(committer_init(&w->committer, &s->run, &w->global.cfg, NULL) == RV_OK);
}

static void encoded(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	w->own_progress = w->replica.progress[w->participant.round % s->opt.fragments];
	oracle_encoded(s, host);
}

/* As trainer_resume() does. */
void training_resume(struct sim *s, int host, const struct recovered *found) {
	struct sim_worker *w = &s->workers[host];
	const struct state_replica_info *info = &found->replica;
	bool exact = found->has_replica && info->round == w->global.round && rv_hash_equal(&info->chain, &w->global.chain);
	if (found->has_replica && (w->global.round > 0 || info->round == 0))
		files_read_replica(s, found->replica_payload.ctx, &w->replica);
	oracle_resumes_residual(s, host);
	const struct participant_progress progress = {
		.steps_done = info->steps_done, .tokens = info->tokens, .first = info->first, .sequences = info->sequences};
	participant_resume(&w->participant, &w->global, exact, &progress);
	if (w->participant.contribution.has_next)
		encoded(s, host);
}

void training_release(struct sim_worker *w) {
	participant_release(&w->participant);
	committer_release(&w->committer);
	free(w->replica.local);
	free(w->replica.began);
	free(w->replica.laid_by);
	w->replica = (struct replica){.local = NULL};
}

/* ---- what the trainer is asked for ---- */

bool training_step(struct sim *s, int host, uint64_t round) {
	struct sim_worker *w = &s->workers[host];
	struct step_stats stats;
	const enum rv_err e = participant_step(&w->participant, &w->global, round, &stats, NULL);
	RV_ASSERT(e == RV_OK || (e == RV_E_BUSY && s->opt.leases));
	return e == RV_OK;
}

/* What a worker of speed 1 takes for H steps is over before another of this one's would end. */
bool training_time_is_up(const struct sim *s, const struct sim_worker *w) {
	return s->opt.by_time && (double)(w->participant.steps_done + 1) / w->speed > (double)s->opt.steps_per_round;
}

bool training_encode(struct sim *s, int host, struct commitment *commitment) {
	struct sim_worker *w = &s->workers[host];
	const struct participant *p = &w->participant;
	if (p->ahead > 0)
		sim_fail(s, "w%d: encodes round %llu with steps of the next", host, (unsigned long long)p->round);
	if (p->steps_done < s->opt.steps_per_round && !s->opt.by_time && !s->opt.leases)
		sim_fail(s, "w%d: encodes round %llu after %llu of its steps", host, (unsigned long long)p->round,
				 (unsigned long long)p->steps_done);
	if (s->failed)
		return true;
	if (!s->opt.calm && sim_chance(s, host, LUCK_WORK, SPOILED_SHARE)) {
		oracle_loses_residual(s, host);
		participant_spoiled(&w->participant, &w->global, NULL);
		return false;
	}
	RV_ASSERT(participant_encode(&w->participant, &w->global, NULL) == RV_OK);
	encoded(s, host);
	committer_make(&w->committer, &w->global.cfg, p->round, p->encoded, commitment);
	scores_commit(s, host, p->round, commitment);
	return true;
}

/* Everyone makes the outer step at the same place among its inner steps, so that the run could be
 * done again; but for a worker that has read all that is leased to it. */
static void check_place(struct sim *s, int host, const struct trainer_request *a) {
	const struct sim_worker *w = &s->workers[host];
	bool latest = round_document(w->core)->round == a->round + 1;
	bool whole = w->participant.steps_done == s->opt.steps_per_round;
	bool read_out = s->opt.leases && !reading_has(&w->replica.reading, w->replica.next, SIM_SEQUENCES);
	if (a->adopt == PARTICIPANT_ADOPT && latest && whole && !read_out &&
		w->participant.ahead != training_overlap(s, a->round))
		sim_fail(s, "w%d: the outer step of round %llu comes after %llu steps of the next round, not %llu", host,
				 (unsigned long long)a->round, (unsigned long long)w->participant.ahead,
				 (unsigned long long)training_overlap(s, a->round));
}

/* A worker that knows that the mean is without its contribution keeps its steps for the next. */
static void check_kept(struct sim *s, int host, const struct trainer_request *a) {
	const struct sim_worker *w = &s->workers[host];
	bool knows = w->told_attempt != 0 && w->told_round == a->round && w->term == s->oracle.term &&
				 w->told_attempt == s->oracle.means.attempt[a->round];
	/* With all steps ahead contributions are empty, and means alike; where what points against the
	 * others is left out, the mean of an attempt with it is that of one without it. */
	const bool any = (s->opt.gives_away || s->opt.overlap_steps < s->opt.steps_per_round) && !s->opt.agrees;
	if (knows && any && !w->told_in && s->opt.late == LATE_KEEP && a->adopt != PARTICIPANT_KEEP)
		sim_fail(s, "w%d: gives up its steps of round %llu, whose mean is without them", host,
				 (unsigned long long)a->round);
}

static void count_outer_step(struct sim *s, const struct sim_worker *w, enum participant_adopt how) {
	const struct participant *p = &w->participant;
	bool moved_on = p->gave_away && how != PARTICIPANT_DISCARD;
	s->stats.overlapped += p->ahead > 0 && (moved_on || how == PARTICIPANT_ADOPT);
	s->stats.given_away += moved_on;
	s->stats.kept_progress +=
		!moved_on && how == PARTICIPANT_KEEP && w->replica.progress[p->round % s->opt.fragments].n > 0;
}

void training_apply(struct sim *s, int host, const struct trainer_request *a) {
	struct sim_worker *w = &s->workers[host];
	bool begins;
	check_place(s, host, a);
	check_kept(s, host, a);
	count_outer_step(s, w, a->adopt);
	if (a->adopt == PARTICIPANT_ADOPT)
		oracle_adopts(s, host, a->round, &a->form);
	participant_send_as(&w->participant, &a->form);
	if (a->round == w->global.round &&
		participant_apply(&w->participant, &w->global, a->reduced->data, &a->expect, a->adopt, &begins, NULL) == RV_OK)
		oracle_applied(s, host);
	else
		sim_fail(s, "w%d: asked to apply round %llu, whose bytes it does not hold", host, (unsigned long long)a->round);
	if (a->adopt == PARTICIPANT_DISCARD && w->participant.steps_done > 0)
		sim_fail(s, "w%d: discards its steps after round %llu, and counts %llu of them", host,
				 (unsigned long long)a->round, (unsigned long long)w->participant.steps_done);
}
