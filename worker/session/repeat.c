/* repeat.c: audits of training that repeat: this worker keeps its inner state of each round, and
 * the trainer makes the steps of another member again (train/repeat.h), some at a time between two
 * of its own requests. */
#include "worker/session/internal.h"

#include "base/round_number.h"

#include "train/inner_state.h"
#include "worker/text/text_reading.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>

enum {
	PATIENCE_US = 60 * 1000 * 1000, /* for the text that is read again */
	AGAIN_US = 1000 * 1000
};

/* A training that is repeated. */
struct session_repeat {
	struct repeat_job job;
	struct reading text;
	uint8_t *fetched; /* the author's: contribution and inner states */
	float *weights;   /* (2 n) job.before, and what training makes of it */
	uint64_t seen;    /* steps that were made when patience began */
	int64_t until_us, again_us;
	bool asked; /* the trainer has it */
};

uint32_t session_repeat_rounds(const struct run_config *run) {
	enum { BEGIN_AND_END = 2 }; /* of the oldest round that is audited */
	return (uint32_t)run->audit_window + BEGIN_AND_END;
}

/* ---- this worker's own inner state ---- */

static enum rv_err keep_inner(void *ctx, uint64_t round, const struct replica *r, const float *theta,
							  struct rv_hash *root, struct rv_errtext *et) {
	return kept_states_write(ctx, round, r, theta, root, et);
}

/* Returns false if its person allows other members too little for a whole inner state in time: then
 * none is committed to, as one that gives it too slowly is taken for one that hides. */
static bool gives_in_time(const struct session *s) {
	return score_line_carries(inner_state_bytes(s->store.cfg.n), (uint64_t)s->opt->max_donate);
}

struct trainer_request session_kept_encode(const struct session *s, const struct trainer_request *rq) {
	struct trainer_request kept = *rq;
	if (s->audit.states != NULL && trainer_inner_is_there(s->trainer) && gives_in_time(s)) {
		kept.keep_inner = keep_inner;
		kept.keep_ctx = s->audit.states;
	}
	return kept;
}

void session_on_kept(struct session *s, const struct trainer_answer *a) {
	if (s->audit.states == NULL)
		return;
	kept_states_forget(s->audit.states);
	if (a->err == RV_OK && a->kept != RV_OK)
		rv_event(s->events, RV_WARN, "inner_state_lost", RV_FIELDS(rv_field_int("round", (int64_t)a->round)),
				 "this worker's inner state of round %" PRIu64 " is not kept for audits, which score it instead: %s",
				 round_number(a->round), a->text.text);
}

/* ---- what the auditor asks ---- */

/* Returns the sequences of a whole round. */
static uint64_t round_sequences(const struct run_config *run) {
	return (uint64_t)run->steps_per_round * (uint64_t)run->batch * (uint64_t)run->grad_accum;
}

static struct reading text_of(const struct score_order *o) {
	struct reading text = {.first = 0};
	for (int i = 0; i < o->n_pieces; i++)
		(void)reading_add(&text, o->pieces[i].begin, o->pieces[i].count);
	return text;
}

size_t session_inner_bytes(void *session, const struct score_order *o) {
	const struct session *s = session;
	const struct reading text = text_of(o);
	if (s->audit.states == NULL || !trainer_inner_is_there(s->trainer) || o->round == 0 || o->codec != 0)
		return 0;
	if (o->part != 0 || reading_end(&text) != round_sequences(&s->member.config))
		return 0;
	return inner_state_bytes(s->store.cfg.n);
}

uint32_t session_draw(void *session, uint32_t below) {
	(void)session;
	return randombytes_uniform(below);
}

/* ---- one of them ---- */

static void free_repeat(struct session_repeat *p) {
	if (!p)
		return;
	free(p->fetched);
	free(p->weights);
	free(p->job.state.room);
	free(p);
}

static struct session_repeat *repeat_of(const struct session *s, const struct score_order *o,
										const struct auditor_repeat *what) {
	struct session_repeat *p = calloc(1, sizeof *p);
	if (!p) {
		free(what->encoded);
		return NULL;
	}
	*p = (struct session_repeat){.text = text_of(o), .fetched = what->encoded};
	p->weights = malloc(2 * s->store.cfg.n * sizeof *p->weights);
	p->job = (struct repeat_job){.round = o->round,
								 .steps = (uint64_t)s->member.config.steps_per_round,
								 .encoded = what->encoded,
								 .n_pieces = what->n_pieces,
								 .ends = what->ends,
								 .state = {.inner = what->inner, .room = malloc(INNER_PIECE_BYTES)}};
	for (int i = 0; i < what->n_pieces; i++)
		p->job.pieces[i] = what->pieces[i];
	if (p->weights && p->job.state.room) {
		p->job.before = p->weights;
		p->job.state.theta = p->weights + s->store.cfg.n;
		return p;
	}
	free_repeat(p);
	return NULL;
}

