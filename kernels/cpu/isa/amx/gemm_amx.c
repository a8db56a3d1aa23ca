/* gemm_amx.c: packed products in bf16 by the tiles of Intel's AMX: one instruction multiplies 16
 * rows of 32 elements by 32 rows of 16 columns.
 *
 * The idea: a block of 32 x 32 of C stays in four tiles, so that four loads feed four products.
 * Words of B are what the instruction wants, in panels as word_bf16.h packs them for VDPBF16PS; A
 * is packed as its tiles: 16 rows of 16 words, one after the other. Sums begin with what C holds,
 * the same in a block that sticks out of C, so that no bit depends on where blocks begin. */
#include "kernels/cpu/isa/bf16/word_bf16.h"

#define WORDS_STEP 16 /* of k, which a tile holds */
#include "kernels/cpu/isa/amx/tiles.h"
#include "kernels/cpu/isa/pack.h"

enum {
	BLOCK = 32,
	PASS_WORDS = 512,
	GROUP_BYTES = 512 << 10 /* of panels of B: they stay in the second-level cache for all rows */
};
_Static_assert(BLOCK == 2 * VL && WORDS_STEP == VL, "a block is two tiles wide and high");

/* ---- packing ---- */

static void pack_tile_of_rows(float *tile, const float *src, ptrdiff_t ld, int rows, int left) {
	for (int i = 0; i < VL; i++)
		vstore(tile + i * WORDS_STEP, i < rows ? words_along_k(src + i * ld, left) : vset1(0));
}

static void pack_tile_of_columns(float *tile, const struct pack_source *s, const float *src, int rows, int left) {
	vf w[VL];
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++) {
		const float *at = src + (ptrdiff_t)i * K_PER_WORD * s->ld;
		for (int j = 0; j < K_PER_WORD; j++)
			__builtin_prefetch(at + (s->ahead + j) * s->ld, 0, 2);
		w[i] = words_along_row(at, s->ld, rows, left - i * K_PER_WORD);
	}
	vtranspose(w);
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++)
		vstore(tile + i * WORDS_STEP, w[i]);
}

/* Returns the tile of rows from r on, whole panels of BLOCK rows being `words` words long. */
static float *tile_of(float *dst, int r, int word, int words) {
	const int panel = r / BLOCK * BLOCK;
	return dst + (size_t)panel * words + word * BLOCK + (r - panel) / VL * AMX_TILE_WORDS;
}

static void pack_a(float *dst, const struct pack_source *s, int rows, int k) {
	const int words = words_of(k), padded = (rows + BLOCK - 1) / BLOCK * BLOCK;
	if (s->k_major) {
		const int panel = (int)panel_words(s, k);
		for (int w = 0; w < words; w += WORDS_STEP)
			for (int r = 0; r < padded; r += VL)
				pack_tile_of_columns(tile_of(dst, r, w, panel), s, s->p + (ptrdiff_t)w * K_PER_WORD * s->ld + r,
									 rows > r ? rows - r : 0, k - w * K_PER_WORD);
		return;
	}
	for (int r = 0; r < padded; r += VL)
		for (int w = 0; w < words; w += WORDS_STEP)
			pack_tile_of_rows(tile_of(dst, r, w, words), s->p + r * s->ld + w * K_PER_WORD, s->ld, rows - r,
							  k - w * K_PER_WORD);
}

static void pack_b(float *dst, const struct pack_source *src, int cols, int k) {
	if (src->k_major)
		pack_k_major(dst, BLOCK, BLOCK * panel_words(src, k), src, cols, k);
	else
		pack_row_major(dst, BLOCK, src, cols, k);
}

/* ---- products ---- */

/* Where a block's operands are, and what to prefetch meanwhile. */
struct operands {
	const float *a, *b, *ahead;
	const struct packed_product *p;
};

static void prefetch_word(const struct operands *o, int word) {
	for (int e = 0; e < K_PER_WORD; e++)
		__builtin_prefetch(o->ahead + word * o->p->ahead.word + e * o->p->ahead.element, 0, 2);
}

/* Computes a whole block of C, rows c_i floats apart; asks for C's lines before its loop, also
 * where it only writes them. */
