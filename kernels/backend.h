/* backend.h: the contract between a model and the device that computes it.
 *
 * A backend is an ops table plus one opaque handle. Every operation a model family needs is here,
 * with its shapes and dtypes; `kernels/ref/` defines in readable loops what each one means and is
 * the oracle of every other backend's tests.
 *
 * Notation     N = B*T tokens (rows), C channels in, O channels out, F channels between, V
 *              vocabulary, Vp padded vocabulary (rows of wte).
 * Layout       row-major, dense: x (N, C) means x[n*C + c]. Linear weights are (O, C), as in
 *              torch.nn.Linear.
 * Dtypes       activations are `act_t`, the backend's activation dtype (backend->act: fp32 on the
 *              CPU; bf16 is possible on a GPU): an incomplete type, so that none is dereferenced by
 *              mistake; move with backend_act_at(). Parameters, gradients, optimizer state and
 *              statistics (mean, rstd, logsumexp, loss) are always fp32.
 * Products     with backend_options.compute == DTYPE_BF16 these round both of their operands to
 *              bf16 (to the nearest, ties to even), and only these: x w^T of linear_forward; dy w
 *              and dy^T x of linear_backward_*; the three of the classifier, and logits; the two of
 *              attention_forward and the five of attention_backward; product. They sum in fp32. All
 *              else is fp32: norms, biases, GELU, SiLU, rotations, softmax, the residual stream,
 *              the optimizer, and attention_cached, whose time is spent reading its caches. The CPU
 *              stores nothing in bf16.
 * Memory       pointers are the backend's own (alloc/free); the host reads and writes them with
 *              upload/download. On the CPU these are plain memory and memcpy. Output and input must
 *              not overlap unless an op is documented as in place.
 * Gradients    parameter gradients are accumulated (+=) over a step's micro-batches. The largest, of
 *              weight matrices, are written by the first of them instead (GRADIENT_WRITE); all
 *              others are zeroed before. Activation gradients are overwritten (=) unless an op is
 *              documented with +=.
 * Order        operations are enqueued on the backend's single stream and run in order; sync()
 *              waits for all of them, and upload/download and every op that returns a host value
 *              imply it. On the CPU every op is done when it returns.
 * Threads      one thread drives a backend at a time; the backend may use many inside
 *              (backend_options.threads).
 * Faults       operations do not fail: shapes are asserted, memory is allocated before the first
 *              step. open, alloc and reserve can fail. A step that exceeds the reserved bounds
 *              allocates what it lacks; if it cannot, it ends the process with a line that explains
 *              why.
 * Determinism  same build, same ISA, same thread count, same inputs: same bits. Reductions over
 *              rows are done in a fixed tree that does not depend on the thread count. */
#ifndef RV_KERNELS_BACKEND_H
#define RV_KERNELS_BACKEND_H

#include "base/err.h"
#include "kernels/moments.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct act act_t;

enum dtype { DTYPE_F32, DTYPE_BF16 };

struct backend_options {
	int threads;        /* 1..256; 0: all that this process may run on */
	enum dtype compute; /* of the operands of products: see Products above */
	const char *isa;    /* CPU: "auto", or the highest one to use: "avx512", "avx2", "neon", "portable" */
	int device;         /* GPU: which one, from 0 */
};

/* The operation of linear_forward after its product: y = x W^T (+ bias). */
enum linear_epilogue { LINEAR_NONE, LINEAR_GELU };

struct linear_shape {
	int n, c, o; /* x (n, c), w (o, c), y (n, o) */
};

/* The way to a matrix's gradient: added to what is there, or written, whatever was there, with the
 * bits of adding to zero except for the sign of a zero. */
enum gradient_mode { GRADIENT_ADD, GRADIENT_WRITE };

/* Shape of a product. op(a) is (m, k), stored so or, with a_transposed, (k, m); op(b) is (k, n),
 * stored so or, with b_transposed, (n, k). */
struct product_shape {
	int m, n, k;
	bool a_transposed, b_transposed;
};

