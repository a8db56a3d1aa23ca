/* checkpoint.c: `rivulet checkpoint`: the state files of a worker. */
#include "lab/worker_files/checkpoint.h"
#include "lab/commands/commands.h"
#include "lab/inspect/inspect.h"
#include "lab/run/console.h"
#include "lab/worker_files/worker_rounds.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct checkpoint_options {
	int64_t round, keep_snapshots, keep_log;
	bool dry_run;
};

#define FIELD(f) offsetof(struct checkpoint_options, f)

enum { USUAL_KEEP_SNAPSHOTS = 2 }; /* the default below */

static const struct rv_option options[] = {
	{"round", RV_OPT_INT, FIELD(round), 0, "-1", -1, 9007199254740992.0, NULL,
	 "verify: only the files that make this round; export: the round to take. -1: all files; the newest round.",
	 "Checkpoint"},
	{"keep-snapshots", RV_OPT_INT, FIELD(keep_snapshots), 0, "2", 1, CHECKPOINT_MAX_KEEP, NULL,
	 "prune: this many of the newest snapshots stay. Joiners may still start from the last but one.", "Checkpoint"},
	{"keep-log", RV_OPT_INT, FIELD(keep_log), 0, "0", 0, CHECKPOINT_MAX_KEEP, NULL,
	 "prune: at least this many rounds of log stay; 0: those after the oldest snapshot that stays.", "Checkpoint"},
	{"dry-run", RV_OPT_BOOL, FIELD(dry_run), 0, "false", 0, 0, NULL, "prune: only print what would be removed.",
	 "Checkpoint"},
	{.name = NULL},
};

static const char *const verbs[] = {"list", "verify", "export", "prune", NULL};
enum { VERBS = sizeof verbs / sizeof verbs[0] - 1 };

/* Exports the state. Reports damage on stderr: stdout is the result's. */
static enum rv_err export_state(const struct checkpoint_options *o, const struct rv_args *args, json_t **facts,
								struct rv_errtext *et) {
	struct rv_events *events;
	RV_TRY(console_events(stderr, &events, et));
	enum rv_err e = checkpoint_export(args->at[1], o->round, args->at[2], events, facts, et);
	rv_events_free(events);
	return e;
}

static enum rv_err run_verb(const struct checkpoint_options *o, const struct rv_args *args, json_t **facts,
							struct rv_errtext *et) {
	const char *verb = args->at[0], *dir = args->at[1];
	const struct checkpoint_policy policy = {(uint64_t)o->keep_snapshots, (uint64_t)o->keep_log};
	if (!worker_rounds_is_worker(dir))
		return rv_fail(et, RV_E_NOTFOUND, "%s: not a worker's directory (run.conf, run.link): give the --dir of one",
					   dir);
	if (strcmp(verb, "list") == 0)
		return checkpoint_list(dir, facts, et);
	if (strcmp(verb, "verify") == 0)
		return checkpoint_verify(dir, o->round, facts, et);
	if (strcmp(verb, "export") == 0)
		return export_state(o, args, facts, et);
	return checkpoint_prune(dir, &policy, o->dry_run, facts, et);
}

static enum rv_err run_checkpoint(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	json_t *facts = NULL;
	enum rv_err e = run_verb(opts, args, &facts, et);
	if (facts)
		inspect_print(facts, isatty(STDOUT_FILENO));
	json_decref(facts);
	return e;
}

/* Refuses options without an effect on the verb: a user who gives one expects an effect. */
static enum rv_err check_options(const struct checkpoint_options *o, const char *verb, struct rv_errtext *et) {
	bool prune = strcmp(verb, "prune") == 0, makes = strcmp(verb, "verify") == 0 || strcmp(verb, "export") == 0;
	if (o->dry_run && !prune)
		return rv_fail(et, RV_E_INVALID, "--dry-run: for prune only; %s removes nothing", verb);
	if (o->round >= 0 && !makes)
		return rv_fail(et, RV_E_INVALID, "--round: for verify and export only; %s",
					   prune ? "prune uses --keep-snapshots and --keep-log, and --dry-run prints what it would remove"
							 : "list lists every file");
	if ((o->keep_snapshots != USUAL_KEEP_SNAPSHOTS || o->keep_log != 0) && !prune)
		return rv_fail(et, RV_E_INVALID, "--keep-snapshots, --keep-log: for prune only; %s removes nothing", verb);
	return RV_OK;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct checkpoint_options *o = opts;
	const char *verb = args->at[0];
	if (!rv_name_is_one_of(verb, verbs)) {
		const char *near = rv_nearest_name(verb, verbs, VERBS);
		return rv_fail(et, RV_E_INVALID, "checkpoint %s: must be list, verify, export or prune%s%s%s", verb,
					   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	}
	bool export = strcmp(verb, "export") == 0;
	if (args->n < 2)
		return rv_fail(et, RV_E_INVALID, "checkpoint %s: a worker's directory is missing: rivulet checkpoint %s DIR",
					   verb, verb);
	if (export != (args->n == 3))
		return rv_fail(et, RV_E_INVALID, "%s",
					   export ? "checkpoint export: the target is missing: rivulet checkpoint export DIR OUT --round R"
							  : "checkpoint: takes one directory");
	return check_options(o, verb, et);
}

const struct rv_command checkpoint_command = {
	.name = "checkpoint",
	.synopsis = "list|verify|export|prune DIR [OUT]",
	.args_min = 1,
	.args_max = 3,
	.help = "List, check, export or remove the state that a worker keeps on disk.",
	.details =
		"DIR is a worker's --dir. A snapshot (snapshot-R.rvs) is the whole shared state before round R; a log entry\n"
		"(log-R.rvl) is the change of round R. A snapshot and the entries after it make every later round again, bit "
		"for\n"
		"bit. list, verify and export may be used while the worker runs.\n"
		"\n"
		"    list DIR              every file, its size, and its use\n"
		"    verify DIR            reads all of it, replays every round, and names what is damaged (exit status 1)\n"
		"    export DIR OUT        the state of --round R, weights and outer state, as OUT/snapshot-R.rvs\n"
		"                          (for files that others load: rivulet export DIR --round R --out OUT)\n"
		"    prune DIR             removes files beyond --keep-snapshots and --keep-log; the worker must not run",
	.options = options,
	.opts_bytes = sizeof(struct checkpoint_options),
	.check = check,
	.run = run_checkpoint,
};
