// attention_mma_backward.cu: the gradient of causal attention in bf16 on tensor cores.
// Probabilities are computed again from the row's log-sum-exp. Two kernels, each of which alone
// writes its results: one has 64 queries of a head and walks the keys (dq), one has 64 keys of a
// key/value head and walks the queries of all heads that share it (dk, dv). That is seven products
// instead of the five of one kernel with atomic sums for dq, and the same bits every time.
#include "kernels/cuda/attention_mma.cuh"
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"

struct mma_backward {
	bf16 *dqkv;
	const bf16 *dout, *qkv;
	const float *lse, *delta;
	attention_shape s;
};

// Replaces, for one element, the score by p, and d (the product dout v^T) by ds = p (d - delta).
__device__ __forceinline__ void gradient_of(float *score, float *d, float scale, float lse_2, float delta, bool seen) {
	float p = seen ? exp2f(*score * scale - lse_2) : 0;
	*score = p;
	*d = p * (*d - delta);
}

// Keys at a time: fewer where the sums of dq take many registers.
template <int HD> constexpr int key_rows = HD >= 64 ? 32 : 64;

template <int HD> __global__ void __launch_bounds__(MMA_THREADS) attention_dq_mma_kernel(mma_backward in) {
	constexpr int KEYS = key_rows<HD>, N = KEYS / 8;
	DSHMEM(bf16, tiles); // q, dout, k, v
	const attention_shape &s = in.s;
	const shared_t<bf16> queries = tiles, douts = tiles + tile_elements<HD>, keys = tiles + 2 * tile_elements<HD>,
						 values = keys + KEYS * tile_stride<HD>;
	int lane = (int)threadIdx.x % WARP, row = (int)threadIdx.x / WARP * WARP_ROWS, g = lane / 4, q = lane % 4 * 2;
	int last = (int)(gridDim.x - 1 - blockIdx.x), first = last * TILE_ROWS;
	int h = (int)blockIdx.y, b = (int)blockIdx.z, kv = h / (s.heads / s.kv_heads);
	size_t ld = qkv_width(s);
	load_tile<HD, TILE_ROWS>(queries, in.qkv + q_start(s, b, h), ld, first, s.t);
	load_tile<HD, TILE_ROWS>(douts, in.dout + out_start(s, b, h), out_width(s), first, s.t);
	float acc[HD / 8][4] = {}, lse_2[2], delta[2], scale = LOG2_E / sqrtf((float)HD);
#pragma unroll
	for (int half = 0; half < 2; half++) {
		int t = first + row + g + half * 8;
		lse_2[half] = t < s.t ? in.lse[row_start(s, b, h) + t] * LOG2_E : INFINITY;
		delta[half] = t < s.t ? in.delta[row_start(s, b, h) + t] : 0;
	}
	for (int j = 0; j < first + TILE_ROWS; j += KEYS) {
		load_tile<HD, KEYS>(keys, in.qkv + k_start(s, b, kv), ld, j, s.t);
		load_tile<HD, KEYS>(values, in.qkv + v_start(s, b, kv), ld, j, s.t);
		cp_async_commit();
		cp_async_wait<0>();
		__syncthreads();
		float scores[N][4] = {}, ds[N][4] = {};
		multiply_transposed<HD>(scores, queries, row, keys);
		multiply_transposed<HD>(ds, douts, row, values);
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int i = 0; i < 4; i++) {
				bool seen = j + n * 8 + q + i % 2 <= first + row + g + i / 2 * 8;
				gradient_of(&scores[n][i], &ds[n][i], scale, lse_2[i / 2], delta[i / 2], seen);
			}
		multiply_accumulators<HD>(acc, ds, keys);
		__syncthreads();
	}
	bf16 *to[2];
	const float factor[2] = {1.0f / sqrtf((float)HD), 1.0f / sqrtf((float)HD)};
#pragma unroll
	for (int half = 0; half < 2; half++) {
		int t = first + row + g + half * 8;
		to[half] = t < s.t ? in.dqkv + q_start(s, b, h) + t * ld : nullptr;
	}
	store_accumulators<HD>(to, acc, factor);
}

// Queries at a time: fewer where the sums of dk and dv take most registers.
template <int HD> constexpr int query_rows = HD == 128 ? 32 : 64;

