/* leave.c: `rivulet-worker leave`: ends a worker for good, and removes from its directory what only
 * the run needed. */
#include "base/clock.h"
#include "base/file.h"
#include "worker/commands/commands.h"
#include "worker/join/forget_run.h"
#include "worker/local/local_client.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct leave_options {
	char dir[256];
	bool yes;
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct leave_options, dir), sizeof(((struct leave_options *)0)->dir),
	 "rivulet-worker", 1, 0, NULL, "Directory of the worker.", "Leave"},
	{"yes", RV_OPT_BOOL, offsetof(struct leave_options, yes), 0, "no", 0, 0, NULL, "Does not ask.", "Leave"},
	{.name = NULL},
};

static enum rv_err ask(const struct leave_options *o, struct rv_errtext *et) {
	char line[32];
	if (o->yes)
		return RV_OK;
	if (!isatty(STDIN_FILENO))
		return rv_fail(et, RV_E_AUTH, "there is no terminal to ask on: --yes leaves without asking");
	(void)printf("This ends the worker in %s for good, and removes its key, the run's state and its text.\n"
				 "Settings, metrics and a finished model stay. Another link is needed to come back.\n"
				 "Leave the run? [y/n] ",
				 o->dir);
	(void)fflush(stdout);
	if (fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y'))
		return RV_OK;
	return rv_fail(et, RV_E_CANCELLED, "not left");
}

/* Waits for the worker's end: it tells the coordinator, so that no round waits for it. */
static enum rv_err wait_for_end(const char *dir, int *lock_fd, struct rv_errtext *et) {
	const int64_t until_us = rv_clock_monotonic_us() + 120 * RV_US_PER_S;
	enum rv_err e;
	while ((e = rv_dir_lock(dir, lock_fd, et)) == RV_E_BUSY && rv_clock_monotonic_us() < until_us)
		(void)nanosleep(&(struct timespec){.tv_nsec = 100 * RV_US_PER_MS * 1000}, NULL);
	return e;
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct leave_options *o = opts;
	char text[LOCAL_TEXT_BYTES];
	int lock_fd;
	(void)args;
	RV_TRY(forget_run_check(o->dir, et));
	RV_TRY(ask(o, et));
	const enum rv_err e = local_client_command(o->dir, json_pack("{s:s}", "command", "leave"), text, et);
	if (e != RV_OK && e != RV_E_NOTFOUND)
		return e;
	RV_TRY(wait_for_end(o->dir, &lock_fd, et));
	const enum rv_err forgotten = forget_run(o->dir, et);
	rv_dir_unlock(lock_fd);
	RV_TRY(forgotten);
	(void)printf("Left. Thank you for what this computer gave! What is left in %s is yours; it may be removed.\n",
				 o->dir);
	return RV_OK;
}

const struct rv_command worker_leave_command = {
	.name = "leave",
	.synopsis = "",
	.help = "Leaves the run for good: ends the worker in --dir, tells the coordinator, and frees the disk.",
	.options = options,
	.opts_bytes = sizeof(struct leave_options),
	.run = run,
};
