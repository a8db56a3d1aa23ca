/* sim_options.c: a universe's size and shape from its seed. Most are small, where a round is cheap
 * and every pair of faults meets soon; a few are as large as a run of 32 workers. */
#include "sim.h"

#include <stdio.h>

/* Of 200 universes 180 have 1 to 6 workers, 16 have 7 to 12, 3 have 13 to 20, 1 has 21 to 32. */
static int workers_of(struct rv_rng *r) {
	uint64_t size = rv_rng_below(r, 200);
	if (size < 180)
		return 1 + (int)rv_rng_below(r, 6);
	if (size < 196)
		return 7 + (int)rv_rng_below(r, 6);
	if (size < 199)
		return 13 + (int)rv_rng_below(r, 8);
	return 21 + (int)rv_rng_below(r, SIM_ORDINARY - 20);
}

static void choose_size(struct sim_options *o, struct rv_rng *r) {
	o->n_workers = workers_of(r);
	o->min_workers = 1 + (uint32_t)rv_rng_below(r, (uint64_t)o->n_workers);
	bool large = o->n_workers > 6;
	o->rounds = large ? 4 + rv_rng_below(r, 5) : 6 + rv_rng_below(r, 14);
	o->steps_per_round = 1 + rv_rng_below(r, large ? 3 : 6);
	o->snapshot_every = 1 + rv_rng_below(r, large ? 3 : 6);
	/* Chunks are of 256 values: about one for each worker, at most. */
	o->n_params = large ? 200 + rv_rng_below(r, 200 * (uint64_t)o->n_workers) : 200 + rv_rng_below(r, 2800);
}

/* Half of them train ahead, while a round is averaged. */
static void choose_overlap(struct sim_options *o) {
	struct rv_rng r = rv_rng_of(o->seed, 5);
	o->overlap_steps = rv_rng_below(&r, 2) ? 1 + rv_rng_below(&r, o->steps_per_round) : 0;
}

