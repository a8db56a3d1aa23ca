/* model.h: a model family as a table of functions, and one model built from it.
 *
 * Parameters are one flat block of fp32, dense and the same on every machine: a table of tensors says where each one
 * lies, how it starts and whether it decays. Everything that treats parameters alike (optimizer, outer gradient,
 * checkpoint) is a loop over the block. The block belongs to the caller; the model owns only its activations, which
 * are planned once for the largest batch, so that nothing in a step allocates.
 * Adding a family: one file with a `const struct model_ops`, and one line in model_registry (model.c).
 */
#ifndef RV_WORKER_TRAIN_MODEL_H
#define RV_WORKER_TRAIN_MODEL_H

#include "base/err.h"
#include "kernels/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MODEL_NAME_BYTES = 48,
	MODEL_ALIGN_ELEMS = 16,   /* tensors start at multiples of 64 bytes */
	MODEL_VOCAB_MULTIPLE = 64 /* rows of the token embedding are padded with zeros to a multiple of this */
};

struct model_shape {
	int n_layer, n_head, n_embd, vocab, context;
};

enum model_init { MODEL_INIT_ZERO, MODEL_INIT_ONE, MODEL_INIT_NORMAL };

/* One named piece of the flat block. Matrices are (out, in), row-major. */
struct model_tensor {
	char name[MODEL_NAME_BYTES]; /* as in Hugging Face's checkpoints of the family */
	int rows, cols;              /* cols 1: a vector */
	size_t offset;               /* in elements from the start of the block */
	size_t elems;                /* rows * cols: what a checkpoint of the model holds */
	enum model_init init;
	float std; /* MODEL_INIT_NORMAL */
	bool decay;
};

/* What lies between a tensor's end and the next one's begin is padding: zero at the start, its gradient is zero, so it
 * stays zero. */
struct model_layout {
	struct model_tensor *tensors; /* ascending offsets */
	int n_tensors, tensors_cap;
	size_t n_params; /* of the whole block, padding included */
	bool failed;     /* out of memory while adding: checked once, by model_new */
};

/* Hands out parts of the activation memory; with base == NULL it only measures. */
struct model_arena {
	char *base;
	size_t used_bytes;
};

struct model;

struct model_ops {
	const char *name;  /* "gpt2" */
	size_t plan_bytes; /* size of the family's table of activation pointers, model->plan */

	/* Adds every tensor of the family, in the block's order, with model_add_tensor(). */
	void (*layout)(const struct model_shape *s, struct model_layout *out);
	/* Fills model->plan from the arena for batch x context tokens; the same calls whether measuring or not. */
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
};

/* A model of one shape on one backend. One thread at a time. */
struct model {
	const struct model_ops *ops;
	struct backend *be; /* borrowed */
	struct model_shape shape;
	struct model_layout layout;
	struct decay_span *spans; /* cover the block, neighbours differ in `decay` */
	int n_spans;
	int max_batch; /* sequences */
	int b, t;      /* of the last forward */
	void *memory;  /* all activations, backend memory */
	size_t memory_bytes;
	void *plan;
};

extern const struct model_ops model_gpt2;
/* NULL-terminated. */
extern const struct model_ops *const model_registry[];

/* Builds the layout and allocates the activations of `max_batch` sequences of shape->context tokens. Borrows `be`.
 * RV_E_NOTFOUND (no such family: the text lists them), RV_E_RANGE (a shape that cannot be), RV_E_NOMEM. */
enum rv_err model_new(const char *family, const struct model_shape *shape, int max_batch, struct backend *be,
					  struct model **out, struct rv_errtext *et);
void model_free(struct model *m); /* NULL is fine */

/* Rows of the token embedding in the block. */
int model_padded_vocab(const struct model_shape *s);
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
void model_logits(struct model *m, const float *params, int first, int n_rows, float *host_out);

#endif