// Scores are transposed here: rows are keys, columns are queries.
template <int HD> __global__ void __launch_bounds__(MMA_THREADS) attention_dkv_mma_kernel(mma_backward in) {
	constexpr int ROWS = query_rows<HD>, N = ROWS / 8;
	DSHMEM(bf16, tiles); // k, v, then ROWS rows of q and of dout
	SHMEM(float, lses, ROWS);
	SHMEM(float, deltas, ROWS);
	const attention_shape &s = in.s;
	const shared_t<bf16> keys = tiles, values = tiles + tile_elements<HD>, queries = tiles + 2 * tile_elements<HD>,
						 douts = queries + ROWS * tile_stride<HD>;
	int thread = (int)threadIdx.x, lane = thread % WARP, row = thread / WARP * WARP_ROWS, g = lane / 4,
		q = lane % 4 * 2;
	int first = (int)blockIdx.x * TILE_ROWS, kv = (int)blockIdx.y, b = (int)blockIdx.z, group = s.heads / s.kv_heads;
	size_t ld = qkv_width(s);
	load_tile<HD, TILE_ROWS>(keys, in.qkv + k_start(s, b, kv), ld, first, s.t);
	load_tile<HD, TILE_ROWS>(values, in.qkv + v_start(s, b, kv), ld, first, s.t);
	float dk[HD / 8][4] = {}, dv[HD / 8][4] = {}, scale = LOG2_E / sqrtf((float)HD);
	for (int h = kv * group; h < (kv + 1) * group; h++)
		for (int t = first; t < s.t; t += ROWS) {
			load_tile<HD, ROWS>(queries, in.qkv + q_start(s, b, h), ld, t, s.t);
			load_tile<HD, ROWS>(douts, in.dout + out_start(s, b, h), out_width(s), t, s.t);
			cp_async_commit();
			if (thread < ROWS) { // a query beyond the last sees nothing
				bool here = t + thread < s.t;
				lses[thread] = here ? in.lse[row_start(s, b, h) + t + thread] * LOG2_E : INFINITY;
				deltas[thread] = here ? in.delta[row_start(s, b, h) + t + thread] : 0;
			}
			cp_async_wait<0>();
			__syncthreads();
			float p[N][4] = {}, ds[N][4] = {};
			multiply_transposed<HD>(p, keys, row, queries);
			multiply_transposed<HD>(ds, values, row, douts);
#pragma unroll
			for (int n = 0; n < N; n++)
#pragma unroll
				for (int i = 0; i < 4; i++) {
					int query = n * 8 + q + i % 2;
					bool seen = t + query >= first + row + g + i / 2 * 8;
					gradient_of(&p[n][i], &ds[n][i], scale, lses[query], deltas[query], seen);
				}
			multiply_accumulators<HD>(dv, p, douts);
			multiply_accumulators<HD>(dk, ds, queries);
			__syncthreads();
		}
	bf16 *to_k[2], *to_v[2];
	const float one[2] = {1, 1}, factor[2] = {1.0f / sqrtf((float)HD), 1.0f / sqrtf((float)HD)};
#pragma unroll
	for (int half = 0; half < 2; half++) {
		int t = first + row + g + half * 8;
		to_k[half] = t < s.t ? in.dqkv + k_start(s, b, kv) + t * ld : nullptr;
		to_v[half] = t < s.t ? in.dqkv + v_start(s, b, kv) + t * ld : nullptr;
	}
	store_accumulators<HD>(to_k, dk, factor);
	store_accumulators<HD>(to_v, dv, one);
}

extern "C" void launch_attention_backward_mma(cudaStream_t stream, act_t *dqkv, const act_t *dout, const act_t *qkv,
											  const float *lse, const float *delta, struct attention_shape s) {
	const mma_backward in = {as<bf16>(dqkv), as<bf16>(dout), as<bf16>(qkv), lse, delta, s};
	by_mma_head_dim(s.head_dim, [=](auto hd) {
		constexpr int HD = decltype(hd)::value;
		unsigned tiles = blocks_for((size_t)s.t, TILE_ROWS);
		size_t rows = 2 * TILE_ROWS + 2 * key_rows<HD>;
		LAUNCH(attention_dq_mma_kernel<HD>, dim3(tiles, (unsigned)s.heads, (unsigned)s.b), MMA_THREADS,
			   rows * tile_stride<HD> * sizeof(bf16), stream, in);
		rows = 2 * TILE_ROWS + 2 * query_rows<HD>;
		LAUNCH(attention_dkv_mma_kernel<HD>, dim3(tiles, (unsigned)s.kv_heads, (unsigned)s.b), MMA_THREADS,
			   rows * tile_stride<HD> * sizeof(bf16), stream, in);
	});
}
