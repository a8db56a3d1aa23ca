/* simulate.c: `rivulet simulate`: the cost of a line for a run, before renting a machine. */
#include "lab/commands/commands.h"
#include "lab/simulate/card_memory.h"
#include "lab/simulate/presets.h"
#include "lab/simulate/print.h"
#include "lab/simulate/units.h"
#include "outer/codec.h"

#include "base/option_value.h"
#include "base/registries.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALL = 0, NO_TABLE = 0 };

enum print_format { FORMAT_AUTO, FORMAT_TEXT, FORMAT_JSON };

struct simulate_options {
	char solve[64];
	int table;             /* NO_TABLE, or 1 + its place in published_tables */
	int method;            /* ALL, or 1 + enum simulate_method */
	int format;            /* enum print_format */
	int codec, mean_codec; /* 0: `bits`, mean_bits; else 1 + enum codec_choice */
	char params[32], rate[32], rate_down[32], beside[160];
	int64_t layers, workers, steps_per_round, fragments, overlap_steps, steps;
	bool memory, strangers;
	int64_t gpu, gpus, host, sequences;
	char model[32];
	double step_time_ms, bits, mean_bits, ddp_bits, latency_ms, sync_ms, overhead;
};

#define FIELD(f) offsetof(struct simulate_options, f)
#define CAP(f)   sizeof(((struct simulate_options *)0)->f)

#define CODEC(name, facts, of_mean) "|" #name
static const char codecs[] = "none"
#include "base/codecs.def"
	;
#undef CODEC

