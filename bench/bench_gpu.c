/* bench_gpu.c: our training step on any device, of any GPT-2 shape: a contestant of the GPU's report (bench/gpu.py).
 *
 * --phases 0: answers the protocol of step_peer.h. --phases N: measures N steps operation by operation, each until it
 * is done, and prints a JSON line per phase; the sum is above the step's time, in which operations follow without
 * waiting.
 */
#include "base/err.h"
#include "base/program.h"
#include "bench/phase_backend.h"
#include "bench/step_ours.h"
#include "bench/step_peer.h"
#include "kernels/device.h"

#include <stdio.h>
#include <string.h>

struct options {
	char device[DEVICE_TEXT_BYTES], dtype[8];
	int64_t layers, heads, channels, vocab, context, batch, phases;
};

#define OPTION(name, type, field, fallback, lo, hi, choices, help)                                                     \
	{                                                                                                                  \
		name, type, offsetof(struct options, field), sizeof(((struct options *)0)->field), fallback, lo, hi, choices,  \
			help, "Benchmark"                                                                                          \
	}

static const struct rv_option option_table[] = {
	OPTION("device", RV_OPT_STRING, device, "auto", 0, 0, NULL, DEVICE_HELP),
	OPTION("dtype", RV_OPT_ENUM, dtype, "bf16", 0, 0, "fp32|bf16", "Activations and operands of products."),
	OPTION("layers", RV_OPT_INT, layers, "12", 1, 128, NULL, "Blocks."),
	OPTION("heads", RV_OPT_INT, heads, "12", 1, 128, NULL, "Heads of attention."),
	OPTION("channels", RV_OPT_INT, channels, "768", 1, 16384, NULL, "Width."),
	OPTION("vocab", RV_OPT_INT, vocab, "50304", 256, 1000000, NULL, "Tokens there are."),
	OPTION("context", RV_OPT_INT, context, "1024", 1, 65536, NULL, "Tokens of a sequence."),
	OPTION("batch", RV_OPT_INT, batch, "16", 1, 1024, NULL, "Sequences of a step."),
	OPTION("phases", RV_OPT_INT, phases, "0", 0, 1000, NULL, "Steps to measure operation by operation; 0: be asked."),
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

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
	struct backend *measured = phase_backend_new(be);
	if (!measured)
		return rv_fail(et, RV_E_NOMEM, "no memory to measure with");
	enum rv_err e = step_ours_open(&ours, &s, measured, et);
	for (int i = 0; e == RV_OK && i < 2; i++)
		step_ours_step(&ours);
	phase_backend_reset(measured);
	for (int64_t i = 0; e == RV_OK && i < o->phases; i++)
		step_ours_step(&ours);
	if (e == RV_OK)
		print_phases(measured, o->phases);
	step_ours_close(&ours);
	backend_close(measured);
	return e;
}

static enum rv_err serve(const struct options *o, struct backend *be, struct rv_errtext *et) {
	const struct step_shape s = shape_of(o);
	struct step_ours ours = {0};
	RV_TRY(step_ours_open(&ours, &s, be, et));
	step_ours_step(&ours);
	step_ours_step(&ours);
	step_serve(stdout, step_ours_step, &ours);
	step_ours_close(&ours);
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
	fprintf(stderr, "%s\n", be->ops->describe(be));
	enum rv_err e = o->phases > 0 ? measure_phases(o, be, et) : serve(o, be, et);
	backend_close(be);
	return e;
}

int main(int argc, char **argv) {
	const struct rv_command commands[] = {
		{.name = NULL,
		 .synopsis = "",
		 .help = "Our training step on a device: by the protocol of bench/step_peer.h, or operation by operation.",
		 .options = option_table,
		 .opts_bytes = sizeof(struct options),
		 .run = run},
		{.run = NULL},
	};
	const struct rv_program program = {.name = "bench_gpu", .summary = "A step on a device.", .commands = commands};
	return rv_program_main(&program, argc, argv);
}
