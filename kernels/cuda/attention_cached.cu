// attention_cached.cu: attention of one sequence over its caches of keys and values, token by
// token; and delta, which the backward kernels need.
//
// A warp has a query and walks the keys 32 at a time: a lane first has the score of one of the 32,
// then, as each is shuffled to all, the channels lane, lane + 32, ... of the sums.
#include "kernels/cuda/attention_layout.cuh"
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce.cuh"

#include <float.h>

enum { DELTA_WARPS = 4, CACHED_WARPS = 8 };

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

template <class T>
__global__ void __launch_bounds__(WARP *DELTA_WARPS)
	attention_delta_kernel(float *delta, const T *dout, const T *out, struct attention_shape s) {
	int lane = (int)threadIdx.x % WARP;
	size_t row = (size_t)blockIdx.x * DELTA_WARPS + threadIdx.x / WARP; // (b, t, head): as memory lies
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

extern "C" void launch_attention_delta(cudaStream_t stream, enum dtype act, float *delta, const act_t *dout,
									   const act_t *out, struct attention_shape s) {
	unsigned blocks = blocks_for((size_t)s.b * s.t * s.heads, DELTA_WARPS);
	if (act == DTYPE_BF16)
		LAUNCH(attention_delta_kernel<bf16>, blocks, WARP * DELTA_WARPS, 0, stream, delta, as<bf16>(dout),
			   as<bf16>(out), s);
	else
		LAUNCH(attention_delta_kernel<float>, blocks, WARP * DELTA_WARPS, 0, stream, delta, as<float>(dout),
			   as<float>(out), s);
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
