/* sim_training.c: what a worker does with its parameters: fake training, contributions, the outer step. A pure function
 * of the worker, its process, the round and the step. */
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

void training_from_theta(struct sim *s, struct sim_worker *w) {
	memcpy(w->local, w->global.theta, vector_bytes(s));
	for (int fragment = 0; fragment < SIM_MAX_FRAGMENTS; fragment++)
		w->progress[fragment].n = 0;
	w->steps_done = w->tokens = w->ahead = w->ahead_tokens = 0;
}

/* As trainer_resume() does: the replica is taken where it is of this very state. */
void training_resume(struct sim *s, struct sim_worker *w, const struct recovered *found) {
	training_from_theta(s, w);
	if (found->has_replica && found->replica.round == w->global.round &&
		rv_hash_equal(&found->replica.chain, &w->global.chain))
		files_read_replica(s, found->replica_payload, w);
}

/* ---- inner steps ---- */

/* Steps ahead begin somewhere else (outer/eager.h, delayed), and what was encoded is not in theta_local any more. */
static void give_away(const struct sim *s, struct sim_worker *w) {
	if (!s->opt.gives_away || w->ahead > 0)
		return;
	memcpy(w->local, w->global.theta, vector_bytes(s));
	w->progress[0].n = 0;
}

void training_step(struct sim *s, int host, uint64_t round) {
	struct sim_worker *w = &s->workers[host];
	bool ahead = round != w->global.round;
	if (ahead)
		give_away(s, w);
	uint64_t *done = ahead ? &w->ahead : &w->steps_done;
	/* A step that is done again, by another process, does not come out the same: so what a former one sent is never
	 * taken for its successor's unnoticed. */
	uint64_t what = (uint64_t)host << 48 ^ w->life << 32 ^ round << 16 ^ *done;
	for (size_t i = 0; i < s->opt.n_params; i++)
		w->local[i] -= 0.01f * (sim_noise(s->opt.seed, what, i) + 0.1f * w->local[i]);
	for (uint32_t fragment = 0; fragment < s->opt.fragments; fragment++) {
		struct sim_progress *p = &w->progress[fragment];
		RV_ASSERT(p->n < SIM_MAX_STEPS);
		p->ids[p->n++] = (uint32_t)(round * SIM_MAX_H + *done); /* the same when it is done again */
	}
	*done += 1;
	*(ahead ? &w->ahead_tokens : &w->tokens) += SIM_TOKENS_PER_STEP;
}

/* What a worker of speed 1 takes for H steps is over before another of this one's would end. */
bool training_time_is_up(const struct sim *s, const struct sim_worker *w) {
	return s->opt.by_time && (double)(w->steps_done + 1) / w->speed > (double)s->opt.steps_per_round;
}

/* ---- contributions ---- */

/* In a universe of loud members one contribution of four is up to eight times as large as it should be: a function of
 * the round and the host, as all training. */
static const float *to_encode(const struct sim *s, int host) {
	const struct sim_worker *w = &s->workers[host];
	float luck = sim_noise(s->opt.seed ^ 0x6c6f7564, (uint64_t)host, w->global.round);
	if (!s->opt.loud || luck < 0.5f)
		return w->local;
	float times = 1 + 14 * (luck - 0.5f);
	for (size_t i = 0; i < s->opt.n_params; i++)
		s->scratch[i] = w->global.theta[i] + times * (w->local[i] - w->global.theta[i]);
	return s->scratch;
}

bool training_encode(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	if (w->ahead > 0)
		sim_fail(s, "w%d: encodes round %llu with steps of the next", host, (unsigned long long)w->global.round);
	if (w->steps_done < s->opt.steps_per_round && !s->opt.by_time)
		sim_fail(s, "w%d: encodes round %llu after %llu of its steps", host, (unsigned long long)w->global.round,
				 (unsigned long long)w->steps_done);
	if (!s->opt.calm && sim_chance(s, host, LUCK_WORK, SPOILED_SHARE)) {
		training_from_theta(s, w);
		return false;
	}
	RV_ASSERT(global_encode_delta(&w->global, to_encode(s, host), w->own, NULL) == RV_OK);
	w->own_progress = w->progress[w->global.round % s->opt.fragments];
	return true;
}

