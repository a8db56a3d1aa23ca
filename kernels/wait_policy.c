/* wait_policy.c: see wait_policy.h. */
#include "kernels/wait_policy.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

void wait_policy_choose(char **argv) {
#ifdef _OPENMP
	char self[PATH_MAX]; /* its own name: /proc/self/exe would be the name that `ps` shows */
	if (getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL)
		return;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n <= 0 || n >= (ssize_t)sizeof self - 1)
		return;
	self[n] = '\0';
	if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
		(void)execv(self, argv);
#else
	(void)argv;
#endif
}
