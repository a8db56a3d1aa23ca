/* simulate.c: a run as layer nodes over one line. */
#include "lab/simulate/simulate.h"

#include "base/assert.h"

#include <math.h>
#include <stddef.h>

enum { WAYS_BEFORE = 2, WAYS_AFTER = 5, WAYS_DDP = 2 };

static const double RATE_MIN = 1, RATE_MAX = 1e18;

static const char *const method_names[SIMULATE_METHODS] = {"ddp", "diloco", "streaming", "gather"};

const char *simulate_method_name(enum simulate_method m) {
	return method_names[m];
}

double simulate_overhead(int workers) {
	return workers > 2 ? 1.25 : 1.12;
}

/* ---- limits ---- */

static enum rv_err check_schedule(const struct simulate_run *r, struct rv_errtext *et) {
	if (r->steps_per_round < 1 || r->steps_per_round > SIMULATE_MAX_STEPS_PER_ROUND)
		return rv_fail(et, RV_E_RANGE, "steps-per-round = %d: must be in [1, %d]", r->steps_per_round,
					   SIMULATE_MAX_STEPS_PER_ROUND);
	const bool streaming = r->method == SIMULATE_STREAMING;
	if (streaming && (r->fragments < 1 || r->fragments > r->layers))
		return rv_fail(et, RV_E_RANGE,
					   "fragments = %d: must be in [1, %d], as a fragment is whole layers; try --fragments %d",
					   r->fragments, r->layers, (r->layers + 2) / 3);
	const int most = !streaming ? 0 : r->layerwise ? r->steps_per_round - 1 : r->steps_per_round;
	if (r->overlap_steps < 0 || r->overlap_steps > most)
		return rv_fail(et, RV_E_RANGE,
					   "overlap-steps = %d: must be in [0, %d], as steps during the exchange of a fragment (streaming) "
					   "belong to the next round (steps-per-round = %d)",
					   r->overlap_steps, most, r->steps_per_round);
	return RV_OK;
}

static enum rv_err check_line(const struct simulate_run *r, struct rv_errtext *et) {
	if (!(r->rate_bits_per_s >= RATE_MIN))
		return rv_fail(et, RV_E_RANGE, "rate = %g bit/s: must be at least 1 bit/s, such as 20mbit, or unlimited",
					   r->rate_bits_per_s);
	if (!(r->down_bits_per_s == 0 || r->down_bits_per_s >= RATE_MIN))
		return rv_fail(et, RV_E_RANGE, "rate-down = %g bit/s: must be at least 1 bit/s, such as 500mbit, or unlimited",
					   r->down_bits_per_s);
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
	if (!(r->mean_bits_per_value >= 0 && r->mean_bits_per_value <= 64))
		return rv_fail(et, RV_E_RANGE, "mean-bits = %g: must be at most 64 per value", r->mean_bits_per_value);
	RV_TRY(check_schedule(r, et));
	return check_line(r, et);
}

/* ---- the schedule ---- */

static int steps_of_round(const struct simulate_run *r) {
	return r->method == SIMULATE_DDP ? 1 : r->steps_per_round;
}

/* Returns the rounds until every layer was exchanged once; round i exchanges fragment i mod
 * this. */
static int rounds_of_cycle(const struct simulate_run *r) {
	return r->method == SIMULATE_STREAMING ? r->fragments : 1;
}

/* ---- the line ---- */

/* Returns what one worker sends of the whole model in one exchange, in bits, without headers. */
static double payload_bits(const struct simulate_run *r) {
	const double mean = r->mean_bits_per_value > 0 ? r->mean_bits_per_value : r->bits_per_value;
	if (r->workers == 0 || (r->method == SIMULATE_GATHER && r->workers > 1))
		return r->bits_per_value * r->n_params;
	return (r->bits_per_value + mean) * r->n_params * (r->workers - 1) / r->workers;
}

/* Returns the time that an exchange of one layer takes the line. */
static double layer_s(const struct simulate_run *r) {
	const double down = r->down_bits_per_s > 0 ? r->down_bits_per_s : r->rate_bits_per_s;
	const double bits = payload_bits(r) / r->layers * r->overhead;
	if (r->method == SIMULATE_GATHER)
		return bits / r->rate_bits_per_s + fmax(r->workers - 1, 0) * bits / down;
	return bits / fmin(r->rate_bits_per_s, down);
}

struct line {
	double layer_s; /* 0: unlimited */
	double before_s, after_s, free_at_s;
};

