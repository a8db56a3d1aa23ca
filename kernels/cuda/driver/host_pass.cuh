// host_pass.cuh: the language of a .cu file for the host's compiler, which makes of it the
// functions that launch, and never runs a kernel: their bodies only have to be parsed. Only what
// kernels/cuda/ uses. NVRTC makes the kernels of the same file (compile.py). Both know a kernel by
// its name, as the host's compiler writes it for a template argument.
#ifndef RV_CUDA_DRIVER_HOST_PASS_CUH
#define RV_CUDA_DRIVER_HOST_PASS_CUH

#include "kernels/cuda/driver/kernel.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#define __global__ static __attribute__((unused))
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__

struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(8) float2 {
	float x, y;
};
struct alignas(8) int2 {
	int x, y;
};
struct alignas(16) uint4 {
	uint32_t x, y, z, w;
};
struct __nv_bfloat16 {
	uint16_t bits;
};
static const dim3 threadIdx(0), blockIdx(0), blockDim(1), gridDim(1);

// Stands for what only a GPU computes.
template <class T> inline T on_device(T x) {
	__builtin_trap();
	return x;
}

inline void __syncthreads() {
	__builtin_trap();
}
template <class T> inline T __shfl_xor_sync(unsigned, T x, int) {
	return on_device(x);
}
template <class T> inline T __shfl_sync(unsigned, T x, int) {
	return on_device(x);
}
inline void __stwb(uint4 *, uint4) {
	__builtin_trap();
}
inline uint32_t __float_as_uint(float) {
	return on_device(0u);
}
inline float __uint_as_float(uint32_t) {
	return on_device(0.0f);
}
inline float __bfloat162float(__nv_bfloat16) {
	return on_device(0.0f);
}
inline __nv_bfloat16 __float2bfloat16_rn(float) {
	return on_device(__nv_bfloat16{0});
}
inline float __fadd_rn(float x, float) {
	return on_device(x);
}
inline float __fsub_rn(float x, float) {
	return on_device(x);
}
inline float __fmul_rn(float x, float) {
	return on_device(x);
}
inline float __fdiv_rn(float x, float) {
	return on_device(x);
}
inline int __float2int_rn(float) {
	return on_device(0);
}
template <class T, class U> inline T atomicMin(T *p, U) {
	return on_device(*p);
}
inline float __expf(float x) {
	return on_device(x);
}
inline float rsqrtf(float x) {
	return on_device(x);
}
template <class T> inline T min(T x, T) {
	return on_device(x);
}
template <class T> inline T max(T x, T) {
	return on_device(x);
}
inline float exp2_ftz(float x) {
	return on_device(x);
}
inline void mma_bf16(float *, const uint32_t *, const uint32_t *) {
	__builtin_trap();
}
inline void ldmatrix_x4(uint32_t *, const __nv_bfloat16 *) {
	__builtin_trap();
}
inline void ldmatrix_x4_transposed(uint32_t *, const __nv_bfloat16 *) {
	__builtin_trap();
}
inline void cp_async16(void *, const void *) {
	__builtin_trap();
}
inline void cp_async_commit() {
	__builtin_trap();
}
template <int GROUPS_LEFT> inline void cp_async_wait() {
	__builtin_trap();
}

// compile.py looks for this function's name in the object file.
template <auto Kernel> constexpr const char *rv_kernel_name() {
	return __PRETTY_FUNCTION__;
}

// Returns the name behind "Kernel = ", up to the end.
constexpr const char *behind_equals(const char *text) {
	while (*text != '=')
		text++;
	return text + 2;
}

template <auto Kernel> struct kernel_of {
	static inline kernel_handle handle = {behind_equals(rv_kernel_name<Kernel>()), {}, {}};
	static constexpr auto pointer = Kernel;
};

struct launch_shape {
	dim3 grid, block;
	size_t shared_bytes;
	cudaStream_t stream;
};

// Enqueues the kernel with arguments of its parameters' types.
template <class... P, class... A>
inline cudaError_t launch_with(kernel_handle *k, void (*)(P...), const launch_shape &s, A... arguments) {
	auto enqueue = [&](P... parameters) {
		void *pointers[] = {const_cast<void *>(static_cast<const void *>(&parameters))...};
		const kernel_launch l = {
			{s.grid.x, s.grid.y, s.grid.z}, {s.block.x, s.block.y, s.block.z}, s.shared_bytes, s.stream};
		return kernel_enqueue(k, &l, pointers);
	};
	return enqueue(static_cast<P>(arguments)...);
}

#endif
