// adamw8.cu: the optimizer with moments in 8 bits (kernels/moments_code.h).
//
// A warp has a block of 256 moments, eight to a lane: it decodes them, updates as adamw.cu does,
// and encodes the new ones under the block's new top. It moves 16 B per parameter (p in and out, g
// and two codes in, two out), and 2 B more for the bf16 copy of p, where fp32 moments move 28.
#ifdef __CUDACC__ // the code's functions, on the device as well
#define MOMENTS_INLINE static __host__ __device__ __forceinline__
#endif

#include "kernels/cuda/adamw.cuh"
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce.cuh"

enum { LANE_ELEMS = MOMENTS_BLOCK / WARP, ADAMW8_THREADS = 256, ADAMW8_WARPS = ADAMW8_THREADS / WARP };
static_assert(LANE_ELEMS == sizeof(uint64_t), "a lane's codes are one access");

__device__ __forceinline__ uint32_t bits_of(float x) {
	return __float_as_uint(x);
}

// A lane's part of a block: `count` of its elements exist.
struct lane_place {
	size_t at;
	int count;
	__device__ bool whole() const { return count == LANE_ELEMS; }
};

__device__ __forceinline__ void load_some(float (&out)[LANE_ELEMS], const float *p, int count) {
#pragma unroll
	for (int i = 0; i < LANE_ELEMS; i++)
		out[i] = i < count ? p[i] : 0;
}

__device__ __forceinline__ void load_lane(float (&out)[LANE_ELEMS], const float *p, lane_place lane) {
	if (lane.whole())
		load<LANE_ELEMS>(out, p + lane.at);
	else
		load_some(out, p + lane.at, lane.count);
}

template <class T> __device__ __forceinline__ void store_lane(T *p, const float (&in)[LANE_ELEMS], lane_place lane) {
	if (lane.whole()) {
		store<LANE_ELEMS>(p + lane.at, in);
		return;
	}
#pragma unroll
	for (int i = 0; i < LANE_ELEMS; i++)
		if (i < lane.count)
			p[lane.at + i] = from_float<T>(in[i]);
}

// Eight codes as one word, which stays in registers: code i is byte i.
__device__ __forceinline__ uint8_t code_at(uint64_t codes, int i) {
	return (uint8_t)(codes >> 8 * i);
}

__device__ __forceinline__ void decode_lane(float (&m)[LANE_ELEMS], float (&v)[LANE_ELEMS], const adamw8_arrays &s,
											size_t at, size_t block) {
	const uint32_t m_top = bits_of(s.m_tops[block]), v_top = bits_of(s.v_tops[block]);
	const uint64_t m_codes = *reinterpret_cast<const uint64_t *>(s.m + at);
	const uint64_t v_codes = *reinterpret_cast<const uint64_t *>(s.v + at);
#pragma unroll
	for (int i = 0; i < LANE_ELEMS; i++) {
		m[i] = __uint_as_float(moments_decode_first(code_at(m_codes, i), m_top));
		v[i] = __uint_as_float(moments_decode_second(code_at(v_codes, i), v_top));
	}
}

// Returns the block's largest magnitude: that of floats is that of their bits.
__device__ __forceinline__ float top_of(const float (&x)[LANE_ELEMS]) {
	float top = 0;
#pragma unroll
	for (int i = 0; i < LANE_ELEMS; i++)
		top = fmaxf(top, fabsf(x[i]));
	return warp_max(top);
}

// Elements beyond the last parameter are 0, and so are their codes.
__device__ __forceinline__ void encode_lane(const adamw8_arrays &s, const float (&m)[LANE_ELEMS],
											const float (&v)[LANE_ELEMS], size_t at, size_t block, int lane) {
	const float m_most = top_of(m), v_most = top_of(v);
	const uint32_t m_top = bits_of(m_most), v_top = bits_of(v_most);
	const uint32_t seed = moments_seed(s.step, s.first_block + block);
	uint64_t m_codes = 0, v_codes = 0;
#pragma unroll
	for (int i = 0; i < LANE_ELEMS; i++) {
		const uint32_t draws = moments_draws(seed, (uint32_t)(lane * LANE_ELEMS + i));
		m_codes |= (uint64_t)moments_encode_first(bits_of(m[i]), m_top, draws & 0xffff) << 8 * i;
		v_codes |= (uint64_t)moments_encode_second(bits_of(v[i]), v_top, draws >> 16) << 8 * i;
	}
	*reinterpret_cast<uint64_t *>(s.m + at) = m_codes;
	*reinterpret_cast<uint64_t *>(s.v + at) = v_codes;
	if (lane == 0) {
		s.m_tops[block] = m_most;
		s.v_tops[block] = v_most;
	}
}

__global__ void __launch_bounds__(ADAMW8_THREADS) adamw8_kernel(adamw8_arrays s, adamw_consts a) {
	const size_t block = (size_t)blockIdx.x * ADAMW8_WARPS + threadIdx.x / WARP;
	if (block * MOMENTS_BLOCK >= s.n) // a whole warp
		return;
	const int lane = (int)threadIdx.x % WARP;
	const size_t at = block * MOMENTS_BLOCK + (size_t)lane * LANE_ELEMS;
	const size_t left = at < s.n ? s.n - at : 0;
	const lane_place place = {at, left < (size_t)LANE_ELEMS ? (int)left : (int)LANE_ELEMS};
	float p[LANE_ELEMS], g[LANE_ELEMS], m[LANE_ELEMS], v[LANE_ELEMS];
	decode_lane(m, v, s, at, block);
	load_lane(p, s.p, place);
	load_lane(g, s.g, place);
	int span = span_of(s.ends, s.n_spans, at);
#pragma unroll
	for (int i = 0; i < LANE_ELEMS; i++) {
		while (i < place.count && at + i >= s.ends[span])
			span++;
		adamw_element(&p[i], &m[i], &v[i], g[i], s.decays[span], a);
	}
	store_lane(s.p, p, place);
	if (s.p_bf16)
		store_lane(static_cast<bf16 *>(s.p_bf16), p, place);
	encode_lane(s, m, v, at, block, lane);
}

extern "C" void launch_adamw8(cudaStream_t stream, const struct adamw8_arrays *arrays, const struct adamw_params *a) {
	const adamw8_arrays s = *arrays;
	const adamw_consts constants = adamw_consts_of(a, (double)a->weight_decay);
	LAUNCH(adamw8_kernel, blocks_for(s.n, ADAMW8_WARPS * MOMENTS_BLOCK), ADAMW8_THREADS, 0, stream, s, constants);
}
