/* cpu_update.c: sums of vectors and products of matrices, for optimizers that are made of them. */
#include "base/assert.h"
#include "kernels/cpu/cpu.h"

enum { TASK_FLOATS = 65536 };

struct add_args {
	const struct isa_kernels *isa;
	float *y, keep, scale;
	const float *a, *b;
	size_t n;
};

static void add_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct add_args *x = ctx;
	struct cpu_range r = cpu_range_of(x->n, TASK_FLOATS, task);
	const float *b = x->b ? x->b + r.begin : NULL;
	x->isa->add_scaled(x->y + r.begin, x->keep, x->scale, x->a + r.begin, b, r.count);
}

void cpu_add_scaled(struct backend *be, float *y, float keep, float scale, const float *a, const float *b, size_t n) {
	struct add_args x = {cpu_of(be)->isa, y, keep, scale, a, b, n};
	cpu_parallel(cpu_of(be), cpu_tasks(n, TASK_FLOATS), add_task, &x);
}

void cpu_product(struct backend *be, float *c, const float *a, const float *b, struct product_shape s) {
	RV_ASSERT(s.m > 0 && s.n > 0 && s.k > 0);
	const struct gemm g = {.ta = s.a_transposed,
						   .tb = s.b_transposed,
						   .m = s.m,
						   .n = s.n,
						   .k = s.k,
						   .a = a,
						   .lda = s.a_transposed ? s.m : s.k,
						   .b = b,
						   .ldb = s.b_transposed ? s.k : s.n,
						   .c = c,
						   .ldc = s.n};
	cpu_gemm(cpu_of(be), &g);
}
