// swiglu.cu: silu(gate) * up. Forward moves three activations per output, backward five.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"

enum { SWIGLU_THREADS = 256 };

__device__ __forceinline__ float sigmoid(float x) {
	return 1.0f / (1.0f + expf(-x));
}

template <class T, int V>
__global__ void __launch_bounds__(SWIGLU_THREADS) swiglu_forward_kernel(T *out, const T *gate_up, int n, int f) {
	size_t at = ((size_t)blockIdx.x * SWIGLU_THREADS + threadIdx.x) * V;
	if (at >= (size_t)n * f)
		return;
	const T *gates = gate_up + at / f * 2 * f + at % f;
	float gate[V], up[V];
	load<V>(gate, gates);
	load<V>(up, gates + f);
#pragma unroll
	for (int i = 0; i < V; i++)
		up[i] *= gate[i] * sigmoid(gate[i]);
	store<V>(out + at, up);
}

// Returns silu'(g) = s (1 + g (1 - s)) for s = sigmoid(g).
template <class T, int V>
__global__ void __launch_bounds__(SWIGLU_THREADS)
	swiglu_backward_kernel(T *dgate_up, const T *dout, const T *gate_up, int n, int f) {
	size_t at = ((size_t)blockIdx.x * SWIGLU_THREADS + threadIdx.x) * V;
	if (at >= (size_t)n * f)
		return;
	size_t gates = at / f * 2 * f + at % f;
	float gate[V], up[V], dy[V];
	load<V>(gate, gate_up + gates);
	load<V>(up, gate_up + gates + f);
	load<V>(dy, dout + at);
#pragma unroll
	for (int i = 0; i < V; i++) {
		float g = gate[i], s = sigmoid(g);
		gate[i] = dy[i] * up[i] * s * (1 + g * (1 - s));
		up[i] = dy[i] * g * s;
	}
	store<V>(dgate_up + gates, gate);
	store<V>(dgate_up + gates + f, up);
}

extern "C" void launch_swiglu_forward(cudaStream_t stream, enum dtype act, act_t *out, const act_t *gate_up, int n,
									  int f) {
	dispatch(
		act, f,
		[=](auto a) {
			typedef typename decltype(a)::T T;
			constexpr int V = decltype(a)::V;
			unsigned blocks = blocks_for((size_t)n * f, (size_t)SWIGLU_THREADS * V);
			LAUNCH((swiglu_forward_kernel<T, V>), blocks, SWIGLU_THREADS, 0, stream, as<T>(out), as<T>(gate_up), n, f);
		},
		out, gate_up);
}

extern "C" void launch_swiglu_backward(cudaStream_t stream, enum dtype act, act_t *dgate_up, const act_t *dout,
									   const act_t *gate_up, int n, int f) {
	dispatch(
		act, f,
		[=](auto a) {
			typedef typename decltype(a)::T T;
			constexpr int V = decltype(a)::V;
			unsigned blocks = blocks_for((size_t)n * f, (size_t)SWIGLU_THREADS * V);
			LAUNCH((swiglu_backward_kernel<T, V>), blocks, SWIGLU_THREADS, 0, stream, as<T>(dgate_up), as<T>(dout),
				   as<T>(gate_up), n, f);
		},
		dgate_up, dout, gate_up);
}
