/* commands.h: the subcommands of `rivulet`, one file each. */
#ifndef RV_LAB_COMMANDS_H
#define RV_LAB_COMMANDS_H

#include "base/program.h"
#include "lab/options/train_options.h"
#include "lab/sweep/grid.h"

/* Returns `rivulet train`; fills `table`, which the caller keeps, with run_config's options and its
 * own. */
struct rv_command train_command(struct rv_option table[static TRAIN_OPTIONS_MAX]);
/* Returns `rivulet config`; `table` likewise. */
struct rv_command config_command(struct rv_option table[static TRAIN_OPTIONS_MAX]);
/* Returns `rivulet sweep`; `table`: its own options, and a list for each of train's. */
struct rv_command sweep_command_of(struct rv_option table[static SWEEP_OPTIONS_MAX]);
extern const struct rv_command sample_command, eval_command, report_command, tokenize_command, tokenizer_command,
	simulate_command;
extern const struct rv_command data_command, replay_command, export_command, inspect_command, checkpoint_command;

#endif
