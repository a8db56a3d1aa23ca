/* cmd_sweep.c: `rivulet sweep`: every combination of some options' values, trained and put side by side. */
#include "lab/commands.h"
#include "lab/sweep_run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FILE has the command line's options, one a line; what the command line gives wins. */
static enum rv_err take_file(const char *path, struct sweep_options *o, struct rv_errtext *et) {
	struct rv_option table[SWEEP_OPTIONS_MAX];
	sweep_options_table(table, SWEEP_OPTIONS_MAX);
	struct sweep_options *file = calloc(1, sizeof *file);
	if (!file)
		return rv_fail(et, RV_E_NOMEM, "no memory for a sweep");
	rv_options_defaults(table, file);
	enum rv_err e = rv_options_parse_file(table, file, path, et);
	if (e == RV_OK)
		sweep_options_fill(o, file);
	free(file);
	return e;
}

static void print_summary(const struct sweep *s) {
	if (isatty(STDOUT_FILENO))
		sweep_summary_table(s->rows, s->n_cells, stdout);
	printf("%s%s/summary.csv%s\n", isatty(STDOUT_FILENO) ? "written: " : "{\"event\":\"summary\",\"path\":\"",
		   s->opts->out, isatty(STDOUT_FILENO) ? "" : "\"}");
}

static enum rv_err run_sweep(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct sweep_options *o = opts;
	struct sweep *s = calloc(1, sizeof *s);
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory for a sweep");
	enum rv_err e = args->n > 0 ? take_file(args->at[0], o, et) : RV_OK;
	if (e == RV_OK)
		e = sweep_open(o, s, et);
	if (e == RV_OK && o->print)
		sweep_print_commands(s, stdout);
	else if (e == RV_OK)
		e = sweep_run(s, et);
	if (e == RV_OK && !o->print)
		print_summary(s);
	sweep_release(s);
	free(s);
	return e;
}

/* Parses all that a start would, of a file named on the command line too. */
static enum rv_err check_cells(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct sweep_options *o = malloc(sizeof *o);
	struct sweep *s = calloc(1, sizeof *s);
	enum rv_err e = o && s ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for a sweep");
	if (e == RV_OK) {
		memcpy(o, opts, sizeof *o);
		e = args->n > 0 ? take_file(args->at[0], o, et) : RV_OK;
	}
	if (e == RV_OK)
		e = sweep_open(o, s, et);
	if (s)
		sweep_release(s);
	free(s);
	free(o);
	return e;
}

struct rv_command sweep_command_of(struct rv_option table[static SWEEP_OPTIONS_MAX]) {
	sweep_options_table(table, SWEEP_OPTIONS_MAX);
	return (struct rv_command){
		.name = "sweep",
		.synopsis = "[FILE]",
		.args_max = 1,
		.help = "Train every combination of some options' values, and compare.",
		.details = "Any option of `rivulet train` may have several values, separated by commas: --sync-every 1,8,32 "
				   "--workers 2,4\n"
				   "--seed 1,2,3 trains 18 runs, each in OUT/ID/ (sweep.json, metrics.jsonl, train.log, weights), "
				   "where ID is a hash\n"
				   "of what decides the result. OUT/summary.csv has a row for each. The same command goes on where it "
				   "was stopped,\n"
				   "and merges runs that were made elsewhere with the commands of --print (Slurm arrays, GNU "
				   "parallel). FILE holds\n"
				   "the same options, one `name = values` a line.",
		.options = table,
		.opts_bytes = sizeof(struct sweep_options),
		.check = check_cells,
		.run = run_sweep,
	};
}
