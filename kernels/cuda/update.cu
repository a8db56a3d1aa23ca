// update.cu: sums of vectors, for optimizers that are made of them: 12 B per element (16 with b).
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"

enum { UPDATE_THREADS = 256 };

template <int V>
__global__ void __launch_bounds__(UPDATE_THREADS)
	add_scaled_kernel(float *y, float keep, float scale, const float *a, const float *b, size_t n) {
	size_t at = ((size_t)blockIdx.x * UPDATE_THREADS + threadIdx.x) * V;
	if (at >= n)
		return;
	float x[V], sum[V];
	load<V>(x, a + at);
	if (b) {
		float other[V];
		load<V>(other, b + at);
#pragma unroll
		for (int i = 0; i < V; i++)
			x[i] -= other[i];
	}
	if (keep == 0) {
#pragma unroll
		for (int i = 0; i < V; i++)
			sum[i] = scale * x[i];
	} else {
		load<V>(sum, y + at);
#pragma unroll
		for (int i = 0; i < V; i++)
			sum[i] = keep * sum[i] + scale * x[i];
	}
	store<V>(y + at, sum);
}

extern "C" void launch_add_scaled(cudaStream_t stream, float *y, float keep, float scale, const float *a,
								  const float *b, size_t n) {
	constexpr int V = vec_width<float>;
	if (n == 0)
		return;
	if (n % V == 0 && vectors_fit(0, V, y, a, b))
		LAUNCH(add_scaled_kernel<V>, blocks_for(n, UPDATE_THREADS * V), UPDATE_THREADS, 0, stream, y, keep, scale, a, b,
			   n);
	else
		LAUNCH(add_scaled_kernel<1>, blocks_for(n, UPDATE_THREADS), UPDATE_THREADS, 0, stream, y, keep, scale, a, b, n);
}
