/* cpu_embed.c: embeddings. Backward runs in parallel over columns, each thread through all tokens
 * in order: two tokens that share a row never meet, and the order of summation is fixed. */
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

enum { TASK_ROWS = 64, TASK_COLS = 64 };

struct embed_args {
	const struct isa_kernels *isa;
	float *out;
	const float *wte, *wpe;
	const int32_t *tokens;
	int n, t, c;
};

static void forward_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct embed_args *a = ctx;
	struct cpu_range r = cpu_range_of((size_t)a->n, TASK_ROWS, task);
	size_t c = (size_t)a->c;
	for (size_t row = r.begin; row < r.begin + r.count; row++) {
		const float *position = a->wpe ? a->wpe + row % (size_t)a->t * c : NULL;
		a->isa->add_vectors(a->out + row * c, a->wte + (size_t)a->tokens[row] * c, position, c);
	}
}

void cpu_embed_forward(struct backend *be, act_t *out, const int32_t *tokens, const float *wte, const float *wpe, int b,
					   int t, int c) {
	struct embed_args a = {cpu_of(be)->isa, act_f32(out), wte, wpe, tokens, b * t, t, c};
	cpu_parallel(cpu_of(be), cpu_tasks((size_t)a.n, TASK_ROWS), forward_task, &a);
}

struct embed_grad_args {
	const struct isa_kernels *isa;
	float *dwte, *dwpe;
	const float *dout;
	const int32_t *tokens;
	int n, t, c;
};

static void backward_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct embed_grad_args *a = ctx;
	struct cpu_range r = cpu_range_of((size_t)a->c, TASK_COLS, task);
	for (int row = 0; row < a->n; row++) {
		const float *dout = a->dout + (size_t)row * a->c + r.begin;
		float *token = a->dwte + (size_t)a->tokens[row] * a->c + r.begin;
		a->isa->add_vectors(token, token, dout, r.count);
		if (a->dwpe) {
			float *position = a->dwpe + (size_t)(row % a->t) * a->c + r.begin;
			a->isa->add_vectors(position, position, dout, r.count);
		}
	}
}

void cpu_embed_backward(struct backend *be, float *dwte, float *dwpe, const int32_t *tokens, const act_t *dout, int b,
						int t, int c) {
	struct embed_grad_args a = {cpu_of(be)->isa, dwte, dwpe, act_f32c(dout), tokens, b * t, t, c};
	cpu_parallel(cpu_of(be), cpu_tasks((size_t)c, TASK_COLS), backward_task, &a);
}
