/* attention_amx.c: attention with products in bf16 by AMX's tiles: attention_blocks.h with a tile
 * of 16 rows and 32 columns, which two tile registers hold. Rows of keys are what the instruction
 * wants of operand A, and all panels what it wants of B; probabilities that are read against their
 * rows are transposed 16 words at a time. Lengths of k are rounded up to whole tiles: what is
 * beyond is 0 on one side, and finite on the other. */
#include "kernels/cpu/isa/bf16/word_bf16.h"

#define WORDS_STEP 16
#include "kernels/cpu/isa/amx/tiles.h"
#include "kernels/cpu/isa/pack.h"

enum { TILE_ROWS = AMX_ROWS, TILE_VECTORS = 2, TILE_COLS = TILE_VECTORS * VL };
#include "kernels/cpu/isa/tile_args.h"

/* Writes a tile of A of which word k of row i is at a[k * a_k + i]. */
static void transpose_tile(float out[AMX_TILE_WORDS], const float *a, ptrdiff_t a_k) {
	vf w[VL];
#pragma GCC unroll 16
	for (int k = 0; k < VL; k++)
		w[k] = vload(a + k * a_k);
	vtranspose(w);
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++)
		vstore(out + i * AMX_WORDS, w[i]);
}

/* Computes all rows of a tile into c, rows c_i floats apart. */
static void whole_tile(float *c, ptrdiff_t c_i, int nv, ptrdiff_t a_i, ptrdiff_t a_k, const struct tile_args *t) {
	float transposed[AMX_TILE_WORDS];
	if (t->add) {
		AMX_LOAD(0, c, c_i * 4);
		if (nv > 1)
			AMX_LOAD(1, c + VL, c_i * 4);
	} else {
		AMX_ZERO(0);
		AMX_ZERO(1);
	}
	for (int k = 0; k < t->k; k += AMX_WORDS) {
		const float *a = t->a + k * a_k, *b = t->b + k * t->b_k;
		if (a_k == 1) {
			AMX_LOAD(4, a, a_i * 4);
		} else {
			transpose_tile(transposed, a, a_k);
			AMX_LOAD(4, transposed, AMX_ROW_BYTES);
		}
		AMX_LOAD(6, b, t->b_k * 4);
		AMX_MULTIPLY(0, 4, 6);
		if (nv > 1) {
			AMX_LOAD(7, b + VL, t->b_k * 4);
			AMX_MULTIPLY(1, 4, 7);
		}
	}
	AMX_STORE(0, c, c_i * 4);
	if (nv > 1)
		AMX_STORE(1, c + VL, c_i * 4);
}

/* Computes a tile of mr rows in 1..TILE_ROWS; fewer than all beside C. */
static void tile(int mr, int nv, ptrdiff_t a_i, ptrdiff_t a_k, const struct tile_args *t) {
	float beside[TILE_ROWS * TILE_COLS] = {0};
	const size_t bytes = (size_t)nv * VL * sizeof *beside;
	if (mr == TILE_ROWS) {
		whole_tile(t->c, t->c_i, nv, a_i, a_k, t);
		return;
	}
	for (int i = 0; t->add && i < mr; i++)
		memcpy(beside + i * TILE_COLS, t->c + i * t->c_i, bytes);
	whole_tile(beside, TILE_COLS, nv, a_i, a_k, t);
	for (int i = 0; i < mr; i++)
		memcpy(t->c + i * t->c_i, beside + i * TILE_COLS, bytes);
}

#define TILES_BEGIN() amx_configure()
#define TILES_END()   amx_release()
#include "kernels/cpu/isa/attention_blocks.h"

const struct attention_kernels attention_bf16_amx = ATTENTION_KERNELS;
