/* publish_job.h: makes a published text (manifest.h) of text or of tokens, on several threads, in
 * memory that does not grow with the text.
 *
 * The files depend on the text, the tokenizer and the options alone, not on the threads or on
 * interruptions: after a kill the same call goes on behind the last whole shard. A shard that was
 * cut or changed meanwhile, and those after it, are made again. manifest.json is written last;
 * until then the directory also holds tokens.json (tokenize_job.h) and publish.log. */
#ifndef RV_TRAIN_TEXT_PUBLISHED_PUBLISH_JOB_H
#define RV_TRAIN_TEXT_PUBLISHED_PUBLISH_JOB_H

#include "train/text/published/manifest.h"
#include "train/text/tokenizer/block_source.h"
#include "train/text/tokenizer/tokenizer.h"

struct publish_config {
	const struct tokenizer *tokenizer;
	const char *tokenizer_file; /* its file, copied into `out`; NULL where bytes are the tokens */
	const struct block_source *blocks;
	const char *out; /* existing directory, locked by the caller (rv_dir_lock) */
	int threads;
	/* The publisher's statements: shard_tokens, separator, holdout_every, tokenizer_pattern,
	 * license, description, sources, mirrors. The job fills in the rest. */
	const struct manifest *stated;
	/* As in struct tokenize_config. */
	bool (*tick)(void *ctx, uint64_t bytes_done, uint64_t shards);
	/* Called for each shard of a finished text that was damaged, and is whole again. NULL: a
	 * finished text is refused without a look at its shards. */
	void (*repaired)(void *ctx, uint64_t shard);
	void *ctx;
};

/* Starts the job, or resumes it; repairs a finished text that is damaged (publish_repair.h). *out:
 * what manifest.json says; *shards, after RV_E_CANCELLED, how many shards are whole. Returns
 * RV_E_INVALID if the directory holds a finished text that is whole or a stated field is out of
 * bounds, RV_E_RANGE for a text without tokens, and what publish_repair and tokenize_job_run
 * return. */
enum rv_err publish_job_run(const struct publish_config *c, struct manifest *out, uint64_t *shards,
							struct rv_errtext *et);

#endif
