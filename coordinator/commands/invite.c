/* invite.c: `invite`: links that volunteers paste. */
#include "coordinator/commands/commands.h"
#include "coordinator/commands/operator_session.h"
#include "coordinator/service/service.h"

#include <stdlib.h>

struct invite_options {
	char dir[RUN_DIR_BYTES];
	char advertise[NET_ADDR_BYTES];
	int64_t count;
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct invite_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL,
	 "Directory of the run.", "Invite"},
	{"count", RV_OPT_INT, offsetof(struct invite_options, count), 0, "1", 1, SERVICE_INVITES_MAX, NULL,
	 "How many links; each lets one worker join.", "Invite"},
	{"advertise", RV_OPT_STRING, offsetof(struct invite_options, advertise), NET_ADDR_BYTES, "", 0, 0, NULL,
	 "HOST:PORT for the links, while the coordinator does not run (default: that of the last `serve`).", "Invite"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct invite_options *o = opts;
	struct address advertise;
	struct operator_session *session = NULL;
	char *links = NULL;
	if (o->advertise[0] != '\0')
		RV_TRY(address_parse(o->advertise, &advertise, et));
	RV_TRY(operator_open(o->dir, o->advertise[0] != '\0' ? &advertise : NULL, &session, et));
	enum rv_err e = operator_invite(session, (int)o->count, &links, et);
	if (e == RV_OK)
		(void)fputs(links, stdout);
	free(links);
	operator_close(session);
	return e;
}

const struct rv_command cmd_invite = {
	.name = "invite",
	.synopsis = "",
	.help = "Prints invite links, one a line; each lets one worker join, once.",
	.details =
		"A link holds a secret: send it as you would a password. It works while the coordinator runs and while it\n"
		"does not. A worker uses it as its only argument: rivulet-worker 'rivulet://...'",
	.options = options,
	.opts_bytes = sizeof(struct invite_options),
	.run = run,
};
