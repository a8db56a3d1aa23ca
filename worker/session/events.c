/* events.c: logs the session core's events, in the terms of the person who runs the worker. */
#include "worker/session/internal.h"

#include "base/assert.h"
#include "base/round_number.h"
#include "base/short_number.h"
#include "worker/session/member_list.h"

#include <inttypes.h>

/* ---- documents ---- */

static void wrong_state(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_ERROR, "wrong_state", RV_FIELDS(rv_field_int("round", (int64_t)e->round)), "%s", e->text);
}

/* Logs it without a next step for the volunteer, who cannot mend it; the coordinator logs it
 * too. */
static void old_store(struct session *s, const struct session_event *e) {
	rv_event(
		s->events, RV_WARN, "old_store",
		RV_FIELDS(rv_field_int("round", (int64_t)e->document->round), rv_field_int("term", (int64_t)e->document->term)),
		"the coordinator has an old copy of the run: %s. Nothing is lost: this worker keeps its state and waits. "
		"The operator should serve the newest store or, if there is none, roll all workers back with "
		"`rivulet-coordinator rollback`",
		e->text);
}

static void refused(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_ERROR, "document", RV_FIELDS(rv_field_str("error", rv_err_name(e->err))), "%s", e->text);
}

static void alone(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_WARN, "alone", RV_FIELDS(rv_field_int("round", (int64_t)e->round)),
			 "the run has ended: all %" PRIu64 " rounds are done. This worker has %" PRIu64
			 " of them, and no member that has the others is there: it waits half a minute for one, and ends",
			 e->document->round, e->round);
}

static void no_weights(struct session *s, const struct session_event *e) {
	(void)e;
	rv_event(s->events, RV_WARN, "no_initial_weights", RV_NO_FIELDS,
			 "the run starts from given weights, which neither this worker nor a connected one has: waiting. Start a "
			 "worker that has them with --init DIR");
}

static void starving(struct session *s, const struct session_event *e) {
	rv_event(
		s->events, RV_WARN, "starving",
		RV_FIELDS(rv_field_int("round", (int64_t)e->round),
				  rv_field_int("run_round", e->document ? (int64_t)e->document->round : 0)),
		"this worker falls behind faster than it catches up: the run makes rounds faster than this line can fetch "
		"them, so the worker starts again from a later snapshot. A faster line or a higher --max-down here helps, or "
		"more members to fetch from (with a higher --max-donate), or a run with larger steps-per-round (fewer bytes "
		"per second) or snapshot-every");
}

static void missing(struct session *s, const struct session_event *e) {
	int64_t needed = s->member.config.min_workers;
	if (e->n > 0)
		rv_event(s->events, RV_INFO, "waiting",
				 RV_FIELDS(rv_field_int("missing", e->n), rv_field_int("min_workers", needed)),
				 "waiting for %u more worker%s: the run needs %" PRId64, e->n, e->n == 1 ? "" : "s", needed);
	else
		rv_event(s->events, RV_DEBUG, "enough_workers", RV_FIELDS(rv_field_int("min_workers", needed)),
				 "enough workers are connected: training");
}

/* ---- the all-reduce ---- */

/* Logs that this worker sends less than its whole contribution, and why. */
static void sends_less(struct session *s, const struct document *d, const struct member_ref *self) {
	const struct codec *codec = codec_by_id(self->codec);
	const struct chunking chunks = global_round_chunks(&s->store.cfg, d->round);
	const uint64_t up = line_meter_up(&s->line, s->opt->max_up);
	const double whole = (double)chunking_total_bytes(&chunks, global_sent(&s->store.cfg));
	char less[64];
	if (self->part > 0)
		(void)snprintf(less, sizeof less, "1 of %u chunks of its contribution", self->part);
	else
		(void)snprintf(less, sizeof less, "its contribution as %s", codec->name);
	rv_event(s->events, RV_INFO, "sends_less",
			 RV_FIELDS(rv_field_int("round", (int64_t)d->round), rv_field_str("codec", self->codec ? codec->name : ""),
					   rv_field_int("part", self->part), rv_field_int("up_bytes_per_s", (int64_t)up),
					   rv_field_int("deadline_ms", d->slow_deadline_ms)),
			 "round %" PRIu64 ": this worker sends %s: at %.1f Mbit/s up a whole one takes %.1f s, and the exchange "
			 "should take %.1f s",
			 round_number(d->round), less, (double)up * 8e-6, up > 0 ? whole / (double)up : 0.0,
			 d->slow_deadline_ms / 1e3);
}

