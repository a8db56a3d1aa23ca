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

// Returns to all threads the sum over the blockDim.x threads (whole warps) of this thread's row
// threadIdx.y. `slots` has a float for each warp of the block; the next call with the same slots
// needs a barrier between. Every thread of the block must call it.
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

// Returns two such sums, with row_sum's bits and one barrier: `slots` has two floats for each warp
// of the block.
__device__ __forceinline__ float2 row_sums(float2 x, shared_t<float> slots) {
#pragma unroll
	for (int lanes = WARP / 2; lanes; lanes /= 2) {
		x.x += __shfl_xor_sync(FULL_WARP, x.x, lanes);
		x.y += __shfl_xor_sync(FULL_WARP, x.y, lanes);
	}
	int warps = (int)blockDim.x / WARP, first = (int)threadIdx.y * warps;
	if (warps == 1)
		return x;
	if (threadIdx.x % WARP == 0) {
		int mine = 2 * (first + (int)threadIdx.x / WARP);
		slots[mine] = x.x;
		slots[mine + 1] = x.y;
	}
	__syncthreads();
	x.x = x.y = 0;
#pragma unroll 4 // more takes registers
	for (int i = 2 * first; i < 2 * (first + warps); i += 2) {
		x.x += slots[i];
		x.y += slots[i + 1];
	}
	return x;
}

#endif
