/* status.c: `rivulet-worker status`: what the worker that runs in a directory does, and whether it
 * is of use. */
#include "worker/commands/commands.h"
#include "worker/local/local_client.h"
#include "worker/local/status_text.h"

#include <jansson.h>

struct status_options {
	char dir[256];
	bool json;
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct status_options, dir), sizeof(((struct status_options *)0)->dir),
	 "rivulet-worker", 1, 0, NULL, "Directory of the worker.", "Status"},
	{"json", RV_OPT_BOOL, offsetof(struct status_options, json), 0, "no", 0, 0, NULL,
	 "Print it as one JSON object, with all that the page shows (docs/files.md).", "Status"},
	{.name = NULL},
};

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct status_options *o = opts;
	char url[LOCAL_URL_BYTES];
	json_t *status;
	(void)args;
	RV_TRY(local_client_status(o->dir, &status, et));
	if (o->json) {
		(void)json_dumpf(status, stdout, JSON_INDENT(2));
		(void)putchar('\n');
	} else {
		status_text_print(status, stdout);
		if (local_client_url(o->dir, url, NULL) == RV_OK)
			(void)printf("Page:         %s\n", url);
	}
	json_decref(status);
	return RV_OK;
}

const struct rv_command worker_status_command = {
	.name = "status",
	.synopsis = "",
	.help = "Tells what the worker that runs in --dir does: whether the last round counted it, what it has given, its "
			"line, its pace, and where its page is.",
	.options = options,
	.opts_bytes = sizeof(struct status_options),
	.run = run,
};
