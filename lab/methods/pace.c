/* pace.c: see pace.h. */
#include "lab/methods/pace.h"

#include "base/order.h"

#include <math.h>

#define SLACK       1e-9 /* in steps: rounding may leave a whole number this far below */
#define SPEED_LEAST 0.001
#define SPEED_MOST  1000.0

static double speed_of(const struct lab_config *c, int worker) {
	return c->speeds[worker] > 0 ? c->speeds[worker] : 1;
}

static double fastest(const struct lab_config *c) {
	double most = 0;
	for (int i = 0; i < c->workers; i++)
		most = fmax(most, speed_of(c, i));
	return most;
}

/* Returns H_i. */
static uint64_t pace_local_steps(const struct lab_config *c, int worker) {
	double h = (double)c->run.steps_per_round, own = h;
	if (c->dylu)
		own = h * speed_of(c, worker) / fastest(c);
	if (c->run.round_ms > 0 && c->step_ms > 0)
		own = fmin(own, (double)c->run.round_ms * speed_of(c, worker) / c->step_ms);
	own = floor(own + SLACK);
	return own < 1 ? 1 : (uint64_t)own;
}

/* Returns when the round closes, of workers that are done at these times. */
static double closing_ms(const struct lab_config *c, const double *done_ms) {
	int n = c->workers, least = c->run.min_workers < n ? (int)c->run.min_workers : n;
	double last = rv_nth(done_ms, n, n - 1), patient = rv_nth(done_ms, n, least - 1) + (double)c->run.grace_ms;
	return last < patient ? last : patient;
}

static uint64_t possible_steps(const struct lab_config *c, int worker, double ms, uint64_t wanted) {
	double possible = floor(ms * speed_of(c, worker) / c->step_ms + SLACK);
	return possible < (double)wanted ? (uint64_t)possible : wanted;
}

void pace_of_round(const struct lab_config *c, const uint64_t *kept_steps, struct pace_round *out) {
	double done_ms[LAB_MAX_WORKERS];
	for (int i = 0; i < c->workers; i++) {
		uint64_t own = pace_local_steps(c, i);
		out->steps[i] = own > kept_steps[i] ? own - kept_steps[i] : 0;
		done_ms[i] = (double)out->steps[i] * c->step_ms / speed_of(c, i);
	}
	out->duration_ms = closing_ms(c, done_ms);
	out->n_in_time = 0;
	for (int i = 0; i < c->workers; i++) {
		out->in_time[i] = done_ms[i] <= out->duration_ms;
		out->n_in_time += out->in_time[i];
		if (!out->in_time[i])
			out->steps[i] = possible_steps(c, i, out->duration_ms, out->steps[i]);
	}
}

enum rv_err pace_parse_speeds(const char *text, double speeds[LAB_MAX_WORKERS], struct rv_errtext *et) {
	int n = 0;
	for (const char *at = text; *at;) {
		char *end;
		double v = strtod(at, &end);
		if (end == at || (*end != '\0' && *end != ':' && *end != ','))
			return rv_fail(et, RV_E_INVALID, "speeds = %.80s: value %d is not a number; as in 1:1:0.5", text, n + 1);
		if (!(v >= SPEED_LEAST && v <= SPEED_MOST))
			return rv_fail(et, RV_E_RANGE, "speeds = %.80s: value %d is %g, must be in [%g, %g]", text, n + 1, v,
						   SPEED_LEAST, SPEED_MOST);
		if (n == LAB_MAX_WORKERS)
			return rv_fail(et, RV_E_RANGE, "speeds: more than %d values", LAB_MAX_WORKERS);
		speeds[n++] = v;
		at = *end ? end + 1 : end;
		if (*end && !*at)
			return rv_fail(et, RV_E_INVALID, "speeds = %.80s: value %d is missing", text, n + 1);
	}
	for (int i = n; i < LAB_MAX_WORKERS; i++)
		speeds[i] = n > 0 ? speeds[i % n] : 1;
	return RV_OK;
}
