// embed.cu: token and position embeddings.
//
// Forward moves, per element, 4 B of wte and 4 B of wpe in (wpe stays in L2: it is read b times)
// and one activation out. Backward is a sum over the rows of each token, in a fixed order and
// without atomics: the host has sorted the rows (struct embed_order), and one block sums the rows
// of one token. It moves one activation in per element, and 8 B of gradient per element of a token
// that occurs.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"

enum { EMBED_THREADS = 256, SEGMENT_WARPS = 4 };

template <class T, int V>
__global__ void __launch_bounds__(EMBED_THREADS)
	embed_forward_kernel(T *out, const int32_t *tokens, const float *wte, const float *wpe, int n, int t, int c) {
	size_t at = ((size_t)blockIdx.x * EMBED_THREADS + threadIdx.x) * V;
	if (at >= (size_t)n * c)
		return;
	int row = (int)(at / c), column = (int)(at % c);
	float x[V], position[V] = {};
	load<V>(x, wte + (size_t)tokens[row] * c + column);
	if (wpe)
		load<V>(position, wpe + (size_t)(row % t) * c + column);
#pragma unroll
	for (int i = 0; i < V; i++)
		x[i] += position[i];
	store<V>(out + at, x);
}

extern "C" void launch_embed_forward(cudaStream_t stream, enum dtype act, act_t *out, const int32_t *tokens,
									 const float *wte, const float *wpe, int n, int t, int c) {
	dispatch(
		act, c,
		[=](auto a) {
			typedef typename decltype(a)::T T;
			constexpr int V = decltype(a)::V;
			unsigned blocks = blocks_for((size_t)n * c, (size_t)EMBED_THREADS * V);
			LAUNCH((embed_forward_kernel<T, V>), blocks, EMBED_THREADS, 0, stream, as<T>(out), tokens, wte, wpe, n, t,
				   c);
		},
		out, wte, wpe);
}

// Sums block (token i, columns): warp w sums rows w, w + SEGMENT_WARPS, ... of the segment; then
// the warps' sums are added in their order. Most tokens occur once or twice, the commonest a few
// hundred times.
template <class T, int V>
__global__ void __launch_bounds__(WARP *SEGMENT_WARPS)
	embed_backward_kernel(float *dwte, const int32_t *tokens, const int32_t *rows, const int32_t *starts, const T *dout,
						  int c) {
	SHMEM(float, sums, SEGMENT_WARPS *WARP *V);
	int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
	int column = ((int)blockIdx.y * WARP + lane) * V, begin = starts[blockIdx.x], end = starts[blockIdx.x + 1];
	if (begin == end)
		return;
	float sum[V] = {};
	if (column < c)
		for (int i = begin + warp; i < end; i += SEGMENT_WARPS) {
			float x[V];
			load<V>(x, dout + (size_t)rows[i] * c + column);
#pragma unroll
			for (int j = 0; j < V; j++)
				sum[j] += x[j];
		}
#pragma unroll
	for (int j = 0; j < V; j++)
		sums[(j * SEGMENT_WARPS + warp) * WARP + lane] = sum[j];
	__syncthreads();
	if (warp || column >= c)
		return;
	float *to = dwte + (size_t)tokens[rows[begin]] * c + column, old[V];
	load<V>(old, to);
#pragma unroll
	for (int j = 0; j < V; j++)
		for (int w = 0; w < SEGMENT_WARPS; w++)
			old[j] += sums[(j * SEGMENT_WARPS + w) * WARP + lane];
	store<V>(to, old);
}

extern "C" void launch_embed_backward(cudaStream_t stream, enum dtype act, float *dwte, struct embed_order order,
									  const act_t *dout, int c) {
	dispatch(
		act, c,
		[=](auto a) {
			typedef typename decltype(a)::T T;
			constexpr int V = decltype(a)::V;
			dim3 grid((unsigned)order.segments, blocks_for((size_t)c, WARP * V));
			LAUNCH((embed_backward_kernel<T, V>), grid, WARP * SEGMENT_WARPS, 0, stream, dwte, order.tokens, order.rows,
				   order.starts, as<T>(dout), c);
		},
		dwte, dout);
}

// Sums V columns of one position per thread over the b rows there.
template <class T, int V>
__global__ void __launch_bounds__(EMBED_THREADS)
	position_backward_kernel(float *dwpe, const T *dout, int b, int t, int c) {
	size_t at = ((size_t)blockIdx.x * EMBED_THREADS + threadIdx.x) * V, plane = (size_t)t * c;
	if (at >= plane)
		return;
	float sum[V], x[V];
	load<V>(sum, dwpe + at);
	for (int i = 0; i < b; i++) {
		load<V>(x, dout + i * plane + at);
#pragma unroll
		for (int j = 0; j < V; j++)
			sum[j] += x[j];
	}
	store<V>(dwpe + at, sum);
}

extern "C" void launch_position_backward(cudaStream_t stream, enum dtype act, float *dwpe, const act_t *dout, int b,
										 int t, int c) {
	dispatch(
		act, c,
		[=](auto a) {
			typedef typename decltype(a)::T T;
			constexpr int V = decltype(a)::V;
			unsigned blocks = blocks_for((size_t)t * c, (size_t)EMBED_THREADS * V);
			LAUNCH((position_backward_kernel<T, V>), blocks, EMBED_THREADS, 0, stream, dwpe, as<T>(dout), b, t, c);
		},
		dwpe, dout);
}
