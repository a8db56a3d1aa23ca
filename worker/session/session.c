/* session.c: the event loop of the worker, signals, and what follows when the session core has
 * ended. */
#include "worker/session/internal.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/os_memory.h"
#include "base/signals.h"
#include "kernels/gate.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

enum {
	PROGRESS_US = 200 * RV_US_PER_MS,
	FINISH_US = 10 * RV_US_PER_S,       /* that SIGTERM lets the round under way go on */
	DELIBERATE_US = 500 * RV_US_PER_MS, /* a sooner second signal is the same wish: a group's, a script's */
};

void session_fail(struct session *s, enum rv_err e, const char *text) {
	if (session_is_up(s)) {
		session_core_fail(s->core, e, text);
		return;
	}
	if (s->fault == RV_OK)
		s->fault = rv_fail(&s->fault_text, e, "%s", text);
	s->over = true;
}

static bool is_over(const struct session *s) {
	return session_is_up(s) ? session_core_phase(s->core) == SESSION_ENDED : s->over;
}

/* Returns why the session ended; RV_OK: as it should. */
static enum rv_err fault_of(const struct session *s, struct rv_errtext *et) {
	if (session_is_up(s))
		return session_core_fault(s->core, et);
	if (s->fault != RV_OK && et)
		*et = s->fault_text;
	return s->fault;
}

/* ---- signals ---- */

void session_stop(struct session *s, int64_t now_us) {
	s->signals.asked = true;
	s->signals.asked_us = now_us;
	if (session_is_up(s)) {
		gate_hold(false); /* the step under way ends, and is saved */
		session_core_stop(s->core, now_us);
		return;
	}
	rv_progress_clear(s->events);
	s->over = true;
}

void session_finish_round(struct session *s, int64_t now_us, int64_t by_us) {
	if (!session_is_up(s)) {
		session_stop(s, now_us);
		return;
	}
	s->signals.asked = true;
	s->signals.asked_us = now_us;
	session_core_finish(s->core, now_us, by_us);
}

/* Returns true if the round under way may be over within FINISH_US: its results are being
 * exchanged, or this worker's steps are nearly done and others have started theirs. */
static bool round_ends_soon(struct session *s) {
	const struct round_core *r = session_round(s);
	const struct document *d = round_document(r);
	if (!d || d->phase == RUN_WAITING || session_core_is_paused(s->core))
		return false;
	const enum worker_phase phase = round_phase(r);
	if (phase == WORKER_READY || phase == WORKER_REDUCING || phase == WORKER_VOTED)
		return true;
	const struct trainer_progress p = trainer_progress(s->trainer);
	const int64_t done = (int64_t)p.done.steps_done, left = s->member.config.steps_per_round - done;
	return phase == WORKER_TRAINING && done > 0 && p.contribution_us / done * left < FINISH_US / 2;
}

/* SIGTERM comes from a system that shuts down or a service manager, which wait a while: the round
 * under way may still count. Other signals are a person at a keyboard, who does not want to
 * wait. */
static void begin_stop(struct session *s, int signal, int64_t now_us) {
	if (signal == SIGTERM && session_is_up(s) && round_ends_soon(s))
		session_finish_round(s, now_us, now_us + FINISH_US);
	else
		session_stop(s, now_us);
}

static bool waits_for_round(const struct session *s) {
	return session_is_up(s) && session_core_finishes(s->core) && session_core_phase(s->core) == SESSION_RUNNING;
}

static void take_signals(struct session *s, int64_t now_us) {
	int first = 0;
	for (int signal; (signal = rv_signals_take(s->signals.fd)) != 0;)
		first = first ? first : signal;
	if (!first)
		return;
	if (!s->signals.asked)
		begin_stop(s, first, now_us);
	else if (now_us - s->signals.asked_us < DELIBERATE_US)
		return;
	else if (waits_for_round(s))
		session_stop(s, now_us);
	else
		session_fail(s, RV_E_CANCELLED, "stopped at once; the state of the last saved round is kept");
}

/* ---- the loop ---- */

static int64_t earlier(int64_t a, int64_t b) {
	return a < b ? a : b;
}

