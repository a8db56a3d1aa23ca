/* sdpa.c: finding cuDNN, plans by shape, and running them; see sdpa.h. */
#include "kernels/cuda/sdpa.h"

#include "base/assert.h"
#include "kernels/cuda/sdpa_graph.h"
#include "kernels/cuda/vendor/vendor.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANS_MAX = 64, HEAD_DIM_MAX = 128, HEAD_DIM_MULTIPLE = 8 };

static bool says(const char *variable, const char *value) {
	const char *said = getenv(variable);
	return said && strcmp(said, value) == 0;
}

/* Whether a person wants it left out. */
static bool unwanted(char *why, size_t cap) {
	bool own = says("RIVULET_CUDA_ATTENTION", "own"), fixed = says("RIVULET_CUDA_DETERMINISTIC", "1");
	if (own || fixed)
		(void)snprintf(why, cap, "%s is set", own ? "RIVULET_CUDA_ATTENTION=own" : "RIVULET_CUDA_DETERMINISTIC=1");
	return own || fixed;
}

/* What there is for a shape: a plan, or none. */
struct entry {
	struct attention_shape shape;
	bool backward, usable;
	struct sdpa_plan plan;
};

/* Device memory that grows. */
struct buffer {
	void *p;
	size_t bytes;
};

struct sdpa {
	const struct cudnn_api *api;
	cudnnHandle_t handle;
	struct entry entries[PLANS_MAX];
	int n;
	struct buffer workspace, row_sum, dq_sum;
	uint64_t grown; /* how often one of these moved */
};

static bool start(struct sdpa *s, char *why, size_t cap) {
	struct rv_errtext et = {0};
	s->api = vendor_cudnn(&et);
	if (!s->api) {
		(void)snprintf(why, cap, "%s", et.text);
		return false;
	}
	cudnnStatus_t status = s->api->cudnnCreate(&s->handle);
	if (status == CUDNN_STATUS_SUCCESS)
		return true;
	(void)snprintf(why, cap, "cuDNN does not start: %s", s->api->cudnnGetErrorString(status));
	s->handle = NULL;
	return false;
}

struct sdpa *sdpa_open(char *why, size_t cap) {
	if (unwanted(why, cap))
		return NULL;
	struct sdpa *s = calloc(1, sizeof *s);
	if (s && start(s, why, cap))
		return s;
	if (!s)
		(void)snprintf(why, cap, "no memory for its handle");
	sdpa_close(s);
	return NULL;
}

void sdpa_close(struct sdpa *s) {
	if (!s)
		return;
	for (int i = 0; i < s->n; i++)
		sdpa_plan_release(s->api, &s->entries[i].plan);
	(void)cudaFree(s->workspace.p);
	(void)cudaFree(s->row_sum.p);
	(void)cudaFree(s->dq_sum.p);
	if (s->handle)
		(void)s->api->cudnnDestroy(s->handle);
	free(s);
}

/* Only between steps: what is grown may be in use, and freeing waits for it. */
static bool grow(struct sdpa *s, struct buffer *b, size_t bytes) {
	if (bytes <= b->bytes)
		return true;
	s->grown++;
	(void)cudaFree(b->p);
	b->bytes = 0;
	if (cudaMalloc(&b->p, bytes) != cudaSuccess) {
		b->p = NULL;
		(void)cudaGetLastError();
		return false;
	}
	b->bytes = bytes;
	return true;
}

static size_t rows_of(struct attention_shape a) {
	return (size_t)a.b * (size_t)a.heads * (size_t)a.t;
}

static bool prepare(struct sdpa *s, struct entry *e) {
	const char *why;
	struct attention_shape a = e->shape;
	if (a.head_dim > HEAD_DIM_MAX || a.head_dim % HEAD_DIM_MULTIPLE != 0)
		return false;
	if (!sdpa_plan_make(s->api, s->handle, NULL, a, e->backward, &e->plan, &why))
		return false;
	return grow(s, &s->workspace, (size_t)e->plan.workspace_bytes) &&
		   (!e->backward || (grow(s, &s->row_sum, rows_of(a) * sizeof(float)) &&
							 grow(s, &s->dq_sum, rows_of(a) * (size_t)a.head_dim * sizeof(float))));
}

static struct entry *find(struct sdpa *s, struct attention_shape a, bool backward) {
	for (int i = 0; i < s->n; i++) {
		struct entry *e = &s->entries[i];
		if (memcmp(&e->shape, &a, sizeof a) == 0 && e->backward == backward)
			return e->usable ? e : NULL;
	}
	if (s->n == PLANS_MAX)
		return NULL;
	struct entry *e = &s->entries[s->n++];
	*e = (struct entry){.shape = a, .backward = backward};
	e->usable = prepare(s, e);
	return e->usable ? e : NULL;
}

