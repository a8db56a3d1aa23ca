/* members.c: `members`: the computers that ask to join by an invite that needs approval. */
#include "coordinator/commands/commands.h"
#include "coordinator/commands/operator_session.h"
#include "coordinator/commands/wall_time.h"

#include <stdlib.h>
#include <string.h>

enum { FINGERPRINT_SHOWN = 16 };

struct members_options {
	char dir[RUN_DIR_BYTES];
	bool json;
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct members_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL,
	 "Directory of the run.", "Members"},
	{"json", RV_OPT_BOOL, offsetof(struct members_options, json), 0, "no", 0, 0, NULL, "`pending` as JSON.", "Members"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static const char *string(const json_t *o, const char *key) {
	const char *s = json_string_value(json_object_get(o, key));
	return s != NULL ? s : "";
}

static void print_table(const json_t *all) {
	const json_t *a;
	char asked[WALL_TIME_BYTES];
	size_t i;
	(void)printf("%-16s  %-8s  %6s  %-20s  %s\n", "FINGERPRINT", "STATE", "INVITE", "ASKED (UTC)", "NAME");
	json_array_foreach(all, i, a) {
		wall_time(json_integer_value(json_object_get(a, "asked_us")), asked);
		(void)printf("%.*s  %-8s  %6" JSON_INTEGER_FORMAT "  %-20s  %s\n", FINGERPRINT_SHOWN, string(a, "key"),
					 string(a, "state"), json_integer_value(json_object_get(a, "invite")), asked, string(a, "name"));
	}
}

static enum rv_err list(struct operator_session *session, bool json, struct rv_errtext *et) {
	json_t *all = NULL;
	RV_TRY(operator_list_askers(session, &all, et));
	operator_print_list(all, json, print_table);
	return RV_OK;
}

static enum rv_err decide(struct operator_session *session, const char *prefix, bool approve, struct rv_errtext *et) {
	char *text = NULL;
	RV_TRY(operator_decide(session, prefix, approve, &text, et));
	(void)fputs(text, stdout);
	free(text);
	return RV_OK;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	static const char *const words[] = {"pending", "approve", "refuse", NULL};
	const char *word = args->at[0];
	(void)opts;
	if (!rv_name_is_one_of(word, words)) {
		const char *near = rv_nearest_name(word, words, 3);
		return rv_fail(et, RV_E_INVALID, "members %.40s: must be pending, approve or refuse%s%s%s", word,
					   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	}
	bool lists = strcmp(word, "pending") == 0;
	if (args->n == (lists ? 1 : 2))
		return RV_OK;
	return lists ? rv_fail(et, RV_E_INVALID, "members pending: takes no argument, and %.40s is one", args->at[1])
				 : rv_fail(et, RV_E_INVALID, "members %s: must be followed by the first digits of a fingerprint", word);
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct members_options *o = opts;
	struct operator_session *session = NULL;
	RV_TRY(operator_open(o->dir, NULL, &session, et));
	enum rv_err e = args->n == 1 ? list(session, o->json, et)
								 : decide(session, args->at[1], strcmp(args->at[0], "approve") == 0, et);
	operator_close(session);
	return e;
}

const struct rv_command cmd_members = {
	.name = "members",
	.synopsis = "pending | approve KEYPREFIX | refuse KEYPREFIX",
	.args_min = 1,
	.args_max = 2,
	.help = "Lists the computers that ask to join by an invite made with --approve, and lets one in or refuses it.",
	.details = "The volunteer's worker shows the fingerprint of its key: compare it with the one listed here before\n"
			   "you approve it. At least 6 of its digits name a computer, where no other key begins so. A computer\n"
			   "gets its number when it joins; one that asked a week ago and did not join is forgotten, and may ask\n"
			   "again.",
	.options = options,
	.opts_bytes = sizeof(struct members_options),
	.check = check,
	.run = run,
};
