/* os_threads.h: what POSIX threads lack on some systems. Times are rv_clock_monotonic_us(). */
#ifndef RV_BASE_OS_THREADS_H
#define RV_BASE_OS_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Initialises a condition for os_cond_wait_until; pthread_cond_destroy ends it. */
void os_cond_init(pthread_cond_t *c);
/* Waits as pthread_cond_wait does, spurious wakeups included, but not past `deadline_us`. Returns
 * false at the deadline. */
bool os_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *held, int64_t deadline_us);
/* Joins a thread if it ends by `deadline_us`. Returns false if it has not: it can be joined
 * later, or detached. */
bool os_thread_join_until(pthread_t thread, int64_t deadline_us);
/* Names the calling thread for debuggers and `top -H`: at most 15 characters. */
void os_thread_name(const char *name);

#endif
