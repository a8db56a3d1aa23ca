/* sim_large.c: universes of up to a thousand workers: a few rounds in rows, with deaths of single
 * workers and of many, partitions of many from the others, withheld data, and a coordinator that
 * dies in between. Vectors are short: what such a universe costs is links and messages. */
#include "sim.h"

#include "base/rng.h"

#include <string.h>

struct sim_options sim_options_large(uint64_t seed, int n_workers) {
	enum { STREAM = 50, CHUNK = 256 };
	struct rv_rng r = rv_rng_of(seed, STREAM);
	struct sim_options o = sim_options_plain();
	o.seed = seed;
	o.n_workers = n_workers;
	o.min_workers = (uint32_t)n_workers / 2;
	o.rounds = 3 + rv_rng_below(&r, 2);
	o.steps_per_round = 1 + rv_rng_below(&r, 2);
	o.overlap_steps = rv_rng_below(&r, 2);
	o.snapshot_every = 2;
	o.chunk_elems = CHUNK;
	o.n_params = CHUNK * (12 + rv_rng_below(&r, 25));
	o.codec = rv_rng_below(&r, 4) == 0 ? &codec_fp32 : &codec_int8;
	o.clip = rv_rng_below(&r, 2) ? 1.5 : 0;
	o.loud = rv_rng_below(&r, 2) == 0;
	o.agrees = o.clip > 0 && o.loud;
	o.weight_by_tokens = rv_rng_below(&r, 2) == 0;
	o.equal_ownership = rv_rng_below(&r, 2) == 0;
	o.mean_feedback = rv_rng_below(&r, 2) == 0 ? 0.9f : 0;
	o.step_us = 200 * SIM_MS;
	o.slowest_bytes_per_s = 1e6;
	o.fault_interval_us = n_workers < 500 ? 2 * SIM_S : 4 * SIM_S; /* each death makes all begin an attempt */
	o.safety_us = 20 * (int64_t)SIM_S;
	return o;
}

/* ---- what goes wrong ---- */

static struct sim_fault *append(struct sim_plan *p, enum sim_fault_kind kind) {
	if (p->n == SIM_MAX_FAULTS)
		return NULL;
	struct sim_fault *f = &p->faults[p->n];
	*f = (struct sim_fault){.kind = (uint8_t)kind};
	p->chosen[p->n++] = true;
	return f;
}

static uint16_t draw_worker(struct rv_rng *r, const struct sim_options *o) {
	return (uint16_t)rv_rng_below(r, (uint64_t)o->n_workers);
}

/* Two or three groups of neighbours: about as many as a row or two have. */
static uint64_t draw_groups(struct rv_rng *r, const struct sim_options *o) {
	const uint64_t groups = (uint64_t)sim_groups(o->n_workers);
	uint64_t set = 1ull << rv_rng_below(r, groups);
	set |= 1ull << rv_rng_below(r, groups);
	return set | 1ull << rv_rng_below(r, groups);
}

static void draw_details(struct rv_rng *r, const struct sim_options *o, struct sim_fault *f) {
	f->host = draw_worker(r, o);
	f->peer = draw_worker(r, o);
	f->lasts_us = SIM_S / 2 + (int64_t)rv_rng_below(r, 8 * SIM_S);
	if (f->kind == FAULT_PARTITION || f->kind == FAULT_TOO_FEW)
		f->set = draw_groups(r, o);
	if (f->kind == FAULT_COORDINATOR)
		f->host = SIM_COORDINATOR;
	if (f->kind == FAULT_SPEED || f->kind == FAULT_SLOW_LINE)
		f->amount = 0.3 + rv_rng_double(r);
	if (f->kind == FAULT_POSTHUMOUS)
		f->lasts_us += SIM_S;
}

static void plan_at_times(struct sim_plan *p, const struct sim_options *o, struct rv_rng *r) {
	static const enum sim_fault_kind kinds[] = {
		FAULT_KILL,        FAULT_KILL,  FAULT_POWER_CUT, FAULT_POWER_CUT, FAULT_FREEZE,     FAULT_FREEZE,
		FAULT_LINK,        FAULT_LINK,  FAULT_PARTITION, FAULT_PARTITION, FAULT_TOO_FEW,    FAULT_ONE_WAY,
		FAULT_PAIR,        FAULT_LEAVE, FAULT_SLOW_LINE, FAULT_SPEED,     FAULT_POSTHUMOUS, FAULT_WIPE,
		FAULT_COORDINATOR, FAULT_PAIR,  FAULT_KILL};
	enum { KINDS = sizeof kinds / sizeof kinds[0] };
	int64_t at = 3 * (int64_t)SIM_S; /* most have joined */
	while (at < o->safety_us) {
		struct sim_fault *f = append(p, kinds[rv_rng_below(r, KINDS)]);
		if (f == NULL)
			return;
		f->at_us = at;
		draw_details(r, o, f);
		at += 1 + (int64_t)rv_rng_below(r, 2 * (uint64_t)o->fault_interval_us);
	}
}

void sim_plan_large(const struct sim_options *o, struct sim_plan *p) {
	enum { STREAM = 51 };
	static const enum sim_withheld withheld[] = {WITHHELD_CONTRIBUTIONS, WITHHELD_MEANS, WITHHELD_SUMS,
												 WITHHELD_COLUMN_MEANS};
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	memset(p, 0, sizeof *p);
	append(p, FAULT_HTTP_LOSS)->amount = 0.02 * rv_rng_double(&r);
	append(p, FAULT_HTTP_DOUBLING)->amount = 0.02 * rv_rng_double(&r);
	if (rv_rng_below(&r, 3) == 0) { /* attempts that nobody ends cost the most: all are asked for life */
		struct sim_fault *f = append(p, FAULT_WITHHOLDER);
		f->host = draw_worker(&r, o);
		f->amount = withheld[rv_rng_below(&r, 4)];
	}
	plan_at_times(p, o, &r);
	for (int i = 0; i < p->n; i++)
		p->faults[i].reckless = false;
}
