/* run_tokenizer.h: the tokenizer that a run's tokens are made with: every worker's must be the same file. */
#ifndef RV_TRAIN_TEXT_RUN_TOKENIZER_H
#define RV_TRAIN_TEXT_RUN_TOKENIZER_H

#include "base/run_config.h"
#include "train/text/tokenizer/tokenizer.h"

/* Opens what `option` ("", "bytes", or a file: a user's --tokenizer) names for a run. *out is NULL when there is none:
 * the run trains on bytes, or no file was given, which token shards do not need (text is then refused by
 * dataset_open). The caller frees it. RV_E_INVALID: the file is not the one whose hash the run has, or a file where
 * the run trains on bytes, or "bytes" where it does not; RV_E_RANGE: its tokens are not all below run->vocab; what
 * tokenizer_open refuses. The text says what to do. */
enum rv_err run_tokenizer_open(const struct run_config *run, const char *option, struct tokenizer **out,
							   struct rv_errtext *et);

/* For who makes a new run: opens what `option` names and enters its hash into the run, and the size of its vocabulary
 * too unless `vocab_given` (then it must be large enough: RV_E_RANGE). "", "bytes": the run trains on bytes, *out is
 * NULL. RV_E_INVALID: the run has another hash already. */
enum rv_err run_tokenizer_adopt(struct run_config *run, bool vocab_given, const char *option, struct tokenizer **out,
								struct rv_errtext *et);

/* May text at `path` be made into the tokens of a run of this hash (hex, "": bytes) with `t` (NULL: bytes)?
 * RV_E_INVALID says what is missing. */
enum rv_err run_tokenizer_check(const char *run_hash, const struct tokenizer *t, const char *path,
								struct rv_errtext *et);

/* Is `t`, read from `file`, what made the tokens of `run`? A run without a hash does not say, and takes any.
 * RV_E_INVALID: no; RV_E_RANGE: its tokens are not all below run->vocab. */
enum rv_err run_tokenizer_check_file(const struct run_config *run, const char *file, const struct tokenizer *t,
									 struct rv_errtext *et);

#endif
