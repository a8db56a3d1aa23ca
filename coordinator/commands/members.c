/* members.c: `members`: the computers that ask to join by an invite that needs approval. */
#include "coordinator/commands/commands.h"
#include "coordinator/commands/operator_session.h"
#include "coordinator/commands/wall_time.h"

#include <stdlib.h>
#include <string.h>

enum { FINGERPRINT_SHOWN = 16 };

struct members_options {
	char dir[RUN_DIR_BYTES];
	bool json, all;
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct members_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL,
	 "Directory of the run.", "Members"},
	{"json", RV_OPT_BOOL, offsetof(struct members_options, json), 0, "no", 0, 0, NULL, "`pending` as JSON.", "Members"},
	{"all", RV_OPT_BOOL, offsetof(struct members_options, all), 0, "no", 0, 0, NULL,
	 "`approve` and `refuse` decide about all that ask now, whose fingerprints nobody has compared.", "Members"},
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

/* What was decided about several: a fault does not keep the next ones from theirs. */
struct decided {
	int n, failed;
	enum rv_err first;
	struct rv_errtext why; /* of the first fault */
};

static void decide_next(struct operator_session *session, const char *prefix, bool approve, struct decided *d) {
	struct rv_errtext why = {0};
	const enum rv_err e = decide(session, prefix, approve, &why);
	d->n++;
	if (e == RV_OK)
		return;
	if (d->failed++ == 0) {
		d->first = e;
		d->why = why;
	} else {
		(void)fprintf(stderr, "%s\n", why.text);
	}
}

static enum rv_err fault_of(const struct decided *d, struct rv_errtext *et) {
	if (d->failed == 0)
		return RV_OK;
	if (d->n == 1)
		return rv_fail(et, d->first, "%s", d->why.text);
	return rv_fail(et, d->first, "%s (%d of %d were not decided)", d->why.text, d->failed, d->n);
}

static enum rv_err decide_named(struct operator_session *session, const struct rv_args *args, bool approve,
								struct rv_errtext *et) {
	struct decided d = {.n = 0};
	for (int i = 1; i < args->n; i++)
		decide_next(session, args->at[i], approve, &d);
	return fault_of(&d, et);
}

static enum rv_err decide_all(struct operator_session *session, bool approve, struct rv_errtext *et) {
	struct decided d = {.n = 0};
	json_t *all = NULL;
	const json_t *a;
	size_t i;
	RV_TRY(operator_list_askers(session, &all, et));
	json_array_foreach(all, i, a) {
		if (strcmp(string(a, "state"), "asks") == 0)
			decide_next(session, string(a, "key"), approve, &d);
	}
	json_decref(all);
	if (d.n == 0)
		(void)printf("nobody asks\n");
	return fault_of(&d, et);
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	static const char *const words[] = {"pending", "approve", "refuse", NULL};
	const char *word = args->at[0];
	if (!rv_name_is_one_of(word, words)) {
		const char *near = rv_nearest_name(word, words, 3);
		return rv_fail(et, RV_E_INVALID, "members %.40s: must be pending, approve or refuse%s%s%s", word,
					   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	}
	const bool all = ((const struct members_options *)opts)->all;
	if (strcmp(word, "pending") == 0)
		return args->n == 1 && !all ? RV_OK
									: rv_fail(et, RV_E_INVALID, "members pending: takes no argument, and %.40s is one",
											  all ? "--all" : args->at[1]);
	if ((args->n > 1) != all)
		return RV_OK;
	return all ? rv_fail(et, RV_E_INVALID, "members %s --all: takes no fingerprint, and %.80s is one", word,
						 args->at[1])
			   : rv_fail(et, RV_E_INVALID,
						 "members %s: must be followed by the first digits of fingerprints, or by --all", word);
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct members_options *o = opts;
	struct operator_session *session = NULL;
	RV_TRY(operator_open(o->dir, NULL, &session, et));
	const bool approve = strcmp(args->at[0], "approve") == 0;
	enum rv_err e;
	if (strcmp(args->at[0], "pending") == 0)
		e = list(session, o->json, et);
	else
		e = o->all ? decide_all(session, approve, et) : decide_named(session, args, approve, et);
	operator_close(session);
	return e;
}

const struct rv_command cmd_members = {
	.name = "members",
	.synopsis = "pending | approve KEYPREFIX... | refuse KEYPREFIX... | approve --all | refuse --all",
	.args_min = 1,
	.args_max = RV_PROGRAM_ARGS_MAX,
	.help = "Lists the computers that ask to join by an invite made with --approve, and lets them in or refuses them.",
	.details = "The volunteer's worker shows the fingerprint of its key: compare it with the one listed here before\n"
			   "you approve it. At least 6 of its digits name a computer, where no other key begins so. A computer\n"
			   "gets its number when it joins; one that asked a week ago and did not join is forgotten, and may ask\n"
			   "again.",
	.options = options,
	.opts_bytes = sizeof(struct members_options),
	.check = check,
	.run = run,
};
