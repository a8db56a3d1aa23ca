/* trace_lines.c: writes the lines of trace.jsonl as the trainer answers. A failing disk ends the
 * trace, which is logged, and nothing else. */
#include "worker/session/internal.h"

#include "base/json_lines.h"

#include <jansson.h>
#include <stdio.h>

void session_trace_open(struct session *s) {
	char path[SESSION_PATH_BYTES];
	struct rv_errtext et = {0};
	snprintf(path, sizeof path, "%s/" TRACE_FILE, s->opt->dir);
	if (rv_json_lines_open(path, true, &s->trace.file, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "trace", RV_NO_FIELDS, "%s: this run cannot be replayed", et.text);
}

void session_trace_end(struct session *s, const char *why) {
	if (!s->trace.file)
		return;
	rv_event(s->events, RV_WARN, "trace", RV_NO_FIELDS, "%s: the trace ends here, and this run cannot be replayed",
			 why);
	rv_json_lines_close(s->trace.file);
	s->trace.file = NULL;
}

void session_trace(struct session *s, json_t *line) {
	struct rv_errtext et = {0};
	if (!s->trace.file)
		json_decref(line);
	else if (rv_json_lines_write(s->trace.file, line, &et) != RV_OK)
		session_trace_end(s, et.text);
}

void session_trace_start(struct session *s, uint64_t boot, const struct recovered *found,
						 struct trainer_resumed resumed) {
	char device[DEVICE_TEXT_BYTES];
	device_kind(trainer_device_choice(s->trainer), device);
	const struct replica *replica = trainer_replica(s->trainer);
	const struct trace_started start = {.member = s->member.member,
										.boot = boot,
										.round = trainer_global(s->trainer)->round,
										.saved = resumed.saved,
										.exact = resumed.exact,
										.saved_round = resumed.saved ? found->replica.round : 0,
										.saved_steps = resumed.saved ? found->replica.steps_done : 0,
										.threads = replica_model(replica)->be->threads,
										.savings = replica_savings(replica),
										.dtype = dtype_name(trainer_compute(s->trainer)),
										.device = device,
										.data = s->content.text};
	session_trace(s, trace_start(&start));
}

void session_trace_attempt(struct session *s, const struct document *d) {
	struct trace_range room[NET_MAX_RANGES];
	struct trace_owns owns;
	trace_roster_of(d, &s->trace.roster);
	s->trace.has_vote = false;
	if (!mean_residual_is_on(&s->mean_residual))
		return;
	trace_owns_of(d, s->member.member, room, &owns);
	owns.residual = mean_residual_holds(&s->mean_residual, &s->store.cfg, d->round);
	session_trace(s, trace_owned(&owns));
}

/* Writes it once, even if a full disk refuses the result several times. */
void session_trace_vote(struct session *s) {
	if (!s->trace.has_vote)
		session_trace(s, trace_vote(&s->trace.roster));
	s->trace.has_vote = true;
}

void session_trace_applied(struct session *s, uint64_t round, bool copy) {
	const struct session_applying a = session_core_applying(s->core);
	const struct trace_applied line = {.round = round,
									   .participated = a.participated,
									   .keep = a.kept,
									   .copy = copy,
									   .chain = trainer_global(s->trainer)->chain,
									   .attempt = a.attempt};
	session_trace(s, trace_apply(&line));
}
