/* weights_names.h: what the ecosystem calls a model's tensors. Inner part of weights.h. */
#ifndef RV_TRAIN_FILES_WEIGHTS_NAMES_H
#define RV_TRAIN_FILES_WEIGHTS_NAMES_H

#include "train/model/model.h"

enum { WEIGHTS_NAME_BYTES = MODEL_NAME_BYTES + 32 };

/* The classifier: never behind the prefix; absent from a tied model's layout. */
#define WEIGHTS_CLASSIFIER "lm_head.weight"

/* As it is written: with the family's prefix, where transformers has one. */
void weights_name_in_file(const struct model_ops *family, const struct model_tensor *t,
						  char out[static WEIGHTS_NAME_BYTES]);
/* As model_tensor.name is: without the prefix, if it begins with one. Points into `name`. */
const char *weights_name_in_model(const struct model_ops *family, const char *name);
/* The tensor of `layout` that a file calls `name`, with the family's prefix or without, or as a file of the body alone
 * (LlamaModel, GPT2Model) calls it; NULL: none. */
const struct model_tensor *weights_find_tensor(const struct model_ops *family, const struct model_layout *layout,
											   const char *name);

#endif
