/* session.c: the event loop of the worker, and how it ends. */
#include "worker/session_internal.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/signals.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	PROGRESS_US = 200 * RV_US_PER_MS,
	DELIBERATE_US = 500 * RV_US_PER_MS, /* a signal so soon after the first is the same wish: a group's, a script's */
	GOODBYE_US = 2 * RV_US_PER_S,       /* how long the last report may take */
};

void session_fail(struct session *s, enum rv_err e, const char *text) {
	if (s->fault != RV_OK)
		return;
	s->fault = rv_fail(&s->fault_text, e, "%s", text);
	s->state = SESSION_ENDED;
}

bool session_is_up(const struct session *s) {
	return s->mesh != NULL;
}

/* ---- stopping -------------------------------------------------------------------------------------------------------
 */

/* The last word: what was kept, and how to go on. */
static void stopped_event(struct session *s) {
	const char *dir = s->opt->dir;
	if (!s->member.joined)
		rv_event(s->events, RV_INFO, "stopped", RV_NO_FIELDS,
				 "stopped before the join was answered: the link can be used again, with --dir %s", dir);
	else if (!session_is_up(s))
		rv_event(s->events, RV_INFO, "stopped", RV_NO_FIELDS, "stopped before training began: %s holds what there is",
				 dir);
	else if (!s->exported && session_storage_fails(s))
		rv_event(s->events, RV_WARN, "stopped",
				 RV_FIELDS(rv_field_int("round", (int64_t)round_round(s->round)), rv_field_bool("saved", false)),
				 "stopped in round %" PRIu64 ", and not all is saved: %s did not take it (`storage` above says why); "
				 "make room: rivulet-worker --dir %s then goes on from what is there, and gets the rounds it "
				 "lacks from peers",
				 round_round(s->round), dir, dir);
	else if (!s->exported)
		rv_event(s->events, RV_INFO, "stopped", RV_FIELDS(rv_field_int("round", (int64_t)round_round(s->round))),
				 "stopped in round %" PRIu64 " of %" PRId64
				 "; all is saved: rivulet-worker --dir %s goes on from there",
				 round_round(s->round), s->member.config.rounds, dir);
}

/* Nobody would install it; and what did come later would make room for itself among the files that are saved now. */
static void stop_fetching(struct session *s, int64_t now_us) {
	(void)fetcher_want(s->fetcher, now_us, NULL, 0, NULL);
}

static void begin_stop(struct session *s, int64_t now_us) {
	rv_progress_clear(s->events);
	if (!session_is_up(s)) {
		s->state = SESSION_ENDED;
		return;
	}
	bool done = s->state == SESSION_LINGERING;
	s->state = SESSION_STOPPING;
	s->stop_by_us = now_us + GOODBYE_US;
	s->saved = false;
	if (!done)
		rv_event(s->events, RV_INFO, "stopping", RV_NO_FIELDS,
				 "stopping: finishing this step and saving; once more to stop at once");
	RV_FAILPOINT("leave.begin");
	round_leave(s->round, now_us);
	stop_fetching(s, now_us);
	trainer_end(s->trainer);
}

void session_give_up(struct session *s, int64_t now_us, enum rv_err e, const char *text) {
	if (s->fault != RV_OK || s->state == SESSION_STOPPING)
		return;
	s->fault = rv_fail(&s->fault_text, e, "%s", text);
	begin_stop(s, now_us);
}

void session_roll_back(struct session *s, int64_t now_us, const struct round_action *a) {
	rv_progress_clear(s->events);
	rv_event(s->events, RV_WARN, "rollback",
			 RV_FIELDS(rv_field_int("round", (int64_t)round_round(s->round)),
					   rv_field_int("to_round", (int64_t)a->round), rv_field_int("epoch", (int64_t)a->epoch)),
			 "the operator rolled the run back to round %" PRIu64 " (epoch %" PRIu64 "); we are at round %" PRIu64
			 ": going back by what is on disk, or from peers%s",
			 a->round, a->epoch, round_round(s->round),
			 s->exported ? "; the weights that were written here are of a state that was taken back" : "");
	session_write_rollback(s, a->round, a->epoch);
	session_trace_rollback(s, a->round);
	s->next_epoch = a->epoch;
	s->next_epoch_round = a->round;
	s->stop_by_us = now_us;
	if (s->state == SESSION_STOPPING)
		return; /* it had finished, and was about to go: it is saving already */
	s->state = SESSION_STOPPING;
	s->saved = false;
	stop_fetching(s, now_us);
	trainer_end(s->trainer);
}

