/* inspect.c: `rivulet inspect`: the kind and contents of files and directories. */
#include "lab/inspect/inspect.h"
#include "lab/commands/commands.h"

#include <stdio.h>
#include <unistd.h>

/* Inspects each path. If there are several, a failure is reported and the others are still
 * inspected. */
static enum rv_err run_inspect(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)opts;
	bool table = isatty(STDOUT_FILENO);
	enum rv_err first = RV_OK;
	int failed = 0;
	for (int i = 0; i < args->n; i++) {
		json_t *facts;
		enum rv_err e = inspect_path(args->at[i], &facts, et);
		if (e != RV_OK && args->n == 1)
			return e;
		if (e != RV_OK) {
			(void)fflush(stdout);
			(void)fprintf(stderr, "rivulet: %s\n", et->text);
			first = failed++ == 0 ? e : first;
			continue;
		}
		if (table && i > failed)
			putchar('\n');
		inspect_print(facts, table);
		json_decref(facts);
	}
	return failed == 0 ? RV_OK : rv_fail(et, first, "%d of %d could not be inspected", failed, args->n);
}

const struct rv_command inspect_command = {
	.name = "inspect",
	.synopsis = "FILE|DIR...",
	.args_min = 1,
	.args_max = RV_PROGRAM_ARGS_MAX,
	.help = "Identify a file or directory, and show its contents.",
	.details =
		"Safetensors and GGUF files, Hugging Face directories and config.json, tokenizers (tokenizer.json, tiktoken\n"
		"ranks), token shards, directories of runs, workers, coordinators and sweeps, run.conf, checkpoints, metrics,\n"
		"traces, a coordinator's store.db and backups. A table on a terminal, else a line of JSON for each. init-hash "
		"and tokenizer-hash are those of a "
		"run's\n"
		"configuration.",
	.run = run_inspect,
};
