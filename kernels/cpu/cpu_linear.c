/* cpu_linear.c: linear layers: a matrix product with bias and GELU on the blocks that it finishes;
 * and the column sums of bias gradients. */
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

enum { GELU_TASK_FLOATS = 16384 };

/* The work after a product, block by block. `out`, `pre` and `below` are as large as C. */
struct epilogue {
	const struct isa_kernels *isa;
	float *out, *pre;
	const float *bias;
	ptrdiff_t ld;
	const float *below; /* the input of GELU in the layer below */
};

static void add_bias(void *ctx, int i, int rows, int j, int cols) {
	const struct epilogue *e = ctx;
	e->isa->add_bias_rows(e->out + i * e->ld + j, e->ld, e->bias + j, rows, cols);
}

static void bias_and_gelu(void *ctx, int i, int rows, int j, int cols) {
	const struct epilogue *e = ctx;
	ptrdiff_t at = i * e->ld + j;
	e->isa->bias_gelu_rows(e->out + at, e->pre + at, e->ld, e->bias ? e->bias + j : NULL, rows, cols);
}

static void gelu_gradient(void *ctx, int i, int rows, int j, int cols) {
	const struct epilogue *e = ctx;
	ptrdiff_t at = i * e->ld + j;
	e->isa->gelu_grad_rows(e->out + at, e->below + at, e->ld, rows, cols);
}

void cpu_linear_forward(struct backend *be, act_t *y, act_t *pre, const act_t *x, const float *w, const float *bias,
						struct linear_shape s, enum linear_epilogue ep) {
	struct cpu_backend *cpu = cpu_of(be);
	bool gelu = ep == LINEAR_GELU;
	struct epilogue e = {.isa = cpu->isa, .out = act_f32(y), .pre = act_f32(pre), .bias = bias, .ld = s.o};
	struct gemm g = {.tb = true,
					 .m = s.n,
					 .n = s.o,
					 .k = s.c,
					 .a = act_f32c(x),
					 .lda = s.c,
					 .b = w,
					 .ldb = s.c,
					 .c = act_f32(gelu ? pre : y),
					 .ldc = s.o,
					 .done = gelu   ? bias_and_gelu
							 : bias ? add_bias
									: NULL,
					 .ctx = &e};
	cpu_gemm(cpu, &g);
}

struct gelu_args {
	const struct isa_kernels *isa;
	float *out, *pre;
	size_t n;
};

static void gelu_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct gelu_args *a = ctx;
	const struct cpu_range r = cpu_range_of(a->n, GELU_TASK_FLOATS, task);
	a->isa->bias_gelu_rows(a->out + r.begin, a->pre + r.begin, (ptrdiff_t)r.count, NULL, 1, (int)r.count);
}

void cpu_gelu_forward(struct backend *be, act_t *out, const act_t *pre, size_t n) {
	struct gelu_args a = {cpu_of(be)->isa, act_f32(out), (float *)(uintptr_t)pre /* without a bias only read */, n};
	cpu_parallel(cpu_of(be), cpu_tasks(n, GELU_TASK_FLOATS), gelu_task, &a);
}

void cpu_linear_backward_input(struct backend *be, act_t *dx, const act_t *dy, const float *w, const act_t *pre,
							   struct linear_shape s, enum linear_epilogue ep) {
	struct cpu_backend *cpu = cpu_of(be);
	struct epilogue e = {.isa = cpu->isa, .out = act_f32(dx), .below = act_f32c(pre), .ld = s.c};
	struct gemm g = {.m = s.n,
					 .n = s.c,
					 .k = s.o,
					 .a = act_f32c(dy),
					 .lda = s.o,
					 .b = w,
					 .ldb = s.c,
					 .c = act_f32(dx),
					 .ldc = s.c,
					 .done = ep == LINEAR_GELU ? gelu_gradient : NULL,
					 .ctx = &e};
	cpu_gemm(cpu, &g);
}

struct column_sums_args {
	const struct isa_kernels *isa;
	float *sums; /* (tasks, cols) */
	const float *src;
	ptrdiff_t ld;
	int rows, cols;
};

static void column_sums_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct column_sums_args *a = ctx;
	const struct cpu_range r = cpu_range_of((size_t)a->rows, COLUMN_SUM_ROWS, task);
	float *sums = a->sums + (size_t)task * (size_t)a->cols;
	a->isa->stream_column_sums(sums, a->src + (ptrdiff_t)r.begin * a->ld, a->ld, (int)r.count, a->cols);
}

void cpu_add_column_sums(struct cpu_backend *be, float *dst, const float *src, ptrdiff_t ld, int rows, int cols) {
	const int blocks = cpu_tasks((size_t)rows, COLUMN_SUM_ROWS);
	float *sums = cpu_workspace(be, WORKSPACE_GEMM_A, (size_t)blocks * (size_t)cols);
	struct column_sums_args a = {be->isa, sums, src, ld, rows, cols};
	cpu_parallel(be, blocks, column_sums_task, &a);
	be->isa->add_block_sums(dst, sums, blocks, cols);
}

void cpu_linear_backward_weight(struct backend *be, float *dw, float *dbias, const act_t *dy, const act_t *x,
								struct linear_shape s, enum gradient_mode mode) {
	struct cpu_backend *cpu = cpu_of(be);
	struct gemm g = {.ta = true,
					 .add = mode == GRADIENT_ADD,
					 .m = s.o,
					 .n = s.c,
					 .k = s.n,
					 .a = act_f32c(dy),
					 .lda = s.o,
					 .b = act_f32c(x),
					 .ldb = s.c,
					 .c = dw,
					 .ldc = s.c,
					 .row_sums = dbias};
	cpu_gemm(cpu, &g);
}
