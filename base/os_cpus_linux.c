/* os_cpus_linux.c: sched_getaffinity(2), and the capabilities in getauxval(3). */
#include "base/os_cpus.h"

#include <sched.h>
#include <sys/auxv.h>

int os_cpus_allowed(void) {
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

bool os_cpus_have_arm_bf16(void) {
#if defined(__aarch64__)
	return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#else
	return false;
#endif
}