static void block(const struct operands *o, float *c, ptrdiff_t c_i, bool add) {
	const ptrdiff_t c_bytes = c_i * 4;
	if (add) {
		AMX_LOAD(0, c, c_bytes);
		AMX_LOAD(1, c + VL, c_bytes);
		AMX_LOAD(2, c + VL * c_i, c_bytes);
		AMX_LOAD(3, c + VL * c_i + VL, c_bytes);
	} else {
		AMX_ZERO(0);
		AMX_ZERO(1);
		AMX_ZERO(2);
		AMX_ZERO(3);
	}
	for (int i = 0; i < BLOCK; i++)
		for (int j = 0; j < BLOCK; j += VL)
			__builtin_prefetch(c + i * c_i + j, 1);
	const float *a = o->a, *b = o->b;
	for (int k = 0; k < o->p->k_words; k += WORDS_STEP, a += 2 * AMX_TILE_WORDS, b += 2 * AMX_TILE_WORDS) {
		AMX_LOAD(6, b, BLOCK * 4);
		AMX_LOAD(4, a, AMX_ROW_BYTES);
		AMX_LOAD(7, b + VL, BLOCK * 4);
		AMX_MULTIPLY(0, 4, 6);
		AMX_LOAD(5, a + AMX_TILE_WORDS, AMX_ROW_BYTES);
		AMX_MULTIPLY(1, 4, 7);
		AMX_MULTIPLY(2, 5, 6);
		AMX_MULTIPLY(3, 5, 7);
		for (int w = 0; o->ahead && w < WORDS_STEP; w++)
			prefetch_word(o, k + w);
	}
	AMX_STORE(0, c, c_bytes);
	AMX_STORE(1, c + VL, c_bytes);
	AMX_STORE(2, c + VL * c_i, c_bytes);
	AMX_STORE(3, c + VL * c_i + VL, c_bytes);
}

/* Computes a block that sticks out of C: beside it, then copies the part inside. */
static void edge_block(const struct operands *o, float *c, int rows, int cols) {
	float beside[BLOCK * BLOCK] = {0};
	const struct packed_product *p = o->p;
	for (int i = 0; p->add && i < rows; i++)
		memcpy(beside + i * BLOCK, c + i * p->ldc, (size_t)cols * sizeof *c);
	block(o, beside, BLOCK, p->add);
	for (int i = 0; i < rows; i++)
		memcpy(c + i * p->ldc, beside + i * BLOCK, (size_t)cols * sizeof *c);
}

/* Computes the block of C at row i and column j. */
static void block_at(const struct packed_product *p, int i, int j, const float *ahead) {
	const int rows = min_int(BLOCK, p->m - i), cols = min_int(BLOCK, p->n - j);
	const struct operands o = {p->a + (size_t)i * p->k_words, p->b + (size_t)j * p->k_words, ahead, p};
	float *c = p->c + i * p->ldc + j;
	if (rows == BLOCK && cols == BLOCK)
		block(&o, c, p->ldc, p->add);
	else
		edge_block(&o, c, rows, cols);
}

/* Goes along the rows of C, which are long, as far as B stays near. */
static void multiply(const struct packed_product *p) {
	const int panels = GROUP_BYTES / (BLOCK * 4 * p->k_words), group = panels > 1 ? panels * BLOCK : BLOCK;
	int count = 0;
	amx_configure();
	for (int from = 0; from < p->n; from += group)
		for (int i = 0; i < p->m; i += BLOCK)
			for (int j = from; j < min_int(p->n, from + group); j += BLOCK) {
				const bool asks = p->ahead.p && count < p->ahead.tiles;
				block_at(p, i, j, asks ? p->ahead.p + count++ * p->ahead.tile : NULL);
			}
	amx_release();
}

const struct gemm_kernels gemm_bf16_amx = {.name = "bf16 tiles",
										   .rows = BLOCK,
										   .cols = BLOCK,
										   .k_per_word = K_PER_WORD,
										   .words_step = WORDS_STEP,
										   .pass_words = PASS_WORDS,
										   .pack_a = pack_a,
										   .pack_b = pack_b,
										   .multiply = multiply};
