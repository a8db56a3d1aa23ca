/* gemm.c: packing, and the product of packed blocks, for the matrix product without oneDNN (kernels/cpu/cpu_gemm.c
 * has the blocking around it).
 *
 * The idea: copy both operands into panels in exactly the order in which the tile reads them, so that the inner loop
 * is sequential loads and multiply-adds whatever the transposes were. Panels of B stay in the first-level cache while
 * the tiles of a block of A (second-level cache) run over them. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/tile.h"
#include "kernels/cpu/isa/transpose.h"

static int min_int(int a, int b) {
	return a < b ? a : b;
}

/* One panel: `rows` <= width rows of the source, as dst[k * width + r]; lanes past rows are 0. Full vectors are stored
 * in ascending k, so what one spills into the next k is overwritten by it. */
static void pack_panel(float *dst, int width, const struct pack_source *s, int r0, int rows, int k) {
	if (s->k_major) {
		const float *src = s->p + r0;
		for (int i = 0; i < k; i++)
			for (int r = 0; r < width; r += VL)
				vstore(dst + (size_t)i * width + r, r < rows ? vload_n(src + i * s->ld + r, rows - r) : vset1(0));
		return;
	}
	const float *src = s->p + r0 * s->ld;
	for (int i = 0; i < k; i += VL)
		for (int r = 0; r < width; r += VL)
			transpose_block(dst + (size_t)i * width + r, width, src + r * s->ld + i, s->ld, rows - r, k - i, vset1(1));
}

void ISA(pack_a)(float *dst, const struct pack_source *src, int rows, int k) {
	for (int r = 0; r < rows; r += TILE_ROWS)
		pack_panel(dst + (size_t)r * k, TILE_ROWS, src, r, min_int(TILE_ROWS, rows - r), k);
}

void ISA(pack_b)(float *dst, const struct pack_source *src, int cols, int k) {
	for (int r = 0; r < cols; r += TILE_COLS)
		pack_panel(dst + (size_t)r * k, TILE_COLS, src, r, min_int(TILE_COLS, cols - r), k);
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

void ISA(multiply_packed)(const struct packed_product *p) {
	for (int j = 0; j < p->n; j += TILE_COLS)
		for (int i = 0; i < p->m; i += TILE_ROWS) {
			int rows = min_int(TILE_ROWS, p->m - i), cols = min_int(TILE_COLS, p->n - j);
			struct tile_args t = {.a = p->a + (size_t)i * p->k,
								  .b = p->b + (size_t)j * p->k,
								  .b_k = TILE_COLS,
								  .c = p->c + i * p->ldc + j,
								  .c_i = p->ldc,
								  .k = p->k,
								  .add = p->add};
			if (cols == TILE_COLS)
				tile(rows, TILE_VECTORS, 1, TILE_ROWS, &t);
			else
				edge_tile(p, t, rows, cols);
		}
}
