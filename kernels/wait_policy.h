/* wait_policy.h: how threads of a parallel loop wait for each other.
 *
 * libgomp lets them spin for milliseconds. On a busy desktop, a spinning thread keeps the processor
 * from the thread that it waits for, and training gets several times slower; if they sleep at once
 * it does not (bench/desk.sh; docs/benchmarks.md). The library reads its environment before main()
 * and has no call for it. */
#ifndef RV_KERNELS_WAIT_POLICY_H
#define RV_KERNELS_WAIT_POLICY_H

/* Executes this program once more, with threads that sleep, unless OMP_WAIT_POLICY or
 * GOMP_SPINCOUNT is set. Returns if there is nothing to do, or it cannot be done (its file is not
 * known, or was replaced): threads then spin. Called at the start of main(), with its argv. */
void wait_policy_choose(char **argv);

#endif
