/* sdpa.c: finding cuDNN, plans by shape, and running them; see sdpa.h. */
#include "kernels/cuda/sdpa.h"

#include "kernels/cuda/sdpa_faults.h"
#include "kernels/cuda/sdpa_graph.h"
#include "kernels/cuda/vendor/vendor.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANS_MAX = 64, HEAD_DIM_MAX = 128, HEAD_DIM_MULTIPLE = 8, WORDS_BYTES = 384 };

static bool says(const char *variable, const char *value) {
	const char *said = getenv(variable);
	return said && strcmp(said, value) == 0;
}

/* Returns true if the environment turns cuDNN off. */
static bool unwanted(char *why, size_t cap) {
	bool own = says("RIVULET_CUDA_ATTENTION", "own"), fixed = says("RIVULET_CUDA_DETERMINISTIC", "1");
	if (own || fixed)
		(void)snprintf(why, cap, "%s is set", own ? "RIVULET_CUDA_ATTENTION=own" : "RIVULET_CUDA_DETERMINISTIC=1");
	return own || fixed;
}

struct sdpa_use {
	struct attention_shape shape;
	bool backward, usable, proven;
	struct sdpa_plan plan; /* of usable calls */
};

/* Device memory that grows. */
struct buffer {
	void *p;
	size_t bytes;
};

struct sdpa {
	const struct cudnn_api *api;
	cudnnHandle_t handle;
	uint64_t version; /* cudnnGetVersion */
	int sm;
	struct sdpa_use uses[PLANS_MAX];
	int n;
	struct buffer workspace, row_sum, dq_sum;
	uint64_t grown; /* how often one of these moved, or a plan was dropped */
};

/* ---- opening ---- */

static bool start(struct sdpa *s, char *why, size_t cap) {
	struct rv_errtext et = {0};
	s->api = vendor_cudnn(&et);
	if (!s->api) {
		(void)snprintf(why, cap, "%s", et.text);
		return false;
	}
	s->version = s->api->cudnnGetVersion();
	cudnnStatus_t status = s->api->cudnnCreate(&s->handle);
	if (status == CUDNN_STATUS_SUCCESS)
		return true;
	(void)snprintf(why, cap, "cuDNN does not start: %s", s->api->cudnnGetErrorString(status));
	s->handle = NULL;
	return false;
}

struct sdpa *sdpa_open(int sm, char *why, size_t cap) {
	if (unwanted(why, cap))
		return NULL;
	struct sdpa *s = calloc(1, sizeof *s);
	if (!s) {
		(void)snprintf(why, cap, "no memory for its handle");
		return NULL;
	}
	s->sm = sm;
	if (start(s, why, cap))
		return s;
	sdpa_close(s);
	return NULL;
}

void sdpa_close(struct sdpa *s) {
	if (!s)
		return;
	for (int i = 0; i < s->n; i++)
		sdpa_plan_release(s->api, &s->uses[i].plan);
	(void)cudaFree(s->workspace.p);
	(void)cudaFree(s->row_sum.p);
	(void)cudaFree(s->dq_sum.p);
	if (s->handle)
		(void)s->api->cudnnDestroy(s->handle);
	free(s);
}

uint64_t sdpa_grown(const struct sdpa *s) {
	return s ? s->grown : 0;
}

/* ---- leaving ---- */

