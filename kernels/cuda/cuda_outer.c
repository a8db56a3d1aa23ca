/* cuda_outer.c: chunks of the outer gradient between host and device; see kernels/outer_ops.h. */
#include "kernels/cuda/cuda_outer.h"

#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch_outer.h"

#include <limits.h>
#include <string.h>

enum { CODEC_BLOCK = 256 };

/* Returns where the codes of n values begin in their encoding: behind the scales. */
static size_t scale_bytes(size_t n) {
	return (n + CODEC_BLOCK - 1) / CODEC_BLOCK * sizeof(float);
}

static size_t encoded_bytes(enum outer_code code, size_t n) {
	return scale_bytes(n) + n * (code == OUTER_INT8 ? sizeof(int8_t) : sizeof(int16_t));
}

/* The place of chunk i among values and among encoded bytes. Chunks but the last are whole
 * blocks. */
struct chunk {
	enum outer_code code;
	size_t at, n, bytes_at, bytes;
};

static size_t chunks_of(const struct outer_vector *v) {
	return (v->n + v->chunk_elems - 1) / v->chunk_elems;
}

static struct chunk chunk_of(const struct outer_vector *v, size_t i) {
	const size_t done = i * v->chunk_elems, left = v->n - done, n = left < v->chunk_elems ? left : v->chunk_elems;
	return (struct chunk){.code = v->code,
						  .at = v->at ? v->at[i] : done,
						  .n = n,
						  .bytes_at = i * encoded_bytes(v->code, v->chunk_elems),
						  .bytes = encoded_bytes(v->code, n)};
}

static bool outer_pin(struct backend *be, void *p, size_t bytes) {
	(void)cuda_of(be);
	bool pinned = cudaHostRegister(p, bytes, cudaHostRegisterDefault) == cudaSuccess;
	(void)cudaGetLastError();
	return pinned;
}

static void outer_unpin(struct backend *be, void *p) {
	(void)cuda_of(be);
	cuda_check(cudaHostUnregister(p), "cudaHostUnregister");
}

/* ---- memory ---- */

static void release_lane(struct cuda_outer_lane *l) {
	if (l->stream)
		cuda_check(cudaStreamDestroy(l->stream), "cudaStreamDestroy");
	if (l->done)
		cuda_check(cudaEventDestroy(l->done), "cudaEventDestroy");
	(void)cudaFree(l->theta);
	(void)cudaFree(l->momentum);
	(void)cudaFree(l->bytes);
	(void)cudaFreeHost(l->pinned);
}

void cuda_outer_release(struct cuda_outer *o) {
	for (int i = 0; i < CUDA_OUTER_LANES; i++)
		release_lane(&o->lanes[i]);
	(void)cudaFree(o->bad);
	if (o->begin)
		cuda_check(cudaEventDestroy(o->begin), "cudaEventDestroy");
	*o = (struct cuda_outer){.chunk_elems = 0};
}

static bool init_lane(struct cuda_outer_lane *l, size_t chunk_elems) {
	void *theta = NULL, *momentum = NULL, *bytes = NULL, *pinned = NULL;
	bool ok = cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking) == cudaSuccess &&
			  cudaEventCreateWithFlags(&l->done, EVENT_TO_WAIT_FOR) == cudaSuccess &&
			  cudaMalloc(&theta, chunk_elems * sizeof(float)) == cudaSuccess &&
			  cudaMalloc(&momentum, chunk_elems * sizeof(float)) == cudaSuccess &&
			  cudaMalloc(&bytes, encoded_bytes(OUTER_INT16, chunk_elems)) == cudaSuccess &&
			  cudaMallocHost(&pinned, encoded_bytes(OUTER_INT16, chunk_elems)) == cudaSuccess;
	l->theta = theta;
	l->momentum = momentum;
	l->bytes = bytes;
	l->pinned = pinned;
	return ok;
}

static enum rv_err outer_prepare(struct backend *be, const struct outer_vector *v, struct rv_errtext *et) {
	struct cuda_backend *cu = cuda_of(be);
	struct cuda_outer *o = &cu->outer;
	void *bad = NULL;
	if (o->chunk_elems == v->chunk_elems)
		return RV_OK;
	RV_ASSERT(v->chunk_elems % CODEC_BLOCK == 0);
	cuda_outer_release(o);
	bool ok = cudaMalloc(&bad, sizeof *o->bad) == cudaSuccess &&
			  cudaEventCreateWithFlags(&o->begin, cudaEventDisableTiming) == cudaSuccess;
	o->bad = bad;
	for (int i = 0; ok && i < CUDA_OUTER_LANES; i++)
		ok = init_lane(&o->lanes[i], v->chunk_elems);
	if (ok) {
		o->chunk_elems = v->chunk_elems;
		return RV_OK;
	}
	(void)cudaGetLastError();
	cuda_outer_release(o);
	return rv_fail(et, RV_E_NOMEM, "cuda backend: no memory for chunks of %zu values of the outer gradient",
				   v->chunk_elems);
}

/* ---- the two passes ---- */

