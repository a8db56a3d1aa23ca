/* rest.c: a pause that lasts gives back the memory, of this computer and of its GPUs. The session
 * saves and ends, within the process; the page stays, and the next session loads the state again
 * once the worker may go on. */
#include "worker/session/internal.h"

#include "kernels/gate.h"

static bool may_rest(const struct session *s) {
	return s->opt->free_memory_after >= 0 && s->local->allowed.core.why != ALLOW_WORKS;
}

static bool is_due(struct session *s, int64_t now_us) {
	return session_core_phase(s->core) == SESSION_RUNNING && session_core_is_paused(s->core) &&
		   !session_core_finishes(s->core) && !s->signals.asked && !s->restarts &&
		   now_us - s->local->paused_us >= s->opt->free_memory_after * RV_US_PER_S;
}

/* The step under way is thrown away: to finish it would take the processors for its time. */
static void begin(struct session *s, int64_t now_us) {
	rv_event(s->events, RV_INFO, "rests", RV_NO_FIELDS,
			 "It stays paused: its memory is free for others until it goes on.");
	s->restarts = s->local->rests = true;
	trainer_abandon(s->trainer);
	gate_hold(false);
	session_core_stop(s->core, now_us);
}

void session_turn_rest(struct session *s, int64_t now_us) {
	struct session_local *l = s->local;
	if (!may_rest(s)) {
		l->rests = false;
		l->paused_us = 0;
		return;
	}
	if (l->paused_us == 0)
		l->paused_us = now_us;
	if (session_is_up(s)) {
		if (is_due(s, now_us))
			begin(s, now_us);
		return;
	}
	l->rests = s->history.was_paused = true;
	if (s->member.joined)
		session_ask_heldout(s, now_us); /* once, for its page */
}
