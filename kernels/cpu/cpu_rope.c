/* cpu_rope.c: rotary position embedding over tasks of tokens. */
#include "base/assert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

enum { TASK_ROWS = 16 };

struct rope_args {
	const struct isa_kernels *isa;
	float *qkv;
	const float *table;
	struct attention_shape s;
	int first;
	float direction;
};

static void rope_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct rope_args *a = ctx;
	struct attention_shape s = a->s;
	size_t width = (size_t)(s.heads + 2 * s.kv_heads) * s.head_dim;
	struct cpu_range r = cpu_range_of((size_t)s.b * s.t, TASK_ROWS, task);
	for (size_t row = r.begin; row < r.begin + r.count; row++) {
		size_t position = (size_t)a->first + row % (size_t)s.t;
		a->isa->rope_token(a->qkv + row * width, a->table + position * (size_t)s.head_dim, s.heads + s.kv_heads,
						   s.head_dim, a->direction);
	}
}

void cpu_rope(struct backend *be, act_t *qkv, const float *table, struct attention_shape s, int first, bool inverse) {
	RV_ASSERT(s.head_dim % 2 == 0 && first >= 0);
	struct rope_args a = {cpu_of(be)->isa, act_f32(qkv), table, s, first, inverse ? -1.0f : 1.0f};
	cpu_parallel(cpu_of(be), cpu_tasks((size_t)s.b * s.t, TASK_ROWS), rope_task, &a);
}
