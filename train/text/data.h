/* data.h: training text as tokens: memory-mapped, split into training and held-out blocks, dealt to
 * shards deterministically.
 *
 * The tokens are the bytes of text files, or those of token files (train/text/tokenizer/shard.h) or
 * of a published text (train/text/published/published.h), or what a tokenizer makes of documents
 * (train/text/documents/documents.h), once, cached in cache_dir under the hash of text and
 * tokenizer. They are cut into blocks of DATA_BLOCK tokens. Block i is held out if i %
 * holdout_every == holdout_every - 1; training blocks are dealt round-robin to the shards, so that
 * all are alike, or each shard is one piece of the text. The sequences of a shard (context + 1
 * tokens within one block, so that none contains a held-out token) are visited in a seeded
 * pseudo-random permutation for each epoch (pass over the shard); the position of the first one in
 * its block is drawn for each epoch too. The cursor, the number of sequences read, is part of the
 * checkpoint: no sequence is repeated or skipped, and any position costs O(1). */
#ifndef RV_TRAIN_TEXT_DATA_H
#define RV_TRAIN_TEXT_DATA_H

#include "base/err.h"
#include "base/hash.h"
#include "base/run_config.h"
#include "train/text/published/published.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA_BLOCK = 16384 };

struct tokenizer; /* train/text/tokenizer/tokenizer.h */
struct dataset;   /* read-only after open: any number of threads and cursors */

struct dataset_config {
	/* A file, a directory (its regular files in order of names, or only the token files that
	 * `rivulet tokenize` or `rivulet data publish` wrote there), or a pattern with * ? [ ]
	 * (glob(7), sorted). Text or token files, recognised by llm.c's magic or a name that ends in
	 * .bin, not mixed. */
	const char *path;
	/* In JSON Lines and Parquet, the field or column with the text; NULL: "text". */
	const char *field;
	/* Tokenizer of text, borrowed while opening. NULL: the bytes of text are the tokens. */
	const struct tokenizer *tokenizer;
	/* The run's tokenizer hash in hex, borrowed while opening: text is refused with any other
	 * tokenizer. "": bytes; NULL: not checked. */
	const char *tokenizer_hash;
	/* The data-hash in hex of the published text that it must be, borrowed while opening; NULL or
	 * "": any text. */
	const char *data_hash;
	const char *
		cache_dir; /* directory of cached tokens (token_cache.h); NULL only without a tokenizer, and then for plain text only */
	int tokenize_threads; /* 0: all cores */
	uint32_t vocab;       /* all tokens are below; 0: not checked */
	uint32_t n_shards, holdout_every, context;
	bool contiguous; /* shards are pieces of the text; false: training blocks are dealt to them in turn */
	/* The run leases sequences (sequence_order.h): they are read by position, and there is one
	 * shard. */
	bool order;
	uint64_t seed;
	/* Advice in the refusal of a text that is too short: none; which of n_shards and
	 * holdout_every to change, for callers who can; or, before the run is known, that every run
	 * needs as much. */
	enum { DATA_OF_A_RUN, DATA_TO_CHOOSE, DATA_OF_ANY_RUN } refusal;
	/* Called about ten times a second while text is tokenized, with bytes done of bytes in all;
	 * returns false to stop (RV_E_CANCELLED; the next call resumes). May be NULL. */
	bool (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
	/* Gets shards that a published text lacks; none: they are a fault. */
	struct published_missing missing;
};

/* Returns the fields that a run determines (n_shards, contiguous, holdout_every, context, seed,
 * vocab, order, and data_hash unless members may bring other text, tokenizer_hash, which are
 * borrowed) with `path`. */
struct dataset_config dataset_config_of(const struct run_config *c, const char *path);

/* Opens training text; tokens behind the last whole block are unused. Blocks while it tokenizes;
 * otherwise reads headers and a sample of tokens, in the same time for any size. Returns RV_E_RANGE
 * for fewer blocks than one per shard and one held out (the text has the size needed) or a sampled
 * token not below vocab (file, position and value); RV_E_NOTFOUND, RV_E_IO, RV_E_INVALID (neither
 * file nor directory, text mixed with tokens, a malformed token file, another tokenizer than the
 * run's) or RV_E_NOMEM, which name the path. The files stay mapped until dataset_close. */
enum rv_err dataset_open(const struct dataset_config *cfg, struct dataset **out, struct rv_errtext *et);
void dataset_close(struct dataset *d);
uint64_t dataset_mapped_bytes(const struct dataset *d); /* bytes of the files */
/* Returns H over the number of tokens, a sample of them spread over all (of a published text its
 * data-hash), and n_shards, holdout_every, context, seed. Changes outside the sample go
 * unnoticed. */
struct rv_hash dataset_identity(const struct dataset *d);
/* Identifies the tokens, independent of path, split, seed and context: "sha256:" and 64 hex digits
 * over the bytes of text (as `cat FILES | sha256sum`), or over 4 little-endian bytes per token;
 * above DATA_CONTENT_MAX_TOKENS "sample:", over their number and DATA_CONTENT_BLOCKS blocks spread
 * evenly; of a published text "data:" and its data-hash. Takes about 3 ms per MiB hashed. Returns
 * RV_E_IO or RV_E_CORRUPT like dataset_train_sequence. */
enum { DATA_CONTENT_BLOCKS = 4096, DATA_CONTENT_MAX_TOKENS = DATA_CONTENT_BLOCKS * DATA_BLOCK };
struct data_content {
	char text[80];
};
enum rv_err dataset_content(const struct dataset *d, struct data_content *out, struct rv_errtext *et);
/* Returns the training sequences of a shard; of text opened with `order`, those of a pass, as shard
 * 0. */
uint64_t dataset_train_sequences(const struct dataset *d, uint32_t shard);
uint64_t dataset_heldout_sequences(const struct dataset *d);

/* Reads sequence `cursor` of a shard's endless stream into inputs (context) and targets (context),
 * checking every token. Returns RV_E_CORRUPT, naming file, position and value, for a token not
 * below vocab, or RV_E_IO (truncated file, failing disk); inputs and targets are then undefined. */
enum rv_err dataset_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
								   int32_t *targets, struct rv_errtext *et);
/* Reads the sequence at a position of the run's order (sequence_order.h), of text that was opened
 * with `order`, like dataset_train_sequence. */
enum rv_err dataset_sequence_at(const struct dataset *d, uint64_t position, int32_t *inputs, int32_t *targets,
								struct rv_errtext *et);
/* The same two, or RV_E_NOTFOUND instead of waiting for text that is missing. */
enum rv_err dataset_present_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
										   int32_t *targets, struct rv_errtext *et);
enum rv_err dataset_present_sequence_at(const struct dataset *d, uint64_t position, int32_t *inputs, int32_t *targets,
										struct rv_errtext *et);
/* Reads held-out sequence i, like dataset_train_sequence. */
enum rv_err dataset_heldout_sequence(const struct dataset *d, uint64_t i, int32_t *inputs, int32_t *targets,
									 struct rv_errtext *et);

/* Returns how many held-out sequences an evaluation of at most max_tokens predicted tokens uses: at
 * least one; all if max_tokens is 0. */
uint64_t dataset_heldout_used(const struct dataset *d, uint64_t max_tokens);
/* Returns the held-out sequence that is number i of `used`: spread over all, or, of a published
 * text, over few places (heldout.h). */
uint64_t dataset_heldout_spread(const struct dataset *d, uint64_t i, uint64_t used);

#endif
