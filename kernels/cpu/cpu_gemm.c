/* cpu_gemm.c: the matrix product: the choice of an implementation, and the blocking of our own.
 *
 * Ours (after Goto & van de Geijn 2008): a part of B is packed by all threads into panels that stay
 * in the shared cache. Then a task is ROW_PANELS panels of A by some columns: small, and handed out
 * one after the other, so that a core that is slow or busy with something else costs little. Tasks
 * of the same rows follow each other, and a thread packs those rows only if they are not the ones
 * it packed last. Where C has few rows, packing B is much of the work: then all of A is packed
 * first, and a task is a slice of B, packed into the thread's own cache and multiplied there, while
 * the source of its next slice is prefetched. Operands whose rows lie along k are packed by whole
 * rows, as memory is fastest read, and column sums of A are taken from rows that lie in cache. The
 * order of summation of an element of C depends on k alone, so neither tasks nor threads change its
 * bits. */
#include "kernels/cpu/cpu.h"

#include "base/assert.h"
#include "kernels/gate.h"

#include <string.h>

enum {
	K_PART = 1024,               /* packed at a time */
	B_PART_BYTES = 8 << 20,      /* of packed B */
	ROW_PANELS = 10,             /* x 14 rows x 512 words = 280 KiB of packed A: in the second-level cache */
	TASK_COLS = 256,             /* parts of B are multiples of it */
	A_SHARED_BYTES = 8 << 20,    /* of packed A, where it is read against its rows and best read once */
	SHARED_PANELS = 5,           /* of one block of it */
	PACK_COLS = 64,              /* of one packing task, and of a slice; or, where rows of the source lie along k: */
	PACK_ROWS = COLUMN_SUM_ROWS, /* read whole, as memory is fastest read, */
	PIECE_ROWS = 32,             /* and so many packed at a time, for all blocks, while the next ones are fetched */
	FEW_ROWS = 512,              /* of C, at most, and */
	FEW_BYTES = 4 << 20,         /* of packed A, at most, where B is dealt out in slices; */
	SLICES_PER_THREAD = 4,       /* at least */
	LINE_FLOATS = 16,            /* of a cache line */
	TASKS_PER_THREAD = 16,       /* wanted, so that the last ones to finish are short */
	OWN_ROWS = 1024,             /* of C, at least, for our own product where there is oneDNN, */
	SLICED_ROWS = 128,           /* or so many in slices */
	DONE_FLOATS = 32768,         /* of C, of one task that finishes it */
	SPILL = 16,                  /* see pack_a */
	AHEAD_A = 16,                /* rows to prefetch: parts of far longer ones (logits) throw each other out, */
	AHEAD_B = 64,                /* parts of rows of weights do not; */
	AHEAD_WHOLE = 8,             /* whole rows of B */
	THREADS_MAX = 256
};

