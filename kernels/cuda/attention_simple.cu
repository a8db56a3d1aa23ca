// attention_simple.cu: causal attention in fp32 arithmetic for any head dimension, and with caches:
// the fallback for shapes that the tensor-core kernels do not support, and the reference for
// checking those.
//
// A warp has one row (a query, or for dk and dv a key) and walks the other side 32 rows at a time:
// a lane first has the score of one of the 32, then, as each is shuffled to all, the channels lane,
// lane + 32, ... of the sums.
#include "kernels/cuda/attention_layout.cuh"
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce.cuh"

#include <float.h>

enum { SIMPLE_WARPS = 4, CACHED_WARPS = 8, SIMPLE_BLOCKS = 4 /* of a multiprocessor: 128 registers each */ };

template <class T> __device__ __forceinline__ float dot(const T *a, const T *b, int n) {
	float sum = 0;
	for (int i = 0; i < n; i++)
		sum += to_float(a[i]) * to_float(b[i]);
	return sum;
}

// Adds sums[d] += x * row[lane + 32 d], for d within the row.
template <int D, class T>
__device__ __forceinline__ void add_scaled(float (&sums)[D], float x, const T *row, int lane, int head_dim) {
#pragma unroll
	for (int d = 0; d < D; d++)
		if (lane + d * WARP < head_dim)
			sums[d] += x * to_float(row[lane + d * WARP]);
}

template <int D, class T>
__device__ __forceinline__ void store_row(T *row, const float (&x)[D], float scale, int lane, int head_dim) {
#pragma unroll
	for (int d = 0; d < D; d++)
		if (lane + d * WARP < head_dim)
			row[lane + d * WARP] = from_float<T>(x[d] * scale);
}

// A softmax in progress: sums relative to the largest score so far.
template <int D> struct attended { float largest, sum, out[D]; };

// Adds keys first, first + stride, ... < end, each 32 long; `ld` elements from one key to the next.
template <int D, class T>
__device__ __forceinline__ void attend(attended<D> &s, const T *q, const T *k, const T *v, size_t ld, int first,
									   int end, int stride, int head_dim, int lane) {
	float scale = 1.0f / sqrtf((float)head_dim);
	for (int start = first; start < end; start += stride) {
		int key = start + lane;
		float score = key < end ? dot(q, k + key * ld, head_dim) * scale : -FLT_MAX;
		float largest = fmaxf(s.largest, warp_max(score)), shrink = expf(s.largest - largest);
		float p = key < end ? expf(score - largest) : 0;
		s.largest = largest;
		s.sum = s.sum * shrink + warp_sum(p);
#pragma unroll
		for (int d = 0; d < D; d++)
			s.out[d] *= shrink;
		for (int j = 0; j < min(+WARP, end - start); j++)
			add_scaled(s.out, __shfl_sync(FULL_WARP, p, j), v + (start + j) * ld, lane, head_dim);
	}
}

// Computes rows (b, head, t), t fastest; a block has SIMPLE_WARPS.
template <class T, int D>
__global__ void __launch_bounds__(WARP *SIMPLE_WARPS)
	attention_forward_kernel(T *out, float *lse, const T *qkv, struct attention_shape s) {
	int lane = (int)threadIdx.x % WARP;
	size_t row = (size_t)blockIdx.x * SIMPLE_WARPS + threadIdx.x / WARP;
	if (row >= (size_t)s.b * s.heads * s.t)
		return;
	int t = (int)(row % s.t), h = (int)(row / s.t % s.heads), b = (int)(row / s.t / s.heads);
	int kv = h / (s.heads / s.kv_heads);
	attended<D> a = {-FLT_MAX, 0, {}};
	attend(a, qkv + q_start(s, b, h) + t * qkv_width(s), qkv + k_start(s, b, kv), qkv + v_start(s, b, kv), qkv_width(s),
		   0, t + 1, WARP, s.head_dim, lane);
	store_row(out + out_start(s, b, h) + t * out_width(s), a.out, 1 / a.sum, lane, s.head_dim);
	if (lane == 0)
		lse[row] = a.largest + logf(a.sum);
}

