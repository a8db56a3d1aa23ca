/* tile.h: the inner loop of every matrix product here: an mr x (nv * VL) tile of C held in
 * registers.
 *
 * Per step of k it loads nv vectors of B once and broadcasts mr values of A, so 2 * mr * nv * VL
 * operations cost mr + nv loads. 14 x 2 vectors fill the 32 registers of AVX-512, 6 x 2 the 16 of
 * AVX2. NEON multiplies by one lane of a register, so values of A take registers too: 8 x 2 leave
 * room for them (with 12 rows gcc 12 spills four sums in the loop, with 8 none). A is read as a[i *
 * a_i + k * a_k]: packed panels and transposed blocks have a_i = 1; blocks written by a tile have
 * a_k = 1. */
#ifndef RV_KERNELS_CPU_ISA_TILE_H
#define RV_KERNELS_CPU_ISA_TILE_H

#include "kernels/cpu/isa/tile_args.h"
#include "kernels/cpu/isa/vec.h"

/* Adds to a vector of C the product of one word of A (4 bytes) and a vector of B. word_bf16.h has
 * words of two bf16. */
#ifndef TILE_MULTIPLY_ADD
#define TILE_BROADCAST(p)          vset1(*(p))
#define TILE_MULTIPLY_ADD(a, b, c) vfma(a, b, c)
#endif

#if defined(__AVX512F__)
enum { TILE_ROWS = 14 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 6 };
#elif defined(RV_NEON)
enum { TILE_ROWS = 8 };
#else
enum { TILE_ROWS = 4 };
#endif
enum { TILE_VECTORS = 2, TILE_COLS = TILE_VECTORS * VL };
_Static_assert((int)TILE_ROWS <= (int)VL || TILE_ROWS % VL == 0,
			   "packing a panel of A stores one vector per k, or whole ones");

/* Asks for C's lines before its loop, as they are further away than A and B, also where it only
 * writes them. */
RV_ALWAYS_INLINE void tile_fixed(int mr, int nv, ptrdiff_t a_i, ptrdiff_t a_k, const struct tile_args *t) {
	vf acc[TILE_ROWS][TILE_VECTORS];
	const float *a = t->a, *b = t->b;
#pragma GCC unroll 14
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int j = 0; j < nv; j++)
			acc[i][j] = vset1(0);
#pragma GCC unroll 14
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int j = 0; j < nv; j++)
			__builtin_prefetch(t->c + i * t->c_i + j * VL, 1);
	const float *ahead = t->ahead ? t->ahead : t->b;
	for (int k = 0; k < t->k; k++, a += a_k, b += t->b_k, ahead += t->ahead_word) {
		for (int e = 0; e < K_PER_WORD; e++)
			__builtin_prefetch(ahead + e * t->ahead_element, 0, 2);
		vf b0 = vload(b), b1 = nv > 1 ? vload(b + VL) : b0;
#pragma GCC unroll 14
		for (int i = 0; i < mr; i++) {
			vf x = TILE_BROADCAST(a + i * a_i);
			acc[i][0] = TILE_MULTIPLY_ADD(x, b0, acc[i][0]);
			if (nv > 1)
				acc[i][1] = TILE_MULTIPLY_ADD(x, b1, acc[i][1]);
		}
	}
#pragma GCC unroll 14
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int j = 0; j < nv; j++) {
			float *c = t->c + i * t->c_i + j * VL;
			vstore(c, t->add ? vload(c) + acc[i][j] : acc[i][j]);
		}
}

#define TILE_CASE_(mr)                                                                                                 \
	case mr:                                                                                                           \
		tile_fixed(mr, nv, a_i, a_k, t);                                                                               \
		return;

/* Computes a tile of mr rows in 1..TILE_ROWS. The strides of A are arguments so that a constant one
 * becomes part of the addresses. */
RV_ALWAYS_INLINE void tile(int mr, int nv, ptrdiff_t a_i, ptrdiff_t a_k, const struct tile_args *t) {
	switch (mr) {
#if defined(__AVX512F__)
		TILE_CASE_(14)
		TILE_CASE_(13)
		TILE_CASE_(12)
		TILE_CASE_(11)
		TILE_CASE_(10)
		TILE_CASE_(9)
#endif
#if defined(__AVX512F__) || defined(RV_NEON)
		TILE_CASE_(8)
		TILE_CASE_(7)
#endif
#if defined(__AVX2__) || defined(RV_NEON)
		TILE_CASE_(6)
		TILE_CASE_(5)
#endif
		TILE_CASE_(4)
		TILE_CASE_(3)
		TILE_CASE_(2)
		TILE_CASE_(1)
	default:
		__builtin_unreachable();
	}
}

#endif
