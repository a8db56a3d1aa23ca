/* os_priority_linux.c: on Linux nice values and policies are a thread's own (sched(7)); those of
 * the main thread are the ones that the process was started with. */
#include "base/os_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NICE_LOW = 10 };

static bool set_policy(int policy) {
	const struct sched_param none = {0};
	return sched_getscheduler(0) == policy || sched_setscheduler(0, policy, &none) == 0;
}

static bool set_nice(int nice) {
	return getpriority(PRIO_PROCESS, 0) == nice || setpriority(PRIO_PROCESS, 0, nice) == 0;
}

bool os_priority_set(enum os_priority p) {
	const pid_t main_thread = getpid();
	const int nice = getpriority(PRIO_PROCESS, (id_t)main_thread);
	if (p == OS_PRIORITY_IDLE)
		return set_policy(SCHED_IDLE);
	return set_policy(sched_getscheduler(main_thread)) &&
		   set_nice(p == OS_PRIORITY_LOW && nice < NICE_LOW ? NICE_LOW : nice);
}
