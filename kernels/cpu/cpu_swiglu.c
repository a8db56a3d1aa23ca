/* cpu_swiglu.c: the gated activation and its gradient over tasks of rows. */
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

enum { TASK_ROWS = 8 };

struct swiglu_args {
	const struct isa_kernels *isa;
	float *out, *dgate_up;
	const float *gate_up, *dout;
	int n, f;
};

static void forward_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct swiglu_args *a = ctx;
	struct cpu_range r = cpu_range_of((size_t)a->n, TASK_ROWS, task);
	size_t at = r.begin * (size_t)a->f;
	a->isa->swiglu_rows(a->out + at, a->gate_up + 2 * at, (int)r.count, a->f);
}

void cpu_swiglu_forward(struct backend *be, act_t *out, const act_t *gate_up, int n, int f) {
	struct swiglu_args a = {.isa = cpu_of(be)->isa, .out = act_f32(out), .gate_up = act_f32c(gate_up), .n = n, .f = f};
	cpu_parallel(cpu_of(be), cpu_tasks((size_t)n, TASK_ROWS), forward_task, &a);
}

static void backward_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct swiglu_args *a = ctx;
	struct cpu_range r = cpu_range_of((size_t)a->n, TASK_ROWS, task);
	size_t at = r.begin * (size_t)a->f;
	a->isa->swiglu_grad_rows(a->dgate_up + 2 * at, a->dout + at, a->gate_up + 2 * at, (int)r.count, a->f);
}

void cpu_swiglu_backward(struct backend *be, act_t *dgate_up, const act_t *dout, const act_t *gate_up, int n, int f) {
	struct swiglu_args a = {.isa = cpu_of(be)->isa,
							.dgate_up = act_f32(dgate_up),
							.dout = act_f32c(dout),
							.gate_up = act_f32c(gate_up),
							.n = n,
							.f = f};
	cpu_parallel(cpu_of(be), cpu_tasks((size_t)n, TASK_ROWS), backward_task, &a);
}
