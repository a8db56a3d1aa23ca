/* main.c: rivulet-worker, the volunteer's program. */
#include "base/signals.h"
#include "kernels/wait_policy.h"
#include "net/address.h"
#include "worker/commands/commands.h"
#include "worker/join/membership.h"
#include "worker/options/link.h"
#include "worker/options/sandbox.h"
#include "worker/options/settings.h"
#include "worker/session/session.h"

#include <stdio.h>
#include <string.h>

/* Looks a name up, once: peers get a numeric address and need no name service. */
static enum rv_err resolve_advertise(struct worker_options *o, struct rv_errtext *et) {
	struct address said, found;
	char text[NET_ADDR_BYTES];
	if (!o->advertise[0])
		return RV_OK;
	RV_TRY(address_parse(o->advertise, &said, et));
	enum rv_err e = address_resolve(&said, &found, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "--advertise");
	if (!address_format(&found, text))
		return rv_fail(et, RV_E_RANGE, "--advertise %s: the address is too long", o->advertise);
	if (strcmp(said.host, found.host) != 0)
		(void)fprintf(stderr, "rivulet-worker: --advertise %s is %s\n", o->advertise, text);
	(void)snprintf(o->advertised, sizeof o->advertised, "%s", text);
	return RV_OK;
}

/* Enters the sandbox, with what the worker's directory remembers. */
static enum rv_err enter_sandbox(struct worker_options *o, struct rv_errtext *et) {
	struct membership m = {.member = 0};
	if (!o->sandbox)
		return RV_OK;
	(void)membership_read_member(o->dir, &m, NULL); /* a fault is reported when it is read again */
	return worker_sandbox_enter(o, m.data, m.tokenizer, &o->sandboxed, et);
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct worker_link link;
	int signals_fd;
	RV_TRY(worker_link_find(opts, args, &link, et));
	RV_TRY(resolve_advertise(opts, et));
	RV_TRY(enter_sandbox(opts, et));
	RV_TRY(rv_signals_open(&signals_fd, et));
	enum rv_err e = session_run(opts, link.text[0] ? link.text : NULL, signals_fd, et);
	rv_signals_close(signals_fd);
	return e;
}

static void explain(const void *opts, FILE *out) {
	membership_print_kept(((const struct worker_options *)opts)->dir, out);
}

int main(int argc, char **argv) {
	const struct rv_command commands[] = {
		{.name = NULL,
		 .synopsis = "[LINK | -]",
		 .args_min = 0,
		 .args_max = 1,
		 .help = "Trains one language model together with other workers, joined by an invite link.",
		 .details =
			 "The link is needed once; --dir remembers it, and a later start goes on where this one stopped. With -\n"
			 "for LINK it is read from the standard input; --link-file FILE and the variable RIVULET_LINK are the "
			 "other\n"
			 "ways that `ps` does not show.\n"
			 "Options are needed once, too: caps, ports, devices and the rest are kept in DIR/worker.conf until they\n"
			 "are given anew; `--max-up unlimited` or `--advertise ''` takes one back.\n"
			 "Exit status 4: refused for good (a link that is spent, a run that has ended, a ban, another process\n"
			 "on a copy of the directory): to be looked at, not started again (systemd: RestartPreventExitStatus=4).\n",
		 .options = worker_options_table,
		 .opts_bytes = sizeof(struct worker_options),
		 .recall = settings_recall,
		 .check = worker_options_check,
		 .check_files = worker_options_check_files,
		 .explain = explain,
		 .run = run},
		worker_status_command,
		worker_pause_command,
		worker_resume_command,
		worker_finish_command,
		worker_set_command,
		worker_leave_command,
		worker_weigh_command,
		worker_update_command,
		{.run = NULL},
	};
	const struct rv_program program = {
		.name = "rivulet-worker",
		.holds_keys = true,
		.summary = "Helps to train a language model with this computer.",
		.commands = commands,
		.examples = "    rivulet-worker 'rivulet://host:7433/RUN#k=...&t=...' --data book.txt\n"
					"    rivulet-worker --dir rivulet-worker\n",
	};
	wait_policy_choose(argv);
	return rv_program_main(&program, argc, argv);
}
