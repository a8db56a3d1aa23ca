/* cpu_linear.c: linear layers: a matrix product, then one pass for bias and GELU over what it wrote; and the column
 * sums of bias gradients. */
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

enum { EPILOGUE_FLOATS = 32768, SUM_COLS = 64 };

struct rows_args {
	const struct isa_kernels *isa;
	float *y, *pre;
	const float *bias;
	size_t task_rows;
	int n, c;
};

static void bias_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct rows_args *a = ctx;
	struct cpu_range r = cpu_range_of((size_t)a->n, a->task_rows, task);
	a->isa->add_bias_rows(a->y + r.begin * (size_t)a->c, a->bias, (int)r.count, a->c);
}

static void gelu_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct rows_args *a = ctx;
	struct cpu_range r = cpu_range_of((size_t)a->n, a->task_rows, task);
	size_t at = r.begin * (size_t)a->c;
	a->isa->bias_gelu_rows(a->y + at, a->pre + at, a->bias, (int)r.count, a->c);
}

void cpu_linear_forward(struct backend *be, act_t *y, act_t *pre, const act_t *x, const float *w, const float *bias,
						struct linear_shape s, enum linear_epilogue ep) {
	struct cpu_backend *cpu = cpu_of(be);
	bool gelu = ep == LINEAR_GELU;
	struct gemm g = {.tb = true,
					 .m = s.n,
					 .n = s.o,
					 .k = s.c,
					 .a = act_f32c(x),
					 .lda = s.c,
					 .b = w,
					 .ldb = s.c,
					 .c = act_f32(gelu ? pre : y),
					 .ldc = s.o};
	cpu_gemm(cpu, &g);
	if (!gelu && !bias)
		return;
	size_t rows = EPILOGUE_FLOATS / (size_t)s.o;
	struct rows_args a = {cpu->isa, act_f32(y), act_f32(pre), bias, rows ? rows : 1, s.n, s.o};
	cpu_parallel(cpu, cpu_tasks((size_t)s.n, a.task_rows), gelu ? gelu_task : bias_task, &a);
}

struct gelu_grad_args {
	const struct isa_kernels *isa;
	float *dx;
	const float *pre;
	size_t n;
};

static void gelu_grad_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct gelu_grad_args *a = ctx;
	struct cpu_range r = cpu_range_of(a->n, EPILOGUE_FLOATS, task);
	a->isa->gelu_grad(a->dx + r.begin, a->pre + r.begin, r.count);
}

void cpu_linear_backward_input(struct backend *be, act_t *dx, const act_t *dy, const float *w, const act_t *pre,
							   struct linear_shape s, enum linear_epilogue ep) {
	struct cpu_backend *cpu = cpu_of(be);
	struct gemm g = {
		.m = s.n, .n = s.c, .k = s.o, .a = act_f32c(dy), .lda = s.o, .b = w, .ldb = s.c, .c = act_f32(dx), .ldc = s.c};
	cpu_gemm(cpu, &g);
	if (ep != LINEAR_GELU)
		return;
	struct gelu_grad_args a = {cpu->isa, act_f32(dx), act_f32c(pre), (size_t)s.n * (size_t)s.c};
	cpu_parallel(cpu, cpu_tasks(a.n, EPILOGUE_FLOATS), gelu_grad_task, &a);
}

struct column_sums_args {
	const struct isa_kernels *isa;
	float *dst;
	const float *src;
	ptrdiff_t ld;
	int rows, cols;
};

static void column_sums_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct column_sums_args *a = ctx;
	struct cpu_range r = cpu_range_of((size_t)a->cols, SUM_COLS, task);
	a->isa->add_column_sums(a->dst + r.begin, a->src + r.begin, a->ld, a->rows, (int)r.count);
}

void cpu_add_column_sums(struct cpu_backend *be, float *dst, const float *src, ptrdiff_t ld, int rows, int cols) {
	struct column_sums_args a = {be->isa, dst, src, ld, rows, cols};
	cpu_parallel(be, cpu_tasks((size_t)cols, SUM_COLS), column_sums_task, &a);
}

void cpu_linear_backward_weight(struct backend *be, float *dw, float *dbias, const act_t *dy, const act_t *x,
								struct linear_shape s) {
	struct cpu_backend *cpu = cpu_of(be);
	struct gemm g = {.ta = true,
					 .add = true,
					 .m = s.o,
					 .n = s.c,
					 .k = s.n,
					 .a = act_f32c(dy),
					 .lda = s.o,
					 .b = act_f32c(x),
					 .ldb = s.c,
					 .c = dw,
					 .ldc = s.c};
	cpu_gemm(cpu, &g);
	if (dbias)
		cpu_add_column_sums(cpu, dbias, act_f32c(dy), s.o, s.n, s.o);
}
