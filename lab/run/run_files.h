/* run_files.h: the files that complete a run's configuration: a tokenizer, weights to start
 * from. */
#ifndef RV_LAB_RUN_FILES_H
#define RV_LAB_RUN_FILES_H

#include "base/options.h"
#include "base/run_config.h"

struct run_files {
	char tokenizer[512]; /* "bytes", a file, or "auto": the tokenizer.json beside `init`, else bytes */
	char init[512];      /* "": weights are drawn from the seed */
};

/* Options `tokenizer` and `init` of a command whose options struct holds a run_files at
 * `offset`. */
#define RUN_FILES_OPTIONS(offset)                                                                                      \
	{"tokenizer",                                                                                                      \
	 RV_OPT_STRING,                                                                                                    \
	 (offset) + offsetof(struct run_files, tokenizer),                                                                 \
	 sizeof(((struct run_files *)0)->tokenizer),                                                                       \
	 "auto",                                                                                                           \
	 0,                                                                                                                \
	 0,                                                                                                                \
	 NULL,                                                                                                             \
	 "bytes, or the tokenizer.json or tiktoken file for the text (or that of the token shards); "                      \
	 "sets tokenizer-hash, and vocab unless a larger one is given. auto: tokenizer.json beside --init, else bytes.",   \
	 "Files"},                                                                                                         \
	{                                                                                                                  \
		"init", RV_OPT_STRING, (offset) + offsetof(struct run_files, init), sizeof(((struct run_files *)0)->init), "", \
			0, 0, NULL,                                                                                                \
			"Start from the weights of this Hugging Face model directory, run or safetensors file; sets the model's "  \
			"options and init-hash.",                                                                                  \
			"Files"                                                                                                    \
	}

/* Fills `table` with `own` options, then run_config's; both end with name == NULL. Asserts that
 * they fit `cap`. */
void run_config_table(const struct rv_option *own, struct rv_option *table, int cap);

/* Reads the files and completes *c from them; replaces "auto" by its meaning ("": the tokenizer
 * that *c names has no known file). The faults of initial_weights_adopt, weights_tokenizer_beside
 * and run_tokenizer_adopt; RV_E_INVALID: an option that contradicts the weights, or weights that
 * are named and not given. */
enum rv_err run_files_adopt(struct run_files *f, struct run_config *c, struct rv_errtext *et);

#endif
