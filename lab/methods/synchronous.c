/* synchronous.c: see synchronous.h. */
#include "lab/methods/synchronous.h"

#include "base/clock.h"
#include "lab/methods/lines.h"

#include <stdlib.h>
#include <string.h>

/* The workers in a round's averaging, and those that were in time for it. */
struct attendance {
	bool takes_part[LAB_MAX_WORKERS], in_time[LAB_MAX_WORKERS];
	int n;
};

/* Returns the workers that are in time and not drawn to miss the round; if there are none, all that
 * are in time. */
static struct attendance attendance_of(const struct lab_run *r, const struct pace_round *pace) {
	struct attendance a = {.n = 0};
	(void)averaging_participants(&r->cfg, r->rounds_done, a.takes_part);
	const struct lines_round round = lines_round_of(r, r->rounds_done);
	lines_leave_out(&r->cfg, &round, a.takes_part);
	memcpy(a.in_time, pace->in_time, sizeof a.in_time);
	for (int i = 0; i < r->n_replicas; i++) {
		a.takes_part[i] = a.takes_part[i] && a.in_time[i];
		a.n += a.takes_part[i];
	}
	if (a.n > 0)
		return a;
	memcpy(a.takes_part, a.in_time, sizeof a.takes_part);
	a.n = pace->n_in_time;
	return a;
}

/* Lets replica i, which missed the round, adopt the outer step as a real worker that comes late
 * does (run.late). If it had not done its steps, it goes on from those it has; if it had, it begins
 * a contribution that includes this one. `old`: theta before the outer step. */
static void adopt_late(struct lab_run *r, int i, bool was_in_time, const float *old) {
	struct participant *p = &r->participants[i];
	bool keep = r->cfg.run.late == RUN_LATE_KEEP;
	(void)participant_adopt(p, &r->global, old, keep ? PARTICIPANT_KEEP : PARTICIPANT_DISCARD);
	if (was_in_time)
		p->steps_done = 0;
}

/* Makes the outer step of round r->global.round, with r->reduced; the replicas adopt it. */
static enum rv_err step_and_adopt(struct lab_run *r, const struct attendance *who, struct rv_errtext *et) {
	size_t bytes = r->global.cfg.n * sizeof(float);
	bool some_missed = who->n < r->n_replicas;
	float *old = some_missed ? malloc(bytes) : NULL;
	if (some_missed && !old)
		return rv_fail(et, RV_E_NOMEM, "no memory to keep %zu parameters over an outer step", r->global.cfg.n);
	if (old)
		memcpy(old, r->global.theta, bytes);
	enum rv_err e = averaging_step(r, et);
	for (int i = 0; e == RV_OK && i < r->n_replicas; i++) {
		if (who->takes_part[i])
			(void)participant_adopt(&r->participants[i], &r->global, NULL, PARTICIPANT_ADOPT);
		else
			adopt_late(r, i, who->in_time[i], old);
	}
	free(old);
	return e;
}

/* Applies the outer step that the last round left under way, where its overlap ends. */
static enum rv_err end_overlap(struct lab_run *r, struct rv_errtext *et) {
	struct attendance all = {.n = r->n_replicas};
	uint64_t begin = r->rounds_done * (uint64_t)r->cfg.run.steps_per_round;
	uint64_t overlap = (uint64_t)run_config_overlap(&r->cfg.run);
	if (r->global.round == r->rounds_done)
		return RV_OK;
	RV_TRY(averaging_train_to(r, begin + overlap, et));
	for (int i = 0; i < r->n_replicas; i++)
		all.takes_part[i] = true; /* overlap, and missing a round, exclude each other */
	return step_and_adopt(r, &all, et);
}

/* Returns the modelled time of the exchange of the round under way. */
static int64_t exchange_us(const struct lab_run *r, const bool *takes_part) {
	const struct lines_round round = lines_round_of(r, r->rounds_done);
	struct contribution_form forms[LAB_MAX_WORKERS];
	lines_forms(&r->cfg, &round, &r->global.cfg, takes_part, forms);
	return (int64_t)(lines_exchange_ms(&r->cfg, &round, &r->global.cfg, takes_part, forms) * 1e3);
}

enum rv_err synchronous_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	struct pace_round pace;
	uint64_t kept_steps[LAB_MAX_WORKERS];
	for (int i = 0; i < r->n_replicas; i++)
		kept_steps[i] = lab_run_kept_steps(r, i);
	pace_of_round(&r->cfg, kept_steps, &pace);
	const struct attendance who = attendance_of(r, &pace);
	RV_TRY(end_overlap(r, et));
	RV_TRY(averaging_train_paced(r, &pace, et));
	RV_TRY(averaging_encode(r, out, et));
	int64_t started_us = rv_clock_monotonic_us();
	out->participants = who.n;
	out->modelled_us = (int64_t)(pace.duration_ms * 1e3);
	out->modelled_exchange_us = exchange_us(r, who.takes_part);
	RV_TRY(averaging_reduce(r, who.takes_part, et));
	out->bytes = averaging_bytes(r, out->participants);
	bool last = r->rounds_done + 1 == (uint64_t)r->cfg.run.rounds;
	if (run_config_overlap(&r->cfg.run) == 0 || last)
		RV_TRY(step_and_adopt(r, &who, et));
	out->reduce_us = rv_clock_monotonic_us() - started_us;
	return RV_OK;
}
