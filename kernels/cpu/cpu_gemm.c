/* cpu_gemm.c: the matrix product: which implementation, and the blocking of our own.
 *
 * Ours (after Goto & van de Geijn 2008): a part of B is packed by all threads into panels that stay in the shared
 * cache. Then a task is ROW_PANELS panels of A by some columns: small, and handed out one after the other, so that a
 * core that is slow or busy with something else costs little. Tasks of the same rows follow each other, and a thread
 * packs those rows only when they are not the ones it packed last. The order of summation of an element of C depends on
 * k alone, so neither tasks nor threads change its bits. */
#include "kernels/cpu/cpu.h"

#include "base/assert.h"

enum {
	K_BLOCK = 512,          /* of one pass over a tile: a panel of A is 28 KiB */
	K_PART = 1024,          /* packed at a time */
	B_PART_BYTES = 8 << 20, /* of packed B */
	ROW_PANELS = 10,        /* x 14 rows x K_BLOCK x 4 bytes = 280 KiB of packed A: in the second-level cache */
	TASK_COLS = 256,        /* at most, of one multiplying task */
	PACK_COLS = 64,         /* of one packing task */
	TASKS_PER_THREAD = 8,   /* wanted, so that the last ones to finish are short */
	SPILL = 16,             /* see pack_a */
	THREADS_MAX = 256
};

struct blocking {
	const struct gemm *g;
	const struct gemm_kernels *kernels;
	float *packed_a, *packed_b;
	size_t a_size;                /* floats of packed A of one thread */
	int row_block, row_blocks;    /* rows of one task, and how many such blocks */
	int task_cols, col_groups;    /* columns of one task, and how many such groups in this part */
	int j0, cols, padded_cols;    /* the part of B that is packed now: columns, */
	int k0, k, k_block;           /* and k, in passes of k_block */
	int packed_rows[THREADS_MAX]; /* the row block in packed_a of each thread; -1: none of this part */
};

static int min_int(int a, int b) {
	return a < b ? a : b;
}

static int ceil_div(int a, int b) {
	return (a + b - 1) / b;
}

static int round_up(int n, int to) {
	return ceil_div(n, to) * to;
}

/* Words of a panel that hold k elements; a pass is a whole number of words. */
static size_t words(const struct blocking *s, int k) {
	return (size_t)ceil_div(k, s->kernels->k_per_word);
}

/* Packed operands are (passes, panels, words of the pass, panel width). */
static void pack_b_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct blocking *s = ctx;
	const struct gemm *g = s->g;
	int j = task * PACK_COLS, cols = min_int(PACK_COLS, s->cols - j);
	for (int k = 0; k < s->k; k += s->k_block) {
		int length = min_int(s->k_block, s->k - k);
		ptrdiff_t row = g->tb ? s->j0 + j : s->k0 + k, col = g->tb ? s->k0 + k : s->j0 + j;
		struct pack_source src = {.p = g->b + row * g->ldb + col, .ld = g->ldb, .k_major = !g->tb};
		s->kernels->pack_b(s->packed_b + words(s, k) * s->padded_cols + j * words(s, length), &src, cols, length);
	}
}

static void pack_rows(const struct blocking *s, float *packed, int i, int rows) {
	const struct gemm *g = s->g;
	for (int k = 0; k < s->k; k += s->k_block) {
		ptrdiff_t row = g->ta ? s->k0 + k : i, col = g->ta ? i : s->k0 + k;
		struct pack_source src = {.p = g->a + row * g->lda + col, .ld = g->lda, .k_major = g->ta};
		s->kernels->pack_a(packed + words(s, k) * s->row_block, &src, rows, min_int(s->k_block, s->k - k));
	}
}

