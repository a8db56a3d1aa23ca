// adamw.cu: the optimizer over the whole flat block in one launch, and the sum of squares for the
// gradient's norm.
//
// AdamW moves 28 B per parameter (p, m, v in and out, g in), and 2 B more for the bf16 copy of p.
// The sum of squares reads 4 B.
#include "kernels/cuda/adamw.cuh"
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce.cuh"

enum { ADAMW_THREADS = 256, ADAMW_WIDTH = 8 /* of the bf16 copy: 16 bytes */, SQUARES_THREADS = 256 };

template <int V> __global__ void __launch_bounds__(ADAMW_THREADS) adamw_kernel(adamw_arrays s, adamw_consts a) {
	size_t at = ((size_t)blockIdx.x * ADAMW_THREADS + threadIdx.x) * V;
	if (at >= s.n)
		return;
	float p[V], m[V], v[V], g[V];
	load<V>(p, s.p + at);
	load<V>(m, s.m + at);
	load<V>(v, s.v + at);
	load<V>(g, s.g + at);
	int span = span_of(s.ends, s.n_spans, at);
#pragma unroll
	for (int i = 0; i < V; i++) {
		while (at + i >= s.ends[span])
			span++;
		adamw_element(&p[i], &m[i], &v[i], g[i], s.decays[span], a);
	}
	store<V>(s.p + at, p);
	store<V>(s.m + at, m);
	store<V>(s.v + at, v);
	if (s.p_bf16)
		store<V>(static_cast<bf16 *>(s.p_bf16) + at, p);
}

extern "C" void launch_adamw(cudaStream_t stream, const struct adamw_arrays *arrays, const struct adamw_params *a) {
	const adamw_arrays s = *arrays;
	const adamw_consts constants = adamw_consts_of(a, (double)a->weight_decay);
	bool vectors = s.n % ADAMW_WIDTH == 0 && vectors_fit(0, 1, s.p, s.m, s.v, s.g, s.p_bf16);
	if (vectors)
		LAUNCH(adamw_kernel<ADAMW_WIDTH>, blocks_for(s.n, ADAMW_THREADS * ADAMW_WIDTH), ADAMW_THREADS, 0, stream, s,
			   constants);
	else
		LAUNCH(adamw_kernel<1>, blocks_for(s.n, ADAMW_THREADS), ADAMW_THREADS, 0, stream, s, constants);
}

// Returns the sum of x over the block to thread 0.
__device__ __forceinline__ double block_sum(double x) {
	SHMEM(double, sums, SQUARES_THREADS / WARP);
	x = warp_sum(x);
	if (threadIdx.x % WARP == 0)
		sums[threadIdx.x / WARP] = x;
	__syncthreads();
	double sum = 0;
	for (int i = 0; i < SQUARES_THREADS / WARP; i++)
		sum += sums[i];
	return sum;
}

template <int V>
__global__ void __launch_bounds__(SQUARES_THREADS) squares_kernel(double *partial, const float *x, size_t n) {
	double sum = 0;
	size_t stride = (size_t)gridDim.x * SQUARES_THREADS * V;
	for (size_t at = ((size_t)blockIdx.x * SQUARES_THREADS + threadIdx.x) * V; at < n; at += stride) {
		float value[V];
		load<V>(value, x + at);
#pragma unroll
		for (int i = 0; i < V; i++)
			sum += (double)value[i] * (double)value[i];
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(SQUARES_THREADS) squares_total_kernel(double *sum, const double *partial, int n) {
	double mine = 0;
	for (int i = (int)threadIdx.x; i < n; i += SQUARES_THREADS)
		mine += partial[i];
	mine = block_sum(mine);
	if (threadIdx.x == 0)
		*sum = mine;
}

extern "C" void launch_sum_squares(cudaStream_t stream, double *sum, double *partial, const float *x, size_t n) {
	constexpr int V = vec_width<float>;
	unsigned blocks = blocks_for(n, (size_t)SQUARES_THREADS * V);
	blocks = blocks > SUM_SQUARES_PARTIALS ? (unsigned)SUM_SQUARES_PARTIALS : blocks ? blocks : 1;
	if (n % V == 0 && vectors_fit(0, 1, x))
		LAUNCH(squares_kernel<V>, blocks, SQUARES_THREADS, 0, stream, partial, x, n);
	else
		LAUNCH(squares_kernel<1>, blocks, SQUARES_THREADS, 0, stream, partial, x, n);
	LAUNCH(squares_total_kernel, 1u, SQUARES_THREADS, 0, stream, sum, partial, (int)blocks);
}
