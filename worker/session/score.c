/* score.c: audits of training: what another member contributed is scored beside this worker's own
 * contribution to the same round (train/score.h), by the trainer, between two of its requests. */
#include "worker/session/internal.h"

#include "base/round_number.h"

#include "worker/text/text_reading.h"

#include <inttypes.h>
#include <stdlib.h>

/* Standard errors: both gains are taken this much in favour of the other member; an own gain that
 * is not this far from nothing measures nothing. */
enum { DOUBT_ERRORS = 2, NOTHING_ERRORS = 4 };
enum { LATE_ROUNDS = 4 }; /* weights of so many rounds later measure nothing of a contribution */

enum {
	PATIENCE_US = 60 * 1000 * 1000, /* for the text that is scored */
	AGAIN_US = 1000 * 1000
};

/* ---- what this worker has read ---- */

void session_note_read(struct session *s, const struct document *d) {
	struct reading text;
	const bool any = round_contribution_text(session_round(s), &text);
	const uint64_t at = d->round % AUDITOR_ROUNDS;
	s->audit.read[at].round = d->round;
	s->audit.read[at].any = any;
	if (any)
		s->audit.read[at].text = text;
}

static const struct reading *own_text(const struct session *s, uint64_t round) {
	const uint64_t at = round % AUDITOR_ROUNDS;
	return s->audit.read[at].any && s->audit.read[at].round == round ? &s->audit.read[at].text : NULL;
}

static struct score_sent sent_of(const struct score_order *o, const uint8_t *encoded) {
	return (struct score_sent){
		.round = o->round, .member = o->member, .codec = o->codec, .part = o->part, .encoded = encoded};
}

size_t session_score_bytes(void *session, const struct score_order *o) {
	const struct session *s = session;
	const struct global_config *g = &s->store.cfg;
	const struct score_sent sent = sent_of(o, NULL);
	if (!run_config_is_scored(&s->member.config) || !own_text(s, o->round))
		return 0;
	if (!global_sent_as(g, o->codec) || global_round_chunks(g, o->round).n_chunks != o->n_chunks)
		return 0;
	return score_sent_bytes(g, &sent);
}

/* ---- one score ---- */

static void conclude(struct session *s, const struct score_order *o, enum score_verdict verdict, double gain,
					 double own) {
	const struct score_result r = {
		.round = o->round, .member = o->member, .verdict = (uint8_t)verdict, .gain = (float)gain, .own = (float)own};
	auditor_scored(s->audit.auditor, &r);
}

static void free_job(struct score_job *job) {
	if (!job)
		return;
	free((void *)job->theirs.encoded);
	free((void *)job->own.encoded);
	free(job);
}

static struct score_job *job_of(struct session *s, const struct score_order *o, uint8_t *encoded) {
	struct score_job *job = malloc(sizeof *job);
	const struct reading *own = own_text(s, o->round);
	if (!job || !own) {
		free(encoded);
		free(job);
		return NULL;
	}
	*job = (struct score_job){.theirs = sent_of(o, encoded),
							  .own = sent_of(o, NULL),
							  .share = (float)o->share / SCORE_SHARE_ONE,
							  .own_text = *own};
	job->own.whole = true;
	for (int i = 0; i < o->n_pieces; i++)
		(void)reading_add(&job->their_text, o->pieces[i].begin, o->pieces[i].count);
	return job;
}

/* On the trainer thread: reading and hashing a whole contribution takes its time. */
static enum rv_err read_own(void *kept, struct score_job *job, struct rv_errtext *et) {
	uint8_t *encoded;
	if (job->own.encoded)
		return RV_OK;
	RV_TRY(kept_contributions_whole(kept, job->own.round, &job->own.codec, &encoded, et));
	job->own.encoded = encoded;
	return RV_OK;
}

static void ask_trainer(struct session *s) {
	const struct trainer_request rq = {
		.work = TRAINER_SCORE, .score = s->audit.job, .read_own = read_own, .read_ctx = s->audit.kept};
	s->audit.asked = true;
	trainer_request(s->trainer, &rq);
}

void session_score(void *session, const struct score_order *o, uint8_t *encoded) {
	struct session *s = session;
	s->audit.order = *o;
	s->audit.dropped = false;
	s->audit.job = job_of(s, o, encoded);
	if (!s->audit.job) {
		conclude(s, o, SCORE_UNABLE, 0, 0);
		return;
	}
	s->audit.until_us = rv_clock_monotonic_us() + PATIENCE_US;
	session_want_shards(s);
	ask_trainer(s);
}

static void end(struct session *s) {
	free_job(s->audit.job);
	s->audit.job = NULL;
	s->audit.asked = false;
}

void session_on_scored(struct session *s, const struct trainer_answer *a) {
	const struct score_order o = s->audit.order;
	const int64_t now_us = rv_clock_monotonic_us();
	const struct score theirs = s->audit.job->theirs_found, own = s->audit.job->own_found;
	if (a->err == RV_E_CANCELLED && now_us < s->audit.until_us &&
		!s->audit.dropped) { /* text is missing, and training goes on */
		s->audit.asked = false;
		s->audit.again_us = now_us + AGAIN_US;
		return;
	}
	end(s);
	rv_event(s->events, RV_DEBUG, "scored",
			 RV_FIELDS(rv_field_int("round", (int64_t)o.round), rv_field_int("member", o.member),
					   rv_field_double("gain", theirs.gain), rv_field_double("error", theirs.error),
					   rv_field_double("own", own.gain), rv_field_double("own_error", own.error),
					   rv_field_int("at_round", (int64_t)a->round), rv_field_str("result", rv_err_name(a->err))),
			 "the loss falls by %.4f along member %u's contribution to round %" PRIu64
			 ", by %.4f along this worker's own%s%s",
			 theirs.gain, o.member, round_number(o.round), own.gain, a->err == RV_OK ? "" : ": ", a->text.text);
	if (a->err == RV_OK && a->round <= o.round + LATE_ROUNDS && own.gain > NOTHING_ERRORS * own.error)
		conclude(s, &o, SCORE_MEASURED, theirs.gain + DOUBT_ERRORS * theirs.error, own.gain - DOUBT_ERRORS * own.error);
	else
		conclude(s, &o, SCORE_UNABLE, 0, 0);
}

void session_turn_score(struct session *s, int64_t now_us) {
	if (!s->audit.job || s->audit.asked)
		return;
	if (s->audit.dropped) {
		const struct score_order o = s->audit.order;
		end(s);
		conclude(s, &o, SCORE_UNABLE, 0, 0);
	} else if (now_us >= s->audit.again_us) {
		ask_trainer(s);
	}
}

int64_t session_score_deadline_us(const struct session *s) {
	return s->audit.job && !s->audit.asked ? s->audit.again_us : INT64_MAX;
}

int session_score_shards(const struct session *s, uint64_t *shards, int n, int most) {
	uint64_t more[TEXT_FILES_MAX];
	const struct reading *text = s->audit.job ? &s->audit.job->their_text : session_repeat_text(s);
	const int n_more = text ? text_reading_shards(text, &s->order, text_manifest(s->text), more, TEXT_FILES_MAX) : 0;
	for (int i = 0; i < n_more && n < most; i++) {
		bool known = false;
		for (int k = 0; k < n; k++)
			known |= shards[k] == more[i];
		if (!known)
			shards[n++] = more[i];
	}
	return n;
}

void session_close_score(struct session *s) {
	free_job(s->audit.job);
}