static const struct rv_option options[] = {
	{"params", RV_OPT_STRING, FIELD(params), CAP(params), "", 0, 0, NULL, "Parameters: 350K, 124M, 1.5B. Empty: 124M.",
	 "Model"},
	{"layers", RV_OPT_INT, FIELD(layers), 0, "12", 1, SIMULATE_MAX_LAYERS, NULL, "Layers, taken as equal.", "Model"},
	{"step-time-ms", RV_OPT_DOUBLE, FIELD(step_time_ms), 0, "500", 1e-6, 86400000, NULL, "Time of one inner step.",
	 "Model"},
	{"method", RV_OPT_CHOICE, FIELD(method), 0, "all", 0, 0, "all|ddp|diloco|streaming|gather",
	 "ddp averages gradients at every step, diloco every H steps, streaming a fragment at a time; gather: every worker "
	 "receives all others' contributions (all: only with a sparse codec).",
	 "Method"},
	{"workers", RV_OPT_INT, FIELD(workers), 0, "4", 1, SIMULATE_MAX_WORKERS, NULL,
	 "N: each sends 2 (N - 1) / N of the payload.", "Method"},
	{"steps-per-round", RV_OPT_INT, FIELD(steps_per_round), 0, "100", 1, SIMULATE_MAX_STEPS_PER_ROUND, NULL,
	 "H: inner steps of a round, which ends with an exchange.", "Method"},
	{"fragments", RV_OPT_INT, FIELD(fragments), 0, "0", 0, SIMULATE_MAX_LAYERS, NULL,
	 "Streaming: parts of the model, exchanged in turn, one a round; 0: of three layers each.", "Method"},
	{"overlap-steps", RV_OPT_INT, FIELD(overlap_steps), 0, "0", 0, SIMULATE_MAX_STEPS_PER_ROUND, NULL,
	 "Streaming: inner steps of the next round that run while a fragment is exchanged.", "Method"},
	{"bits", RV_OPT_DOUBLE, FIELD(bits), 0, "8", 0.01, 64, NULL, "Bits per value of an outer gradient on the wire.",
	 "Method"},
	{"mean-bits", RV_OPT_DOUBLE, FIELD(mean_bits), 0, "0", 0, 64, NULL, "Bits per value of a mean; 0: as bits.",
	 "Method"},
	{"codec", RV_OPT_CHOICE, FIELD(codec), 0, "none", 0, 0, codecs, "Instead of bits: those of this codec.", "Method"},
	{"mean-codec", RV_OPT_CHOICE, FIELD(mean_codec), 0, "none", 0, 0, codecs, "Instead of mean-bits.", "Method"},
	{"ddp-bits", RV_OPT_DOUBLE, FIELD(ddp_bits), 0, "32", 0.01, 64, NULL, "Bits per value of ddp's gradients.",
	 "Method"},
	{"steps", RV_OPT_INT, FIELD(steps), 0, "10000", 1, 1e12, NULL, "Inner steps of the whole run.", "Method"},
	{"rate", RV_OPT_STRING, FIELD(rate), CAP(rate), "", 0, 0, NULL,
	 "Each worker's line, up and down: 20mbit, 1.5gbit, unlimited. Empty: 100mbit.", "Line"},
	{"rate-down", RV_OPT_STRING, FIELD(rate_down), CAP(rate_down), "", 0, 0, NULL,
	 "The rate down, if it is another one than up.", "Line"},
	{"latency-ms", RV_OPT_DOUBLE, FIELD(latency_ms), 0, "20", 0, 3600000, NULL, "One way, half of ping's round trip.",
	 "Line"},
	{"overhead", RV_OPT_DOUBLE, FIELD(overhead), 0, "0", 0, 10, NULL,
	 "Line time per payload byte, for headers and bandwidth that TCP leaves unused (time, not bytes sent); 0: 1.12 for "
	 "two "
	 "workers, 1.25 for more.",
	 "Line"},
	{"sync-ms", RV_OPT_DOUBLE, FIELD(sync_ms), 0, "50", 0, 86400000, NULL,
	 "Time of an exchange beside line and latency: encoding, disk, coordinator, waiting for the slower worker.",
	 "Line"},
	{"solve", RV_OPT_STRING, FIELD(solve), CAP(solve), "", 0, 0, NULL,
	 "utilisation=X, X between 0 and 1: the line rate that this needs.", "Question"},
	{"table", RV_OPT_CHOICE, FIELD(table), 0, "none", 0, 0, "none|streaming-diloco|scaling-laws",
	 "Print a published table beside our figures.", "Question"},
	{"beside", RV_OPT_STRING, FIELD(beside), CAP(beside), "", 0, 0, NULL, "A published figure, printed under ours.",
	 "Question"},
	{"memory", RV_OPT_BOOL, FIELD(memory), 0, "no", 0, 0, NULL,
	 "Instead of a line: what fits the memory of GPUs, and which savings a worker takes.", "Memory"},
	{"gpu", RV_OPT_BYTES, FIELD(gpu), 0, "0", 0, 0x1p50, NULL,
	 "Memory of a GPU, such as 24GB; 0: a table of cards of 8 to 80 GB.", "Memory"},
	{"gpus", RV_OPT_INT, FIELD(gpus), 0, "1", 1, DEVICE_MAX, NULL, "GPUs of a worker, together one replica.", "Memory"},
	{"host", RV_OPT_BYTES, FIELD(host), 0, "0", 0, 0x1p50, NULL, "The worker's memory beside them; 0: any.", "Memory"},
	{"model", RV_OPT_STRING, FIELD(model), CAP(model), "", 0, 0, NULL,
	 "A model of `rivulet train --preset`, such as gpt2-1.5b; empty: the largest that fits.", "Memory"},
	{"sequences", RV_OPT_INT, FIELD(sequences), 0, "16", 1, 65536, NULL, "Sequences of a step.", "Memory"},
	{"strangers", RV_OPT_BOOL, FIELD(strangers), 0, "no", 0, 0, NULL,
	 "In a run that `new-run --preset strangers` makes: members check each other, in memory of their own.", "Memory"},
	{"format", RV_OPT_CHOICE, FIELD(format), 0, "auto", 0, 0, "auto|text|json",
	 "auto: text on a terminal, JSON lines otherwise.", "Output"},
	{.name = NULL},
};

/* ---- from options to runs ---- */

struct plan {
	const struct published_table *table; /* NULL: runs */
	double utilisation;                  /* target to solve for; 0: the rate is given */
	struct simulate_run runs[SIMULATE_METHODS];
	int n_runs;
};

static enum rv_err read_solve(const struct simulate_options *o, double *out, struct rv_errtext *et) {
	static const char key[] = "utilisation";
	size_t n = strcspn(o->solve, "=");
	if (n != strlen(key) || strncmp(o->solve, key, n) != 0)
		return rv_fail(et, RV_E_INVALID, "solve = %s: only utilisation can be solved for; try --solve utilisation=0.95",
					   o->solve);
	char *end = NULL;
	*out = o->solve[n] == '=' ? strtod(o->solve + n + 1, &end) : NAN;
	if (!end || end == o->solve + n + 1 || *end)
		return rv_fail(et, RV_E_INVALID, "solve = %s: must be utilisation=X with a number X; try utilisation=0.95",
					   o->solve);
	if (!(*out > 0 && *out < 1))
		return rv_fail(et, RV_E_RANGE, "solve = %s: must be above 0 and below 1%s", o->solve,
					   *out > 1 && *out < 100 ? ", a share, not a percentage; try utilisation=0.95" : "");
	if (o->rate[0])
		return rv_fail(et, RV_E_INVALID, "rate = %s: --solve computes the line rate; leave one of them out", o->rate);
	return RV_OK;
}