static void check(const struct sdpa *s, cudnnStatus_t status, const char *what) {
	if (status != CUDNN_STATUS_SUCCESS)
		(void)fprintf(stderr, "cuda backend: cuDNN: %s: %s\n", what, s->api->cudnnGetErrorString(status));
	RV_ASSERT(status == CUDNN_STATUS_SUCCESS);
}

/* Runs a plan with the tensors at[id]; those that are NULL are not part of its graph. */
static void execute(struct sdpa *s, cudaStream_t stream, const struct sdpa_plan *plan, void *const at[SDPA_TENSORS]) {
	int64_t ids[SDPA_TENSORS], n = 0;
	void *pointers[SDPA_TENSORS];
	cudnnBackendDescriptor_t pack;
	for (int id = SDPA_Q; id < SDPA_TENSORS; id++)
		if (at[id]) {
			ids[n] = id;
			pointers[n++] = at[id];
		}
	check(s, s->api->cudnnSetStream(s->handle, stream), "the stream");
	check(s, s->api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack), "a variant pack");
	check(
		s,
		s->api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers),
		"pointers");
	check(s, s->api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids),
		  "ids");
	check(s,
		  s->api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
										   &s->workspace.p),
		  "workspace");
	check(s, s->api->cudnnBackendFinalize(pack), "a variant pack");
	cudnnStatus_t status = s->api->cudnnBackendExecute(s->handle, plan->plan, pack);
	if (status == CUDNN_STATUS_SUCCESS || !cuda_capture_is_spoilt(stream))
		check(s, status, "attention");
	(void)s->api->cudnnBackendDestroyDescriptor(pack);
}

uint64_t sdpa_grown(const struct sdpa *s) {
	return s ? s->grown : 0;
}

/* As the graphs say of every tensor. */
static bool aligned(const void *a, const void *b, const void *c, const void *d) {
	return (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d) & 15) == 0;
}

/* q, k and v lie one behind the other in a row of packed projections. */
static void point_packed(void *at[SDPA_TENSORS], enum sdpa_tensor q, const act_t *packed, struct attention_shape a) {
	uint16_t *row = (uint16_t *)(uintptr_t)packed;
	at[q] = row;
	at[q + 1] = row + (size_t)a.heads * (size_t)a.head_dim;
	at[q + 2] = row + (size_t)(a.heads + a.kv_heads) * (size_t)a.head_dim;
}

bool sdpa_forward(struct sdpa *s, cudaStream_t stream, act_t *out, float *lse, const act_t *qkv,
				  struct attention_shape a) {
	const struct entry *e = s && aligned(out, lse, qkv, NULL) ? find(s, a, false) : NULL;
	float scale = 1 / sqrtf((float)a.head_dim), masked = -FLT_MAX;
	if (!e)
		return false;
	void *at[SDPA_TENSORS] = {[SDPA_OUT] = out, [SDPA_LSE] = lse, [SDPA_SCALE] = &scale, [SDPA_MASKED] = &masked};
	point_packed(at, SDPA_Q, qkv, a);
	execute(s, stream, &e->plan, at);
	return true;
}

bool sdpa_backward(struct sdpa *s, cudaStream_t stream, act_t *dqkv, const act_t *dout, const act_t *qkv,
				   const act_t *out, const float *lse, struct attention_shape a) {
	const struct entry *e = s && aligned(dqkv, dout, qkv, out) ? find(s, a, true) : NULL;
	float scale = 1 / sqrtf((float)a.head_dim), masked = -FLT_MAX, one = 1;
	if (!e)
		return false;
	void *at[SDPA_TENSORS] = {
		[SDPA_OUT] = (void *)(uintptr_t)out, /* only read, as dout and lse are */
		[SDPA_LSE] = (void *)(uintptr_t)lse,
		[SDPA_DOUT] = (void *)(uintptr_t)dout,
		[SDPA_ROW_SUM] = s->row_sum.p,
		[SDPA_DQ_SUM] = s->dq_sum.p,
		[SDPA_SCALE] = &scale,
		[SDPA_MASKED] = &masked,
		[SDPA_ONE] = &one,
	};
	point_packed(at, SDPA_Q, qkv, a);
	point_packed(at, SDPA_DQ, dqkv, a);
	cudaError_t zeroed =
		cudaMemsetAsync(s->dq_sum.p, 0, rows_of(a) * (size_t)a.head_dim * sizeof(float), stream); /* it adds to it */
	RV_ASSERT(zeroed == cudaSuccess || cuda_capture_is_spoilt(stream));
	execute(s, stream, &e->plan, at);
	return true;
}
