/* model.c: the registry of families; their layout, decay spans, memory, initial weights. */
#include "train/model/model.h"

#include "base/assert.h"
#include "base/rng.h"
#include "kernels/host_memory.h"
#include "kernels/normals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_ROWS = 1 << 24,
	ARENA_ALIGN = 64,
	INIT_CHUNK = 1 << 16 /* values per upload: enough for the threads that draw them */
};

#define STREAM_INIT ((uint64_t)0x696e6974 << 32) /* Philox streams of initial weights; the low half is the tensor */

#define MODEL_FAMILY(name, facts) &model_##name,
const struct model_ops *const model_registry[] = {
#include "base/model_families.def"
	NULL};
#undef MODEL_FAMILY

enum rv_err model_family_find(const char *name, const struct model_ops **out, struct rv_errtext *et) {
	char known[256] = "";
	for (int i = 0; model_registry[i]; i++) {
		if (strcmp(model_registry[i]->name, name) == 0) {
			*out = model_registry[i];
			return RV_OK;
		}
		size_t used = strlen(known);
		snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", model_registry[i]->name);
	}
	return rv_fail(et, RV_E_NOTFOUND, "model family '%s' does not exist; there are: %s", name, known);
}

static bool within(int value, int max) {
	return value >= 1 && value <= max;
}

static enum rv_err check_batch(const struct model_shape *s, int max_batch, struct rv_errtext *et) {
	if (within(max_batch, MAX_ROWS / s->context))
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "model: a batch of %d sequences of %d tokens, must be 1 to %d sequences", max_batch,
				   s->context, MAX_ROWS / s->context);
}

