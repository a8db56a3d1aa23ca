/* cmd_inspect.c: `rivulet inspect`: what files and directories are, and what is in them. */
#include "lab/commands.h"
#include "lab/inspect.h"

#include <stdio.h>
#include <unistd.h>

static enum rv_err run_inspect(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)opts;
	bool table = isatty(STDOUT_FILENO);
	for (int i = 0; i < args->n; i++) {
		json_t *facts;
		RV_TRY(inspect_path(args->at[i], &facts, et));
		if (table && i > 0)
			putchar('\n');
		inspect_print(facts, table);
		json_decref(facts);
	}
	return RV_OK;
}

const struct rv_command inspect_command = {
	.name = "inspect",
	.synopsis = "FILE|DIR...",
	.args_min = 1,
	.args_max = RV_PROGRAM_ARGS_MAX,
	.help = "Say what a file or directory is, and show what is in it.",
	.details =
		"Safetensors and GGUF files, Hugging Face directories and config.json, tokenizers (tokenizer.json, tiktoken\n"
		"ranks), token shards, directories of runs and of workers, checkpoints, metrics. A table on a terminal, else "
		"a\n"
		"line of JSON for each. init-hash and tokenizer-hash are what a run's configuration asks for.",
	.run = run_inspect,
};
