/* step_phases.c: see step_phases.h. */
#include "bench/step_phases.h"

#include "base/clock.h"
#include "bench/kernels_peers.h"
#include "bench/phase_backend.h"
#include "bench/step_ours.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRIAD_FLOATS = 16 << 20, CHAIN_ROUNDS = 400000, NAMED_AT_MOST = 4 };

/* Shares of their limits that phases should reach. */
static const double targets[] = {[PHASE_PRODUCTS] = 0.9, [PHASE_ATTENTION] = 0.7, [PHASE_MEMORY] = 1.0};

struct measurement {
	double ms[N_PHASES + 1][STEP_PEER_MAX_ROUNDS]; /* of one step; the last one: everything else */
	double step_ms[STEP_PEER_MAX_ROUNDS];
	double work[N_PHASES];                                           /* of one step, in 1e9 flop or bytes */
	double flops[STEP_PEER_MAX_ROUNDS], bytes[STEP_PEER_MAX_ROUNDS]; /* the machine's limits, in 1e9 per second */
	int rounds;
};

static int64_t now_us(enum step_clock clock) {
	return clock == STEP_CPU ? rv_clock_process_us() : rv_clock_monotonic_us();
}

static double seconds_since(enum step_clock clock, int64_t start_us) {
	int64_t us = now_us(clock) - start_us;
	return (double)(us > 0 ? us : 1) * 1e-6;
}

static double multiply_add_rate(const struct step_phases_options *opt) {
	const int threads = opt->backend->threads;
	int64_t start = now_us(opt->clock);
	double flop = opt->backend->compute == DTYPE_BF16 ? peer_bf16_dots(threads, CHAIN_ROUNDS)
													  : peer_multiply_adds(threads, CHAIN_ROUNDS);
	return flop * 1e-9 / seconds_since(opt->clock, start);
}

/* Returns the rate of a triad, counting that its stores read the lines that they write. */
static double memory_rate(const struct step_phases_options *opt, float *memory) {
	int64_t start = now_us(opt->clock);
	peer_triad(opt->backend->threads, memory, memory + TRIAD_FLOATS, memory + 2 * (size_t)TRIAD_FLOATS, TRIAD_FLOATS);
	return 16.0 * TRIAD_FLOATS * 1e-9 / seconds_since(opt->clock, start);
}

static void measure_round(struct measurement *m, int round, struct step_ours *o, struct backend *measured, int steps,
						  const struct step_phases_options *opt, float *memory) {
	m->flops[round] = multiply_add_rate(opt);
	m->bytes[round] = memory_rate(opt, memory);
	phase_backend_reset(measured);
	int64_t start = now_us(opt->clock);
	for (int i = 0; i < steps; i++)
		step_ours_step(o);
	double all = seconds_since(opt->clock, start), known = 0;
	const struct phase_sum *sums = phase_backend_sums(measured);
	for (int p = 0; p < N_PHASES; p++) {
		m->ms[p][round] = sums[p].seconds * 1e3 / steps;
		m->work[p] = sums[p].work * 1e-9 / steps;
		known += sums[p].seconds;
	}
	m->ms[N_PHASES][round] = (all - known) * 1e3 / steps;
	m->step_ms[round] = all * 1e3 / steps;
}

static enum rv_err measure(struct measurement *m, const struct step_shape *s, struct backend *measured,
						   const struct step_phases_options *opt, struct rv_errtext *et) {
	void *memory;
	struct step_ours o = {0};
	RV_TRY(measured->ops->alloc(measured, 3 * (size_t)TRIAD_FLOATS * sizeof(float), &memory, et));
	enum rv_err e = step_ours_open(&o, s, opt->savings, measured, et);
	if (e == RV_OK) {
		step_ours_step(&o);
		step_ours_step(&o);
		(void)memory_rate(opt, memory);
		for (int round = 0; round < m->rounds; round++)
			measure_round(m, round, &o, measured, s->steps, opt, memory);
	}
	step_ours_close(&o);
	measured->ops->free(measured, memory);
	return e;
}

/* A line of the table. */
struct row {
	const char *name, *unit;
	double ms, rate, share, over_ms; /* NAN: none */
};

static struct row row_of(struct measurement *m, int p) {
	struct row r = {.name = "everything else", .unit = "", .ms = step_median(m->ms[p], m->rounds)};
	r.rate = r.share = r.over_ms = NAN;
	if (p == N_PHASES)
		return r;
	bool memory = phase_bound(p) == PHASE_MEMORY;
	double limit = step_median(memory ? m->bytes : m->flops, m->rounds);
	r.name = phase_name(p);
	r.unit = memory ? "GB/s" : "GFLOP/s";
	r.rate = m->work[p] / (r.ms * 1e-3);
	if (limit > 0) {
		r.share = r.rate / limit;
		r.over_ms = fmax(0, r.ms - m->work[p] / (limit * targets[phase_bound(p)]) * 1e3);
	}
	return r;
}

