/* bench_step.c: one training step (forward, backward, clipping, AdamW) in fp32 and bf16 against
 * PyTorch in both, eager and compiled, and llm.c on the CPU, and where the time of ours goes.
 *
 * Every contestant is a process of its own; those of a dtype take turns, a few steps each, so that
 * a slow spell of the machine hits all of them; what counts is the median of the rounds' ratios.
 * PyTorch runs eager and compiled, each with glibc's malloc as it is and with a tuned one
 * (step_contestants.h): one ratio is to the fastest of the four, one to the faster of those with
 * the malloc that people have, one to the smallest memory; each says whose it is. llm.c is measured
 * when LLMC_DIR names a checkout of it; --before names another build of this program, which then
 * takes turns too. Then our step is measured phase by phase (step_phases.h). stdout: a JSON line
 * per contestant, per ratio and per phase, and tables. */
#include "base/err.h"
#include "base/options.h"
#include "base/program.h"
#include "bench/bench_report.h"
#include "bench/step_contestants.h"
#include "bench/step_ours.h"
#include "bench/step_phases.h"

#include <math.h>
#include <signal.h>
#include <string.h>

struct options {
	char cases[16], dtype[8], isa[16], clock[8], before[256], malloc[8];
	int64_t rounds, threads, micro_batch;
	int moments;
	bool serve, peers, compiled, phases;
};

#define OPTION(name, type, field, fallback, lo, hi, choices, help)                                                     \
	{                                                                                                                  \
		name, type, offsetof(struct options, field), sizeof(((struct options *)0)->field), fallback, lo, hi, choices,  \
			help, "Benchmark"                                                                                          \
	}

