/* cuda_attention.c: attention by cuDNN where it is available and correct (sdpa.h), else by our own
 * kernels. */
#include "base/assert.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"

static void check_shape(struct attention_shape s) {
	RV_ASSERT(s.kv_heads > 0 && s.heads % s.kv_heads == 0);
	RV_ASSERT(s.head_dim >= 1 && s.head_dim <= ATTENTION_HEAD_DIM_MAX);
}

/* Returns true if tensor cores can compute the call: their kernels copy 16 bytes at a time. */
static bool on_tensor_cores(enum dtype act, const struct attention_call *c) {
	int d = c->shape.head_dim;
	bool made_for = d == 32 || d == 64 || d == 128;
	return act == DTYPE_BF16 && made_for && (((uintptr_t)c->qkv | (uintptr_t)c->dout) & 15) == 0;
}

void attention_own(cudaStream_t stream, enum dtype act, const struct attention_call *c, float *delta) {
	bool mma = on_tensor_cores(act, c);
	if (c->backward) {
		launch_attention_delta(stream, act, delta, c->dout, c->out, c->shape);
		if (mma)
			launch_attention_backward_mma(stream, c->dqkv, c->dout, c->qkv, c->lse, delta, c->shape);
		else
			launch_attention_backward_tiled(stream, act, c->dqkv, c->dout, c->qkv, c->lse, delta, c->shape);
	} else if (mma)
		launch_attention_forward_mma(stream, c->out, c->lse, c->qkv, c->shape);
	else
		launch_attention_forward_tiled(stream, act, c->out, c->lse, c->qkv, c->shape);
}

/* Returns true if cuDNN computed the call. Its first results are compared with ours. */
static bool by_cudnn(struct cuda_backend *cu, const struct attention_call *c) {
	char why[256];
	struct sdpa_use *u = sdpa_find(cu->sdpa, cu->stream, c);
	if (!u || !sdpa_run(cu->sdpa, u, cu->stream, c))
		return false;
	if (sdpa_is_proven(u))
		return true;
	enum attention_verdict verdict = attention_check(cu, c, why, sizeof why);
	if (verdict == ATTENTION_AGREES)
		sdpa_prove(u);
	if (verdict == ATTENTION_DIFFERS)
		sdpa_leave(cu->sdpa, u, why);
	return verdict != ATTENTION_DIFFERS;
}

static void run(struct cuda_backend *cu, const struct attention_call *c) {
	check_shape(c->shape);
	/* Allocated in any case: a fallback while a graph is captured cannot allocate. */
	float *delta = c->backward ? cuda_scratch(cu, SCRATCH_ROWS, attention_rows(c->shape) * sizeof(float)) : NULL;
	if (!by_cudnn(cu, c))
		attention_own(cu->stream, cu->base.act, c, delta);
}

void cuda_attention_forward(struct backend *be, act_t *out, float *lse, const act_t *qkv, struct attention_shape s) {
	const struct attention_call c = {.shape = s, .qkv = qkv, .out = out, .lse = lse};
	run(cuda_of(be), &c);
}

void cuda_attention_backward(struct backend *be, act_t *dqkv, const act_t *dout, const act_t *qkv, const act_t *out,
							 const float *lse, struct attention_shape s) {
	const struct attention_call c = {
		.shape = s,
		.backward = true,
		.qkv = qkv,
		.out = (act_t *)(uintptr_t)out, /* only read, as lse is */
		.lse = (float *)(uintptr_t)lse,
		.dout = dout,
		.dqkv = dqkv,
	};
	run(cuda_of(be), &c);
}

void cuda_attention_cached(struct backend *be, act_t *out, act_t *k, act_t *v, const act_t *qkv,
						   struct attention_shape s, int first) {
	check_shape(s);
	RV_ASSERT(s.b == 1 && first >= 0);
	launch_attention_cached(cuda_of(be)->stream, be->act, out, k, v, qkv, s, first);
}
