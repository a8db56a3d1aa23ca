/* input_checks.h: what can be said, before a worker joins, of the files that a person gives it: so that a mistake costs
 * no invite. A start and --check look through the same eyes. They read, and leave nothing behind. */
#ifndef RV_WORKER_OPTIONS_INPUT_CHECKS_H
#define RV_WORKER_OPTIONS_INPUT_CHECKS_H

#include "base/err.h"
#include "base/run_config.h"

/* A file, a directory or a pattern holds text or token shards. Whether it is enough for the run's shards, and whether
 * its tokens are the run's, shows once the run is known. "": RV_E_INVALID, with what may be given; what dataset_open
 * refuses. */
enum rv_err input_check_data(const char *path, struct rv_errtext *et);
/* The same for a run that is known: enough for its data shards, with its tokenizer, and token shards of its vocabulary.
 * Text that a tokenizer still has to make tokens of is not counted: that takes long. What run_tokenizer_open,
 * dataset_open and input_check_data refuse. */
enum rv_err input_check_run_data(const struct run_config *run, const char *path, const char *tokenizer,
								 struct rv_errtext *et);
/* "" and "bytes" are fine. What tokenizer_open refuses. */
enum rv_err input_check_tokenizer(const char *file, struct rv_errtext *et);
/* "" is fine. What weights_load_config refuses: whether they are the run's shows later. */
enum rv_err input_check_weights(const char *where, struct rv_errtext *et);

#endif
