/* weights_names.h: the names of a model's tensors in files. Inner part of weights.h. */
#ifndef RV_TRAIN_FILES_WEIGHTS_NAMES_H
#define RV_TRAIN_FILES_WEIGHTS_NAMES_H

#include "train/files/safetensors.h"
#include "train/model/model.h"

enum { WEIGHTS_NAME_BYTES = MODEL_NAME_BYTES + 32 };

/* The classifier's name: never prefixed; absent from a tied model's layout. */
#define WEIGHTS_CLASSIFIER "lm_head.weight"

/* Writes the name used in files, with the family's prefix if transformers has one. */
void weights_name_in_file(const struct model_ops *family, const struct model_tensor *t,
						  char out[static WEIGHTS_NAME_BYTES]);
/* Returns the shape of `t` in files, called `name` (borrowed). */
struct safetensors_tensor weights_shape_in_file(const struct model_tensor *t, const char *name);
/* Returns the name as in model_tensor.name, without a prefix; points into `name`. */
const char *weights_name_in_model(const struct model_ops *family, const char *name);
/* Returns the tensor of `layout` that a file calls `name`, with or without the family's prefix, or
 * as a file of the body alone (LlamaModel, GPT2Model); NULL: none. */
const struct model_tensor *weights_find_tensor(const struct model_ops *family, const struct model_layout *layout,
											   const char *name);

#endif
