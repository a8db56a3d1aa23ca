/* os_priority.h: what a thread weighs against the other programs of this computer. */
#ifndef RV_BASE_OS_PRIORITY_H
#define RV_BASE_OS_PRIORITY_H

#include <stdbool.h>

enum os_priority {
	OS_PRIORITY_NORMAL, /* that of the process, which the person who started it chose */
	OS_PRIORITY_LOW,    /* a tenth of the weight of a program in use (Linux: nice 10) */
	OS_PRIORITY_IDLE,   /* only what nothing else wants (Linux: SCHED_IDLE) */
};

/* Sets the priority of the calling thread, and of the threads that it starts later; never above
 * that of the process's main thread. Returns false if the system refuses: lowering is always
 * allowed, raising again may need a privilege. */
bool os_priority_set(enum os_priority p);

#endif
