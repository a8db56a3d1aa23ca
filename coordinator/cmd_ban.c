/* cmd_ban.c: `ban` and `unban`: an operator removes a member, or takes that back. */
#include "coordinator/commands.h"
#include "coordinator/operator_session.h"

#include <stdlib.h>
#include <string.h>

struct ban_options {
	char dir[RUN_DIR_BYTES];
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct ban_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL, "Directory of the run.",
	 "Ban"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static enum rv_err parse_member(const char *text, uint32_t *out, struct rv_errtext *et) {
	size_t n = strlen(text);
	if (n == 0 || n > 3 || strspn(text, "0123456789") != n)
		return rv_fail(et, RV_E_INVALID, "%.40s: must be a member's number, as `status` shows it", text);
	*out = (uint32_t)strtoul(text, NULL, 10);
	return RV_OK;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)opts;
	uint32_t member;
	return parse_member(args->at[0], &member, et);
}

static enum rv_err set_banned(const struct ban_options *o, const struct rv_args *args, bool banned,
							  struct rv_errtext *et) {
	struct run_dir d;
	struct operator_session *session = NULL;
	uint32_t member = 0;
	RV_TRY(parse_member(args->at[0], &member, et));
	RV_TRY(run_dir_find(o->dir, &d, et));
	RV_TRY(operator_open(&d, NULL, &session, et));
	enum rv_err e = operator_ban(session, member, banned, et);
	operator_close(session);
	if (e == RV_OK)
		(void)printf("member %u is %s\n", member, banned ? "banned" : "allowed again");
	return e;
}

static enum rv_err run_ban(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	return set_banned(opts, args, true, et);
}

static enum rv_err run_unban(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	return set_banned(opts, args, false, et);
}

const struct rv_command cmd_ban = {
	.name = "ban",
	.synopsis = "MEMBER",
	.args_min = 1,
	.args_max = 1,
	.help = "Removes a member: it is not waited for, and takes part in nothing, until `unban`.",
	.options = options,
	.opts_bytes = sizeof(struct ban_options),
	.check = check,
	.run = run_ban,
};

const struct rv_command cmd_unban = {
	.name = "unban",
	.synopsis = "MEMBER",
	.args_min = 1,
	.args_max = 1,
	.help = "Lets a banned member take part again.",
	.options = options,
	.opts_bytes = sizeof(struct ban_options),
	.check = check,
	.run = run_unban,
};
