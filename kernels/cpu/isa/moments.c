/* moments.c: blocks of 8-bit moments (kernels/moments_code.h) to floats and back, in vectors: the
 * same bits as kernels/moments.c.
 *
 * The idea: the update itself is ISA(adamw) on a block's 256 floats, which stay in the first cache;
 * of memory it reads p, g and two codes and writes p and the codes: 16 bytes per parameter instead
 * of 28. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/moments_code.h"

typedef uint8_t vb __attribute__((vector_size(VL)));
typedef uint8_t vb_unaligned __attribute__((vector_size(VL), aligned(1), may_alias));

RV_ALWAYS_INLINE vu vset1_u(uint32_t x) {
	return x - (vu){0};
}

RV_ALWAYS_INLINE vu vwiden(const uint8_t *p) {
	return __builtin_convertvector(*(const vb_unaligned *)p, vu);
}

RV_ALWAYS_INLINE void vnarrow(uint8_t *p, vu x) {
	*(vb_unaligned *)p = __builtin_convertvector(x, vb);
}

RV_ALWAYS_INLINE uint32_t bits_of(float x) {
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

RV_ALWAYS_INLINE vu magnitude(vu below, vu top) {
	const vu under = below * (uint32_t)MOMENTS_STEP;
	return (vu)(top > under) & (top - under);
}

void ISA(moments_decode)(float *m, float *v, const struct moments_block *b) {
	const vu m_top = vset1_u(bits_of(*b->m_top)), v_top = vset1_u(bits_of(*b->v_top));
	for (int i = 0; i < MOMENTS_BLOCK; i += VL) {
		const vu first = vwiden(b->m + i), second = vwiden(b->v + i), size = first & 0x7f;
		const vu m_bits = (first & MOMENTS_SIGN) << 24 | magnitude(MOMENTS_FIRST_CODES - size, m_top);
		vstore(m + i, (vf)((vu)(size != 0) & m_bits));
		vstore(v + i, (vf)((vu)(second != 0) & magnitude(MOMENTS_SECOND_CODES - second, v_top)));
	}
}

RV_ALWAYS_INLINE uint32_t top_of(const float *x) {
	vu top = {0};
	for (int i = 0; i < MOMENTS_BLOCK; i += VL) {
		const vu size = (vu)vload(x + i) & 0x7fffffff;
		const vu larger = (vu)(size > top);
		top = (larger & size) | (~larger & top);
	}
	uint32_t most = 0;
	for (int i = 0; i < VL; i++)
		most = top[i] > most ? top[i] : most;
	return most;
}

RV_ALWAYS_INLINE vu below_top(vu bits, vu top, vu draw) {
	return ((top - bits + draw * (uint32_t)MOMENTS_DRAW_UNIT) >> MOMENTS_STEP_SHIFT) * 43691 >> 17;
}

RV_ALWAYS_INLINE vu encode_first(vu bits, vu top, vu draw) {
	const vu size = bits & 0x7fffffff, below = below_top(size, top, draw);
	const vu kept = (vu)(size != 0) & (vu)(below < MOMENTS_FIRST_CODES);
	return kept & ((bits >> 24 & MOMENTS_SIGN) | (MOMENTS_FIRST_CODES - below));
}

RV_ALWAYS_INLINE vu encode_second(vu bits, vu top, vu draw) {
	const vu below = below_top(bits, top, draw), within = (vu)(below < MOMENTS_SECOND_CODES);
	return (vu)(bits != 0) & ((within & (MOMENTS_SECOND_CODES - below)) | (~within & 1));
}

void ISA(moments_encode)(const struct moments_block *b, const float *m, const float *v, uint32_t seed) {
	const uint32_t m_most = top_of(m), v_most = top_of(v);
	const vu m_top = vset1_u(m_most), v_top = vset1_u(v_most);
	vu place;
	for (int i = 0; i < VL; i++)
		place[i] = (uint32_t)i;
	for (int i = 0; i < MOMENTS_BLOCK; i += VL) {
		vu h = (seed + (place + (uint32_t)i) * 0x9e3779b9u) * 0x2c1b3c6du;
		h = (h ^ h >> 15) * 0x297a2d39u;
		h = h ^ h >> 16;
		vnarrow(b->m + i, encode_first((vu)vload(m + i), m_top, h & 0xffff));
		vnarrow(b->v + i, encode_second((vu)vload(v + i), v_top, h >> 16));
	}
	memcpy(b->m_top, &m_most, sizeof m_most);
	memcpy(b->v_top, &v_most, sizeof v_most);
}
