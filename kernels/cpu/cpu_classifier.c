/* cpu_classifier.c: the output head, a chunk of tokens at a time: product, softmax with loss and
 * gradient in place, and the two products of the gradient, so that only one chunk's logits exist. A
 * chunk is as large as its workspace allows, because each one reads all of wte and rewrites all of
 * dwte. */
#include "base/assert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

#include <string.h>

enum { SOFTMAX_FLOATS = 16384 };

struct softmax_args {
	const struct isa_kernels *isa;
	struct softmax_rows all;
	size_t task_rows;
};

static void softmax_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct softmax_args *s = ctx;
	struct softmax_rows a = s->all;
	struct cpu_range r = cpu_range_of((size_t)a.n, s->task_rows, task);
	a.n = (int)r.count;
	a.logits += (ptrdiff_t)r.begin * a.ld;
	a.losses += r.begin;
	a.targets += r.begin;
	s->isa->softmax_rows(&a);
}

static void softmax(struct cpu_backend *be, const struct softmax_rows *all) {
	size_t rows = SOFTMAX_FLOATS / (size_t)all->v;
	struct softmax_args s = {be->isa, *all, rows ? rows : 1};
	cpu_parallel(be, cpu_tasks((size_t)all->n, s.task_rows), softmax_task, &s);
}

static void logits_product(struct cpu_backend *be, float *logits, int ld, const float *x, const float *wte, int n,
						   int c, int v) {
	struct gemm g = {.tb = true, .m = n, .n = v, .k = c, .a = x, .lda = c, .b = wte, .ldb = c, .c = logits, .ldc = ld};
	cpu_gemm(be, &g);
}

/* Computes dx = dlogits wte; dwte = or += dlogits^T x. */
static void gradient_products(struct cpu_backend *be, float *dx, float *dwte, const float *dlogits, int ld,
							  const float *x, const float *wte, int n, int c, int v, enum gradient_mode mode) {
	struct gemm input = {.m = n, .n = c, .k = v, .a = dlogits, .lda = ld, .b = wte, .ldb = c, .c = dx, .ldc = c};
	struct gemm weight = {.ta = true,
						  .add = mode == GRADIENT_ADD,
						  .m = v,
						  .n = c,
						  .k = n,
						  .a = dlogits,
						  .lda = ld,
						  .b = x,
						  .ldb = c,
						  .c = dwte,
						  .ldc = c};
	cpu_gemm(be, &input);
	cpu_gemm(be, &weight);
}

void cpu_classifier(struct backend *be, float *losses, act_t *dx, float *dwte, const act_t *x, const float *wte,
					const int32_t *targets, int n, int c, int v, int vp, float grad_scale, enum gradient_mode mode) {
	RV_ASSERT(v <= vp);
	struct cpu_backend *cpu = cpu_of(be);
	int ld = (v + 15) / 16 * 16, fit = (int)(CPU_LOGITS_MAX_BYTES / sizeof(float) / (size_t)ld);
	int chunk = fit < 1 ? 1 : fit < CPU_LOGITS_MAX_ROWS ? fit : CPU_LOGITS_MAX_ROWS;
	chunk = chunk < n ? chunk : n;
	float *logits = cpu_workspace(cpu, WORKSPACE_OP, (size_t)chunk * (size_t)ld);
	for (int row = 0; row < n; row += chunk) {
		int rows = n - row < chunk ? n - row : chunk;
		size_t at = (size_t)row * (size_t)c;
		logits_product(cpu, logits, ld, act_f32c(x) + at, wte, rows, c, v);
		struct softmax_rows s = {.logits = logits,
								 .ld = ld,
								 .losses = losses + row,
								 .targets = targets + row,
								 .n = rows,
								 .v = v,
								 .grad_scale = grad_scale,
								 .want_grad = dx != NULL};
		softmax(cpu, &s);
		if (dx)
			gradient_products(cpu, act_f32(dx) + at, dwte, logits, ld, act_f32c(x) + at, wte, rows, c, v,
							  row == 0 ? mode : GRADIENT_ADD);
	}
	if (dx && mode == GRADIENT_WRITE)
		memset(dwte + (size_t)v * (size_t)c, 0, (size_t)(vp - v) * (size_t)c * sizeof *dwte);
}

void cpu_logits(struct backend *be, float *host_out, const act_t *x, const float *wte, int n, int c, int v) {
	logits_product(cpu_of(be), host_out, v, act_f32c(x), wte, n, c, v);
}
