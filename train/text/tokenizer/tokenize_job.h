/* tokenize_job.h: text files into token files (train/text/tokenizer/shard.h), on several threads, resumable.
 *
 * The output is a function of the text, the tokenizer and the options: not of the threads, nor of where it was stopped.
 * Each file is a document; the separator token comes before it, as llm.c's data has it. DIR/tokens.json says how far
 * the work is and what it was made from; a started shard that was not finished is made again.
 */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TOKENIZE_JOB_H
#define RV_TRAIN_TEXT_TOKENIZER_TOKENIZE_JOB_H

#include "base/event.h"
#include "base/hash.h"
#include "train/text/tokenizer/text_blocks.h"
#include "train/text/tokenizer/tokenizer.h"

struct tokenize_config {
	const struct tokenizer *tokenizer;
	const struct text_blocks *blocks;
	const char *out;        /* a directory that exists, and that the caller has locked (rv_dir_lock) */
	struct rv_hash made_of; /* tokenize_made_of(): a directory made of something else is refused */
	uint32_t separator;     /* TOKENIZER_NO_TOKEN: none */
	uint64_t shard_tokens;  /* of each shard but the last */
	int threads;
	/* About ten times a second: false stops. NULL: nothing. */
	bool (*tick)(void *ctx, uint64_t bytes_done, uint64_t shards);
	void *ctx;
};

/* What is in tokens.json. */
struct tokenize_state {
	struct rv_hash made_of;
	uint64_t shards, tokens; /* whole shards, and the tokens in them */
	uint64_t block, skip;    /* the next shard begins `skip` tokens into this block */
	bool done;
};

/* Names tokenizer, separator, shard_tokens and text (data_files_identity, and what it refuses). */
enum rv_err tokenize_made_of(const struct tokenize_config *c, struct rv_hash *out, struct rv_errtext *et);

/* RV_E_NOTFOUND: nothing was begun there; RV_E_CORRUPT: not a state. */
enum rv_err tokenize_state_read(const char *out, struct tokenize_state *s, struct rv_errtext *et);
enum rv_err tokenize_state_write(const char *out, const struct tokenize_state *s, struct rv_errtext *et);

/* Names of the files that it writes, as fnmatch(3) patterns. */
#define TOKENIZE_SHARD_NAMES     "tokens-[0-9][0-9][0-9][0-9][0-9][0-9]*.bin"
#define TOKENIZE_STATE_NAME      "tokens.json"
#define TOKENIZE_TEMPORARY_NAMES "tokens*.tmp-??????"

/* Begins, or goes on from where an earlier call stopped; *result is the state at the end. RV_E_PROTOCOL: the directory
 * holds tokens of something else; RV_E_CANCELLED; what encoding and writing refuse. */
enum rv_err tokenize_job_run(const struct tokenize_config *c, struct tokenize_state *result, struct rv_errtext *et);

#endif
