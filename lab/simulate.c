/* simulate.c: a run as layer nodes over one line. */
#include "lab/simulate.h"

#include "base/assert.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { WARM_STEPS_MIN = 20 }; /* the steady state: from the second cycle, and this step, on */
enum { WAYS_BEFORE = 2, WAYS_AFTER = 5, WAYS_DDP = 2 };

static const double RATE_MIN = 1, RATE_MAX = 1e18;

static const char *const method_names[SIMULATE_METHODS] = {"ddp", "diloco", "streaming"};

const char *simulate_method_name(enum simulate_method m) {
	return method_names[m];
}

double simulate_overhead(int workers) {
	return workers > 2 ? 1.25 : 1.12;
}

/* ---- limits ---------------------------------------------------------------------------------------------------------
 */

static enum rv_err check_schedule(const struct simulate_run *r, struct rv_errtext *et) {
	if (r->steps_per_round < 1 || r->steps_per_round > SIMULATE_MAX_STEPS_PER_ROUND)
		return rv_fail(et, RV_E_RANGE, "steps-per-round = %d: must be in [1, %d]", r->steps_per_round,
					   SIMULATE_MAX_STEPS_PER_ROUND);
	if (r->method != SIMULATE_STREAMING)
		return RV_OK;
	int most = r->layers < r->steps_per_round ? r->layers : r->steps_per_round;
	if (r->fragments < 1 || r->fragments > most)
		return rv_fail(et, RV_E_RANGE,
					   "fragments = %d: must be in [1, %d], as a fragment is whole layers (%d) and each begins at "
					   "another step of the round (%d); try --fragments %d",
					   r->fragments, most, r->layers, r->steps_per_round, (most + 2) / 3);
	if (r->overlap_steps < 0 || r->overlap_steps >= r->steps_per_round)
		return rv_fail(et, RV_E_RANGE,
					   "overlap = %d: must be in [0, %d], below steps-per-round: a fragment is applied before it is "
					   "sent again; try --overlap %d",
					   r->overlap_steps, r->steps_per_round - 1, r->steps_per_round > 1);
	return RV_OK;
}

static enum rv_err check_line(const struct simulate_run *r, struct rv_errtext *et) {
	if (!(r->rate_bits_per_s >= RATE_MIN))
		return rv_fail(et, RV_E_RANGE, "rate = %g bit/s: must be at least 1 bit/s, such as 20mbit, or unlimited",
					   r->rate_bits_per_s);
	if (!(r->latency_s >= 0 && r->latency_s <= 3600))
		return rv_fail(et, RV_E_RANGE, "latency-ms = %g: must be in [0, 3600000]", r->latency_s * 1e3);
	if (!(r->sync_s >= 0 && r->sync_s <= 86400))
		return rv_fail(et, RV_E_RANGE, "sync-ms = %g: must be in [0, 86400000]", r->sync_s * 1e3);
	if (!(r->overhead >= 1 && r->overhead <= 10))
		return rv_fail(et, RV_E_RANGE, "overhead = %g: must be in [1, 10], line time per payload byte", r->overhead);
	return RV_OK;
}

enum rv_err simulate_check(const struct simulate_run *r, struct rv_errtext *et) {
	if (r->layers < 1 || r->layers > SIMULATE_MAX_LAYERS)
		return rv_fail(et, RV_E_RANGE, "layers = %d: must be in [1, %d]", r->layers, SIMULATE_MAX_LAYERS);
	if (!(r->n_params >= 1 && r->n_params <= 1e15))
		return rv_fail(et, RV_E_RANGE, "params = %g: must be in [1, 1e15], such as 124M or 1B", r->n_params);
	if (!(r->step_s >= 1e-9 && r->step_s <= 86400))
		return rv_fail(et, RV_E_RANGE, "step-time-ms = %g: must be in [1e-6, 86400000]", r->step_s * 1e3);
	if (r->workers < 0 || r->workers > SIMULATE_MAX_WORKERS)
		return rv_fail(et, RV_E_RANGE, "workers = %d: must be in [0, %d]", r->workers, SIMULATE_MAX_WORKERS);
	if (!(r->bits_per_value > 0 && r->bits_per_value <= 64))
		return rv_fail(et, RV_E_RANGE, "bits = %g: must be above 0 and at most 64 per value", r->bits_per_value);
	RV_TRY(check_schedule(r, et));
	return check_line(r, et);
}

