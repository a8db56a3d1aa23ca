// outer_blocks.cu: the outer gradient as blocks of scaled integers, and the outer step: bit for bit
// the results of outer/codec_int8.c, outer/codec_int16.c, outer/nesterov.c and outer/sgd.c on the
// host. Every operation is one correctly rounded fp32 one: written as such, so that no compiler may
// contract two into one, and this file is compiled with -fmad=false as well. 17 bytes per parameter
// with int8, 18 with int16.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch_outer.h"

enum { CODEC_BLOCK = 256, CODEC_WARPS = 8, PER_LANE = CODEC_BLOCK / WARP };

static const unsigned SCALE_KEPT_BITS = 0xffffff80u, SCALE_HALF_STEP = 0x40u, INF_BITS = 0x7f800000u;

// The scales of the codecs (struct block_format of their files).
struct scales {
	float code_max, least_absmax /* code_max * 2^-126 */, most;
};
template <class Code> static __device__ __forceinline__ scales scales_of();
template <> __device__ __forceinline__ scales scales_of<int8_t>() {
	return {127, 0x1.fcp-120f, 0x1.0204p+121f};
}
template <> __device__ __forceinline__ scales scales_of<int16_t>() {
	return {32767, 0x1.fffcp-112f, 0x1.0001p+113f};
}

// Returns the scale of 17 significant bits, as outer/codec_block.c; 0 where denormals would take
// part.
static __device__ __forceinline__ float block_scale(scales s, float absmax) {
	if (absmax < s.least_absmax)
		return 0;
	float quotient = __fdiv_rn(absmax, s.code_max);
	float scale = __uint_as_float((__float_as_uint(quotient) + SCALE_HALF_STEP) & SCALE_KEPT_BITS);
	return scale < s.most ? scale : s.most;
}

static __device__ __forceinline__ unsigned warp_max_bits(unsigned x) {
#pragma unroll
	for (int lanes = WARP / 2; lanes; lanes /= 2) {
		unsigned other = __shfl_xor_sync(FULL_WARP, x, lanes);
		x = x > other ? x : other;
	}
	return x;
}

// Encodes a block by a warp: lane l has values l, l + 32, ... of it.
template <class Code> __global__ void __launch_bounds__(CODEC_WARPS *WARP) outer_encode_kernel(struct outer_encode p) {
	size_t block = (size_t)blockIdx.x * CODEC_WARPS + threadIdx.x / WARP, begin = block * CODEC_BLOCK;
	size_t lane = threadIdx.x % WARP;
	float d[PER_LANE];
	unsigned most = 0;
	if (begin >= p.n) // whole warps
		return;
#pragma unroll
	for (int j = 0; j < PER_LANE; j++) {
		size_t i = begin + lane + (size_t)j * WARP;
		d[j] = 0;
		if (i >= p.n)
			continue;
		d[j] = __fsub_rn(p.theta[i], p.local[i]);
		if (p.residual)
			d[j] = __fadd_rn(d[j], p.residual[i]);
		unsigned magnitude = __float_as_uint(d[j]) & 0x7fffffffu;
		if (magnitude >= INF_BITS)
			atomicMin(p.bad, p.first + i);
		most = magnitude > most ? magnitude : most;
	}
	most = warp_max_bits(most);
	if (most >= INF_BITS)
		return;
	Code *codes = (Code *)p.codes;
	float scale = block_scale(scales_of<Code>(), __uint_as_float(most)), inverse = scale > 0 ? __fdiv_rn(1, scale) : 0;
	if (lane == 0)
		p.scales[block] = scale;
#pragma unroll
	for (int j = 0; j < PER_LANE; j++) {
		size_t i = begin + lane + (size_t)j * WARP;
		if (i >= p.n)
			continue;
		int q = scale > 0 ? __float2int_rn(__fmul_rn(d[j], inverse)) : 0;
		codes[i] = (Code)q;
		if (p.residual)
			p.residual[i] = __fsub_rn(d[j], __fmul_rn((float)q, scale));
	}
}

extern "C" void launch_outer_encode(cudaStream_t stream, const struct outer_encode *p) {
	const struct outer_encode args = *p;
	const unsigned blocks = blocks_for(p->n, CODEC_BLOCK * CODEC_WARPS);
	if (p->code == OUTER_INT8)
		LAUNCH(outer_encode_kernel<int8_t>, blocks, CODEC_WARPS * WARP, 0, stream, args);
	else
		LAUNCH(outer_encode_kernel<int16_t>, blocks, CODEC_WARPS * WARP, 0, stream, args);
}

template <class Code> __global__ void __launch_bounds__(CODEC_BLOCK) outer_apply_kernel(struct outer_apply p) {
	size_t i = (size_t)blockIdx.x * CODEC_BLOCK + threadIdx.x;
	if (i >= p.n)
		return;
	float d = __fmul_rn((float)((const Code *)p.codes)[i], p.scales[blockIdx.x]), theta = p.theta[i];
	if (p.step.kind == OUTER_STEP_NESTEROV) {
		float momentum = __fadd_rn(__fmul_rn(p.step.momentum, p.momentum[i]), d);
		p.momentum[i] = momentum;
		d = __fadd_rn(d, __fmul_rn(p.step.momentum, momentum));
	}
	theta = __fsub_rn(theta, __fmul_rn(p.step.lr, d));
	p.theta[i] = theta;
	if (p.local)
		p.local[i] = theta;
}

extern "C" void launch_outer_apply(cudaStream_t stream, const struct outer_apply *p) {
	const struct outer_apply args = *p;
	if (p->code == OUTER_INT8)
		LAUNCH(outer_apply_kernel<int8_t>, blocks_for(p->n, CODEC_BLOCK), CODEC_BLOCK, 0, stream, args);
	else
		LAUNCH(outer_apply_kernel<int16_t>, blocks_for(p->n, CODEC_BLOCK), CODEC_BLOCK, 0, stream, args);
}
