// attention_tiled.cu: causal attention in fp32 arithmetic for any head dimension, in tiles: fp32
// training, the shapes that the tensor-core kernels do not support, and the reference for checking
// the others.
//
// A block has a tile of rows (queries, or for dk and dv keys), a warp some of them. The other side
// comes in tiles of 32 rows through shared memory, once for all rows of the block. For a row a lane
// has the score of one of the 32; then, as each is shuffled to all, the channels lane, lane + 32,
// ... of the sums. Rows of the other side are a float longer than they are wide, so that 32 lanes
// that read 32 rows use 32 banks.
#include "kernels/cuda/attention_layout.cuh"
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce.cuh"

#include <float.h>

enum { TILED_WARPS = 4, TILED_THREADS = TILED_WARPS * WARP, TILED_BLOCKS = 2 /* of a multiprocessor */ };

// Of a block, whose tiles fit the 99 KiB of shared memory that every card has.
enum { WARP_ROWS = 4, BLOCK_ROWS = TILED_WARPS * WARP_ROWS };

// Loads `rows` rows of head_dim channels, from row `first` on, `stride` floats apart; zeroes from
// row `end` on.
template <class T>
static __device__ __forceinline__ void load_rows(shared_t<float> tile, const T *base, size_t ld, int first, int rows,
												 int end, int head_dim, int stride) {
	for (int e = (int)threadIdx.x; e < rows * head_dim; e += TILED_THREADS) {
		int row = e / head_dim, column = e % head_dim;
		tile[row * stride + column] = first + row < end ? to_float(base[(size_t)(first + row) * ld + column]) : 0.0f;
	}
}

