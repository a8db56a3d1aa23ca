/* cpu_gemm.c: the matrix product: which implementation, and the blocking of our own.
 *
 * Ours (after Goto & van de Geijn 2008): B is packed k_block x COL_BLOCK at a time, by all threads, into panels that
 * stay in the shared cache; each task packs a block of A that fits its core's second-level cache and multiplies. The
 * order of summation of an element of C depends on k alone, so neither tasks nor threads change its bits. */
#include "kernels/cpu/cpu.h"

#include "base/assert.h"

enum {
	K_BLOCK = 512,
	COL_BLOCK = 3072,      /* x K_BLOCK x 4 bytes = 6 MiB of packed B */
	ROW_BLOCK_PANELS = 10, /* x 14 rows x K_BLOCK x 4 bytes = 280 KiB of packed A */
	PACK_COLS = 128,       /* columns of B that one packing task takes */
	TASKS_PER_THREAD = 3,  /* below this, rows alone do not keep all threads busy */
	SPILL = 16             /* see pack_a */
};

struct blocking {
	const struct gemm *g;
	const struct isa_kernels *isa;
	float *packed_a, *packed_b;
	int row_block, col_group; /* of one task */
	int row_blocks;
	size_t a_size;       /* floats of packed A of one thread */
	int j0, cols, k0, k; /* the part of B that is packed now */
};

static int min_int(int a, int b) {
	return a < b ? a : b;
}

static int ceil_div(int a, int b) {
	return (a + b - 1) / b;
}

static void pack_b_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct blocking *s = ctx;
	const struct gemm *g = s->g;
	int j = task * PACK_COLS, cols = min_int(PACK_COLS, s->cols - j);
	ptrdiff_t row = g->tb ? s->j0 + j : s->k0, col = g->tb ? s->k0 : s->j0 + j;
	struct pack_source src = {.p = g->b + row * g->ldb + col, .ld = g->ldb, .k_major = !g->tb};
	s->isa->pack_b(s->packed_b + (size_t)j * s->k, &src, cols, s->k);
}

static void multiply_task(void *ctx, int task, int thread) {
	const struct blocking *s = ctx;
	const struct gemm *g = s->g;
	int i = task % s->row_blocks * s->row_block, j = task / s->row_blocks * s->col_group;
	int rows = min_int(s->row_block, g->m - i);
	float *packed = s->packed_a + (size_t)thread * s->a_size;
	ptrdiff_t row = g->ta ? s->k0 : i, col = g->ta ? i : s->k0;
	struct pack_source src = {.p = g->a + row * g->lda + col, .ld = g->lda, .k_major = g->ta};
	s->isa->pack_a(packed, &src, rows, s->k);
	struct packed_product p = {.a = packed,
							   .b = s->packed_b + (size_t)j * s->k,
							   .c = g->c + (ptrdiff_t)i * g->ldc + s->j0 + j,
							   .ldc = g->ldc,
							   .m = rows,
							   .n = min_int(s->col_group, s->cols - j),
							   .k = s->k,
							   .add = g->add || s->k0 > 0};
	s->isa->multiply_packed(&p);
}

/* Rows in even blocks of whole panels; when those are too few for the threads, columns are cut as well. */
static void cut_tasks(struct blocking *s, int threads) {
	int panel = s->isa->gemm_rows, panels = ceil_div(s->g->m, panel);
	int blocks = ceil_div(panels, ROW_BLOCK_PANELS);
	s->row_block = ceil_div(panels, blocks) * panel;
	s->row_blocks = ceil_div(s->g->m, s->row_block);
	int wanted = threads == 1 ? 1 : threads * TASKS_PER_THREAD;
	int groups = ceil_div(wanted, s->row_blocks), width = s->isa->gemm_cols;
	s->col_group = ceil_div(ceil_div(min_int(COL_BLOCK, s->g->n), width), groups) * width;
	s->a_size = (size_t)s->row_block * K_BLOCK + SPILL;
}

void cpu_gemm_own(struct cpu_backend *be, const struct gemm *g) {
	struct blocking s = {.g = g, .isa = be->isa};
	cut_tasks(&s, be->base.threads);
	int width = s.isa->gemm_cols, k_blocks = ceil_div(g->k, K_BLOCK), k_block = ceil_div(g->k, k_blocks);
	size_t b_cols = (size_t)ceil_div(min_int(COL_BLOCK, g->n), width) * width;
	s.packed_b = cpu_workspace(be, WORKSPACE_GEMM_B, b_cols * K_BLOCK);
	s.packed_a = cpu_workspace(be, WORKSPACE_GEMM_A, s.a_size * be->base.threads);
	for (s.j0 = 0; s.j0 < g->n; s.j0 += COL_BLOCK) {
		s.cols = min_int(COL_BLOCK, g->n - s.j0);
		for (s.k0 = 0; s.k0 < g->k; s.k0 += k_block) {
			s.k = min_int(k_block, g->k - s.k0);
			cpu_parallel(be, ceil_div(s.cols, PACK_COLS), pack_b_task, &s);
			cpu_parallel(be, s.row_blocks * ceil_div(s.cols, s.col_group), multiply_task, &s);
		}
	}
}

void cpu_gemm(struct cpu_backend *be, const struct gemm *g) {
	RV_ASSERT(g->m > 0 && g->n > 0 && g->k > 0);
	if (be->onednn)
		cpu_gemm_onednn(be, g);
	else
		cpu_gemm_own(be, g);
}