static void attempt(struct session *s, const struct session_event *e) {
	const struct document *d = e->document;
	const struct member_ref *self = &d->members[document_find(d, s->member.member)];
	char closes[48] = "", should[48] = "";
	if (d->deadline_ms > 0)
		(void)snprintf(closes, sizeof closes, ", closes within %.1f s", d->deadline_ms / 1e3);
	if (d->slow_deadline_ms > 0)
		(void)snprintf(should, sizeof should, ", should take %.1f s", d->slow_deadline_ms / 1e3);
	rv_event(s->events, RV_DEBUG, "attempt",
			 RV_FIELDS(rv_field_int("round", (int64_t)d->round), rv_field_int("attempt", d->attempt),
					   rv_field_int("participants", document_participants(d)),
					   rv_field_int("deadline_ms", d->deadline_ms),
					   rv_field_int("slow_deadline_ms", d->slow_deadline_ms)),
			 "round %" PRIu64 ": averaging among %d worker%s (attempt %u%s%s)", round_number(d->round),
			 document_participants(d), document_participants(d) == 1 ? "" : "s", d->attempt, should, closes);
	if (self->codec != 0 || self->part != 0)
		sends_less(s, d, self);
}

static void suspects(struct session *s, const struct session_event *e) {
	uint32_t silent[NET_MAX_ROW];
	char members[MEMBER_LIST_TEXT_BYTES];
	member_list_text(silent, allreduce_silent_members(s->reduce, silent), members);
	rv_event(s->events, RV_WARN, "suspects",
			 RV_FIELDS(rv_field_int("round", (int64_t)e->round), rv_field_int("attempt", e->attempt),
					   rv_field_int("n", e->n), rv_field_str("members", members)),
			 e->n != 0 ? "round %" PRIu64 ": nothing arrives from %s" : "round %" PRIu64 ": %s is silent now",
			 round_number(e->round), members);
}

static void spoiled(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_ERROR, "spoiled",
			 RV_FIELDS(rv_field_int("round", (int64_t)e->round), rv_field_int("in_a_row", e->n)),
			 "the training of round %" PRIu64 " is discarded and repeated from the run's state: %s",
			 round_number(e->round), e->text);
}

static void lease_lost(struct session *s, const struct session_event *e) {
	rv_event(
		s->events, RV_WARN, "lease_lost", RV_FIELDS(rv_field_int("round", (int64_t)e->round)),
		"round %" PRIu64
		": this worker was away or unheard of for so long that others read what it had begun to read: it trains the "
		"round again, with other sequences",
		round_number(e->round));
}

static void standstill(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_WARN, "standstill", RV_FIELDS(rv_field_int("round", (int64_t)e->round)),
			 "the run stands still at round %" PRIu64
			 ": too few workers have its state, and the others could not fetch it for a while: writing it again",
			 e->round);
}

/* ---- state from peers ---- */

/* Returns the number of the file's round: a log entry is what its round changed. */
static uint64_t number_of(const struct state_id *id) {
	return id->kind == STATE_KIND_SNAPSHOT ? id->round : round_number(id->round);
}

static const char *name_of(const struct state_id *id) {
	return id->kind == STATE_KIND_SNAPSHOT ? "state" : "log";
}

