/* run_tokenizer.h: the tokenizer of a run's tokens: all its workers must use the same file. */
#ifndef RV_TRAIN_TEXT_RUN_TOKENIZER_H
#define RV_TRAIN_TEXT_RUN_TOKENIZER_H

#include "base/run_config.h"
#include "train/text/tokenizer/tokenizer.h"

/* Opens the tokenizer of a run that `option` (a user's --tokenizer: "", "bytes" or a file) names.
 * *out is NULL if the run trains on bytes or no file was given, as for token files (dataset_open
 * then refuses text). The caller frees it. Returns RV_E_INVALID if the file's hash is not the
 * run's, or for a file where the run trains on bytes or the reverse; RV_E_RANGE if a token is not
 * below run->vocab; what tokenizer_open returns. The text names the next step. */
enum rv_err run_tokenizer_open(const struct run_config *run, const char *option, struct tokenizer **out,
							   struct rv_errtext *et);

/* Opens the tokenizer of a new run and enters its hash into the run, and its vocabulary too unless
 * `vocab_given` (RV_E_RANGE if that is too small). "", "bytes": the run trains on bytes, *out is
 * NULL. Returns RV_E_INVALID if the run has another hash. */
enum rv_err run_tokenizer_adopt(struct run_config *run, bool vocab_given, const char *option, struct tokenizer **out,
								struct rv_errtext *et);

/* Checks that `t` (NULL: bytes) makes the tokens of a run with this hash (hex; "": bytes) of text
 * at `path`. Returns RV_E_INVALID, naming what is missing. */
enum rv_err run_tokenizer_check(const char *run_hash, const struct tokenizer *t, const char *path,
								struct rv_errtext *et);

/* Checks that `t`, read from `file`, made the tokens of `run`; a run without a hash accepts any.
 * Returns RV_E_INVALID, or RV_E_RANGE if a token is not below run->vocab. */
enum rv_err run_tokenizer_check_file(const struct run_config *run, const char *file, const struct tokenizer *t,
									 struct rv_errtext *et);

#endif
