/* tokenize_job.h: converts text files to token files (shard.h) on several threads; resumable.
 *
 * The output depends on the text, the tokenizer and the options only, not on the threads or on
 * interruptions. The separator token comes before each document, as in llm.c's data.
 * DIR/tokens.json records the progress and the inputs; an unfinished shard is written again. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TOKENIZE_JOB_H
#define RV_TRAIN_TEXT_TOKENIZER_TOKENIZE_JOB_H

#include "base/event.h"
#include "base/hash.h"
#include "train/text/tokenizer/block_source.h"
#include "train/text/tokenizer/tokenizer.h"

struct tokenize_state;

struct tokenize_config {
	const struct tokenizer *tokenizer;
	const struct block_source *blocks;
	const char *out;        /* existing directory, locked by the caller (rv_dir_lock) */
	const char *prefix;     /* of the files' names; NULL: "tokens" */
	struct rv_hash made_of; /* tokenize_made_of(); other inputs in `out` are refused */
	uint32_t separator;     /* TOKENIZER_NO_TOKEN: none */
	uint64_t shard_tokens;  /* tokens in each shard but the last */
	int threads;
	/* Called for each whole file, once it is in place and before the progress names it; `at` is the
	 * progress behind it. A fault ends the job. May be NULL. */
	enum rv_err (*on_shard)(void *ctx, const char *path, const struct tokenize_state *at, struct rv_errtext *et);
	/* Called about ten times a second; returns false to stop. `bytes_done`: of the files, which may
	 * be compressed. May be NULL. */
	bool (*tick)(void *ctx, uint64_t bytes_done, uint64_t shards);
	void *ctx;
};

/* The contents of tokens.json. */
struct tokenize_state {
	struct rv_hash made_of;
	uint64_t shards, tokens; /* number of whole shards, and of the tokens in them */
	uint64_t block, skip;    /* the next shard begins `skip` tokens into this block */
	bool done;
};

/* Hashes tokenizer, separator, shard_tokens and text. Returns what the source's
 * `identity` returns. */
enum rv_err tokenize_made_of(const struct tokenize_config *c, struct rv_hash *out, struct rv_errtext *et);

/* Reads tokens.json of directory `out`. Returns RV_E_NOTFOUND, RV_E_CORRUPT or RV_E_IO. */
enum rv_err tokenize_state_read(const char *out, struct tokenize_state *s, struct rv_errtext *et);
/* Replaces tokens.json, whole or not at all. Returns RV_E_FULL, RV_E_IO or RV_E_NOMEM. */
enum rv_err tokenize_state_write(const char *out, const struct tokenize_state *s, struct rv_errtext *et);

/* Names of the written files, as fnmatch(3) patterns. */
#define TOKENIZE_SHARD_NAMES     "tokens-[0-9][0-9][0-9][0-9][0-9][0-9]*.bin"
#define TOKENIZE_STATE_NAME      "tokens.json"
#define TOKENIZE_TEMPORARY_NAMES "tokens*.tmp-??????"

/* Starts the job, or resumes it where an earlier call stopped; *result is its state at the end.
 * Returns RV_E_PROTOCOL if the directory holds tokens of other inputs, RV_E_CANCELLED if `tick`
 * returned false, and what encoding and writing return. */
enum rv_err tokenize_job_run(const struct tokenize_config *c, struct tokenize_state *result, struct rv_errtext *et);

#endif
