/* line.c: see line.h. */
#include "lab/report/line.h"

#include "lab/methods/methods.h"
#include "lab/simulate/simulate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS_USUAL = 12 };

void report_line_text(const struct report_line *l, char out[REPORT_LINE_TEXT_BYTES]) {
	static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
	double rate = l->rate_bits_per_s;
	int unit = 0;
	for (; isfinite(rate) && rate >= 1000 && unit < 4; unit++)
		rate /= 1000;
	if (isfinite(rate))
		snprintf(out, REPORT_LINE_TEXT_BYTES, "%.4g %s, %.4g ms one way", rate, units[unit], l->latency_s * 1e3);
	else
		snprintf(out, REPORT_LINE_TEXT_BYTES, "no limit, %.4g ms one way", l->latency_s * 1e3);
}

/* Exchanges have a whole round to hide behind. */
static bool is_late(const struct lab_method *m, const struct report_facts *f) {
	const char *updates = report_fact(f, "updates");
	return (m && m->updates != UPDATES_WAITED) || (updates && updates[0] && strcmp(updates, "waited") != 0);
}

static int clamp(double v, int low, int high) {
	return v < low ? low : v > high ? high : (int)v;
}

/* Method and schedule. */
static void put_schedule(struct simulate_run *s, const struct run_record *r, const struct report_facts *f) {
	int fragments = clamp(report_fact_number(f, "fragments", 1), 1, SIMULATE_MAX_LAYERS);
	int overlap = clamp(report_fact_number(f, "overlap-steps", 0), 0, (int)r->steps_per_round);
	const struct lab_method *m = lab_method_find(r->method);
	s->method = m && !m->averages ? SIMULATE_DDP : SIMULATE_DILOCO;
	s->steps_per_round = (int)r->steps_per_round;
	s->layers = clamp(report_fact_number(f, "n-layer", LAYERS_USUAL), fragments, SIMULATE_MAX_LAYERS);
	s->layerwise = s->method == SIMULATE_DDP;
	if (is_late(m, f))
		overlap = s->steps_per_round;
	if (s->method == SIMULATE_DDP || (fragments == 1 && overlap == 0))
		return;
	s->method = SIMULATE_STREAMING;
	s->fragments = fragments;
	s->overlap_steps = overlap;
}

/* From the bytes that were counted: whatever the codec's headers and scales take is in them. */
static double bits_per_value(const struct simulate_run *s, const struct run_record *r, const struct record_totals *t) {
	double share = r->workers > 1 ? 2.0 * (r->workers - 1) / r->workers : 1;
	double exchanges = s->method == SIMULATE_DDP         ? (double)t->steps
					   : s->method == SIMULATE_STREAMING ? (double)t->rounds / s->fragments
														 : (double)t->rounds;
	return r->workers > 1 ? t->formula_bytes * 8 / exchanges / share / (double)r->n_params : 32;
}

/* Of an inner step: the reader's, or as measured; where the run had a model of its workers' speeds,
 * what its rounds took by it, in which slow workers are waited for. */
static double step_of(const struct report_line *l, const struct record_totals *t, const struct report_facts *f) {
	double steps = (double)t->steps, by_model = t->modelled_s / steps;
	if (!(t->modelled_s > 0))
		return l->step_s > 0 ? l->step_s : t->compute_s / steps;
	double at_full_speed = report_fact_number(f, "step-ms", 0) * 1e-3;
	return l->step_s > 0 && at_full_speed > 0 ? l->step_s * by_model / at_full_speed : by_model;
}

struct report_timing report_line_apply(const struct report_line *l, const struct run_record *r,
									   const struct record_totals *t, const struct report_facts *f) {
	struct report_timing none = {NAN, NAN};
	double step_s = step_of(l, t, f);
	if (t->steps == 0 || r->n_params == 0 || r->steps_per_round > SIMULATE_MAX_STEPS_PER_ROUND)
		return none;
	struct simulate_run s = {.n_params = (double)r->n_params,
							 .step_s = step_s,
							 .workers = r->workers > 0 ? (int)r->workers : 1,
							 .rate_bits_per_s = l->rate_bits_per_s,
							 .latency_s = l->latency_s,
							 .overhead = simulate_overhead((int)r->workers),
							 .sync_s = l->sync_s};
	struct simulate_result result;
	put_schedule(&s, r, f);
	s.bits_per_value = bits_per_value(&s, r, t);
	if (simulate_check(&s, NULL) != RV_OK)
		return none;
	simulate(&s, &result);
	return (struct report_timing){result.step_wall_s, result.utilisation};
}
