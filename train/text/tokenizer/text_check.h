/* text_check.h: refuses files that are not text before they are trained on: compressed files,
 * archives, tables, documents, weights, and anything else that is mostly control bytes. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TEXT_CHECK_H
#define RV_TRAIN_TEXT_TOKENIZER_TEXT_CHECK_H

#include "base/err.h"
#include "train/text/tokenizer/mapped_file.h"

#include <stdbool.h>

/* Checks the ending of the name and 32 KiB each of the beginning and the middle of a file. Returns
 * RV_E_UNSUPPORTED, naming the file, its kind and the command that makes text of it, or RV_E_IO.
 * Token files (shard.h) need no such check. */
enum rv_err text_check(const struct mapped_file *m, struct rv_errtext *et);
/* Checks a name and the first n bytes of what it names. RV_E_UNSUPPORTED as text_check(). */
enum rv_err text_check_sample(const char *path, const uint8_t *begin, size_t n, struct rv_errtext *et);
/* Reports whether two lines begin, each an object whose first key is quoted. */
bool text_is_json_lines(const uint8_t *begin, size_t n);

#endif