struct blocking {
	const struct gemm *g;
	const struct isa_kernels *isa;
	const struct gemm_kernels *kernels;
	float *packed_a, *packed_b, *sums; /* sums: g->m sums of rows of A for each task that packs them */
	bool shared_a;     /* all blocks of A are packed first, else each thread packs the one it works on */
	size_t a_size;     /* floats of packed A of one block */
	size_t slice_size; /* floats of a pass of a slice of packed B: one for each thread */
	int threads;
	int row_panels, row_blocks;   /* panels of A, and in how many blocks they are dealt out */
	int block_rows;               /* of the largest block: packed passes are so many rows apart */
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

/* Returns the words of a panel that hold k elements; a pass is a whole number of words. */
static size_t words(const struct blocking *s, int k) {
	return (size_t)round_up(ceil_div(k, s->kernels->k_per_word), s->kernels->words_step);
}

static struct pack_source source_of_b(const struct gemm *g, int j, int k) {
	ptrdiff_t row = g->tb ? j : k, col = g->tb ? k : j;
	return (struct pack_source){.p = g->b + row * g->ldb + col, .ld = g->ldb, .k_major = !g->tb, .ahead = AHEAD_B};
}

/* Packs operands as (passes, panels, words of the pass, panel width). */
static void pack_b_cols(const struct blocking *s, int task) {
	int j = task * PACK_COLS, cols = min_int(PACK_COLS, s->cols - j);
	for (int k = 0; k < s->k; k += s->k_block) {
		int length = min_int(s->k_block, s->k - k);
		struct pack_source src = source_of_b(s->g, s->j0 + j, s->k0 + k);
		s->kernels->pack_b(s->packed_b + words(s, k) * s->padded_cols + j * words(s, length), &src, cols, length);
	}
}

/* Elements of k that are packed at a time, of one pass. */
struct piece {
	int length;
	size_t pass;             /* words of k before the pass, */
	int offset, panel_words; /* of the pass before the piece, and of the whole pass */
};

/* Returns the piece at k that ends before `end`. */
static struct piece piece_at(const struct blocking *s, int k, int end) {
	const int from = k / s->k_block * s->k_block, to = min_int(from + s->k_block, s->k);
	return (struct piece){.length = min_int(PIECE_ROWS, min_int(end, to) - k),
						  .pass = words(s, from),
						  .offset = (int)words(s, k - from),
						  .panel_words = (int)words(s, to - from)};
}

static void pack_b_rows(const struct blocking *s, int task) {
	const int end = min_int(s->k, (task + 1) * PACK_ROWS);
	struct piece p;
	for (int k = task * PACK_ROWS; k < end; k += p.length) {
		p = piece_at(s, k, end);
		struct pack_source src = source_of_b(s->g, s->j0, s->k0 + k);
		src.ahead = AHEAD_WHOLE;
		src.panel_words = p.panel_words;
		s->kernels->pack_b(s->packed_b + p.pass * s->padded_cols + p.offset * s->kernels->cols, &src, s->cols,
						   p.length);
	}
}

static void pack_rows(const struct blocking *s, float *packed, int i, int rows) {
	const struct gemm *g = s->g;
	for (int k = 0; k < s->k; k += s->k_block) {
		ptrdiff_t row = g->ta ? s->k0 + k : i, col = g->ta ? i : s->k0 + k;
		struct pack_source src = {.p = g->a + row * g->lda + col, .ld = g->lda, .k_major = g->ta, .ahead = AHEAD_A};
		s->kernels->pack_a(packed + words(s, k) * s->block_rows, &src, rows, min_int(s->k_block, s->k - k));
	}
}

static int first_row(const struct blocking *s, int block) {
	return (int)((int64_t)s->row_panels * block / s->row_blocks) * s->kernels->rows;
}

static void pack_block(const struct blocking *s, float *packed, int block) {
	int i = first_row(s, block);
	pack_rows(s, packed, i, min_int(first_row(s, block + 1), s->g->m) - i);
}

static void pack_a_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct blocking *s = ctx;
	pack_block(s, s->packed_a + (size_t)task * s->a_size, task);
}

/* Packs the transposed A, all blocks of it. */
static void pack_a_rows(const struct blocking *s, int task) {
	const struct gemm *g = s->g;
	const int begin = task * PACK_ROWS, end = min_int(s->k, begin + PACK_ROWS);
	const float *a = g->a + (ptrdiff_t)s->k0 * g->lda;
	struct piece p;
	for (int k = begin; k < end; k += p.length) {
		p = piece_at(s, k, end);
		for (int block = 0; block < s->row_blocks; block++) {
			const int i = first_row(s, block), rows = min_int(first_row(s, block + 1), g->m) - i;
			const struct pack_source src = {.p = a + k * (ptrdiff_t)g->lda + i,
											.ld = g->lda,
											.k_major = true,
											.ahead = PIECE_ROWS,
											.panel_words = p.panel_words};
			s->kernels->pack_a(s->packed_a + (size_t)block * s->a_size + p.pass * s->block_rows +
								   p.offset * s->kernels->rows,
							   &src, rows, p.length);
		}
	}
	if (!s->sums || s->j0 > 0)
		return;
	float *sums = s->sums + (size_t)task * g->m; /* the rows are in cache */
	memset(sums, 0, (size_t)g->m * sizeof *sums);
	s->isa->add_column_sums(sums, a + begin * (ptrdiff_t)g->lda, g->lda, end - begin, g->m);
}

