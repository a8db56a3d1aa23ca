/* rollback.c: `rollback`: the operator takes back committed rounds that no disk holds any
 * longer. */
#include "coordinator/commands/commands.h"
#include "coordinator/commands/operator_session.h"

#include <stdlib.h>
#include <string.h>

struct rollback_options {
	char dir[RUN_DIR_BYTES];
	int64_t to_round;
	bool force;
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct rollback_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL,
	 "Directory of the run.", "Rollback"},
	{"to-round", RV_OPT_INT, offsetof(struct rollback_options, to_round), 0, NULL, 0, 1e15, NULL,
	 "The last round that is kept, 0 for none: all later ones are trained anew.", "Rollback"},
	{"force", RV_OPT_BOOL, offsetof(struct rollback_options, force), 0, "false", 0, 0, NULL,
	 "Also if members that hold the given-up rounds are merely absent, or still hold them; also to a round that no "
	 "present member has proven.",
	 "Rollback"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct rollback_options *o = opts;
	struct operator_session *session = NULL;
	char *text = NULL;
	RV_TRY(operator_open(o->dir, NULL, &session, et));
	enum rv_err e = operator_rollback(session, (uint64_t)o->to_round, o->force, &text, et);
	operator_close(session);
	if (e == RV_OK)
		(void)printf("%s%s", text, strchr(text, '\n') != NULL ? "" : "\n");
	free(text);
	return e;
}

const struct rv_command cmd_rollback = {
	.name = "rollback",
	.synopsis = "",
	.help = "Takes back committed rounds whose state no member holds any longer, so that the run can continue.",
	.details =
		"`status` reports when the run stands still because no present disk has the state of its round, which\n"
		"members held it last, and the latest provable round: use that one. Nothing is taken back without this\n"
		"command. It begins a new term: workers that are ahead go back, by their own disks if they can, and log\n"
		"it; they set the rounds taken back aside, in given-up-E of their directories. If an older copy\n"
		"of the coordinator's directory was restored under workers that are ahead, serve the newest copy: a rollback\n"
		"gives up all that was trained since, and if no disk reaches its round there is nothing to continue from.",
	.options = options,
	.opts_bytes = sizeof(struct rollback_options),
	.run = run,
};
