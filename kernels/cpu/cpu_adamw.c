/* cpu_adamw.c: the optimizer and the gradient norm, over tasks of consecutive parameters. */
#include "base/assert.h"
#include "kernels/cpu/cpu.h"

enum { TASK_FLOATS = 65536 };

struct sum_args {
	const struct isa_kernels *isa;
	const float *x;
	size_t n;
	double *parts;
};

static void sum_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct sum_args *a = ctx;
	struct cpu_range r = cpu_range_of(a->n, TASK_FLOATS, task);
	a->parts[task] = a->isa->sum_squares(a->x + r.begin, r.count);
}

static double sum_tree(const double *x, int n) {
	return n == 1 ? x[0] : sum_tree(x, n / 2) + sum_tree(x + n / 2, n - n / 2);
}

double cpu_sum_squares(struct backend *be, const float *x, size_t n) {
	if (n == 0)
		return 0;
	struct cpu_backend *cpu = cpu_of(be);
	int tasks = cpu_tasks(n, TASK_FLOATS);
	void *parts = cpu_workspace(cpu, WORKSPACE_OP, (size_t)tasks * 2); /* a double is two floats */
	struct sum_args a = {cpu->isa, x, n, parts};
	cpu_parallel(cpu, tasks, sum_task, &a);
	return sum_tree(a.parts, tasks);
}

struct adamw_args {
	const struct isa_kernels *isa;
	float *p, *m, *v;
	const float *g;
	size_t n;
	const struct decay_span *spans;
	int n_spans;
	struct adamw_consts with_decay, without_decay;
};

/* Updates parameters [r.begin, r.begin + r.count), whose moments begin at m and v. */
static void adamw_range(const struct adamw_args *a, struct cpu_range r, float *m, float *v) {
	for (int i = 0; i < a->n_spans; i++) {
		const struct decay_span *s = &a->spans[i];
		size_t begin = s->begin > r.begin ? s->begin : r.begin;
		size_t end = s->end < r.begin + r.count ? s->end : r.begin + r.count;
		if (begin < end)
			a->isa->adamw(a->p + begin, a->g + begin, m + (begin - r.begin), v + (begin - r.begin), end - begin,
						  s->decay ? &a->with_decay : &a->without_decay);
	}
}

static void adamw_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct adamw_args *a = ctx;
	const struct cpu_range r = cpu_range_of(a->n, TASK_FLOATS, task);
	adamw_range(a, r, a->m + r.begin, a->v + r.begin);
}

/* Checks the spans. Returns how many parameters they cover. */
static size_t covered(const struct decay_span *spans, int n_spans, const struct adamw_params *params) {
	RV_ASSERT(n_spans > 0 && params->step > 0);
	for (int i = 0; i < n_spans; i++)
		RV_ASSERT(spans[i].begin == (i ? spans[i - 1].end : 0) && spans[i].begin <= spans[i].end);
	return spans[n_spans - 1].end;
}

static struct adamw_args args_of(struct backend *be, float *p, const float *g, const struct decay_span *spans,
								 int n_spans, const struct adamw_params *params) {
	return (struct adamw_args){.isa = cpu_of(be)->isa,
							   .p = p,
							   .g = g,
							   .n = covered(spans, n_spans, params),
							   .spans = spans,
							   .n_spans = n_spans,
							   .with_decay = adamw_consts_of(params, (double)params->weight_decay),
							   .without_decay = adamw_consts_of(params, 0)};
}

void cpu_adamw(struct backend *be, float *p, const float *g, float *m, float *v, const struct decay_span *spans,
			   int n_spans, const struct adamw_params *params) {
	struct adamw_args a = args_of(be, p, g, spans, n_spans, params);
	a.m = m;
	a.v = v;
	cpu_parallel(cpu_of(be), cpu_tasks(a.n, TASK_FLOATS), adamw_task, &a);
}

/* ---- moments in 8 bits ---- */

_Static_assert(TASK_FLOATS % MOMENTS_BLOCK == 0, "tasks are whole blocks");

struct adamw8_args {
	struct adamw_args of; /* without m and v */
	uint8_t *m, *v;
	float *m_tops, *v_tops;
	uint64_t step, first_block;
};

static void adamw8_block(const struct adamw8_args *a, struct cpu_range r) {
	const size_t block = r.begin / MOMENTS_BLOCK;
	const struct moments_block codes = {a->m + r.begin, a->v + r.begin, &a->m_tops[block], &a->v_tops[block]};
	_Alignas(64) float m[MOMENTS_BLOCK], v[MOMENTS_BLOCK];
	a->of.isa->moments_decode(m, v, &codes);
	adamw_range(&a->of, r, m, v);
	a->of.isa->moments_encode(&codes, m, v, moments_seed(a->step, a->first_block + block));
}

static void adamw8_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct adamw8_args *a = ctx;
	const struct cpu_range r = cpu_range_of(a->of.n, TASK_FLOATS, task);
	for (size_t at = 0; at < r.count; at += MOMENTS_BLOCK) {
		const size_t left = r.count - at;
		adamw8_block(a, (struct cpu_range){r.begin + at, left < MOMENTS_BLOCK ? left : MOMENTS_BLOCK});
	}
}

void cpu_adamw8(struct backend *be, float *p, const float *g, void *m, void *v, const struct decay_span *spans,
				int n_spans, const struct adamw_params *params, struct moments_place place) {
	const size_t block = place.at / MOMENTS_BLOCK;
	RV_ASSERT(place.first % MOMENTS_BLOCK == 0 && place.at % MOMENTS_BLOCK == 0);
	struct adamw8_args a = {.of = args_of(be, p, g, spans, n_spans, params),
							.m = (uint8_t *)m + place.at,
							.v = (uint8_t *)v + place.at,
							.m_tops = moments_tops(m, place.n) + block,
							.v_tops = moments_tops(v, place.n) + block};
	RV_ASSERT(place.at + a.of.n <= place.n);
	a.step = (uint64_t)params->step;
	a.first_block = place.first / MOMENTS_BLOCK;
	cpu_parallel(cpu_of(be), cpu_tasks(a.of.n, TASK_FLOATS), adamw8_task, &a);
}
