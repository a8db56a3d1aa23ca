/* trace_lines.c: writes the lines of trace.jsonl as the trainer answers. A failing disk ends the
 * trace, which is logged, and nothing else. */
#include "worker/session/internal.h"

#include <stdio.h>

void session_trace_open(struct session *s) {
	char path[SESSION_PATH_BYTES];
	struct rv_errtext et = {0};
	snprintf(path, sizeof path, "%s/" TRACE_FILE, s->opt->dir);
	if (trace_open(path, &s->trace.file, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "trace", RV_NO_FIELDS, "%s: this run cannot be replayed", et.text);
}

void session_trace_end(struct session *s, const char *why) {
	if (!s->trace.file)
		return;
	rv_event(s->events, RV_WARN, "trace", RV_NO_FIELDS, "%s: the trace ends here, and this run cannot be replayed",
			 why);
	trace_close(s->trace.file);
	s->trace.file = NULL;
}

static void check(struct session *s, enum rv_err e, const struct rv_errtext *et) {
	if (e != RV_OK)
		session_trace_end(s, et->text);
}

void session_trace_start(struct session *s, uint64_t boot, const struct recovered *found,
						 struct trainer_resumed resumed) {
	struct rv_errtext et = {0};
	char device[DEVICE_TEXT_BYTES];
	device_kind(trainer_device_choice(s->trainer), device);
	const struct trace_start start = {.member = s->member.member,
									  .boot = boot,
									  .round = trainer_global(s->trainer)->round,
									  .saved = resumed.saved,
									  .exact = resumed.exact,
									  .saved_round = resumed.saved ? found->replica.round : 0,
									  .saved_steps = resumed.saved ? found->replica.steps_done : 0,
									  .threads = replica_model(trainer_replica(s->trainer))->be->threads,
									  .dtype = dtype_name(trainer_compute(s->trainer)),
									  .device = device,
									  .data = s->content.text};
	if (s->trace.file)
		check(s, trace_write_start(s->trace.file, &start, &et), &et);
}

void session_trace_attempt(struct session *s, const struct document *d) {
	trace_roster_of(d, &s->trace.roster);
	s->trace.has_vote = false;
}

/* Writes it once, even if a full disk refuses the result several times. */
void session_trace_vote(struct session *s) {
	struct rv_errtext et = {0};
	if (s->trace.file && !s->trace.has_vote)
		check(s, trace_write_vote(s->trace.file, &s->trace.roster, &et), &et);
	s->trace.has_vote = true;
}

void session_trace_trained(struct session *s, uint64_t round, uint64_t from, uint64_t steps_done) {
	struct rv_errtext et = {0};
	if (s->trace.file && steps_done > from)
		check(s, trace_write_train(s->trace.file, round, from, steps_done, &et), &et);
}

void session_trace_encoded(struct session *s, uint64_t round, bool ok, bool copy) {
	struct rv_errtext et = {0};
	if (s->trace.file)
		check(s, trace_write_encode(s->trace.file, round, round_boot(session_round(s)), ok, copy, &et), &et);
}

void session_trace_applied(struct session *s, uint64_t round, bool copy) {
	struct rv_errtext et = {0};
	const struct session_applying a = session_core_applying(s->core);
	const struct trace_apply line = {.round = round,
									 .participated = a.participated,
									 .keep = a.kept,
									 .copy = copy,
									 .chain = trainer_global(s->trainer)->chain,
									 .attempt = a.attempt};
	if (s->trace.file)
		check(s, trace_write_apply(s->trace.file, &line, &et), &et);
}

void session_trace_installed(struct session *s, uint64_t round) {
	struct rv_errtext et = {0};
	if (s->trace.file)
		check(s, trace_write_install(s->trace.file, round, &et), &et);
}

void session_trace_saved(struct session *s, const struct trainer_copy *copy) {
	struct rv_errtext et = {0};
	if (s->trace.file)
		check(s, trace_write_save(s->trace.file, copy->replica.round, copy->replica.steps_done, &et), &et);
}

void session_trace_rollback(struct session *s, uint64_t round) {
	struct rv_errtext et = {0};
	if (s->trace.file)
		check(s, trace_write_rollback(s->trace.file, round, &et), &et);
}