struct attention_shape {
	int b, t, heads, kv_heads, head_dim; /* heads % kv_heads == 0; the scale is 1/sqrt(head_dim); causal */
};

/* A run of parameters with one decay rule: [begin, end) of the flat block. */
struct decay_span {
	size_t begin, end;
	bool decay;
};

/* AdamW (Loshchilov & Hutter 2019, algorithm 2) on g' = grad_scale * g, with bias correction by
 * `step` (1-based): m = b1 m + (1-b1) g';  v = b2 v + (1-b2) g'^2;  p = p - lr (mhat / (sqrt(vhat)
 * + eps) + wd p). As torch.optim.AdamW. */
struct adamw_params {
	float lr, beta1, beta2, eps, weight_decay, grad_scale;
	int64_t step;
};

/* The place of a slice of parameters whose moments are in 8 bits. `at` and `first` are multiples of
 * MOMENTS_BLOCK, and the slice ends at one, or at n. */
struct moments_place {
	size_t n;     /* moments in the vectors */
	size_t at;    /* index of the slice's first moment in them */
	size_t first; /* index of its first parameter among all parameters */
};

/* One micro-batch of training: the forward and backward pass of (b, t) tokens, for micro_step. */
struct micro_batch {
	const int32_t *tokens, *targets; /* (b*t), host memory: the arguments of embed_forward and classifier */
	int b, t;
	float grad_scale;
	const void *owner;   /* with b, t, params, grads and first: equal ones mean the same pass with the
	                        same pointers */
	const float *params; /* the allocation that holds the weights of its products */
	float *grads;        /* the allocation that gets its gradients */
	bool first;          /* of its step: GRADIENT_WRITE where an operation can */
	bool only_enqueues;  /* the pass does nothing else: it may be recorded, and replayed instead of called */
};

enum { WEIGHT_ALLOCATIONS = 4 };

/* Bounds of the steps that a backend will run: no micro-batch has more sequences, or more tokens in
 * one. */
struct step_bounds {
	int b, t;
	int c;                         /* channels of the residual stream */
	int widest;                    /* output channels of the widest linear */
	int heads, kv_heads, head_dim; /* as in attention_shape; heads 0: no attention */
	int v, vp;                     /* as in classifier */
	int logits_rows;               /* most rows of logits at a time: whole tiles of 256; 0: all of a micro-batch */
	size_t losses;                 /* tokens of all micro-batches between two calls of micro_losses */
	int n_spans;                   /* of adamw */
	size_t operand;                /* floats of the largest operand of product; 0: it is not called */
	size_t vectors;                /* floats of weights in alloc_on_host's memory that are read as floats; 0: none
	                                  is there */
	size_t fetched;                /* floats of the largest start_fetch; 0: it is not called */
	size_t exchange;               /* bytes of the device that exchanges with others will take: those that steps can
	                                  do without stay free */
	/* Any pointers into the allocations whose floats products read as weights: a bf16 copy of each
	 * is made. NULL: none. */
	const float *params[WEIGHT_ALLOCATIONS];
};

/* Memory that steps of one shape need on a device (or the host where that computes), by purpose;
 * without what alloc returned and the bf16 copy of the weights (2 bytes per parameter, with compute
 * bf16). */
enum { STEP_MEMORY_ITEMS = 8 };
struct step_memory {
	struct {
		const char *name; /* static */
		size_t bytes;     /* if there is room */
		size_t least;     /* the least that a step needs */
	} items[STEP_MEMORY_ITEMS];
	int n;
	size_t pinned_bytes; /* host memory that the device copies from */
};

enum { FETCHES = 2 }; /* copies to the host under way at a time: start_fetch */

struct backend;

struct backend_ops {
	const char *name; /* "cpu", "ref", or that of a plugin: found by it in the registry */

