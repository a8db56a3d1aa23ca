// classifier.cu: softmax, cross-entropy and its gradient, in place on a chunk of logits. A block
// has one row: it reads it for the largest logit and the sum (one pass), and again, from L2, to
// write the gradient over it: 2 B in and 2 B out per logit in bf16. About 7 instructions per logit
// and pass (docs/benchmarks.md): a comparison of every column with the row's end or with the target
// doubles that, so tail and target are apart from the loops over whole vectors.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ptx.cuh"

#include <float.h>

enum { CLASSIFIER_THREADS = 512 };

// Returns e^x by 2 instructions, where expf takes 8. Its relative error, about 1e-7 |x|, is large
// only where e^x is next to nothing beside e^0, the row's largest.
__device__ __forceinline__ float exp_of(float x) {
	return exp2_ftz(x * 1.44269504088896341f);
}

// The largest of some numbers, and the sum of their exponentials relative to it.
struct softmax_sum {
	float largest, sum;
};

__device__ __forceinline__ softmax_sum merge(softmax_sum a, softmax_sum b) {
	float largest = fmaxf(a.largest, b.largest);
	return {largest, a.sum * exp_of(a.largest - largest) + b.sum * exp_of(b.largest - largest)};
}

__device__ __forceinline__ softmax_sum warp_merge(softmax_sum s) {
#pragma unroll
	for (int lanes = WARP / 2; lanes; lanes /= 2) {
		softmax_sum other = {__shfl_xor_sync(FULL_WARP, s.largest, lanes), __shfl_xor_sync(FULL_WARP, s.sum, lanes)};
		s = merge(s, other);
	}
	return s;
}

// Adds the first `count` of a run of logits.
template <int V> __device__ __forceinline__ softmax_sum add_logits(softmax_sum s, const float (&x)[V], int count) {
	float largest = s.largest, sum = 0;
#pragma unroll
	for (int j = 0; j < V; j++)
		if (j < count)
			largest = fmaxf(largest, x[j]);
#pragma unroll
	for (int j = 0; j < V; j++)
		if (j < count)
			sum += exp_of(x[j] - largest);
	return {largest, s.sum * exp_of(s.largest - largest) + sum};
}

// Returns the softmax sum of this thread's logits: those of its whole vectors, then of the row's
// tail if that is its own.
template <int V, class T> __device__ __forceinline__ softmax_sum thread_softmax(const T *row, int v) {
	softmax_sum s = {-FLT_MAX, 0};
	int whole = v / V * V, i = (int)threadIdx.x * V;
	float x[V];
#pragma unroll 2 // two loads on their way; with four a register spills on sm_100
	for (; i < whole; i += CLASSIFIER_THREADS * V) {
		load<V>(x, row + i);
		s = add_logits<V>(s, x, V);
	}
	if (i < v) {
		load<V>(x, row + i);
		s = add_logits<V>(s, x, v - i);
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

// Writes the probabilities times `scale` over the logits, and zeroes over columns v to vp - 1. Rows
// are read and written in whole vectors, up to ld.
template <int V, class T>
__device__ __forceinline__ void write_probabilities(T *row, int v, int vp, float largest, float scale) {
	int whole = v / V * V, i = (int)threadIdx.x * V;
	float x[V];
#pragma unroll 2
	for (; i < whole; i += CLASSIFIER_THREADS * V) {
		load<V>(x, row + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			x[j] = exp_of(x[j] - largest) * scale;
		store<V>(row + i, x);
	}
	for (; i < vp; i += CLASSIFIER_THREADS * V) {
		load<V>(x, row + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			x[j] = i + j < v ? exp_of(x[j] - largest) * scale : 0;
		store<V>(row + i, x);
	}
}

// Writes the gradient of an ignored row: zeroes, whatever its logits are.
template <int V, class T> __device__ __forceinline__ void write_zeroes(T *row, int vp) {
	const float zeroes[V] = {};
	for (int i = (int)threadIdx.x * V; i < vp; i += CLASSIFIER_THREADS * V)
		store<V>(row + i, zeroes);
}

template <class T, int V> __global__ void __launch_bounds__(CLASSIFIER_THREADS) classifier_kernel(classifier_rows p) {
	T *row = reinterpret_cast<T *>(p.logits) + (size_t)blockIdx.x * p.ld;
	int target = p.targets[blockIdx.x];
	float at_target = target < 0 ? 0 : to_float(row[target]);
	softmax_sum s = block_softmax(thread_softmax<V>(row, p.v)); // its barrier: at_target is read before it is written
	if (threadIdx.x == 0)
		p.losses[blockIdx.x] = target < 0 ? 0 : s.largest + logf(s.sum) - at_target;
	if (!p.gradient)
		return;
	if (target < 0) {
		write_zeroes<V>(row, p.vp);
		return;
	}
	float grad_scale = *p.grad_scale, scale = grad_scale / s.sum;
	write_probabilities<V>(row, p.v, p.vp, s.largest, scale);
	if ((int)threadIdx.x == target / V % CLASSIFIER_THREADS) // the thread that wrote the target's vector
		row[target] = from_float<T>(exp_of(at_target - s.largest) * scale - grad_scale);
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
