/* cpu_attention_cached.c: attention over a cache: one task per (some tokens, key/value head). */
#include "base/assert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

#include <string.h>

/* Queries of a task, if a group is not larger; and the step, in positions, by which workspaces
 * grow, as the cache grows with every token. */
enum { TASK_ROWS = 32, WORK_STEP = 1024 };

struct cached_args {
	const struct isa_kernels *isa;
	struct attention_shape s;
	int first;
	const float *qkv, *k, *v;
	float *out, *work;
	size_t work_size; /* floats of one thread */
	size_t task_tokens;
};

static void cached_task(void *ctx, int task, int thread) {
	const struct cached_args *a = ctx;
	struct attention_shape s = a->s;
	size_t hd = (size_t)s.head_dim, kv = (size_t)(task % s.kv_heads), group = (size_t)(s.heads / s.kv_heads);
	struct cpu_range r = cpu_range_of((size_t)s.t, a->task_tokens, task / s.kv_heads);
	size_t q_ld = hd * (size_t)(s.heads + 2 * s.kv_heads), out_ld = hd * (size_t)s.heads;
	struct attention_queries q = {.q = a->qkv + r.begin * q_ld + kv * group * hd,
								  .q_ld = (ptrdiff_t)q_ld,
								  .k = a->k + kv * hd,
								  .v = a->v + kv * hd,
								  .ld = (ptrdiff_t)(hd * (size_t)s.kv_heads),
								  .out = a->out + r.begin * out_ld + kv * group * hd,
								  .out_ld = (ptrdiff_t)out_ld,
								  .work = a->work + (size_t)thread * a->work_size,
								  .first = a->first + (int)r.begin,
								  .tokens = (int)r.count,
								  .group = (int)group,
								  .head_dim = s.head_dim};
	a->isa->attention_queries(&q);
}

static void append(float *k, float *v, const float *qkv, struct attention_shape s, int first) {
	size_t kv_width = (size_t)s.kv_heads * s.head_dim, q_width = (size_t)s.heads * s.head_dim;
	for (int t = 0; t < s.t; t++) {
		const float *token = qkv + (size_t)t * (q_width + 2 * kv_width);
		size_t row = ((size_t)first + t) * kv_width;
		memcpy(k + row, token + q_width, kv_width * sizeof *k);
		memcpy(v + row, token + q_width + kv_width, kv_width * sizeof *v);
	}
}

void cpu_attention_cached(struct backend *be, act_t *out, act_t *k, act_t *v, const act_t *qkv,
						  struct attention_shape s, int first) {
	RV_ASSERT(s.b == 1 && first >= 0 && s.kv_heads > 0 && s.heads % s.kv_heads == 0);
	struct cpu_backend *cpu = cpu_of(be);
	append(act_f32(k), act_f32(v), act_f32c(qkv), s, first);
	struct cached_args a = {.isa = cpu->isa,
							.s = s,
							.first = first,
							.qkv = act_f32c(qkv),
							.k = act_f32c(k),
							.v = act_f32c(v),
							.out = act_f32(out)};
	int group = s.heads / s.kv_heads, tokens = group < TASK_ROWS ? TASK_ROWS / group : 1;
	int rows = (tokens < s.t ? tokens : s.t) * group, keys = (first + s.t + WORK_STEP - 1) / WORK_STEP * WORK_STEP;
	a.task_tokens = (size_t)tokens;
	a.work_size = (cpu->isa->attention_queries_work(rows, keys, s.head_dim) + 15) / 16 * 16; /* whole cache lines */
	a.work = cpu_workspace(cpu, WORKSPACE_OP, a.work_size * (size_t)cpu->base.threads);
	cpu_parallel(cpu, cpu_tasks((size_t)s.t, a.task_tokens) * s.kv_heads, cached_task, &a);
}
