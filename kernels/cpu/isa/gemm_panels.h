/* gemm_panels.h: the product of packed panels (pack.h); a template. The file that includes it has
 * included one of the word_*.h.
 *
 * The idea: copy both operands into panels in exactly the order in which the tile reads them, so
 * that the inner loop is sequential loads and multiply-adds whatever the transposes were. */
#ifndef RV_KERNELS_CPU_ISA_GEMM_PANELS_H
#define RV_KERNELS_CPU_ISA_GEMM_PANELS_H

#include "kernels/cpu/isa/pack.h"
#include "kernels/cpu/isa/tile.h"

static void pack_a(float *dst, const struct pack_source *src, int rows, int k) {
	if (src->k_major)
		pack_k_major(dst, TILE_ROWS, TILE_ROWS * panel_words(src, k), src, rows, k);
	else
		pack_row_major(dst, TILE_ROWS, src, rows, k);
}

static void pack_b(float *dst, const struct pack_source *src, int cols, int k) {
	if (src->k_major)
		pack_k_major(dst, TILE_COLS, TILE_COLS * panel_words(src, k), src, cols, k);
	else
		pack_row_major(dst, TILE_COLS, src, cols, k);
}

/* Computes a tile that sticks out of C: beside it, then copies the part inside. */
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
	int count = 0;
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
			if (p->ahead.p && count < p->ahead.tiles) {
				t.ahead = p->ahead.p + count++ * p->ahead.tile;
				t.ahead_word = p->ahead.word;
				t.ahead_element = p->ahead.element;
			}
			if (cols == TILE_COLS)
				tile(rows, TILE_VECTORS, 1, TILE_ROWS, &t);
			else
				edge_tile(p, t, rows, cols);
		}
}

#define GEMM_KERNELS(label)                                                                                            \
	{                                                                                                                  \
		.name = (label), .rows = TILE_ROWS, .cols = TILE_COLS, .k_per_word = K_PER_WORD, .words_step = WORDS_STEP,     \
		.pass_words = 512, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply                                    \
	}

#endif
