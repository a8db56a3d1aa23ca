/* os_program.h: the running program's file, and what ends it. */
#ifndef RV_BASE_OS_PROGRAM_H
#define RV_BASE_OS_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* Writes the absolute path of this program's file. Returns false if the system does not say
 * (a sandbox), or the path is longer. Any thread. */
bool os_program_path(char out[PATH_MAX]);
/* Asks the system to send the calling process `signal` when its parent ends. Called between fork
 * and exec: async-signal-safe. A parent that ended before is seen by getppid(). */
void os_program_end_with_parent(int signal);

#endif
