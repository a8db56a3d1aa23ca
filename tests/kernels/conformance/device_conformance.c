/* device_conformance.c: operations of a device's backend against the reference, one JSON line per
 * operation and size: the largest error as a share of its limit, and the time of each call. Not of
 * CTest: bench/gpu/ runs it, each operation in a process of its own. The sizes of GPT-2 are held
 * against `cpu` in fp32, the others against `ref`.
 *
 * Exit status: 0 all within their limits, 1 something was not, 77 there is no such device. */
#include "base/program.h"
#include "kernels/device.h"
#include "tests/kernels/conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SKIPPED = 77 };

struct options {
	bool list;
	char only[32], sizes[8], dtype[8], device[DEVICE_TEXT_BYTES];
	int64_t repetitions;
};

#define OPTION(name, type, field, fallback, lo, hi, choices, help)                                                     \
	{                                                                                                                  \
		name, type, offsetof(struct options, field), sizeof(((struct options *)0)->field), fallback, lo, hi, choices,  \
			help, "Conformance"                                                                                        \
	}

static const struct rv_option option_table[] = {
	OPTION("list", RV_OPT_BOOL, list, "false", 0, 0, NULL, "Print the operations' names, and do nothing else."),
	OPTION("only", RV_OPT_STRING, only, "", 0, 0, NULL, "This operation alone."),
	OPTION(
		"sizes", RV_OPT_ENUM, sizes, "all", 0, 0, "light|small|gpt2|all",
		"light: quick under an emulator or a sanitizer; small: awkward ones; gpt2: those of GPT-2; all: the last two."),
	OPTION("dtype", RV_OPT_ENUM, dtype, "bf16", 0, 0, "fp32|bf16", "Activations and operands of products."),
	OPTION("device", RV_OPT_STRING, device, "cuda", 0, 0, NULL, DEVICE_HELP),
	OPTION("repetitions", RV_OPT_INT, repetitions, "5", 0, 1000, NULL, "Timed calls of each operation; 0: none."),
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

struct session {
	const struct options *opts;
	struct backend *be, *ref, *cpu;
	long differences;
};

static double warm_ms(const struct conformance_row *row, const char *part) {
	for (int i = 0; i < row->warm.n_parts; i++)
		if (strcmp(row->warm.parts[i].name, part) == 0)
			return row->warm.parts[i].ms / row->warm.parts[i].calls;
	return 0;
}

/* Times are those of one call; cold_ms is of the first, which chooses plans. */
static void print_row(const struct conformance_row *row, const char *dtype, bool large) {
	const struct duo_findings *f = &row->checked;
	printf("{\"op\": \"%s\", \"dtype\": \"%s\", \"sizes\": \"%s\", \"shape\": \"%s\", \"worst\": %.4g, \"at\": \"%s\", "
		   "\"differences\": %ld, \"parts\": [",
		   row->name, dtype, large ? "gpt2" : "small", f->shape, f->worst, f->worst_at, f->differences);
	for (int i = 0; i < f->n_parts; i++)
		printf("%s{\"name\": \"%s\", \"cold_ms\": %.5g, \"ms\": %.5g}", i ? ", " : "", f->parts[i].name,
			   f->parts[i].ms / f->parts[i].calls, warm_ms(row, f->parts[i].name));
	printf("]}\n");
	fflush(stdout); /* the next size may end the process */
}

static void measure(struct session *s, struct duo *d, const struct conformance_case *c, int size, bool large) {
	struct conformance_row row;
	fprintf(stderr, "%s, %s size %d\n", c->name, large ? "gpt2" : "small", size);
	conformance_measure(d, c, size, (int)s->opts->repetitions, &row);
	print_row(&row, s->opts->dtype, large);
	s->differences += row.checked.differences;
}

static void measure_case(struct session *s, const struct conformance_case *c) {
	const char *sizes = s->opts->sizes;
	struct duo small, large;
	duo_init(&small, s->ref, s->be);
	duo_init(&large, s->cpu, s->be);
	int n = strcmp(sizes, "gpt2") == 0 ? 0 : strcmp(sizes, "light") == 0 ? c->light : c->sizes;
	for (int i = 0; i < n; i++)
		measure(s, &small, c, i, false);
	n = strcmp(sizes, "gpt2") == 0 || strcmp(sizes, "all") == 0 ? c->large : 0;
	for (int i = 0; i < n; i++)
		measure(s, &large, c, c->sizes + i, true);
}

static enum rv_err measure_all(struct session *s, struct rv_errtext *et) {
	const struct conformance_case *c;
	bool found = false;
	for (int i = 0; (c = conformance_case_at(i)); i++)
		if (!s->opts->only[0] || strcmp(s->opts->only, c->name) == 0) {
			measure_case(s, c);
			found = true;
		}
	if (!found)
		return rv_fail(et, RV_E_INVALID, "--only %s: no such operation; --list names them", s->opts->only);
	if (s->differences)
		return rv_fail(et, RV_E_RANGE, "%ld differences beyond their limits", s->differences);
	return RV_OK;
}

static enum rv_err open_backends(struct session *s, struct rv_errtext *et) {
	const struct backend_options fp32 = {.isa = "auto"};
	const struct backend_options opt = {.compute = strcmp(s->opts->dtype, "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32,
										.isa = "auto"};
	struct device_choice device;
	if (device_choose(s->opts->device, &device, et) != RV_OK) {
		fprintf(stderr, "%s\n", et->text);
		exit(EXIT_SKIPPED);
	}
	RV_TRY(device_open(&device, 0, &opt, &s->be, et));
	fprintf(stderr, "%s\n", s->be->ops->describe(s->be));
	RV_TRY(backend_open("ref", &fp32, &s->ref, et));
	return backend_open("cpu", &fp32, &s->cpu, et);
}

static void close_backends(struct session *s) {
	struct backend *const all[] = {s->be, s->ref, s->cpu};
	for (int i = 0; i < COUNT(all); i++)
		if (all[i])
			backend_close(all[i]);
}

static void list_cases(void) {
	const struct conformance_case *c;
	for (int i = 0; (c = conformance_case_at(i)); i++)
		printf("%s\n", c->name);
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct session s = {.opts = opts};
	(void)args;
	if (s.opts->list) {
		list_cases();
		return RV_OK;
	}
	enum rv_err e = open_backends(&s, et);
	if (e == RV_OK)
		e = measure_all(&s, et);
	close_backends(&s);
	return e;
}

int main(int argc, char **argv) {
	const struct rv_command commands[] = {
		{.name = NULL,
		 .synopsis = "",
		 .help = "Operations of a device's backend against the reference, a JSON line for each size.",
		 .options = option_table,
		 .opts_bytes = sizeof(struct options),
		 .run = run},
		{.run = NULL},
	};
	const struct rv_program program = {
		.name = "device_conformance", .summary = "Every operation against the reference.", .commands = commands};
	return rv_program_main(&program, argc, argv);
}
