/* input_checks.h: checks the files that a person gives to a worker before it joins, so that a
 * mistake costs no invite. A start and --check use the same checks. They only read. */
#ifndef RV_WORKER_OPTIONS_INPUT_CHECKS_H
#define RV_WORKER_OPTIONS_INPUT_CHECKS_H

#include "base/err.h"
#include "base/run_config.h"

/* Checks that a file, a directory or a pattern holds text or token shards, not whether it is enough
 * for the run or has its tokens. The faults of dataset_open. */
enum rv_err input_check_data(const char *path, struct rv_errtext *et);
/* Checks the data for a known run: enough for its data shards, with its tokenizer, and token shards
 * of its vocabulary. Text that must still be tokenized is not counted here. An empty path is
 * RV_E_INVALID unless the run hands out its text. The faults of run_tokenizer_open, dataset_open
 * and input_check_data. */
enum rv_err input_check_run_data(const struct run_config *run, const char *path, const char *tokenizer,
								 struct rv_errtext *et);
/* Checks a tokenizer file; accepts "" and "bytes". The faults of tokenizer_open. */
enum rv_err input_check_tokenizer(const char *file, struct rv_errtext *et);
/* Checks initial weights, not whether they are the run's; accepts "". The faults of
 * weights_load_config. */
enum rv_err input_check_weights(const char *where, struct rv_errtext *et);

#endif
