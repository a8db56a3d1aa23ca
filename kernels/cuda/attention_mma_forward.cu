// attention_mma_forward.cu: causal attention in bf16 on tensor cores, the way of FlashAttention-2
// (arXiv 2307.08691): a block has 64 queries of a head and walks the keys up to the diagonal 64 at
// a time, softmax under way in registers. Tiles of keys and values are double-buffered with
// asynchronous copies. Global memory: q and out once, k and v once for every 64 queries (from L2).
#include "kernels/cuda/attention_mma.cuh"
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"

enum { KEY_TILES = TILE_ROWS / 8 }; // accumulators across a tile of keys

// The softmax so far, in base 2, of rows g and g + 8 of the warp's 16.
struct softmax_rows {
	float largest[2], sum[2];
};

__device__ __forceinline__ float quad_max(float x) {
	x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 1));
	return fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
	x += __shfl_xor_sync(FULL_WARP, x, 1);
	return x + __shfl_xor_sync(FULL_WARP, x, 2);
}

// Masks scores right of the diagonal, when the tile of keys is the queries' own.
__device__ __forceinline__ void mask_diagonal(float (&s)[KEY_TILES][4], int row) {
	int g = (int)threadIdx.x % WARP / 4, q = (int)threadIdx.x % 4 * 2;
#pragma unroll
	for (int n = 0; n < KEY_TILES; n++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			if (n * 8 + q + i % 2 > row + g + i / 2 * 8)
				s[n][i] = -INFINITY;
}

// Replaces scores by probabilities relative to the largest so far; brings `out` to the same scale.
template <int HD>
__device__ __forceinline__ void softmax_step(float (&s)[KEY_TILES][4], float (&out)[HD / 8][4], softmax_rows &rows,
											 float scale) {
#pragma unroll
	for (int half = 0; half < 2; half++) {
		float largest = rows.largest[half], sum = 0;
#pragma unroll
		for (int n = 0; n < KEY_TILES; n++)
			largest = fmaxf(largest, fmaxf(s[n][half * 2], s[n][half * 2 + 1]) * scale);
		largest = quad_max(largest);
#pragma unroll
		for (int n = 0; n < KEY_TILES; n++)
#pragma unroll
			for (int i = half * 2; i < half * 2 + 2; i++) {
				s[n][i] = exp2f(s[n][i] * scale - largest);
				sum += s[n][i];
			}
		float shrink = exp2f(rows.largest[half] - largest);
		rows.largest[half] = largest;
		rows.sum[half] = rows.sum[half] * shrink + quad_sum(sum);
#pragma unroll
		for (int n = 0; n < HD / 8; n++) {
			out[n][half * 2] *= shrink;
			out[n][half * 2 + 1] *= shrink;
		}
	}
}

// Blocks that share the registers of a multiprocessor.
template <int HD> constexpr int forward_blocks = HD == 128 ? 2 : HD == 64 ? 3 : 4;

template <int HD>
__global__ void __launch_bounds__(MMA_THREADS, forward_blocks<HD>)
	attention_forward_mma_kernel(bf16 *out, float *lse, const bf16 *qkv, attention_shape s) {
	DSHMEM(bf16, tiles); // k, v of this step; k, v of the next; q
	int lane = (int)threadIdx.x % WARP, row = (int)threadIdx.x / WARP * WARP_ROWS;
	int last = (int)(gridDim.x - 1 - blockIdx.x); // the longest rows begin first
	int h = (int)blockIdx.y, b = (int)blockIdx.z, kv = h / (s.heads / s.kv_heads), first = last * TILE_ROWS;
	size_t ld = qkv_width(s);
	const bf16 *k = qkv + k_start(s, b, kv), *v = qkv + v_start(s, b, kv);
	const shared_t<bf16> queries = tiles + 4 * tile_elements<HD>;
	load_tile<HD, TILE_ROWS>(queries, qkv + q_start(s, b, h), ld, first, s.t);
	load_tile<HD, TILE_ROWS>(tiles, k, ld, 0, s.t);
	load_tile<HD, TILE_ROWS>(tiles + tile_elements<HD>, v, ld, 0, s.t);
	cp_async_commit();
	float acc[HD / 8][4] = {};
	softmax_rows rows = {{-INFINITY, -INFINITY}, {0, 0}};
	float scale = LOG2_E / sqrtf((float)HD);
	for (int j = 0; j <= last; j++) {
		const shared_t<bf16> keys = tiles + j % 2 * 2 * tile_elements<HD>,
							 next = tiles + (j + 1) % 2 * 2 * tile_elements<HD>;
		if (j < last) {
			load_tile<HD, TILE_ROWS>(next, k, ld, (j + 1) * TILE_ROWS, s.t);
			load_tile<HD, TILE_ROWS>(next + tile_elements<HD>, v, ld, (j + 1) * TILE_ROWS, s.t);
		}
		cp_async_commit();
		cp_async_wait<1>();
		__syncthreads();
		float scores[KEY_TILES][4] = {};
		multiply_transposed<HD>(scores, queries, row, keys);
		if (j == last)
			mask_diagonal(scores, row);
		softmax_step<HD>(scores, acc, rows, scale);
		multiply_accumulators<HD>(acc, scores, keys + tile_elements<HD>);
		__syncthreads(); // before the next step's copies overwrite these tiles
	}
	bf16 *to[2];
	float factor[2];
#pragma unroll
	for (int half = 0; half < 2; half++) {
		int t = first + row + lane / 4 + half * 8;
		bool here = t < s.t;
		to[half] = here ? out + out_start(s, b, h) + (size_t)t * out_width(s) : nullptr;
		factor[half] = 1.0f / rows.sum[half];
		if (here && lane % 4 == 0)
			lse[row_start(s, b, h) + t] = (rows.largest[half] + log2f(rows.sum[half])) * LN_2;
	}
	store_accumulators<HD>(to, acc, factor);
}

extern "C" void launch_attention_forward_mma(cudaStream_t stream, act_t *out, float *lse, const act_t *qkv,
											 struct attention_shape s) {
	by_mma_head_dim(s.head_dim, [=](auto hd) {
		constexpr int HD = decltype(hd)::value;
		dim3 grid(blocks_for((size_t)s.t, TILE_ROWS), (unsigned)s.heads, (unsigned)s.b);
		LAUNCH(attention_forward_mma_kernel<HD>, grid, MMA_THREADS, 5 * tile_elements<HD> * sizeof(bf16), stream,
			   as<bf16>(out), lse, as<bf16>(qkv), s);
	});
}
