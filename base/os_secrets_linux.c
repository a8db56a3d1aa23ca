/* os_secrets_linux.c: prctl(PR_SET_DUMPABLE), which the files of /proc/PID go by, too, and
 * RLIMIT_CORE, for core_pattern may lead to a program that reads what it gets. */
#include "base/os_secrets.h"

#include <sys/prctl.h>
#include <sys/resource.h>

void os_secrets_keep(void) {
	const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
	(void)setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__ /* whose search for leaks reads the process from another one */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}
