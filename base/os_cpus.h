/* os_cpus.h: the processors of this machine. Any thread; never blocks. */
#ifndef RV_BASE_OS_CPUS_H
#define RV_BASE_OS_CPUS_H

#include <stdbool.h>

/* Returns the processors on which this process may run (affinity, cpusets); 0: unknown. */
int os_cpus_allowed(void);
/* Returns true if these are ARM processors that multiply bf16 (FEAT_BF16). */
bool os_cpus_have_arm_bf16(void);

#endif