	/* Opens the backend. RV_E_RANGE (threads), RV_E_INVALID (isa), RV_E_NOMEM, RV_E_UNSUPPORTED,
	 * RV_E_IO. */
	enum rv_err (*open)(const struct backend_options *opt, struct backend **out, struct rv_errtext *et);
	void (*close)(struct backend *be);
	/* Returns one line for people and for the benchmark's records: "cpu avx512 (oneDNN 2.6), 2
	 * threads". Borrowed. */
	const char *(*describe)(const struct backend *be);

	/* Allocates zeroed, 64-byte aligned memory (huge pages where they help). RV_E_NOMEM, with *out
	 * NULL, if there is not enough. */
	enum rv_err (*alloc)(struct backend *be, size_t bytes, void **out, struct rv_errtext *et);
	void (*free)(struct backend *be, void *p);
	void (*upload)(struct backend *be, void *dst, const void *host, size_t bytes);
	void (*download)(struct backend *be, void *host, const void *src, size_t bytes);
	void (*zero)(struct backend *be, void *p, size_t bytes);
	void (*sync)(struct backend *be);

	/* Weights in the host's memory, for a device with too little of its own. All NULL: the
	 * backend's memory is the host's, or it cannot.
	 *
	 * alloc_on_host allocates zeroed memory of the host, which the host reads and writes as its own
	 * and operations as the device's; upload, download, zero and free take it. As weights, the
	 * device keeps matrices in bf16 (the copy that reserve makes) and vectors in fp32, and reads
	 * rows of embeddings over the bus. The host writes a part while no operation that reads it is
	 * under way, and calls host_wrote afterwards: the operations from there on see it. RV_E_NOMEM;
	 * RV_E_UNSUPPORTED with activations in fp32, for which there is no bf16 copy.
	 *
	 * begin_copies orders copies behind all operations so far: those that come later do not hold
	 * the copies of start_fetch and host_wrote up, and only those behind a host_wrote wait for it.
	 * `room`: n floats of the device that no operation uses from the begin_copies before until the
	 * next operation. */
	enum rv_err (*alloc_on_host)(struct backend *be, size_t bytes, void **out, struct rv_errtext *et);
	void (*begin_copies)(struct backend *be);
	void (*host_wrote)(struct backend *be, const float *p, size_t n, float *room);
	/* start_fetch enqueues a copy of n floats to the host, as begin_copies found them, and returns;
	 * at most FETCHES are under way. end_fetch waits for the oldest alone, and returns where it is:
	 * pinned memory that lasts until the next start_fetch. Any thread may call them, and
	 * begin_copies, while no other uses the backend. */
	void (*start_fetch)(struct backend *be, const float *src, size_t n);
	const float *(*end_fetch)(struct backend *be);

	/* Computes the memory that reserve takes for steps of shape `s` with activations of type `act`.
	 * Uses no device. NULL: negligible. */
	void (*step_memory)(enum dtype act, const struct step_bounds *s, struct step_memory *out);
	/* Reserves that memory, and bf16 copies of the allocations of s->params: afterwards no step of
	 * this shape or a smaller one allocates device memory, whatever its micro-batches. The caller
	 * calls it when everything else is allocated, before the first step; again for another shape:
	 * then there is room for either. If there is less memory than was planned, it takes fewer rows
	 * of logits, and sets s->logits_rows to them: the order of the classifier's sums depends on
	 * it. NULL: no step can lack memory. RV_E_NOMEM: the text states what did not fit, how much is
	 * needed and free, and the largest b that would fit. Memory reserved until then stays the
	 * backend's. */
	enum rv_err (*reserve)(struct backend *be, struct step_bounds *s, struct rv_errtext *et);

	/* Computes out[n,:] = wte[tokens[n],:] + wpe[n % t,:]; wpe may be NULL (no learned positions).
	 * tokens: host memory, each in [0, V), checked by the caller. out (B*T, C). */
	void (*embed_forward)(struct backend *be, act_t *out, const int32_t *tokens, const float *wte, const float *wpe,
						  int b, int t, int c);
	/* Adds dwte[tokens[n],:] += dout[n,:]; dwpe[n % t,:] += dout[n,:] (NULL: skipped). Fixed order
	 * of summation. */
	void (*embed_backward)(struct backend *be, float *dwte, float *dwpe, const int32_t *tokens, const act_t *dout,
						   int b, int t, int c);

