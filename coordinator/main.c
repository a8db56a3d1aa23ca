/* main.c: rivulet-coordinator: decides who takes part in which round, and never sees a weight. */
#include "coordinator/commands/commands.h"

int main(int argc, char **argv) {
	struct rv_option new_run_options[NEW_RUN_OPTIONS_MAX];
	const struct rv_command commands[] = {cmd_new_run(new_run_options),
										  cmd_serve,
										  cmd_invite,
										  cmd_members,
										  cmd_status,
										  cmd_ban,
										  cmd_unban,
										  cmd_rollback,
										  cmd_relay,
										  cmd_backup,
										  cmd_restore,
										  cmd_rotate_key,
										  {.run = NULL}};
	const struct rv_program program = {
		.name = "rivulet-coordinator",
		.holds_keys = true,
		.summary =
			"rivulet-coordinator coordinates a training run over the internet: who takes part in which round, what\n"
			"was committed, whom to ask. It holds no weights, no gradients and no text.",
		.commands = commands,
		.examples =
			"    rivulet-coordinator new-run --dir run1 --config run.conf --min-workers 2\n"
			"    rivulet-coordinator serve --dir run1 --listen 0.0.0.0:7433 --advertise train.example.org:7433\n"
			"    rivulet-coordinator invite --dir run1 --count 4\n"
			"    rivulet-coordinator status --dir run1 --follow",
	};
	return rv_program_main(&program, argc, argv);
}