static int64_t deadline_us(struct session *s, int64_t now_us) {
	int64_t at = earlier(control_client_deadline_us(s->control), session_reach_deadline_us(s, now_us));
	at = earlier(at, session_local_deadline_us(s));
	if (!session_is_up(s))
		return s->local->rests ? earlier(at, now_us + PROGRESS_US) : at;
	at = earlier(at, session_core_deadline_us(s->core, now_us));
	at = earlier(at, allreduce_deadline_us(s->reduce));
	at = earlier(at, peers_deadline_us(meshlink_peers(s->mesh)));
	at = earlier(at, reach_deadline_us(s->reach, now_us));
	at = earlier(at, fetcher_deadline_us(s->fetcher));
	at = earlier(at, donor_deadline_us(s->donor, now_us));
	at = earlier(at, session_text_donor_deadline_us(s, now_us));
	at = earlier(at, session_audit_deadline_us(s, now_us));
	at = earlier(at, session_weigh_deadline_us(s));
	return earlier(at, now_us + PROGRESS_US);
}

static enum rv_err wait_and_move(struct session *s, struct rv_errtext *et) {
	struct pollfd fds[PEERS_MAX_FDS + REACH_MAX_FDS + SESSION_REACH_FDS + 3];
	int n_mesh = session_is_up(s) ? peers_pollfds(meshlink_peers(s->mesh), fds, PEERS_MAX_FDS) : 0;
	int n_links = n_mesh + (session_is_up(s) ? reach_pollfds(s->reach, &fds[n_mesh]) : 0);
	int n_test = session_reach_pollfds(s, &fds[n_links]), n = n_links + n_test;
	fds[n] = (struct pollfd){.fd = s->signals.fd, .events = POLLIN};
	int n_fds = n + 1;
	const int others[] = {s->addresses_fd, session_local_fd(s)};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (others[i] >= 0)
			fds[n_fds++] = (struct pollfd){.fd = others[i], .events = POLLIN};
	int64_t now_us = rv_clock_monotonic_us(), at = deadline_us(s, now_us);
	int64_t timeout_us = at == INT64_MAX ? -1 : at > now_us ? at - now_us : 0;
	RV_TRY(http_client_poll(s->http, fds, n_fds, timeout_us, et));
	now_us = rv_clock_monotonic_us();
	session_reach_handle(s, now_us, &fds[n_links], n_test);
	if (!session_is_up(s))
		return RV_OK;
	reach_handle(s->reach, now_us, &fds[n_mesh]);
	meshlink_handle(s->mesh, now_us, fds, n_mesh);
	return RV_OK;
}

static void run_once(struct session *s, int64_t now_us) {
	trainer_reap(s->trainer);
	jobs_reap(s->storage);
	session_watch_candidates(s, now_us);
	const struct session_reduce seen = session_see(s, now_us);
	bool leaving = session_core_phase(s->core) == SESSION_LEAVING;
	session_core_turn(s->core, now_us, &seen);
	if (leaving && is_over(s))
		RV_FAILPOINT("leave.end");
	session_note_donations(s);
	session_log_text(s);
	session_ask_heldout(s, now_us);
	session_turn_text_donor(s, now_us);
	session_turn_audit(s, now_us);
	session_turn_weigh(s, now_us);
	session_turn_evidence(s, now_us);
	session_own_relay_tick(s, now_us);
	session_charge_caps(s);
	meshlink_pump(s->mesh, now_us);
	if (session_core_phase(s->core) == SESSION_RUNNING)
		session_show_progress(s, now_us);
}

/* Begins the session of a member, unless its person's limits pause it now. */
static enum rv_err bring_up(struct session *s, struct rv_errtext *et) {
	const int64_t now_us = rv_clock_monotonic_us();
	session_turn_allowed(s, now_us);
	session_turn_rest(s, now_us);
	if (s->local->rests)
		return RV_OK;
	RV_TRY(session_bring_up(s, et));
	s->sleep = (struct sleep_watch){0}; /* that takes its time */
	return RV_OK;
}

static enum rv_err loop(struct session *s, struct rv_errtext *et) {
	while (!is_over(s)) {
		if (s->member.joined && !session_is_up(s))
			RV_TRY(bring_up(s, et));
		RV_TRY(wait_and_move(s, et));
		int64_t now_us = rv_clock_monotonic_us();
		take_signals(s, now_us);
		session_poll_sleep(s, now_us);
		session_poll_addresses(s, now_us);
		session_serve_local(s, now_us);
		session_turn_allowed(s, now_us);
		session_turn_rest(s, now_us);
		session_follow_serving_key(s);
		if (session_is_up(s) && !is_over(s))
			run_once(s, now_us);
		control_client_tick(s->control, now_us);
	}
	enum rv_err e = fault_of(s, et);
	if (e == RV_OK)
		session_log_end(s);
	return e;
}