/* Returns the bits per value of a codec in whole chunks, or `otherwise` if none is named. */
static double bits_of(int codec, double otherwise) {
	enum { VALUES = 65536, BITS = 8 };
	const struct codec *c = codec > 0 ? codec_registry[codec - 1] : NULL;
	return c ? (double)(c->encoded_bytes(c, VALUES) * BITS) / VALUES : otherwise;
}

static bool is_sparse(const struct simulate_options *o) {
	return o->codec > 0 && codec_facts[o->codec - 1].facts & CODEC_SPARSE;
}

static enum rv_err plan_run(const struct simulate_options *o, enum simulate_method m, struct plan *p,
							struct rv_errtext *et) {
	int fragments = o->fragments > 0 ? (int)o->fragments : ((int)o->layers + 2) / 3;
	struct simulate_run *r = &p->runs[p->n_runs++];
	*r = (struct simulate_run){.method = m,
							   .layers = (int)o->layers,
							   .step_s = o->step_time_ms * 1e-3,
							   .workers = (int)o->workers,
							   .steps_per_round = (int)o->steps_per_round,
							   .fragments = fragments,
							   .overlap_steps = m == SIMULATE_STREAMING ? (int)o->overlap_steps : 0,
							   .bits_per_value = m == SIMULATE_DDP ? o->ddp_bits : bits_of(o->codec, o->bits),
							   .mean_bits_per_value = m == SIMULATE_DDP ? 0 : bits_of(o->mean_codec, o->mean_bits),
							   .latency_s = o->latency_ms * 1e-3,
							   .overhead = o->overhead > 0 ? o->overhead : simulate_overhead((int)o->workers),
							   .sync_s = o->sync_ms * 1e-3,
							   .layerwise = m == SIMULATE_DDP};
	RV_TRY(simulate_read_params(o->params[0] ? o->params : "124M", &r->n_params, et));
	RV_TRY(simulate_read_rate(o->rate, &r->rate_bits_per_s, et));
	if (o->rate_down[0])
		RV_TRY(simulate_read_rate(o->rate_down, &r->down_bits_per_s, et));
	return simulate_check(r, et);
}

/* Refuses --fragments for diloco, which `rivulet train` allows: that is method streaming here. */
static enum rv_err check_streaming_only(const struct simulate_options *o, struct rv_errtext *et) {
	bool fragments = o->fragments > 0;
	if ((fragments || o->overlap_steps > 0) && o->method != ALL && o->method != 1 + SIMULATE_STREAMING)
		return rv_fail(
			et, RV_E_INVALID,
			"%s = %lld: belongs to --method streaming, not %s; try --method streaming --fragments %lld",
			fragments ? "fragments" : "overlap-steps", (long long)(fragments ? o->fragments : o->overlap_steps),
			simulate_method_name((enum simulate_method)(o->method - 1)), (long long)(fragments ? o->fragments : 1));
	return RV_OK;
}

static enum rv_err plan_make(const struct simulate_options *o, struct plan *p, struct rv_errtext *et) {
	memset(p, 0, sizeof *p);
	if (o->table != NO_TABLE && o->solve[0])
		return rv_fail(et, RV_E_INVALID, "solve = %s: a table has its own targets; leave --table or --solve out",
					   o->solve);
	if (o->table != NO_TABLE) {
		p->table = &published_tables[o->table - 1];
		return RV_OK;
	}
	if (o->solve[0])
		RV_TRY(read_solve(o, &p->utilisation, et));
	RV_TRY(check_streaming_only(o, et));
	for (enum simulate_method m = 0; m < SIMULATE_METHODS; m++) {
		const bool among_all = m != SIMULATE_GATHER || is_sparse(o);
		if ((o->method == ALL && among_all) || o->method == 1 + (int)m)
			RV_TRY(plan_run(o, m, p, et));
	}
	return RV_OK;
}

/* Returns the name of an option of the question that is not asked, line or memory, that was given;
 * NULL: none. */
static const char *given_of_other(const struct simulate_options *o) {
	struct simulate_options as_made;
	rv_options_defaults(options, &as_made);
	for (const struct rv_option *at = options; at->name != NULL; at++) {
		const bool of_memory = strcmp(at->group, "Memory") == 0, of_both = strcmp(at->group, "Output") == 0;
		if (!of_both && of_memory != o->memory && !rv_option_value_same(at, o, &as_made) &&
			strcmp(at->name, "memory") != 0)
			return at->name;
	}
	return NULL;
}

