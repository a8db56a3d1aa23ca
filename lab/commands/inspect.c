/* inspect.c: `rivulet inspect`: what files and directories are, and what is in them. */
#include "lab/inspect/inspect.h"
#include "lab/commands/commands.h"

#include <stdio.h>
#include <unistd.h>

/* Of several, each that cannot be named is told, and the others are looked at all the same. */
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
	.help = "Say what a file or directory is, and show what is in it.",
	.details =
		"Safetensors and GGUF files, Hugging Face directories and config.json, tokenizers (tokenizer.json, tiktoken\n"
		"ranks), token shards, directories of runs, workers, coordinators and sweeps, run.conf, checkpoints, metrics,\n"
		"traces. A table on a terminal, else a line of JSON for each. init-hash and tokenizer-hash are what a run's\n"
		"configuration asks for.",
	.run = run_inspect,
};