/* Streaming DiLoCo in a third of the universes that are large enough. */
static void choose_fragments(struct sim_options *o) {
	enum { CHUNK = 256, STREAM = 2 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	uint64_t most = (o->n_params + CHUNK - 1) / CHUNK - 1; /* chunk 0 is no layer's */
	bool streams = rv_rng_below(&r, 3) == 0 && most >= 2;
	o->fragments = 1;
	if (streams)
		o->fragments = 2 + (uint32_t)rv_rng_below(&r, (most < SIM_MAX_FRAGMENTS ? most : SIM_MAX_FRAGMENTS) - 1);
	o->mix = rv_rng_below(&r, 3) == 0 && streams ? 0.25f : 0;
}

/* Delayed and eager updates in a quarter of the universes that exchange all parameters at once. */
static void choose_late(struct sim_options *o) {
	struct rv_rng r = rv_rng_of(o->seed, 6);
	o->gives_away = rv_rng_below(&r, 4) == 0 && o->fragments == 1 && !o->by_time;
	if (o->gives_away) {
		o->overlap_steps = o->steps_per_round;
		o->late = LATE_KEEP;
		o->share = rv_rng_below(&r, 2) ? 1.0f / (float)o->n_workers : 0;
	}
}

/* Error feedback in a third. */
static void choose_feedback(struct sim_options *o) {
	enum { STREAM = 42 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	o->feedback = rv_rng_below(&r, 3) == 0 ? 0.9f : 0;
}

/* The same of means in a quarter. */
static void choose_mean_feedback(struct sim_options *o) {
	enum { STREAM = 47 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	o->mean_feedback = rv_rng_below(&r, 4) == 0 ? 0.9f : 0;
}

/* The limit on contributions in three of four universes, in a third of which who points against the
 * others is left out; in half of all some contributions are beyond the limit. */
static void choose_clip(struct sim_options *o) {
	enum { STREAM = 41 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	o->clip = rv_rng_below(&r, 4) == 0 ? 0 : 1 + 2 * rv_rng_double(&r) * rv_rng_double(&r);
	o->loud = rv_rng_below(&r, 2) == 0;
	o->agrees = o->clip > 0 && rv_rng_below(&r, 3) == 0;
}

/* One in ten: steps of no time, lines that carry a round's result in less than a round trip, many
 * rounds. (Two at least begin: one alone exchanges nothing, and is faster than anybody fetches one
 * result after the other.) */
static void choose_haste(struct sim_options *o) {
	enum { STREAM = 7 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	o->hasty = rv_rng_below(&r, 10) == 0 && o->n_workers >= 3 && o->n_workers <= 6;
	if (!o->hasty)
		return;
	o->calm = rv_rng_below(&r, 2) == 0;
	o->min_workers = 2 + (uint32_t)rv_rng_below(&r, (uint64_t)o->n_workers - 2);
	o->rounds = 40 + rv_rng_below(&r, SIM_MAX_ROUNDS - 40);
	o->delay_us = 40 * SIM_MS + (int64_t)rv_rng_below(&r, 110 * SIM_MS);
	o->steps_per_round = 1 + rv_rng_below(&r, 2);
	o->overlap_steps = o->overlap_steps < o->steps_per_round ? o->overlap_steps : o->steps_per_round;
	o->step_us = SIM_MS + (int64_t)rv_rng_below(&r, 5 * SIM_MS);
	o->slowest_bytes_per_s += 3e5;
}

/* Frames that travel in slices in one of ten universes; a cap on the upload in one of six. */
static void choose_mesh(struct sim_options *o) {
	enum { STREAM = 42, SMALL = 256 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	o->chunk_elems = SMALL;
	if (rv_rng_below(&r, 10) == 0 && o->n_workers <= 6 && o->fragments == 1 && !o->hasty) {
		o->chunk_elems = 4096;
		o->n_params = 4096 + rv_rng_below(&r, 2 * 4096);
		o->slowest_bytes_per_s *= 4;
		o->codec = &codec_fp32;
	}
	o->capped = rv_rng_below(&r, 6) == 0 ? 0.15 + 0.5 * rv_rng_double(&r) : 0;
}

/* One in four has a relay, or two. */
static void choose_relay(struct sim_options *o) {
	enum { STREAM = 45 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	bool has_one = rv_rng_below(&r, 4) == 0 && !o->calm;
	o->relay = has_one ? 1 + (int)rv_rng_below(&r, 2) : 0;
}

/* One in four skips members with slow lines; one in four lets them send a coarser contribution, or
 * a part of it. */
static void choose_slow(struct sim_options *o) {
	enum { STREAM = 46 };
	static const uint8_t others[] = {SLOW_COARSER, SLOW_PART, SLOW_WAIT, SLOW_WAIT, SLOW_WAIT, SLOW_WAIT};
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	const bool skips = rv_rng_below(&r, 4) == 0;
	const int other = others[rv_rng_below(&r, sizeof others)];
	o->slow_members = o->hasty ? SLOW_WAIT : skips ? SLOW_SKIP : other; /* hasty ones show that all catch up */
}

/* Two in five of those with at least four workers run in rows. */
static void choose_rows(struct sim_options *o) {
	enum { STREAM = 48, LEAST_WORKERS = 4, LONGEST = 8 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	bool in_rows = rv_rng_below(&r, 5) < 2 && o->n_workers >= LEAST_WORKERS;
	int longest = o->n_workers - 1 < LONGEST ? o->n_workers - 1 : LONGEST;
	o->row_size = in_rows ? 2 + (int)rv_rng_below(&r, (uint64_t)longest - 1) : NET_MAX_ROW;
	if (in_rows) /* short rows exchange many partial sums, of four bytes a value */
		o->slowest_bytes_per_s *= 4;
}

void sim_options_with_liars(struct sim_options *o) {
	enum { STREAM = 63, LEAST_WORKERS = 4 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	o->liars = true;
	o->calm = o->hasty = false;
	o->relay = 0;
	if (o->n_workers < LEAST_WORKERS)
		o->n_workers = LEAST_WORKERS + (int)rv_rng_below(&r, 4);
	o->min_workers = 1 + (uint32_t)rv_rng_below(&r, (uint64_t)(o->n_workers - sim_liars(o)));
}

void sim_options_with_twenty(struct sim_options *o) {
	enum { STREAM = 67, MEMBERS = 20, LIARS = 4, VALUES_EACH = 200, LEAST_ROUNDS = 6, LONGEST = 10 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	const bool in_rows = rv_rng_below(&r, 5) < 2;
	o->n_workers = MEMBERS;
	o->n_liars = LIARS;
	o->min_workers = 1 + (uint32_t)rv_rng_below(&r, MEMBERS - LIARS);
	o->rounds = LEAST_ROUNDS + rv_rng_below(&r, LEAST_ROUNDS);
	o->n_params = VALUES_EACH + rv_rng_below(&r, VALUES_EACH * MEMBERS);
	o->row_size = in_rows ? 2 + (int)rv_rng_below(&r, LONGEST - 1) : NET_MAX_ROW;
	o->slowest_bytes_per_s += 3e4 * MEMBERS;
}

void sim_options_with_scores(struct sim_options *o) {
	enum { STREAM = 65, LEAST_WORKERS = 6, ROW = 4, LEAST_ROUNDS = 12 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	const bool in_rows = rv_rng_below(&r, 4) == 0;
	if (!in_rows)
		return;
	o->calm = rv_rng_below(&r, 2) == 0;
	o->hasty = false;
	o->n_workers = LEAST_WORKERS + (int)rv_rng_below(&r, 4);
	o->min_workers = (uint32_t)o->n_workers - 2;
	o->row_size = ROW;
	o->rounds = LEAST_ROUNDS + rv_rng_below(&r, 6);
	o->slowest_bytes_per_s *= 8;
}

/* Half of them run in rows of four and five, whose averages are audited, also after a ban. */
void sim_options_with_audits(struct sim_options *o) {
	enum { STREAM = 66, LEAST_WORKERS = 9, ROW = 5, LEAST_ROUNDS = 10 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	if (rv_rng_below(&r, 2) == 0)
		return;
	o->hasty = false;
	o->n_workers = LEAST_WORKERS + (int)rv_rng_below(&r, 2);
	o->min_workers = LEAST_WORKERS - 1;
	o->row_size = ROW;
	o->rounds = LEAST_ROUNDS + rv_rng_below(&r, 6);
	o->slowest_bytes_per_s *= 8;
}

struct sim_options sim_options_of(uint64_t seed) {
	struct rv_rng r = rv_rng_of(seed, 1);
	struct sim_options o = {.seed = seed};
	o.calm = rv_rng_below(&r, 10) == 0;
	choose_size(&o, &r);
	choose_overlap(&o);
	o.codec = rv_rng_below(&r, 4) == 0 ? &codec_fp32 : &codec_int8;
	o.late = rv_rng_below(&r, 4) == 0 ? LATE_DISCARD : LATE_KEEP;
	o.weight_by_tokens = rv_rng_below(&r, 3) == 0;
	o.equal_ownership = rv_rng_below(&r, 3) == 0;
	o.mixed = rv_rng_below(&r, 6) == 0;
	o.keep_snapshots = rv_rng_below(&r, 4); /* 0: all */
	o.keep_log = rv_rng_below(&r, 6);
	o.delay_us = (int64_t)rv_rng_below(&r, 150 * SIM_MS);
	o.jitter_us = (int64_t)rv_rng_below(&r, 100 * SIM_MS);
	/* A line carries its worker's share of the all-reduce, and the messages of the others. */
	double share = o.n_workers > 6 ? o.n_workers : 1;
	o.slowest_bytes_per_s = share * (6e3 + 3e5 * rv_rng_double(&r) * rv_rng_double(&r));
	o.step_us = 5 * SIM_MS + (int64_t)rv_rng_below(&r, 400 * SIM_MS);
	o.fault_interval_us = 200 * SIM_MS + (int64_t)rv_rng_below(&r, 6 * SIM_S);
	o.safety_us = 20 * SIM_S + (int64_t)rv_rng_below(&r, 60 * SIM_S);
	o.by_time = rv_rng_below(&r, 4) == 0 && o.overlap_steps == 0;
	choose_haste(&o);
	choose_fragments(&o);
	choose_late(&o);
	choose_clip(&o);
	choose_mesh(&o);
	choose_feedback(&o);
	choose_mean_feedback(&o);
	choose_relay(&o);
	choose_slow(&o);
	choose_rows(&o);
	return o;
}

struct sim_options sim_options_plain(void) {
	return (struct sim_options){.seed = 1,
								.n_workers = 4,
								.min_workers = 3,
								.row_size = NET_MAX_ROW,
								.rounds = 20,
								.steps_per_round = 3,
								.snapshot_every = 4,
								.n_params = 1200,
								.chunk_elems = 256,
								.codec = &codec_int8,
								.late = LATE_KEEP,
								.equal_ownership = true,
								.fragments = 1,
								.keep_snapshots = 2,
								.keep_log = 4,
								.delay_us = 20 * SIM_MS,
								.jitter_us = 5 * SIM_MS,
								.slowest_bytes_per_s = 1e5,
								.step_us = 100 * SIM_MS,
								.fault_interval_us = SIM_S,
								.safety_us = 120 * (int64_t)SIM_S};
}

void sim_options_text(const struct sim_options *o, char *out, size_t cap) {
	static const char *const slow[] = {"", ", slow lines skipped", ", slow lines coarser", ", slow lines in part"};
	int n = snprintf(
		out, cap,
		"seed %llu: %d workers (at least %u) in rows of %d, %llu rounds of %llu steps (%llu ahead%s) of %lld ms, %zu "
		"parameters, "
		"%s%s%s, feedback %.1f and of means %.1f, "
		"%u fragments mixed by %g, late %s, clip %.2f%s%s, weights %s, ownership %s%s%s%s, a snapshot every %llu; "
		"delay "
		"%lld+%lld "
		"ms, lines "
		"from %.0f kB/s; ",
		(unsigned long long)o->seed, o->n_workers, o->min_workers, o->row_size, (unsigned long long)o->rounds,
		(unsigned long long)o->steps_per_round, (unsigned long long)o->overlap_steps,
		!o->gives_away ? ""
		: o->share > 0 ? ", eager"
					   : ", delayed",
		(long long)o->step_us / SIM_MS, o->n_params, o->codec->name, o->hasty ? ", hasty" : "",
		o->relay == 0   ? ""
		: o->relay == 1 ? ", a relay"
						: ", two relays",
		(double)o->feedback, (double)o->mean_feedback, o->fragments, (double)o->mix,
		o->late == LATE_KEEP ? "keep" : "discard", o->clip, o->agrees ? " and agreed" : "", o->loud ? " and loud" : "",
		o->weight_by_tokens ? "tokens" : "equal", o->equal_ownership ? "equal" : "by line", slow[o->slow_members],
		o->mixed ? ", mixed releases" : "", o->by_time ? ", steps by time" : "", (unsigned long long)o->snapshot_every,
		(long long)o->delay_us / SIM_MS, (long long)o->jitter_us / SIM_MS, o->slowest_bytes_per_s / 1e3);
	if (o->calm)
		(void)snprintf(out + n, cap - (size_t)n, "calm");
	else
		(void)snprintf(out + n, cap - (size_t)n, "a fault every %.1f s for %lld s",
					   (double)o->fault_interval_us / SIM_S, (long long)o->safety_us / SIM_S);
}
