/* hf_config.h: finds, bounds and checks Hugging Face's config.json, an untrusted file whose fields
 * the families know (model_ops.config_from_hf). */
#ifndef RV_TRAIN_FILES_HF_CONFIG_H
#define RV_TRAIN_FILES_HF_CONFIG_H

#include "base/err.h"
#include "base/run_config.h"

#include <stddef.h>

enum { HF_CONFIG_MAX_BYTES = 1 << 20 };

/* Sets the model's fields of *c, each within the bounds of its option; leaves *c unchanged on a
 * fault. Returns RV_E_CORRUPT (another kind of file, or a missing or mistyped field),
 * RV_E_UNSUPPORTED (a model that Rivulet does not compute, and why), RV_E_RANGE; hf_config_read
 * also RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM. Texts begin with the path. */
enum rv_err hf_config_parse(const char *path, const char *text, size_t n, struct run_config *c, struct rv_errtext *et);
enum rv_err hf_config_read(const char *path, struct run_config *c, struct rv_errtext *et);

#endif
