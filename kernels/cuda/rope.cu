// rope.cu: rotary embedding of q and k, in place: one activation in and out per channel of q and k,
// and 4 B of the table per channel, which stays in cache (it is the same for every head and batch
// row).
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"

enum { ROPE_THREADS = 256 };

// Rotates V pairs (i, i + half) of one head of one token per thread.
template <class T, int V>
__global__ void __launch_bounds__(ROPE_THREADS)
	rope_kernel(T *qkv, const float *table, struct attention_shape s, int first, float direction) {
	int half = s.head_dim / 2, rotated = s.heads + s.kv_heads, per_head = half / V;
	size_t i = (size_t)blockIdx.x * ROPE_THREADS + threadIdx.x;
	if (i >= (size_t)s.b * s.t * rotated * per_head)
		return;
	int pair = (int)(i % per_head) * V, head = (int)(i / per_head % rotated);
	size_t token = i / per_head / rotated, width = (size_t)(rotated + s.kv_heads) * s.head_dim;
	T *at = qkv + token * width + (size_t)head * s.head_dim + pair;
	const float *angles = table + ((size_t)(first + (int)(token % s.t)) * half + pair) * 2;
	float x1[V], x2[V], turn[2 * V], y1[V], y2[V];
	load<V>(x1, at);
	load<V>(x2, at + half);
	load<2 * V>(turn, angles);
#pragma unroll
	for (int j = 0; j < V; j++) {
		float cosine = turn[2 * j], sine = direction * turn[2 * j + 1];
		y1[j] = x1[j] * cosine - x2[j] * sine;
		y2[j] = x2[j] * cosine + x1[j] * sine;
	}
	store<V>(at, y1);
	store<V>(at + half, y2);
}

extern "C" void launch_rope(cudaStream_t stream, enum dtype act, act_t *qkv, const float *table,
							struct attention_shape s, int first, bool inverse) {
	dispatch(
		act, s.head_dim / 2,
		[=](auto a) {
			typedef typename decltype(a)::T T;
			constexpr int V = decltype(a)::V;
			size_t threads = (size_t)s.b * s.t * (s.heads + s.kv_heads) * (s.head_dim / 2 / V);
			LAUNCH((rope_kernel<T, V>), blocks_for(threads, ROPE_THREADS), ROPE_THREADS, 0, stream, as<T>(qkv), table,
				   s, first, inverse ? -1.0f : 1.0f);
		},
		qkv, table);
}
