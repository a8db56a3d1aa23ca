// classifier.cu: softmax, cross-entropy and its gradient, in place on a chunk of logits. A block has one row: it reads
// it for the largest logit and the sum (one pass), and again, from L2, to write the gradient over it: 2 B in and 2 B
// out per logit in bf16.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"

#include <float.h>

enum { CLASSIFIER_THREADS = 512 };

// The largest of some numbers, and the sum of their exponentials relative to it.
struct softmax_sum {
	float largest, sum;
};

__device__ __forceinline__ softmax_sum merge(softmax_sum a, softmax_sum b) {
	float largest = fmaxf(a.largest, b.largest);
	return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

__device__ __forceinline__ softmax_sum warp_merge(softmax_sum s) {
#pragma unroll
	for (int lanes = WARP / 2; lanes; lanes /= 2) {
		softmax_sum other = {__shfl_xor_sync(FULL_WARP, s.largest, lanes), __shfl_xor_sync(FULL_WARP, s.sum, lanes)};
		s = merge(s, other);
	}
	return s;
}

template <int V, class T> __device__ __forceinline__ softmax_sum thread_softmax(const T *row, int v) {
	softmax_sum s = {-FLT_MAX, 0};
	for (int i = (int)threadIdx.x * V; i < v; i += CLASSIFIER_THREADS * V) {
		float x[V], largest = s.largest, sum = 0;
		load<V>(x, row + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			if (i + j < v)
				largest = fmaxf(largest, x[j]);
#pragma unroll
		for (int j = 0; j < V; j++)
			if (i + j < v)
				sum += expf(x[j] - largest);
		s = {largest, s.sum * expf(s.largest - largest) + sum};
	}
	return s;
}

__device__ __forceinline__ softmax_sum block_softmax(softmax_sum s) {
	SHMEM(float, largest, CLASSIFIER_THREADS / WARP);
	SHMEM(float, sums, CLASSIFIER_THREADS / WARP);
	int warp = (int)threadIdx.x / WARP;
	s = warp_merge(s);
	if (threadIdx.x % WARP == 0) {
		largest[warp] = s.largest;
		sums[warp] = s.sum;
	}
	__syncthreads();
	s = {largest[0], sums[0]};
	for (int i = 1; i < CLASSIFIER_THREADS / WARP; i++)
		s = merge(s, {largest[i], sums[i]});
	return s;
}

// Rows are read in whole vectors, up to ld.
template <class T, int V> __global__ void __launch_bounds__(CLASSIFIER_THREADS) classifier_kernel(classifier_rows p) {
	T *row = reinterpret_cast<T *>(p.logits) + (size_t)blockIdx.x * p.ld;
	int target = p.targets[blockIdx.x];
	float at_target = target < 0 ? 0 : to_float(row[target]);
	softmax_sum s = block_softmax(thread_softmax<V>(row, p.v)); // its barrier: at_target is read before it is written
	if (threadIdx.x == 0)
		p.losses[blockIdx.x] = target < 0 ? 0 : s.largest + logf(s.sum) - at_target;
	if (!p.gradient)
		return;
	float grad_scale = *p.grad_scale, scale = target < 0 ? 0 : grad_scale / s.sum;
	for (int i = (int)threadIdx.x * V; i < p.vp; i += CLASSIFIER_THREADS * V) {
		float x[V];
		load<V>(x, row + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float gradient = i + j < p.v && target >= 0 ? expf(x[j] - s.largest) * scale : 0;
			x[j] = i + j == target ? gradient - grad_scale : gradient;
		}
		store<V>(row + i, x);
	}
}

extern "C" void launch_classifier(cudaStream_t stream, enum dtype act, const struct classifier_rows *args) {
	const classifier_rows p = *args;
	dispatch(
		act, p.ld,
		[=](auto a) {
			typedef typename decltype(a)::T T;
			constexpr int V = decltype(a)::V;
			LAUNCH((classifier_kernel<T, V>), (unsigned)p.n, CLASSIFIER_THREADS, 0, stream, p);
		},
		p.logits);
}
