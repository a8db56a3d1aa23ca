/* gate.h: what holds back the threads that compute, so that the computer stays its owner's: a share
 * of the processors' time, a share of a GPU's time, a priority.
 *
 * There is one gate in a process. Threads pass it before each task of a parallel loop
 * (cpu_parallel.c), before a product by oneDNN, and around each micro-batch on a GPU
 * (train/replica_part.c). One that must not go on sleeps there, so a change takes effect within the
 * longest task: milliseconds; a product by oneDNN at most some hundreds of them. While nothing is
 * limited, passing is two loads. Results never depend on it.
 *
 * The processor share is a budget: time that the whole process has used, other threads included, is
 * taken from it; unused time is kept for GATE_SAVED_MS at most, so that use over any 10 s stays
 * within the share and a few percent of it. A product that took longer is paid back by a longer
 * pause, of GATE_DEBT_MS at most.
 *
 * All functions: any thread. Only gate_pass and gate_device_end block. */
#ifndef RV_KERNELS_GATE_H
#define RV_KERNELS_GATE_H

#include "base/os_priority.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { GATE_SAVED_MS = 100, GATE_DEBT_MS = 10000 };

/* Limits the process to `percent` (1..100; 100: no limit) of the time of all processors that it may
 * run on. */
void gate_set_cpu_share(int percent);
/* Holds all threads back before their next task, or lets them go on: a pause. A GPU's micro-batch
 * that has begun ends first. */
void gate_hold(bool held);
/* Limits parallel loops to `threads` at a time, from the next one on; 0: as many as their backend
 * has. */
void gate_set_threads(int threads);
/* Returns `has`, or the fewer threads that a loop may take now. */
int gate_threads(int has);
/* Limits each GPU to `percent` (1..100; 100: no limit) of the time. */
void gate_set_device_share(int percent);
/* Sets the priority of threads at their next pass. A thread that the system does not let rise stays
 * low; those started later are as set. */
void gate_set_priority(enum os_priority p);

/* From the moment that *stop is true, parallel loops and products that the calling thread begins do
 * nothing, and those under way end soon: the caller throws the results away. NULL: they never do
 * (the default). */
void gate_abandon_with(const atomic_bool *stop);
/* Returns what the calling thread has set. */
const atomic_bool *gate_abandons(void);

/* Returns once the calling thread may compute, or soon after *stop (NULL: never) is true: its
 * results are no longer wanted. */
void gate_pass(const atomic_bool *stop);

/* Returns true if the time of GPUs is limited: a micro-batch is then waited for, and timed. */
bool gate_limits_device(void);
/* Sleeps for as long as a GPU that worked for `busy_us` has to rest, or until soon after *stop. */
void gate_device_end(int64_t busy_us, const atomic_bool *stop);

#endif