/* Makes both lanes wait for the work that the backend's stream has, here `bad` included. */
static void begin(struct cuda_backend *cu, const struct outer_vector *v) {
	struct cuda_outer *o = &cu->outer;
	RV_ASSERT(o->chunk_elems == v->chunk_elems); /* prepared */
	cuda_check(cudaMemsetAsync(o->bad, 0xff, sizeof *o->bad, cu->stream), "cudaMemsetAsync");
	cuda_check(cudaEventRecord(o->begin, cu->stream), "cudaEventRecord");
	for (int i = 0; i < CUDA_OUTER_LANES; i++)
		cuda_check(cudaStreamWaitEvent(o->lanes[i].stream, o->begin, 0), "cudaStreamWaitEvent");
}

static void to_device(const struct cuda_outer_lane *l, void *dst, const void *src, size_t bytes) {
	cuda_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, l->stream), "copy to device");
}

static void to_host(const struct cuda_outer_lane *l, void *dst, const void *src, size_t bytes) {
	cuda_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, l->stream), "copy from device");
}

static void encode_chunk(struct cuda_outer *o, const struct cuda_outer_lane *l, struct chunk c, const float *theta,
						 const float *local, float *residual) {
	to_device(l, l->theta, theta + c.at, c.n * sizeof *theta);
	launch_outer_encode(l->stream, &(struct outer_encode){.code = c.code,
														  .theta = l->theta,
														  .local = local + c.at,
														  .residual = residual ? residual + c.at : NULL,
														  .scales = (float *)(void *)l->bytes,
														  .codes = l->bytes + scale_bytes(c.n),
														  .bad = o->bad,
														  .first = c.at,
														  .n = c.n});
	to_host(l, l->pinned, l->bytes, c.bytes);
	cuda_check(cudaEventRecord(l->done, l->stream), "cudaEventRecord");
}

/* Takes the result of a lane's last chunk, once it has arrived. */
static void take_chunk(const struct cuda_outer_lane *l, struct chunk c, uint8_t *out) {
	cuda_check(cudaEventSynchronize(l->done), "cudaEventSynchronize");
	memcpy(out + c.bytes_at, l->pinned, c.bytes);
}

static enum rv_err outer_encode(struct backend *be, const struct outer_vector *v, const float *theta,
								const float *local, float *residual, uint8_t *out, size_t *bad) {
	struct cuda_backend *cu = cuda_of(be);
	struct cuda_outer *o = &cu->outer;
	unsigned long long first_bad;
	size_t chunks = chunks_of(v);
	begin(cu, v);
	for (size_t i = 0; i < chunks + CUDA_OUTER_LANES; i++) {
		const struct cuda_outer_lane *l = &o->lanes[i % CUDA_OUTER_LANES];
		if (i >= CUDA_OUTER_LANES && i - CUDA_OUTER_LANES < chunks)
			take_chunk(l, chunk_of(v, i - CUDA_OUTER_LANES), out);
		if (i < chunks)
			encode_chunk(o, l, chunk_of(v, i), theta, local, residual);
	}
	cuda_fetch(cu, &first_bad, o->bad, sizeof first_bad);
	*bad = (size_t)first_bad;
	return first_bad == ULLONG_MAX ? RV_OK : RV_E_RANGE;
}

static void step_chunk(const struct cuda_outer_lane *l, struct chunk c, const uint8_t *reduced, float *theta,
					   float *momentum, float *local, const struct outer_step *s) {
	to_device(l, l->bytes, reduced + c.bytes_at, c.bytes);
	to_device(l, l->theta, theta + c.at, c.n * sizeof *theta);
	if (momentum)
		to_device(l, l->momentum, momentum + c.at, c.n * sizeof *momentum);
	launch_outer_apply(l->stream, &(struct outer_apply){.code = c.code,
														.scales = (const float *)(const void *)l->bytes,
														.codes = l->bytes + scale_bytes(c.n),
														.theta = l->theta,
														.momentum = momentum ? l->momentum : NULL,
														.local = local ? local + c.at : NULL,
														.step = *s,
														.n = c.n});
	to_host(l, theta + c.at, l->theta, c.n * sizeof *theta);
	if (momentum)
		to_host(l, momentum + c.at, l->momentum, c.n * sizeof *momentum);
}

static void outer_step(struct backend *be, const struct outer_vector *v, const uint8_t *reduced, float *theta,
					   float *momentum, float *local, const struct outer_step *s) {
	struct cuda_backend *cu = cuda_of(be);
	struct cuda_outer *o = &cu->outer;
	RV_ASSERT(s->kind != OUTER_STEP_NESTEROV || momentum);
	begin(cu, v);
	for (size_t i = 0; i < chunks_of(v); i++) {
		struct chunk c = chunk_of(v, i);
		step_chunk(&o->lanes[i % CUDA_OUTER_LANES], c, reduced, theta, momentum, local, s);
		if (local)
			cuda_weights_changed(cu, local + c.at, c.n * sizeof *local);
	}
	for (int i = 0; i < CUDA_OUTER_LANES; i++)
		cuda_check(cudaStreamSynchronize(o->lanes[i].stream), "cudaStreamSynchronize");
}

const struct outer_ops cuda_outer_ops = {
	.pin = outer_pin,
	.unpin = outer_unpin,
	.prepare = outer_prepare,
	.encode = outer_encode,
	.step = outer_step,
};