	/* Computes LayerNorm over C, eps 1e-5: out = (x - mean) * rstd * w + bias. mean, rstd: (N),
	 * saved for backward. */
	void (*layernorm_forward)(struct backend *be, act_t *out, float *mean, float *rstd, const act_t *x, const float *w,
							  const float *bias, int n, int c);
	/* Computes sum = a + b; out = LayerNorm(sum): the residual add fused with the norm that follows
	 * it. */
	void (*residual_layernorm_forward)(struct backend *be, act_t *sum, act_t *out, float *mean, float *rstd,
									   const act_t *a, const act_t *b, const float *w, const float *bias, int n, int c);
	/* Adds to dx the gradient through the norm (the residual stream's gradient accumulates in
	 * place); dw, dbias +=. */
	void (*layernorm_backward)(struct backend *be, act_t *dx, float *dw, float *dbias, const act_t *dout,
							   const act_t *x, const float *w, const float *mean, const float *rstd, int n, int c);

	/* Computes RMSNorm (arXiv 1910.07467) over C: out = x * rstd * w, rstd = 1 / sqrt(mean(x^2) +
	 * eps). rstd: (N), saved. */
	void (*rmsnorm_forward)(struct backend *be, act_t *out, float *rstd, const act_t *x, const float *w, float eps,
							int n, int c);
	/* Computes sum = a + b; out = RMSNorm(sum). */
	void (*residual_rmsnorm_forward)(struct backend *be, act_t *sum, act_t *out, float *rstd, const act_t *a,
									 const act_t *b, const float *w, float eps, int n, int c);
	/* Adds to dx the gradient through the norm; dw +=. */
	void (*rmsnorm_backward)(struct backend *be, act_t *dx, float *dw, const act_t *dout, const act_t *x,
							 const float *w, const float *rstd, int n, int c);

	/* Applies the rotary embedding (arXiv 2104.09864), rotate-half form, in place on q and k of
	 * packed projections: with a pair (x1, x2) of channels (i, i + head_dim/2) of a head at
	 * position p, x1' = x1 cos - x2 sin, x2' = x2 cos + x1 sin. table (positions, head_dim/2, 2):
	 * cos, sin, backend memory; row n of qkv is at position first + n % s.t. inverse: rotates back,
	 * as the gradient needs (a rotation's transpose). head_dim is even. v is not changed. */
	void (*rope)(struct backend *be, act_t *qkv, const float *table, struct attention_shape s, int first, bool inverse);

	/* Computes SwiGLU (arXiv 2002.05202): gate_up (N, 2F) holds a token's gate, then its up; out
	 * (N, F) = silu(gate) * up. */
	void (*swiglu_forward)(struct backend *be, act_t *out, const act_t *gate_up, int n, int f);
	/* Computes dgate_up (N, 2F) from dout (N, F). */
	void (*swiglu_backward)(struct backend *be, act_t *dgate_up, const act_t *dout, const act_t *gate_up, int n, int f);

	/* Computes out[i] = gelu_tanh(pre[i]): what linear_forward's LINEAR_GELU does, from the stored
	 * pre. */
	void (*gelu_forward)(struct backend *be, act_t *out, const act_t *pre, size_t n);
	/* Computes y = x w^T + bias; bias may be NULL. LINEAR_GELU: pre = x w^T + bias and y =
	 * gelu_tanh(pre); pre (n, o) is kept for backward. For LINEAR_NONE pre is NULL. */
	void (*linear_forward)(struct backend *be, act_t *y, act_t *pre, const act_t *x, const float *w, const float *bias,
						   struct linear_shape s, enum linear_epilogue ep);
	/* Computes dx = dy w. LINEAR_GELU: x was gelu(pre) of the layer below, and dx = (dy w) *
	 * gelu'(pre), pre (n, c). */
	void (*linear_backward_input)(struct backend *be, act_t *dx, const act_t *dy, const float *w, const act_t *pre,
								  struct linear_shape s, enum linear_epilogue ep);
	/* Computes dw = or += dy^T x, by `mode`; dbias += column sums of dy (NULL: skipped). */
	void (*linear_backward_weight)(struct backend *be, float *dw, float *dbias, const act_t *dy, const act_t *x,
								   struct linear_shape s, enum gradient_mode mode);

