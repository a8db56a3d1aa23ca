/* trainer.c: the session core's trainer: the thread that works on the replica (worker/trainer/trainer.h). Its answers
 * go to the trace and to metrics before the core has them. */
#include "worker/session/internal.h"

#include "base/failpoint.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- requests ------------------------------------------------------------------------------------------------------- */

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

/* ---- answers -------------------------------------------------------------------------------------------------------- */

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

static void on_trained(void *ctx, uint64_t round, uint64_t steps_done, uint64_t tokens, enum rv_err e,
					   const char *text) {
	struct session *s = ctx;
	struct trainer_progress p = trainer_progress(s->trainer);
	const struct session_trained t = {.round = round,
									  .steps_done = steps_done,
									  .tokens = tokens,
									  .time_up = p.time_up && p.round == round,
									  .err = e,
									  .text = text};
	if (e == RV_OK)
		session_trace_trained(s, round, steps_done);
	else if (e == RV_E_RANGE && round == round_round(session_round(s)))
		session_trace_end(s, "batches were refused");
	session_core_on_trained(s->core, rv_clock_monotonic_us(), &t);
}

static void on_encoded(void *ctx, uint64_t round, enum rv_err e, const char *text, struct trainer_copy *made) {
	struct session *s = ctx;
	s->sums.own_tokens = trainer_progress(s->trainer).tokens;
	session_trace_encoded(s, round, e == RV_OK, made && made->replica_bytes);
	const struct state_copy copy = copy_of(s, made);
	session_core_on_encoded(s->core, rv_clock_monotonic_us(), round, e, text, made ? &copy : NULL);
}

static void on_applied(void *ctx, uint64_t round, enum rv_err e, const char *text, struct trainer_copy *made) {
	struct session *s = ctx;
	if (e == RV_OK) {
		session_trace_applied(s, round, made && made->replica_bytes);
		session_write_round(s, round);
	} else {
		rv_event(s->events, RV_ERROR, "apply_failed", RV_FIELDS(rv_field_int("round", (int64_t)round)), "%s", text);
	}
	const struct state_copy copy = copy_of(s, made);
	session_core_on_applied(s->core, rv_clock_monotonic_us(), round, e, &trainer_global(s->trainer)->chain, &copy);
}

static void on_installed(void *ctx, uint64_t round, enum rv_err e, const char *text) {
	struct session *s = ctx;
	if (e != RV_OK)
		rv_event(s->events, RV_ERROR, "install_failed", RV_FIELDS(rv_field_int("round", (int64_t)round)), "%s", text);
	else
		rv_event(s->events, RV_INFO, "installed", RV_FIELDS(rv_field_int("round", (int64_t)round)),
				 "holds the state of round %" PRIu64 ", verified", round);
	if (e == RV_OK)
		session_trace_installed(s, round);
	session_core_on_installed(s->core, rv_clock_monotonic_us(), round, e);
}

static void on_evaluated(void *ctx, uint64_t round, bool last, double loss, enum rv_err e, const char *text) {
	struct session *s = ctx;
	if (e == RV_OK)
		session_write_eval(s, round, last, loss);
	else if (e != RV_E_CANCELLED)
		rv_event(s->events, RV_WARN, "eval_failed",
				 RV_FIELDS(rv_field_int("round", (int64_t)round), rv_field_str("error", rv_err_name(e))),
				 "held-out loss after round %" PRIu64 " could not be measured: %s", round, text);
	session_core_on_evaluated(s->core, rv_clock_monotonic_us(), last);
}

static void on_saved(void *ctx, struct trainer_copy *made) {
	struct session *s = ctx;
	session_trace_saved(s, made);
	const struct state_copy copy = copy_of(s, made);
	session_core_on_saved(s->core, rv_clock_monotonic_us(), &copy);
}

static void on_snapshot(void *ctx, struct trainer_copy *made) {
	struct session *s = ctx;
	const struct state_copy copy = copy_of(s, made);
	session_core_on_snapshot(s->core, rv_clock_monotonic_us(), &copy);
}

const struct trainer_owner session_trainer_owner = {.on_trained = on_trained,
													.on_encoded = on_encoded,
													.on_applied = on_applied,
													.on_installed = on_installed,
													.on_evaluated = on_evaluated,
													.on_saved = on_saved,
													.on_snapshot = on_snapshot};