static void print_json(const struct step_shape *s, const char *dtype, const struct row *r) {
	printf("{\"bench\": \"step\", \"case\": \"%c %s\", \"phase\": \"%s\", \"ms\": %.4g, ", s->letter, dtype, r->name,
		   r->ms);
	if (isnan(r->rate))
		printf("\"rate\": null, \"unit\": \"\", \"share\": null}\n");
	else
		printf("\"rate\": %.4g, \"unit\": \"%s\", \"share\": %.3f}\n", r->rate, r->unit, r->share);
}

static void print_row(const struct row *r, double step_ms) {
	printf("%-30s %9.3f %6.1f %%", r->name, r->ms, 100 * r->ms / step_ms);
	if (!isnan(r->rate))
		printf(" %8.1f %-8s", r->rate, r->unit);
	if (!isnan(r->share))
		printf(" %5.2f %9.3f", r->share, r->over_ms);
	printf("\n");
}

static int most_over_first(const void *a, const void *b) {
	double x = ((const struct row *)a)->over_ms, y = ((const struct row *)b)->over_ms;
	return (isnan(x) ? 1 : isnan(y) ? -1 : (x < y) - (x > y));
}

static void name_the_short_ones(struct row rows[N_PHASES + 1], double excess_ms) {
	qsort(rows, N_PHASES + 1, sizeof rows[0], most_over_first);
	printf("%.3g ms too long for its goal; over their targets:", excess_ms);
	for (int i = 0; i < NAMED_AT_MOST && rows[i].over_ms > 0; i++)
		printf("%s %s by %.3g ms", i ? "," : "", rows[i].name, rows[i].over_ms);
	printf("\n");
}

/* Prints the time that no step with these products is below: that of the products alone. */
static void print_bound(struct measurement *m, const struct step_shape *s, const char *dtype, double peer_ms) {
	double work = 0;
	for (int p = 0; p < N_PHASES; p++)
		work += phase_bound(p) == PHASE_MEMORY ? 0 : m->work[p];
	const double limit = step_median(m->flops, m->rounds);
	if (limit <= 0) /* unknown for this machine */
		return;
	const double ms = work / limit * 1e3;
	printf("{\"bench\": \"step\", \"case\": \"%c %s\", \"products_gflop\": %.5g, \"least_ms\": %.5g", s->letter, dtype,
		   work, ms);
	if (!isnan(peer_ms))
		printf(", \"largest_ratio\": %.3g", peer_ms / ms);
	printf("}\n");
}

static void print(struct measurement *m, const struct step_shape *s, const struct step_phases_options *opt) {
	const char *dtype = opt->backend->compute == DTYPE_BF16 ? "bf16" : "fp32";
	struct row rows[N_PHASES + 1];
	for (int p = 0; p <= N_PHASES; p++) {
		rows[p] = row_of(m, p);
		print_json(s, dtype, &rows[p]);
	}
	print_bound(m, s, dtype, opt->peer_ms);
	double step_ms = step_median(m->step_ms, m->rounds);
	printf("\n%c %s: %s; limits: %.0f GFLOP/s of %s multiply-adds, %.1f GB/s of a triad\n", s->letter, dtype, s->name,
		   step_median(m->flops, m->rounds), dtype, step_median(m->bytes, m->rounds));
	printf("%-30s %9s %8s %17s %5s %9s\n", "phase", "ms", "of step", "rate", "share", "ms over");
	for (int p = 0; p <= N_PHASES; p++)
		print_row(&rows[p], step_ms);
	printf("%-30s %9.3f; targets are %.2f of the limit for products, %.2f for attention, %.2f for memory\n", "step",
		   step_ms, targets[PHASE_PRODUCTS], targets[PHASE_ATTENTION], targets[PHASE_MEMORY]);
	if (opt->excess_ms > 0)
		name_the_short_ones(rows, opt->excess_ms);
	printf("\n");
	fflush(stdout);
}

enum rv_err step_phases_print(const struct step_shape *s, const struct step_phases_options *opt,
							  struct rv_errtext *et) {
	const clockid_t clock = opt->clock == STEP_CPU ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
	struct backend *be = NULL, *measured = NULL;
	struct measurement *m = calloc(1, sizeof *m);
	enum rv_err e = m ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for the measurement");
	if (e == RV_OK)
		e = backend_open("cpu", opt->backend, &be, et);
	if (e == RV_OK && !(measured = phase_backend_new(be, clock)))
		e = rv_fail(et, RV_E_NOMEM, "no memory for the measuring backend");
	if (e == RV_OK) {
		m->rounds = opt->rounds;
		e = measure(m, s, measured, opt, et);
	}
	if (e == RV_OK)
		print(m, s, opt);
	backend_close(measured);
	backend_close(be);
	free(m);
	return e;
}
