// device.h: the language of a .cu file, for g++: qualifiers, thread indices, vectors, barriers,
// shuffles, bf16, maths. Only what kernels/cuda/ uses. Every barrier and shuffle knows the source
// line it is called from.
#ifndef RV_TESTS_EMU_DEVICE_H
#define RV_TESTS_EMU_DEVICE_H

#include "tests/emu/launch.h"
#include "tests/emu/shared.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

#define threadIdx (emu::self->index)
#define blockIdx  (emu::block_index)
#define blockDim  (emu::block_shape)
#define gridDim   (emu::grid_shape)

#define EMU_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(EMU_HERE) {
	emu::block_barrier({file, line});
}

inline void __syncwarp(EMU_HERE) {
	emu::warp_barrier({file, line});
}

namespace emu {

template <class T> struct shuffle_arg {
	T mine, theirs;
	unsigned source;
};

template <class T> void shuffle_lanes(void **args) {
	for (unsigned i = 0; i < warp_size; i++) {
		auto *a = static_cast<shuffle_arg<T> *>(args[i]);
		a->theirs = static_cast<shuffle_arg<T> *>(args[a->source])->mine;
	}
}

template <class T> T shuffle(unsigned mask, T value, unsigned source, place at) {
	if (mask != full_mask)
		fault(at, "a shuffle with the mask %08x: whole warps only", mask);
	shuffle_arg<T> arg{value, value, source % warp_size};
	collective(shuffle_lanes<T>, &arg, at);
	return arg.theirs;
}

} // namespace emu

template <class T> T __shfl_xor_sync(unsigned mask, T value, int lane_mask, EMU_HERE) {
	return emu::shuffle(mask, value, emu::self->lane ^ static_cast<unsigned>(lane_mask), {file, line});
}

template <class T> T __shfl_sync(unsigned mask, T value, int lane, EMU_HERE) {
	return emu::shuffle(mask, value, static_cast<unsigned>(lane), {file, line});
}

struct alignas(8) float2 {
	float x, y;
};
struct alignas(8) int2 {
	int x, y;
};
struct alignas(16) uint4 {
	uint32_t x, y, z, w;
};

inline void __stwb(uint4 *to, uint4 value) {
	*to = value;
}

inline uint32_t __float_as_uint(float f) {
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return u;
}

inline float __uint_as_float(uint32_t u) {
	float f;
	memcpy(&f, &u, sizeof f);
	return f;
}

struct __nv_bfloat16 {
	uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 b) {
	return __uint_as_float(static_cast<uint32_t>(b.bits) << 16);
}

// To nearest, ties to even; NaN as the hardware gives it.
inline __nv_bfloat16 __float2bfloat16_rn(float f) {
	uint32_t u = __float_as_uint(f);
	if ((u & 0x7fffffffu) > 0x7f800000u)
		return {0x7fff};
	return {static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16)};
}

inline float __fadd_rn(float a, float b) {
	return a + b;
}

inline float __fsub_rn(float a, float b) {
	return a - b;
}

inline float __fmul_rn(float a, float b) {
	return a * b;
}

inline float __fdiv_rn(float a, float b) {
	return a / b;
}

inline int __float2int_rn(float x) {
	return static_cast<int>(lrintf(x));
}

// A block's threads take turns, and so do blocks: nothing comes between.
template <class T, class U> inline T atomicMin(T *p, U value) {
	T old = *p;
	*p = static_cast<T>(value) < old ? static_cast<T>(value) : old;
	return old;
}

inline float __expf(float x) {
	return expf(x);
}

inline float rsqrtf(float x) {
	return 1.0f / sqrtf(x);
}

template <class T> inline T min(T a, T b) {
	return b < a ? b : a;
}

template <class T> inline T max(T a, T b) {
	return a < b ? b : a;
}

#endif
