/* cpu.h: internals of the `cpu` backend: its handle, its threads, its workspaces and its matrix
 * product.
 *
 * An operation (cpu_*.c) cuts its work into tasks whose number and borders depend on the shapes
 * alone, never on the thread count, and runs the serial kernels of one instruction set (isa/) on
 * them. So results have the same bits for any `threads`, except where oneDNN is used (its product
 * may split differently for other counts). */
#ifndef RV_KERNELS_CPU_CPU_H
#define RV_KERNELS_CPU_CPU_H

#include "kernels/computing_ops.h"
#include "kernels/cpu/isa/isa_kernels.h"

/* Workspaces. Each grows to the largest request and is kept: nothing is allocated after the first
 * step. */
enum workspace {
	WORKSPACE_OP,     /* for an operation: logits of a chunk, partial sums, attention blocks */
	WORKSPACE_GEMM_B, /* packed operands of the matrix product */
	WORKSPACE_GEMM_A,
	WORKSPACE_COUNT
};

struct cpu_backend {
	struct backend base;
	const struct isa_kernels *isa;
	const struct gemm_kernels *gemm; /* our own product, in the dtype asked for; and attention in it */
	const struct attention_kernels *attention;
	bool onednn; /* fp32 products use oneDNN, with the best instruction set of the machine */
	char description[96];
	struct {
		float *p;
		size_t n;
	} workspaces[WORKSPACE_COUNT];
};

extern const struct backend_ops cpu_ops;

static inline struct cpu_backend *cpu_of(struct backend *be) {
	return (struct cpu_backend *)be;
}

/* Returns n floats, 64-byte aligned, contents unspecified, valid until the next call for the same
 * workspace. */
float *cpu_workspace(struct cpu_backend *be, enum workspace which, size_t n);

/* Returns the name of the i-th instruction set of this build, highest first; NULL past the last. */
const char *cpu_isa_name(int i);
/* Returns the kernels of the machine's highest instruction set that is not above `limit` ("auto":
 * no limit); NULL if `limit` is not a name. *best: the machine has no higher one. */
const struct isa_kernels *cpu_isa_choose(const char *limit, bool *best);
/* Returns true if the processor has instructions for products in bf16, within that limit (NULL:
 * "auto"). */
bool cpu_isa_multiplies_bf16(const char *limit);
/* Return the products and the attention of that instruction set with operands in `compute`. */
const struct gemm_kernels *cpu_isa_gemm(const struct isa_kernels *isa, enum dtype compute);
const struct attention_kernels *cpu_isa_attention(const struct isa_kernels *isa, enum dtype compute);

/* cpu_parallel.c: the only place that knows OpenMP. */

/* Returns the number of threads of a backend: `wanted`, or with 0 as many as this process may run
 * on (at most 256). Always 1 in a build without OpenMP. */
int cpu_thread_count(int wanted);
/* Calls fn(ctx, task, thread) once for every task in [0, n_tasks), in any order, on up to
 * be->threads threads (thread < be->threads); returns when all are done. Uses only the calling
 * thread if threads is 1 or there is one task: then no team is started. */
typedef void cpu_task_fn(void *ctx, int task, int thread);
void cpu_parallel(const struct cpu_backend *be, int n_tasks, cpu_task_fn *fn, void *ctx);
/* Does the same without a backend, on up to `threads` threads. */
void cpu_parallel_on(int threads, int n_tasks, cpu_task_fn *fn, void *ctx);

/* The items of one task, if n items are divided into tasks of `size`. */
struct cpu_range {
	size_t begin, count;
};
static inline int cpu_tasks(size_t n, size_t size) {
	return (int)((n + size - 1) / size);
}
static inline struct cpu_range cpu_range_of(size_t n, size_t size, int task) {
	size_t begin = (size_t)task * size;
	return (struct cpu_range){begin, n - begin < size ? n - begin : size};
}

/* Called for each block of C when it is finished and still in cache, on any thread; every element
 * is in exactly one: rows [i, i + rows), columns [j, j + cols). */
typedef void gemm_done_fn(void *ctx, int i, int rows, int j, int cols);

/* A product C (m, n) = A B, or C += A B. ta: A is stored (k, m), else (m, k); tb: B is stored (n,
 * k), else (k, n). */
struct gemm {
	bool ta, tb, add;
	int m, n, k;
	const float *a, *b;
	float *c;
	int lda, ldb, ldc;
	gemm_done_fn *done; /* NULL: nothing to do */
	void *ctx;          /* of done */
	float *row_sums;    /* (m), with ta: += the sums of A over k; NULL: not wanted */
};
/* Computes with oneDNN's or our own product, whichever is faster for the shape. */
void cpu_gemm(struct cpu_backend *be, const struct gemm *g);
void cpu_gemm_own(struct cpu_backend *be, const struct gemm *g);
/* Computes A B alone with oneDNN: ignores `done` and `row_sums`. cpu_gemm_has_onednn returns false
 * in a build without oneDNN. */
bool cpu_gemm_has_onednn(void);
void cpu_gemm_onednn(struct cpu_backend *be, const struct gemm *g);
/* Writes "oneDNN 2.6", for descriptions. */
void cpu_gemm_onednn_version(char out[32]);

/* Adds dst[j] += sum over rows of src[i * ld + j], in parallel over rows, which are read whole.
 * Uses WORKSPACE_GEMM_A. */
void cpu_add_column_sums(struct cpu_backend *be, float *dst, const float *src, ptrdiff_t ld, int rows, int cols);

/* Limits of a chunk of logits. */
enum { CPU_LOGITS_MAX_BYTES = 64 << 20, CPU_LOGITS_MAX_ROWS = 1024 };
/* Implements backend_ops.step_memory: a chunk of logits, and the packed part of a product's largest
 * operand. */
void cpu_step_memory(enum dtype act, const struct step_bounds *s, struct step_memory *out);

COMPUTING_OPS(OP_PROTOTYPE, cpu)

#endif
