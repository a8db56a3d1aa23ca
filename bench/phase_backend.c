/* phase_backend.c: see phase_backend.h. */
#include "bench/phase_backend.h"

#include "base/assert.h"
#include "kernels/host_memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct phase_backend {
	struct backend base;
	struct backend *inner;
	struct backend_ops ops;
	clockid_t clock;
	struct phase_sum sums[N_PHASES];
};

static const struct {
	const char *name;
	enum phase_bound bound;
} phases[N_PHASES] = {
#define PHASE_ROW_(name, text, bound) {text, bound},
	PHASES(PHASE_ROW_)
#undef PHASE_ROW_
};

const char *phase_name(enum phase p) {
	return phases[p].name;
}

enum phase_bound phase_bound(enum phase p) {
	return phases[p].bound;
}

static struct phase_backend *phase_of(struct backend *be) {
	return (struct phase_backend *)be;
}

static double now_s(struct backend *o) {
	struct timespec t;
	clock_gettime(phase_of(o)->clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Passes `call` (an op and its arguments) to the inner backend `be` and adds it to a phase. */
#define MEASURE(outer, phase, flop_or_bytes, call)                                                                     \
	do {                                                                                                               \
		struct phase_sum *sum_ = &phase_of(outer)->sums[phase];                                                        \
		struct backend *be = phase_of(outer)->inner;                                                                   \
		double begin_ = now_s(outer);                                                                                  \
		be->ops->call;                                                                                                 \
		be->ops->sync(be); /* a device's part is over, not only asked for */                                           \
		sum_->seconds += now_s(outer) - begin_;                                                                        \
		sum_->work += (flop_or_bytes);                                                                                 \
	} while (0)

static double floats(double count) {
	return count * (double)sizeof(float);
}

/* Returns bytes of activations, which a backend stores in its own type. */
static double acts(const struct backend *o, double count) {
	return count * (double)dtype_bytes(o->act);
}

static void measured_embed_forward(struct backend *o, act_t *out, const int32_t *tokens, const float *wte,
								   const float *wpe, int b, int t, int c) {
	MEASURE(o, PHASE_EMBEDDING, floats(2.0 * b * t * c) + acts(o, 1.0 * b * t * c),
			embed_forward(be, out, tokens, wte, wpe, b, t, c));
}

static void measured_embed_backward(struct backend *o, float *dwte, float *dwpe, const int32_t *tokens,
									const act_t *dout, int b, int t, int c) {
	MEASURE(o, PHASE_EMBEDDING, floats(4.0 * b * t * c) + acts(o, 1.0 * b * t * c),
			embed_backward(be, dwte, dwpe, tokens, dout, b, t, c));
}

static void measured_layernorm_forward(struct backend *o, act_t *out, float *mean, float *rstd, const act_t *x,
									   const float *w, const float *bias, int n, int c) {
	MEASURE(o, PHASE_NORM_FORWARD, acts(o, 2.0 * n * c), layernorm_forward(be, out, mean, rstd, x, w, bias, n, c));
}

static void measured_residual_layernorm_forward(struct backend *o, act_t *sum, act_t *out, float *mean, float *rstd,
												const act_t *a, const act_t *b, const float *w, const float *bias,
												int n, int c) {
	MEASURE(o, PHASE_NORM_FORWARD, acts(o, 4.0 * n * c),
			residual_layernorm_forward(be, sum, out, mean, rstd, a, b, w, bias, n, c));
}

static void measured_layernorm_backward(struct backend *o, act_t *dx, float *dw, float *dbias, const act_t *dout,
										const act_t *x, const float *w, const float *mean, const float *rstd, int n,
										int c) {
	MEASURE(o, PHASE_NORM_BACKWARD, acts(o, 4.0 * n * c),
			layernorm_backward(be, dx, dw, dbias, dout, x, w, mean, rstd, n, c));
}

/* Returns which of the four linear layers of a block a shape is; its phases are forward, dX and dW,
 * in this order. */
static int linear_phase(struct linear_shape s) {
	return s.o == 3 * s.c ? PHASE_QKV_FORWARD
		   : s.o == s.c   ? PHASE_OUT_FORWARD
		   : s.o > s.c    ? PHASE_FC_FORWARD
						  : PHASE_PROJ_FORWARD;
}

static double linear_flop(struct linear_shape s) {
	return 2.0 * s.n * s.c * s.o;
}

static void measured_linear_forward(struct backend *o, act_t *y, act_t *pre, const act_t *x, const float *w,
									const float *bias, struct linear_shape s, enum linear_epilogue ep) {
	MEASURE(o, linear_phase(s), linear_flop(s), linear_forward(be, y, pre, x, w, bias, s, ep));
}

static void measured_linear_backward_input(struct backend *o, act_t *dx, const act_t *dy, const float *w,
										   const act_t *pre, struct linear_shape s, enum linear_epilogue ep) {
	MEASURE(o, linear_phase(s) + 1, linear_flop(s), linear_backward_input(be, dx, dy, w, pre, s, ep));
}

static void measured_linear_backward_weight(struct backend *o, float *dw, float *dbias, const act_t *dy, const act_t *x,
											struct linear_shape s, enum gradient_mode mode) {
	MEASURE(o, linear_phase(s) + 2, linear_flop(s), linear_backward_weight(be, dw, dbias, dy, x, s, mode));
}

/* Returns the operations of one product over the scores that are not hidden. */
static double attention_flop(struct attention_shape s) {
	return 2.0 * s.b * s.heads * s.head_dim * s.t * (s.t + 1) / 2;
}

static void measured_attention_forward(struct backend *o, act_t *out, float *lse, const act_t *qkv,
									   struct attention_shape s) {
	MEASURE(o, PHASE_ATTENTION_FORWARD, 2 * attention_flop(s), attention_forward(be, out, lse, qkv, s));
}

static void measured_attention_backward(struct backend *o, act_t *dqkv, const act_t *dout, const act_t *qkv,
										const act_t *out, const float *lse, struct attention_shape s) {
	MEASURE(o, PHASE_ATTENTION_BACKWARD, 5 * attention_flop(s), attention_backward(be, dqkv, dout, qkv, out, lse, s));
}

static void measured_classifier(struct backend *o, float *losses, act_t *dx, float *dwte, const act_t *x,
								const float *wte, const int32_t *targets, int n, int c, int v, int vp, float grad_scale,
								enum gradient_mode mode) {
	MEASURE(o, PHASE_CLASSIFIER, (dx ? 6.0 : 2.0) * n * c * v,
			classifier(be, losses, dx, dwte, x, wte, targets, n, c, v, vp, grad_scale, mode));
}

static void measured_zero(struct backend *o, void *p, size_t bytes) {
	MEASURE(o, PHASE_ZERO, (double)bytes, zero(be, p, bytes));
}

static double measured_sum_squares(struct backend *o, const float *x, size_t n) {
	struct phase_sum *sum = &phase_of(o)->sums[PHASE_CLIP];
	struct backend *inner = phase_of(o)->inner;
	double begin = now_s(o), squares = inner->ops->sum_squares(inner, x, n);
	sum->seconds += now_s(o) - begin;
	sum->work += floats((double)n);
	return squares;
}

/* Returns the bytes of AdamW; a backend with bf16 activations also writes the bf16 copy that
 * products read. */
static double adamw_bytes(const struct backend *o, double n) {
	return floats(7 * n) + (o->act == DTYPE_BF16 ? acts(o, n) : 0);
}

static void measured_adamw(struct backend *o, float *p, const float *g, float *m, float *v,
						   const struct decay_span *spans, int n_spans, const struct adamw_params *a) {
	MEASURE(o, PHASE_ADAMW, adamw_bytes(o, (double)spans[n_spans - 1].end), adamw(be, p, g, m, v, spans, n_spans, a));
}

static void measured_adamw8(struct backend *o, float *p, const float *g, void *m, void *v,
							const struct decay_span *spans, int n_spans, const struct adamw_params *a,
							struct moments_place place) {
	const double n = (double)spans[n_spans - 1].end;
	MEASURE(o, PHASE_ADAMW, floats(3 * n) + 4 * n, adamw8(be, p, g, m, v, spans, n_spans, a, place));
}

static void measured_close(struct backend *be) {
	free(be);
}

static const char *measured_describe(const struct backend *be) {
	const struct backend *inner = ((const struct phase_backend *)be)->inner;
	return inner->ops->describe(inner);
}

/* The operations in a training step of GPT-2; others are absent. */
static const struct backend_ops measured_ops = {
	.name = "measured",
	.close = measured_close,
	.describe = measured_describe,
	.alloc = host_backend_alloc,
	.free = host_backend_free,
	.upload = host_backend_copy,
	.download = host_backend_copy,
	.zero = measured_zero,
	.sync = host_backend_sync,
	.embed_forward = measured_embed_forward,
	.embed_backward = measured_embed_backward,
	.layernorm_forward = measured_layernorm_forward,
	.residual_layernorm_forward = measured_residual_layernorm_forward,
	.layernorm_backward = measured_layernorm_backward,
	.linear_forward = measured_linear_forward,
	.linear_backward_input = measured_linear_backward_input,
	.linear_backward_weight = measured_linear_backward_weight,
	.attention_forward = measured_attention_forward,
	.attention_backward = measured_attention_backward,
	.classifier = measured_classifier,
	.sum_squares = measured_sum_squares,
	.adamw = measured_adamw,
	.adamw8 = measured_adamw8,
};

/* Allocates memory of the inner backend, which may not be the host's. */
static enum rv_err inner_alloc(struct backend *o, size_t bytes, void **out, struct rv_errtext *et) {
	return phase_of(o)->inner->ops->alloc(phase_of(o)->inner, bytes, out, et);
}

static void inner_free(struct backend *o, void *p) {
	phase_of(o)->inner->ops->free(phase_of(o)->inner, p);
}

static void inner_upload(struct backend *o, void *dst, const void *host, size_t bytes) {
	phase_of(o)->inner->ops->upload(phase_of(o)->inner, dst, host, bytes);
}

static void inner_download(struct backend *o, void *host, const void *src, size_t bytes) {
	phase_of(o)->inner->ops->download(phase_of(o)->inner, host, src, bytes);
}

static enum rv_err inner_reserve(struct backend *o, struct step_bounds *s, struct rv_errtext *et) {
	struct backend *inner = phase_of(o)->inner;
	return inner->ops->reserve ? inner->ops->reserve(inner, s, et) : RV_OK;
}

static void inner_sync(struct backend *o) {
	phase_of(o)->inner->ops->sync(phase_of(o)->inner);
}

struct backend *phase_backend_new(struct backend *inner, clockid_t clock) {
	struct phase_backend *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->base = *inner;
	p->ops = measured_ops;
	if (inner->ops->alloc != host_backend_alloc) {
		p->ops.alloc = inner_alloc;
		p->ops.free = inner_free;
		p->ops.upload = inner_upload;
		p->ops.download = inner_download;
		p->ops.sync = inner_sync;
		p->ops.reserve = inner_reserve;
	}
	p->base.ops = &p->ops;
	p->inner = inner;
	p->clock = clock;
	return &p->base;
}

const struct phase_sum *phase_backend_sums(const struct backend *be) {
	return ((const struct phase_backend *)be)->sums;
}

void phase_backend_reset(struct backend *be) {
	memset(phase_of(be)->sums, 0, sizeof phase_of(be)->sums);
}