static void fetching(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_INFO, "fetch",
			 RV_FIELDS(rv_field_str("what", e->id->kind == STATE_KIND_SNAPSHOT ? "snapshot" : "log"),
					   rv_field_int("round", (int64_t)e->round)),
			 "catching up: the %s of round %" PRIu64 " from other members", name_of(e->id), number_of(e->id));
}

static void fetch_failed(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_ERROR, "fetch_failed",
			 RV_FIELDS(rv_field_int("round", (int64_t)e->round), rv_field_str("error", rv_err_name(e->err))),
			 "the %s of round %" PRIu64 " cannot be fetched now: %s", name_of(e->id), number_of(e->id), e->text);
}

static void in_memory(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_WARN, "storage", RV_FIELDS(rv_field_str("error", "io")),
			 "%s: fetched state is kept in memory; after a restart it is fetched again", e->text);
}

static void fetched_back(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_INFO, "storage_back", RV_FIELDS(rv_field_str("what", "fetched")), "%s",
			 e->type == SESSION_LOGS_FETCHED_STORED
				 ? "fetched state is stored again"
				 : "a checkpoint is stored: what was fetched before is not needed after a restart");
}

static void log_limited(struct session *s, uint32_t member) {
	rv_event(
		s->events, RV_WARN, "donation_limit",
		RV_FIELDS(rv_field_int("member", member), rv_field_int("bytes_donated", (int64_t)session_bytes_donated(s))),
		"member %u has fetched two whole states of the run within an hour from this worker: further state is sent "
		"slowly",
		member);
}

void session_note_donations(struct session *s) {
	const struct member_set *limited = donor_limited(s->donor);
	for (int i = 0; i < limited->n; i++)
		if (!member_set_has(&s->logged_limited, limited->members[i]))
			log_limited(s, limited->members[i]);
	s->logged_limited = *limited;
}

/* ---- the disk ---- */

/* Returns a text for what is not on disk. */
static const char *consequence(enum store_kind kind) {
	switch (kind) {
	case STORE_PERSIST:
		return "the result of a round cannot be stored: this worker votes once it can; its training is kept";
	case STORE_COPY:
		return "a checkpoint cannot be stored, or old files not removed: training continues, the last good one stays";
	case STORE_INSTALLED:
		return "fetched state is in use, but not on disk: after a restart it is fetched again";
	default:
		return "storing failed";
	}
}

static void storage_fails(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_ERROR, "storage", RV_FIELDS(rv_field_str("error", rv_err_name(e->err))), "%s (%s%s)",
			 consequence(e->kind), e->text, e->err == RV_E_FULL ? ": make room" : "");
}

static void storage_works(struct session *s, const struct session_event *e) {
	rv_event(s->events, RV_INFO, "storage_back", RV_FIELDS(rv_field_int("failed", e->n)),
			 "storing works again, after %u failure%s", e->n, e->n == 1 ? "" : "s");
}

/* Logs where the given-up files are and how to use them. */
void session_log_given_up(struct session *s, const struct statestore_given_up *g) {
	const char *dir = g->dir;
	if (g->what == GIVEN_UP_KEPT)
		rv_event(s->events, RV_WARN, "given_up", RV_FIELDS(rv_field_str("dir", dir)),
				 "the states that were taken back are kept in %s: `rivulet checkpoint list %s` shows them, `rivulet "
				 "export %s --out hf` makes weights of the latest; the next rollback keeps only the later set: move it "
				 "elsewhere if you want it, or remove it",
				 dir, dir, dir);
	else if (g->what == GIVEN_UP_KEPT_LOG)
		rv_event(s->events, RV_WARN, "given_up", RV_FIELDS(rv_field_str("dir", dir)),
				 "the log entries that were taken back are kept in %s until a later rollback; they are usable only "
				 "together with the files that stayed in %s",
				 dir, s->store.dir);
	else if (g->what == GIVEN_UP_REMOVED)
		rv_event(s->events, RV_WARN, "given_up", RV_FIELDS(rv_field_str("dir", dir)),
				 "the states that were taken back are removed: %s keeps those of an earlier rollback, of the same or a "
				 "later round",
				 dir);
}

