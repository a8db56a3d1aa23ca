/* os_cpus.h: the processors of this machine. Any thread; never blocks. */
#ifndef RV_BASE_OS_CPUS_H
#define RV_BASE_OS_CPUS_H

#include <stdbool.h>

/* Returns the processors on which this process may run (affinity, cpusets); 0: unknown. */
int os_cpus_allowed(void);
/* Returns true if these are ARM processors that multiply bf16 (FEAT_BF16). */
bool os_cpus_have_arm_bf16(void);
/* Asks the system for the tiles of x86's AMX on behalf of all threads of this process. Returns true
 * if they may be used and multiply bf16. */
bool os_cpus_allow_amx(void);

#endif