/* Where it is, and how to get at it. */
static void tell_given_up(struct session *s, const struct statestore_given_up *g) {
	const char *dir = g->dir;
	if (g->what == GIVEN_UP_KEPT)
		rv_event(s->events, RV_WARN, "given_up", RV_FIELDS(rv_field_str("dir", dir)),
				 "the states that were taken back are kept in %s: `rivulet checkpoint list %s` shows them, `rivulet "
				 "export %s --out hf` makes weights of the latest; the next rollback keeps only the later set: move it "
				 "elsewhere if you want it, or remove it",
				 dir, dir, dir);
	else if (g->what == GIVEN_UP_KEPT_LOG)
		rv_event(s->events, RV_WARN, "given_up", RV_FIELDS(rv_field_str("dir", dir)),
				 "the log entries that were taken back are kept in %s, until a later rollback; they are of use only "
				 "beside the files that stayed in %s",
				 dir, s->store.dir);
	else if (g->what == GIVEN_UP_REMOVED)
		rv_event(
			s->events, RV_WARN, "given_up", RV_FIELDS(rv_field_str("dir", dir)),
			"the states that were taken back are removed: %s keeps those of an earlier rollback, of a round as late "
			"or later",
			dir);
}

/* Files first: when only they are gone, the next start finds the old epoch and does the same again. */
static enum rv_err forget_given_up(struct session *s, struct rv_errtext *et) {
	struct statestore_given_up given_up;
	RV_FAILPOINT("rollback.before");
	enum rv_err e = statestore_rewind(&s->store, s->next_epoch_round, s->member.epoch, &given_up, et);
	if (e != RV_OK)
		return rv_fail_context(et, e,
							   "the run was rolled back; remove what is in the way, and start this worker again");
	tell_given_up(s, &given_up);
	RV_FAILPOINT("rollback.rewound");
	s->member.epoch = s->next_epoch;
	RV_TRY(membership_store(s->opt->dir, &s->member, et));
	RV_FAILPOINT("rollback.stored");
	return RV_OK;
}

/* STOPPING lasts until everything is on disk and the good-bye was heard (or nobody listens). */
static bool is_stopped(struct session *s, int64_t now_us) {
	bool written = s->saved && jobs_idle(s->storage) && trainer_idle(s->trainer);
	return written && (control_client_reported(s->control) || now_us >= s->stop_by_us);
}

/* As the latest document says; their links to us may not be up yet. */
static uint64_t members_behind(const struct session *s) {
	const struct document *d = round_document(s->round);
	uint64_t set = 0;
	for (int i = 0; d && i < d->n_syncing; i++)
		set |= UINT64_C(1) << d->syncing[i].member;
	return set;
}

static void check_lingering(struct session *s, int64_t now_us) {
	uint64_t served = donor_bytes(s->donor);
	if (served != s->donor_bytes_seen)
		s->linger_until_us = now_us + SESSION_LINGER_US;
	s->donor_bytes_seen = served;
	uint64_t behind = s->sums.roster_set | donor_askers(s->donor) |
					  members_behind(s); /* one that catches up needs us until it is done */
	uint64_t others = behind & ~s->sums.done_set & ~(UINT64_C(1) << s->member.member);
	if (others == 0 || now_us >= s->linger_until_us)
		begin_stop(s, now_us);
}

static void take_signals(struct session *s, int64_t now_us) {
	bool any = false;
	while (rv_signals_take(s->signals_fd) != 0)
		any = true;
	if (!any)
		return;
	if (s->told_to_stop && now_us - s->signalled_us >= DELIBERATE_US) {
		session_fail(s, RV_E_CANCELLED, "stopped at once; the state of the last saved round is kept");
		return;
	}
	if (s->told_to_stop)
		return;
	s->told_to_stop = true;
	s->signalled_us = now_us;
	if (s->state != SESSION_STOPPING)
		begin_stop(s, now_us);
}

/* ---- the loop -------------------------------------------------------------------------------------------------------
 */

static int64_t earlier(int64_t a, int64_t b) {
	return a < b ? a : b;
}

static int64_t deadline_us(struct session *s, int64_t now_us) {
	int64_t at = control_client_deadline_us(s->control);
	if (!session_is_up(s))
		return at;
	at = earlier(at, round_deadline_us(s->round));
	at = earlier(at, allreduce_deadline_us(s->reduce));
	at = earlier(at, peers_deadline_us(meshlink_peers(s->mesh)));
	at = earlier(at, fetcher_deadline_us(s->fetcher));
	at = earlier(at, donor_deadline_us(s->donor, now_us));
	if (s->state == SESSION_STOPPING)
		at = earlier(at, s->stop_by_us > now_us ? s->stop_by_us : INT64_MAX);
	if (s->state == SESSION_LINGERING)
		at = earlier(at, s->linger_until_us);
	return earlier(at, now_us + PROGRESS_US);
}

