// reduce.cuh: sums and maxima over a warp and over the threads of a row, always in the same tree.
#ifndef RV_CUDA_REDUCE_CUH
#define RV_CUDA_REDUCE_CUH

#include "kernels/cuda/portable.cuh"

template <class T> __device__ __forceinline__ T warp_sum(T x) {
#pragma unroll
	for (int lanes = WARP / 2; lanes; lanes /= 2)
		x += __shfl_xor_sync(FULL_WARP, x, lanes);
	return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
	for (int lanes = WARP / 2; lanes; lanes /= 2)
		x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, lanes));
	return x;
}

// The sum over the blockDim.x threads (whole warps) of this thread's row threadIdx.y, given to all of them. `slots` has
// a float for each warp of the block; a next call with the same slots needs a barrier between. Every thread of the
// block comes here.
__device__ __forceinline__ float row_sum(float x, shared_t<float> slots) {
	x = warp_sum(x);
	int warps = (int)blockDim.x / WARP, first = (int)threadIdx.y * warps;
	if (warps == 1)
		return x;
	if (threadIdx.x % WARP == 0)
		slots[first + (int)threadIdx.x / WARP] = x;
	__syncthreads();
	float sum = 0;
	for (int i = 0; i < warps; i++)
		sum += slots[first + i];
	return sum;
}

#endif
