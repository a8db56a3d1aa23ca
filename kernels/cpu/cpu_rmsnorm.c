/* cpu_rmsnorm.c: root mean square normalisation over tasks of rows. Backward: each task's share of dw goes to a row of
 * its own, and the rows are then summed by column. */
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

enum { FORWARD_ROWS = 16, BACKWARD_ROWS_MIN = 16, BACKWARD_TASKS_MAX = 128 };

struct forward_args {
	const struct isa_kernels *isa;
	struct rmsnorm_rows all;
};

static void forward_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct forward_args *f = ctx;
	struct rmsnorm_rows a = f->all;
	struct cpu_range r = cpu_range_of((size_t)a.n, FORWARD_ROWS, task);
	size_t at = r.begin * (size_t)a.c;
	a.n = (int)r.count;
	a.a += at;
	if (a.b) {
		a.b += at;
		a.sum += at;
	}
	a.out += at;
	a.rstd += r.begin;
	f->isa->rmsnorm_rows(&a);
}

static void forward(struct cpu_backend *be, const struct rmsnorm_rows *all) {
	struct forward_args f = {be->isa, *all};
	cpu_parallel(be, cpu_tasks((size_t)all->n, FORWARD_ROWS), forward_task, &f);
}

void cpu_rmsnorm_forward(struct backend *be, act_t *out, float *rstd, const act_t *x, const float *w, float eps, int n,
						 int c) {
	struct rmsnorm_rows a = {.out = act_f32(out), .rstd = rstd, .a = act_f32c(x), .w = w, .eps = eps, .n = n, .c = c};
	forward(cpu_of(be), &a);
}

void cpu_residual_rmsnorm_forward(struct backend *be, act_t *sum, act_t *out, float *rstd, const act_t *a,
								  const act_t *b, const float *w, float eps, int n, int c) {
	struct rmsnorm_rows r = {.sum = act_f32(sum),
							 .out = act_f32(out),
							 .rstd = rstd,
							 .a = act_f32c(a),
							 .b = act_f32c(b),
							 .w = w,
							 .eps = eps,
							 .n = n,
							 .c = c};
	forward(cpu_of(be), &r);
}

struct backward_args {
	const struct isa_kernels *isa;
	struct rmsnorm_grad_rows all;
	size_t task_rows;
	float *parts; /* (tasks, c): dw */
};

static void backward_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct backward_args *b = ctx;
	struct rmsnorm_grad_rows a = b->all;
	struct cpu_range r = cpu_range_of((size_t)a.n, b->task_rows, task);
	size_t at = r.begin * (size_t)a.c;
	a.n = (int)r.count;
	a.dx += at;
	a.dout += at;
	a.x += at;
	a.rstd += r.begin;
	a.dw_part = b->parts + (size_t)task * (size_t)a.c;
	b->isa->rmsnorm_grad_rows(&a);
}

void cpu_rmsnorm_backward(struct backend *be, act_t *dx, float *dw, const act_t *dout, const act_t *x, const float *w,
						  const float *rstd, int n, int c) {
	struct cpu_backend *cpu = cpu_of(be);
	struct backward_args b = {
		.isa = cpu->isa,
		.all = {.dx = act_f32(dx), .dout = act_f32c(dout), .x = act_f32c(x), .w = w, .rstd = rstd, .n = n, .c = c}};
	size_t even = ((size_t)n + BACKWARD_TASKS_MAX - 1) / BACKWARD_TASKS_MAX;
	b.task_rows = even > BACKWARD_ROWS_MIN ? even : BACKWARD_ROWS_MIN;
	int tasks = cpu_tasks((size_t)n, b.task_rows);
	b.parts = cpu_workspace(cpu, WORKSPACE_OP, (size_t)tasks * (size_t)c);
	cpu_parallel(cpu, tasks, backward_task, &b);
	cpu_add_column_sums(cpu, dw, b.parts, c, tasks, c);
}
