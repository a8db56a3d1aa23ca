/* control.c: `rivulet-worker pause`, `resume` and `finish`: tell the worker that runs in a
 * directory. */
#include "worker/commands/commands.h"
#include "worker/local/local_client.h"

#include <jansson.h>
#include <stdio.h>

struct control_options {
	char dir[256];
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct control_options, dir), sizeof(((struct control_options *)0)->dir),
	 "rivulet-worker", 1, 0, NULL, "Directory of the worker.", "Control"},
	{.name = NULL},
};

/* Sends the command (takes the reference) and prints the answer. */
static enum rv_err tell(const struct control_options *o, json_t *command, struct rv_errtext *et) {
	char text[LOCAL_TEXT_BYTES];
	RV_TRY(local_client_command(o->dir, command, text, et));
	(void)printf("%s\n", text);
	return RV_OK;
}

/* Reads "2h" as seconds. */
static enum rv_err read_span(const char *text, int64_t *seconds, struct rv_errtext *et) {
	enum { LEAST_MS = 1000 };
	static const struct rv_option span[] = {
		{"pause", RV_OPT_DURATION_MS, 0, 0, "1h", LEAST_MS, 366.0 * 24 * 3600 * 1000, NULL, NULL, NULL},
		{.name = NULL}};
	int64_t ms;
	RV_TRY(rv_options_set(span, &ms, "pause", text, et));
	*seconds = ms / LEAST_MS;
	return RV_OK;
}

static enum rv_err check_pause(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	int64_t seconds;
	(void)opts;
	return args->n > 0 ? read_span(args->at[0], &seconds, et) : RV_OK;
}

static enum rv_err run_pause(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	int64_t seconds;
	if (args->n == 0)
		return tell(opts, json_pack("{s:s}", "command", "pause"), et);
	RV_TRY(read_span(args->at[0], &seconds, et));
	return tell(opts, json_pack("{s:s, s:I}", "command", "pause", "seconds", (json_int_t)seconds), et);
}

static enum rv_err run_resume(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	return tell(opts, json_pack("{s:s}", "command", "resume"), et);
}

static enum rv_err run_finish(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	return tell(opts, json_pack("{s:s}", "command", "finish"), et);
}

const struct rv_command worker_pause_command = {
	.name = "pause",
	.synopsis = "[2h]",
	.args_max = 1,
	.help = "Pauses the worker that runs in --dir, for a while (90s, 30min, 2h) or until it is resumed.",
	.details = "Processors, GPU and line are free at once, a GPU's memory within 2 s, or once a micro-batch that\n"
			   "takes longer ends; other memory after a minute, once the state is saved\n"
			   "(--free-gpu-memory-after, --free-memory-after).\n"
			   "The run goes on without this worker, which comes back in the next round after the pause. A pause\n"
			   "holds over restarts.\n",
	.options = options,
	.opts_bytes = sizeof(struct control_options),
	.check = check_pause,
	.run = run_pause,
};

const struct rv_command worker_resume_command = {
	.name = "resume",
	.synopsis = "",
	.help = "Ends the pause of the worker that runs in --dir.",
	.options = options,
	.opts_bytes = sizeof(struct control_options),
	.run = run_resume,
};

const struct rv_command worker_finish_command = {
	.name = "finish",
	.synopsis = "",
	.help = "Ends the worker that runs in --dir once its round is committed, so that its work counts.",
	.options = options,
	.opts_bytes = sizeof(struct control_options),
	.run = run_finish,
};
