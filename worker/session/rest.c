/* rest.c: a pause that lasts gives back the memory, of this computer and of its GPUs. The session
 * saves and ends, within the process; the page stays, and the next session loads the state again
 * once the worker may go on. */
#include "worker/session/internal.h"

#include "kernels/gate.h"

/* Returns the seconds of a pause for which the worker keeps its memory; -1: for all of it. */
static int64_t keeps_for_s(const struct session *s) {
	const int64_t any = s->opt->free_memory_after, gpu = s->local->on_gpu ? s->opt->free_gpu_memory_after : -1;
	if (any < 0 || gpu < 0)
		return any < 0 ? gpu : any;
	return gpu < any ? gpu : any;
}

static bool may_rest(const struct session *s) {
	return keeps_for_s(s) >= 0 && s->local->allowed.core.why != ALLOW_WORKS;
}

static bool is_due(struct session *s, int64_t now_us) {
	return session_core_phase(s->core) == SESSION_RUNNING && session_core_is_paused(s->core) &&
		   !session_core_finishes(s->core) && !s->signals.asked && !s->restarts &&
		   now_us - s->local->paused_us >= keeps_for_s(s) * RV_US_PER_S;
}

/* The step under way is thrown away: to finish it would take the processors for its time. A GPU is
 * free within two seconds of a pause, whatever the disk does: what its state's copy may take of
 * them. */
static void begin(struct session *s, int64_t now_us) {
	enum { COPY_US = 3 * RV_US_PER_S / 2 };
	rv_event(s->events, RV_INFO, "rests", RV_NO_FIELDS,
			 "It stays paused: its memory is free for others until it goes on.");
	s->restarts = s->local->rests = true;
	trainer_abandon(s->trainer);
	if (s->local->on_gpu)
		trainer_hurry(s->trainer, now_us + COPY_US);
	gate_hold(false);
	session_core_stop(s->core, now_us);
}

/* Frees the trainer's memory before the disk has what was copied of it. */
static void give_back(struct session *s) {
	if (session_core_phase(s->core) == SESSION_LEAVING && trainer_idle(s->trainer))
		trainer_give_back(s->trainer);
}

void session_turn_rest(struct session *s, int64_t now_us) {
	struct session_local *l = s->local;
	if (s->trainer)
		l->on_gpu = device_is_gpu(trainer_device_choice(s->trainer));
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
		if (l->rests)
			give_back(s);
		return;
	}
	l->rests = s->history.was_paused = true;
	if (s->member.joined)
		session_ask_heldout(s, now_us); /* once, for its page */
}