template <class T>
__global__ void __launch_bounds__(WARP *SIMPLE_WARPS)
	attention_delta_kernel(float *delta, const T *dout, const T *out, struct attention_shape s) {
	int lane = (int)threadIdx.x % WARP;
	size_t row = (size_t)blockIdx.x * SIMPLE_WARPS + threadIdx.x / WARP; // (b, t, head): as memory lies
	if (row >= (size_t)s.b * s.t * s.heads)
		return;
	float sum = 0;
	for (int d = lane; d < s.head_dim; d += WARP)
		sum += to_float(dout[row * s.head_dim + d]) * to_float(out[row * s.head_dim + d]);
	sum = warp_sum(sum);
	int h = (int)(row % s.heads), t = (int)(row / s.heads % s.t), b = (int)(row / s.heads / s.t);
	if (lane == 0)
		delta[row_start(s, b, h) + t] = sum;
}

// Inputs of the backward kernels.
template <class T> struct backward_inputs {
	const T *dout, *qkv;
	const float *lse, *delta;
	struct attention_shape s;
};

// Returns the probability p of key j for query t, and ds, the gradient of their score (times the
// scale).
template <class T>
__device__ __forceinline__ void pair_gradient(float *p, float *ds, const backward_inputs<T> &in, int b, int h, int t,
											  int j) {
	const attention_shape &s = in.s;
	int kv = h / (s.heads / s.kv_heads);
	size_t width = qkv_width(s);
	float scale = 1.0f / sqrtf((float)s.head_dim);
	const T *q = in.qkv + q_start(s, b, h) + t * width, *dout = in.dout + out_start(s, b, h) + t * out_width(s);
	size_t row = row_start(s, b, h) + t;
	*p = expf(dot(q, in.qkv + k_start(s, b, kv) + j * width, s.head_dim) * scale - in.lse[row]);
	*ds = *p * (dot(dout, in.qkv + v_start(s, b, kv) + j * width, s.head_dim) - in.delta[row]) * scale;
}

template <class T, int D>
__global__ void __launch_bounds__(WARP *SIMPLE_WARPS, SIMPLE_BLOCKS)
	attention_dq_kernel(T *dqkv, backward_inputs<T> in) {
	const attention_shape &s = in.s;
	int lane = (int)threadIdx.x % WARP;
	size_t row = (size_t)blockIdx.x * SIMPLE_WARPS + threadIdx.x / WARP, width = qkv_width(s);
	if (row >= (size_t)s.b * s.heads * s.t)
		return;
	int t = (int)(row % s.t), h = (int)(row / s.t % s.heads), b = (int)(row / s.t / s.heads);
	const T *keys = in.qkv + k_start(s, b, h / (s.heads / s.kv_heads));
	float dq[D] = {};
	for (int start = 0; start <= t; start += WARP) {
		float p = 0, ds = 0;
		if (start + lane <= t)
			pair_gradient(&p, &ds, in, b, h, t, start + lane);
		for (int j = 0; j < min(+WARP, t + 1 - start); j++)
			add_scaled(dq, __shfl_sync(FULL_WARP, ds, j), keys + (start + j) * width, lane, s.head_dim);
	}
	store_row(dqkv + q_start(s, b, h) + t * width, dq, 1, lane, s.head_dim);
}