static int row_tasks(const struct blocking *s) {
	return ceil_div(s->k, PACK_ROWS);
}

static int b_tasks(const struct blocking *s) {
	return s->g->tb ? ceil_div(s->cols, PACK_COLS) : row_tasks(s);
}

/* Packs B, then the A that is shared. */
static void pack_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct blocking *s = ctx;
	if (task >= b_tasks(s))
		pack_a_rows(s, task - b_tasks(s));
	else if (s->g->tb)
		pack_b_cols(s, task);
	else
		pack_b_rows(s, task);
}

/* Returns the packed rows of a block. */
static float *rows_of(struct blocking *s, int block, int thread) {
	if (s->shared_a)
		return s->packed_a + (size_t)block * s->a_size;
	float *packed = s->packed_a + (size_t)thread * s->a_size;
	if (s->packed_rows[thread] != block)
		pack_block(s, packed, block);
	s->packed_rows[thread] = block;
	return packed;
}

static void multiply_task(void *ctx, int task, int thread) {
	struct blocking *s = ctx;
	const struct gemm *g = s->g;
	int block = task / s->col_groups, i = first_row(s, block), j = task % s->col_groups * s->task_cols;
	int rows = min_int(first_row(s, block + 1), g->m) - i;
	float *packed = rows_of(s, block, thread);
	for (int k = 0; k < s->k; k += s->k_block) {
		int length = min_int(s->k_block, s->k - k);
		struct packed_product p = {.a = packed + words(s, k) * s->block_rows,
								   .b = s->packed_b + words(s, k) * s->padded_cols + j * words(s, length),
								   .c = g->c + (ptrdiff_t)i * g->ldc + s->j0 + j,
								   .ldc = g->ldc,
								   .m = rows,
								   .n = min_int(s->task_cols, s->cols - j),
								   .k_words = (int)words(s, length),
								   .add = g->add || s->k0 + k > 0};
		s->kernels->multiply(&p);
	}
	if (g->done && s->k0 + s->k == g->k)
		g->done(g->ctx, i, rows, s->j0 + j, min_int(s->task_cols, s->cols - j));
}

/* Cuts rows into even blocks of whole panels; if there are few, into the same number for each
 * thread. Where threads pack for themselves, a tall C is cut by rows alone, so that none is packed
 * twice; else by columns as well. */
static void cut_tasks(struct blocking *s, int threads) {
	int wanted = threads == 1 ? 1 : threads * TASKS_PER_THREAD;
	bool tall = s->g->m >= s->g->n;
	s->row_panels = ceil_div(s->g->m, s->kernels->rows);
	s->row_blocks = ceil_div(s->row_panels, s->shared_a ? SHARED_PANELS : ROW_PANELS);
	if (tall && !s->shared_a && s->row_blocks < wanted)
		s->row_blocks = wanted;
	if (s->row_blocks <= wanted)
		s->row_blocks = round_up(s->row_blocks, threads);
	if (s->row_blocks > s->row_panels)
		s->row_blocks = s->row_panels < threads ? s->row_panels : s->row_panels / threads * threads;
	bool by_rows = tall && !s->shared_a && s->row_blocks >= threads;
	int groups = by_rows ? 1 : ceil_div(wanted, s->row_blocks);
	s->task_cols = round_up(ceil_div(s->cols, groups), s->kernels->cols);
	s->block_rows = ceil_div(s->row_panels, s->row_blocks) * s->kernels->rows;
}

static void multiply_part(struct cpu_backend *be, struct blocking *s) {
	s->padded_cols = round_up(s->cols, s->kernels->cols);
	s->col_groups = ceil_div(s->cols, s->task_cols);
	for (int i = 0; i < be->base.threads; i++)
		s->packed_rows[i] = -1;
	cpu_parallel(be, b_tasks(s) + (s->shared_a ? row_tasks(s) : 0), pack_task, s);
	if (s->sums && s->j0 == 0)
		s->isa->add_block_sums(s->g->row_sums, s->sums, row_tasks(s), s->g->m);
	cpu_parallel(be, s->row_blocks * s->col_groups, multiply_task, s);
}

/* ---- few rows: slices of B ---- */

