/* wait_policy.h: how threads of a parallel loop wait for each other.
 *
 * libgomp lets them spin for milliseconds. On a desk where something else runs, a thread that spins keeps the processor
 * from the one that it waits for, and training gets several times slower; where they sleep at once it does not
 * (bench/desk.sh; docs/benchmarks.md). The library reads its environment before main() and has no call for it.
 */
#ifndef RV_KERNELS_WAIT_POLICY_H
#define RV_KERNELS_WAIT_POLICY_H

/* Unless OMP_WAIT_POLICY or GOMP_SPINCOUNT say it already: executes this program once more, with threads that sleep.
 * Returns when there is nothing to do, or it cannot be done (no /proc, the program was replaced): then it is as libgomp
 * likes. At the start of main(), with its argv. */
void wait_policy_choose(char **argv);

#endif
