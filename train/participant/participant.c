/* participant.c: see participant.h. */
#include "train/participant/participant.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

/* Registers the vectors that are saved with the replica: first the residual, then the start. */
static void keep_vectors(struct participant *p) {
	float *vectors[EAGER_MAX_VECTORS];
	p->ops->keep(p->replica, p->contribution.residual);
	int n = eager_vectors(&p->eager, vectors);
	for (int k = 0; k < n; k++)
		p->ops->keep(p->replica, vectors[k]);
}

enum rv_err participant_init(struct participant *p, const struct participant_ops *ops, struct replica *replica,
							 const struct run_config *run, const struct global_state *g, struct rv_errtext *et) {
	*p = (struct participant){.ops = ops, .replica = replica, .run = run, .round = g->round};
	RV_TRY(contribution_init(&p->contribution, run, &g->cfg, et));
	RV_TRY(eager_init(&p->eager, run, &g->cfg, g->theta, et));
	keep_vectors(p);
	p->encoded = malloc(global_max_sent_bytes(&g->cfg));
	return p->encoded ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for the outer gradient");
}

void participant_release(struct participant *p) {
	if (!p->ops)
		return;
	p->ops->unpin(&p->device);
	contribution_release(&p->contribution);
	eager_release(&p->eager);
	free(p->encoded);
	*p = (struct participant){.ops = NULL};
}

/* ---- inner steps ---- */

static void set_theta(struct participant *p, const float *theta, size_t n) {
	p->ops->set_part(p->replica, 0, n, theta);
}

/* Makes the next step the step `done` of `round`. */
static void set_step(struct participant *p, uint64_t round, uint64_t done) {
	p->ops->set_step(p->replica, round * (uint64_t)p->run->steps_per_round + done);
}

const float *participant_reference(const struct participant *p, const struct global_state *g) {
	return eager_reference(&p->eager, g);
}

/* Returns how many sequences theta_local contains. */
static uint64_t contained(const struct participant *p) {
	return p->sequences + p->ahead_sequences;
}

void participant_read(struct participant *p, const struct reading *reading) {
	p->ops->read(p->replica, reading, contained(p) > 0 ? p->first + contained(p) : reading->first);
}

void participant_begin(struct participant *p, const struct global_state *g, uint64_t round) {
	RV_ASSERT(round == p->round || round == p->round + 1);
	set_step(p, round, round == p->round ? p->steps_done : p->ahead);
	p->ops->set_anchor(p->replica, participant_reference(p, g));
}

/* Is always followed by a step: the round core (worker/round/round.h) infers it from that. */
void participant_give_away(struct participant *p, const struct global_state *g) {
	if (!eager_is_on(&p->eager) || p->gave_away)
		return;
	p->ops->settle(p->replica);
	eager_turn(&p->eager, g, p->ops->theta(p->replica));
	set_theta(p, p->eager.start, g->cfg.n);
	p->ops->set_anchor(p->replica, p->eager.start);
	p->gave_away = !RV_BUG("give-away-again");
}

enum rv_err participant_step(struct participant *p, const struct global_state *g, uint64_t round,
							 struct step_stats *out, struct rv_errtext *et) {
	const bool ahead = round != p->round;
	const uint64_t next = p->ops->next(p->replica);
	if (ahead)
		participant_give_away(p, g);
	if (contained(p) == 0)
		p->first = next;
	const enum rv_err e = p->ops->step(p->replica, out, et);
	*(ahead ? &p->ahead_sequences : &p->sequences) += p->ops->next(p->replica) - next;
	RV_TRY(e);
	*(ahead ? &p->ahead : &p->steps_done) += 1;
	*(ahead ? &p->ahead_tokens : &p->tokens) += out->tokens;
	return RV_OK;
}

/* ---- the contribution ---- */

void participant_send_as(struct participant *p, const struct contribution_form *form) {
	p->form = *form;
}

