/* backup.c: `backup` and `restore`: a whole run in one file. */
#include "coordinator/backup/backup.h"
#include "coordinator/backup/backup_encryption.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/operator_session.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>

struct backup_options {
	char dir[RUN_DIR_BYTES];
	char passphrase_file[RUN_PATH_BYTES]; /* "": none */
	bool force;                           /* restore */
};

#define DIR_OPTION(help)                                                                                               \
	{ "dir", RV_OPT_STRING, offsetof(struct backup_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL, help, "Backup" }

#define PASSPHRASE_OPTION(help)                                                                                        \
	{                                                                                                                  \
		"passphrase-file", RV_OPT_STRING, offsetof(struct backup_options, passphrase_file), RUN_PATH_BYTES, "", 0, 0,  \
			NULL, help, "Backup"                                                                                       \
	}

static const struct rv_option backup_table[] = {
	DIR_OPTION("Directory of the run."),
	PASSPHRASE_OPTION("Encrypts the backup with the first line of this file; - reads it from standard input."),
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static const struct rv_option restore_table[] = {
	DIR_OPTION("Directory to restore the run to: a new one, or the run's own."),
	PASSPHRASE_OPTION("The passphrase of an encrypted backup: the first line of this file; - for standard input."),
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
	char passphrase[BACKUP_PASSPHRASE_BYTES];
	const bool encrypts = o->passphrase_file[0] != '\0';
	if (encrypts)
		RV_TRY(backup_passphrase_read(o->passphrase_file, passphrase, et));
	RV_TRY(run_dir_find(o->dir, &d, et));
	RV_TRY(operator_open(o->dir, NULL, &session, et));
	const struct backup_source from = {copy_store, session};
	enum rv_err e = encrypts ? backup_make_encrypted(&d, args->at[0], passphrase, &from, &info, et)
							 : backup_make(&d, args->at[0], &from, &info, et);
	operator_close(session);
	sodium_memzero(passphrase, sizeof passphrase);
	RV_TRY(e);
	(void)printf(
		"%s: the run at round %" PRIu64 ", %" PRIu64 " records\n%s\n", args->at[0], info.round, info.facts,
		encrypts
			? "Only the passphrase opens it."
			: "It holds run.key: anyone who can read it can act as the coordinator. --passphrase-file encrypts it.");
	return RV_OK;
}

static enum rv_err run_restore(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct backup_options *o = opts;
	struct run_dir d;
	struct backup_info info;
	char passphrase[BACKUP_PASSPHRASE_BYTES];
	const bool decrypts = o->passphrase_file[0] != '\0';
	if (decrypts)
		RV_TRY(backup_passphrase_read(o->passphrase_file, passphrase, et));
	RV_TRY(run_dir_of(o->dir, &d, et));
	enum rv_err e = backup_restore(args->at[0], decrypts ? passphrase : NULL, &d, o->force, &info, et);
	sodium_memzero(passphrase, sizeof passphrase);
	RV_TRY(e);
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
