/* gemm_panels.h: packing, and the product of packed panels; a template. The file that includes it has defined
 *   K_PER_WORD                     elements of k in one word (4 bytes) of a panel,
 *   words_along_k(src, left)       VL words of consecutive k from `src`, where `left` elements remain,
 *   words_along_row(src, ld, rows, left)   one word each of `rows` consecutive rows (up to VL) of a k-major source,
 *                                  where `left` elements of k remain; the other lanes are 0,
 *   TILE_BROADCAST, TILE_MULTIPLY_ADD      where they are not those of tile.h.
 *
 * The idea: copy both operands into panels in exactly the order in which the tile reads them, so that the inner loop is
 * sequential loads and multiply-adds whatever the transposes were. */
#ifndef RV_KERNELS_CPU_ISA_GEMM_PANELS_H
#define RV_KERNELS_CPU_ISA_GEMM_PANELS_H

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/tile.h"
#include "kernels/cpu/isa/transpose.h"

/* Rows of a strided source asked for ahead of time: the processor's own prefetching does not follow them. */
enum { PREFETCH_ROWS = 16 };

static int min_int(int a, int b) {
	return a < b ? a : b;
}

static int words_of(int k) {
	return (k + K_PER_WORD - 1) / K_PER_WORD;
}

/* Word by word of k, all panels of it at once: the source is read along its rows. A vector stored for a narrow panel
 * spills into its next word, which is written after it; only the last word has to stop at the panel's edge. */
RV_ALWAYS_INLINE void pack_k_major(float *dst, int width, const struct pack_source *s, int rows, int k) {
	int words = words_of(k);
	for (int i = 0; i < words; i++) {
		const float *src = s->p + (ptrdiff_t)i * K_PER_WORD * s->ld;
		for (int r = 0; r < rows; r += width)
			for (int lane = 0; lane < width; lane += VL) {
				const float *at = src + r + lane;
				for (int j = 0; j < K_PER_WORD; j++)
					__builtin_prefetch(at + (PREFETCH_ROWS + j) * s->ld);
				int left = rows - r - lane;
				vf v = left > 0 ? words_along_row(at, s->ld, left, k - i * K_PER_WORD) : vset1(0);
				vstore_n(dst + (size_t)r * words + i * width + lane, v, i + 1 < words ? VL : width - lane);
			}
	}
}

/* VL words of VL rows, transposed. Words are stored in ascending order, so that spills are overwritten. */
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

RV_ALWAYS_INLINE void pack_row_major(float *dst, int width, const struct pack_source *s, int rows, int k) {
	int words = words_of(k);
	for (int r = 0; r < rows; r += width)
		for (int i = 0; i < words; i += VL)
			for (int lane = 0; lane < width; lane += VL)
				pack_block(dst + (size_t)r * words + i * width + lane, width,
						   s->p + (r + lane) * s->ld + i * K_PER_WORD, s->ld, min_int(rows - r, width) - lane,
						   k - i * K_PER_WORD);
}

static void pack_a(float *dst, const struct pack_source *src, int rows, int k) {
	if (src->k_major)
		pack_k_major(dst, TILE_ROWS, src, rows, k);
	else
		pack_row_major(dst, TILE_ROWS, src, rows, k);
}

static void pack_b(float *dst, const struct pack_source *src, int cols, int k) {
	if (src->k_major)
		pack_k_major(dst, TILE_COLS, src, cols, k);
	else
		pack_row_major(dst, TILE_COLS, src, cols, k);
}

/* A tile that sticks out of C: computed beside it, then the part inside is copied. */
static void edge_tile(const struct packed_product *p, struct tile_args t, int rows, int cols) {
	float beside[TILE_ROWS * TILE_COLS];
	float *c = t.c;
	t.c = beside;
	t.c_i = TILE_COLS;
	t.add = false;
	tile(rows, TILE_VECTORS, 1, TILE_ROWS, &t);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < cols; j++) {
			float *at = c + i * p->ldc + j;
			*at = p->add ? *at + beside[i * TILE_COLS + j] : beside[i * TILE_COLS + j];
		}
}

static void multiply(const struct packed_product *p) {
	for (int j = 0; j < p->n; j += TILE_COLS)
		for (int i = 0; i < p->m; i += TILE_ROWS) {
			int rows = min_int(TILE_ROWS, p->m - i), cols = min_int(TILE_COLS, p->n - j);
			struct tile_args t = {.a = p->a + (size_t)i * p->k_words,
								  .b = p->b + (size_t)j * p->k_words,
								  .b_k = TILE_COLS,
								  .c = p->c + i * p->ldc + j,
								  .c_i = p->ldc,
								  .k = p->k_words,
								  .add = p->add};
			if (cols == TILE_COLS)
				tile(rows, TILE_VECTORS, 1, TILE_ROWS, &t);
			else
				edge_tile(p, t, rows, cols);
		}
}

#define GEMM_KERNELS(label)                                                                                            \
	{                                                                                                                  \
		.name = (label), .rows = TILE_ROWS, .cols = TILE_COLS, .k_per_word = K_PER_WORD, .pack_a = pack_a,             \
		.pack_b = pack_b, .multiply = multiply                                                                         \
	}

#endif