/* Encodes on the host if there is a start of its own, which lies there. */
enum rv_err participant_encode(struct participant *p, const struct global_state *g, struct rv_errtext *et) {
	const struct global_state from = eager_view(&p->eager, g);
	RV_ASSERT(g->round == p->round && !p->gave_away);
	participant_send_as(p, &(struct contribution_form){.codec = 0});
	if (contribution_is_plain(&p->contribution) && !eager_is_on(&p->eager))
		RV_TRY(p->ops->encode(&p->device, p->replica, &from, p->encoded, et));
	else
		RV_TRY(contribution_encode(&p->contribution, &from, p->round, p->ops->theta(p->replica), p->encoded, et));
	return global_check_sent(&from, p->encoded, et);
}

/* ---- the outer step ---- */

void participant_mix(struct participant *p, struct global_state *g, uint64_t round) {
	const struct chunking c = global_round_chunks(&g->cfg, round);
	const float mix = (float)p->run->mix;
	if (mix == 1)
		return;
	if (mix == 0 && fragments_count(&g->cfg.fragments) == 1) {
		set_theta(p, g->theta, g->cfg.n);
		return;
	}
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		const size_t at = global_round_chunk_at(&g->cfg, round, i), n = chunking_len(&c, i);
		const float *values = mix == 0 ? g->theta + at : g->scratch;
		if (mix != 0)
			p->ops->get_part(p->replica, at, n, g->scratch);
		for (size_t k = 0; mix != 0 && k < n; k++)
			g->scratch[k] = mix * g->scratch[k] + (1 - mix) * g->theta[at + k];
		p->ops->set_part(p->replica, at, n, values);
	}
}

/* Moves theta_local, and a start of its own, as theta moved. `before`: participant_adopt. */
static void shift(struct participant *p, const struct global_state *g, const float *before) {
	float laid_by[REPLICA_SHIFT_MAX];
	for (size_t at = 0, n; at < g->cfg.n; at += n) {
		n = g->cfg.n - at < REPLICA_SHIFT_MAX ? g->cfg.n - at : REPLICA_SHIFT_MAX;
		const float *from = before ? before + at : laid_by;
		if (!before)
			p->ops->laid_by(p->replica, at, n, laid_by);
		p->ops->shift(p->replica, at, n, from, g->theta + at);
		if (!RV_BUG("leave-the-start"))
			eager_shift(&p->eager, at, n, from, g->theta + at);
	}
}

static void follow_theta(struct participant *p, struct global_state *g, const float *before,
						 enum participant_adopt how) {
	if (how == PARTICIPANT_KEEP) {
		shift(p, g, before);
	} else if (how == PARTICIPANT_ADOPT && !eager_is_on(&p->eager)) {
		participant_mix(p, g, p->round);
	} else {
		set_theta(p, g->theta, g->cfg.n);
		eager_restart(&p->eager, &g->cfg, g->theta);
	}
}

/* Returns true if a complete contribution that missed its round grows by another round's steps: its
 * worker rests for rounds, because of its line. */
static bool grows(const struct participant *p, enum participant_adopt how) {
	return how == PARTICIPANT_KEEP && (p->run->slow_members == SLOW_SKIP || p->run->slow_members == SLOW_PART) &&
		   p->steps_done == (uint64_t)p->run->steps_per_round;
}

/* Makes the sequences of the next contribution those of this one: behind those that were in it, or
 * (KEEP) together with them. Discarded ones are read again. */
static void begin_sequences(struct participant *p, enum participant_adopt how) {
	if (how == PARTICIPANT_ADOPT) {
		p->first += p->sequences;
		p->sequences = 0;
	}
	p->sequences = how == PARTICIPANT_DISCARD ? 0 : contained(p);
	p->ahead_sequences = 0;
}

static void begin_round(struct participant *p, enum participant_adopt how) {
	begin_sequences(p, how);
	if (how != PARTICIPANT_KEEP)
		p->steps_done = p->tokens = 0;
	if (grows(p, how))
		p->steps_done = p->ahead;
	if (how == PARTICIPANT_ADOPT || (how == PARTICIPANT_DISCARD && RV_BUG("discard-keeps-steps-ahead")))
		p->steps_done = p->ahead;
	if (how != PARTICIPANT_DISCARD)
		p->tokens += p->ahead_tokens;
	p->ahead = p->ahead_tokens = 0;
	p->round++;
	set_step(p, p->round, p->steps_done);
}