/* Writes cuDNN's text on its last failure into `text`: the status's name, and its sentence. */
static void words_of(const struct sdpa *s, cudnnStatus_t status, char text[WORDS_BYTES]) {
	char last[WORDS_BYTES / 2] = "";
	s->api->cudnnGetLastErrorString(last, sizeof last);
	last[sizeof last - 1] = '\0';
	for (char *p = last; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	(void)snprintf(text, WORDS_BYTES, "%.120s%s%s", s->api->cudnnGetErrorString(status), *last ? ": " : "", last);
}

static void log_own(const struct sdpa *s, const struct sdpa_use *u, const char *why) {
	unsigned v = (unsigned)s->version;
	(void)fprintf(
		stderr,
		"cuda backend: attention %s (%d x %d tokens, %d heads, %d of keys, head size %d) is computed by our own "
		"kernels: cuDNN %u.%u.%u: %s\n",
		u->backward ? "backward" : "forward", u->shape.b, u->shape.t, u->shape.heads, u->shape.kv_heads,
		u->shape.head_dim, v / 10000, v / 100 % 100, v % 100, why);
}

void sdpa_leave(struct sdpa *s, struct sdpa_use *u, const char *why) {
	log_own(s, u, why);
	u->usable = false;
	s->grown++; /* graphs that contain it are captured again */
}

bool sdpa_is_proven(const struct sdpa_use *u) {
	return u->proven;
}

void sdpa_prove(struct sdpa_use *u) {
	u->proven = true;
}

/* ---- plans ---- */

static bool take(struct buffer *b, size_t bytes) {
	*b = (struct buffer){.bytes = bytes};
	if (cudaMalloc(&b->p, bytes) == cudaSuccess)
		return true;
	*b = (struct buffer){.bytes = 0};
	(void)cudaGetLastError();
	return false;
}

/* Grows a buffer. Only between steps: freeing waits for its users. Without memory for that it stays
 * as large as it was, for the plans that it is enough for. */
static bool grow(struct sdpa *s, struct buffer *b, size_t bytes) {
	const size_t had = b->bytes;
	if (bytes <= had)
		return true;
	s->grown++;
	(void)cudaFree(b->p);
	if (take(b, bytes))
		return true;
	if (had > 0)
		(void)take(b, had);
	return false;
}

void *sdpa_borrow(struct sdpa *s, size_t bytes) {
	return s && s->dq_sum.bytes >= bytes ? s->dq_sum.p : NULL;
}

static size_t dq_sum_bytes(struct attention_shape a) {
	return attention_rows(a) * (size_t)a.head_dim * sizeof(float);
}

static bool grow_all(struct sdpa *s, const struct sdpa_use *u) {
	return grow(s, &s->workspace, (size_t)u->plan.workspace_bytes) &&
		   (!u->backward || (grow(s, &s->row_sum, attention_rows(u->shape) * sizeof(float)) &&
							 grow(s, &s->dq_sum, dq_sum_bytes(u->shape))));
}

/* Returns true if there is a plan and its memory; false: `why` names what is missing. */
static bool prepare(struct sdpa *s, struct sdpa_use *u, char why[WORDS_BYTES]) {
	const struct sdpa_question q = {s->version, s->sm, u->backward, u->shape};
	const char *fault = sdpa_fault(&q), *step;
	int d = u->shape.head_dim;
	if (d > HEAD_DIM_MAX || d % HEAD_DIM_MULTIPLE != 0)
		fault = "it takes head sizes up to 128 that are multiples of 8";
	if (fault) {
		(void)snprintf(why, WORDS_BYTES, "%s", fault);
		return false;
	}
	if (!sdpa_plan_make(s->api, s->handle, NULL, u->shape, u->backward, &u->plan, &step)) {
		char last[WORDS_BYTES / 2] = "";
		s->api->cudnnGetLastErrorString(last, sizeof last);
		(void)snprintf(why, WORDS_BYTES, "no plan (%s): %.*s", step, (int)strcspn(last, "\r\n"), last);
		return false;
	}
	if (!grow_all(s, u)) {
		(void)snprintf(why, WORDS_BYTES, "no memory for %zu bytes of workspace",
					   (size_t)u->plan.workspace_bytes + (u->backward ? dq_sum_bytes(u->shape) : 0));
		return false;
	}
	return true;
}

static struct sdpa_use *known(struct sdpa *s, struct attention_shape a, bool backward) {
	for (int i = 0; i < s->n; i++)
		if (memcmp(&s->uses[i].shape, &a, sizeof a) == 0 && s->uses[i].backward == backward)
			return &s->uses[i];
	return NULL;
}

static struct sdpa_use *add(struct sdpa *s, struct attention_shape a, bool backward) {
	char why[WORDS_BYTES];
	if (s->n == PLANS_MAX)
		return NULL;
	struct sdpa_use *u = &s->uses[s->n++];
	*u = (struct sdpa_use){.shape = a, .backward = backward};
	u->usable = prepare(s, u, why);
	if (!u->usable)
		log_own(s, u, why);
	return u;
}

void sdpa_reserve(struct sdpa *s, struct attention_shape a) {
	if (!s || a.heads == 0)
		return;
	for (int backward = 0; backward < 2; backward++)
		if (!known(s, a, backward))
			(void)add(s, a, backward);
}

/* Returns true if all pointers have the alignment that the graphs declare. */
static bool aligned(const struct attention_call *c) {
	return (((uintptr_t)c->qkv | (uintptr_t)c->out | (uintptr_t)c->lse | (uintptr_t)c->dout | (uintptr_t)c->dqkv) &
			15) == 0;
}

static bool captures(cudaStream_t stream) {
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	return cudaStreamIsCapturing(stream, &status) != cudaSuccess || status != cudaStreamCaptureStatusNone;
}

struct sdpa_use *sdpa_find(struct sdpa *s, cudaStream_t stream, const struct attention_call *c) {
	if (!s || !aligned(c))
		return NULL;
	struct sdpa_use *u = known(s, c->shape, c->backward);
	if (!(u && u->proven) && captures(stream))
		return NULL; /* a plan, its memory and its first results are for a pass that runs */
	if (!u)
		u = add(s, c->shape, c->backward);
	return u && u->usable ? u : NULL;
}

/* ---- running ---- */

static cudnnStatus_t fill(const struct sdpa *s, cudnnBackendDescriptor_t pack, void *const at[SDPA_TENSORS]) {
	int64_t ids[SDPA_TENSORS], n = 0;
	void *pointers[SDPA_TENSORS];
	for (int id = SDPA_Q; id < SDPA_TENSORS; id++)
		if (at[id]) {
			ids[n] = id;
			pointers[n++] = at[id];
		}
	cudnnStatus_t status =
		s->api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers);
	if (status == CUDNN_STATUS_SUCCESS)
		status = s->api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
	if (status == CUDNN_STATUS_SUCCESS)
		status = s->api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
												  &s->workspace.p);
	return status == CUDNN_STATUS_SUCCESS ? s->api->cudnnBackendFinalize(pack) : status;
}

