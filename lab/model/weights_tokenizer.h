/* weights_tokenizer.h: the tokenizer of given weights. */
#ifndef RV_LAB_WEIGHTS_TOKENIZER_H
#define RV_LAB_WEIGHTS_TOKENIZER_H

#include "base/run_config.h"
#include "train/text/tokenizer/tokenizer.h"

#include <limits.h>

/* Opens the tokenizer of model `c`, whose weights are in `where` (a file or a directory). `given`:
 * a user's --tokenizer, a file or "bytes"; "": tokenizer.json or tokenizer.tiktoken beside the
 * weights, or the bytes if the model's tokens are bytes. path: the file, "" for bytes. The caller
 * frees *out. RV_E_INVALID: not the run's tokenizer, or none is known; RV_E_RANGE: its tokens are
 * not all below c->vocab; the faults of tokenizer_open. */
enum rv_err weights_tokenizer_open(const char *where, const char *given, const struct run_config *c,
								   char path[static PATH_MAX], struct tokenizer **out, struct rv_errtext *et);

/* Opens the file beside the weights that made their tokens. path "", *out NULL: there is none, or
 * it stands for bytes. The caller frees *out. RV_E_INVALID, RV_E_RANGE and the faults of
 * tokenizer_open: there is one, and it is not the right one. */
enum rv_err weights_tokenizer_beside(const char *where, const struct run_config *c, char path[static PATH_MAX],
									 struct tokenizer **out, struct rv_errtext *et);

#endif
