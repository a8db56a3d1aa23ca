/* pack.h: packing operands of products into panels, in exactly the order in which the tile reads
 * them. The file that includes it has included one of word_fp32.h, word_rounded.h and word_bf16.h,
 * which define a word of a panel (4 bytes):
 *   K_PER_WORD      elements of k in one word,
 *   word_lanes(v)   words of the consecutive lanes of K_PER_WORD vectors, VL * K_PER_WORD elements
 *                   of k of one row,
 *   word_rows(v)    words of as many rows as there are lanes; vector j holds their element j of k,
 *   TILE_BROADCAST, TILE_MULTIPLY_ADD   where they are not those of tile.h. */
#ifndef RV_KERNELS_CPU_ISA_PACK_H
#define RV_KERNELS_CPU_ISA_PACK_H

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/transpose.h"

enum { TOKENS_AHEAD = 16 }; /* rows of tokens to prefetch: pack_source.ahead */

RV_ALWAYS_INLINE int min_int(int a, int b) {
	return a < b ? a : b;
}

#ifndef WORDS_STEP
#define WORDS_STEP 1
#endif

RV_ALWAYS_INLINE int words_of(int k) {
	return (k + WORDS_STEP * K_PER_WORD - 1) / (WORDS_STEP * K_PER_WORD) * WORDS_STEP;
}

/* Returns the words of a panel of which k elements are packed. */
RV_ALWAYS_INLINE size_t panel_words(const struct pack_source *s, int k) {
	return (size_t)(s->panel_words ? s->panel_words : words_of(k));
}

/* Returns VL words of consecutive k from `src`, where `left` elements remain, padded with 0. */
RV_ALWAYS_INLINE vf words_along_k(const float *src, int left) {
	vf v[K_PER_WORD];
	for (int j = 0; j < K_PER_WORD; j++)
		v[j] = left > j * VL ? vload_n(src + j * VL, left - j * VL) : vset1(0);
	return word_lanes(v);
}

/* Returns one word each of `rows` consecutive rows (up to VL) of a k-major source, where `left`
 * elements of k remain. */
RV_ALWAYS_INLINE vf words_along_row(const float *src, ptrdiff_t ld, int rows, int left) {
	vf v[K_PER_WORD];
	for (int j = 0; j < K_PER_WORD; j++)
		v[j] = left > j ? vload_n(src + j * ld, rows) : vset1(0);
	return word_rows(v);
}

/* Packs word by word of k, all panels at once: the source is read along its rows. Panels are
 * `panel` words apart. A vector stored for a narrow panel spills into its next word, which is
 * written after it; only the last word must stop at the panel's edge. */
RV_ALWAYS_INLINE void pack_k_major(float *dst, int width, size_t panel, const struct pack_source *s, int rows, int k) {
	int words = words_of(k);
	for (int i = 0; i < words; i++) {
		const float *src = s->p + (ptrdiff_t)i * K_PER_WORD * s->ld;
		float *word = dst + i * width;
		for (int r = 0; r < rows; r += width, word += panel)
			for (int lane = 0; lane < width; lane += VL) {
				const float *at = src + r + lane;
				for (int j = 0; j < K_PER_WORD; j++)
					__builtin_prefetch(at + (s->ahead + j) * s->ld, 0, 2);
				int left = rows - r - lane;
				vf v = left > 0 ? words_along_row(at, s->ld, left, k - i * K_PER_WORD) : vset1(0);
				vstore_n(word + lane, v, i + 1 < words ? VL : width - lane);
			}
	}
}

/* Packs VL words of VL rows, transposed. Words are stored in ascending order, so that spills are
 * overwritten. */
RV_ALWAYS_INLINE void pack_block(float *dst, int width, const float *src, ptrdiff_t ld, int rows, int k) {
	vf w[VL];
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++)
		w[i] = i < rows ? words_along_k(src + i * ld, k) : vset1(0);
	vtranspose(w);
	if (k >= VL * K_PER_WORD) {
#pragma GCC unroll 16
		for (int i = 0; i < VL; i++)
			vstore(dst + i * width, w[i]);
		return;
	}
	for (int i = 0; i < VL && i < words_of(k); i++)
		vstore(dst + i * width, w[i]);
}

/* Packs VL rows at a time: the processor's own prefetching follows so many, and not twice as
 * many. */
RV_ALWAYS_INLINE void pack_row_major(float *dst, int width, const struct pack_source *s, int rows, int k) {
	int words = words_of(k);
	for (int r = 0; r < rows; r += width)
		for (int lane = 0; lane < width; lane += VL)
			for (int i = 0; i < words; i += VL)
				pack_block(dst + (size_t)r * words + i * width + lane, width,
						   s->p + (r + lane) * s->ld + i * K_PER_WORD, s->ld, min_int(rows - r, width) - lane,
						   k - i * K_PER_WORD);
}

#endif