void participant_commit(struct participant *p, const struct global_state *g) {
	contribution_commit(&p->contribution, &g->cfg, p->round, p->encoded, &p->form);
}

bool participant_adopt(struct participant *p, struct global_state *g, const float *before, enum participant_adopt how) {
	/* Steps ahead that began from a start of their own are the next contribution in any case. */
	const bool moved_on = p->gave_away && how != PARTICIPANT_DISCARD;
	RV_ASSERT(how != PARTICIPANT_ADOPT || !p->contribution.has_next);
	if (!moved_on)
		follow_theta(p, g, before, how);
	p->gave_away = false;
	begin_round(p, moved_on && !RV_BUG("count-given-steps") ? PARTICIPANT_ADOPT : how);
	return moved_on || how != PARTICIPANT_KEEP;
}

static enum rv_err check_digest(const struct participant *p, const struct global_state *g, const uint8_t *reduced,
								const struct rv_hash *digest, struct rv_errtext *et) {
	const struct rv_hash at_hand = global_digest(g, p->round, reduced);
	if (rv_hash_equal(&at_hand, digest))
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "round %llu: the reduced bytes at hand have another digest than the committed one",
				   (unsigned long long)p->round);
}

enum rv_err participant_apply(struct participant *p, struct global_state *g, const uint8_t *reduced,
							  const struct rv_hash *digest, enum participant_adopt how, bool *begins,
							  struct rv_errtext *et) {
	RV_ASSERT(g->round == p->round);
	RV_TRY(check_digest(p, g, reduced, digest, et));
	p->ops->settle(p->replica);
	if (how == PARTICIPANT_KEEP)
		p->ops->lay_by(p->replica, g->theta);
	const enum rv_err e = p->ops->apply(&p->device, p->replica, g, reduced, digest, et);
	if (e == RV_OK && (how == PARTICIPANT_ADOPT || RV_BUG("commit-what-was-given-up")))
		participant_commit(p, g);
	if (e == RV_OK)
		*begins = participant_adopt(p, g, NULL, how);
	return e;
}

/* ---- other beginnings ---- */

void participant_start_over(struct participant *p, const struct global_state *g) {
	p->ops->settle(p->replica);
	contribution_forget(&p->contribution, &g->cfg);
	eager_restart(&p->eager, &g->cfg, g->theta);
	set_theta(p, g->theta, g->cfg.n);
	p->round = g->round;
	p->steps_done = p->tokens = p->ahead = p->ahead_tokens = 0;
	p->sequences = p->ahead_sequences = 0;
	p->gave_away = false;
	set_step(p, p->round, 0);
}

void participant_spoiled(struct participant *p, const struct global_state *g, struct rv_errtext *et) {
	p->ops->explain(p->replica, p->run, participant_reference(p, g), et);
	participant_start_over(p, g);
	(void)p->ops->heal(p->replica);
}

void participant_resume(struct participant *p, const struct global_state *g, bool exact,
						const struct participant_progress *saved) {
	if (!exact) {
		participant_start_over(p, g);
		return;
	}
	p->round = g->round;
	p->steps_done = saved->steps_done;
	p->tokens = saved->tokens;
	p->first = saved->first;
	p->sequences = saved->sequences;
	p->ahead = p->ahead_tokens = p->ahead_sequences = 0;
	p->gave_away = false;
	p->contribution.has_next = false; /* an encoding of an earlier process is gone */
	if (p->contribution.residual && p->steps_done == (uint64_t)p->run->steps_per_round &&
		participant_encode(p, g, NULL) != RV_OK)
		p->contribution.has_next = false; /* it was never sent */
	set_step(p, p->round, p->steps_done);
}

struct participant_progress participant_progress(const struct participant *p) {
	return (struct participant_progress){.steps_done = p->steps_done,
										 .tokens = p->tokens,
										 .ahead = p->ahead,
										 .ahead_tokens = p->ahead_tokens,
										 .first = p->first,
										 .sequences = p->sequences,
										 .ahead_sequences = p->ahead_sequences};
}

bool participant_can_be_saved(const struct participant *p) {
	return p->ahead == 0 && !p->gave_away;
}