/* On the trainer thread. */
static enum rv_err read_before(void *states, struct repeat_job *job, struct rv_errtext *et) {
	return kept_states_theta(states, job->round, job->before, et);
}

static void ask_trainer(struct session *s) {
	struct session_repeat *p = s->audit.repeat;
	const struct trainer_request rq = {.work = TRAINER_REPEAT,
									   .repeat = &p->job,
									   .text = p->text,
									   .read_before = read_before,
									   .read_ctx = s->audit.states};
	p->asked = true;
	trainer_request(s->trainer, &rq);
}

static void conclude(struct session *s, enum score_verdict verdict) {
	const struct repeat_job *job = &s->audit.repeat->job;
	const bool made = verdict == SCORE_REPEATED;
	const struct score_result r = {.round = s->audit.order.round,
								   .member = s->audit.order.member,
								   .verdict = (uint8_t)verdict,
								   .gain = made ? (float)job->contribution : 0,
								   .own = made ? (float)job->inner : 0};
	free_repeat(s->audit.repeat);
	s->audit.repeat = NULL;
	auditor_scored(s->audit.auditor, &r);
}

void session_repeat(void *session, const struct score_order *o, const struct auditor_repeat *what) {
	struct session *s = session;
	s->audit.order = *o;
	s->audit.dropped = false;
	s->audit.repeat = repeat_of(s, o, what);
	if (!s->audit.repeat) {
		const struct score_result r = {.round = o->round, .member = o->member, .verdict = SCORE_UNABLE};
		auditor_scored(s->audit.auditor, &r);
		return;
	}
	s->audit.repeat->until_us = rv_clock_monotonic_us() + PATIENCE_US;
	session_want_shards(s);
	ask_trainer(s);
}

/* Goes on after some steps; returns false if text was missing for too long. */
static bool goes_on(struct session *s, int64_t now_us) {
	struct session_repeat *p = s->audit.repeat;
	const bool moved = p->job.done > p->seen;
	p->seen = p->job.done;
	if (moved)
		p->until_us = now_us + PATIENCE_US;
	p->asked = false;
	p->again_us = moved ? now_us : now_us + AGAIN_US;
	return now_us < p->until_us;
}

void session_on_repeated(struct session *s, const struct trainer_answer *a) {
	const struct score_order *o = &s->audit.order;
	struct repeat_job *job = &s->audit.repeat->job;
	if (a->err == RV_E_CANCELLED && !s->audit.dropped && goes_on(s, rv_clock_monotonic_us()))
		return;
	if (a->err == RV_E_RANGE) /* no honest training begins from there */
		job->contribution = job->inner = REPEAT_FAR;
	rv_event(s->events, RV_DEBUG, "repeated",
			 RV_FIELDS(rv_field_int("round", (int64_t)o->round), rv_field_int("member", o->member),
					   rv_field_double("contribution", job->contribution), rv_field_double("inner", job->inner),
					   rv_field_str("result", rv_err_name(a->err))),
			 "member %u's contribution to round %" PRIu64
			 " is %.4f away from what its steps give here, its inner state %.4f%s%s",
			 o->member, round_number(o->round), job->contribution, job->inner, a->err == RV_OK ? "" : ": ",
			 a->text.text);
	conclude(s, a->err == RV_OK || a->err == RV_E_RANGE ? SCORE_REPEATED : SCORE_UNABLE);
}

void session_drop_repeat(struct session *s) {
	if (s->audit.repeat)
		atomic_store(&s->audit.repeat->job.dropped, true);
}

void session_turn_repeat(struct session *s, int64_t now_us) {
	if (!s->audit.repeat || s->audit.repeat->asked)
		return;
	if (s->audit.dropped)
		conclude(s, SCORE_UNABLE);
	else if (now_us >= s->audit.repeat->again_us)
		ask_trainer(s);
}

int64_t session_repeat_deadline_us(const struct session *s) {
	return s->audit.repeat && !s->audit.repeat->asked ? s->audit.repeat->again_us : INT64_MAX;
}

const struct reading *session_repeat_text(const struct session *s) {
	return s->audit.repeat ? &s->audit.repeat->text : NULL;
}

void session_close_repeat(struct session *s) {
	free_repeat(s->audit.repeat);
}
