/* ban.c: `ban` and `unban`: an operator removes a member, or readmits it. */
#include "coordinator/commands/commands.h"
#include "coordinator/commands/operator_session.h"
#include "net/limits.h"

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

enum { NAME_SHOWN = 64 };

/* Returns true if the text is a member's number, which may have left memory. A number wins: names
 * are the volunteers' choice. */
static bool is_number(const char *text, uint32_t *member) {
	enum { DIGITS = 10 };
	const size_t n = strlen(text);
	if (n == 0 || n > DIGITS || strspn(text, "0123456789") != n)
		return false;
	const unsigned long long number = strtoull(text, NULL, 10);
	*member = number < NET_NO_MEMBER ? (uint32_t)number : NET_NO_MEMBER;
	return number < NET_NO_MEMBER;
}

/* Finds a member in memory by its unique name. */
static enum rv_err find_name(const json_t *status, const char *text, uint32_t *out, struct rv_errtext *et) {
	const json_t *m, *members = json_object_get(status, "members");
	int found = 0;
	size_t i;
	json_array_foreach(members, i, m) {
		const char *called = json_string_value(json_object_get(m, "name"));
		if (called == NULL || strcmp(called, text) != 0)
			continue;
		*out = (uint32_t)json_integer_value(json_object_get(m, "member"));
		found++;
	}
	if (found > 1)
		return rv_fail(et, RV_E_INVALID, "%.40s: %d members have this name: use the number that `status` shows", text,
					   found);
	return found == 1
			   ? RV_OK
			   : rv_fail(et, RV_E_NOTFOUND,
						 "%.40s: no member that `status` lists has this name: use the number of one that is away",
						 text);
}

static enum rv_err look_up(struct operator_session *session, const char *text, uint32_t *out, struct rv_errtext *et) {
	json_t *status = NULL;
	enum rv_err e = operator_status(session, &status, et);
	if (e == RV_OK)
		e = find_name(status, text, out, et);
	json_decref(status);
	return e;
}

static enum rv_err set_banned(const struct ban_options *o, const struct rv_args *args, bool banned,
							  struct rv_errtext *et) {
	struct operator_session *session = NULL;
	const char *text = args->at[0];
	uint32_t member = 0;
	RV_TRY(operator_open(o->dir, NULL, &session, et));
	const bool named = !is_number(text, &member);
	enum rv_err e = named ? look_up(session, text, &member, et) : RV_OK;
	if (e == RV_OK)
		e = operator_ban(session, member, banned, et);
	operator_close(session);
	if (e == RV_OK)
		(void)printf("member %u%s%.*s%s is %s\n", member, named ? " (" : "", NAME_SHOWN, named ? text : "",
					 named ? ")" : "", banned ? "banned" : "allowed again");
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
	.help = "Removes a member (its number, also of one that is away, or its unique name): it is not waited for, and "
			"takes part in "
			"nothing, until `unban`.",
	.options = options,
	.opts_bytes = sizeof(struct ban_options),
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
	.run = run_unban,
};
