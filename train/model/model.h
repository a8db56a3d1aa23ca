/* model.h: a model family as a table of functions, and one model built from it.
 *
 * Parameters are one flat block of fp32, dense and equal on every machine: a table of tensors gives
 * each one's place, initial values and decay. Code that treats parameters alike (optimizer, outer
 * gradient, checkpoint) is a loop over the block. The caller owns the block; the model owns only
 * its activations, planned once for the largest batch, so that a step allocates nothing. Adding a
 * family takes one file with a `const struct model_ops`, one of base/ with its `struct
 * model_rules`, and one line in base/model_families.def. */
#ifndef RV_TRAIN_MODEL_MODEL_H
#define RV_TRAIN_MODEL_MODEL_H

#include "base/err.h"
#include "base/model_shape.h"
#include "base/run_config.h"
#include "kernels/device.h"
#include "outer/fragments.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_NAME_BYTES = 64 };

/* Returns the type of the configuration's products on `device`, for backend_options.compute: the
 * configured one, or for auto the faster. isa is that of backend_options. */
enum dtype run_config_compute(const struct run_config *c, const struct device_choice *device, const char *isa);
/* Returns "fp32" or "bf16", as the configuration names them. */
const char *dtype_name(enum dtype d);

/* The activations kept for the backward pass; each keeps less than the one before. Gradients have
 * the same bits on a processor. A GPU's product in bf16 computes GELU from sums that are not stored
 * as such; GELU and NORMS compute it from the stored ones, also in the forward pass: other last
 * bits. */
enum recompute {
	RECOMPUTE_NONE,  /* all activations */
	RECOMPUTE_GELU,  /* not the MLP's hidden channels, computed again from what they were made of */
	RECOMPUTE_NORMS, /* not the norms' outputs either */
	RECOMPUTE_BLOCK, /* the inputs of the blocks; the backward pass recomputes the rest of a block */
};

/* The values of option `recompute`, in the order of the enum. */
#define RECOMPUTE_NAMES "none|gelu|norms|block"
/* Returns one of them. */
static inline const char *recompute_name(enum recompute r) {
	static const char *const names[] = {"none", "gelu", "norms", "block"};
	return names[r];
}

struct model_options {
	int max_batch;            /* sequences of shape->context tokens in a forward pass */
	enum recompute recompute; /* used when training */
	bool forward_only;        /* no backward pass: activations of one block only */
};

enum model_init { MODEL_INIT_ZERO, MODEL_INIT_ONE, MODEL_INIT_NORMAL };

/* One named piece of the flat block. Matrices are (out, in), row-major. */
struct model_tensor {
	char name[MODEL_NAME_BYTES]; /* name in the family's Hugging Face checkpoints, without model_ops.hf_prefix */
	int rows, cols;              /* cols 1: a vector */
	size_t offset;               /* elements from the start of the block */
	size_t elems;                /* rows * cols, as in a checkpoint */
	enum model_init init;
	float std; /* MODEL_INIT_NORMAL */
	bool decay;
	bool hf_transposed; /* (in, out) in Hugging Face's checkpoints: GPT-2's Conv1D */
};

/* The tensors of the block. Padding between them starts as zero, and stays so: its gradient is
 * zero. */
struct model_layout {
	struct model_tensor *tensors; /* ascending offsets */
	int n_tensors, tensors_cap;
	size_t n_params;               /* floats of the whole block with padding */
	struct fragment_layers layers; /* place of the layers */
	bool failed;                   /* out of memory while adding; model_new checks it once */
};

/* Parts of the activation memory; with base == NULL it only measures. */
struct model_arena {
	char *base;
	size_t used_bytes;
};

/* A block of parameters as sections: tensors before the layers, each layer, tensors behind them. A
 * device may have memory for some of them at a time (train/windows.h). */
enum { MODEL_NO_SECTION = -1 };
static inline int model_sections(const struct fragment_layers *l) {
	return l->n + 2;
}
/* Returns the section that float `offset` of the block is in, and where a section begins; section
 * model_sections() begins at the block's end. */
int model_section_of(const struct model_layout *l, size_t offset);
size_t model_section_begin(const struct model_layout *l, int section);

/* The questions of a model whose device does not hold all sections of the weights, or of the
 * gradients. */