static const struct rv_option option_table[] = {
	OPTION("cases", RV_OPT_STRING, cases, "abc", 0, 0, NULL, "Shapes to measure."),
	OPTION("rounds", RV_OPT_INT, rounds, "5", 1, STEP_PEER_MAX_ROUNDS, NULL, "Turns of each contestant."),
	OPTION("threads", RV_OPT_INT, threads, "2", 1, 256, NULL, "Threads of each contestant."),
	OPTION("dtype", RV_OPT_ENUM, dtype, "both", 0, 0, "both|fp32|bf16", "Inputs of the products, ours and PyTorch's."),
	OPTION("clock", RV_OPT_ENUM, clock, "wall", 0, 0, "wall|cpu",
		   "What times are: cpu is processor time, with --threads 1 for a machine that others use too."),
	OPTION("moments", RV_OPT_CHOICE, moments, "fp32", 0, 0, MOMENTS_NAMES, "What our AdamW's moments are stored as."),
	OPTION("micro-batch", RV_OPT_INT, micro_batch, "0", 0, 1024, NULL,
		   "Sequences of a forward and backward pass of ours, 0: all of the step's."),
	OPTION("isa", RV_OPT_STRING, isa, "auto", 0, 0, NULL, "Highest instruction set to use."),
	OPTION("before", RV_OPT_STRING, before, "", 0, 0, NULL, "A bench_step of another build, to take turns with."),
	OPTION("peers", RV_OPT_BOOL, peers, "true", 0, 0, NULL, "Measure the peers too."),
	OPTION("compiled", RV_OPT_BOOL, compiled, "true", 0, 0, NULL, "Measure compiled PyTorch too, not only eager."),
	OPTION("malloc", RV_OPT_ENUM, malloc, "both", 0, 0, "both|default|tuned",
		   "PyTorch's malloc: glibc's as it is, or with huge pages and memory kept, which is faster."),
	OPTION("phases", RV_OPT_BOOL, phases, "true", 0, 0, NULL, "Show the phases of our step."),
	OPTION("serve", RV_OPT_BOOL, serve, "false", 0, 0, NULL, "Be the contestant (used by the benchmark itself)."),
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static struct savings savings_of(const struct options *opt) {
	return (struct savings){.micro_batch = (int)opt->micro_batch, .moments = (enum moments)opt->moments};
}

static enum rv_err serve(const struct options *opt, struct rv_errtext *et) {
	const struct step_shape *s = step_shape_of(opt->cases[0]);
	const struct backend_options options = {.threads = (int)opt->threads,
											.compute = strcmp(opt->dtype, "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32,
											.isa = opt->isa};
	const struct savings savings = savings_of(opt);
	struct backend *be = NULL;
	struct step_ours o = {0};
	RV_TRY(backend_open("cpu", &options, &be, et));
	enum rv_err e = step_ours_open(&o, s, &savings, be, et);
	if (e == RV_OK) {
		fprintf(stderr, "%c: %s: %s\n", s->letter, s->name, be->ops->describe(be));
		step_ours_step(&o);
		step_ours_step(&o);
		step_serve(stdout, step_ours_step, &o);
	}
	step_ours_close(&o);
	backend_close(be);
	return e;
}

/* ---- ratios ---- */

struct ratio {
	char letter;
	const char *ours_name, *peer_name, *unit;
	const char *peer_is; /* what the peer is among others: "the fastest"; "": it is alone */
	double ours, peer, ratio;
	struct step_goal goal;
	bool at_most; /* the goal is a limit from above */
};

enum { RATIOS_OF_A_CASE = 10, MAX_RATIOS = RATIOS_OF_A_CASE * N_STEP_SHAPES };

struct report {
	struct ratio ratios[MAX_RATIOS];
	int n;
};

static bool reached(const struct ratio *r) {
	return r->at_most ? r->ratio <= r->goal.least : r->ratio >= r->goal.least;
}

static void add_ratio(struct report *report, struct ratio r) {
	report->ratios[report->n++] = r;
	printf("{\"bench\": \"step\", \"case\": \"%c %s vs %s%s\", \"peer_is\": \"%s\", \"ours\": %.5g, \"peer\": %.5g, "
		   "\"unit\": \"%s\", \"ratio\": %.4g, \"goal\": %.3g, \"reached\": %s}\n",
		   r.letter, r.ours_name, r.peer_name, r.at_most ? ", peak RSS" : "", r.peer_is, r.ours, r.peer, r.unit,
		   r.ratio, r.goal.least, reached(&r) ? "true" : "false");
}

static void print_ratios(const struct report *report) {
	printf("\n%-4s %-10s %-38s %-20s %9s %9s %-4s %6s %8s %8s\n", "step", "", "peer", "which is", "ours", "peer's", "",
		   "ratio", "goal", "stretch");
	for (int i = 0; i < report->n; i++) {
		const struct ratio *r = &report->ratios[i];
		printf("%-4c %-10s %-38s %-20s %9.1f %9.1f %-4s %6.2f %s%6.2f ", r->letter, r->ours_name, r->peer_name,
			   r->peer_is, r->ours, r->peer, r->unit, r->ratio, r->at_most ? "<=" : ">=", r->goal.least);
		if (r->goal.stretch > 0)
			printf("%8.2f", r->goal.stretch);
		else
			printf("%8s", "");
		double short_by = 100 * (r->at_most ? r->ratio / r->goal.least - 1 : 1 - r->ratio / r->goal.least);
		if (reached(r))
			printf("  reached\n");
		else
			printf("  missed by %.1f %%\n", short_by);
	}
	printf("default malloc: glibc's as it is; tuned malloc: %s\n", contestant_tunables);
}

/* ---- one case ---- */

static bool is_of(enum contestant_kind k, enum dtype dtype) {
	return contestant_is_bf16(k) == (dtype == DTYPE_BF16);
}

static bool wants_dtype(const struct options *opt, enum dtype dtype) {
	return strcmp(opt->dtype, dtype == DTYPE_F32 ? "bf16" : "fp32") != 0;
}

static bool wants_torch(const struct options *opt, enum contestant_kind k) {
	return (opt->compiled || !contestant_is_compiled(k)) &&
		   strcmp(opt->malloc, contestant_is_tuned(k) ? "default" : "tuned") != 0;
}

/* Returns whether `k` takes turns with ours in `dtype`, as llm.c does in both. */
static bool wanted(const struct options *opt, enum contestant_kind k, enum dtype dtype) {
	if (k == LLMC)
		return opt->peers;
	if (contestant_is_torch(k) && (!opt->peers || !wants_torch(opt, k)))
		return false;
	if ((k == BEFORE_FP32 || k == BEFORE_BF16) && !opt->before[0])
		return false;
	return is_of(k, dtype);
}

static enum step_clock clock_of(const struct options *opt) {
	return strcmp(opt->clock, "cpu") == 0 ? STEP_CPU : STEP_WALL;
}

/* Runs the turns. The figures of each go to stderr, to show the machine's noise. */
static void take_turns(struct contestant c[N_CONTESTANTS], const struct options *opt, enum dtype dtype, int steps) {
	for (int round = 0; round < opt->rounds; round++) {
		fprintf(stderr, "round %d:", round + 1);
		for (int i = 0; i < N_CONTESTANTS; i++) {
			if (!c[i].there || !wanted(opt, i, dtype))
				continue;
			c[i].there = step_peer_round(&c[i].peer, steps);
			if (c[i].there)
				fprintf(stderr, "  %s %.1f ms", contestant_name(i), c[i].peer.ms[clock_of(opt)][round]);
			else
				fprintf(stderr, "  %s died", contestant_name(i));
		}
		fprintf(stderr, "\n");
	}
}

static void print_contestant(const struct step_shape *s, enum contestant_kind k, const struct step_peer *p) {
	double ms = step_peer_ms(p, STEP_WALL);
	printf("{\"bench\": \"step\", \"case\": \"%c\", \"contestant\": \"%s\", \"about\": \"%s\", \"ms\": %.4g, "
		   "\"cpu_ms\": %.4g, \"tokens_per_s\": %.5g, \"peak_rss_mib\": %.5g, \"rounds\": %d}\n",
		   s->letter, contestant_name(k), p->about, ms, step_peer_ms(p, STEP_CPU), s->batch * s->context / (ms * 1e-3),
		   p->rss_mib, p->n_rounds);
}

/* Returns the fastest of PyTorch's ways in `dtype`, with or without the tuned ones; N_CONTESTANTS:
 * none is there. */
static enum contestant_kind fastest_torch(const struct contestant c[N_CONTESTANTS], enum dtype dtype, bool tuned_too,
										  enum step_clock clock) {
	enum contestant_kind best = N_CONTESTANTS;
	for (enum contestant_kind k = 0; k < N_CONTESTANTS; k++)
		if (c[k].there && contestant_is_torch(k) && is_of(k, dtype) && (tuned_too || !contestant_is_tuned(k)) &&
			(best == N_CONTESTANTS || step_peer_ratio(&c[k].peer, &c[best].peer, clock) > 1))
			best = k;
	return best;
}

/* Returns PyTorch's way of the smallest memory in fp32, or in bf16 where that ran alone;
 * N_CONTESTANTS: none ran. */
static enum contestant_kind smallest_torch(const struct contestant c[N_CONTESTANTS]) {
	enum contestant_kind best = N_CONTESTANTS;
	for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16 && best == N_CONTESTANTS; dtype++)
		for (enum contestant_kind k = 0; k < N_CONTESTANTS; k++)
			if (c[k].there && contestant_is_torch(k) && is_of(k, dtype) &&
				(best == N_CONTESTANTS || c[k].peer.rss_mib < c[best].peer.rss_mib))
				best = k;
	return best;
}

/* Adds the ratio of times to contestant k's, unless it is not there. */
static void compare_speed(struct report *report, struct ratio r, const struct step_peer *ours,
						  const struct contestant c[N_CONTESTANTS], enum contestant_kind k, enum step_clock clock) {
	if (k == N_CONTESTANTS || !c[k].there)
		return;
	r.unit = "ms";
	r.peer_name = contestant_name(k);
	r.ours = step_peer_ms(ours, clock);
	r.peer = step_peer_ms(&c[k].peer, clock);
	r.ratio = step_peer_ratio(ours, &c[k].peer, clock);
	add_ratio(report, r);
}

/* Adds the ratio of memories to the smallest of PyTorch's. */
static void compare_memory(struct report *report, struct ratio r, const struct step_peer *ours,
						   const struct contestant c[N_CONTESTANTS], double goal) {
	const enum contestant_kind k = smallest_torch(c);
	if (k == N_CONTESTANTS)
		return;
	r.unit = "MiB";
	r.peer_name = contestant_name(k);
	r.peer_is = "the smallest";
	r.ours = ours->rss_mib;
	r.peer = c[k].peer.rss_mib;
	r.ratio = r.ours / r.peer;
	r.goal = (struct step_goal){goal, 0};
	r.at_most = true;
	add_ratio(report, r);
}

static void compare(struct report *report, const struct step_shape *s, const struct contestant c[N_CONTESTANTS],
					enum dtype dtype, enum step_clock clock) {
	const bool fp32 = dtype == DTYPE_F32;
	const enum contestant_kind k = fp32 ? OURS_FP32 : OURS_BF16;
	const struct step_peer *ours = &c[k].peer;
	if (!c[k].there)
		return;
	struct ratio r = {.letter = s->letter, .ours_name = contestant_name(k), .peer_is = ""};
	r.goal = fp32 ? s->torch_fp32 : s->torch_bf16;
	r.peer_is = "the fastest";
	compare_speed(report, r, ours, c, fastest_torch(c, dtype, true, clock), clock);
	r.peer_is = "the faster default";
	compare_speed(report, r, ours, c, fastest_torch(c, dtype, false, clock), clock);
	r.peer_is = "";
	r.goal = (struct step_goal){1, 0};
	compare_speed(report, r, ours, c, fp32 ? BEFORE_FP32 : BEFORE_BF16, clock);
	r.goal = fp32 ? s->llmc_fp32 : s->llmc_bf16;
	compare_speed(report, r, ours, c, LLMC, clock);
	compare_memory(report, r, ours, c, s->rss);
}

/* Sets what of PyTorch's time in the same dtype the phases are held against. */
static void hold_against(struct step_phases_options *p, const struct contestant c[N_CONTESTANTS], enum dtype dtype,
						 struct step_goal goal) {
	const struct contestant *ours = &c[dtype == DTYPE_F32 ? OURS_FP32 : OURS_BF16];
	const enum contestant_kind torch = fastest_torch(c, dtype, true, p->clock);
	p->peer_ms = torch < N_CONTESTANTS ? step_peer_ms(&c[torch].peer, p->clock) : NAN;
	p->excess_ms = ours->there && torch < N_CONTESTANTS
					   ? fmax(0, step_peer_ms(&ours->peer, p->clock) - p->peer_ms / goal.least)
					   : NAN;
}

static enum rv_err print_phases(const struct options *opt, const struct step_shape *s,
								const struct contestant c[N_CONTESTANTS], struct rv_errtext *et) {
	const struct savings savings = savings_of(opt);
	struct backend_options be = {.threads = (int)opt->threads, .compute = DTYPE_F32, .isa = opt->isa};
	struct step_phases_options p = {
		.backend = &be, .savings = &savings, .clock = clock_of(opt), .rounds = (int)opt->rounds};
	if (wants_dtype(opt, DTYPE_F32)) {
		hold_against(&p, c, DTYPE_F32, s->torch_fp32);
		RV_TRY(step_phases_print(s, &p, et));
	}
	be.compute = DTYPE_BF16;
	if (wants_dtype(opt, DTYPE_BF16)) {
		hold_against(&p, c, DTYPE_BF16, s->torch_bf16);
		RV_TRY(step_phases_print(s, &p, et));
	}
	return RV_OK;
}

/* Measures the contestants of a dtype, and ends them: those of both would need 20 GB at (a). */
static void run_dtype(struct report *report, const struct options *opt, const struct step_shape *s, enum dtype dtype,
					  struct contestant c[N_CONTESTANTS]) {
	const struct savings savings = savings_of(opt);
	const struct ours_options ours = {opt->isa, opt->before, &savings};
	for (int i = 0; i < N_CONTESTANTS; i++) {
		if (wanted(opt, i, dtype))
			contestant_start(&c[i], i, s, (int)opt->threads, &ours);
		if (wanted(opt, i, dtype) && !c[i].there)
			fprintf(stderr, "%c: %s did not start. %s\n", s->letter, contestant_name(i), contestant_missing(i));
	}
	take_turns(c, opt, dtype, s->steps);
	for (int i = 0; i < N_CONTESTANTS; i++) {
		if (c[i].there && wanted(opt, i, dtype))
			print_contestant(s, i, &c[i].peer);
		if (c[i].peer.pid > 0)
			step_peer_stop(&c[i].peer);
	}
	compare(report, s, c, dtype, clock_of(opt));
	fflush(stdout);
}

static enum rv_err run_case(struct report *report, const struct options *opt, const struct step_shape *s,
							struct rv_errtext *et) {
	struct contestant c[N_CONTESTANTS] = {0};
	for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++)
		if (wants_dtype(opt, dtype))
			run_dtype(report, opt, s, dtype, c);
	return opt->phases ? print_phases(opt, s, c, et) : RV_OK;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct options *opt = opts;
	for (const char *c = opt->cases; *c; c++)
		if (!step_shape_of(*c) || strchr(c + 1, *c))
			return rv_fail(et, RV_E_INVALID, "cases = %s: must be letters of abc, each once", opt->cases);
	return opt->cases[0] ? RV_OK : rv_fail(et, RV_E_INVALID, "cases is empty: must be letters of abc");
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct options *opt = opts;
	if (opt->serve)
		return serve(opt, et);
	signal(SIGPIPE, SIG_IGN); /* a contestant that died is seen as a failed write */
	struct report report = {.n = 0};
	bench_warn_if_busy();
	for (const char *c = opt->cases; *c; c++)
		RV_TRY(run_case(&report, opt, step_shape_of(*c), et));
	print_ratios(&report);
	return RV_OK;
}

int main(int argc, char **argv) {
	const struct rv_command commands[] = {
		{.name = NULL,
		 .synopsis = "",
		 .help =
			 "Time one training step against PyTorch and, with LLMC_DIR set, llm.c; then show where ours spends it.",
		 .options = option_table,
		 .opts_bytes = sizeof(struct options),
		 .check = check,
		 .run = run},
		{.run = NULL},
	};
	const struct rv_program program = {.name = "bench_step", .summary = "The step benchmark.", .commands = commands};
	return rv_program_main(&program, argc, argv);
}
