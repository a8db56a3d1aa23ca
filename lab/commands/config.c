/* config.c: `rivulet config`: prints the configuration of a run, for `rivulet-coordinator new-run
 * --config`. */
#include "base/run_config_idle.h"
#include "base/run_silence.h"
#include "lab/commands/commands.h"
#include "lab/run/run_files.h"
#include "outer/global.h"

#include <stdio.h>
#include <stdlib.h>

struct config_options {
	struct run_config run; /* first: run_config's table is used unchanged */
	struct run_files files;
};

static enum rv_err prepare(void *opts, struct rv_errtext *et) {
	struct config_options *o = opts;
	struct rv_errtext idle;
	RV_TRY(run_files_adopt(&o->files, &o->run, et));
	if (run_config_idle_text(&o->run, &idle) > 0)
		(void)fprintf(stderr, "note: %s\n", idle.text);
	return RV_OK;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	return global_check_run(&((const struct config_options *)opts)->run, et);
}

static void explain(const void *opts, FILE *out) {
	char text[RUN_SILENCE_TEXT_BYTES];
	run_silence_print(&((const struct config_options *)opts)->run, text);
	(void)fputs(text, out);
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct config_options *o = opts;
	size_t n = rv_options_print(run_config_options, &o->run, NULL, 0);
	char *text = malloc(n + 1);
	if (!text)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu bytes", n);
	(void)rv_options_print(run_config_options, &o->run, text, n + 1);
	(void)fputs(text, stdout);
	free(text);
	explain(o, stdout);
	return RV_OK;
}

struct rv_command config_command(struct rv_option table[static TRAIN_OPTIONS_MAX]) {
	const struct rv_option own[] = {RUN_FILES_OPTIONS(offsetof(struct config_options, files)), {.name = NULL}};
	run_config_table(own, table, TRAIN_OPTIONS_MAX);
	return (struct rv_command){
		.name = "config",
		.synopsis = "",
		.help = "Print a run's configuration, completed from presets, weights and a tokenizer.",
		.details = "For operators: the configuration of a run as a file. Examples:\n"
				   "    rivulet config --preset llama-150m --tokenizer tokenizer.json --rounds 500 > run.conf\n"
				   "    rivulet config --init ~/models/gpt2 --lr 1e-4 > run.conf\n"
				   "    rivulet-coordinator new-run --dir run --config run.conf",
		.options = table,
		.presets = run_presets,
		.opts_bytes = sizeof(struct config_options),
		.prepare = prepare,
		.check = check,
		.explain = explain,
		.run = run,
	};
}