struct model_holder {
	void *ctx;
	/* Called before operations use a section of the forward or the backward pass, always in the
	 * same order: 0, 1, ... forward, then back to 1. The first and the last section are used
	 * until the pass ends, all others until the next call. The backward pass adds up the gradients
	 * of section 0 from its beginning to its end. */
	void (*enter)(void *ctx, int section, bool backward);
	/* Return where float `offset` of the block is. NULL: in the block, which is whole. */
	const float *(*weights)(void *ctx, size_t offset);
	float *(*gradients)(void *ctx, size_t offset);
};

struct model;
struct json_t; /* jansson */

struct model_ops {
	const char *name;                /* "gpt2" */
	const struct model_rules *rules; /* its possible shapes */
	const char *hf_prefix;           /* possible prefix of tensor names in a checkpoint: "transformer." */
	const char *hf_body; /* prefix of our names that a checkpoint of the body alone lacks: "model."; or NULL */
	size_t plan_bytes;   /* size of the family's table of activation pointers, model->plan */

	/* Reads a parsed config.json into the fields of *c that it has (model, shape, vocab, context,
	 * ...). Returns RV_E_UNSUPPORTED, naming what we would compute differently, or RV_E_CORRUPT,
	 * naming a missing or mistyped field. NULL, like config_to_hf: no such file. */
	enum rv_err (*config_from_hf)(const struct json_t *json, struct run_config *c, struct rv_errtext *et);
	/* Returns a new config.json with everything that transformers needs, or NULL without memory. */
	struct json_t *(*config_to_hf)(const struct run_config *c);
	/* Reports tensors of published checkpoints that are no parameters (causal masks), which reading
	 * skips. NULL: none. */
	bool (*hf_ignored)(const char *name);

	/* Adds every tensor of the family, in the block's order, with model_add_tensor(). */
	void (*layout)(const struct model_shape *s, struct model_layout *out);
	/* Reports whether operations other than products read tensor i: where weights are kept in bf16
	 * (backend_ops.alloc_on_host), these are kept in fp32 as well. */
	bool (*reads_fp32)(const struct model_layout *l, int tensor);
	/* Returns the output channels of its widest linear. `s` is resolved. */
	int (*widest_linear)(const struct model_shape *s);
	/* Fills model->plan from the arena for batch x context tokens, with equal calls when measuring.
	 * With memory it also computes constants of the shape (angles). */
	void (*plan)(struct model *m, struct model_arena *arena, int batch);
	/* Computes tokens (b*t) through all layers to the input of the classifier. */
	void (*forward)(struct model *m, const float *params, const int32_t *tokens, int b, int t);
	/* Computes losses (b*t) of the last forward, without gradients. */
	void (*loss)(struct model *m, const float *params, const int32_t *targets, float *losses);
	/* Computes losses (b*t), and grads = or += grad_scale * d(sum of losses)/d(params) of the last
	 * forward, by `mode`. */
	void (*backward)(struct model *m, const float *params, float *grads, const int32_t *tokens, const int32_t *targets,
					 float grad_scale, float *losses, enum gradient_mode mode);
	/* Writes host_out (n_rows, vocab): logits of rows [first, first + n_rows), last forward. */
	void (*logits)(struct model *m, const float *params, int first, int n_rows, float *host_out);
	/* Decodes n tokens of one sequence at positions [first, first + n), with keys and values of
	 * earlier ones in m->cache; writes the logits (vocab) of the last. */
	void (*decode)(struct model *m, const float *params, const int32_t *tokens, int first, int n, float *host_out);
};

/* A model of one shape on one backend. One thread at a time. */
struct model {
	const struct model_ops *ops;
	struct backend *be; /* borrowed */
	struct model_shape shape;
	struct model_layout layout;
	struct decay_span *spans; /* cover the block, neighbours differ in `decay` */
	int n_spans;
	struct model_options options;
	/* Called in a backward pass when gradients [begin, end) are final, each once, roughly from the
	 * end of the block to its beginning, so that they can be sent. May be NULL. */
	void (*on_gradients)(void *ctx, size_t begin, size_t end);
	void *on_gradients_ctx;
	/* Called in a forward pass before operations read the weights of a section, each once: 0, 1,
	 * ... May be NULL. */
	void (*before_section)(void *ctx, int section);
	void *before_section_ctx;
	const struct model_holder *holder; /* borrowed; NULL: params and grads are whole blocks */
	int b, t;                          /* sequences and tokens each of the last forward */
	void *memory;                      /* all activations, backend memory */
	size_t memory_bytes;
	void *plan;
	act_t *cache; /* (n_layer, 2, context, n_kv_head * head_dim) keys, then values; NULL before model_decode_begin */
	int decoded;  /* positions in the cache */
};

