/* os_cpus_linux.c: sched_getaffinity(2), the capabilities in getauxval(3), and the request for
 * AMX's tiles (the kernel's Documentation/arch/x86/xstate.rst). */
#include "base/os_cpus.h"

#include <sched.h>
#include <sys/auxv.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

bool os_cpus_allow_amx(void) {
#if defined(__x86_64__)
	enum { FEATURES = 7, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, BOTH = AMX_BF16 | AMX_TILE };
	enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, which old headers lack */
	unsigned a, b, c, d;
	return __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) && (d & BOTH) == BOTH &&
		   syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
#else
	return false;
#endif
}
