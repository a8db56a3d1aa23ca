/* weights_save.h: weights into a directory's safetensors files. Inner part of weights.h. */
#ifndef RV_TRAIN_FILES_WEIGHTS_SAVE_H
#define RV_TRAIN_FILES_WEIGHTS_SAVE_H

#include "train/files/weights.h"
#include "train/files/weights_format.h"

/* The run's configuration, in a file's metadata. */
#define WEIGHTS_CONFIG_KEY "rivulet.config"

enum weights_format weights_format_of(enum dtype d);

/* model.safetensors, or files of at most max_file_bytes of tensors (but one tensor at least) and their index, which is
 * written last; what an earlier export of the other sort left goes. RV_E_NOMEM, RV_E_FULL, RV_E_IO. */
enum rv_err weights_save_files(const char *dir, const struct weights_source *w, struct rv_errtext *et);

#endif