static enum rv_err wait_and_move(struct session *s, struct rv_errtext *et) {
	struct pollfd fds[PEERS_MAX_FDS + 2];
	int n = session_is_up(s) ? peers_pollfds(meshlink_peers(s->mesh), fds, PEERS_MAX_FDS) : 0;
	fds[n] = (struct pollfd){.fd = s->signals_fd, .events = POLLIN};
	fds[n + 1] = (struct pollfd){.fd = s->addresses_fd, .events = POLLIN};
	int n_fds = n + 1 + (s->addresses_fd >= 0);
	int64_t now_us = rv_clock_monotonic_us(), at = deadline_us(s, now_us);
	int64_t timeout_us = at == INT64_MAX ? -1 : at > now_us ? at - now_us : 0;
	RV_TRY(http_client_poll(s->http, fds, n_fds, timeout_us, et));
	if (session_is_up(s))
		meshlink_handle(s->mesh, rv_clock_monotonic_us(), fds, n);
	return RV_OK;
}

static void run_once(struct session *s, int64_t now_us) {
	trainer_reap(s->trainer);
	jobs_reap(s->storage);
	session_poll_reduce(s, now_us);
	session_actions(s, now_us);
	session_poll_fetch(s, now_us);
	session_send_report(s, now_us);
	session_note_donations(s);
	meshlink_pump(s->mesh, now_us);
	if (s->state == SESSION_RUNNING)
		session_show_progress(s, now_us);
	if (s->state == SESSION_LINGERING) {
		check_lingering(s, now_us);
	} else if (s->state == SESSION_STOPPING && is_stopped(s, now_us)) {
		RV_FAILPOINT("leave.end");
		s->state = SESSION_ENDED;
	}
}

static enum rv_err loop(struct session *s, struct rv_errtext *et) {
	while (s->state != SESSION_ENDED) {
		if (s->member.joined && !session_is_up(s))
			RV_TRY(session_bring_up(s, et));
		RV_TRY(wait_and_move(s, et));
		int64_t now_us = rv_clock_monotonic_us();
		take_signals(s, now_us);
		session_poll_addresses(s, now_us);
		if (session_is_up(s) && s->state != SESSION_ENDED)
			run_once(s, now_us);
		control_client_tick(s->control, now_us);
	}
	if (s->fault != RV_OK && et)
		*et = s->fault_text;
	if (s->fault == RV_OK && s->exported && s->next_epoch == 0)
		session_tell_done(s);
	else if (s->fault == RV_OK && s->told_to_stop)
		stopped_event(s);
	return s->fault;
}

/* What a person must know before the program's last line, which says what is wrong. */
static void tell_place_kept(struct session *s) {
	if (s->joined_now && s->state == SESSION_JOINING)
		rv_event(s->events, RV_WARN, "place_kept", RV_FIELDS(rv_field_int("member", s->member.member)),
				 "the place in the run is not lost: this worker is member %u, and needs no link any more. When what "
				 "follows is mended: rivulet-worker --dir %s",
				 s->member.member, s->opt->dir);
}

/* *again: the run was rolled back, and the disk is ready for another start. */
static enum rv_err run_to_its_end(const struct worker_options *o, const char *link, int signals_fd, bool *again,
								  struct rv_errtext *et) {
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory to start");
	s->opt = o;
	s->signals_fd = signals_fd;
	s->lock_fd = s->addresses_fd = -1;
	s->started_us = rv_clock_monotonic_us();
	s->sums.eval_loss = NAN;
	enum rv_err e = session_open(s, link, et);
	if (e == RV_OK)
		e = loop(s, et);
	if (e == RV_OK && s->next_epoch != 0)
		e = forget_given_up(s, et);
	*again = e == RV_OK && s->next_epoch != 0 && !s->told_to_stop;
	if (e != RV_OK && e != RV_E_CANCELLED && s->events) {
		tell_place_kept(s);
		rv_event_in_log(s->events, RV_ERROR, "failed", RV_FIELDS(rv_field_str("error", rv_err_name(e))), "%s",
						et ? et->text : "");
	}
	if (e == RV_E_CANCELLED)
		return e; /* the process ends now: threads in the middle of a step are not waited for */
	session_release(s);
	free(s);
	return e;
}

enum rv_err session_run(const struct worker_options *o, const char *link, int signals_fd, struct rv_errtext *et) {
	bool again = true;
	enum rv_err e = RV_OK;
	while (e == RV_OK && again)
		e = run_to_its_end(o, link, signals_fd, &again, et);
	return e;
}
