// vec.cuh: runs of neighbouring elements, moved as one 128-bit access if V elements make 16 bytes,
// and as single elements if V is 1 (rows whose length or address allows no more). Arithmetic is on
// the floats they hold.
#ifndef RV_CUDA_VEC_CUH
#define RV_CUDA_VEC_CUH

#include "kernels/cuda/portable.cuh"

__device__ __forceinline__ float to_float(float x) {
	return x;
}

__device__ __forceinline__ float to_float(bf16 x) {
	return __bfloat162float(x);
}

template <class T> __device__ __forceinline__ T from_float(float x);

template <> __device__ __forceinline__ float from_float<float>(float x) {
	return x;
}

template <> __device__ __forceinline__ bf16 from_float<bf16>(float x) {
	return __float2bfloat16_rn(x);
}

// Returns x rounded to a T.
template <class T> __device__ __forceinline__ float rounded(float x) {
	return to_float(from_float<T>(x));
}

template <class T> constexpr int vec_width = 16 / (int)sizeof(T);

// Loads V floats from V elements at p: one to four 16-byte loads (V a multiple of a vector's
// width), or single ones.
template <int V, class T> __device__ __forceinline__ void load(float (&out)[V], const T *p) {
	constexpr int W = vec_width<T>;
	if constexpr (V % W == 0) {
#pragma unroll
		for (int i = 0; i < V; i += W) {
			uint4 raw = *reinterpret_cast<const uint4 *>(p + i);
			T elements[W];
			memcpy(elements, &raw, sizeof raw);
#pragma unroll
			for (int j = 0; j < W; j++)
				out[i + j] = to_float(elements[j]);
		}
	} else {
#pragma unroll
		for (int i = 0; i < V; i++)
			out[i] = to_float(p[i]);
	}
}

template <int V, class T> __device__ __forceinline__ void store(T *p, const float (&in)[V]) {
	constexpr int W = vec_width<T>;
	if constexpr (V % W == 0) {
#pragma unroll
		for (int i = 0; i < V; i += W) {
			T elements[W];
#pragma unroll
			for (int j = 0; j < W; j++)
				elements[j] = from_float<T>(in[i + j]);
			uint4 raw;
			memcpy(&raw, elements, sizeof raw);
			__stwb(reinterpret_cast<uint4 *>(p + i), raw); // an assignment nvcc may take apart
		}
	} else {
#pragma unroll
		for (int i = 0; i < V; i++)
			p[i] = from_float<T>(in[i]);
	}
}

// Returns true if rows of `n` elements from all these addresses can be moved 16 bytes at a time
// (host). NULL is ignored.
template <class... P> inline bool vectors_fit(int n, int width, P... pointers) {
	bool aligned = n % width == 0;
	const void *all[] = {pointers...};
	for (const void *p : all)
		aligned = aligned && reinterpret_cast<uintptr_t>(p) % 16 == 0;
	return aligned;
}

#endif