static struct line line_of(const struct simulate_run *r) {
	struct line l = {.layer_s = layer_s(r)};
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

/* Enqueues an exchange and returns when it is complete. */
static double line_send(struct line *l, double ready_s, int n_layers) {
	double start_s = fmax(ready_s + l->before_s, l->free_at_s);
	l->free_at_s = start_s + n_layers * l->layer_s;
	return l->free_at_s + l->after_s;
}

/* ---- rounds ---- */

struct state {
	const struct simulate_run *run;
	struct line line;
	double now_s;
	/* Completion time of each layer's last exchange; not layerwise: [0], of the whole fragment. */
	double complete_s[SIMULATE_MAX_LAYERS];
};

static double node_s(const struct simulate_run *r) {
	return r->step_s / (3 * r->layers - 1);
}

/* Computes a forward pass, which waits only for incomplete exchanges. */
static void forward(struct state *s) {
	for (int l = 0; l < s->run->layers; l++)
		s->now_s = fmax(s->now_s, s->complete_s[l]) + node_s(s->run);
}

static void backward(struct state *s, int fragment) {
	for (int l = s->run->layers - 1; l >= 0; l--) {
		s->now_s += (l > 0 ? 2 : 1) * node_s(s->run);
		if (l % rounds_of_cycle(s->run) == fragment)
			s->complete_s[l] = line_send(&s->line, s->now_s, 1);
	}
}

/* Computes a round: the steps ahead, the forward that waits for the previous round, and the rest
 * until the last backward, which sends. */
static void layerwise_round(struct state *s, int fragment) {
	const struct simulate_run *r = s->run;
	s->now_s += r->overlap_steps * r->step_s;
	forward(s);
	s->now_s += (steps_of_round(r) - r->overlap_steps - 1) * r->step_s;
	backward(s, fragment);
}

static void whole_round(struct state *s, int fragment) {
	const struct simulate_run *r = s->run;
	int n_fragments = rounds_of_cycle(r), n_layers = (r->layers - fragment + n_fragments - 1) / n_fragments;
	s->now_s = fmax(s->now_s + r->overlap_steps * r->step_s, s->complete_s[0]);
	s->now_s += (steps_of_round(r) - r->overlap_steps) * r->step_s;
	s->complete_s[0] = line_send(&s->line, s->now_s, n_layers);
}

static void one_round(struct state *s, int fragment) {
	if (s->run->layerwise)
		layerwise_round(s, fragment);
	else
		whole_round(s, fragment);
}

void simulate(const struct simulate_run *r, struct simulate_result *out) {
	RV_ASSERT(simulate_check(r, NULL) == RV_OK);
	struct state s = {.run = r, .line = line_of(r)};
	const int rounds = rounds_of_cycle(r);
	const double steps = (double)rounds * steps_of_round(r), headers = r->workers == 0 ? 1 : SIMULATE_SENT_PER_PAYLOAD;
	for (int round = 0; round < rounds; round++)
		one_round(&s, round);
	double since_s = s.now_s;
	for (int round = 0; round < rounds; round++)
		one_round(&s, round);
	out->step_wall_s = fmax((s.now_s - since_s) / steps, r->step_s);
	out->utilisation = r->step_s / out->step_wall_s;
	out->sent_per_step = payload_bits(r) * headers / 8 / steps;
}

/* ---- the inverse ---- */

static double utilisation_at(struct simulate_run r, double rate_bits_per_s) {
	struct simulate_result result;
	r.rate_bits_per_s = rate_bits_per_s;
	simulate(&r, &result);
	return result.utilisation;
}

/* Finds the threshold by bisection, as more bandwidth never makes a run slower; in log space, as
 * rates span decades. */
enum rv_err simulate_solve_rate(const struct simulate_run *r, double utilisation, double *rate_bits_per_s,
								struct rv_errtext *et) {
	RV_ASSERT(utilisation > 0 && utilisation < 1);
	if (r->workers == 1)
		return rv_fail(et, RV_E_INVALID,
					   "workers = 1: one worker does not exchange and needs no line; try --workers 2");
	double best = utilisation_at(*r, RATE_MAX);
	if (best < utilisation)
		return rv_fail(
			et, RV_E_RANGE,
			"utilisation = %g cannot be reached on any line: latency and the fixed cost of an exchange leave "
			"%.6g; raise --steps-per-round%s",
			utilisation, best, r->method == SIMULATE_STREAMING ? " or --overlap-steps" : "");
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
