/* gemm.c: packing, and the product of packed blocks, for the matrix product without oneDNN (kernels/cpu/cpu_gemm.c
 * has the blocking around it).
 *
 * The idea: copy both operands into panels in exactly the order in which the tile reads them, so that the inner loop
 * is sequential loads and multiply-adds whatever the transposes were. Panels of B stay in the first-level cache while
 * the tiles of a block of A (second-level cache) run over them. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/tile.h"
#include "kernels/cpu/isa/transpose.h"

/* Rows of a strided source asked for ahead of time: the processor's own prefetching does not follow them. */
enum { PREFETCH_ROWS = 16 };

static int min_int(int a, int b) {
	return a < b ? a : b;
}

/* k by k, all panels of it at once: the source is read along its rows. A vector stored for a narrow panel spills into
 * its next k, which is written after it; only the last k has to stop at the panel's edge. */
static void pack_k_major(float *dst, int width, const struct pack_source *s, int rows, int k) {
	for (int i = 0; i < k; i++) {
		const float *src = s->p + i * s->ld;
		for (int r = 0; r < rows; r += width)
			for (int lane = 0; lane < width; lane += VL) {
				int left = rows - r - lane;
				__builtin_prefetch(src + PREFETCH_ROWS * s->ld + r + lane);
				vf v = left > 0 ? vload_n(src + r + lane, left) : vset1(0);
				vstore_n(dst + (size_t)r * k + i * width + lane, v, i + 1 < k ? VL : width - lane);
			}
	}
}

/* Panel by panel: blocks of VL of its rows by VL of k, transposed. Stored in ascending k, so spills are overwritten. */
static void pack_row_major(float *dst, int width, const struct pack_source *s, int rows, int k) {
	for (int r = 0; r < rows; r += width)
		for (int i = 0; i < k; i += VL)
			for (int lane = 0; lane < width; lane += VL)
				transpose_block(dst + (size_t)r * k + i * width + lane, width, s->p + (r + lane) * s->ld + i, s->ld,
								min_int(rows - r, width) - lane, k - i, vset1(1));
}

void ISA(pack_a)(float *dst, const struct pack_source *src, int rows, int k) {
	(src->k_major ? pack_k_major : pack_row_major)(dst, TILE_ROWS, src, rows, k);
}

void ISA(pack_b)(float *dst, const struct pack_source *src, int cols, int k) {
	(src->k_major ? pack_k_major : pack_row_major)(dst, TILE_COLS, src, cols, k);
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
