/* sweep.c: `rivulet sweep`: trains every combination of some options' values and compares them. */
#include "base/clean_text.h"
#include "lab/commands/commands.h"
#include "lab/sweep/run.h"

#include <jansson.h>
#include <unistd.h>

static void print_summary(const struct sweep *s) {
	char path[sizeof s->opts->out + 16];
	snprintf(path, sizeof path, "%s/summary.csv", s->opts->out);
	clean_text(path);
	if (isatty(STDOUT_FILENO)) {
		sweep_summary_table(s->rows, s->n_cells, stdout);
		printf("written: %s\n", path);
		return;
	}
	json_t *line = json_pack("{ss ss}", "event", "summary", "path", path);
	(void)json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(line);
}

/* A sweep in memory, with the objects that it borrows. */
struct opened {
	struct sweep_file file;
	struct sweep sweep;
};

static enum rv_err open_sweep(const struct sweep_options *o, const struct rv_args *args, struct opened *s,
							  struct rv_errtext *et) {
	*s = (struct opened){.file.n = 0};
	RV_TRY(sweep_file_read(args->n > 0 ? args->at[0] : NULL, o, &s->file, et));
	return sweep_open(&s->file, &s->sweep, et);
}

static void close_sweep(struct opened *s) {
	sweep_release(&s->sweep);
	sweep_file_release(&s->file);
}

static enum rv_err run_sweep(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct opened s;
	enum rv_err e = open_sweep(opts, args, &s, et);
	bool print = e == RV_OK && s.sweep.opts->print;
	if (print)
		e = sweep_print_commands(&s.sweep, stdout, et);
	else if (e == RV_OK)
		e = sweep_run(&s.sweep, et);
	if (e == RV_OK && !print)
		print_summary(&s.sweep);
	close_sweep(&s);
	return e;
}

/* Parses all that a start would, including a file named on the command line. */
static enum rv_err check_cells(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct opened s;
	enum rv_err e = open_sweep(opts, args, &s, et);
	close_sweep(&s);
	return e;
}

_Static_assert(SWEEP_MAX_VALUES == 64 && SWEEP_LIST_BYTES == 512, "the help says how long a list may be");

struct rv_command sweep_command_of(struct rv_option table[static SWEEP_OPTIONS_MAX]) {
	sweep_options_table(table, SWEEP_OPTIONS_MAX);
	return (struct rv_command){
		.name = "sweep",
		.synopsis = "[FILE]",
		.args_max = 1,
		.help = "Train every combination of some options' values, and compare.",
		.details =
			"Options of `rivulet train` may have several values, separated by commas (64 values and 511 characters at\n"
			"most): --sync-every 1,8,32 --workers 2,4 --seed 1,2,3 --total-steps 960 trains 18 runs, each in OUT/ID/\n"
			"(sweep.json, metrics.jsonl, train.log, weights), where ID is a hash of what decides the result.\n"
			"OUT/summary.csv has a row for each. A run whose loss stops being finite is recorded as diverged, which\n"
			"is a result. One that needs more memory than there is, is skipped and reported. The same command "
			"continues\n"
			"where it was stopped, and merges runs that were made elsewhere with the commands of --print (Slurm\n"
			"arrays, GNU parallel).\n"
			"--data, --tokenizer, --init, --save-every and --short-of-memory have one value, for all runs. Not here\n"
			"are train's --name, --parallel, --run-hash, --eval-replicas and --on-record-gap: a sweep names its runs,\n"
			"evaluates replicas, and trains a run anew whose record has a gap, by itself.\n"
			"\n"
			"FILE holds the same options, one `name = values` a line; the command line wins. A line [name] begins a\n"
			"section: what stands before the first holds for all, and each is a product of its own; a run that two\n"
			"have in common is trained once.",
		.options = table,
		.opts_bytes = sizeof(struct sweep_options),
		.check = check_cells,
		.run = run_sweep,
	};
}