/* Returns what to prefetch, in the pass from k on, of the slice that this thread multiplies after
 * the one at column j; nothing where that slice is not one stretch of memory. */
static struct tiles_ahead next_slice(const struct blocking *s, int j, int k, int length) {
	const struct gemm *g = s->g;
	const int next = j + s->threads * PACK_COLS, lines = PACK_COLS / LINE_FLOATS, per_word = s->kernels->k_per_word;
	if (next + PACK_COLS > g->n || (g->tb && g->ldb != g->k))
		return (struct tiles_ahead){.p = NULL};
	if (g->tb)
		return (struct tiles_ahead){.p = source_of_b(g, next, 0).p + (ptrdiff_t)k * PACK_COLS,
									.word = LINE_FLOATS * per_word,
									.element = LINE_FLOATS,
									.tile = (ptrdiff_t)LINE_FLOATS * length,
									.tiles = lines};
	return (struct tiles_ahead){.p = source_of_b(g, next, k).p,
								.word = (ptrdiff_t)per_word * g->ldb,
								.element = g->ldb,
								.tile = LINE_FLOATS,
								.tiles = lines};
}

static void multiply_slice(void *ctx, int task, int thread) {
	const struct blocking *s = ctx;
	const struct gemm *g = s->g;
	const int j = task * PACK_COLS, cols = min_int(PACK_COLS, g->n - j);
	float *packed = s->packed_b + (size_t)thread * s->slice_size;
	for (int k = 0; k < g->k; k += s->k_block) {
		const int length = min_int(s->k_block, g->k - k);
		const struct pack_source src = source_of_b(g, j, k);
		s->kernels->pack_b(packed, &src, cols, length);
		struct packed_product p = {.b = packed, .ldc = g->ldc, .n = cols, .k_words = (int)words(s, length)};
		p.add = g->add || k > 0;
		p.ahead = next_slice(s, j, k, length);
		for (int block = 0; block < s->row_blocks; block++, p.ahead.p = NULL) {
			const int i = first_row(s, block);
			p.m = min_int(first_row(s, block + 1), g->m) - i;
			p.a = s->packed_a + (size_t)block * s->a_size + words(s, k) * s->block_rows;
			p.c = g->c + (ptrdiff_t)i * g->ldc + j;
			s->kernels->multiply(&p);
		}
	}
	if (g->done)
		g->done(g->ctx, 0, g->m, j, cols);
}

/* Returns true if C has so few rows that slices pay, and columns enough for all threads. */
static bool has_few_rows(const struct gemm *g, int k_per_word, int threads) {
	const size_t a_words = (size_t)g->m * (size_t)ceil_div(g->k, k_per_word);
	return !g->ta && g->m <= FEW_ROWS && a_words * sizeof(float) <= FEW_BYTES &&
		   g->n >= threads * SLICES_PER_THREAD * PACK_COLS;
}

static void multiply_slices(struct cpu_backend *be, struct blocking *s) {
	s->cols = s->g->n;
	s->k = s->g->k;
	s->shared_a = true;
	cut_tasks(s, s->threads);
	s->a_size = (size_t)s->block_rows * words(s, s->k) + SPILL;
	s->packed_a = cpu_workspace(be, WORKSPACE_GEMM_A, s->a_size * (size_t)s->row_blocks);
	s->slice_size = PACK_COLS * words(s, s->k_block);
	s->packed_b = cpu_workspace(be, WORKSPACE_GEMM_B, s->slice_size * (size_t)s->threads);
	cpu_parallel(be, s->row_blocks, pack_a_task, s);
	cpu_parallel(be, ceil_div(s->g->n, PACK_COLS), multiply_slice, s);
}

/* ---- the choice ---- */

