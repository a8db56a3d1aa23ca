/* trainer.c: the session core's trainer: the thread that works on the replica
 * (worker/trainer/trainer.h). Its answers go to the trace and to metrics before the core has
 * them. */
#include "worker/session/internal.h"

#include "base/failpoint.h"

#include <inttypes.h>

static void request(void *ctx, const struct trainer_request *rq) {
	if (rq->work == TRAINER_APPLY)
		RV_FAILPOINT("commit.seen");
	session_want_text(ctx, rq);
	const struct trainer_request kept = rq->work == TRAINER_ENCODE ? session_kept_encode(ctx, rq) : *rq;
	trainer_request(((struct session *)ctx)->trainer, &kept);
}

static bool idle(void *ctx) {
	return trainer_idle(((struct session *)ctx)->trainer);
}

static bool may_evaluate(void *ctx) {
	struct session *s = ctx;
	session_want_heldout(s); /* a member that was not the first until now has not asked for it yet */
	return !s->text || text_has_later(s->text);
}

const struct session_trainer_ops session_trainer_ops = {.request = request, .idle = idle, .may_evaluate = may_evaluate};

/* ---- answers ---- */

static void on_trained(struct session *s, const struct trainer_answer *a) {
	const uint64_t round = round_round(session_round(s));
	const uint64_t done = a->round == round ? a->progress.steps_done : a->progress.ahead;
	if (a->started_over)
		session_trace(s, trace_start_over(round));
	if (a->err == RV_OK && (done > a->from || a->reads.n > 0))
		session_trace(s, trace_train(a->round, a->from, done, a->has_leases ? &a->reads : NULL));
	else if (a->err == RV_E_RANGE && a->round == round)
		session_trace_end(s, "batches were refused");
}

static void on_encoded(struct session *s, const struct trainer_answer *a) {
	s->sums.own_tokens = a->progress.tokens;
	session_on_kept(s, a);
	session_trace(s, trace_encode(a->round, round_boot(session_round(s)), a->err == RV_OK, a->copy.has_replica));
}

static void on_applied(struct session *s, const struct trainer_answer *a) {
	if (a->err == RV_OK) {
		session_trace_applied(s, a->round, a->copy.has_replica);
		session_write_round(s, a->round);
	} else {
		rv_event(s->events, RV_ERROR, "apply_failed", RV_FIELDS(rv_field_int("round", (int64_t)a->round)), "%s",
				 a->text.text);
	}
}

static void on_installed(struct session *s, const struct trainer_answer *a) {
	if (a->err != RV_OK) {
		rv_event(s->events, RV_ERROR, "install_failed", RV_FIELDS(rv_field_int("round", (int64_t)a->round)), "%s",
				 a->text.text);
		return;
	}
	if (a->reads_again > 0)
		rv_event(s->events, RV_WARN, "install_read_again",
				 RV_FIELDS(rv_field_int("round", (int64_t)a->round), rv_field_int("times", a->reads_again)),
				 "the disk works again: the fetched state is here (tries: %d)", a->reads_again + 1);
	rv_event(s->events, RV_DEBUG, "installed", RV_FIELDS(rv_field_int("round", (int64_t)a->round)),
			 "holds the state of round %" PRIu64 ", verified", a->round);
	session_trace(s, trace_install(a->round));
}

static void on_evaluated(struct session *s, const struct trainer_answer *a) {
	if (a->err == RV_OK)
		session_write_eval(s, a->round, a->last, a->loss);
	else if (a->err != RV_E_CANCELLED)
		rv_event(s->events, RV_WARN, "eval_failed",
				 RV_FIELDS(rv_field_int("round", (int64_t)a->round), rv_field_str("error", rv_err_name(a->err))),
				 "held-out loss after round %" PRIu64 " could not be measured: %s", a->round, a->text.text);
}

static void on_saved(struct session *s, const struct trainer_answer *a) {
	const struct trainer_copy *copy = a->copy.handle;
	if (a->copy.has_replica)
		session_trace(s, trace_save(copy->replica.round, copy->replica.steps_done));
}

static void answered(void *ctx, const struct trainer_answer *a) {
	static void (*const notes[TRAINER_WORKS])(struct session * s, const struct trainer_answer *a) = {
		[TRAINER_TRAIN] = on_trained,     [TRAINER_ENCODE] = on_encoded,     [TRAINER_APPLY] = on_applied,
		[TRAINER_INSTALL] = on_installed, [TRAINER_EVALUATE] = on_evaluated, [TRAINER_SAVE] = on_saved,
		[TRAINER_END] = on_saved};
	struct session *s = ctx;
	struct trainer_copy *copy = a->copy.handle;
	if (a->work == TRAINER_SCORE) {
		session_on_scored(s, a); /* no work of the core */
		return;
	}
	if (a->work == TRAINER_REPEAT) {
		session_on_repeated(s, a);
		return;
	}
	if (notes[a->work])
		notes[a->work](s, a);
	if (copy) { /* the sums that go into the replica's file */
		copy->replica.run_tokens = s->sums.tokens;
		copy->replica.bytes_sent = session_bytes_sent(s);
		copy->replica.formula_bytes = s->sums.formula_bytes;
	}
	session_core_on_answer(s->core, rv_clock_monotonic_us(), a);
}

static void reads_again(void *ctx, uint64_t round, const char *why) {
	struct session *s = ctx;
	rv_event(s->events, RV_WARN, "install_disk_failed", RV_FIELDS(rv_field_int("round", (int64_t)round)),
			 "the disk failed while a fetched state was read; nothing goes on until it works again. It is tried again "
			 "each second, for about two minutes: %s",
			 why);
}

const struct trainer_owner session_trainer_owner = {
	.answered = answered, .sliced = session_on_slice, .reads_again = reads_again};