#define MODEL_FAMILY(name, facts) extern const struct model_ops model_##name;
#include "base/model_families.def"
#undef MODEL_FAMILY
/* NULL-terminated. */
extern const struct model_ops *const model_registry[];
/* Returns the run's family. */
const struct model_ops *model_family(const struct run_config *c);
/* Finds a family by name, for files from elsewhere. Returns RV_E_NOTFOUND with a list of the
 * families. */
enum rv_err model_family_find(const char *name, const struct model_ops **out, struct rv_errtext *et);

/* Builds the layout and allocates the activations on `be`, which must outlive the model. Returns
 * RV_E_RANGE (an impossible shape) or RV_E_NOMEM. */
enum rv_err model_new(const struct model_ops *family, const struct model_shape *shape,
					  const struct model_options *options, struct backend *be, struct model **out,
					  struct rv_errtext *et);
void model_free(struct model *m); /* NULL is fine */

/* Builds the layout alone, without a backend: for files. *resolved, unless NULL, becomes the shape
 * with its 0 fields filled in. Returns RV_E_RANGE (an impossible shape) or RV_E_NOMEM. */
enum rv_err model_layout_init(struct model_layout *l, const struct model_ops *family, const struct model_shape *shape,
							  struct model_shape *resolved, struct rv_errtext *et);
void model_layout_release(struct model_layout *l);

/* Computes the bytes that model_new allocates for activations of this type, and the elements that
 * model_decode_begin does. `shape` is resolved. Returns RV_E_NOMEM. */
enum rv_err model_activation_bytes(const struct model_ops *family, const struct model_shape *shape,
								   const struct model_options *options, enum dtype act, size_t *out,
								   struct rv_errtext *et);
size_t model_cache_elems(const struct model_shape *shape);

const struct model_tensor *model_find_tensor(const struct model_layout *l, const char *name); /* or NULL */
/* Appends one tensor at the next aligned offset, occupying `storage_rows` >= rows. For families. */
void model_add_tensor(struct model_layout *l, const struct model_tensor *t, int storage_rows);
/* Takes n_bytes of 64-byte aligned activation memory. For families. */
void *model_arena_take(struct model_arena *a, size_t n_bytes);

/* Fills `params` (backend memory, n_params) from `seed`: the same bits on every machine. */
void model_init_params(const struct model *m, float *params, uint64_t seed);
/* Does the same in host memory, by so many threads; 0: the caller's alone. */
void model_init_host_params(const struct model_layout *l, float *params, uint64_t seed, int threads);

/* Call model_ops with asserted arguments: b in [1, max_batch], t in [1, context]. Tokens are in [0,
 * vocab), targets too or -1 (no loss there). Blocking. */
void model_forward(struct model *m, const float *params, const int32_t *tokens, int b, int t);
void model_loss(struct model *m, const float *params, const int32_t *targets, float *losses);
void model_backward(struct model *m, const float *params, float *grads, const int32_t *tokens, const int32_t *targets,
					float grad_scale, float *losses, enum gradient_mode mode);
/* Computes forward and backward of one micro-batch; the first of a step writes grads, whatever is
 * there (GRADIENT_WRITE: all of it but padding between tensors, which stays). Returns true if
 * losses (b*t) are written; false if the backend does not wait: be->ops->micro_losses delivers them
 * later, in order. Tokens and targets may change once it returns. */
bool model_micro_step(struct model *m, const float *params, float *grads, const int32_t *tokens, const int32_t *targets,
					  int b, int t, float grad_scale, float *losses, enum gradient_mode mode);
/* Begins to bring the input of the likely next model_micro_step to the device, if that helps. */
void model_micro_prepare(struct model *m, const int32_t *tokens, const int32_t *targets, int b, int t,
						 float grad_scale);

/* Decode text token by token in time proportional to the new tokens, by cached keys and values.
 * model_decode_begin empties the cache, which its first call allocates (RV_E_NOMEM). model_decode
 * appends n tokens, 1 <= n <= max_batch * context, decoded + n <= context, and writes the logits
 * (vocab) after the last: those of model_forward on all tokens, up to rounding. Invalidates
 * forward. */
enum rv_err model_decode_begin(struct model *m, struct rv_errtext *et);
void model_decode(struct model *m, const float *params, const int32_t *tokens, int n, float *host_out);

#endif
