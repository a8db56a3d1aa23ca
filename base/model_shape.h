/* model_shape.h: what a model is, by its numbers alone: which shapes a family can have, and where its layers lie in the
 * flat block of its parameters. Arithmetic only, so that whoever makes a run, who links no model, checks what its
 * workers will.
 */
#ifndef RV_BASE_MODEL_SHAPE_H
#define RV_BASE_MODEL_SHAPE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct run_config;

enum {
	MODEL_ALIGN_ELEMS = 16,    /* tensors start at multiples of 64 bytes */
	MODEL_VOCAB_MULTIPLE = 64, /* rows of the token embedding are padded with zeros to a multiple of this */
	ROPE_MAX_HEAD_DIM = 4096
};

#define MODEL_GPT2_NORM_EPS 1e-5f /* what the backends' LayerNorm has */

enum rope_scaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3 }; /* in the order of the option's choices */

/* What a model is, of the run's configuration: see base/run_config.h for each field. */
struct model_shape {
	int n_layer, n_head, n_embd, vocab, context;
	int n_kv_head, n_inner; /* 0: n_head; the family's usual. Resolved, they are never 0 */
	bool tied;
	float norm_eps;
	struct model_rope {
		double theta;
		enum rope_scaling scaling;
		double factor, low_freq, high_freq;
		int original_context;
	} rope;
};
struct model_shape model_shape_of(const struct run_config *c);

/* How many values the block has, padding included, and where its layers lie, one behind the other. */
struct model_extent {
	size_t n_params, layers_begin, layer_elems;
};

/* What a family says of shapes: base/model_NAME.c. */
struct model_rules {
	/* What spans several fields of the shape, and which of them may be 0: resolved here. RV_E_RANGE. */
	enum rv_err (*resolve)(struct model_shape *s, struct rv_errtext *et);
	/* Of a resolved shape: of model_ops.layout's table, without the table. */
	struct model_extent (*extent)(const struct model_shape *s);
};
#define MODEL_FAMILY(name, facts) extern const struct model_rules model_rules_##name;
#include "base/model_families.def"
#undef MODEL_FAMILY

/* Hidden channels of a Llama's MLP as the models of the paper have it, and transformers' default for 4096 channels: 8/3
 * of the channels, which gives the three matrices the parameters of the usual two, rounded up to a multiple of 256. */
int model_llama_inner(int n_embd);

/* The bounds that hold for every family. RV_E_RANGE. */
enum rv_err model_shape_check(const struct model_shape *s, struct rv_errtext *et);
/* The model of this configuration. *extent (NULL: not wanted). RV_E_RANGE: the family has no such model. */
enum rv_err model_extent_of(const struct run_config *c, struct model_extent *extent, struct rv_errtext *et);

/* Rows of the token embedding in the block. */
int model_padded_vocab(const struct model_shape *s);
/* What a tensor of rows x cols takes of the block. */
size_t model_tensor_elems(int rows, int cols);

#endif