/* ---- the end ---- */

static void done(struct session *s, const struct session_event *e) {
	if (e->n > 0)
		return;
	if (s->is_away)
		rv_event(
			s->events, RV_INFO, "unverified", RV_FIELDS(rv_field_int("round", (int64_t)e->round)),
			"the run is done; the coordinator ended before it had compared the end states of the last workers. Those "
			"who want to can: `state` in the last lines of their metrics is the same");
	else
		rv_event(
			s->events, RV_WARN, "unverified", RV_FIELDS(rv_field_int("round", (int64_t)e->round)),
			"the run is done, but no majority of the last workers has vouched for its end state: compare `state` in "
			"the last lines of their metrics");
}

static void stopping(struct session *s, const struct session_event *e) {
	if (s->local->rests)
		return; /* rest.c has told it */
	rv_progress_clear(s->events);
	if (e->n > 0 && s->restarts)
		rv_event(s->events, RV_INFO, "stopping", RV_NO_FIELDS, "saving, to go on with the new settings");
	else if (e->n > 0)
		rv_event(s->events, RV_INFO, "stopping", RV_NO_FIELDS,
				 "stopping: finishing this step and saving; press Ctrl-C again to stop at once");
}

static void rollback(struct session *s, const struct session_event *e) {
	uint64_t round = round_round(session_round(s));
	rv_progress_clear(s->events);
	rv_event(s->events, RV_WARN, "rollback",
			 RV_FIELDS(rv_field_int("round", (int64_t)round), rv_field_int("to_round", (int64_t)e->round),
					   rv_field_int("term", (int64_t)e->term)),
			 "the operator rolled the run back to round %" PRIu64 " (term %" PRIu64
			 "); this worker is at round %" PRIu64 ": going back with the files on disk, or from peers%s",
			 e->round, e->term, round,
			 session_core_exported(s->core) ? "; the weights written here are of a state that was taken back" : "");
}

/* Returns the number of the round that this worker is in. */
static uint64_t open_round(const struct session *s) {
	const uint64_t round = round_round(session_round(s)), last = (uint64_t)s->member.config.rounds;
	return round < last ? round_number(round) : last;
}

/* Logs, as the last event, what is saved and how to go on. */
static void stopped_event(struct session *s) {
	const char *dir = s->opt->dir;
	if (!s->member.joined)
		rv_event(s->events, RV_INFO, "stopped", RV_NO_FIELDS,
				 "stopped before the join was answered: the link can be used again, with --dir %s", dir);
	else if (!session_is_up(s))
		rv_event(s->events, RV_INFO, "stopped", RV_NO_FIELDS,
				 "stopped before training began: rivulet-worker --dir %s goes on from there", dir);
	else if (!session_core_exported(s->core) && session_core_storage_fails(s->core))
		rv_event(
			s->events, RV_WARN, "stopped",
			RV_FIELDS(rv_field_int("round", (int64_t)round_round(session_round(s))), rv_field_bool("saved", false)),
			"stopped in round %" PRIu64 ", and not all is saved: %s has no room or failed (see `storage` above); make "
			"room: rivulet-worker --dir %s then goes on from what is saved, and fetches the rounds it lacks from "
			"peers",
			open_round(s), dir, dir);
	else if (!session_core_exported(s->core))
		rv_event(s->events, RV_INFO, "stopped",
				 RV_FIELDS(rv_field_int("round", (int64_t)round_round(session_round(s)))),
				 "stopped in round %" PRIu64 " of %" PRId64
				 "; all is saved: rivulet-worker --dir %s goes on from there. So far "
				 "this computer gave its part to %" PRIu64 " rounds: thank you",
				 open_round(s), s->member.config.rounds, dir, s->sums.given_rounds);
}