// Computes rows that are keys (b, kv head, j): sums over all queries that see one, of all heads
// that share it.
template <class T, int D>
__global__ void __launch_bounds__(WARP *SIMPLE_WARPS, SIMPLE_BLOCKS)
	attention_dkv_kernel(T *dqkv, backward_inputs<T> in) {
	const attention_shape &s = in.s;
	int lane = (int)threadIdx.x % WARP, group = s.heads / s.kv_heads;
	size_t row = (size_t)blockIdx.x * SIMPLE_WARPS + threadIdx.x / WARP, width = qkv_width(s);
	if (row >= (size_t)s.b * s.kv_heads * s.t)
		return;
	int j = (int)(row % s.t), kv = (int)(row / s.t % s.kv_heads), b = (int)(row / s.t / s.kv_heads);
	float dk[D] = {}, dv[D] = {};
	for (int h = kv * group; h < (kv + 1) * group; h++)
		for (int start = j; start < s.t; start += WARP) {
			float p = 0, ds = 0;
			if (start + lane < s.t)
				pair_gradient(&p, &ds, in, b, h, start + lane, j);
			for (int i = 0; i < min(+WARP, s.t - start); i++) {
				add_scaled(dk, __shfl_sync(FULL_WARP, ds, i), in.qkv + q_start(s, b, h) + (start + i) * width, lane,
						   s.head_dim);
				add_scaled(dv, __shfl_sync(FULL_WARP, p, i), in.dout + out_start(s, b, h) + (start + i) * out_width(s),
						   lane, s.head_dim);
			}
		}
	store_row(dqkv + k_start(s, b, kv) + j * width, dk, 1, lane, s.head_dim);
	store_row(dqkv + v_start(s, b, kv) + j * width, dv, 1, lane, s.head_dim);
}

// --- one sequence with caches ---

template <class T> struct cached_inputs {
	const T *qkv;
	T *k, *v;
	struct attention_shape s;
	int first;
};

template <class T> __global__ void __launch_bounds__(WARP *CACHED_WARPS) cache_append_kernel(cached_inputs<T> in) {
	const attention_shape &s = in.s;
	size_t width = (size_t)s.kv_heads * s.head_dim, i = (size_t)blockIdx.x * WARP * CACHED_WARPS + threadIdx.x;
	if (i >= s.t * width)
		return;
	const T *token = in.qkv + i / width * qkv_width(s) + out_width(s) + i % width;
	size_t to = in.first * width + i;
	in.k[to] = token[0];
	in.v[to] = token[width];
}

// Computes block (head, token). Warp w takes keys 32 w .. 32 w + 31, then every 32 * CACHED_WARPS
// further: the keys of a warp do not depend on how many tokens came in one call. Then the warps'
// sums are merged in their order.
template <class T, int D>
__global__ void __launch_bounds__(WARP *CACHED_WARPS) attention_cached_kernel(T *out, cached_inputs<T> in) {
	SHMEM(float, largest, CACHED_WARPS);
	SHMEM(float, sums, CACHED_WARPS);
	SHMEM(float, outs, CACHED_WARPS *D *WARP);
	const attention_shape &s = in.s;
	int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP, h = (int)blockIdx.x, t = (int)blockIdx.y;
	size_t kv = (size_t)(h / (s.heads / s.kv_heads)) * s.head_dim, ld = (size_t)s.kv_heads * s.head_dim;
	attended<D> a = {-FLT_MAX, 0, {}};
	attend(a, in.qkv + t * qkv_width(s) + (size_t)h * s.head_dim, in.k + kv, in.v + kv, ld, warp * WARP,
		   in.first + t + 1, CACHED_WARPS * WARP, s.head_dim, lane);
	if (lane == 0) {
		largest[warp] = a.largest;
		sums[warp] = a.sum;
	}
#pragma unroll
	for (int d = 0; d < D; d++)
		outs[(warp * D + d) * WARP + lane] = a.out[d];
	__syncthreads();
	if (warp)
		return;
	for (int w = 1; w < CACHED_WARPS; w++) {
		float most = fmaxf(a.largest, largest[w]), mine = expf(a.largest - most), theirs = expf(largest[w] - most);
		a.largest = most;
		a.sum = a.sum * mine + sums[w] * theirs;
#pragma unroll
		for (int d = 0; d < D; d++)
			a.out[d] = a.out[d] * mine + outs[(w * D + d) * WARP + lane] * theirs;
	}
	store_row(out + (size_t)t * out_width(s) + (size_t)h * s.head_dim, a.out, 1 / a.sum, lane, s.head_dim);
}

