/* local_commands.h: the commands that a worker takes from the person who runs it, by name. */
#ifndef RV_WORKER_LOCAL_LOCAL_COMMANDS_H
#define RV_WORKER_LOCAL_LOCAL_COMMANDS_H

#include "worker/local/mailbox.h"

struct local_command {
	const char *name; /* "pause"; NULL ends a table */
	/* Carries `request`, the whole JSON object, out on the owner's thread and writes a line for
	 * people to `text`, which is "". A fault is its answer: the text of `et`. */
	enum rv_err (*run)(void *ctx, const json_t *request, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et);
};

/* Carries out and answers all commands that wait; a name that is not in the table is refused with
 * the nearest that is. Calls `ran` (NULL: nothing) before each answer, so that anyone who reads it
 * finds the new status. Never blocks but in `run` and `ran`. */
void local_commands_serve(struct mailbox *m, const struct local_command *table, void *ctx, void (*ran)(void *ctx));

#endif
