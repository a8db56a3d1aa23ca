/* isa_kernels.h: the serial building blocks of the `cpu` backend, compiled once per instruction
 * set.
 *
 * Nothing here starts a thread or allocates: kernels/cpu/cpu_*.c cut an operation into tasks, hand
 * out workspaces and call these on each task. All matrices are dense row-major fp32 unless a row
 * distance `ld` is given. ISA_KERNELS below is the one list: it makes the table's fields, the
 * prototypes and the three tables. */
#ifndef RV_KERNELS_CPU_ISA_KERNELS_H
#define RV_KERNELS_CPU_ISA_KERNELS_H

#include "kernels/adamw.h"
#include "kernels/backend.h"

/* Arguments of LayerNorm; of RMSNorm without mean and bias (NULL). */
struct norm_rows {
	float *sum; /* with b: gets a + b; else NULL */
	float *out, *mean, *rstd;
	const float *a, *b; /* x = a, or a + b when b is not NULL */
	const float *w, *bias;
	float eps;
	int n, c;
};

/* Arguments of their gradients; of RMSNorm's without mean and db_part. */
struct norm_grad_rows {
	float *dx;                /* += */
	float *dw_part, *db_part; /* (c) each: = the sums over these rows */
	const float *dout, *x, *w, *mean, *rstd;
	int n, c;
};

/* One head of one sequence. Vectors of consecutive tokens are `ld` floats apart. */
struct attention_head {
	const float *q, *k, *v;
	ptrdiff_t ld;
	float *out;
	ptrdiff_t out_ld;
	float *lse; /* (t) */
	float *work;
	int t, head_dim;
};

/* One key/value head and the `group` query heads that read it (q, dq, out, dout: heads are head_dim
 * apart; lse: t). */
struct attention_group {
	const float *q, *k, *v;
	float *dq, *dk, *dv;
	ptrdiff_t ld; /* of all six */
	const float *out, *dout;
	ptrdiff_t out_ld;
	const float *lse;
	float *work;
	int t, head_dim, group;
};

/* Consecutive tokens of one sequence, the first at position `first`, each with the `group` query
 * heads that read one key/value head (heads are head_dim apart). k and v hold positions 0..first +
 * tokens - 1, ld floats apart. */
struct attention_queries {
	const float *q;
	ptrdiff_t q_ld; /* from token to token */
	const float *k, *v;
	ptrdiff_t ld;
	float *out;
	ptrdiff_t out_ld;
	float *work;
	int first, tokens, group, head_dim;
};

enum { COLUMN_SUM_ROWS = 64 }; /* of a block of add_column_sums */

struct softmax_rows {
	float *logits; /* (n, ld): become grad_scale * (softmax - onehot); columns [v, ld) are unchanged */
	ptrdiff_t ld;
	float *losses;          /* (n) */
	const int32_t *targets; /* (n); -1: loss and gradient are 0 */
	int n, v;
	float grad_scale;
	bool want_grad;
};

/* A block of moments in 8 bits (kernels/moments.h): MOMENTS_BLOCK codes each, and the tops. */
struct moments_block {
	uint8_t *m, *v;
	float *m_top, *v_top;
};

/* A matrix operand of a packed product: element (r, k) is at p[r * ld + k], or with k_major at p[k
 * * ld + r]. */
struct pack_source {
	const float *p;
	ptrdiff_t ld;
	bool k_major;
	/* With k_major only: */
	int ahead;       /* how many rows ahead to prefetch, which the processor does not do by itself there */
	int panel_words; /* length of the panels that these words of k are a part of; 0: they are all of them */
};

/* Memory that will be packed next, to prefetch while tiles are multiplied: the first of `tiles`
 * tiles asks, at word w of its k, for the lines at p + w * word + e * element, e below k_per_word,
 * and each one after it for those `tile` floats further on. */
struct tiles_ahead {
	const float *p; /* NULL: nothing */
	ptrdiff_t word, element, tile;
	int tiles;
};

/* C (m, n) = or += the product of packed panels; k_words: the length of a panel. */
struct packed_product {
	const float *a, *b;
	float *c;
	ptrdiff_t ldc;
	int m, n, k_words;
	bool add;
	struct tiles_ahead ahead;
};

/* A kind of packed product. Panels are `rows` rows of A, `cols` columns of B, word after word of k;
 * a word is 4 bytes and holds `k_per_word` elements (1 of fp32, 2 of bf16; the last one is padded
 * with 0). The last panel of A spills up to 16 words more. */
struct gemm_kernels {
	const char *name; /* "fp32", "bf16" */
	int rows, cols, k_per_word;
	int words_step; /* packed words of k are a multiple of it */
	int pass_words; /* of k, most in one multiply */
	void (*pack_a)(float *dst, const struct pack_source *src, int rows, int k);
	void (*pack_b)(float *dst, const struct pack_source *src, int cols, int k);
	void (*multiply)(const struct packed_product *p);
};

/* Attention in one dtype of operands. Work: floats of workspace. */
struct attention_kernels {
	size_t (*head_work)(int t, int head_dim);
	void (*head)(const struct attention_head *a);
	size_t (*group_work)(int t, int head_dim);
	void (*group)(const struct attention_group *a);
};