	/* Computes causal scaled-dot-product attention on packed projections: qkv (B*T, (heads +
	 * 2*kv_heads) * head_dim) holds q, then k, then v of a token, each head after head. out (B*T,
	 * heads*head_dim); lse (B, heads, T) is the row log-sum-exp of the scaled scores. Never holds
	 * more than one block of rows of the score matrix per thread. */
	void (*attention_forward)(struct backend *be, act_t *out, float *lse, const act_t *qkv, struct attention_shape s);
	/* Computes dqkv, the gradient, laid out as qkv; needs the forward's out and lse. */
	void (*attention_backward)(struct backend *be, act_t *dqkv, const act_t *dout, const act_t *qkv, const act_t *out,
							   const float *lse, struct attention_shape s);

	/* Computes attention of one sequence token by token: qkv holds the s.t newest tokens (s.b is
	 * 1), at positions first, first + 1, ...; their k and v are appended to the caches k, v
	 * (positions, kv_heads*head_dim), which hold the earlier ones. out (s.t, heads*head_dim) equals
	 * attention_forward over all positions in these rows. Same bits however the tokens are split
	 * into calls. Cache rows from first + s.t on are neither read nor written. */
	void (*attention_cached)(struct backend *be, act_t *out, act_t *k, act_t *v, const act_t *qkv,
							 struct attention_shape s, int first);

	/* Computes the fused classifier: logits = x wte^T over the V real rows (padded rows never get
	 * probability), losses[n] = -log softmax(logits)[targets[n]]; a target of -1 is ignored (loss
	 * 0, no gradient). If dx is not NULL also dx = d(sum_n grad_scale * losses[n])/dx and dwte = or
	 * += likewise, by `mode` (written: its padded rows become 0). Works in chunks of tokens: where
	 * memory is scarce the logits of the whole batch never exist. targets: host memory. losses (N):
	 * host memory. wte (Vp, C). */
	void (*classifier)(struct backend *be, float *losses, act_t *dx, float *dwte, const act_t *x, const float *wte,
					   const int32_t *targets, int n, int c, int v, int vp, float grad_scale, enum gradient_mode mode);
	/* Run a micro-batch without waiting for it. All NULL on a backend whose operations are done
	 * when they return, where the caller makes the pass itself. micro_step copies tokens and
	 * targets (they may change when it returns) and has pass(ctx) enqueue one embed_forward, one
	 * classifier with dx, one embed_backward, and all between, with batch->tokens, ->targets and
	 * ->grad_scale as their arguments (asserted); in it the classifier does not write its `losses`,
	 * which are kept on the device. The pass may be recorded and replayed instead of called (CUDA
	 * graphs). micro_losses waits for all micro-batches since its last call and returns their
	 * losses, *n of them, in order, in host memory that lasts until the next micro_step; in the
	 * same wait also *squares = sum_squares(x, x_n), unless `squares` is NULL.
	 *
	 * micro_prepare begins to bring the input of a micro-batch that is likely the next one to the
	 * device, while those before it compute; micro_step knows it by its contents, so that any other
	 * may follow.
	 *
	 * micro_pace waits for all micro-batches but the one that began last, asleep: called after each
	 * of them it leaves one to compute while the next is read and launched, and never more. */
	void (*micro_step)(struct backend *be, const struct micro_batch *batch, void (*pass)(void *ctx), void *ctx);
	void (*micro_prepare)(struct backend *be, const struct micro_batch *batch);
	void (*micro_pace)(struct backend *be);
	const float *(*micro_losses)(struct backend *be, size_t *n, const float *x, size_t x_n, double *squares);
	/* Computes logits (N, V) = x wte^T, to host memory: for sampling and goldens. */
	void (*logits)(struct backend *be, float *host_out, const act_t *x, const float *wte, int n, int c, int v);