static struct card_question question_of(const struct simulate_options *o) {
	return (struct card_question){o->model, o->sequences, o->strangers};
}

/* Refuses options that one of both questions, line and memory, does not have. */
static enum rv_err check_memory(const struct simulate_options *o, struct rv_errtext *et) {
	const struct card_question q = question_of(o);
	struct run_config run;
	const char *given = given_of_other(o);
	if (given && o->memory)
		return rv_fail(et, RV_E_INVALID,
					   "%s belongs to the question about lines: leave it or --memory out (--model and --gpu say what "
					   "--memory is asked about)",
					   given);
	if (given)
		return rv_fail(et, RV_E_INVALID, "%s belongs to --memory: add it", given);
	if (!o->memory)
		return RV_OK;
	if (o->gpu == 0 && o->model[0])
		return rv_fail(et, RV_E_INVALID, "model = %s: the memory of a GPU is missing; add --gpu 24GB", o->model);
	if (o->gpu == 0 && o->gpus > 1)
		return rv_fail(et, RV_E_INVALID, "gpus = %lld: the memory of a GPU is missing; add --gpu 24GB",
					   (long long)o->gpus);
	if (o->sequences < o->gpus)
		return rv_fail(et, RV_E_RANGE, "sequences = %lld: must be at least one for each of %lld GPUs",
					   (long long)o->sequences, (long long)o->gpus);
	return o->model[0] ? card_run_of(&q, &run, et) : RV_OK;
}

static enum rv_err check_options(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct plan p;
	(void)args;
	RV_TRY(check_memory(opts, et));
	return plan_make(opts, &p, et);
}

/* ---- the answers ---- */

/* Answers for one run. If no line is enough, the answer is that of an unlimited one; if the method
 * was named, that is a fault. */
static enum rv_err answer_run(const struct simulate_options *o, const struct plan *p, int i, struct simulate_answer *a,
							  struct rv_errtext *et) {
	*a = (struct simulate_answer){.run = p->runs[i], .steps = (double)o->steps, .reachable = true};
	if (p->utilisation > 0) {
		enum rv_err e = simulate_solve_rate(&a->run, p->utilisation, &a->run.rate_bits_per_s, et);
		if (e != RV_OK && (e != RV_E_RANGE || o->method != ALL))
			return e;
		a->reachable = e == RV_OK;
		if (!a->reachable)
			a->run.rate_bits_per_s = INFINITY;
	}
	simulate(&a->run, &a->result);
	return RV_OK;
}

static enum rv_err print_answers(const struct simulate_options *o, const struct plan *p, bool json,
								 struct rv_errtext *et) {
	for (int i = 0; i < p->n_runs; i++) {
		struct simulate_answer a;
		RV_TRY(answer_run(o, p, i, &a, et));
		if (json) {
			RV_TRY(simulate_print_answer_json(&a, et));
			continue;
		}
		if (i == 0)
			simulate_print_head(&a, p->utilisation > 0);
		simulate_print_answer(&a);
	}
	if (o->beside[0] && !json)
		printf("\n%s\n", o->beside);
	return RV_OK;
}

static bool is_json(const struct simulate_options *o) {
	return o->format == FORMAT_JSON || (o->format == FORMAT_AUTO && !isatty(STDOUT_FILENO));
}

/* ---- memory ---- */

static struct card_room room_of(const struct simulate_options *o) {
	return (struct card_room){(int)o->gpus, (size_t)o->gpu, o->host > 0 ? (size_t)o->host : SIZE_MAX};
}

/* Prints the largest model for the cards that were named, or for each of the table. */
static enum rv_err print_largest(const struct simulate_options *o, bool json, struct rv_errtext *et) {
	const struct card_room named = room_of(o);
	const struct card_question q = question_of(o);
	for (int i = 0; i < (o->gpu > 0 ? 1 : CARD_ROOMS); i++) {
		struct card_room room = o->gpu > 0 ? named : card_rooms[i];
		struct card_answer a;
		room.host_bytes = named.host_bytes;
		RV_TRY(card_largest(&room, &q, &a, et));
		RV_TRY(card_print_room(&room, &a, i == 0, json, et));
	}
	return RV_OK;
}

