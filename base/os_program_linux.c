/* os_program_linux.c: /proc/self/exe, and prctl(2). */
#include "base/os_program.h"

#include <sys/prctl.h>
#include <unistd.h>

bool os_program_path(char out[PATH_MAX]) {
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
	if (n <= 0 || n >= PATH_MAX - 1)
		return false;
	out[n] = '\0';
	return true;
}

void os_program_end_with_parent(int signal) {
	(void)prctl(PR_SET_PDEATHSIG, signal);
}
