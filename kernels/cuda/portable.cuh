// portable.cuh: the one place where nvcc, NVRTC with the host's compiler (driver/), and the
// emulator (tests/emu/, tests only) differ. Kernels include this and follow its rules, so that the
// code that ships is the code that CI runs without a GPU:
//
//   LAUNCH(kernel, grid, block, shared_bytes, stream, args...) instead of <<<>>>; kernel with
//   commas in parentheses
//   SHMEM(T, name, n); DSHMEM(T, name); arrays in shared memory, static and dynamic
//   shared_t<T> a pointer into shared memory, as a parameter
//   shared_as<U>(p) the same place as elements of type U
//   whole warps; barriers that every thread reaches; shuffles of the full warp; no cooperative
//   groups; inline PTX only in ptx.cuh.
#ifndef RV_CUDA_PORTABLE_CUH
#define RV_CUDA_PORTABLE_CUH

#include "kernels/cuda/vendor/runtime.h"

#include <stdint.h>

// Asserts: see cuda_backend.h.
extern "C" void cuda_check_launch(cudaStream_t stream, cudaError_t e, const char *kernel);

#ifdef RV_CUDA_EMU
#include <emu/device.h>

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                         \
	cuda_check_launch(stream, emu::launch(#kernel, grid, block, shared_bytes, stream, [=] { kernel(__VA_ARGS__); }),   \
					  #kernel)
#define SHMEM(T, name, n)                                                                                              \
	static const char name##_key = 0;                                                                                  \
	const shared_t<T> name(emu::static_shared(&name##_key, sizeof(T) * (n)))
#define DSHMEM(T, name) const shared_t<T> name(emu::dynamic_shared())

template <class T> using shared_t = emu::shared<T>;

template <class U, class T> inline shared_t<U> shared_as(emu::shared<T> p) {
	return p.template as<U>();
}
#elif defined(RV_CUDA_DRIVER) && !defined(__CUDACC_RTC__)
#include "kernels/cuda/driver/host_pass.cuh"

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                         \
	cuda_check_launch(stream,                                                                                          \
					  launch_with(&kernel_of<(kernel)>::handle, kernel_of<(kernel)>::pointer,                          \
								  launch_shape{grid, block, (size_t)(shared_bytes), stream}, __VA_ARGS__),             \
					  #kernel)
#define SHMEM(T, name, n)                                                                                              \
	(void)(n);                                                                                                         \
	T *const name = nullptr
#define DSHMEM(T, name) T *const name = nullptr

template <class T> using shared_t = T *;

template <class U, class T> inline U *shared_as(T *p) {
	return reinterpret_cast<U *>(p);
}
#else
#include <cuda_bf16.h>

#ifdef __CUDACC_RTC__ // host code is parsed, and dropped
#define LAUNCH(...) ((void)0)
#else
#include <cuda_runtime.h>

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                         \
	do {                                                                                                               \
		if ((shared_bytes) > (48 << 10)) /* more than this has to be asked for */                                      \
			cuda_check_launch(                                                                                         \
				stream,                                                                                                \
				cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(shared_bytes)),        \
				#kernel);                                                                                              \
		kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__);                                                    \
		cuda_check_launch(stream, cudaGetLastError(), #kernel);                                                        \
	} while (0)
#endif
#define SHMEM(T, name, n) __shared__ T name[n]
#define DSHMEM(T, name)                                                                                                \
	extern __shared__ __align__(128) unsigned char dynamic_shared_bytes[];                                             \
	T *const name = reinterpret_cast<T *>(dynamic_shared_bytes)

template <class T> using shared_t = T *;

template <class U, class T> __device__ __forceinline__ U *shared_as(T *p) {
	return reinterpret_cast<U *>(p);
}
#endif

typedef __nv_bfloat16 bf16;

enum { WARP = 32 };
static const unsigned FULL_WARP = 0xffffffffu;

#endif
