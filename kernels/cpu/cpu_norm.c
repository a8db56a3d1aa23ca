/* cpu_norm.c: LayerNorm and RMSNorm over tasks of rows. Backward: each task's share of the
 * parameters' gradients is written to its own row, and the rows are then summed by column. */
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

enum { FORWARD_ROWS = 16, BACKWARD_ROWS_MIN = 16, BACKWARD_TASKS_MAX = 128 };
static const float layernorm_eps = 1e-5f;

struct forward_args {
	void (*rows)(const struct norm_rows *a);
	struct norm_rows all;
};

static void forward_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct forward_args *f = ctx;
	struct norm_rows a = f->all;
	struct cpu_range r = cpu_range_of((size_t)a.n, FORWARD_ROWS, task);
	size_t at = r.begin * (size_t)a.c;
	a.n = (int)r.count;
	a.a += at;
	if (a.b) {
		a.b += at;
		a.sum += at;
	}
	a.out += at;
	if (a.mean)
		a.mean += r.begin;
	a.rstd += r.begin;
	f->rows(&a);
}

static void forward(struct cpu_backend *be, struct forward_args f) {
	cpu_parallel(be, cpu_tasks((size_t)f.all.n, FORWARD_ROWS), forward_task, &f);
}

/* Returns the arrays that every norm has; b and sum: NULL without a residual. */
static struct norm_rows rows_of(act_t *sum, act_t *out, float *rstd, const act_t *a, const act_t *b, const float *w,
								int n, int c) {
	return (struct norm_rows){.sum = act_f32(sum),
							  .out = act_f32(out),
							  .rstd = rstd,
							  .a = act_f32c(a),
							  .b = act_f32c(b),
							  .w = w,
							  .n = n,
							  .c = c};
}

void cpu_residual_layernorm_forward(struct backend *be, act_t *sum, act_t *out, float *mean, float *rstd,
									const act_t *a, const act_t *b, const float *w, const float *bias, int n, int c) {
	struct forward_args f = {cpu_of(be)->isa->layernorm_rows, rows_of(sum, out, rstd, a, b, w, n, c)};
	f.all.mean = mean;
	f.all.bias = bias;
	f.all.eps = layernorm_eps;
	forward(cpu_of(be), f);
}

void cpu_layernorm_forward(struct backend *be, act_t *out, float *mean, float *rstd, const act_t *x, const float *w,
						   const float *bias, int n, int c) {
	cpu_residual_layernorm_forward(be, NULL, out, mean, rstd, x, NULL, w, bias, n, c);
}

void cpu_residual_rmsnorm_forward(struct backend *be, act_t *sum, act_t *out, float *rstd, const act_t *a,
								  const act_t *b, const float *w, float eps, int n, int c) {
	struct forward_args f = {cpu_of(be)->isa->rmsnorm_rows, rows_of(sum, out, rstd, a, b, w, n, c)};
	f.all.eps = eps;
	forward(cpu_of(be), f);
}

void cpu_rmsnorm_forward(struct backend *be, act_t *out, float *rstd, const act_t *x, const float *w, float eps, int n,
						 int c) {
	cpu_residual_rmsnorm_forward(be, NULL, out, rstd, x, NULL, w, eps, n, c);
}

struct backward_args {
	void (*rows)(const struct norm_grad_rows *a);
	struct norm_grad_rows all;
	size_t task_rows;
	float *dw_parts, *db_parts; /* (tasks, c); db_parts is NULL without a bias */
};

static void backward_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct backward_args *b = ctx;
	struct norm_grad_rows a = b->all;
	struct cpu_range r = cpu_range_of((size_t)a.n, b->task_rows, task);
	size_t at = r.begin * (size_t)a.c, part = (size_t)task * (size_t)a.c;
	a.n = (int)r.count;
	a.dx += at;
	a.dout += at;
	a.x += at;
	if (a.mean)
		a.mean += r.begin;
	a.rstd += r.begin;
	a.dw_part = b->dw_parts + part;
	if (b->db_parts)
		a.db_part = b->db_parts + part;
	b->rows(&a);
}

/* Computes the gradients of a norm. dbias: NULL without a bias. */
static void backward(struct cpu_backend *be, struct backward_args b, float *dw, float *dbias) {
	size_t n = (size_t)b.all.n, c = (size_t)b.all.c, even = (n + BACKWARD_TASKS_MAX - 1) / BACKWARD_TASKS_MAX;
	b.task_rows = even > BACKWARD_ROWS_MIN ? even : BACKWARD_ROWS_MIN;
	int tasks = cpu_tasks(n, b.task_rows);
	b.dw_parts = cpu_workspace(be, WORKSPACE_OP, 2 * (size_t)tasks * c);
	b.db_parts = dbias ? b.dw_parts + (size_t)tasks * c : NULL;
	cpu_parallel(be, tasks, backward_task, &b);
	cpu_add_column_sums(be, dw, b.dw_parts, b.all.c, tasks, b.all.c);
	if (dbias)
		cpu_add_column_sums(be, dbias, b.db_parts, b.all.c, tasks, b.all.c);
}

static struct norm_grad_rows grad_rows_of(act_t *dx, const act_t *dout, const act_t *x, const float *w,
										  const float *rstd, int n, int c) {
	return (struct norm_grad_rows){
		.dx = act_f32(dx), .dout = act_f32c(dout), .x = act_f32c(x), .w = w, .rstd = rstd, .n = n, .c = c};
}

void cpu_layernorm_backward(struct backend *be, act_t *dx, float *dw, float *dbias, const act_t *dout, const act_t *x,
							const float *w, const float *mean, const float *rstd, int n, int c) {
	struct backward_args b = {.rows = cpu_of(be)->isa->layernorm_grad_rows,
							  .all = grad_rows_of(dx, dout, x, w, rstd, n, c)};
	b.all.mean = mean;
	backward(cpu_of(be), b, dw, dbias);
}

void cpu_rmsnorm_backward(struct backend *be, act_t *dx, float *dw, const act_t *dout, const act_t *x, const float *w,
						  const float *rstd, int n, int c) {
	struct backward_args b = {.rows = cpu_of(be)->isa->rmsnorm_grad_rows,
							  .all = grad_rows_of(dx, dout, x, w, rstd, n, c)};
	backward(cpu_of(be), b, dw, NULL);
}