static bool same_savings(const struct card_answer *a, const struct card_answer *b) {
	return a->fits && b->fits && a->savings.micro_batch == b->savings.micro_batch &&
		   a->savings.logits_rows == b->savings.logits_rows && a->savings.recompute == b->savings.recompute &&
		   a->savings.moments == b->savings.moments && a->savings.offload == b->savings.offload &&
		   a->savings.stream == b->savings.stream && a->savings.zero == b->savings.zero;
}

enum { RECOMPUTE_KINDS = RECOMPUTE_BLOCK + 1 };

/* Prints every combination of savings of a model, each with its largest micro-batch. */
static enum rv_err print_combinations(const struct simulate_options *o, bool json, struct rv_errtext *et) {
	const struct card_room room = room_of(o);
	const struct card_question q = question_of(o);
	const struct savings_wish any = SAVINGS_WISH_ANY;
	struct run_config run;
	struct card_answer chosen, a;
	bool first = true;
	const int places = room.cards > 1 ? 1 + ZERO_WEIGHTS : 2; /* one card offloads or not, several divide */
	RV_TRY(card_run_of(&q, &run, et));
	RV_TRY(card_plan(&run, &room, &any, &chosen, et));
	for (int moments = MOMENTS_FP32; moments <= MOMENTS_INT8; moments++)
		for (int i = 0; i < places * RECOMPUTE_KINDS; i++, first = false) {
			struct savings_wish wish = {.recompute = i % RECOMPUTE_KINDS, .moments = moments, .stream = SAVINGS_ANY};
			*(room.cards > 1 ? &wish.zero : &wish.offload) = i / RECOMPUTE_KINDS;
			RV_TRY(card_plan(&run, &room, &wish, &a, et));
			wish.micro_batch = 1; /* the least, where nothing fits */
			if (!a.fits)
				RV_TRY(card_plan(&run, &room, &wish, &a, et));
			RV_TRY(card_print_savings(&room, &a, same_savings(&a, &chosen), first, json, et));
		}
	if (!json && !chosen.fits)
		printf("\nNo combination fits.\n");
	return RV_OK;
}

static enum rv_err run_simulate(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct simulate_options *o = opts;
	struct plan p;
	(void)args;
	if (o->memory)
		return (o->model[0] ? print_combinations : print_largest)(o, is_json(o), et);
	RV_TRY(plan_make(o, &p, et));
	const bool json = is_json(o);
	return p.table ? simulate_print_table(p.table, json, et) : print_answers(o, &p, json, et);
}

const struct rv_command simulate_command = {
	.name = "simulate",
	.synopsis = "",
	.help = "The cost of a line for a run: share of the time spent computing, wall-clock, bytes.",
	.details =
		"Nothing is trained: a model of compute and line answers at once. It is compared with the published tables\n"
		"(--table), and with real workers on shaped links (bench/utilisation.sh).\n"
		"\n"
		"    rivulet simulate --params 124M --layers 12 --step-time-ms 500 --workers 4 --rate 20mbit\n"
		"    rivulet simulate --params 1.5B --layers 48 --step-time-ms 900 --steps-per-round 500 --rate 50mbit\n"
		"    rivulet simulate --params 1.5B --layers 48 --step-time-ms 900 --solve utilisation=0.95\n"
		"    rivulet simulate --method streaming --fragments 4 --overlap-steps 5 --bits 4 --solve utilisation=0.99\n"
		"    rivulet simulate --table streaming-diloco\n"
		"    rivulet simulate --preset covenant-72b\n"
		"    rivulet simulate --memory --gpu 24GB --model gpt2-1.5b\n"
		"\n"
		"steps-per-round, fragments and overlap-steps have the meaning of run.conf and `rivulet train`: a round is\n"
		"H steps, and round r exchanges fragment r mod P, so that each parameter is exchanged once in P H steps.\n"
		"Eager and delayed updates hide an exchange behind a whole round, as streaming does with --fragments 1\n"
		"--overlap-steps H.\n"
		"\n"
		"--memory plans, needs no GPU, and has the figures of a worker of a run with default codecs: what a card "
		"needs\n"
		"at least, with 0.5 GB for its driver, and what the worker's process needs beside it.\n"
		"\n"
		"step-time-ms of your machine: compute_us of a round in metrics.jsonl, over steps-per-round. If a round\n"
		"overlaps nothing, its time is H steps + 7 latencies + sync-ms + 2 (N-1)/N params bits overhead / rate.",
	.options = options,
	.presets = simulate_presets,
	.opts_bytes = sizeof(struct simulate_options),
	.check = check_options,
	.run = run_simulate,
};
