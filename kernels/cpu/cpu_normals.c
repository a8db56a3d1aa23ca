/* cpu_normals.c: see kernels/normals.h. */
#include "kernels/normals.h"

#include "base/assert.h"
#include "kernels/cpu/cpu.h"

#include <limits.h>

enum { VALUES_OF_TASK = 1 << 14 };

struct fill {
	const struct isa_kernels *isa;
	struct normal_values all;
};

static void fill_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct fill *f = ctx;
	const struct cpu_range r = cpu_range_of(f->all.n, VALUES_OF_TASK, task);
	struct normal_values a = f->all;
	a.out += r.begin;
	a.n = r.count;
	a.counter += r.begin;
	f->isa->normals(&a);
}

void normals_fill(float *out, size_t n, const struct rv_rng *from, float std, int threads) {
	bool best;
	struct fill f = {
		.isa = cpu_isa_choose("auto", &best),
		.all = {.out = out, .n = n, .seed = from->seed, .stream = from->stream, .counter = from->counter, .std = std}};
	RV_ASSERT(f.isa && n / VALUES_OF_TASK < INT_MAX);
	cpu_parallel_on(cpu_thread_count(threads), cpu_tasks(n, VALUES_OF_TASK), fill_task, &f);
}