enum dtype run_config_compute(const struct run_config *c, const struct device_choice *device, const char *isa) {
	if (c->dtype == RUN_DTYPE_AUTO)
		return backend_faster_dtype(device->backend, isa);
	return c->dtype == RUN_DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

const char *dtype_name(enum dtype d) {
	return d == DTYPE_BF16 ? "bf16" : "fp32";
}

void model_add_tensor(struct model_layout *l, const struct model_tensor *t, int storage_rows) {
	RV_ASSERT(storage_rows >= t->rows && t->rows > 0 && t->cols > 0);
	if (l->failed)
		return;
	if (l->n_tensors == l->tensors_cap) {
		int cap = l->tensors_cap ? 2 * l->tensors_cap : 64;
		struct model_tensor *grown = realloc(l->tensors, (size_t)cap * sizeof *grown);
		if (!grown) {
			l->failed = true;
			return;
		}
		l->tensors = grown;
		l->tensors_cap = cap;
	}
	struct model_tensor *added = &l->tensors[l->n_tensors++];
	*added = *t;
	added->offset = l->n_params;
	added->elems = (size_t)t->rows * (size_t)t->cols;
	l->n_params += model_tensor_elems(storage_rows, t->cols);
}

const struct model_tensor *model_find_tensor(const struct model_layout *l, const char *name) {
	for (int i = 0; i < l->n_tensors; i++)
		if (strcmp(l->tensors[i].name, name) == 0)
			return &l->tensors[i];
	return NULL;
}

void *model_arena_take(struct model_arena *a, size_t n_bytes) {
	void *p = a->base ? a->base + a->used_bytes : NULL;
	a->used_bytes += (n_bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	return p;
}

enum rv_err model_layout_init(struct model_layout *l, const struct model_ops *family, const struct model_shape *shape,
							  struct model_shape *resolved, struct rv_errtext *et) {
	struct model_shape s = *shape;
	*l = (struct model_layout){.n_tensors = 0};
	RV_TRY(model_shape_check(shape, et));
	RV_TRY(family->rules->resolve(&s, et));
	if (resolved)
		*resolved = s;
	family->layout(&s, l);
	if (!l->failed)
		return RV_OK;
	model_layout_release(l);
	return rv_fail(et, RV_E_NOMEM, "model: no memory for the table of its tensors");
}

void model_layout_release(struct model_layout *l) {
	free(l->tensors);
	*l = (struct model_layout){.n_tensors = 0};
}

/* Builds the spans: adjacent tensors of equal decay, with the padding behind them, share one. */
static enum rv_err build_spans(struct model *m, struct rv_errtext *et) {
	int n = m->layout.n_tensors;
	m->spans = calloc((size_t)n, sizeof *m->spans);
	if (!m->spans)
		return rv_fail(et, RV_E_NOMEM, "model: no memory for the spans of its %d tensors", n);
	for (int i = 0; i < n; i++) {
		const struct model_tensor *t = &m->layout.tensors[i];
		size_t end = i + 1 < n ? t[1].offset : m->layout.n_params;
		struct decay_span *last = m->n_spans > 0 ? &m->spans[m->n_spans - 1] : NULL;
		if (last && last->decay == t->decay)
			last->end = end;
		else
			m->spans[m->n_spans++] = (struct decay_span){t->offset, end, t->decay};
	}
	return RV_OK;
}

enum rv_err model_activation_bytes(const struct model_ops *family, const struct model_shape *shape,
								   const struct model_options *options, enum dtype act, size_t *out,
								   struct rv_errtext *et) {
	struct backend none = {.act = act};
	struct model m = {.be = &none, .shape = *shape, .options = *options, .plan = calloc(1, family->plan_bytes)};
	if (!m.plan)
		return rv_fail(et, RV_E_NOMEM, "model: no memory for its plan");
	struct model_arena arena = {0};
	family->plan(&m, &arena, options->max_batch);
	*out = arena.used_bytes;
	free(m.plan);
	return RV_OK;
}

static enum rv_err build_activations(struct model *m, struct rv_errtext *et) {
	m->plan = calloc(1, m->ops->plan_bytes);
	if (!m->plan)
		return rv_fail(et, RV_E_NOMEM, "model: no memory for its plan");
	RV_TRY(model_activation_bytes(m->ops, &m->shape, &m->options, m->be->act, &m->memory_bytes, et));
	enum rv_err e = m->be->ops->alloc(m->be, m->memory_bytes, &m->memory, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "activations of %d x %d tokens (lower batch and raise grad-accum)",
							   m->options.max_batch, m->shape.context);
	struct model_arena arena = {.base = m->memory};
	m->ops->plan(m, &arena, m->options.max_batch);
	return RV_OK;
}

const struct model_ops *model_family(const struct run_config *c) {
	return model_registry[c->model];
}

enum rv_err model_new(const struct model_ops *family, const struct model_shape *shape,
					  const struct model_options *options, struct backend *be, struct model **out,
					  struct rv_errtext *et) {
	*out = NULL;
	struct model *m = calloc(1, sizeof *m);
	if (!m)
		return rv_fail(et, RV_E_NOMEM, "model: no memory");
	m->ops = family;
	m->be = be;
	m->options = *options;
	enum rv_err e = model_layout_init(&m->layout, family, shape, &m->shape, et);
	if (e == RV_OK)
		e = check_batch(&m->shape, options->max_batch, et);
	if (e == RV_OK)
		e = build_spans(m, et);
	if (e == RV_OK)
		e = build_activations(m, et);
	if (e != RV_OK) {
		model_free(m);
		return e;
	}
	*out = m;
	return RV_OK;
}

void model_free(struct model *m) {
	if (!m)
		return;
	if (m->memory)
		m->be->ops->free(m->be, m->memory);
	if (m->cache)
		m->be->ops->free(m->be, m->cache);
	free(m->plan);
	free(m->spans);
	model_layout_release(&m->layout);
	free(m);
}

/* Draws n values of the tensor from `first` on into host memory. threads 0: its caller's alone. */
static void draw_values(const struct model_tensor *t, const struct rv_rng *rng, size_t first, size_t n, int threads,
						float *out) {
	struct rv_rng from = *rng;
	from.counter += first;
	if (t->init == MODEL_INIT_NORMAL)
		normals_fill(out, n, &from, t->std, threads);
	else
		for (size_t i = 0; i < n; i++)
			out[i] = 1.0f;
}

static void upload_tensor(const struct model *m, const struct model_tensor *t, float *params,
						  const struct rv_rng *rng) {
	float chunk[INIT_CHUNK];
	for (size_t done = 0, n; done < t->elems; done += n) {
		n = t->elems - done < INIT_CHUNK ? t->elems - done : INIT_CHUNK;
		draw_values(t, rng, done, n, 0, chunk);
		m->be->ops->upload(m->be, params + t->offset + done, chunk, n * sizeof chunk[0]);
	}
}

static bool is_on_host(const struct model *m) {
	return m->be->ops->alloc == host_backend_alloc;
}

void model_init_host_params(const struct model_layout *l, float *params, uint64_t seed, int threads) {
	memset(params, 0, l->n_params * sizeof *params);
	for (int i = 0; i < l->n_tensors; i++) {
		const struct model_tensor *t = &l->tensors[i];
		const struct rv_rng rng = rv_rng_of(seed, STREAM_INIT | (uint64_t)i);
		if (t->init != MODEL_INIT_ZERO)
			draw_values(t, &rng, 0, t->elems, threads, params + t->offset);
	}
}

void model_init_params(const struct model *m, float *params, uint64_t seed) {
	if (is_on_host(m)) {
		model_init_host_params(&m->layout, params, seed, m->be->threads);
		return;
	}
	m->be->ops->zero(m->be, params, m->layout.n_params * sizeof *params);
	for (int i = 0; i < m->layout.n_tensors; i++) {
		const struct model_tensor *t = &m->layout.tensors[i];
		const struct rv_rng rng = rv_rng_of(seed, STREAM_INIT | (uint64_t)i);
		if (t->init != MODEL_INIT_ZERO)
			upload_tensor(m, t, params, &rng);
	}
}

void model_forward(struct model *m, const float *params, const int32_t *tokens, int b, int t) {
	RV_ASSERT(within(b, m->options.max_batch) && within(t, m->shape.context));
	m->b = b;
	m->t = t;
	m->ops->forward(m, params, tokens, b, t);
}

void model_loss(struct model *m, const float *params, const int32_t *targets, float *losses) {
	RV_ASSERT(m->b > 0);
	m->ops->loss(m, params, targets, losses);
}

void model_backward(struct model *m, const float *params, float *grads, const int32_t *tokens, const int32_t *targets,
					float grad_scale, float *losses, enum gradient_mode mode) {
	RV_ASSERT(m->b > 0 && !m->options.forward_only);
	m->ops->backward(m, params, grads, tokens, targets, grad_scale, losses, mode);
}

int model_section_of(const struct model_layout *l, size_t offset) {
	const struct fragment_layers *layers = &l->layers;
	if (offset < layers->begin)
		return 0;
	const size_t layer = (offset - layers->begin) / layers->layer_elems;
	return layer < (size_t)layers->n ? 1 + (int)layer : layers->n + 1;
}

size_t model_section_begin(const struct model_layout *l, int section) {
	const struct fragment_layers *layers = &l->layers;
	RV_ASSERT(section >= 0 && section <= layers->n + 2);
	if (section == 0)
		return 0;
	if (section == layers->n + 2)
		return l->n_params;
	return layers->begin + (size_t)(section - 1) * layers->layer_elems;
}

struct pass {
	struct model *m;
	const struct micro_batch *batch;
	float *losses;
};

static void run_pass(void *ctx) {
	const struct pass *p = ctx;
	const struct micro_batch *k = p->batch;
	model_forward(p->m, k->params, k->tokens, k->b, k->t);
	model_backward(p->m, k->params, k->grads, k->tokens, k->targets, k->grad_scale, p->losses,
				   k->first ? GRADIENT_WRITE : GRADIENT_ADD);
}

bool model_micro_step(struct model *m, const float *params, float *grads, const int32_t *tokens, const int32_t *targets,
					  int b, int t, float grad_scale, float *losses, enum gradient_mode mode) {
	const struct micro_batch batch = {
		.tokens = tokens,
		.targets = targets,
		.b = b,
		.t = t,
		.grad_scale = grad_scale,
		.owner = m,
		.params = params,
		.grads = grads,
		.first = mode == GRADIENT_WRITE,
		.only_enqueues = !m->on_gradients && !m->before_section && !m->holder,
	};
	struct pass pass = {m, &batch, losses};
	bool waits = !m->be->ops->micro_step;
	if (waits)
		run_pass(&pass);
	else
		m->be->ops->micro_step(m->be, &batch, run_pass, &pass);
	m->b = b; /* also if the pass was replayed */
	m->t = t;
	return waits;
}

void model_micro_prepare(struct model *m, const int32_t *tokens, const int32_t *targets, int b, int t,
						 float grad_scale) {
	const struct micro_batch batch = {.tokens = tokens, .targets = targets, .b = b, .t = t, .grad_scale = grad_scale};
	if (m->be->ops->micro_prepare)
		m->be->ops->micro_prepare(m->be, &batch);
}

size_t model_cache_elems(const struct model_shape *s) {
	size_t channels = (size_t)(s->n_embd / s->n_head) * (size_t)s->n_kv_head;
	return 2 * (size_t)s->n_layer * (size_t)s->context * channels;
}

enum rv_err model_decode_begin(struct model *m, struct rv_errtext *et) {
	const struct model_shape *s = &m->shape;
	m->decoded = 0;
	if (m->cache)
		return RV_OK;
	void *cache;
	enum rv_err e = m->be->ops->alloc(m->be, model_cache_elems(s) * dtype_bytes(m->be->act), &cache, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "keys and values of %d tokens in %d layers", s->context, s->n_layer);
	m->cache = cache;
	return RV_OK;
}

void model_decode(struct model *m, const float *params, const int32_t *tokens, int n, float *host_out) {
	RV_ASSERT(m->cache && within(n, m->shape.context - m->decoded));
	m->ops->decode(m, params, tokens, m->decoded, n, host_out);
	m->decoded += n;
	m->b = m->t = 0;
}
