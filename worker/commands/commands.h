/* commands.h: the commands of rivulet-worker beside the one that trains. */
#ifndef RV_WORKER_COMMANDS_COMMANDS_H
#define RV_WORKER_COMMANDS_COMMANDS_H

#include "base/program.h"

extern const struct rv_command worker_status_command, worker_pause_command, worker_resume_command,
	worker_finish_command, worker_set_command, worker_leave_command, worker_update_command, worker_weigh_command;

#endif
