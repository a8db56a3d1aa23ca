/* text_check.h: refuses files that are no text by name, before their bytes are trained on: compressed files, archives,
 * tables, documents, weights, and anything else that is mostly control bytes. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TEXT_CHECK_H
#define RV_TRAIN_TEXT_TOKENIZER_TEXT_CHECK_H

#include "base/err.h"
#include "train/text/tokenizer/mapped_file.h"

/* Returns RV_OK when the file can be read as text, as far as its name's ending and 32 KiB each of its begin and middle
 * show. RV_E_UNSUPPORTED names the file, its kind and the command that makes text of it; RV_E_IO. Not for token files
 * (shard.h): nothing is asked of those. */
enum rv_err text_check(const struct mapped_file *m, struct rv_errtext *et);

#endif
