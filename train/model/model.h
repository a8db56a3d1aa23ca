/* model.h: a model family as a table of functions, and one model built from it.
 *
 * Parameters are one flat block of fp32, dense and the same on every machine: a table of tensors says where each one
 * lies, how it starts and whether it decays. Everything that treats parameters alike (optimizer, outer gradient,
 * checkpoint) is a loop over the block. The block belongs to the caller; the model owns only its activations, which
 * are planned once for the largest batch, so that nothing in a step allocates.
 * Adding a family: one file with a `const struct model_ops`, one of base/ with its `struct model_rules`, and one line
 * in base/model_families.def.
 */
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

/* Returns the dtype of the configuration's products on `device`, for backend_options.compute: what it names, or for
 * auto the faster one there (backend_faster_dtype). isa: as in backend_options. */
enum dtype run_config_compute(const struct run_config *c, const struct device_choice *device, const char *isa);
/* Returns "fp32" or "bf16", as the configuration names them. */
const char *dtype_name(enum dtype d);

/* What is kept from the forward pass for the backward pass. The gradients have the same bits either way. */
enum recompute {
	RECOMPUTE_NONE,  /* all activations */
	RECOMPUTE_BLOCK, /* the inputs of the blocks; a block's other activations are computed again in its backward pass */
};

struct model_options {
	int max_batch;            /* sequences of shape->context tokens in a forward pass */
	enum recompute recompute; /* of a model that trains */
	bool forward_only;        /* no backward pass: one block's activations are all that exist */
};

enum model_init { MODEL_INIT_ZERO, MODEL_INIT_ONE, MODEL_INIT_NORMAL };

/* One named piece of the flat block. Matrices are (out, in), row-major. */
struct model_tensor {
	char name[MODEL_NAME_BYTES]; /* as in Hugging Face's checkpoints of the family, without model_ops.hf_prefix */
	int rows, cols;              /* cols 1: a vector */
	size_t offset;               /* in elements from the start of the block */
	size_t elems;                /* rows * cols: what a checkpoint of the model holds */
	enum model_init init;
	float std; /* MODEL_INIT_NORMAL */
	bool decay;
	bool hf_transposed; /* Hugging Face's checkpoints hold it as (in, out): GPT-2's Conv1D */
};

/* What lies between a tensor's end and the next one's begin is padding: zero at the start, its gradient is zero, so it
 * stays zero. */
struct model_layout {
	struct model_tensor *tensors; /* ascending offsets */
	int n_tensors, tensors_cap;
	size_t n_params;               /* of the whole block, padding included */
	struct fragment_layers layers; /* where the blocks lie */
	bool failed;                   /* out of memory while adding: checked once, by model_new */
};

/* Hands out parts of the activation memory; with base == NULL it only measures. */
struct model_arena {
	char *base;
	size_t used_bytes;
};

struct model;
struct json_t; /* jansson */

struct model_ops {
	const char *name;                /* "gpt2" */
	const struct model_rules *rules; /* the shapes that it can have */
	const char *hf_prefix;           /* what names of tensors may begin with in a checkpoint: "transformer." */
	const char *hf_body; /* what a checkpoint of the body alone leaves out of our names: "model."; or NULL */
	size_t plan_bytes;   /* size of the family's table of activation pointers, model->plan */

	/* Hugging Face's config.json, parsed: sets the fields of *c that it says (model, shape, vocab, context, ...).
	 * RV_E_UNSUPPORTED names what we would compute differently; RV_E_CORRUPT what is missing or of the wrong type.
	 * NULL for both of these when the family has no such file. */
	enum rv_err (*config_from_hf)(const struct json_t *json, struct run_config *c, struct rv_errtext *et);
	/* The other way: a new object with everything that transformers needs. NULL: no memory. */
	struct json_t *(*config_to_hf)(const struct run_config *c);
	/* Tensors of published checkpoints that are no parameters (causal masks): skipped in reading. NULL: none. */
	bool (*hf_ignored)(const char *name);

