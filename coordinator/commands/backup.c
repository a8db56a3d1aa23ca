/* backup.c: `backup` and `restore`: a whole run in one file. */
#include "coordinator/backup/backup.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/operator_session.h"

#include <inttypes.h>
#include <stdio.h>

struct backup_options {
	char dir[RUN_DIR_BYTES];
	bool force; /* restore */
};

#define DIR_OPTION(help)                                                                                               \
	{ "dir", RV_OPT_STRING, offsetof(struct backup_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL, help, "Backup" }

static const struct rv_option backup_table[] = {
	DIR_OPTION("Directory of the run."),
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static const struct rv_option restore_table[] = {
	DIR_OPTION("Directory to restore the run to: a new one, or the run's own."),
	{"force", RV_OPT_BOOL, offsetof(struct backup_options, force), 0, "no", 0, 0, NULL,
	 "Replace a newer state, or one that cannot be read; it is kept as store.db.replaced.", "Backup"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

/* Copies the store through `session`, one of operator_session.h. */
static enum rv_err copy_store(void *session, const char *path, struct rv_errtext *et) {
	return operator_copy_store(session, path, et);
}

static enum rv_err run_backup(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct backup_options *o = opts;
	struct run_dir d;
	struct backup_info info;
	struct operator_session *session = NULL;
	RV_TRY(run_dir_find(o->dir, &d, et));
	RV_TRY(operator_open(o->dir, NULL, &session, et));
	enum rv_err e = backup_make(&d, args->at[0], &(struct backup_source){copy_store, session}, &info, et);
	operator_close(session);
	RV_TRY(e);
	(void)printf("%s: the run at round %" PRIu64 ", %" PRIu64 " records"
				 "\nIt holds the run's secret key: anyone who can read it is the operator.\n",
				 args->at[0], info.round, info.facts);
	return RV_OK;
}

static enum rv_err run_restore(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct backup_options *o = opts;
	struct run_dir d;
	struct backup_info info;
	RV_TRY(run_dir_of(o->dir, &d, et));
	RV_TRY(backup_restore(args->at[0], &d, o->force, &info, et));
	(void)printf("%s: the run at round %" PRIu64 ", %" PRIu64 " records"
				 "\nNext:\n    rivulet-coordinator serve --dir %s --listen 0.0.0.0:7433 --advertise HOST:7433\n",
				 d.dir, info.round, info.facts, d.dir);
	if (o->force)
		(void)printf("Workers that were past round %" PRIu64
					 " then wait. If there is no newer backup and no newer store, and a disk of theirs still\n"
					 "reaches round %" PRIu64
					 ", this command lets them continue from there (they set later rounds aside):\n"
					 "    rivulet-coordinator rollback --dir %s --to-round %" PRIu64 " --force\n",
					 info.round, info.round, d.dir, info.round);
	return RV_OK;
}

const struct rv_command cmd_backup = {
	.name = "backup",
	.synopsis = "FILE",
	.args_min = 1,
	.args_max = 1,
	.help = "Writes the whole run (store and key) into one file, while it is served or not.",
	.details = "Only the run's latest backup is useful: workers never go back to an earlier round.",
	.options = backup_table,
	.opts_bytes = sizeof(struct backup_options),
	.run = run_backup,
};

const struct rv_command cmd_restore = {
	.name = "restore",
	.synopsis = "FILE",
	.args_min = 1,
	.args_max = 1,
	.help = "Makes a run's directory from a backup; a newer state is not replaced without --force.",
	.options = restore_table,
	.opts_bytes = sizeof(struct backup_options),
	.run = run_restore,
};