static void multiply_task(void *ctx, int task, int thread) {
	struct blocking *s = ctx;
	const struct gemm *g = s->g;
	int block = task / s->col_groups, i = block * s->row_block, j = task % s->col_groups * s->task_cols;
	int rows = min_int(s->row_block, g->m - i);
	float *packed = s->packed_a + (size_t)thread * s->a_size;
	if (s->packed_rows[thread] != block)
		pack_rows(s, packed, i, rows);
	s->packed_rows[thread] = block;
	for (int k = 0; k < s->k; k += s->k_block) {
		int length = min_int(s->k_block, s->k - k);
		struct packed_product p = {.a = packed + words(s, k) * s->row_block,
								   .b = s->packed_b + words(s, k) * s->padded_cols + j * words(s, length),
								   .c = g->c + (ptrdiff_t)i * g->ldc + s->j0 + j,
								   .ldc = g->ldc,
								   .m = rows,
								   .n = min_int(s->task_cols, s->cols - j),
								   .k_words = (int)words(s, length),
								   .add = g->add || s->k0 + k > 0};
		s->kernels->multiply(&p);
	}
}

/* Rows in even blocks of whole panels; columns finer until there are enough tasks. */
static void cut_tasks(struct blocking *s, int threads) {
	int panel = s->kernels->rows, width = s->kernels->cols;
	int panels = ceil_div(s->g->m, panel), blocks = ceil_div(panels, ROW_PANELS);
	s->row_block = ceil_div(panels, blocks) * panel;
	s->row_blocks = ceil_div(s->g->m, s->row_block);
	s->task_cols = TASK_COLS;
	int wanted = threads == 1 ? 1 : threads * TASKS_PER_THREAD;
	while (s->task_cols > width && s->row_blocks * ceil_div(min_int(s->cols, s->g->n), s->task_cols) < wanted)
		s->task_cols /= 2;
}

static void multiply_part(struct cpu_backend *be, struct blocking *s) {
	s->padded_cols = round_up(s->cols, s->kernels->cols);
	s->col_groups = ceil_div(s->cols, s->task_cols);
	for (int i = 0; i < be->base.threads; i++)
		s->packed_rows[i] = -1;
	cpu_parallel(be, ceil_div(s->cols, PACK_COLS), pack_b_task, s);
	cpu_parallel(be, s->row_blocks * s->col_groups, multiply_task, s);
}

void cpu_gemm_own(struct cpu_backend *be, const struct gemm *g) {
	RV_ASSERT(be->base.threads <= THREADS_MAX);
	struct blocking s = {.g = g, .kernels = be->gemm};
	int per_word = s.kernels->k_per_word, k_part = min_int(g->k, K_PART * per_word);
	s.k_block = round_up(ceil_div(k_part, ceil_div(k_part, K_BLOCK * per_word)), per_word);
	int part_words = (int)words(&s, k_part);
	int part_cols = B_PART_BYTES / (int)sizeof(float) / part_words / TASK_COLS * TASK_COLS;
	part_cols = min_int(part_cols, round_up(g->n, s.kernels->cols));
	s.cols = part_cols;
	cut_tasks(&s, be->base.threads);
	s.a_size = (size_t)s.row_block * part_words + SPILL;
	s.packed_b = cpu_workspace(be, WORKSPACE_GEMM_B, (size_t)part_cols * part_words);
	s.packed_a = cpu_workspace(be, WORKSPACE_GEMM_A, s.a_size * be->base.threads);
	for (s.j0 = 0; s.j0 < g->n; s.j0 += part_cols)
		for (s.k0 = 0; s.k0 < g->k; s.k0 += k_part) {
			s.cols = min_int(part_cols, g->n - s.j0);
			s.k = min_int(k_part, g->k - s.k0);
			multiply_part(be, &s);
		}
}

void cpu_gemm(struct cpu_backend *be, const struct gemm *g) {
	RV_ASSERT(g->m > 0 && g->n > 0 && g->k > 0);
	if (be->onednn)
		cpu_gemm_onednn(be, g);
	else
		cpu_gemm_own(be, g);
}
