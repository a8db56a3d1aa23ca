/* commands.h: the subcommands of rivulet-coordinator, one file each; main.c puts them in a
 * table. */
#ifndef RV_COORDINATOR_COMMANDS_H
#define RV_COORDINATOR_COMMANDS_H

#include "base/program.h"

extern const struct rv_command cmd_serve, cmd_invite, cmd_status, cmd_ban, cmd_unban, cmd_rollback, cmd_backup,
	cmd_restore;

enum { NEW_RUN_OPTIONS_MAX = 96 }; /* the terminator included */

/* Returns `new-run`, which takes the options of a run and its own. `table` has NEW_RUN_OPTIONS_MAX
 * entries, is filled here and outlives the command. */
struct rv_command cmd_new_run(struct rv_option *table);

#endif