/* Values of rv_rng_normal (base/rng.h) of one stream, from a counter on. */
struct normal_values {
	float *out; /* (n): std times each, rounded from double */
	size_t n;
	uint64_t seed, stream, counter;
	double std;
};

#define ISA_KERNELS(X)                                                                                                 \
	/* Rows are ld apart. y[i,:] += bias */                                                                            \
	X(void, add_bias_rows, (float *y, ptrdiff_t ld, const float *bias, int n, int c))                                  \
	/* pre += bias (unless NULL); y = gelu(pre) */                                                                     \
	X(void, bias_gelu_rows, (float *y, float *pre, ptrdiff_t ld, const float *bias, int n, int c))                     \
	/* dx *= gelu'(pre) */                                                                                             \
	X(void, gelu_grad_rows, (float *dx, const float *pre, ptrdiff_t ld, int n, int c))                                 \
	/* out = a + b (b NULL: a) */                                                                                      \
	X(void, add_vectors, (float *out, const float *a, const float *b, size_t n))                                       \
	/* dst[j] += sum over rows of src[i * ld + j], pairwise over blocks of 64 rows */                                  \
	X(void, add_column_sums, (float *dst, const float *src, ptrdiff_t ld, int rows, int cols))                         \
	/* sums[j] = those of one block at most; reads whole rows, from memory */                                          \
	X(void, stream_column_sums, (float *sums, const float *src, ptrdiff_t ld, int rows, int cols))                     \
	/* dst[j] += sum of sums[i * cols + j]: those of such blocks, in the same order */                                 \
	X(void, add_block_sums, (float *dst, const float *sums, int blocks, int cols))                                     \
	X(void, layernorm_rows, (const struct norm_rows *a))                                                               \
	X(void, layernorm_grad_rows, (const struct norm_grad_rows *a))                                                     \
	X(void, rmsnorm_rows, (const struct norm_rows *a))                                                                 \
	X(void, rmsnorm_grad_rows, (const struct norm_grad_rows *a))                                                       \
	X(void, normals, (const struct normal_values *a))                                                                  \
	/* rotates `heads` consecutive heads of a token; angles: cos, sin of each pair; direction: 1, or -1 to go back */  \
	X(void, rope_token, (float *x, const float *angles, int heads, int head_dim, float direction))                     \
	/* gate_up (n, 2f), out and dout (n, f) */                                                                         \
	X(void, swiglu_rows, (float *out, const float *gate_up, int n, int f))                                             \
	X(void, swiglu_grad_rows, (float *dgate_up, const float *dout, const float *gate_up, int n, int f))                \
	/* floats of workspace for `rows` = tokens * group and `keys` = first + tokens */                                  \
	X(size_t, attention_queries_work, (int rows, int keys, int head_dim))                                              \
	X(void, attention_queries, (const struct attention_queries *a))                                                    \
	X(void, softmax_rows, (const struct softmax_rows *a))                                                              \
	X(double, sum_squares, (const float *x, size_t n))                                                                 \
	X(void, adamw, (float *p, const float *g, float *m, float *v, size_t n, const struct adamw_consts *a))             \
	/* m, v: MOMENTS_BLOCK floats each */                                                                              \
	X(void, moments_decode, (float *m, float *v, const struct moments_block *b))                                       \
	X(void, moments_encode, (const struct moments_block *b, const float *m, const float *v, uint32_t seed))            \
	/* y = keep y + scale (a - b); b NULL: 0; keep 0: y is not read */                                                 \
	X(void, add_scaled, (float *y, float keep, float scale, const float *a, const float *b, size_t n))

struct isa_kernels {
	const char *name; /* "avx512" */
	const struct gemm_kernels *gemm_fp32;
	const struct gemm_kernels *gemm_rounded; /* operands rounded to bf16 while packing, products in fp32 */
	const struct attention_kernels *attention_fp32, *attention_rounded;
#define ISA_FIELD_(type, name, args) type(*name) args;
	ISA_KERNELS(ISA_FIELD_)
#undef ISA_FIELD_
};

extern const struct isa_kernels isa_kernels_portable;
#if defined(RV_PORTABLE_KERNELS) /* the build for fuzzers has no others */
#elif defined(__x86_64__)
#define RV_X86_KERNELS 1
extern const struct isa_kernels isa_kernels_avx2, isa_kernels_avx512;
/* For processors with AVX512_BF16. */
extern const struct gemm_kernels gemm_bf16_avx512;
extern const struct attention_kernels attention_bf16_avx512;
/* For processors with AMX-BF16. */
extern const struct gemm_kernels gemm_bf16_amx;
extern const struct attention_kernels attention_bf16_amx;
#elif defined(__aarch64__)
#define RV_NEON_KERNELS 1
extern const struct isa_kernels isa_kernels_neon;
/* For processors with FEAT_BF16. */
extern const struct gemm_kernels gemm_bf16_neon;
extern const struct attention_kernels attention_bf16_neon;
#endif

#endif
