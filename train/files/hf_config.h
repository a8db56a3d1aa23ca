/* hf_config.h: Hugging Face's config.json. The families know its fields (model_ops.config_from_hf); here it is found,
 * bounded and checked. The file is not trusted. */
#ifndef RV_TRAIN_FILES_HF_CONFIG_H
#define RV_TRAIN_FILES_HF_CONFIG_H

#include "base/err.h"
#include "base/run_config.h"

#include <stddef.h>

enum { HF_CONFIG_MAX_BYTES = 1 << 20 };

/* Sets the model's fields of *c, each within the bounds of its option; on a fault *c is as it was. RV_E_CORRUPT (not
 * such a file, or a field is missing or of the wrong type), RV_E_UNSUPPORTED (a model that we do not compute: the text
 * says why), RV_E_RANGE; read: RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM too. Texts begin with the path. */
enum rv_err hf_config_parse(const char *path, const char *text, size_t n, struct run_config *c, struct rv_errtext *et);
enum rv_err hf_config_read(const char *path, struct run_config *c, struct rv_errtext *et);

#endif
