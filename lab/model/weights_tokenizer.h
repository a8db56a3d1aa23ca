/* weights_tokenizer.h: which tokenizer belongs to given weights. */
#ifndef RV_LAB_WEIGHTS_TOKENIZER_H
#define RV_LAB_WEIGHTS_TOKENIZER_H

#include "base/run_config.h"
#include "train/text/tokenizer/tokenizer.h"

#include <limits.h>

/* Opens what made the tokens of the model `c`, whose weights are in `where` (a file or a directory). `given`: a user's
 * --tokenizer, a file or "bytes"; "": tokenizer.json or tokenizer.tiktoken beside the weights, or the bytes if the
 * model's tokens are bytes. path: the file, "" for bytes. The caller frees *out.
 * RV_E_INVALID: another than the run's, or none is known; RV_E_RANGE: its tokens are not all below c->vocab; what
 * tokenizer_open refuses. */
enum rv_err weights_tokenizer_open(const char *where, const char *given, const struct run_config *c,
								   char path[static PATH_MAX], struct tokenizer **out, struct rv_errtext *et);

/* The file beside the weights that made their tokens. path "", *out NULL: there is none, or it is that of the bytes.
 * The caller frees *out. RV_E_INVALID, RV_E_RANGE and what tokenizer_open refuses: there is one, and it is another. */
enum rv_err weights_tokenizer_beside(const char *where, const struct run_config *c, char path[static PATH_MAX],
									 struct tokenizer **out, struct rv_errtext *et);

#endif