/* ---- a rollback ---- */

static bool was_rolled_back(const struct session *s, uint64_t *round, uint64_t *term) {
	return session_is_up(s) && session_core_rolled_back(s->core, round, term);
}

/* Removes files first: if only they are gone, the next start finds the old term and does the same
 * again. */
static enum rv_err forget_given_up(struct session *s, uint64_t round, uint64_t term, struct rv_errtext *et) {
	struct statestore_given_up given_up;
	RV_FAILPOINT("rollback.before");
	enum rv_err e = statestore_rewind(&s->store, round, s->member.term, &given_up, et);
	if (e != RV_OK)
		return rv_fail_context(et, e,
							   "the run was rolled back; remove what is in the way, and start this worker again");
	session_log_given_up(s, &given_up);
	if (run_config_is_repeated(&s->member.config))
		RV_TRY(kept_states_drop(&s->store, session_repeat_rounds(&s->member.config), et));
	RV_FAILPOINT("rollback.rewound");
	s->member.term = term;
	RV_TRY(membership_store(s->opt->dir, &s->member, et));
	RV_FAILPOINT("rollback.stored");
	return RV_OK;
}

/* ---- from the link to the end ---- */

/* Logs, before the program's last line with the fault, that the place in the run is kept. */
static void log_place_kept(struct session *s) {
	if (s->joined_now && !session_is_up(s))
		rv_event(
			s->events, RV_WARN, "place_kept", RV_FIELDS(rv_field_int("member", s->member.member)),
			"this worker stays member %u of the run and needs no link. Once the fault below is mended: rivulet-worker "
			"--dir %s",
			s->member.member, s->opt->dir);
}

static void log_fault(struct session *s, enum rv_err e, const struct rv_errtext *et) {
	if (e == RV_OK || e == RV_E_CANCELLED || !s->events)
		return;
	log_place_kept(s);
	rv_event_in_log(s->events, RV_ERROR, "failed", RV_FIELDS(rv_field_str("error", rv_err_name(e))), "%s",
					et ? et->text : "");
}

static struct session *new_session(int signals_fd, struct session_local *local) {
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->opt = &local->options;
	s->signals.fd = signals_fd;
	s->local = local;
	s->lock_fd = s->addresses_fd = -1;
	s->started_us = rv_clock_monotonic_us();
	s->sums.eval_loss = NAN;
	return s;
}

/* *again: the run was rolled back, and the disk is ready for another start; or it is wanted with
 * other settings, or after a pause. */
static enum rv_err run_to_its_end(const char *link, int signals_fd, struct session_local *local, bool *again,
								  struct rv_errtext *et) {
	struct session *s = new_session(signals_fd, local);
	uint64_t round, term;
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory to start");
	enum rv_err e = session_open(s, link, et);
	if (e == RV_OK)
		e = loop(s, et);
	bool rolled_back = was_rolled_back(s, &round, &term);
	if (e == RV_OK && rolled_back)
		e = forget_given_up(s, round, term, et);
	*again = e == RV_OK && (rolled_back || s->restarts) && !s->signals.asked;
	log_fault(s, e, et);
	if (e == RV_E_CANCELLED)
		return e; /* the process ends now: threads in the middle of a step are not waited for */
	session_release(s);
	free(s);
	os_memory_give_back();
	return e;
}

enum rv_err session_run(const struct worker_options *o, const char *link, int signals_fd, struct rv_errtext *et) {
	enum { BLOCK_BYTES = 1 << 20 };
	struct session_local local = {.server = NULL, .options = *o, .log_file = o->log_file};
	os_memory_return_blocks(BLOCK_BYTES); /* a session's memory is free before the next one takes its own */
	bool again = true;
	enum rv_err e = RV_OK;
	while (e == RV_OK && again)
		e = run_to_its_end(link, signals_fd, &local, &again, et);
	session_close_local(&local);
	sensors_close(local.allowed.sensors);
	return e;
}
