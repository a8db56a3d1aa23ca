/* commands.h: the subcommands of rivulet-coordinator, one file each; main.c puts them in a
 * table. */
#ifndef RV_COORDINATOR_COMMANDS_H
#define RV_COORDINATOR_COMMANDS_H

#include "base/program.h"

extern const struct rv_command cmd_serve, cmd_invite, cmd_status, cmd_ban, cmd_unban, cmd_rollback, cmd_relay,
	cmd_members, cmd_backup, cmd_restore, cmd_rotate_key;

/* Bounds and default of `--relay-bytes-per-day` and `--relay-rate`, of `serve` and `relay`. */
#define RELAY_BYTES_PER_DAY "40GiB"
#define RELAY_LEAST_RATE    12500.0
#define RELAY_MOST_RATE     12.5e9
/* And of their second ports. */
#define RELAY_SECOND_HELP                                                                                              \
	"A second port at which workers learn how their routers map ports: next (the first free one above the relay's), "  \
	"none, or its number. Nothing is forwarded there."

enum { NEW_RUN_OPTIONS_MAX = 120 }; /* the terminator included */

/* Returns `new-run`, which takes the options of a run and its own. `table` has NEW_RUN_OPTIONS_MAX
 * entries, is filled here and outlives the command. */
struct rv_command cmd_new_run(struct rv_option *table);

#endif