	/* Returns the sum of x[i]^2 in double, in a fixed tree: the global gradient norm is its square
	 * root. */
	double (*sum_squares)(struct backend *be, const float *x, size_t n);
	/* Updates p, m and v in one pass. Spans are ascending, disjoint and cover [0, n). */
	void (*adamw)(struct backend *be, float *p, const float *g, float *m, float *v, const struct decay_span *spans,
				  int n_spans, const struct adamw_params *a);
	/* Does the same with moments in 8 bits: m and v are vectors of kernels/moments.h. Decodes a
	 * block, updates it as adamw does, and encodes the new moments with the draws of a->step and
	 * the block's place among all parameters, so that slices round as the whole does. */
	void (*adamw8)(struct backend *be, float *p, const float *g, void *m, void *v, const struct decay_span *spans,
				   int n_spans, const struct adamw_params *a, struct moments_place place);
	/* Computes y[i] = keep y[i] + scale (a[i] - b[i]); b NULL: a[i] alone. With keep 0 y is not
	 * read. a and b may be y. */
	void (*add_scaled)(struct backend *be, float *y, float keep, float scale, const float *a, const float *b, size_t n);
	/* Computes c (m, n) = op(a) (m, k) op(b) (k, n), all dense and fp32: for optimizers that
	 * multiply matrices. */
	void (*product)(struct backend *be, float *c, const float *a, const float *b, struct product_shape s);
};

/* The first member of every backend's own struct. */
struct backend {
	const struct backend_ops *ops;
	enum dtype act; /* of every act_t of this backend */
	int threads;
};

/* Adds an item unless it has 0 bytes; for backends. */
void step_memory_add(struct step_memory *m, const char *name, size_t bytes, size_t least);
size_t step_memory_bytes(const struct step_memory *m);
size_t step_memory_least(const struct step_memory *m);

static inline size_t dtype_bytes(enum dtype d) {
	return d == DTYPE_F32 ? 4 : 2;
}

/* Returns the address of element i of an activation array. */
static inline act_t *backend_act_at(const struct backend *be, act_t *base, size_t i) {
	return (act_t *)((char *)base + i * dtype_bytes(be->act));
}

/* The built-in backends. NULL-terminated; "cpu" first, "ref" last. */
extern const struct backend_ops *const backend_registry[];
/* Opens a backend of the registry, or a plugin's (kernels/plugins.h). RV_E_NOTFOUND lists the
 * names, or explains why there is no plugin; other faults are those of ops->open. */
enum rv_err backend_open(const char *name, const struct backend_options *opt, struct backend **out,
						 struct rv_errtext *et);
void backend_close(struct backend *be); /* NULL is fine */
/* Finds the table of `name` without opening it, with the same faults. Borrowed, for ever. */
enum rv_err backend_find(const char *name, const struct backend_ops **out, struct rv_errtext *et);
/* Computes what step_memory of backend `name` would; without its plugin by the count that this
 * program has of it. RV_E_NOTFOUND: there is no such backend. */
enum rv_err backend_step_memory(const char *name, enum dtype act, const struct step_bounds *s, struct step_memory *out,
								struct rv_errtext *et);
/* Returns true if backend `name` is a GPU's, which comes as a plugin and has memory of its own. */
bool backend_is_gpu(const char *name);
/* Returns the faster dtype of products on backend `name` (opened with the same `isa`): bf16 on a
 * GPU and on a processor with instructions for bf16 (AVX512_BF16), which moves half the bytes; fp32
 * elsewhere, where each product would first round its operands in software. */
enum dtype backend_faster_dtype(const char *name, const char *isa);

#endif