/* ---- the schedule ---------------------------------------------------------------------------------------------------
 */

/* One fragment every `interval` steps, `fragments` of them in a cycle. */
struct schedule {
	int fragments;
	int64_t interval, cycle_steps;
};

static struct schedule schedule_of(const struct simulate_run *r) {
	struct schedule s = {.fragments = 1, .interval = 1, .cycle_steps = 1};
	if (r->method == SIMULATE_DDP)
		return s;
	s.fragments = r->method == SIMULATE_STREAMING ? r->fragments : 1;
	s.interval = (int64_t)rint((double)r->steps_per_round / s.fragments); /* 12.5: 12, as the published figures want */
	s.cycle_steps = s.interval * s.fragments;
	return s;
}

/* The fragment that step `step` sends, or -1. Fragment f is the layers f, f + fragments, ... (from 0). */
static int fragment_of_step(const struct schedule *s, int64_t step) {
	return step % s->interval == s->interval - 1 ? (int)(step / s->interval % s->fragments) : -1;
}

/* ---- the line -------------------------------------------------------------------------------------------------------
 */

static double link_factor(int workers) {
	return workers == 0 ? 1 : 2.0 * (workers - 1) / workers;
}

/* What one worker sends of the whole model in one exchange, without headers. */
static double payload_bits(const struct simulate_run *r) {
	return r->bits_per_value * r->n_params * link_factor(r->workers);
}

static double layer_bits(const struct simulate_run *r) {
	return payload_bits(r) / r->layers * r->overhead;
}

struct line {
	double layer_bits, rate_bits_per_s; /* rate may be INFINITY */
	double before_s, after_s, free_at_s;
};

static struct line line_of(const struct simulate_run *r) {
	struct line l = {.layer_bits = layer_bits(r), .rate_bits_per_s = r->rate_bits_per_s};
	if (r->workers == 1)
		return l;
	if (r->method == SIMULATE_DDP) {
		l.after_s = WAYS_DDP * r->latency_s;
	} else {
		l.before_s = WAYS_BEFORE * r->latency_s;
		l.after_s = WAYS_AFTER * r->latency_s + r->sync_s;
	}
	return l;
}