void cpu_gemm_own(struct cpu_backend *be, const struct gemm *g) {
	RV_ASSERT(be->base.threads <= THREADS_MAX);
	RV_ASSERT(PIECE_ROWS % (be->gemm->k_per_word * be->gemm->words_step) == 0);
	struct blocking s = {.g = g, .isa = be->isa, .kernels = be->gemm, .threads = be->base.threads};
	int per_word = s.kernels->k_per_word, k_part = min_int(g->k, K_PART * per_word);
	int passes = ceil_div(k_part, s.kernels->pass_words * per_word);
	s.k_block = round_up(ceil_div(k_part, passes), per_word * s.kernels->words_step);
	if (has_few_rows(g, s.kernels->k_per_word, s.threads)) {
		multiply_slices(be, &s);
		return;
	}
	int part_words = (int)words(&s, k_part);
	int part_cols = B_PART_BYTES / (int)sizeof(float) / part_words / TASK_COLS * TASK_COLS;
	part_cols = min_int(part_cols, round_up(g->n, s.kernels->cols));
	s.cols = part_cols;
	s.shared_a = g->ta && (size_t)g->m * part_words * sizeof(float) <= A_SHARED_BYTES;
	cut_tasks(&s, be->base.threads);
	s.a_size = (size_t)s.block_rows * part_words + SPILL;
	s.packed_b = cpu_workspace(be, WORKSPACE_GEMM_B, (size_t)part_cols * part_words);
	if (g->row_sums && !s.shared_a)
		cpu_add_column_sums(be, g->row_sums, g->a, g->lda, g->k, g->m);
	int blocks = s.shared_a ? s.row_blocks : be->base.threads;
	const size_t a_floats = s.a_size * (size_t)blocks, sums = (size_t)ceil_div(k_part, PACK_ROWS) * (size_t)g->m;
	const bool sums_rows = g->row_sums && s.shared_a;
	s.packed_a = cpu_workspace(be, WORKSPACE_GEMM_A, a_floats + (sums_rows ? sums : 0));
	s.sums = sums_rows ? s.packed_a + a_floats : NULL;
	for (s.j0 = 0; s.j0 < g->n; s.j0 += part_cols)
		for (s.k0 = 0; s.k0 < g->k; s.k0 += k_part) {
			s.cols = min_int(part_cols, g->n - s.j0);
			s.k = min_int(k_part, g->k - s.k0);
			multiply_part(be, &s);
		}
}

struct done_args {
	const struct gemm *g;
	size_t rows;
};

static void done_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct done_args *a = ctx;
	struct cpu_range r = cpu_range_of((size_t)a->g->m, a->rows, task);
	a->g->done(a->g->ctx, (int)r.begin, (int)r.count, 0, a->g->n);
}

/* Returns true if oneDNN is faster. Measured on one Zen 5 core, peak 250 GFLOP/s: oneDNN 230 to
 * 249, ours 230 to 250 along tall operands, 205 to 235 elsewhere. So ours is used where something
 * follows that finds C in cache, and where there are enough rows to pay for packing B; not for
 * instruction sets on which it was not measured. Of 256 rows, on one Zen 4 core, peak 118: oneDNN
 * 95 to 106 against rows of B, ours in slices 104 to 111; otherwise oneDNN 106 to 112, ours 103 to
 * 109. */
static bool onednn_is_faster(const struct cpu_backend *be, const struct gemm *g) {
#if defined(RV_X86_KERNELS)
	if (!be->onednn || be->isa != &isa_kernels_avx512)
		return be->onednn;
	const bool slices = g->tb && g->m >= SLICED_ROWS && has_few_rows(g, be->gemm->k_per_word, be->base.threads);
	return !slices && (!g->done || g->m < OWN_ROWS);
#else
	(void)g;
	return be->onednn;
#endif
}

void cpu_gemm(struct cpu_backend *be, const struct gemm *g) {
	RV_ASSERT(g->m > 0 && g->n > 0 && g->k > 0 && (g->ta || !g->row_sums));
	if (!onednn_is_faster(be, g)) {
		cpu_gemm_own(be, g);
		return;
	}
	const atomic_bool *abandons = gate_abandons();
	gate_pass(abandons);
	if (abandons && atomic_load(abandons))
		return;
	cpu_gemm_onednn(be, g);
	if (g->row_sums)
		cpu_add_column_sums(be, g->row_sums, g->a, g->lda, g->k, g->m);
	if (g->done) {
		size_t rows = DONE_FLOATS / (size_t)g->n;
		struct done_args a = {g, rows ? rows : 1};
		cpu_parallel(be, cpu_tasks((size_t)g->m, a.rows), done_task, &a);
	}
}