/* Runs a plan with the tensors at[id]; those that are NULL are not part of its graph. */
static cudnnStatus_t execute(const struct sdpa *s, cudaStream_t stream, const struct sdpa_plan *plan,
							 void *const at[SDPA_TENSORS]) {
	cudnnBackendDescriptor_t pack = NULL;
	cudnnStatus_t status = s->api->cudnnSetStream(s->handle, stream);
	if (status == CUDNN_STATUS_SUCCESS)
		status = s->api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
	if (status == CUDNN_STATUS_SUCCESS)
		status = fill(s, pack, at);
	if (status == CUDNN_STATUS_SUCCESS)
		status = s->api->cudnnBackendExecute(s->handle, plan->plan, pack);
	if (pack)
		(void)s->api->cudnnBackendDestroyDescriptor(pack);
	return status;
}

/* Sets the pointers of q, k and v, which follow each other in a row of packed projections. */
static void point_packed(void *at[SDPA_TENSORS], enum sdpa_tensor q, const act_t *packed, struct attention_shape a) {
	uint16_t *row = (uint16_t *)(uintptr_t)packed;
	at[q] = row;
	at[q + 1] = row + (size_t)a.heads * (size_t)a.head_dim;
	at[q + 2] = row + (size_t)(a.heads + a.kv_heads) * (size_t)a.head_dim;
}

static void point_backward(const struct sdpa *s, void *at[SDPA_TENSORS], const struct attention_call *c, float *one) {
	at[SDPA_DOUT] = (void *)(uintptr_t)c->dout; /* only read */
	at[SDPA_ROW_SUM] = s->row_sum.p;
	at[SDPA_DQ_SUM] = s->dq_sum.p;
	at[SDPA_ONE] = one;
	point_packed(at, SDPA_DQ, c->dqkv, c->shape);
}

/* Zeroes the sums of backward; older versions do not do it themselves. */
static cudaError_t zero_sums(const struct sdpa *s, cudaStream_t stream, const struct attention_call *c) {
	if (!c->backward || !sdpa_wants_zeroed_sums(s->version))
		return cudaSuccess;
	return cudaMemsetAsync(s->dq_sum.p, 0, dq_sum_bytes(c->shape), stream);
}

bool sdpa_run(struct sdpa *s, struct sdpa_use *u, cudaStream_t stream, const struct attention_call *c) {
	char why[WORDS_BYTES];
	float scale = 1 / sqrtf((float)c->shape.head_dim), masked = -FLT_MAX, one = 1;
	void *at[SDPA_TENSORS] = {[SDPA_OUT] = c->out, [SDPA_LSE] = c->lse, [SDPA_SCALE] = &scale, [SDPA_MASKED] = &masked};
	point_packed(at, SDPA_Q, c->qkv, c->shape);
	if (c->backward)
		point_backward(s, at, c, &one);
	cudaError_t zeroed = zero_sums(s, stream, c);
	cudnnStatus_t status = zeroed == cudaSuccess ? execute(s, stream, &u->plan, at) : CUDNN_STATUS_SUCCESS;
	if (zeroed == cudaSuccess && status == CUDNN_STATUS_SUCCESS)
		return true;
	if (cuda_capture_is_spoilt(stream))
		return true; /* the call that ends the capture reports it */
	if (zeroed != cudaSuccess)
		(void)snprintf(why, sizeof why, "zeroing its sums: %s", cudaGetErrorString(zeroed));
	else
		words_of(s, status, why);
	(void)cudaGetLastError(); /* the next launch must not report it */
	sdpa_leave(s, u, why);
	return false;
}
