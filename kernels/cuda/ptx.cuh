// ptx.cuh: all inline PTX, each with an emulated twin in tests/emu/tensor.h. sm_80 and later.
#ifndef RV_CUDA_PTX_CUH
#define RV_CUDA_PTX_CUH

#include "kernels/cuda/portable.cuh"

#ifdef RV_CUDA_EMU
#include <emu/tensor.h>
#elif !defined(RV_CUDA_DRIVER) || defined(__CUDACC_RTC__) // else host_pass.cuh

// Returns 2^x within two units in the last place; 0 where that is below 2^-126.
__device__ __forceinline__ float exp2_ftz(float x) {
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

// Computes d (16 x 8, fp32) += a (16 x 16, bf16, row-major) b (16 x 8, bf16, column-major), spread
// over the lanes of a warp: lane 4 g + q holds d[g][2q, 2q+1], d[g+8][2q, 2q+1].
__device__ __forceinline__ void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2]) {
	asm volatile(
		"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Loads four 8 x 8 matrices of bf16: lanes 8 i .. 8 i + 7 give the addresses of the rows of matrix
// i; out[i] of lane 4 g + q is its [g][2q, 2q+1].
__device__ __forceinline__ void ldmatrix_x4(uint32_t out[4], const bf16 *row) {
	uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
				 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
				 : "r"(address)
				 : "memory");
}

// Loads the transposed matrices: [2q, 2q+1][g].
__device__ __forceinline__ void ldmatrix_x4_transposed(uint32_t out[4], const bf16 *row) {
	uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
				 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
				 : "r"(address)
				 : "memory");
}

// Starts copying 16 bytes from global to shared memory, around the registers; from == NULL writes
// zeroes.
__device__ __forceinline__ void cp_async16(void *to, const void *from) {
	uint32_t address = (uint32_t)__cvta_generic_to_shared(to);
	int bytes = from ? 16 : 0; // the rest of the 16 is filled with zeroes
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from ? from : to), "r"(bytes)
				 : "memory");
}

// Closes a group of copies; cp_async_wait<n> waits for all groups but the newest n of this thread:
// other threads need a barrier.
__device__ __forceinline__ void cp_async_commit() {
	asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int GROUPS_LEFT> __device__ __forceinline__ void cp_async_wait() {
	asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS_LEFT) : "memory");
}
#endif

#endif