static __device__ __forceinline__ float dot(shared_t<float> a, shared_t<float> b, int n) {
	float sum = 0;
#pragma unroll 4
	for (int i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

// Adds sums[d] += x * row[lane + 32 d], for d within the row.
template <int D>
static __device__ __forceinline__ void add_row(float (&sums)[D], float x, shared_t<float> row, int lane, int head_dim) {
#pragma unroll
	for (int d = 0; d < D; d++)
		if (lane + d * WARP < head_dim)
			sums[d] += x * row[lane + d * WARP];
}

template <class T, int D>
static __device__ __forceinline__ void write_row(T *row, const float (&x)[D], float scale, int lane, int head_dim) {
#pragma unroll
	for (int d = 0; d < D; d++)
		if (lane + d * WARP < head_dim)
			row[lane + d * WARP] = from_float<T>(x[d] * scale);
}

// A row's softmax in progress: sums relative to the largest score so far.
template <int D> struct softmax_row { float largest, sum, out[D]; };

// Adds keys start .. start + 31 that are before `end`.
template <int D>
static __device__ __forceinline__ void attend_tile(softmax_row<D> &s, shared_t<float> q, shared_t<float> keys,
												   shared_t<float> values, int stride, int start, int end, int head_dim,
												   int lane) {
	float scale = 1.0f / sqrtf((float)head_dim);
	bool seen = start + lane < end;
	float score = seen ? dot(q, keys + lane * stride, head_dim) * scale : -FLT_MAX;
	float largest = fmaxf(s.largest, warp_max(score)), shrink = expf(s.largest - largest);
	float p = seen ? expf(score - largest) : 0;
	s.largest = largest;
	s.sum = s.sum * shrink + warp_sum(p);
#pragma unroll
	for (int d = 0; d < D; d++)
		s.out[d] *= shrink;
#pragma unroll 1 // once for each row: more code is no faster
	for (int j = 0; j < min(+WARP, end - start); j++)
		add_row(s.out, __shfl_sync(FULL_WARP, p, j), values + j * stride, lane, head_dim);
}

template <class T, int D>
__global__ void __launch_bounds__(TILED_THREADS, TILED_BLOCKS)
	attention_forward_kernel(T *out, float *lse, const T *qkv, struct attention_shape s) {
	DSHMEM(float, own); // the block's queries; keys and values of this step
	const int hd = s.head_dim, stride = hd + 1, lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
	const int h = (int)blockIdx.y, b = (int)blockIdx.x % s.b, kv = h / (s.heads / s.kv_heads);
	const int first = ((int)gridDim.x / s.b - 1 - (int)blockIdx.x / s.b) * BLOCK_ROWS; // the longest rows begin first
	const shared_t<float> keys = own + BLOCK_ROWS * hd, values = keys + WARP * stride;
	softmax_row<D> rows[WARP_ROWS];
#pragma unroll
	for (int r = 0; r < WARP_ROWS; r++)
		rows[r] = {-FLT_MAX, 0, {}};
	load_rows(own, qkv + q_start(s, b, h), qkv_width(s), first, BLOCK_ROWS, s.t, hd, hd);
	for (int start = 0; start < min(first + BLOCK_ROWS, s.t); start += WARP) {
		load_rows(keys, qkv + k_start(s, b, kv), qkv_width(s), start, WARP, s.t, hd, stride);
		load_rows(values, qkv + v_start(s, b, kv), qkv_width(s), start, WARP, s.t, hd, stride);
		__syncthreads();
#pragma unroll
		for (int r = 0; r < WARP_ROWS; r++) {
			int mine = warp * WARP_ROWS + r, t = first + mine;
			if (t < s.t && start <= t)
				attend_tile(rows[r], own + mine * hd, keys, values, stride, start, t + 1, hd, lane);
		}
		__syncthreads();
	}
#pragma unroll
	for (int r = 0; r < WARP_ROWS; r++) {
		int t = first + warp * WARP_ROWS + r;
		if (t >= s.t)
			continue;
		write_row(out + out_start(s, b, h) + t * out_width(s), rows[r].out, 1 / rows[r].sum, lane, hd);
		if (lane == 0)
			lse[row_start(s, b, h) + t] = rows[r].largest + logf(rows[r].sum);
	}
}

// Inputs of the backward kernels.
template <class T> struct backward_inputs {
	const T *dout, *qkv;
	const float *lse, *delta;
	struct attention_shape s;
};

// A probability, and the gradient of its score times the scale.
struct pair_gradient {
	float p, ds;
};

static __device__ __forceinline__ pair_gradient gradient_of(shared_t<float> q, shared_t<float> dout, shared_t<float> key,
															shared_t<float> value, float lse, float delta, int hd) {
	float scale = 1.0f / sqrtf((float)hd), p = expf(dot(q, key, hd) * scale - lse);
	return {p, p * (dot(dout, value, hd) - delta) * scale};
}

template <class T, int D>
__global__ void __launch_bounds__(TILED_THREADS, TILED_BLOCKS) attention_dq_kernel(T *dqkv, backward_inputs<T> in) {
	DSHMEM(float, own); // the block's queries and dout; keys and values of this step
	const attention_shape &s = in.s;
	const int hd = s.head_dim, stride = hd + 1, lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
	const int h = (int)blockIdx.y, b = (int)blockIdx.x % s.b, kv = h / (s.heads / s.kv_heads);
	const int first = ((int)gridDim.x / s.b - 1 - (int)blockIdx.x / s.b) * BLOCK_ROWS;
	const shared_t<float> douts = own + BLOCK_ROWS * hd, keys = douts + BLOCK_ROWS * hd;
	const shared_t<float> values = keys + WARP * stride;
	float dq[WARP_ROWS][D] = {};
	load_rows(own, in.qkv + q_start(s, b, h), qkv_width(s), first, BLOCK_ROWS, s.t, hd, hd);
	load_rows(douts, in.dout + out_start(s, b, h), out_width(s), first, BLOCK_ROWS, s.t, hd, hd);
	for (int start = 0; start < min(first + BLOCK_ROWS, s.t); start += WARP) {
		load_rows(keys, in.qkv + k_start(s, b, kv), qkv_width(s), start, WARP, s.t, hd, stride);
		load_rows(values, in.qkv + v_start(s, b, kv), qkv_width(s), start, WARP, s.t, hd, stride);
		__syncthreads();
#pragma unroll
		for (int r = 0; r < WARP_ROWS; r++) {
			int mine = warp * WARP_ROWS + r, t = first + mine;
			if (t >= s.t || start > t)
				continue;
			size_t row = row_start(s, b, h) + t;
			pair_gradient pair = {0, 0};
			if (start + lane <= t)
				pair = gradient_of(own + mine * hd, douts + mine * hd, keys + lane * stride, values + lane * stride,
								   in.lse[row], in.delta[row], hd);
#pragma unroll 1
			for (int j = 0; j < min(+WARP, t + 1 - start); j++)
				add_row(dq[r], __shfl_sync(FULL_WARP, pair.ds, j), keys + j * stride, lane, hd);
		}
		__syncthreads();
	}
#pragma unroll
	for (int r = 0; r < WARP_ROWS; r++) {
		int t = first + warp * WARP_ROWS + r;
		if (t < s.t)
			write_row(dqkv + q_start(s, b, h) + t * qkv_width(s), dq[r], 1, lane, hd);
	}
}

// Computes rows that are keys: sums over all queries that see one, of all heads that share it.
template <class T, int D>
__global__ void __launch_bounds__(TILED_THREADS, TILED_BLOCKS) attention_dkv_kernel(T *dqkv, backward_inputs<T> in) {
	DSHMEM(float, own); // the block's keys and values; queries and dout of this step
	const attention_shape &s = in.s;
	const int hd = s.head_dim, stride = hd + 1, lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
	const int kv = (int)blockIdx.y, b = (int)blockIdx.x % s.b, group = s.heads / s.kv_heads;
	const int first = (int)blockIdx.x / s.b * BLOCK_ROWS;
	const shared_t<float> values = own + BLOCK_ROWS * hd, queries = values + BLOCK_ROWS * hd;
	const shared_t<float> douts = queries + WARP * stride;
	float dk[WARP_ROWS][D] = {}, dv[WARP_ROWS][D] = {};
	load_rows(own, in.qkv + k_start(s, b, kv), qkv_width(s), first, BLOCK_ROWS, s.t, hd, hd);
	load_rows(values, in.qkv + v_start(s, b, kv), qkv_width(s), first, BLOCK_ROWS, s.t, hd, hd);
	for (int h = kv * group; h < (kv + 1) * group; h++)
		for (int start = first; start < s.t; start += WARP) {
			load_rows(queries, in.qkv + q_start(s, b, h), qkv_width(s), start, WARP, s.t, hd, stride);
			load_rows(douts, in.dout + out_start(s, b, h), out_width(s), start, WARP, s.t, hd, stride);
			__syncthreads();
#pragma unroll
			for (int r = 0; r < WARP_ROWS; r++) {
				int mine = warp * WARP_ROWS + r, key = first + mine, t = start + lane;
				if (key >= s.t || key >= start + WARP)
					continue;
				size_t row = row_start(s, b, h) + t;
				pair_gradient pair = {0, 0};
				if (t < s.t && t >= key)
					pair = gradient_of(queries + lane * stride, douts + lane * stride, own + mine * hd,
									   values + mine * hd, in.lse[row], in.delta[row], hd);
#pragma unroll 1
				for (int i = max(0, key - start); i < min(+WARP, s.t - start); i++) {
					add_row(dk[r], __shfl_sync(FULL_WARP, pair.ds, i), queries + i * stride, lane, hd);
					add_row(dv[r], __shfl_sync(FULL_WARP, pair.p, i), douts + i * stride, lane, hd);
				}
			}
			__syncthreads();
		}
#pragma unroll
	for (int r = 0; r < WARP_ROWS; r++) {
		int key = first + warp * WARP_ROWS + r;
		if (key >= s.t)
			continue;
		write_row(dqkv + k_start(s, b, kv) + key * qkv_width(s), dk[r], 1, lane, hd);
		write_row(dqkv + v_start(s, b, kv) + key * qkv_width(s), dv[r], 1, lane, hd);
	}
}

// --- host ---

// Calls f(access<T, D>()): D channels of a lane.
template <class F> static void by_head_dim(enum dtype act, int head_dim, F f) {
	if (act == DTYPE_BF16)
		head_dim <= 64 ? f(access<bf16, 2>()) : head_dim <= 128 ? f(access<bf16, 4>()) : f(access<bf16, 8>());
	else
		head_dim <= 64 ? f(access<float, 2>()) : head_dim <= 128 ? f(access<float, 4>()) : f(access<float, 8>());
}

// Returns the shared memory of `own` arrays of the block's rows and two tiles of the other side.
static size_t shared_bytes(int own, int head_dim) {
	return (size_t)(own * BLOCK_ROWS * head_dim + 2 * WARP * (head_dim + 1)) * sizeof(float);
}

extern "C" void launch_attention_forward_tiled(cudaStream_t stream, enum dtype act, act_t *out, float *lse,
											   const act_t *qkv, struct attention_shape s) {
	by_head_dim(act, s.head_dim, [=](auto a) {
		typedef typename decltype(a)::T T;
		constexpr int D = decltype(a)::V;
		dim3 grid(blocks_for((size_t)s.t, BLOCK_ROWS) * (unsigned)s.b, (unsigned)s.heads);
		LAUNCH((attention_forward_kernel<T, D>), grid, TILED_THREADS, shared_bytes(1, s.head_dim), stream,
			   as<T>(out), lse, as<T>(qkv), s);
	});
}

extern "C" void launch_attention_backward_tiled(cudaStream_t stream, enum dtype act, act_t *dqkv, const act_t *dout,
												const act_t *qkv, const float *lse, const float *delta,
												struct attention_shape s) {
	by_head_dim(act, s.head_dim, [=](auto a) {
		typedef typename decltype(a)::T T;
		constexpr int D = decltype(a)::V;
		const backward_inputs<T> in = {as<T>(dout), as<T>(qkv), lse, delta, s};
		const unsigned tiles = blocks_for((size_t)s.t, BLOCK_ROWS) * (unsigned)s.b;
		const size_t bytes = shared_bytes(2, s.head_dim);
		LAUNCH((attention_dq_kernel<T, D>), dim3(tiles, (unsigned)s.heads), TILED_THREADS, bytes, stream,
			   as<T>(dqkv), in);
		LAUNCH((attention_dkv_kernel<T, D>), dim3(tiles, (unsigned)s.kv_heads), TILED_THREADS, bytes,
			   stream, as<T>(dqkv), in);
	});
}
