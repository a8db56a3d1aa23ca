/* profiler.h: marks the part of a program that a profiler of NVIDIA's records (ncu
 * --profile-from-start off). Does nothing without an NVIDIA driver. */
#ifndef RV_BENCH_PROFILER_H
#define RV_BENCH_PROFILER_H

/* Calls cuProfilerStart or cuProfilerStop of the driver (CUDA Driver API, "Profiler Control"). */
void profiler_start(void);
void profiler_stop(void);

#endif
