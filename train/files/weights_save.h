/* weights_save.h: writes weights to a directory's safetensors files. Inner part of weights.h. */
#ifndef RV_TRAIN_FILES_WEIGHTS_SAVE_H
#define RV_TRAIN_FILES_WEIGHTS_SAVE_H

#include "train/files/weights.h"
#include "train/files/weights_format.h"

/* Metadata key of the run's configuration. */
#define WEIGHTS_CONFIG_KEY "rivulet.config"

enum weights_format weights_format_of(enum dtype d);

/* Writes model.safetensors, or files of at most max_file_bytes of tensors (at least one tensor
 * each) and then their index. Removes an earlier export in the other layout. Returns RV_E_NOMEM,
 * RV_E_FULL or RV_E_IO. */
enum rv_err weights_save_files(const char *dir, const struct weights_source *w, struct rv_errtext *et);

#endif
