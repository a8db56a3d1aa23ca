/* model_shape.h: a model by its numbers alone: the shapes a family can have, and where its layers
 * are in the flat block of its parameters. Arithmetic only, so that the coordinator, which links no
 * model, checks what its workers will. */
#ifndef RV_BASE_MODEL_SHAPE_H
#define RV_BASE_MODEL_SHAPE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct run_config;

enum {
	MODEL_ALIGN_ELEMS = 16,    /* tensors start at multiples of 64 bytes */
	MODEL_VOCAB_MULTIPLE = 64, /* the embedding's rows are padded with zeros to such a multiple */
	ROPE_MAX_HEAD_DIM = 4096
};

#define MODEL_GPT2_NORM_EPS 1e-5f /* of the backends' LayerNorm */

enum rope_scaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3 }; /* in the order of the option's choices */

/* The shape of a model: see base/run_config.h for each field. */
struct model_shape {
	int n_layer, n_head, n_embd, vocab, context;
	int n_kv_head, n_inner; /* 0: n_head; the family's default. Never 0 once resolved */
	bool tied;
	float norm_eps;
	struct model_rope {
		double theta;
		enum rope_scaling scaling;
		double factor, low_freq, high_freq;
		int original_context;
	} rope;
};
/* Returns the shape that the configuration asks for, unresolved. */
struct model_shape model_shape_of(const struct run_config *c);

/* The number of values in the block, padding included, and the place of its layers, which are
 * contiguous. */
struct model_extent {
	size_t n_params, layers_begin, layer_elems;
};

/* A family's rules for shapes: base/model_NAME.c. */
struct model_rules {
	/* Checks rules over several fields, and fills in those that may be 0. RV_E_RANGE. */
	enum rv_err (*resolve)(struct model_shape *s, struct rv_errtext *et);
	/* Returns the extent of a resolved shape, equal to that of model_ops.layout's table. */
	struct model_extent (*extent)(const struct model_shape *s);
};
#define MODEL_FAMILY(name, facts) extern const struct model_rules model_rules_##name;
#include "base/model_families.def"
#undef MODEL_FAMILY

/* Returns the hidden channels of a Llama's MLP as in the paper's models, and in transformers'
 * default for 4096 channels: 8/3 of n_embd, which gives the three matrices the parameters of the
 * usual two, rounded up to a multiple of 256. */
int model_llama_inner(int n_embd);

/* Checks the bounds that hold for every family. RV_E_RANGE. */
enum rv_err model_shape_check(const struct model_shape *s, struct rv_errtext *et);
/* Writes the extent of this configuration's model (NULL: only checks). RV_E_RANGE: the family has
 * no such model. */
enum rv_err model_extent_of(const struct run_config *c, struct model_extent *extent, struct rv_errtext *et);

/* Returns the rows of the token embedding in the block. */
int model_padded_vocab(const struct model_shape *s);
/* Returns the values that a tensor of rows x cols occupies in the block. */
size_t model_tensor_elems(int rows, int cols);

#endif
