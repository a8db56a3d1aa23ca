/* cpu_attention.c: attention over tasks: one per (sequence, head) forward, one per (sequence,
 * key/value head) backward, where the query heads of a group add into the same dk and dv, in
 * order. */
#include "base/assert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

struct attention_args {
	const struct attention_kernels *kernels;
	struct attention_shape s;
	float *out, *dqkv;
	const float *qkv, *fwd_out, *dout;
	float *lse;
	const float *fwd_lse;
	float *work;
	size_t work_size; /* floats of one thread */
};

/* Offsets within a token of qkv. */
static size_t k_offset(struct attention_shape s) {
	return (size_t)s.heads * s.head_dim;
}

static size_t v_offset(struct attention_shape s) {
	return (size_t)(s.heads + s.kv_heads) * s.head_dim;
}

static size_t token_width(struct attention_shape s) {
	return (size_t)(s.heads + 2 * s.kv_heads) * s.head_dim;
}

static void forward_task(void *ctx, int task, int thread) {
	const struct attention_args *a = ctx;
	struct attention_shape s = a->s;
	size_t b = (size_t)(task / s.heads), h = (size_t)(task % s.heads), hd = (size_t)s.head_dim, t = (size_t)s.t;
	size_t kv = h / (size_t)(s.heads / s.kv_heads);
	const float *token = a->qkv + b * t * token_width(s);
	struct attention_head head = {.q = token + h * hd,
								  .k = token + k_offset(s) + kv * hd,
								  .v = token + v_offset(s) + kv * hd,
								  .ld = (ptrdiff_t)token_width(s),
								  .out = a->out + (b * t * (size_t)s.heads + h) * hd,
								  .out_ld = (ptrdiff_t)k_offset(s),
								  .lse = a->lse + (b * (size_t)s.heads + h) * t,
								  .work = a->work + (size_t)thread * a->work_size,
								  .t = s.t,
								  .head_dim = s.head_dim};
	a->kernels->head(&head);
}

static void prepare(struct cpu_backend *be, struct attention_args *a, size_t floats) {
	a->work_size = (floats + 15) / 16 * 16; /* whole cache lines */
	a->work = cpu_workspace(be, WORKSPACE_OP, a->work_size * (size_t)be->base.threads);
}

void cpu_attention_forward(struct backend *be, act_t *out, float *lse, const act_t *qkv, struct attention_shape s) {
	RV_ASSERT(s.kv_heads > 0 && s.heads % s.kv_heads == 0);
	struct cpu_backend *cpu = cpu_of(be);
	struct attention_args a = {
		.kernels = cpu->attention, .s = s, .out = act_f32(out), .lse = lse, .qkv = act_f32c(qkv)};
	prepare(cpu, &a, cpu->attention->head_work(s.t, s.head_dim));
	cpu_parallel(cpu, s.b * s.heads, forward_task, &a);
}

static void backward_task(void *ctx, int task, int thread) {
	const struct attention_args *a = ctx;
	struct attention_shape s = a->s;
	int group = s.heads / s.kv_heads;
	size_t b = (size_t)(task / s.kv_heads), kv = (size_t)(task % s.kv_heads), hd = (size_t)s.head_dim, t = (size_t)s.t;
	size_t h = kv * (size_t)group, out_at = (b * t * (size_t)s.heads + h) * hd, token = b * t * token_width(s);
	size_t q = token + h * hd, k = token + k_offset(s) + kv * hd, v = token + v_offset(s) + kv * hd;
	struct attention_group g = {.q = a->qkv + q,
								.k = a->qkv + k,
								.v = a->qkv + v,
								.dq = a->dqkv + q,
								.dk = a->dqkv + k,
								.dv = a->dqkv + v,
								.ld = (ptrdiff_t)token_width(s),
								.out = a->fwd_out + out_at,
								.dout = a->dout + out_at,
								.out_ld = (ptrdiff_t)k_offset(s),
								.lse = a->fwd_lse + (b * (size_t)s.heads + h) * t,
								.work = a->work + (size_t)thread * a->work_size,
								.t = s.t,
								.head_dim = s.head_dim,
								.group = group};
	a->kernels->group(&g);
}

void cpu_attention_backward(struct backend *be, act_t *dqkv, const act_t *dout, const act_t *qkv, const act_t *out,
							const float *lse, struct attention_shape s) {
	RV_ASSERT(s.kv_heads > 0 && s.heads % s.kv_heads == 0);
	struct cpu_backend *cpu = cpu_of(be);
	struct attention_args a = {.kernels = cpu->attention,
							   .s = s,
							   .dqkv = act_f32(dqkv),
							   .qkv = act_f32c(qkv),
							   .fwd_out = act_f32c(out),
							   .dout = act_f32c(dout),
							   .fwd_lse = lse};
	prepare(cpu, &a, cpu->attention->group_work(s.t, s.head_dim));
	cpu_parallel(cpu, s.b * s.kv_heads, backward_task, &a);
}
