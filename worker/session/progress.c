/* progress.c: the line that people watch while a worker trains. */
#include "worker/session/internal.h"

#include "base/round_number.h"

#include "worker/session/progress_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Returns what is going on other than training. */
static const char *phase_note(const struct session *s, const struct trainer_progress *p) {
	switch (round_phase(session_round(s))) {
	case WORKER_READY:
		return p->step_since_us > 0 ? "" : "  waiting for the others";
	case WORKER_REDUCING:
	case WORKER_VOTED:
		return "  averaging";
	default:
		return "";
	}
}

static bool show_fetch(struct session *s, int64_t now_us) {
	uint64_t done, total;
	fetcher_progress(s->fetcher, &done, &total);
	if (round_phase(session_round(s)) != WORKER_SYNCING || total == 0 || done == total)
		return false;
	rv_progress(s->events, now_us, "fetching", done, total, "byte", "the run's state, from peers");
	return true;
}

void session_show_progress(struct session *s, int64_t now_us) {
	struct trainer_progress p = trainer_progress(s->trainer);
	uint64_t h = (uint64_t)s->member.config.steps_per_round, rounds = (uint64_t)s->member.config.rounds;
	char note[160], loss[32] = "";
	if (session_core_missing_workers(s->core) > 0) {
		rv_progress_clear(s->events); /* the event states it; a bar would stand still */
		return;
	}
	if (show_fetch(s, now_us))
		return;
	if (isfinite(p.loss))
		snprintf(loss, sizeof loss, "  loss %.3f", (double)p.loss);
	char gave[48] = "";
	if (session_bytes_donated(s) > 0)
		snprintf(gave, sizeof gave, ", gave %.1f MB of state and text", (double)session_bytes_donated(s) * 1e-6);
	snprintf(note, sizeof note, "round %" PRIu64 "/%" PRIu64 "%s%s  sent %.1f MB%s",
			 p.round < rounds ? round_number(p.round) : rounds, rounds, loss, phase_note(s, &p),
			 (double)session_bytes_sent(s) * 1e-6, gave);
	const struct document *d = round_document(session_round(s));
	uint64_t own = round_round(session_round(s));
	const struct progress_view v =
		progress_view_of(round_phase(session_round(s)), own, d ? d->round : own, p.global_step, h, rounds);
	rv_progress(s->events, now_us, v.label, v.done, v.total, v.unit, note);
}