// --- host ---

// Calls f(access<T, D>()): D channels of a lane.
template <class F> static void by_head_dim(enum dtype act, int head_dim, F f) {
	if (act == DTYPE_BF16)
		head_dim <= 64 ? f(access<bf16, 2>()) : head_dim <= 128 ? f(access<bf16, 4>()) : f(access<bf16, 8>());
	else
		head_dim <= 64 ? f(access<float, 2>()) : head_dim <= 128 ? f(access<float, 4>()) : f(access<float, 8>());
}

extern "C" void launch_attention_forward_simple(cudaStream_t stream, enum dtype act, act_t *out, float *lse,
												const act_t *qkv, struct attention_shape s) {
	by_head_dim(act, s.head_dim, [=](auto a) {
		typedef typename decltype(a)::T T;
		constexpr int D = decltype(a)::V;
		LAUNCH((attention_forward_kernel<T, D>), blocks_for((size_t)s.b * s.heads * s.t, SIMPLE_WARPS),
			   WARP * SIMPLE_WARPS, 0, stream, as<T>(out), lse, as<T>(qkv), s);
	});
}

extern "C" void launch_attention_delta(cudaStream_t stream, enum dtype act, float *delta, const act_t *dout,
									   const act_t *out, struct attention_shape s) {
	unsigned blocks = blocks_for((size_t)s.b * s.t * s.heads, SIMPLE_WARPS);
	if (act == DTYPE_BF16)
		LAUNCH(attention_delta_kernel<bf16>, blocks, WARP * SIMPLE_WARPS, 0, stream, delta, as<bf16>(dout),
			   as<bf16>(out), s);
	else
		LAUNCH(attention_delta_kernel<float>, blocks, WARP * SIMPLE_WARPS, 0, stream, delta, as<float>(dout),
			   as<float>(out), s);
}

extern "C" void launch_attention_backward_simple(cudaStream_t stream, enum dtype act, act_t *dqkv, const act_t *dout,
												 const act_t *qkv, const float *lse, const float *delta,
												 struct attention_shape s) {
	by_head_dim(act, s.head_dim, [=](auto a) {
		typedef typename decltype(a)::T T;
		constexpr int D = decltype(a)::V;
		const backward_inputs<T> in = {as<T>(dout), as<T>(qkv), lse, delta, s};
		LAUNCH((attention_dq_kernel<T, D>), blocks_for((size_t)s.b * s.heads * s.t, SIMPLE_WARPS), WARP * SIMPLE_WARPS,
			   0, stream, as<T>(dqkv), in);
		LAUNCH((attention_dkv_kernel<T, D>), blocks_for((size_t)s.b * s.kv_heads * s.t, SIMPLE_WARPS),
			   WARP * SIMPLE_WARPS, 0, stream, as<T>(dqkv), in);
	});
}

extern "C" void launch_attention_cached(cudaStream_t stream, enum dtype act, act_t *out, act_t *k, act_t *v,
										const act_t *qkv, struct attention_shape s, int first) {
	by_head_dim(act, s.head_dim, [=](auto a) {
		typedef typename decltype(a)::T T;
		constexpr int D = decltype(a)::V;
		const cached_inputs<T> in = {as<T>(qkv), as<T>(k), as<T>(v), s, first};
		size_t appended = (size_t)s.t * s.kv_heads * s.head_dim;
		LAUNCH(cache_append_kernel<T>, blocks_for(appended, WARP * CACHED_WARPS), WARP * CACHED_WARPS, 0, stream, in);
		LAUNCH((attention_cached_kernel<T, D>), dim3((unsigned)s.heads, (unsigned)s.t), WARP * CACHED_WARPS, 0, stream,
			   as<T>(out), in);
	});
}
