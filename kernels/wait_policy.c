/* wait_policy.c: see wait_policy.h. */
#include "kernels/wait_policy.h"

#include "base/os_program.h"

#include <stdlib.h>
#include <unistd.h>

void wait_policy_choose(char **argv) {
#ifdef _OPENMP
	char self[PATH_MAX]; /* its own name, which `ps` shows */
	if (getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL || !os_program_path(self))
		return;
	if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
		(void)execv(self, argv);
#else
	(void)argv;
#endif
}