	/* Adds every tensor of the family, in the block's order, with model_add_tensor(). */
	void (*layout)(const struct model_shape *s, struct model_layout *out);
	/* Returns the output channels of its widest linear. `s` is resolved. */
	int (*widest_linear)(const struct model_shape *s);
	/* Fills model->plan from the arena for batch x context tokens; the same calls whether measuring or not. Constants
	 * of the shape (angles) are computed here, when there is memory. */
	void (*plan)(struct model *m, struct model_arena *arena, int batch);
	/* tokens (b*t) through all layers to the input of the classifier. */
	void (*forward)(struct model *m, const float *params, const int32_t *tokens, int b, int t);
	/* losses (b*t) of the last forward; nothing is kept. */
	void (*loss)(struct model *m, const float *params, const int32_t *targets, float *losses);
	/* losses (b*t), and grads += grad_scale * d(sum of losses)/d(params), of the last forward. */
	void (*backward)(struct model *m, const float *params, float *grads, const int32_t *tokens, const int32_t *targets,
					 float grad_scale, float *losses);
	/* host_out (n_rows, vocab): logits of rows [first, first + n_rows) of the last forward. */
	void (*logits)(struct model *m, const float *params, int first, int n_rows, float *host_out);
	/* model_decode: n tokens of one sequence at positions [first, first + n), keys and values of earlier positions
	 * being in m->cache; logits (vocab) of the last. */
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
	/* Called within a backward pass when gradients [begin, end) of the block are final, each once, from the end of the
	 * block to its begin or so: what is to be sent can leave. NULL: nobody waits. */
	void (*on_gradients)(void *ctx, size_t begin, size_t end);
	void *on_gradients_ctx;
	int b, t;     /* of the last forward */
	void *memory; /* all activations, backend memory */
	size_t memory_bytes;
	void *plan;
	act_t *cache; /* (n_layer, 2, context, n_kv_head * head_dim) keys, then values; NULL before model_decode_begin */
	int decoded;  /* positions in it */
};

#define MODEL_FAMILY(name) extern const struct model_ops model_##name;
#include "base/model_families.def"
#undef MODEL_FAMILY
/* NULL-terminated. */
extern const struct model_ops *const model_registry[];
/* RV_E_NOTFOUND: the text lists the families there are. */
enum rv_err model_family_find(const char *name, const struct model_ops **out, struct rv_errtext *et);

/* Builds the layout and allocates the activations. Borrows `be`. RV_E_NOTFOUND (no such family: the text lists them),
 * RV_E_RANGE (a shape that cannot be), RV_E_NOMEM. */
enum rv_err model_new(const char *family, const struct model_shape *shape, const struct model_options *options,
					  struct backend *be, struct model **out, struct rv_errtext *et);
void model_free(struct model *m); /* NULL is fine */

/* The layout alone, without a backend: for files. *resolved (NULL: not wanted) is the shape with its 0 fields filled
 * in. RV_E_RANGE (a shape that cannot be), RV_E_NOMEM. */
enum rv_err model_layout_init(struct model_layout *l, const struct model_ops *family, const struct model_shape *shape,
							  struct model_shape *resolved, struct rv_errtext *et);
void model_layout_release(struct model_layout *l);

/* What model_new allocates for activations of this type, and model_decode_begin for keys and values (elements of it).
 * `shape` is resolved. RV_E_NOMEM. */
enum rv_err model_activation_bytes(const struct model_ops *family, const struct model_shape *shape,
								   const struct model_options *options, enum dtype act, size_t *out,
								   struct rv_errtext *et);
size_t model_cache_elems(const struct model_shape *shape);

const struct model_tensor *model_find_tensor(const struct model_layout *l, const char *name); /* or NULL */
/* For families: appends one tensor at the next aligned offset. `storage_rows` >= rows is what it occupies. */
void model_add_tensor(struct model_layout *l, const struct model_tensor *t, int storage_rows);
/* For families: n_bytes of 64-byte aligned activation memory. */
void *model_arena_take(struct model_arena *a, size_t n_bytes);

/* Fills the block `params` (backend memory, n_params) from `seed`: the same bits on every machine. */
void model_init_params(const struct model *m, float *params, uint64_t seed);

/* The functions of model_ops, with their arguments asserted: b in [1, max_batch], t in [1, context]. Tokens must lie in
 * [0, vocab), targets too or be -1 (no loss at this position). Blocking. */
void model_forward(struct model *m, const float *params, const int32_t *tokens, int b, int t);
void model_loss(struct model *m, const float *params, const int32_t *targets, float *losses);
void model_backward(struct model *m, const float *params, float *grads, const int32_t *tokens, const int32_t *targets,
					float grad_scale, float *losses);
/* Forward and backward of one micro-batch. True: as model_forward and model_backward, losses (b*t) are there. False:
 * the backend does not wait for it; `losses` is not touched, they come, in order, with be->ops->micro_losses. Tokens
 * and targets may change when it returns. */
bool model_micro_step(struct model *m, const float *params, float *grads, const int32_t *tokens, const int32_t *targets,
					  int b, int t, float grad_scale, float *losses);
void model_logits(struct model *m, const float *params, int first, int n_rows, float *host_out);

/* Text one token at a time, in time proportional to what is new: keys and values of what was seen are kept.
 * model_decode_begin empties the cache (the first call allocates it: RV_E_NOMEM). model_decode appends n tokens,
 * 1 <= n <= max_batch * context, decoded + n <= context, and gives the logits (vocab) that follow the last of them:
 * those of model_forward on all tokens so far, to rounding. Forgets the last forward. */
enum rv_err model_decode_begin(struct model *m, struct rv_errtext *et);
void model_decode(struct model *m, const float *params, const int32_t *tokens, int n, float *host_out);

#endif