static void log_done(struct session *s) {
	const struct session_sums *sums = &s->sums;
	const char *dir = s->opt->dir;
	char tokens[RV_SHORT_NUMBER_BYTES];
	rv_event(s->events, RV_INFO, "done",
			 RV_FIELDS(rv_field_int("rounds", s->member.config.rounds),
					   rv_field_int("given_rounds", (int64_t)sums->given_rounds),
					   rv_field_int("given_tokens", (int64_t)sums->given_tokens)),
			 "The run is done: all %" PRId64 " rounds. Thank you! This computer gave its part to %" PRIu64
			 " of them, %s tokens in all. The model is in %s/model.safetensors. To try it: rivulet sample %s --prompt "
			 "'Once'",
			 s->member.config.rounds, sums->given_rounds, rv_short_number((double)sums->given_tokens, tokens), dir,
			 dir);
}

/* Logs that the run has ended without this worker, which nobody gave its last rounds. */
static void log_alone(struct session *s) {
	const uint64_t round = round_round(session_round(s));
	char where[RUN_ABOUT_MODEL_BYTES];
	run_about_where(&s->about, where);
	rv_event(s->events, RV_INFO, "over",
			 RV_FIELDS(rv_field_int("round", (int64_t)round), rv_field_int("rounds", s->member.config.rounds),
					   rv_field_int("given_rounds", (int64_t)s->sums.given_rounds)),
			 "The run has ended: all %" PRId64 " rounds are done, %" PRIu64
			 " of them with a part of this computer. It has the state after %" PRIu64
			 ", and no member gives it the rest. %s. If one that has the end starts again: rivulet-worker --dir %s",
			 s->member.config.rounds, s->sums.given_rounds, round, where, s->opt->dir);
}

void session_log_end(struct session *s) {
	uint64_t round, term;
	bool up = session_is_up(s);
	if (up && session_core_exported(s->core) && !session_core_rolled_back(s->core, &round, &term))
		log_done(s);
	else if (up && session_core_was_alone(s->core))
		log_alone(s);
	else if (s->signals.asked)
		stopped_event(s);
}

/* ---- one by one ---- */

typedef void logger(struct session *s, const struct session_event *e);

void session_log_event(struct session *s, const struct session_event *e) {
	static logger *const loggers[SESSION_EVENTS] = {[SESSION_LOGS_WRONG_STATE] = wrong_state,
													[SESSION_LOGS_OLD_STORE] = old_store,
													[SESSION_LOGS_REFUSED] = refused,
													[SESSION_LOGS_ALONE] = alone,
													[SESSION_LOGS_NO_WEIGHTS] = no_weights,
													[SESSION_LOGS_STARVING] = starving,
													[SESSION_LOGS_MISSING] = missing,
													[SESSION_LOGS_ATTEMPT] = attempt,
													[SESSION_LOGS_SUSPECTS] = suspects,
													[SESSION_LOGS_FETCHING] = fetching,
													[SESSION_LOGS_FETCH_FAILED] = fetch_failed,
													[SESSION_LOGS_IN_MEMORY] = in_memory,
													[SESSION_LOGS_FETCHED_STORED] = fetched_back,
													[SESSION_LOGS_FETCHED_OVER] = fetched_back,
													[SESSION_LOGS_SPOILED] = spoiled,
													[SESSION_LOGS_LEASE_LOST] = lease_lost,
													[SESSION_LOGS_STANDSTILL] = standstill,
													[SESSION_LOGS_STORAGE_FAILS] = storage_fails,
													[SESSION_LOGS_STORAGE_WORKS] = storage_works,
													[SESSION_LOGS_DONE] = done,
													[SESSION_LOGS_STOPPING] = stopping,
													[SESSION_LOGS_ROLLBACK] = rollback};
	RV_ASSERT(e->type < SESSION_EVENTS);
	if (loggers[e->type])
		loggers[e->type](s, e);
}
