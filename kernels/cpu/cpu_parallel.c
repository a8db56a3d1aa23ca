/* cpu_parallel.c: tasks on threads, which pass the gate (kernels/gate.h) before each. Without
 * OpenMP (ThreadSanitizer builds) everything runs on the caller. */
#include "kernels/cpu/cpu.h"
#include "kernels/gate.h"

#include "base/parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

int cpu_thread_count(int wanted) {
#ifdef _OPENMP
	return wanted > 0 ? wanted : parallel_cores();
#else
	(void)wanted;
	return 1;
#endif
}

static void run_task(cpu_task_fn *fn, void *ctx, int task, int thread, const atomic_bool *abandons) {
	gate_pass(abandons);
	if (!abandons || !atomic_load_explicit(abandons, memory_order_relaxed))
		fn(ctx, task, thread);
}

static void run_serial(int n_tasks, cpu_task_fn *fn, void *ctx, const atomic_bool *abandons) {
	for (int task = 0; task < n_tasks; task++)
		run_task(fn, ctx, task, 0, abandons);
}

void cpu_parallel_on(int threads, int n_tasks, cpu_task_fn *fn, void *ctx) {
	const atomic_bool *abandons = gate_abandons();
#ifdef _OPENMP
	threads = gate_threads(threads);
	if (threads > 1 && n_tasks > 1) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
		for (int task = 0; task < n_tasks; task++)
			run_task(fn, ctx, task, omp_get_thread_num(), abandons);
		return;
	}
#endif
	(void)threads;
	run_serial(n_tasks, fn, ctx, abandons);
}

void cpu_parallel(const struct cpu_backend *be, int n_tasks, cpu_task_fn *fn, void *ctx) {
	cpu_parallel_on(be->base.threads, n_tasks, fn, ctx);
}
