// gelu.cuh: GELU by tanh (arXiv 1606.08415), and its derivative.
#ifndef RV_CUDA_GELU_CUH
#define RV_CUDA_GELU_CUH

#include "kernels/cuda/portable.cuh"

#include <math.h>

__device__ __forceinline__ float gelu_inner(float x) {
	return tanhf(0.79788456080286535588f * (x + 0.044715f * x * x * x));
}

__device__ __forceinline__ float gelu_of(float x) {
	return 0.5f * x * (1 + gelu_inner(x));
}

__device__ __forceinline__ float gelu_slope(float x) {
	float t = gelu_inner(x);
	return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456080286535588f * (1 + 3 * 0.044715f * x * x);
}

#endif
