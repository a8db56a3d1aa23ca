/* bench_gpu.c: our training step on any device, of any GPT-2 shape, for bench/gpu/. JSON lines on
 * stdout, flushed one by one; the backend's messages on stderr.
 *
 * --measure steps: whole steps, a line each; --digest adds the hash of the weights behind them;
 * --profile marks them for a profiler. --measure phases: steps operation by operation, each until
 * it is done, a line per phase; the sum is above the step's time, in which operations follow
 * without waiting. --measure ceilings: a copy and a product. */
#include "base/err.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/program.h"
#include "bench/ceilings.h"
#include "bench/phase_backend.h"
#include "bench/profiler.h"
#include "bench/step_ours.h"
#include "kernels/device.h"
#include "train/replica.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct options {
	char device[DEVICE_TEXT_BYTES], dtype[8], measure[16];
	int64_t layers, heads, channels, vocab, context, batch, steps, side, copy_bytes;
	bool digest, profile;
};

#define OPTION(name, type, field, fallback, lo, hi, choices, help)                                                     \
	{                                                                                                                  \
		name, type, offsetof(struct options, field), sizeof(((struct options *)0)->field), fallback, lo, hi, choices,  \
			help, "Benchmark"                                                                                          \
	}

static const struct rv_option option_table[] = {
	OPTION("device", RV_OPT_STRING, device, "auto", 0, 0, NULL, DEVICE_HELP),
	OPTION("dtype", RV_OPT_ENUM, dtype, "bf16", 0, 0, "fp32|bf16", "Activations and operands of products."),
	OPTION("measure", RV_OPT_ENUM, measure, "steps", 0, 0, "steps|phases|ceilings", "What to measure."),
	OPTION("layers", RV_OPT_INT, layers, "12", 1, 128, NULL, "Blocks."),
	OPTION("heads", RV_OPT_INT, heads, "12", 1, 128, NULL, "Heads of attention."),
	OPTION("channels", RV_OPT_INT, channels, "768", 1, 16384, NULL, "Width."),
	OPTION("vocab", RV_OPT_INT, vocab, "50304", 256, 1000000, NULL, "Size of the vocabulary."),
	OPTION("context", RV_OPT_INT, context, "1024", 1, 65536, NULL, "Tokens of a sequence."),
	OPTION("batch", RV_OPT_INT, batch, "16", 1, 1024, NULL, "Sequences of a step."),
	OPTION("steps", RV_OPT_INT, steps, "10", 1, 1000, NULL, "Steps to measure, after two warm-up steps."),
	OPTION("digest", RV_OPT_BOOL, digest, "false", 0, 0, NULL, "Print the hash of the weights after the last step."),
	OPTION("profile", RV_OPT_BOOL, profile, "false", 0, 0, NULL,
		   "Mark the measured steps for ncu --profile-from-start off."),
	OPTION("side", RV_OPT_INT, side, "8192", 16, 32768, NULL, "Rows and columns of the ceiling's product."),
	OPTION("copy-bytes", RV_OPT_BYTES, copy_bytes, "1GiB", 1024, 1e12, NULL, "Size of the ceiling's copy."),
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

enum { WARM_UP = 2 }; /* the first plans, the second is captured as a graph */

static struct step_shape shape_of(const struct options *o) {
	return (struct step_shape){.letter = '-',
							   .name = "of the options",
							   .layers = (int)o->layers,
							   .heads = (int)o->heads,
							   .channels = (int)o->channels,
							   .vocab = (int)o->vocab,
							   .context = (int)o->context,
							   .batch = (int)o->batch};
}

static double now_ms(void) {
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- whole steps ---- */

static void print_digest(struct replica *r) {
	char hex[2 * RV_HASH_BYTES + 1];
	struct rv_hash hash = rv_hash_of(replica_theta(r), replica_n_params(r) * sizeof(float));
	rv_hex_encode(hash.b, sizeof hash.b, hex);
	printf("{\"digest\": \"%s\"}\n", hex);
}

static void time_step(struct step_ours *ours, const char *name) {
	double begin = now_ms();
	step_ours_step(ours);
	printf("{\"%s\": %.5g}\n", name, now_ms() - begin);
	fflush(stdout);
}

static enum rv_err measure_steps(const struct options *o, struct backend *be, struct rv_errtext *et) {
	const struct step_shape s = shape_of(o);
	struct step_ours ours = {0};
	double begin = now_ms();
	RV_TRY(step_ours_open(&ours, &s, NULL, be, et));
	printf("{\"start_ms\": %.5g}\n", now_ms() - begin);
	for (int i = 0; i < WARM_UP; i++)
		time_step(&ours, "warm_up_ms");
	if (o->profile)
		profiler_start();
	for (int64_t i = 0; i < o->steps; i++)
		time_step(&ours, "step_ms");
	if (o->profile)
		profiler_stop();
	if (o->digest)
		print_digest(ours.replica);
	step_ours_close(&ours);
	return RV_OK;
}

/* ---- phases ---- */

static void print_phases(const struct backend *be, int64_t steps) {
	const struct phase_sum *sums = phase_backend_sums(be);
	for (int i = 0; i < N_PHASES; i++)
		if (sums[i].seconds > 0)
			printf("{\"phase\": \"%s\", \"bound\": \"%s\", \"ms\": %.5g, \"work\": %.6g}\n", phase_name(i),
				   phase_bound(i) == PHASE_MEMORY ? "bytes" : "flop", sums[i].seconds * 1e3 / (double)steps,
				   sums[i].work / (double)steps);
}

static enum rv_err measure_phases(const struct options *o, struct backend *be, struct rv_errtext *et) {
	const struct step_shape s = shape_of(o);
	struct step_ours ours = {0};
	struct backend *measured = phase_backend_new(be, CLOCK_MONOTONIC);
	if (!measured)
		return rv_fail(et, RV_E_NOMEM, "no memory to measure with");
	enum rv_err e = step_ours_open(&ours, &s, NULL, measured, et);
	for (int i = 0; e == RV_OK && i < WARM_UP; i++)
		step_ours_step(&ours);
	phase_backend_reset(measured);
	for (int64_t i = 0; e == RV_OK && i < o->steps; i++)
		step_ours_step(&ours);
	if (e == RV_OK)
		print_phases(measured, o->steps);
	step_ours_close(&ours);
	backend_close(measured);
	return e;
}

/* ---- ceilings ---- */

static enum rv_err measure_ceilings(const struct options *o, struct backend *be, struct rv_errtext *et) {
	struct ceilings c;
	RV_TRY(ceilings_measure(be, (size_t)o->copy_bytes, (int)o->side, &c, et));
	printf("{\"copy_gb_per_s\": %.5g, \"product_tflop_per_s\": %.5g, \"side\": %d}\n", c.copy_gb_per_s,
		   c.product_tflop_per_s, (int)o->side);
	return RV_OK;
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct options *o = opts;
	const struct backend_options backend = {.compute = strcmp(o->dtype, "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32,
											.isa = "auto"};
	struct device_choice device;
	struct backend *be;
	(void)args;
	RV_TRY(device_choose(o->device, &device, et));
	RV_TRY(device_open(&device, 0, &backend, &be, et));
	const char *libraries = device_libraries(&device);
	fprintf(stderr, "%s\n", be->ops->describe(be));
	if (libraries)
		fprintf(stderr, "libraries: %s\n", libraries);
	enum rv_err e = strcmp(o->measure, "phases") == 0     ? measure_phases(o, be, et)
					: strcmp(o->measure, "ceilings") == 0 ? measure_ceilings(o, be, et)
														  : measure_steps(o, be, et);
	backend_close(be);
	return e;
}

int main(int argc, char **argv) {
	const struct rv_command commands[] = {
		{.name = NULL,
		 .synopsis = "",
		 .help = "Our training step on a device: whole, operation by operation, or the device's ceilings.",
		 .options = option_table,
		 .opts_bytes = sizeof(struct options),
		 .run = run},
		{.run = NULL},
	};
	const struct rv_program program = {.name = "bench_gpu", .summary = "A step on a device.", .commands = commands};
	return rv_program_main(&program, argc, argv);
}
