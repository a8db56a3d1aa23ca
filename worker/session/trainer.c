/* trainer.c: the session core's trainer: the thread that works on the replica
 * (worker/trainer/trainer.h). Its answers go to the trace and to metrics before the core has
 * them. */
#include "worker/session/internal.h"

#include "base/failpoint.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- requests ---- */

static struct trainer *trainer_of(void *ctx) {
	return ((struct session *)ctx)->trainer;
}

static void train(void *ctx, uint64_t round, uint64_t from, uint64_t steps) {
	trainer_train(trainer_of(ctx), round, from, steps);
}

static void encode(void *ctx, uint64_t round, bool want_replica) {
	trainer_encode(trainer_of(ctx), round, want_replica);
}

static void apply(void *ctx, const struct trainer_apply *rq) {
	RV_FAILPOINT("commit.seen");
	trainer_apply(trainer_of(ctx), rq);
}

static void install(void *ctx, uint64_t round, void *snapshot, const struct rv_hash *expect) {
	trainer_install(trainer_of(ctx), round, snapshot, expect);
}

static void copy_snapshot(void *ctx) {
	trainer_copy_snapshot(trainer_of(ctx));
}

static void evaluate(void *ctx, bool last) {
	trainer_evaluate(trainer_of(ctx), (uint64_t)((struct session *)ctx)->opt->eval_tokens, last);
}

static void save(void *ctx) {
	trainer_save(trainer_of(ctx));
}

static void end(void *ctx) {
	trainer_end(trainer_of(ctx));
}

static bool idle(void *ctx) {
	return trainer_idle(trainer_of(ctx));
}

const struct session_trainer_ops session_trainer_ops = {.train = train,
														.encode = encode,
														.apply = apply,
														.install = install,
														.copy_snapshot = copy_snapshot,
														.evaluate = evaluate,
														.save = save,
														.end = end,
														.idle = idle};

/* ---- answers ---- */

/* The copies, with the sums that go into the replica's file. */
static struct state_copy copy_of(struct session *s, struct trainer_copy *made) {
	struct state_copy copy = {.handle = made, .err = RV_E_NOMEM};
	if (!made) {
		(void)rv_fail(&copy.text, RV_E_NOMEM, "no memory for a copy of the state");
		return copy;
	}
	made->replica.run_tokens = s->sums.tokens;
	made->replica.bytes_sent = session_bytes_sent(s);
	made->replica.formula_bytes = s->sums.formula_bytes;
	copy.has_snapshot = made->has_snapshot;
	copy.has_replica = made->replica_bytes != NULL;
	copy.snapshot_round = made->snapshot.round;
	copy.err = made->err;
	copy.text = made->text;
	return copy;
}

static void on_trained(struct session *s, const struct trainer_answer *a) {
	struct trainer_progress p = trainer_progress(s->trainer);
	const struct session_trained t = {.round = a->round,
									  .steps_done = a->steps_done,
									  .tokens = a->tokens,
									  .time_up = p.time_up && p.round == a->round,
									  .err = a->err,
									  .text = a->text.text};
	if (a->err == RV_OK)
		session_trace_trained(s, a->round, a->from, a->steps_done);
	else if (a->err == RV_E_RANGE && a->round == round_round(session_round(s)))
		session_trace_end(s, "batches were refused");
	session_core_on_trained(s->core, rv_clock_monotonic_us(), &t);
}

static void on_encoded(struct session *s, const struct trainer_answer *a) {
	s->sums.own_tokens = trainer_progress(s->trainer).tokens;
	session_trace_encoded(s, a->round, a->err == RV_OK, a->copy && a->copy->replica_bytes);
	const struct state_copy copy = copy_of(s, a->copy);
	session_core_on_encoded(s->core, rv_clock_monotonic_us(), a->round, a->err, a->text.text, a->copy ? &copy : NULL);
}

static void on_applied(struct session *s, const struct trainer_answer *a) {
	if (a->err == RV_OK) {
		session_trace_applied(s, a->round, a->copy && a->copy->replica_bytes);
		session_write_round(s, a->round);
	} else {
		rv_event(s->events, RV_ERROR, "apply_failed", RV_FIELDS(rv_field_int("round", (int64_t)a->round)), "%s",
				 a->text.text);
	}
	const struct state_copy copy = copy_of(s, a->copy);
	session_core_on_applied(s->core, rv_clock_monotonic_us(), a->round, a->err, &trainer_global(s->trainer)->chain,
							&copy);
}

static void on_installed(struct session *s, const struct trainer_answer *a) {
	if (a->err != RV_OK)
		rv_event(s->events, RV_ERROR, "install_failed", RV_FIELDS(rv_field_int("round", (int64_t)a->round)), "%s",
				 a->text.text);
	else
		rv_event(s->events, RV_INFO, "installed", RV_FIELDS(rv_field_int("round", (int64_t)a->round)),
				 "holds the state of round %" PRIu64 ", verified", a->round);
	if (a->err == RV_OK)
		session_trace_installed(s, a->round);
	session_core_on_installed(s->core, rv_clock_monotonic_us(), a->round, a->err);
}

static void on_evaluated(struct session *s, const struct trainer_answer *a) {
	if (a->err == RV_OK)
		session_write_eval(s, a->round, a->last, a->loss);
	else if (a->err != RV_E_CANCELLED)
		rv_event(s->events, RV_WARN, "eval_failed",
				 RV_FIELDS(rv_field_int("round", (int64_t)a->round), rv_field_str("error", rv_err_name(a->err))),
				 "held-out loss after round %" PRIu64 " could not be measured: %s", a->round, a->text.text);
	session_core_on_evaluated(s->core, rv_clock_monotonic_us(), a->last);
}

static void on_saved(struct session *s, const struct trainer_answer *a) {
	session_trace_saved(s, a->copy);
	const struct state_copy copy = copy_of(s, a->copy);
	session_core_on_saved(s->core, rv_clock_monotonic_us(), &copy);
}

static void on_snapshot(struct session *s, const struct trainer_answer *a) {
	const struct state_copy copy = copy_of(s, a->copy);
	session_core_on_snapshot(s->core, rv_clock_monotonic_us(), &copy);
}

static void answered(void *ctx, const struct trainer_answer *a) {
	static void (*const answers[])(struct session * s, const struct trainer_answer *a) = {
		[TRAINER_TRAIN] = on_trained,         [TRAINER_ENCODE] = on_encoded,     [TRAINER_APPLY] = on_applied,
		[TRAINER_INSTALL] = on_installed,     [TRAINER_EVALUATE] = on_evaluated, [TRAINER_SAVE] = on_saved,
		[TRAINER_COPY_SNAPSHOT] = on_snapshot};
	answers[a->work](ctx, a);
}

const struct trainer_owner session_trainer_owner = {.answered = answered};