/* ---- the outer step ---- */

/* What the round exchanged is theta's, but for what is mixed; nothing else is touched. */
static void adopt(struct sim *s, struct sim_worker *w, uint64_t round) {
	const struct chunking c = global_round_chunks(&s->global_config, round);
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		size_t at = global_round_chunk_at(&s->global_config, round, i);
		for (size_t k = at; k < at + chunking_len(&c, i); k++)
			w->local[k] = s->opt.mix * w->local[k] + (1 - s->opt.mix) * w->global.theta[k];
	}
	w->progress[round % s->opt.fragments].n = 0;
	w->steps_done = w->ahead;
	w->tokens = w->ahead_tokens;
	w->ahead = w->ahead_tokens = 0;
	s->stats.overlapped += w->steps_done > 0;
}

static void shift_local(const struct sim *s, struct sim_worker *w, const float *before) {
	for (size_t i = 0; i < s->opt.n_params; i++)
		w->local[i] += w->global.theta[i] - before[i];
}

/* The steps ahead are the next round's, whatever became of this one's. */
static void move_on(struct sim *s, struct sim_worker *w, const float *before) {
	shift_local(s, w, before);
	w->steps_done = w->ahead;
	w->tokens = w->ahead_tokens;
	w->ahead = w->ahead_tokens = 0;
	s->stats.overlapped++;
	s->stats.given_away++;
}

/* theta_local after theta moved from `before`. */
static void adjust_local(struct sim *s, struct sim_worker *w, const float *before, const struct trainer_apply *a) {
	bool gave_away = s->opt.gives_away && w->ahead > 0;
	if (gave_away && a->adopt != PARTICIPANT_DISCARD) {
		move_on(s, w, before);
		return;
	}
	if (a->adopt == PARTICIPANT_ADOPT) {
		adopt(s, w, a->round);
		return;
	}
	if (a->adopt == PARTICIPANT_DISCARD) {
		training_from_theta(s, w);
		return;
	}
	s->stats.kept_progress += w->progress[a->round % s->opt.fragments].n > 0;
	w->tokens += w->ahead_tokens;
	w->ahead = w->ahead_tokens = 0;
	shift_local(s, w, before);
}

/* Everyone makes the outer step at the same place among its inner steps, so that the run could be done again. */
static void check_place(struct sim *s, int host, const struct trainer_apply *a) {
	const struct sim_worker *w = &s->workers[host];
	bool latest = round_document(w->core)->round == a->round + 1;
	bool whole = w->steps_done == s->opt.steps_per_round;
	if (a->adopt == PARTICIPANT_ADOPT && latest && whole && w->ahead != training_overlap(s, a->round))
		sim_fail(s, "w%d: the outer step of round %llu comes after %llu steps of the next round, not %llu", host,
				 (unsigned long long)a->round, (unsigned long long)w->ahead,
				 (unsigned long long)training_overlap(s, a->round));
}

void training_apply(struct sim *s, int host, const struct trainer_apply *a) {
	struct sim_worker *w = &s->workers[host];
	check_place(s, host, a);
	struct rv_hash digest = global_digest(&w->global, a->round, a->reduced->data);
	if (a->round != w->global.round || !rv_hash_equal(&digest, &a->digest)) {
		sim_fail(s, "w%d: asked to apply round %llu, whose bytes it does not hold", host, (unsigned long long)a->round);
		return;
	}
	memcpy(s->scratch, w->global.theta, vector_bytes(s));
	RV_ASSERT(global_apply(&w->global, a->reduced->data, &a->digest, NULL) == RV_OK);
	adjust_local(s, w, s->scratch, a);
	oracle_applied(s, host);
}
