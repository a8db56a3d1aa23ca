/* invite.c: `invite`: links that volunteers paste; what is left of them, and their end. */
#include "coordinator/commands/commands.h"
#include "coordinator/commands/operator_session.h"
#include "coordinator/commands/wall_time.h"
#include "coordinator/service/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LASTS_MAX_MS ((double)SERVICE_LASTS_MAX_DAYS * 24 * 3600 * 1000)

struct invite_options {
	char dir[RUN_DIR_BYTES];
	char advertise[NET_ADDR_BYTES];
	int64_t count, uses, expires_ms;
	bool approve, json;
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct invite_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL,
	 "Directory of the run.", "Invite"},
	{"count", RV_OPT_INT, offsetof(struct invite_options, count), 0, "1", 1, SERVICE_INVITES_MAX, NULL,
	 "How many links.", "Invite"},
	{"uses", RV_OPT_INT, offsetof(struct invite_options, uses), 0, "1", 1, SERVICE_USES_MAX, NULL,
	 "How many computers each link lets join.", "Invite"},
	{"expires", RV_OPT_DURATION_MS, offsetof(struct invite_options, expires_ms), 0, "0", 0, LASTS_MAX_MS, NULL,
	 "How long each link lets computers join, such as 7d, by this machine's clock; 0: without end.", "Invite"},
	{"approve", RV_OPT_BOOL, offsetof(struct invite_options, approve), 0, "no", 0, 0, NULL,
	 "Each computer waits until `members approve` names it.", "Invite"},
	{"advertise", RV_OPT_STRING, offsetof(struct invite_options, advertise), NET_ADDR_BYTES, "", 0, 0, NULL,
	 "HOST:PORT for the links, while the coordinator does not run (default: that of the last `serve`).", "Invite"},
	{"json", RV_OPT_BOOL, offsetof(struct invite_options, json), 0, "no", 0, 0, NULL, "`list` as JSON.", "Invite"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

/* ---- one command each ---- */

/* Advises the operator of a run that is about to be open to many, and whose members do not audit
 * each other. The links are made already: a fault here changes nothing. */
static void advise(struct operator_session *session, int64_t uses) {
	struct run_config run;
	if (uses > 1 && operator_config(session, &run, NULL) == RV_OK && run.audit_chunks == 0)
		(void)fputs("note: many may join by this link, and members of this run do not audit each other (audit-chunks = "
					"0): for people whom you do not know make runs with --preset strangers; docs/security.md\n",
					stderr);
}

static enum rv_err make(struct operator_session *session, const struct invite_options *o, struct rv_errtext *et) {
	const struct invite_terms terms = {.uses = o->uses, .lasts_ms = o->expires_ms, .approve = o->approve};
	char *links = NULL;
	RV_TRY(operator_invite(session, &terms, (int)o->count, &links, et));
	(void)fputs(links, stdout);
	(void)fflush(stdout);
	free(links);
	advise(session, o->uses);
	return RV_OK;
}

/* Prints "0, 3, 4, ... (12 in all)", or "-". */
static void print_members(const json_t *in) {
	const json_t *m, *members = json_object_get(in, "members");
	json_int_t used = json_integer_value(json_object_get(in, "used"));
	size_t i;
	if (json_array_size(members) == 0)
		(void)fputs("-", stdout);
	json_array_foreach(members, i, m) {
		(void)printf("%s%" JSON_INTEGER_FORMAT, i > 0 ? ", " : "", json_integer_value(m));
	}
	if (used > (json_int_t)json_array_size(members))
		(void)printf(", ... (%" JSON_INTEGER_FORMAT " in all)", used);
	(void)fputc('\n', stdout);
}

static void print_invite(const json_t *in) {
	char made[WALL_TIME_BYTES], ends[WALL_TIME_BYTES] = "never", left[48];
	const json_t *end = json_object_get(in, "ends_us");
	json_int_t uses = json_integer_value(json_object_get(in, "uses"));
	json_int_t used = json_integer_value(json_object_get(in, "used"));
	const char *state = json_string_value(json_object_get(in, "state"));
	wall_time(json_integer_value(json_object_get(in, "made_us")), made);
	if (json_is_integer(end))
		wall_time(json_integer_value(end), ends);
	int n = snprintf(left, sizeof left, "%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT, uses - used, uses);
	json_int_t kept = json_integer_value(json_object_get(in, "kept"));
	if (kept > 0) /* for computers that are approved */
		(void)snprintf(left + n, sizeof left - (size_t)n, ", %" JSON_INTEGER_FORMAT " kept", kept);
	(void)printf("%6" JSON_INTEGER_FORMAT "  %-8s  %-14s  %-8s  %-20s  %-20s  ",
				 json_integer_value(json_object_get(in, "id")), state != NULL ? state : "", left,
				 json_is_true(json_object_get(in, "approve")) ? "yes" : "no", made, ends);
	print_members(in);
}

static void print_table(const json_t *all) {
	const json_t *in;
	size_t i;
	(void)printf("%6s  %-8s  %-14s  %-8s  %-20s  %-20s  %s\n", "ID", "STATE", "USES LEFT", "APPROVAL", "MADE (UTC)",
				 "ENDS (UTC)", "MEMBERS");
	json_array_foreach(all, i, in) {
		print_invite(in);
	}
}

static enum rv_err list(struct operator_session *session, bool json, struct rv_errtext *et) {
	json_t *all = NULL;
	RV_TRY(operator_list_invites(session, &all, et));
	operator_print_list(all, json, print_table);
	return RV_OK;
}

static enum rv_err revoke(struct operator_session *session, const char *name, struct rv_errtext *et) {
	char *text = NULL;
	RV_TRY(operator_revoke(session, name, &text, et));
	(void)fputs(text, stdout);
	free(text);
	return RV_OK;
}

/* ---- the command ---- */

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	static const char *const words[] = {"list", "revoke"};
	const char *word = args->n > 0 ? args->at[0] : NULL;
	(void)opts;
	if (word == NULL || (strcmp(word, "list") == 0 && args->n == 1))
		return RV_OK;
	if (strcmp(word, "list") == 0)
		return rv_fail(et, RV_E_INVALID, "invite list: takes no argument, and %.40s is one", args->at[1]);
	if (strcmp(word, "revoke") == 0)
		return args->n == 2 ? RV_OK
							: rv_fail(et, RV_E_INVALID,
									  "invite revoke: must be followed by the ID that `invite list` shows, or by the "
									  "link");
	const char *near = rv_nearest_name(word, words, 2);
	return rv_fail(et, RV_E_INVALID, "invite %.40s: must be `invite`, `invite list` or `invite revoke ID|LINK`%s%s%s",
				   word, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct invite_options *o = opts;
	struct address advertise;
	struct operator_session *session = NULL;
	if (o->advertise[0] != '\0')
		RV_TRY(address_parse(o->advertise, &advertise, et));
	RV_TRY(operator_open(o->dir, o->advertise[0] != '\0' ? &advertise : NULL, &session, et));
	enum rv_err e = args->n == 0   ? make(session, o, et)
					: args->n == 1 ? list(session, o->json, et)
								   : revoke(session, args->at[1], et);
	operator_close(session);
	return e;
}

const struct rv_command cmd_invite = {
	.name = "invite",
	.synopsis = "[list | revoke ID|LINK]",
	.args_max = 2,
	.help = "Prints invite links, one a line; lists them; revokes one.",
	.details = "A link lets --uses computers join, until it --expires or is revoked. It holds a secret: send it as\n"
			   "you would a password; one that many can read is best made with --approve. A worker uses it as its\n"
			   "only argument: rivulet-worker 'rivulet://...'\n"
			   "`invite list` shows what is left of each, when it ends, and which members came by it. `invite revoke\n"
			   "ID` ends one: its members stay, computers that wait for approval by it do not join.\n"
			   "All of it works while the coordinator runs and while it does not.",
	.options = options,
	.opts_bytes = sizeof(struct invite_options),
	.check = check,
	.run = run,
};