/* Returns when the exchange is complete. */
static double line_send(struct line *l, double ready_s, int n_layers) {
	double start_s = fmax(ready_s + l->before_s, l->free_at_s);
	l->free_at_s = start_s + n_layers * l->layer_bits / l->rate_bits_per_s;
	return l->free_at_s + l->after_s;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------
 */

struct state {
	const struct simulate_run *run;
	struct schedule schedule;
	struct line line;
	double now_s;
	/* Per layer: its last exchange completes at complete_s, and is waited for by step due (0: none under way). */
	double complete_s[SIMULATE_MAX_LAYERS];
	int64_t due[SIMULATE_MAX_LAYERS];
	int64_t last_due; /* no layer has a later one */
};

static void set_due(struct state *s, int layer, int64_t step, double complete_s) {
	s->last_due = step + 1 + s->run->overlap_steps;
	s->due[layer] = s->last_due;
	s->complete_s[layer] = complete_s;
}

static void forward(struct state *s, int64_t step, double node_s) {
	for (int l = 0; l < s->run->layers; l++) {
		if (s->due[l] == step && step > 0)
			s->now_s = fmax(s->now_s, s->complete_s[l]);
		s->now_s += node_s;
	}
}

static void backward(struct state *s, int64_t step, double node_s, int fragment) {
	for (int l = s->run->layers - 1; l >= 0; l--) {
		s->now_s += l > 0 ? 2 * node_s : node_s;
		if (fragment >= 0 && l % s->schedule.fragments == fragment)
			set_due(s, l, step, line_send(&s->line, s->now_s, 1));
	}
}

static void send_whole(struct state *s, int64_t step, int fragment) {
	int n_layers = 0;
	for (int l = fragment; l < s->run->layers; l += s->schedule.fragments)
		n_layers++;
	double complete_s = line_send(&s->line, s->now_s, n_layers);
	for (int l = fragment; l < s->run->layers; l += s->schedule.fragments)
		set_due(s, l, step, complete_s);
}

/* Whether some layer waits in this step; a whole fragment is waited for before the first layer. */
static bool wait_at_start(struct state *s, int64_t step) {
	bool waits = false;
	for (int l = 0; l < s->run->layers && step <= s->last_due; l++)
		if (s->due[l] == step && step > 0) {
			waits = true;
			if (!s->run->layerwise)
				s->now_s = fmax(s->now_s, s->complete_s[l]);
		}
	return waits && s->run->layerwise;
}

static void one_step(struct state *s, int64_t step) {
	const struct simulate_run *r = s->run;
	double node_s = r->step_s / (3 * r->layers - 1);
	int fragment = r->workers == 1 ? -1 : fragment_of_step(&s->schedule, step);
	bool by_layers = wait_at_start(s, step) || (r->layerwise && fragment >= 0);
	if (!by_layers) {
		s->now_s += r->step_s;
		if (fragment >= 0)
			send_whole(s, step, fragment);
		return;
	}
	forward(s, step, node_s);
	backward(s, step, node_s, fragment);
}

void simulate(const struct simulate_run *r, struct simulate_result *out) {
	RV_ASSERT(simulate_check(r, NULL) == RV_OK);
	struct state s = {.run = r, .schedule = schedule_of(r), .line = line_of(r)};
	int64_t cycle = s.schedule.cycle_steps;
	int64_t warm = (WARM_STEPS_MIN + cycle - 1) / cycle * cycle, measured = 2 * warm;
	double since_s = 0;
	for (int64_t step = 0; step < warm + measured; step++) {
		if (step == warm)
			since_s = s.now_s;
		one_step(&s, step);
	}
	out->step_wall_s = fmax((s.now_s - since_s) / (double)measured, r->step_s);
	out->utilisation = r->step_s / out->step_wall_s;
	double headers = r->workers == 0 ? 1 : SIMULATE_SENT_PER_PAYLOAD;
	out->sent_per_step = payload_bits(r) * headers / 8 / (double)cycle;
}

/* ---- the inverse ----------------------------------------------------------------------------------------------------
 */

static double utilisation_at(struct simulate_run r, double rate_bits_per_s) {
	struct simulate_result result;
	r.rate_bits_per_s = rate_bits_per_s;
	simulate(&r, &result);
	return result.utilisation;
}

/* More line never makes a run slower, so bisection finds the threshold; in log space, as rates span decades. */
enum rv_err simulate_solve_rate(const struct simulate_run *r, double utilisation, double *rate_bits_per_s,
								struct rv_errtext *et) {
	RV_ASSERT(utilisation > 0 && utilisation < 1);
	double best = utilisation_at(*r, RATE_MAX);
	if (best < utilisation)
		return rv_fail(
			et, RV_E_RANGE,
			"utilisation = %g cannot be reached on any line: latency and the fixed cost of an exchange leave "
			"%.6g; raise --steps-per-round%s",
			utilisation, best, r->method == SIMULATE_STREAMING ? " or --overlap" : "");
	double low = log(RATE_MIN), high = log(RATE_MAX);
	while (high - low > 1e-9) {
		double middle = (low + high) / 2;
		if (utilisation_at(*r, exp(middle)) >= utilisation)
			high = middle;
		else
			low = middle;
	}
	*rate_bits_per_s = exp(high);
	return RV_OK;
}
